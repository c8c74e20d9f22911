//! `raddle replay`: the same run again, as often as wanted.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use raddle_lab::budget::Limits;
use raddle_lab::executor::{Executor, Subject};
use raddle_lab::progress::Progress;
use raddle_report::model::{Replay, Report};
use raddle_report::render::text::replay_summary;
use raddle_report::render::{Form, Options, shell};
use raddle_trace::clip::Clip;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::step_version::STEP_VERSION;
use raddle_trial::clip::{self as clips, Restored, changed_modules, is_reproduced};
use raddle_trial::verdict::{Expected, Verdict};
use raddle_trial::{Delivery, Launch, Plan, Trial, gdb, interrupt};

use crate::args::ReplayArgs;
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::progress::Line;
use crate::{allow, clip, guard, run, runtime, say, target};

pub(crate) fn replay(args: ReplayArgs) -> Result<Exit> {
    let clip = clip::read(&args.clip)?;
    let restored = restore(&clip, args.program.as_deref(), args.timeout)?;
    if !args.any_build && restored.is_other_build {
        bail!(
            "{} was recorded with a different build of {}; rebuild that version, record a new clip, or replay it as far as it fits: raddle replay --any-build {}",
            args.clip.display(),
            restored.program.path.display(),
            shell::word(&args.clip),
        );
    }
    let Restored { launch, program, .. } = &restored;
    let allow = allow::more(&clip.options.allow, &args.allow, &program.path, &launch.files)?;
    let plan = clips::plan(&clip, !args.any_build, allow);
    if args.gdb {
        target::prepare_for_debugger()?;
        eprintln!("raddle: type `run` to replay {}", args.clip.display());
        gdb::debug(&restored.launch, &plan)?;
        return Ok(Exit::Clean);
    }
    target::prepare()?;
    let expected = expected(&clip, &restored.launch)?;
    replay_all(&args, &clip, restored.launch, expected, &plan)
}

/// The target of a clip.
pub(crate) fn restore(
    clip: &Clip,
    program: Option<&Path>,
    timeout: Option<f64>,
) -> Result<Restored> {
    let restored = clips::restore(clip, program, timeout.map(target::timeout), runtime::RUNTIME)?;
    if restored.is_elsewhere {
        eprintln!(
            "raddle: directory {} does not exist; replaying in the current one",
            clip.directory
        );
    }
    Ok(restored)
}

/// The target of a clip, of the build that it was made with.
pub(crate) fn restore_same(path: &Path, clip: &Clip, timeout: Option<f64>) -> Result<Restored> {
    let restored = restore(clip, None, timeout)?;
    if restored.is_other_build {
        bail!(
            "{} was recorded with a different build of {}; rebuild that version or record a new clip",
            path.display(),
            restored.program.path.display(),
        );
    }
    Ok(restored)
}

/// That a clip counts other steps than this raddle.
pub(crate) fn other_steps(path: &Path, clip: &Clip) -> String {
    let version = clip.step_version();
    format!(
        "{} has step version {version}, and this raddle counts steps as version {STEP_VERSION} does",
        path.display()
    )
}

/// What makes a run of a clip pass.
pub(crate) fn expected(clip: &Clip, launch: &Launch) -> Result<Expected> {
    clips::expected(clip, launch)
        .map_err(|(path, error)| anyhow!(error).context(format!("cannot read {}", path.display())))
}

/// What came of a replay.
struct Replayed {
    trial: Trial,
    is_reproduced: bool,
    trace: Option<Trace>,
}

fn replay_all(
    args: &ReplayArgs,
    clip: &Clip,
    launch: Launch,
    expected: Expected,
    plan: &Plan,
) -> Result<Exit> {
    let context = Context::new(launch.files.clone());
    let line = Line::new(args.times == 1);
    let show = |progress: Progress<'_>| line.show(&progress);
    let jobs = args.jobs.map(|jobs| jobs as usize);
    let (is_own, files) = (context.is_own.clone(), context.files.clone());
    let subject = Subject { launch, expected, jobs, is_own, files };
    let times = usize::try_from(args.times).unwrap_or(usize::MAX);
    let limits = Limits { runs_max: times, time_max: Duration::MAX };
    let executor = Executor::new(subject, limits, &show);
    let mut tally = Replay { times: args.times, reproduced: 0, diverged: 0, notes: Vec::new() };
    let mut n_others = 0;
    // The first that was not as expected, or else the last.
    let mut shown: Option<Replayed> = None;
    while executor.budget.n_runs() < times && !executor.budget.is_stopped() {
        let n = BATCH.min(times - executor.budget.n_runs());
        let batch = executor.all(&vec![(); n], 1, |(), runner| {
            // One that is looked at gets its trace, which says more.
            if times > 1 {
                return Ok((runner.run(plan, Delivery::Nothing)?, None));
            }
            let mut writer = Writer::spool(&std::env::temp_dir().join(scratch()))?;
            let trial = runner.run(plan, Delivery::Records(&mut writer))?;
            let trace = match &trial {
                Some(trial) => Some(writer.into_trace(&trial.execution.run)?),
                None => None,
            };
            Ok((trial, trace))
        })?;
        for (trial, trace) in batch.into_iter().flatten() {
            let Some(trial) = trial else { continue };
            let is_reproduced = is_reproduced(&trial, &clip.expect);
            if is_reproduced {
                tally.reproduced += 1;
            } else if trial.unjudged().is_some() || !clip.has_current_steps() {
                tally.diverged += 1;
            } else {
                n_others += 1;
            }
            if shown.as_ref().is_none_or(|shown| shown.is_reproduced) {
                shown = Some(Replayed { trial, is_reproduced, trace });
            }
        }
        executor
            .report(Progress::Replaying { n_runs: executor.budget.n_runs(), n_runs_max: times });
    }
    line.clear();
    if executor.budget.is_interrupted() {
        let (n_done, say) = (tally.reproduced + tally.diverged + n_others, "raddle: interrupted");
        tally.times = n_done;
        let expected = format!("as {} says: {}", args.clip.display(), clip.expect.detail);
        let so_far = replay_summary(&tally, &expected);
        let so_far = if n_done > 0 { format!("{say}; so far, {so_far}") } else { say.to_owned() };
        guard::print_now();
        eprintln!("{so_far}");
        return Ok(guard::killed(interrupt::signal().unwrap_or(run::SIGINT)));
    }
    let shown = shown.context("nothing was replayed")?;
    tally.notes.extend(context.names().allowed_in_all(&executor.budget));
    finish(args, clip, &context, tally, n_others, &shown)
}

/// Replays between two looks at what came of them.
const BATCH: usize = 64;

/// A name for a temporary file of this process.
fn scratch() -> String {
    format!("raddle-replay-{}", std::process::id())
}

fn finish(
    args: &ReplayArgs,
    clip: &Clip,
    context: &Context,
    tally: Replay,
    n_others: u64,
    shown: &Replayed,
) -> Result<Exit> {
    let execution = &shown.trial.execution;
    if args.json {
        let options = Options { count: 0, windows: false, directory: Path::new("") };
        context::print(&Report::Replay(tally.clone()), Form::Json, &options)?;
    } else if args.times == 1 {
        run::relay(execution)?;
    }
    match &shown.trial.verdict {
        Verdict::Unanswered(silence) => say::news(&format!("{silence}\n")),
        Verdict::Pass | Verdict::Fail(_) | Verdict::Unjudged => {
            say::news(&context.names().ending(execution, shown.trace.as_ref()));
        }
    }
    say::notes(tally.notes.iter().cloned());
    let expected = format!("as {} says: {}", args.clip.display(), clip.expect.detail);
    eprintln!("raddle: {}", replay_summary(&tally, &expected));
    if !clip.has_current_steps() {
        let way = if tally.diverged > 0 {
            "its sites led to another run, which is not judged; record it anew by raddle run --clip or raddle hunt"
        } else {
            "it was followed by its sites"
        };
        eprintln!("raddle: {}: {way}", other_steps(&args.clip, clip));
    }
    if tally.diverged > 0 {
        for name in changed_modules(clip, &execution.run) {
            eprintln!("raddle: {name} has changed since the clip was made");
        }
    }
    if tally.diverged + n_others > 0 && args.times > 1 && args.jobs != Some(1) {
        eprintln!("raddle: if parallel runs disturb each other, add --jobs 1");
    }
    Ok(match (n_others, tally.diverged) {
        (0, 0) => Exit::Clean,
        (0, _) => Exit::Unjudged,
        _ => Exit::Found,
    })
}
