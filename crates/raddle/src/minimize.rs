//! `raddle minimize`: the same failure with the fewest switches.

use anyhow::{Result, bail};
use raddle_lab::budget::Limits;
use raddle_lab::executor::{Executor, Subject};
use raddle_lab::minimize::minimize as fewest;
use raddle_lab::progress::Progress;
use raddle_lab::signature::Signature;
use raddle_report::render::shell;
use raddle_trace::clip::Clip;
use raddle_trace::schedule::Schedule;
use raddle_trace::step_version::STEP_VERSION;
use raddle_trial::clip as clips;
use raddle_trial::interrupt::{self, Cause};
use raddle_trial::{Delivery, Trial};

use crate::args::MinimizeArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::progress::Line;
use crate::{allow, clip, guard, replay, run, say, target};

pub(crate) fn minimize(args: &MinimizeArgs) -> Result<Exit> {
    let mut kept = clip::read(&args.clip)?;
    let restored = replay::restore_same(&args.clip, &kept, None)?;
    let context = Context::new(restored.launch.files.clone());
    let path = &restored.program.path;
    let allow = allow::more(&kept.options.allow, &args.allow, path, &context.files)?;
    kept.options.allow = allow.words().to_vec();
    let mut plan = clips::plan(&kept, true, allow);
    let expected = replay::expected(&kept, &restored.launch)?;
    target::prepare()?;
    let line = Line::new(false);
    let show = |progress: Progress<'_>| line.show(&progress);
    let subject = Subject {
        launch: restored.launch,
        expected,
        jobs: args.budget.jobs.map(|jobs| jobs as usize),
        is_own: context.is_own.clone(),
        files: context.files.clone(),
    };
    let limits = Limits { runs_max: args.budget.runs_max(), time_max: args.budget.time_max() };
    let executor = Executor::new(subject, limits, &show);
    guard::until(executor.budget.deadline(), {
        let clip = args.clip.display().to_string();
        Box::new(move |_| {
            eprintln!("raddle: there was no time to finish; {clip} is as it was");
            Exit::Unjudged
        })
    });
    let Some(trial) = executor.alone(1).run(&plan, Delivery::Schedule)? else {
        if executor.budget.is_interrupted() {
            return Ok(run::interrupted());
        }
        guard::print_now();
        let clip = args.clip.display();
        eprintln!("raddle: there was no time to execute {clip}; raise --time");
        return Ok(Exit::Unjudged);
    };
    if !kept.has_current_steps() {
        let steps = replay::other_steps(&args.clip, &kept);
        if !clips::is_reproduced(&trial, &kept.expect) {
            bail!(
                "{steps}; its sites led to another run, so record it anew by raddle run --clip or raddle hunt"
            );
        }
        // From here on, schedules are those of this raddle.
        plan.by_sites = false;
        if let Some(schedule) = &trial.execution.schedule {
            renew(&mut kept, &trial, schedule.clone());
        }
        eprintln!("raddle: {steps}: it was followed by its sites and has new steps now");
    }
    let Some(failure) = trial.failure() else {
        bail!(
            "{} does not fail, so there is nothing to minimize; see raddle replay {}",
            args.clip.display(),
            shell::word(&args.clip)
        );
    };
    let signature = Signature::of(&trial.execution, failure, &*executor.subject.is_own);
    let before = kept.schedule.n_runs().saturating_sub(1);
    let best = fewest(&executor, &plan, &trial, &signature, usize::MAX)?;
    let output = args.output.as_ref().unwrap_or(&args.clip);
    if let Some(best) = best
        && let Some(schedule) = best.execution.schedule.clone()
    {
        renew(&mut kept, &best, schedule);
    }
    guard::print_now();
    kept.write(output)?;
    say::notes(context.names().allowed_in_all(&executor.budget));
    let stopped = match interrupt::stopped() {
        Some(Cause::Time) => "; stopped by --time",
        Some(Cause::Signal(_)) => "; interrupted",
        None => "",
    };
    eprintln!(
        "raddle: reduced from {before} to {} context switches in {} runs{stopped}",
        kept.schedule.n_runs().saturating_sub(1),
        executor.budget.n_runs()
    );
    println!("show it again: raddle replay {}", shell::word(output));
    Ok(interrupt::signal().map_or(Exit::Clean, guard::killed))
}

/// Gives a clip the schedule of a new run.
fn renew(kept: &mut Clip, trial: &Trial, schedule: Schedule) {
    kept.modules = clips::modules(&trial.execution.run, &schedule);
    kept.schedule = schedule;
    kept.step_version = Some(STEP_VERSION);
}
