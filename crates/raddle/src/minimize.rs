//! `raddle minimize`: the same failure with the fewest switches.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use raddle_trace::clip::Clip;
use raddle_trial::verdict::Verdict;
use raddle_trial::{Delivery, Plan};

use crate::args::MinimizeArgs;
use crate::exit::Exit;
use crate::hunt::failure::Signature;
use crate::hunt::minimize::minimize as fewest;
use crate::hunt::team::Team;
use crate::{clip, replay, shell, target};

pub(crate) fn minimize(args: &MinimizeArgs) -> Result<Exit> {
    let mut kept = Clip::read(&args.clip).with_context(|| args.clip.display().to_string())?;
    let (launch, program) = replay::launch(&kept, None, None)?;
    if !kept.build_id.is_empty() && program.build_id != kept.build_id {
        bail!(
            "{} is another build than the one that {} was made with; rebuild that one, or make the clip anew",
            program.path.display(),
            args.clip.display(),
        );
    }
    let plan = replay::plan(&kept, true);
    let expected = replay::expected(&kept, &launch)?;
    target::prepare()?;
    let time = Duration::from_secs_f64(args.budget.time.min(1e9));
    let team = Team::new(launch, expected, args.budget.jobs, args.budget.runs as usize, time);
    let judged = team.execute(&plan, Delivery::Schedule)?;
    let Verdict::Fail(failure) = &judged.verdict else {
        bail!(
            "{} does not fail (any more), so there is nothing to minimize; see raddle replay {}",
            args.clip.display(),
            shell::word(&args.clip)
        );
    };
    let signature = Signature::of(&judged.execution, failure);
    let before = kept.schedule.n_runs().saturating_sub(1);
    let best = fewest(&team, &Plan { ..plan.clone() }, &judged, &signature)?;
    let output = args.output.as_ref().unwrap_or(&args.clip);
    if let Some(best) = best
        && let Some(schedule) = best.execution.schedule.clone()
    {
        kept.modules = clip::modules(&best.execution.run, &schedule);
        kept.schedule = schedule;
    }
    kept.write(output)?;
    eprintln!(
        "raddle: {before} context switches before, {} now, after {} runs",
        kept.schedule.n_runs().saturating_sub(1),
        team.n_runs()
    );
    println!("show it again: raddle replay {}", shell::word(output));
    Ok(Exit::Clean)
}
