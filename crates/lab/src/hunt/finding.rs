//! What a hunt has found, by ids.

use std::sync::Arc;

use raddle_analysis::anomaly::AnomalyKind;
use raddle_trace::file::Trace;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trace::run::Run;
use raddle_trial::{Plan, Trial};

use crate::access::AccessAt;
use crate::anomalies::Predicted;
use crate::compare::Example;
use crate::compare::check::Forcing;
use crate::recorded::Recorded;

/// One finding.
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// The pattern, such as `R1-W2-W1`; empty if it has none.
    pub pattern: String,
    /// The accesses in the order that breaks.
    pub accesses: Vec<AccessAt>,
    /// The run that the accesses are from.
    pub from: Source,
    /// What became of it.
    pub verdict: FindingVerdict,
    /// If it could not be made to happen: which thread left the schedule, and where.
    pub left: Option<(ThreadId, Pc)>,
    /// What came of forcing it on runs that passed.
    pub forced: Option<Forcing>,
    /// The run that shows it, if it fails, or is a lock cycle that formed without harm.
    pub proof: Option<Proof>,
}

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// Accesses in a wrong order.
    Anomaly(AnomalyKind),
    /// A failure that nothing explains.
    Failure,
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingVerdict {
    /// The program fails.
    Failing,
    /// It happens without harm.
    Benign,
    /// It cannot be made to happen.
    Infeasible,
    /// It was not tried.
    Untested,
}

/// The run that the accesses of a finding are from.
pub enum Source {
    /// A recorded run that it was predicted from.
    Predicted(Arc<Predicted>),
    /// A run that was compared.
    Example(Arc<Example>),
    /// The run that shows it.
    Proof,
}

/// A run that shows a finding.
pub struct Proof {
    /// The number of the failure, from 0, as it was reported when it was first seen. Cycles come
    /// after failures.
    pub number: usize,
    /// How it was executed.
    pub plan: Plan,
    /// How it ended.
    pub trial: Trial,
    /// The same run with its trace; none if nothing more could be executed.
    pub recorded: Option<Arc<Recorded>>,
}

impl Finding {
    /// What ran, and all that it did, for names of accesses.
    #[must_use]
    pub fn source(&self) -> Option<(&Run, Option<&Trace>)> {
        match &self.from {
            Source::Predicted(base) => Some((base.recorded.run(), Some(&base.recorded.trace))),
            Source::Example(example) => Some((&example.run, example.trace.as_deref())),
            Source::Proof => {
                let proof = self.proof.as_ref()?;
                let trace = proof.recorded.as_ref().map(|recorded| &*recorded.trace);
                Some((&proof.trial.execution.run, trace))
            }
        }
    }

    /// Context switches of the run that shows it.
    #[must_use]
    pub fn n_switches(&self) -> usize {
        let schedule =
            self.proof.as_ref().and_then(|proof| proof.trial.execution.schedule.as_ref());
        schedule.map_or(0, |schedule| schedule.n_runs().saturating_sub(1))
    }

    /// Failing ones first, then those that executions prove, those that are explained, and those
    /// with few switches.
    pub(super) fn order(&self) -> (FindingVerdict, bool, bool, usize) {
        let is_proven = self.forced.is_some_and(|forced| forced.n_failed > 0);
        let is_explained = !self.accesses.is_empty();
        (self.verdict, !is_proven, !is_explained, self.n_switches())
    }
}
