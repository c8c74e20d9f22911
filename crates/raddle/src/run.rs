//! `raddle run`: one execution.

use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::Result;
use raddle_code::program::Program;
use raddle_lab::difference::{Side, difference};
use raddle_trace::file::{Trace, Writer};
use raddle_trial::verdict::{Expected, Verdict};
use raddle_trial::{
    Delivery, End, Execution, Launch, Output, Plan, Status, Trial, execute, interrupt,
};
use tempfile::TempDir;

use crate::args::{ExecutionArgs, RunArgs};
use crate::clip::{self, ClipWriter};
use crate::context::Context;
use crate::exit::Exit;
use crate::{allow, guard, say, target};

pub(crate) fn run(args: RunArgs) -> Result<Exit> {
    let prepared = Prepared::new(&args.execution)?;
    if args.verify {
        return verify(prepared);
    }
    let is_kept = args.execution.clip.is_some();
    let delivery = if is_kept { Delivery::Schedule } else { Delivery::Nothing };
    let trial = prepared.judge(prepared.run(delivery)?)?;
    let again = prepared.keep(&trial)?;
    Ok(prepared.conclude(&trial, None, &again))
}

/// All that one execution needs.
pub(crate) struct Prepared<'a> {
    args: &'a ExecutionArgs,
    program: Program,
    launch: Launch,
    plan: Plan,
    expected: Option<Expected>,
    context: Context,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(args: &'a ExecutionArgs) -> Result<Self> {
        let plan = target::plan(&args.plan)?;
        if !args.plan.allow.allow.is_empty() {
            target::needs_control("--allow", &plan)?;
        }
        let expected = target::expected(&args.expected)?;
        let (mut launch, program) = target::launch(&args.target)?;
        let allow = allow::typed(&args.plan.allow, &program.path, &launch.files)?;
        let plan = Plan { allow, ..plan };
        target::prepare()?;
        if let Some(path) = &args.clip {
            clip::check(path, &plan)?;
            target::capture(&mut launch)?;
        } else if expected.is_some() {
            launch.stdout = Output::Capture;
        }
        let context = Context::new(launch.files.clone());
        Ok(Self { args, program, launch, plan, expected, context })
    }

    /// One execution.
    pub(crate) fn run(&self, delivery: Delivery<'_>) -> Result<Execution> {
        Ok(execute(&self.launch, &self.plan, delivery)?)
    }

    /// Prints what the target printed, then judges: an oracle that cannot be asked hides nothing.
    pub(crate) fn judge(&self, execution: Execution) -> Result<Trial> {
        relay(&execution)?;
        Ok(Trial::judged(execution, &self.expected.clone().unwrap_or_default())?)
    }

    fn again(&self) -> String {
        target::again(&self.args.plan, &self.args.target)
    }

    /// Keeps a run if that is wanted; the command that shows it again.
    pub(crate) fn keep(&self, trial: &Trial) -> Result<String> {
        let Some(path) = &self.args.clip else { return Ok(self.again()) };
        let expected = self.expected.clone().unwrap_or_default();
        let writer = ClipWriter {
            files: &self.context.files,
            target: &self.args.target,
            expected_args: &self.args.expected,
            program: &self.program,
            launch: &self.launch,
            expected: &expected,
        };
        let is_kept = writer.keep(path, trial, &self.plan, None)?;
        Ok(if is_kept { clip::command(path) } else { self.again() })
    }

    /// Says how a run ended, and which command shows it again if it failed; exits as the program
    /// did, or as the verdict says if something was expected of it.
    pub(crate) fn conclude(&self, trial: &Trial, trace: Option<&Trace>, again: &str) -> Exit {
        let Trial { execution, verdict } = trial;
        let names = self.context.names();
        let text = match (&self.expected, verdict, &execution.outcome.end) {
            // What was expected is news, not that it exited; and so is what is wrong with a run
            // that ended well.
            (Some(_), Verdict::Fail(failure), End::Exit { .. })
            | (None, Verdict::Fail(failure), End::Exit { status: 0 }) => {
                format!("{}\n", failure.detail)
            }
            (Some(_), Verdict::Pass, _) => String::new(),
            (_, Verdict::Fail(_), _) => names.ending(execution, trace),
            (None, Verdict::Pass, _) | (_, Verdict::Unjudged, _) => names.ending(execution, None),
            (_, Verdict::Unanswered(silence), _) => format!("{silence}\n"),
        };
        say::news(&text);
        say::notes(names.allowed(&execution.run, &execution.allowed));
        say::notes(names.remarks(&execution.run, &execution.remarks));
        if let Verdict::Fail(_) = verdict {
            say::again(again);
        }
        match (&self.expected, verdict) {
            (None, Verdict::Fail(_)) if !execution.outcome.end.is_failure() => Exit::Found,
            (_, Verdict::Unanswered(_)) if trial.is_stopped() => interrupted(),
            (_, Verdict::Unanswered(_)) => Exit::Unjudged,
            (None, _) | (_, Verdict::Unjudged) => exit(execution),
            (Some(_), Verdict::Pass) => Exit::Clean,
            (Some(_), Verdict::Fail(_)) => Exit::Found,
        }
    }
}

/// `raddle run --verify`: the same run twice, compared event by event.
fn verify(mut prepared: Prepared<'_>) -> Result<Exit> {
    target::needs_control("--verify", &prepared.plan)?;
    target::capture(&mut prepared.launch)?;
    // How it ends is not the question.
    prepared.expected = None;
    let directory = TempDir::with_prefix("raddle-verify-")?;
    let record = |path: PathBuf| -> Result<(Trial, Trace)> {
        let mut writer = Writer::spool(&path)?;
        let execution = prepared.run(Delivery::EveryRecord(&mut writer))?;
        let trace = writer.into_trace(&execution.run)?;
        Ok((Trial::judged(execution, &Expected::default())?, trace))
    };
    let runs = [record(directory.path().join("1"))?, record(directory.path().join("2"))?];
    relay(&runs[0].0.execution)?;
    let again = prepared.again();
    for (trial, _) in &runs {
        if trial.execution.outcome.end.is_unjudged() {
            return Ok(prepared.conclude(trial, None, &again));
        }
    }
    let sides = [0, 1].map(|at| Side { execution: &runs[at].0.execution, trace: &runs[at].1 });
    if let Some(difference) = difference(sides)? {
        let traces = [&runs[0].1, &runs[1].1];
        let doubts = [0, 1].map(|at| runs[at].0.execution.outcome.doubts);
        say::news(&prepared.context.names().difference(&difference, traces, doubts));
        return Ok(Exit::Unjudged);
    }
    let (trial, trace) = &runs[0];
    eprintln!("raddle: both runs did the same {} events", trace.stats()?.events);
    Ok(prepared.conclude(trial, Some(trace), &again))
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

/// Exits as the program did; with 1 where it would not have exited by itself.
pub(crate) fn exit(execution: &Execution) -> Exit {
    match execution.outcome.end {
        End::Exit { status } | End::Exec { status: Status::Exited(status) } => Exit::Status(status),
        End::Signal { number, .. } | End::Exec { status: Status::Killed(number) } => {
            guard::killed(number)
        }
        End::Assert { .. } => guard::killed(SIGABRT),
        End::Deadlock
        | End::LostWakeup
        | End::Livelock { .. }
        | End::Endless { .. }
        | End::UseAfterFree { .. }
        | End::DoubleFree { .. }
        | End::Misuse { .. } => Exit::Found,
        End::TimedOut { .. } | End::Diverged(_) | End::Internal { .. } | End::Unattached { .. } => {
            Exit::Unjudged
        }
        End::Interrupted => interrupted(),
    }
}

/// Says that a command was interrupted, and exits as such a command does.
pub(crate) fn interrupted() -> Exit {
    guard::print_now();
    eprintln!("raddle: interrupted");
    guard::killed(interrupt::signal().unwrap_or(SIGINT))
}

/// What Ctrl-C sends.
pub(crate) const SIGINT: i32 = 2;
/// What a failed assertion ends with.
const SIGABRT: i32 = 6;
