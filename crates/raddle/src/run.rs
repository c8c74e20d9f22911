//! `raddle run`: one execution.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Result, bail};
use raddle_trace::file::Trace;
use raddle_trial::binary::Program;
use raddle_trial::verdict::{Expected, Verdict, judge};
use raddle_trial::{Delivery, End, Execution, Launch, Output, Plan, Status, execute, interrupt};

use crate::args::{ExecutionArgs, RunArgs};
use crate::clip::Kept;
use crate::exit::Exit;
use crate::explain::explain;
use crate::{clip, say, target, verify};

pub(crate) fn run(args: RunArgs) -> Result<Exit> {
    let prepared = Prepared::new(&args.execution)?;
    let Prepared { launch, plan, expected, .. } = &prepared;
    if args.verify {
        return verify::verify(launch.clone(), plan, &prepared.again());
    }
    let is_kept = args.execution.clip.is_some();
    let delivery = if is_kept { Delivery::Schedule } else { Delivery::Nothing };
    let execution = execute(launch, plan, delivery)?;
    relay(&execution)?;
    let again = prepared.keep(&execution)?;
    tell(&execution, None, expected.as_ref(), &again)
}

/// All that one execution needs.
pub(crate) struct Prepared<'a> {
    args: &'a ExecutionArgs,
    program: Program,
    pub(crate) launch: Launch,
    pub(crate) plan: Plan,
    pub(crate) expected: Option<Expected>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(args: &'a ExecutionArgs) -> Result<Self> {
        let plan = target::plan(&args.plan)?;
        let expected = target::expected(&args.expected)?;
        let (mut launch, program) = target::launch(&args.target)?;
        target::prepare()?;
        if let Some(path) = &args.clip {
            clip::check(path, &plan)?;
            target::isolate(&mut launch)?;
        } else if expected.is_some() {
            launch.stdout = Output::Capture;
        }
        Ok(Self { args, program, launch, plan, expected })
    }

    fn again(&self) -> String {
        target::again(&self.args.plan, &self.args.target)
    }

    /// Keeps an execution if that is wanted; the command that shows it again.
    pub(crate) fn keep(&self, execution: &Execution) -> Result<String> {
        let Some(path) = &self.args.clip else { return Ok(self.again()) };
        let kept = Kept {
            target: &self.args.target,
            expected: &self.args.expected,
            program: &self.program,
            launch: &self.launch,
            plan: &self.plan,
            execution,
            anomaly: None,
        };
        let expected = self.expected.clone().unwrap_or_default();
        Ok(clip::keep(path, &kept, &expected)?.unwrap_or_else(|| self.again()))
    }
}

/// Prints what the target printed, if it was captured.
pub(crate) fn relay(execution: &Execution) -> Result<()> {
    let written = |result: io::Result<()>| match result {
        // The reader has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    };
    if let Some(stdout) = &execution.stdout {
        let mut out = io::stdout().lock();
        written(out.write_all(&stdout.bytes).and_then(|()| out.flush()))?;
    }
    if let Some(stderr) = &execution.stderr {
        written(io::stderr().lock().write_all(&stderr.bytes))?;
    }
    Ok(())
}

/// Says how a run ended, and which command shows it again if it failed; exits as the
/// program did, or as the verdict says if something was expected of it.
pub(crate) fn tell(
    execution: &Execution,
    trace: Option<&Path>,
    expected: Option<&Expected>,
    again: &str,
) -> Result<Exit> {
    let verdict = judge(execution, expected.unwrap_or(&Expected::default()))?;
    let text = match (expected, &verdict, &execution.outcome.end) {
        // What was expected is news, not that it exited.
        (Some(_), Verdict::Fail(failure), End::Exit { .. }) => format!("{}\n", failure.detail),
        (Some(_), Verdict::Pass, _) => String::new(),
        (_, Verdict::Fail(_), _) => explain(execution, open(trace).as_ref()),
        _ => explain(execution, None),
    };
    say::news(&text);
    if matches!(verdict, Verdict::Fail(_)) {
        say::again(again);
    }
    Ok(match (expected, verdict) {
        (None, _) | (_, Verdict::Unjudged) => exit(execution),
        (Some(_), Verdict::Pass) => Exit::Clean,
        (Some(_), Verdict::Fail(_)) => Exit::Found,
    })
}

/// The trace of a run that failed, unless it would take long to read.
fn open(trace: Option<&Path>) -> Option<Trace> {
    Trace::open(trace?).ok().filter(|trace| trace.n_records() <= N_RECORDS_MAX)
}

/// About three seconds' worth.
const N_RECORDS_MAX: u64 = 20_000_000;

/// Exits as the program did; with 1 where it would not have exited by itself.
pub(crate) fn exit(execution: &Execution) -> Exit {
    match execution.outcome.end {
        End::Exit { status } | End::Exec { status: Status::Exited(status) } => Exit::Status(status),
        End::Signal { number, .. } | End::Exec { status: Status::Killed(number) } => killed(number),
        End::Assert { .. } => killed(SIGABRT),
        End::Deadlock
        | End::LostWakeup
        | End::Livelock { .. }
        | End::Hang { .. }
        | End::UseAfterFree { .. }
        | End::DoubleFree { .. }
        | End::Misuse { .. } => Exit::Found,
        End::Diverged(_) | End::Internal { .. } | End::Unattached { .. } => Exit::Unjudged,
        End::Interrupted => interrupted(),
    }
}

/// Exits as one who was told to stop.
pub(crate) fn interrupted() -> Exit {
    killed(interrupt::take().unwrap_or(SIGINT))
}

fn killed(number: i32) -> Exit {
    Exit::Status(128u8.saturating_add(number as u8))
}

const SIGINT: i32 = 2;
/// What a failed assertion ends with.
const SIGABRT: i32 = 6;

/// Refuses what only works when one thread runs at a time.
pub(crate) fn needs_control(option: &str, plan: &Plan) -> Result<()> {
    if plan.policy().is_none() {
        bail!("{option} needs threads under control; leave out --policy free");
    }
    Ok(())
}
