//! What is isolated, and what was found out.

use std::io;

use raddle_analysis::witness::AccessKind;
use raddle_code::elf::Files;
use raddle_trace::file::{ReadError, Trace, TraceError, WriteError};
use raddle_trace::id::{Pc, ThreadId};
use raddle_trace::run::Run;
use raddle_trial::allowed::Lifted;
use raddle_trial::oracle::Silence;
use raddle_trial::verdict::Expected;
use raddle_trial::{Launch, LaunchError, Plan, TrialError};

use crate::check::CauseKind;
use crate::origin::Location;

/// A program that fails, and how to make it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// How it is started.
    pub launch: &'a Launch,
    /// Its threads' order, if it is built for raddle; without, it runs as it is.
    pub plan: Option<&'a Plan>,
    /// What makes it pass.
    pub expected: &'a Expected,
    /// Module files, for what looks at machine code.
    pub files: &'a Files,
}

/// What was found out.
pub struct Isolation {
    /// How the program failed, in words.
    pub ending: String,
    /// The cause, as far as it was found.
    pub cause: Option<Cause>,
    /// From the failure back to the cause.
    pub chain: Vec<Link>,
    /// What it took.
    pub executions: Executions,
    /// For names.
    pub run: Run,
    /// The failing execution's trace, if it has one.
    pub trace: Option<Trace>,
    /// Judgements that were allowed in the failing execution.
    pub allowed: Vec<Lifted>,
    /// What could not be done, in words.
    pub notes: Vec<String>,
    /// Instructions that were executed one by one.
    pub n_stepped: u64,
    /// Instructions that were passed over.
    pub n_skipped: u64,
}

/// The cause of a failure.
#[derive(Clone, Debug)]
pub struct Cause {
    /// What it is.
    pub kind: CauseKind,
    /// What is to blame, in the order in which it happened.
    pub accesses: Vec<AccessAt>,
}

/// An access, by addresses.
#[derive(Clone, Debug)]
pub struct AccessAt {
    /// The thread that performed it.
    pub thread: ThreadId,
    /// What it did.
    pub kind: AccessKind,
    /// Where in the program: behind the instruction, and where the activations around it
    /// return to.
    pub pcs: Vec<Pc>,
    /// Which memory.
    pub location: Option<Location>,
    /// The value read or written, if it is known.
    pub value: Option<u64>,
}

/// The places of an instruction and of the activations around it.
pub(super) fn pcs(instruction: u64, callers: &[u64]) -> Vec<Pc> {
    // Behind it, as that of a call is.
    std::iter::once(instruction + 1).chain(callers.iter().copied()).map(Pc).collect()
}

/// A link of the chain of corruption.
#[derive(Clone, Debug)]
pub enum Link {
    /// A failure, with the memory that it used.
    Failure {
        /// In words.
        what: String,
        /// Who and where; the memory that it is about.
        at: AccessAt,
    },
    /// A definition.
    Definition {
        /// Who and where; what it defined.
        at: AccessAt,
        /// Whether it was suppressed; if not, it was found by going back over values.
        suppressed: bool,
    },
}

/// Executions, counted as in Table II of the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// The failing one.
    pub original: u32,
    /// With definitions suppressed.
    pub suppression: u32,
    /// With the accesses of a race in the other order.
    pub race: u32,
    /// With the accesses of a violation in another order.
    pub violation: u32,
    /// Only to see who defines a location.
    pub watch: u32,
}

/// Why nothing could be isolated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IsolateError {
    /// It passes.
    #[error("it does not fail: {ending}")]
    Passes {
        /// How it ended instead.
        ending: String,
    },
    /// The schedule does not fit.
    #[error("it does not replay any more: {why}")]
    Diverged {
        /// In words.
        why: String,
    },
    /// The time limit ended it.
    #[error("it did not end in time, which says nothing; --timeout allows more")]
    TimedOut,
    /// The oracle gave no answer.
    #[error("{silence}")]
    Unanswered {
        /// Why not.
        silence: Silence,
    },
    /// The kernel does not let us trace.
    #[error(
        "the kernel does not allow raddle to trace the program; allow it with `sysctl -w kernel.yama.ptrace_scope=1`, in a container with --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined"
    )]
    Forbidden,
    /// Whoever runs raddle wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The program could not be run.
    #[error(transparent)]
    Launch(LaunchError),
    /// The user's own judge could not be asked.
    #[error(transparent)]
    Oracle(#[from] raddle_trial::oracle::OracleError),
    /// A trace could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The operating system refused.
    #[error("cannot keep traces: {0}")]
    Io(#[from] io::Error),
}

impl From<TrialError> for IsolateError {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Launch(error) => error.into(),
            TrialError::Oracle(error) => error.into(),
        }
    }
}

impl From<TraceError> for IsolateError {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Write(error) => error.into(),
            TraceError::Read(error) => error.into(),
        }
    }
}

impl From<LaunchError> for IsolateError {
    fn from(error: LaunchError) -> Self {
        match &error {
            // A program that may not be executed has another code.
            LaunchError::Start { source, .. } if source.raw_os_error() == Some(libc::EPERM) => {
                Self::Forbidden
            }
            LaunchError::Wait(source) if source.raw_os_error() == Some(libc::EPERM) => {
                Self::Forbidden
            }
            _ => Self::Launch(error),
        }
    }
}
