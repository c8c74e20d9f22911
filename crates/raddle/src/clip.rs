//! Keeping a run as a clip.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use raddle_report::symbols::name::Namer;
use raddle_trace::clip::{Clip, Judge, Module, Options, Outcome, OutcomeKind, Schema, Stdin};
use raddle_trace::id::Site;
use raddle_trace::run::Run;
use raddle_trace::schedule::{Schedule, Step};
use raddle_trial::binary::Program;
use raddle_trial::recorder::POLICY_AFTER;
use raddle_trial::verdict::{Expected, Failure, FailureKind, Verdict, judge};
use raddle_trial::{Execution, Input, Launch, Plan};

use crate::args::{ExpectedArgs, TargetArgs};
use crate::{run, shell};

/// Says early what would prevent a clip from being kept.
pub(crate) fn check(path: &Path, plan: &Plan) -> Result<()> {
    run::needs_control("--clip", plan)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        bail!("cannot keep {}: there is no directory {}", path.display(), parent.display());
    }
    Ok(())
}

/// All that a clip is made of.
pub(crate) struct Kept<'a> {
    pub(crate) target: &'a TargetArgs,
    pub(crate) expected: &'a ExpectedArgs,
    pub(crate) program: &'a Program,
    pub(crate) launch: &'a Launch,
    pub(crate) plan: &'a Plan,
    pub(crate) execution: &'a Execution,
    pub(crate) anomaly: Option<serde_json::Value>,
}

/// Writes the clip and gives the command that replays it; none if the run is not worth it.
pub(crate) fn keep(path: &Path, kept: &Kept<'_>, expected: &Expected) -> Result<Option<String>> {
    let execution = kept.execution;
    let verdict = judge(execution, expected)?;
    let (Some(schedule), Some(expect)) = (&execution.schedule, outcome(execution, &verdict)) else {
        return Ok(None);
    };
    let (typed, args) = kept.target.command.split_first().context("no program")?;
    let text = |text: &OsStr| {
        let text = text.to_str().map(ToOwned::to_owned);
        text.context("a clip holds text, and an argument or a path is none")
    };
    let clip = Clip {
        schema: Schema,
        program: text(typed)?,
        build_id: kept.program.build_id.clone(),
        args: args.iter().map(|argument| text(argument)).collect::<Result<_>>()?,
        directory: execution.run.directory.clone(),
        environment: kept.target.input.env.iter().cloned().collect(),
        stdin: match &kept.launch.stdin {
            Input::Bytes(bytes) => Stdin::Bytes(bytes.clone()),
            Input::File(path) => Stdin::File(text(path.as_os_str())?),
            Input::Inherit | Input::Null => Stdin::Empty,
        },
        policy: POLICY_AFTER,
        seed: kept.plan.seed,
        options: Options {
            spurious: kept.plan.spurious,
            early_sleepers: kept.plan.early_sleepers,
            steps_max: kept.plan.n_steps_max.unwrap_or(0),
            ..Options::default()
        },
        judge: Judge {
            timeout_ms: kept.launch.timeout.map(|timeout| timeout.as_millis() as u64),
            expect_exit: expected.status.map(i32::from),
            expect_stdout: match &kept.expected.expect_stdout {
                Some(path) => Some(text(path.as_os_str())?),
                None => None,
            },
            oracle: expected.oracle.clone(),
        },
        modules: modules(&execution.run, schedule),
        expect,
        anomaly: kept.anomaly.clone(),
        schedule: schedule.clone(),
    };
    clip.write(path)?;
    Ok(Some(format!("raddle replay {}", shell::word(path))))
}

/// What came of a run, as a clip tells it; none if that cannot be judged.
pub(crate) fn outcome(execution: &Execution, verdict: &Verdict) -> Option<Outcome> {
    let end = &execution.outcome.end;
    let Failure { kind, detail, place } = match verdict {
        Verdict::Pass => {
            let detail = end.to_string();
            return Some(Outcome { kind: OutcomeKind::Pass, detail, file: None, line: None });
        }
        Verdict::Fail(failure) => failure.clone(),
        Verdict::Unjudged => return None,
    };
    let kind = match kind {
        FailureKind::Exit => OutcomeKind::Exit,
        FailureKind::Signal => OutcomeKind::Signal,
        FailureKind::Assert => OutcomeKind::Assert,
        FailureKind::Deadlock => OutcomeKind::Deadlock,
        FailureKind::Hang => OutcomeKind::Hang,
        FailureKind::Memory => OutcomeKind::Memory,
        FailureKind::Misuse => OutcomeKind::Misuse,
        FailureKind::Output => OutcomeKind::Output,
        FailureKind::Oracle => OutcomeKind::Oracle,
    };
    let (file, line) = match place {
        Some((file, line)) => (Some(file), Some(line)),
        None => end.place().map_or((None, None), |place| {
            let site = Namer::new(&execution.run).site(place.pc);
            (site.frame.short_file.clone(), site.frame.line)
        }),
    };
    Some(Outcome { kind, detail, file, line })
}

/// The modules that a schedule's sites are in.
pub(crate) fn modules(run: &Run, schedule: &Schedule) -> Vec<Module> {
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

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
