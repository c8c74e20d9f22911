//! Clips: from a run to the file that repeats it, and back to a launch and a plan.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raddle_code::elf::Files;
use raddle_code::program::Program;
use raddle_trace::clip::{Clip, Judge, Module, Options, Outcome, OutcomeKind, Schema, Stdin};
use raddle_trace::failure::FailureKind;
use raddle_trace::id::Site;
use raddle_trace::run::Run;
use raddle_trace::schedule::{Schedule, Step};
use raddle_trace::step_version::STEP_VERSION;

use crate::launch::{Input, Launch, Output};
use crate::oracle::Oracle;
use crate::outcome::{End, signal_name};
use crate::plan::{Allow, IDLE_MAX, Order, Plan};
use crate::recorder::POLICY_AFTER;
use crate::target::{self, Runtime, TargetError};
use crate::trial::Trial;
use crate::verdict::{Expected, Failure, Verdict};

/// A run that is kept.
pub struct Kept<'a> {
    /// Program and arguments, as they were typed.
    pub command: &'a [std::ffi::OsString],
    /// Variables that were set for it.
    pub environment: &'a [(String, String)],
    /// The file with the expected output, if one was named.
    pub expect_stdout: Option<&'a Path>,
    /// The program.
    pub program: &'a Program,
    /// How it was started.
    pub launch: &'a Launch,
    /// How it was executed.
    pub plan: &'a Plan,
    /// What makes a run pass.
    pub expected: &'a Expected,
    /// How it ended.
    pub trial: &'a Trial,
    /// Where it failed: file and line.
    pub place: (Option<String>, Option<u32>),
    /// What it shows.
    pub finding: Option<serde_json::Value>,
}

/// Why a run cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// A clip is text.
    #[error("a clip holds text, and {0:?} is not valid Unicode")]
    NotText(std::ffi::OsString),
    /// There is no command.
    #[error("no program")]
    NoProgram,
}

impl Kept<'_> {
    /// The clip; none if the run is not worth one: it cannot be judged, or its threads were free.
    pub fn clip(&self) -> Result<Option<Clip>, KeepError> {
        let execution = &self.trial.execution;
        let outcome = outcome(self.trial, self.place.clone());
        let (Some(schedule), Some(expect)) = (&execution.schedule, outcome) else {
            return Ok(None);
        };
        let oracle = self.expected.oracle.as_ref();
        let (typed, args) = self.command.split_first().ok_or(KeepError::NoProgram)?;
        Ok(Some(Clip {
            schema: Schema,
            program: text(typed)?,
            build_id: self.program.build_id.clone(),
            args: args.iter().map(|argument| text(argument)).collect::<Result<_, _>>()?,
            directory: execution.run.directory.clone(),
            environment: self.environment.iter().cloned().collect(),
            stdin: match &self.launch.stdin {
                Input::Bytes(bytes) => Stdin::Bytes(bytes.clone()),
                Input::File(path) => Stdin::File(text(path.as_os_str())?),
                Input::Inherit | Input::Null => Stdin::Empty,
            },
            policy: POLICY_AFTER,
            seed: self.plan.seed,
            options: Options {
                spurious: self.plan.spurious,
                expiry: Some(self.plan.expiry.into()),
                steps_max: self.plan.n_steps_max.unwrap_or(0),
                idle_max: Some(self.plan.n_idle_max.unwrap_or(0)),
                allow: self.plan.allow.words().to_vec(),
                ..Options::default()
            },
            judge: Judge {
                timeout_ms: self.launch.timeout.map(|timeout| timeout.as_millis() as u64),
                expect_exit: self.expected.status.map(i32::from),
                expect_stdout: self.expect_stdout.map(|path| text(path.as_os_str())).transpose()?,
                oracle: oracle.map(|oracle| oracle.command.clone()),
                oracle_timeout_ms: oracle.and_then(oracle_timeout_ms),
            },
            modules: modules(&execution.run, schedule),
            expect,
            anomaly: self.finding.clone(),
            step_version: Some(STEP_VERSION),
            schedule: schedule.clone(),
        }))
    }
}

/// The time limit of an oracle, as a clip has it: none for the default, 0 for no limit.
fn oracle_timeout_ms(oracle: &Oracle) -> Option<u64> {
    let is_default = oracle.timeout == Some(Oracle::TIMEOUT);
    (!is_default).then(|| oracle.timeout.map_or(0, |timeout| (timeout.as_millis() as u64).max(1)))
}

fn text(text: &OsStr) -> Result<String, KeepError> {
    text.to_str().map(ToOwned::to_owned).ok_or_else(|| KeepError::NotText(text.to_owned()))
}

/// What came of a run, as a clip has it; none if that cannot be judged.
#[must_use]
pub fn outcome(trial: &Trial, (file, line): (Option<String>, Option<u32>)) -> Option<Outcome> {
    let Failure { kind, detail, .. } = match &trial.verdict {
        Verdict::Pass => {
            let detail = trial.execution.outcome.end.to_string();
            return Some(Outcome { kind: OutcomeKind::Pass, detail, file: None, line: None });
        }
        Verdict::Fail(failure) => failure.clone(),
        Verdict::Unjudged | Verdict::Unanswered(_) => return None,
    };
    let detail = match (kind, &trial.execution.outcome.end) {
        // A replay is held against it, and what a dying program says changes with its data.
        (FailureKind::Signal, End::Signal { number, .. }) => signal_name(*number),
        (
            FailureKind::Exit
            | FailureKind::Signal
            | FailureKind::Assert
            | FailureKind::Deadlock
            | FailureKind::Hang
            | FailureKind::Memory
            | FailureKind::Misuse
            | FailureKind::Output
            | FailureKind::Oracle,
            _,
        ) => detail,
    };
    Some(Outcome { kind: OutcomeKind::Fail(kind), detail, file, line })
}

/// Whether a run ended as a clip says. Where is left out: lines move, failures stay.
#[must_use]
pub fn is_reproduced(trial: &Trial, expect: &Outcome) -> bool {
    outcome(trial, (None, None))
        .is_some_and(|outcome| outcome.kind == expect.kind && outcome.detail == expect.detail)
}

/// The modules that a schedule's sites are in.
#[must_use]
pub fn modules(run: &Run, schedule: &Schedule) -> Vec<Module> {
    let is_meant = |path: &str| {
        schedule.steps.iter().any(|step| match step {
            Step::Run { site, .. } => Site::new(path.as_bytes(), site.offset()) == *site,
            Step::Choose { .. } => false,
        })
    };
    run.modules
        .iter()
        .filter(|module| is_meant(&module.path))
        .map(|module| Module {
            name: file_name(&module.path).to_owned(),
            build_id: module.build_id.clone(),
        })
        .collect()
}

/// The modules of a run that are a different build than when a clip was made.
#[must_use]
pub fn changed_modules<'a>(clip: &'a Clip, run: &Run) -> Vec<&'a str> {
    let is_changed = |then: &&Module| {
        let now = run.modules.iter().find(|now| file_name(&now.path) == then.name);
        now.is_some_and(|now| now.build_id != then.build_id)
    };
    clip.modules.iter().filter(is_changed).map(|module| &module.name[..]).collect()
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A clip, ready to be executed.
pub struct Restored {
    /// How the target is started.
    pub launch: Launch,
    /// The program.
    pub program: Program,
    /// The clip's directory is gone, so the current one is used.
    pub is_elsewhere: bool,
    /// The program is not the build that the clip was made with.
    pub is_other_build: bool,
}

/// The target of a clip, or another program in its place. `timeout` overrides the clip's own.
pub fn restore(
    clip: &Clip,
    program: Option<&Path>,
    timeout: Option<Option<Duration>>,
    runtime: Runtime,
) -> Result<Restored, TargetError> {
    let directory = Some(PathBuf::from(&clip.directory)).filter(|directory| directory.is_dir());
    let (typed, program) = match program {
        Some(path) => (path, target::program(path, None, runtime)?),
        None => {
            let path = Path::new(&clip.program);
            (path, target::program(path, directory.as_deref(), runtime)?)
        }
    };
    let arguments = std::iter::once(target::name_of(&program, typed))
        .chain(clip.args.iter().map(Into::into))
        .collect();
    let in_directory = |path: &str| match &directory {
        Some(directory) => directory.join(path),
        None => path.into(),
    };
    let environment = clip.environment.iter();
    let launch = Launch {
        program: program.path.clone(),
        arguments,
        environment: environment.map(|(name, value)| (name.into(), Some(value.into()))).collect(),
        stdin: match &clip.stdin {
            Stdin::Empty => Input::Null,
            Stdin::File(path) => Input::File(in_directory(path)),
            Stdin::Bytes(bytes) => Input::Bytes(bytes.clone()),
        },
        stdout: Output::Capture,
        stderr: Output::Capture,
        timeout: timeout.unwrap_or(clip.judge.timeout_ms.map(Duration::from_millis)),
        runtime: runtime.file(program.soname)?,
        directory,
        files: Files::default(),
    };
    Ok(Restored {
        is_elsewhere: launch.directory.is_none(),
        is_other_build: !clip.build_id.is_empty() && program.build_id != clip.build_id,
        launch,
        program,
    })
}

/// The plan of a clip, with what its words allow in the program that is run. If it is strict, a
/// step that does not fit ends the run. A clip that counts other steps is followed by its sites.
#[must_use]
pub fn plan(clip: &Clip, strict: bool, allow: Allow) -> Plan {
    Plan {
        order: Order::Follow { schedule: clip.schedule.clone(), strict, after: clip.policy },
        seed: clip.seed,
        n_steps_max: (clip.options.steps_max > 0).then_some(clip.options.steps_max),
        n_idle_max: Some(clip.options.idle_max.unwrap_or(IDLE_MAX)).filter(|&n| n > 0),
        spurious: clip.options.spurious,
        expiry: clip.options.expiry(),
        allow,
        by_sites: !clip.has_current_steps(),
        is_alone: false,
        cpu: None,
    }
}

/// What makes a run of a clip pass; or the file that could not be read, and why.
pub fn expected(clip: &Clip, launch: &Launch) -> Result<Expected, (PathBuf, io::Error)> {
    let stdout = clip.judge.expect_stdout.as_ref().map(|path| {
        let path = launch.directory.clone().unwrap_or_default().join(path);
        std::fs::read(&path).map_err(|error| (path, error))
    });
    Ok(Expected {
        status: clip.judge.expect_exit.and_then(|status| u8::try_from(status).ok()),
        stdout: stdout.transpose()?,
        oracle: clip.judge.oracle.clone().map(|command| Oracle {
            command,
            timeout: clip
                .judge
                .oracle_timeout_ms
                .map_or(Some(Oracle::TIMEOUT), |ms| (ms > 0).then(|| Duration::from_millis(ms))),
        }),
    })
}
