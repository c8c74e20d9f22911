//! The hunt: predicts what could go wrong, re-executes it, and explains what did go wrong.

mod attempt;
mod base;
mod cycle;
mod explore;
mod search;
mod blame;
mod choose;
pub mod finding;
mod conclude;

use std::sync::Arc;

use raddle_analysis::pattern::Pattern;
use raddle_trace::expiry::Expiry;
use raddle_trial::outcome::Doubts;
use raddle_trial::{End, Order, Plan, Trial};

pub(crate) use self::attempt::SCHEDULES_MAX;
use self::base::Bases;
use self::conclude::{Conclusion, conclude};
use self::finding::Finding;
use self::search::Search;
pub use self::search::{Coverage, Stopped, Tally};
use crate::anomalies::Predicted;
use crate::budget::Budget;
use crate::compare::Example;
use crate::difference::{Difference, Side, difference};
use crate::error::LabError;
use crate::executor::Executor;

/// How often the first run is executed, to see whether it repeats.
const FIRST_RUNS: usize = 2;

/// What a hunt is to do.
pub struct Settings {
    /// Patterns to look for.
    pub patterns: Vec<Pattern>,
    /// How runs are executed, but for their order.
    pub plan: Plan,
    /// When deadlines may expire in the orders that are tried last; none if there are none such.
    pub expiry_last: Option<Expiry>,
    /// Whether the steps of the first run limit those of others.
    pub limits_steps: bool,
    /// Whether the steps of the first run limit for how long threads of others may spin.
    pub limits_idling: bool,
    /// Whether the budget is used up even if something was found.
    pub keep_going: bool,
    /// Whether the budget is used up even if nothing new comes.
    pub uses_budget: bool,
    /// Whether failing runs are minimized.
    pub minimizes: bool,
    /// How many anomalies that did no harm are wanted.
    pub harmless_max: usize,
}

/// What came of a hunt.
pub enum Hunted {
    /// It was stopped before a run could be judged.
    NoRun,
    /// The first run says nothing about the program.
    NotJudged(Box<Trial>),
    /// The first run did not end in time.
    NoEnd(Box<Trial>),
    /// The order of threads makes no difference.
    NoOrder(NoOrder, Box<Trial>),
    /// It was carried out.
    Done(Box<Hunt>),
}

/// Why the order of threads makes no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoOrder {
    /// There is one thread.
    OneThread,
    /// Threads share nothing that is written, and wait only for each other's end.
    NothingShared,
}

/// A hunt that was carried out.
pub struct Hunt {
    /// What was found: what fails first, the best explained first; then lock cycles that did no
    /// harm, and other anomalies.
    pub findings: Vec<Finding>,
    /// Anomalies, and what became of them.
    pub tally: Tally,
    /// How much of the program's behavior was seen.
    pub coverage: Coverage,
    /// Why the search ended.
    pub stopped: Stopped,
    /// Failures that did not come again when nothing else ran.
    pub n_gone: usize,
    /// Where two runs of the same plan differed, with the two runs; none if the program repeats.
    pub difference: Option<Box<Irregular>>,
}

/// Two runs of the same plan that differ.
pub struct Irregular {
    /// Where they differ first.
    pub difference: Difference,
    /// The runs.
    pub runs: [Example; 2],
    /// What casts doubt on them.
    pub doubts: [Doubts; 2],
}

/// Hunts for thread orders in which the program fails.
pub fn hunt(executor: &Executor<'_>, settings: &Settings) -> Result<Hunted, LabError> {
    let mut first_runs = first_runs(executor, settings)?;
    let mut differs = differ(&first_runs)?;
    if differs.is_some() {
        // Perhaps only since they ran at the same time, or one found what the other had left.
        let alone = first_runs_alone(executor, settings)?;
        if alone.len() == FIRST_RUNS && differ(&alone)?.is_none() {
            if executor.n_jobs() > 1 {
                executor.go_one_by_one();
            }
            (first_runs, differs) = (alone, None);
        }
    }
    let mut runs = first_runs.into_iter();
    let Some(first) = runs.next() else { return Ok(Hunted::NoRun) };
    if let Some(hunted) = hopeless(&first) {
        return Ok(hunted);
    }
    let irregular = differs.zip(runs.next()).map(|(difference, second)| {
        let runs = [&first, &second].map(|run| Example {
            run: run.recorded.run().clone(),
            trace: Some(Arc::clone(&run.recorded.trace)),
        });
        let doubts = [&first, &second].map(|run| run.recorded.trial.execution.outcome.doubts);
        Box::new(Irregular { difference, runs, doubts })
    });
    let repeats = irregular.is_none();
    let mut search = Search::new(executor, settings);
    search.measure(&first.recorded);
    let bases = Bases::new(executor, settings, &search.plan, &first)?;
    if bases.is_no_order {
        let trial = Box::new(first.recorded.trial);
        return Ok(Hunted::NoOrder(NoOrder::NothingShared, trial));
    }
    let ended = search.run(first, bases.runs)?;
    let Conclusion { findings, n_gone } = conclude(&search, repeats)?;
    let (tally, coverage) = (search.tally, search.coverage);
    let stopped = stopped(&executor.budget, ended);
    let difference = irregular;
    Ok(Hunted::Done(Box::new(Hunt { findings, tally, coverage, stopped, n_gone, difference })))
}

/// Why the hunt ended, whose search ended for this reason. It may have been stopped while it
/// explained what the search had found.
fn stopped(budget: &Budget, ended: Stopped) -> Stopped {
    if budget.is_interrupted() {
        Stopped::Interrupted
    } else if budget.is_stopped() && budget.left() > 0 {
        Stopped::Time
    } else {
        ended
    }
}

fn first_plan(settings: &Settings) -> Plan {
    Plan { order: Order::Rr, ..settings.plan.clone() }
}

/// The first run, twice, to see whether it repeats.
fn first_runs(executor: &Executor<'_>, settings: &Settings) -> Result<Vec<Predicted>, LabError> {
    let plan = first_plan(settings);
    let runs = executor.all(&[(); FIRST_RUNS], 1, |(), runner| {
        Predicted::new(runner, &plan, &settings.patterns)
    })?;
    Ok(runs.into_iter().flatten().flatten().collect())
}

/// The same, one after the other, after one that finds what others have left.
fn first_runs_alone(
    executor: &Executor<'_>,
    settings: &Settings,
) -> Result<Vec<Predicted>, LabError> {
    let plan = first_plan(settings);
    let mut runs = Vec::new();
    for _ in 0..=FIRST_RUNS {
        runs.extend(Predicted::new(&executor.alone(1), &plan, &settings.patterns)?);
    }
    Ok(if runs.is_empty() { runs } else { runs.split_off(1) })
}

/// Where the first runs differ.
fn differ(runs: &[Predicted]) -> Result<Option<Difference>, LabError> {
    let [first, second] = runs else { return Ok(None) };
    difference([side(first), side(second)])
}

fn side(run: &Predicted) -> Side<'_> {
    Side { execution: &run.recorded.trial.execution, trace: &run.recorded.trace }
}

/// A first run from which nothing can be learned, or nothing has to be.
fn hopeless(first: &Predicted) -> Option<Hunted> {
    let recorded = &first.recorded;
    let trial = || Box::new(recorded.trial.clone());
    let end = &recorded.trial.execution.outcome.end;
    if let End::TimedOut { .. } = end {
        return Some(Hunted::NoEnd(trial()));
    }
    if recorded.trial.unjudged().is_some() {
        return Some(Hunted::NotJudged(trial()));
    }
    let is_one = recorded.run().threads.len() < 2;
    is_one.then(|| Hunted::NoOrder(NoOrder::OneThread, trial()))
}
