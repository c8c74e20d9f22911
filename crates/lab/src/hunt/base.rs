//! Base runs: what is executed beside the first run before a search begins.
//!
//! **Late exits.** In the first run each thread runs until it blocks, so a `main` that returns
//! without joining ends the process before threads that it created have run. A run follows the
//! first one up to the exit, and there goes on with a thread that could have run: that one and
//! those after it in line run until they block, and the exit comes last. Threads that only time
//! could have woken stay asleep: a watchdog that sleeps for a minute must not strike because an
//! exit was late.
//!
//! **Other policies.** That threads share nothing in one run does not mean that they never do. The
//! order of threads makes no difference only if runs under every policy say so, and all end alike.

use raddle_analysis::stop;
use raddle_analysis::weave::schedule;
use raddle_trace::control::{Policy, State};
use raddle_trace::id::{Site, ThreadId};
use raddle_trace::schedule::{Schedule, Step};
use raddle_trial::outcome::cycle;
use raddle_trial::{Order, Plan};

use crate::anomalies::Predicted;
use crate::error::LabError;
use crate::executor::Executor;
use crate::recorded::Recorded;

use super::Settings;

/// Late exits in a hunt, each with another thread that goes first. One is enough unless threads
/// yield, since those in line follow by themselves.
const LATE_EXITS_MAX: usize = 3;

/// Base runs, beside the first one.
pub(super) struct Bases {
    /// Those that were executed.
    pub(super) runs: Vec<Predicted>,
    /// Whether the order of threads makes no difference.
    pub(super) is_no_order: bool,
}

impl Bases {
    /// Executes base runs: late exits if the first run left threads behind, and other policies if
    /// its threads share nothing.
    pub(super) fn new(
        executor: &Executor<'_>,
        settings: &Settings,
        plan: &Plan,
        first: &Predicted,
    ) -> Result<Self, LabError> {
        let record = |plans: &[Plan]| -> Result<Vec<Predicted>, LabError> {
            let runs = executor
                .all(plans, 1, |plan, runner| Predicted::new(runner, plan, &settings.patterns))?;
            Ok(runs.into_iter().flatten().flatten().collect())
        };
        let mut runs: Vec<Predicted> = Vec::new();
        let mut pulled = Vec::new();
        while pulled.len() < LATE_EXITS_MAX {
            let last = runs.last().unwrap_or(first);
            let Some((thread, schedule)) = late_exit(&last.recorded, &pulled) else { break };
            pulled.push(thread);
            let order = Order::Follow { schedule, strict: false, after: Policy::Rr };
            let late = record(&[Plan { order, ..plan.clone() }])?;
            if late.is_empty() {
                break;
            }
            runs.extend(late);
        }
        let is_alike = |run: &Predicted| is_alike(&run.recorded, &first.recorded);
        if !shares_nothing(&first.recorded) || !runs.iter().all(is_alike) {
            return Ok(Self { runs, is_no_order: false });
        }
        let n_steps = first.recorded.trial.execution.outcome.n_steps;
        let plans: Vec<_> = (plan.seed + 1..)
            .zip(policies(n_steps))
            .map(|(seed, order)| Plan { order, seed, ..plan.clone() })
            .collect();
        let others = record(&plans)?;
        // If the hunt was stopped, perhaps not all of a run was read.
        let is_complete = others.len() == plans.len() && !stop::is_requested();
        let is_no_order = is_complete && others.iter().all(is_alike);
        runs.extend(others);
        Ok(Self { runs, is_no_order })
    }
}

/// Every policy, with several numbers of preemptions.
fn policies(n_steps: u64) -> [Order; 5] {
    let pct = |depth| Order::Pct { depth, n_steps };
    [pct(1), pct(2), pct(3), Order::Pos, Order::Random]
}

/// Whether a run says that the order of threads makes no difference: they share nothing that is
/// written, and wait only for each other's end. Locks of a cycle that formed are none that were
/// acquired, so the model does not show them.
fn shares_nothing(run: &Recorded) -> bool {
    run.n_shared == 0
        && run.model.nestings.is_empty()
        && run.model.waits.is_empty()
        && cycle(&run.trial.execution.outcome.threads).is_empty()
}

/// Whether a run shares nothing either, and ended as the first one did.
fn is_alike(run: &Recorded, first: &Recorded) -> bool {
    let end = |run: &Recorded| run.trial.execution.outcome.end.clone();
    shares_nothing(run) && run.trial.verdict == first.trial.verdict && end(run) == end(first)
}

/// The run up to its exit, then the turn of a thread that could have run instead, one of those
/// that were not pulled before: the one that got the least done. None if all others had ended or
/// waited.
fn late_exit(run: &Recorded, pulled: &[ThreadId]) -> Option<(ThreadId, Schedule)> {
    let skeleton = &run.model.skeleton;
    let exit = skeleton.exit?;
    let threads = run.trial.execution.outcome.threads.iter();
    let could_run = threads.filter(|at| at.state == State::Ready && !pulled.contains(&at.thread));
    let next = could_run.filter(|at| at.thread != exit.thread).min_by_key(|at| at.n_steps)?.thread;
    let stretches = skeleton.stretches_before_exit()?;
    let mut schedule = schedule(&run.model, &stretches, run.run());
    // The turn without a step: if its first step is to sleep, the schedule must not wait for that.
    // After a stretch of its own it has the turn anyway, and such a step would mark a jump of time.
    if stretches.last().is_none_or(|last| last.thread != next) {
        schedule.steps.push(Step::Run { thread: next, count: 0, site: Site::UNKNOWN });
    }
    Some((next, schedule))
}
