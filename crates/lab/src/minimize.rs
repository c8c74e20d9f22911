//! The same failure with fewer switches, by delta debugging.
//!
//! What is taken away is not steps but preemptions: the steps of a stretch are put off to the
//! next stretch of their thread, first for many stretches at once, then for fewer. A schedule
//! that fits no longer is left where it stops to fit, and threads run until they block; what
//! counts is only that the run fails in the same way, and how often it switched in fact.

use std::hash::BuildHasher as _;

use raddle_trace::control::Policy;
use raddle_trace::id::ThreadId;
use raddle_trace::schedule::{Schedule, Step};
use raddle_trial::{Delivery, Order, Plan, Trial};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::error::LabError;
use crate::executor::Executor;
use crate::signature::Signature;

/// Gives the run with the fewest switches that fails in the same way; none if nothing better
/// than `trial` was found. Makes at most `runs_max` executions.
pub fn minimize(
    executor: &Executor<'_>,
    plan: &Plan,
    trial: &Trial,
    signature: &Signature,
    runs_max: usize,
) -> Result<Option<Trial>, LabError> {
    let Some(schedule) = trial.execution.schedule.clone() else { return Ok(None) };
    let n_runs_end = executor.budget.n_runs().saturating_add(runs_max);
    let mut search = Search { executor, plan, signature, schedule, best: None, n_runs_end };
    // How it began is often enough.
    let mut parts = 8;
    while parts > 1 && !search.is_over() {
        let prefix = |schedule: &Schedule, part: usize| Schedule {
            steps: schedule.steps[..schedule.steps.len() * part / parts].to_vec(),
        };
        if !search.try_all(parts, prefix)? {
            parts /= 2;
        }
    }
    let mut chunk = search.schedule.n_runs().div_ceil(2).max(1);
    while !search.is_over() {
        let n = search.schedule.steps.len().div_ceil(chunk);
        // The last ones first.
        let candidate =
            |schedule: &Schedule, at: usize| put_off(schedule, (n - 1 - at) * chunk, chunk);
        if !search.try_all(n, candidate)? {
            if chunk == 1 {
                break;
            }
            chunk /= 2;
        }
    }
    Ok(search.best)
}

struct Search<'a> {
    executor: &'a Executor<'a>,
    plan: &'a Plan,
    signature: &'a Signature,
    schedule: Schedule,
    best: Option<Trial>,
    n_runs_end: usize,
}

/// Candidates that are executed before it is decided which one is the best. Not the number of
/// processors, so that the answer is the same on every machine.
const BATCH: usize = 2;

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.executor.budget.is_over() || self.executor.budget.n_runs() >= self.n_runs_end
    }

    /// Whether one of `n` variants of the schedule is better; the first that is becomes the best.
    /// A long schedule has many, so they are made when they are needed, and known by a hash.
    fn try_all(
        &mut self,
        n: usize,
        variant: impl Fn(&Schedule, usize) -> Schedule,
    ) -> Result<bool, LabError> {
        let mut tried: FxHashSet<u64> = FxHashSet::default();
        for from in (0..n).step_by(BATCH) {
            let hash = |schedule: &Schedule| FxBuildHasher.hash_one(schedule);
            let mut batch: Vec<_> =
                (from..n.min(from + BATCH)).map(|at| variant(&self.schedule, at)).collect();
            batch.retain(|schedule| !tried.contains(&hash(schedule)));
            tried.extend(batch.iter().map(hash));
            let results = self.executor.all(&batch, 1, |schedule, runner| {
                let schedule = schedule.clone();
                let order = Order::Follow { schedule, strict: false, after: Policy::Rr };
                runner.run(&Plan { order, ..self.plan.clone() }, Delivery::Schedule)
            })?;
            for trial in results.into_iter().flatten().flatten() {
                let Some(failure) = trial.failure() else { continue };
                let Some(schedule) = &trial.execution.schedule else { continue };
                let is_own = &*self.executor.subject.is_own;
                if Signature::of(&trial.execution, failure, is_own) == *self.signature
                    && schedule.n_runs() < self.schedule.n_runs()
                {
                    self.schedule = schedule.clone();
                    self.best = Some(trial);
                    return Ok(true);
                }
            }
            if self.is_over() {
                break;
            }
        }
        Ok(false)
    }
}

/// A schedule in which the steps of some stretches come later, with their threads' next.
fn put_off(schedule: &Schedule, from: usize, n: usize) -> Schedule {
    let mut steps = schedule.steps.clone();
    let to = (from + n).min(steps.len());
    let mut nexts: FxHashMap<ThreadId, usize> = FxHashMap::default();
    for (at, step) in steps.iter().enumerate().skip(to) {
        if let Step::Run { thread, .. } = step {
            nexts.entry(*thread).or_insert(at);
        }
    }
    for at in from..to {
        let Step::Run { thread, count, .. } = steps[at] else { continue };
        if count == u64::MAX {
            continue;
        }
        if let Some(&next) = nexts.get(&thread)
            && let Step::Run { count: later, .. } = &mut steps[next]
        {
            *later = later.saturating_add(count);
        }
    }
    let kept = |at: usize, step: &Step| {
        !(from..to).contains(&at) || !matches!(step, Step::Run { count, .. } if *count != u64::MAX)
    };
    let mut at = 0;
    steps.retain(|step| {
        at += 1;
        kept(at - 1, step)
    });
    Schedule { steps: merged(steps) }
}

/// Stretches of one thread that follow each other are one.
fn merged(steps: Vec<Step>) -> Vec<Step> {
    let mut merged: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        match (merged.last_mut(), step) {
            (
                Some(Step::Run { thread, count, site }),
                Step::Run { thread: other, count: more, site: stop },
            ) if *thread == other => {
                *count = count.saturating_add(more);
                *site = stop;
            }
            _ => merged.push(step),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: &str, from: usize, n: usize, expect: &str) {
        let steps = schedule.split(',').map(|step| step.trim().parse().expect("a step")).collect();
        let made = put_off(&Schedule { steps }, from, n);
        let made: Vec<_> = made.steps.iter().map(ToString::to_string).collect();
        assert_eq!(made.join(", "), expect);
    }

    #[test]
    fn a_stretch_is_put_off_to_its_threads_next() {
        check("T0 5, T1 3, T0 2, T1 all", 1, 1, "T0 7, T1 all");
        check("T0 5, T1 3, T2 2, T1 4, T0 all", 1, 1, "T0 5, T2 2, T1 7, T0 all");
    }

    #[test]
    fn a_thread_without_a_next_runs_when_the_schedule_is_over() {
        check("T0 5, T1 3, T0 all", 1, 1, "T0 all");
    }
}
