//! Attempts: an anomaly, re-executed by the schedules that should show it.
//!
//! After the anomaly, threads run one at a time; further runs interleave them, since some
//! corruption shows only while both threads are active.

use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_trace::control::Policy;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trial::Trial;
use raddle_trial::verdict::Verdict;

use crate::error::LabError;
use crate::executor::Runner;
use crate::force::{Force, Forced};
use crate::recorded::{Recorded, has_cycle};

/// Schedules per anomaly that are executed, as long as runs leave them.
pub(crate) const SCHEDULES_MAX: usize = 4;
/// Executions that an attempt makes at most.
pub(super) const RUNS_MAX: usize = SCHEDULES_MAX * AFTER.len();

/// How threads go on after the anomaly: one at a time, and interleaved, since some corruption
/// shows only while both are active.
const AFTER: [Policy; 3] = [Policy::Rr, Policy::Pos, Policy::Random];

/// What came of an attempt.
pub(super) enum Attempt {
    /// The run failed.
    Failing(Box<Failing>),
    /// The anomaly happened without harm.
    Benign,
    /// The same, and a lock cycle formed in this run, which others ended.
    Cycle(Box<Trial>),
    /// No schedule could be followed to its end: who left the last one, and where; none if there
    /// was none to follow.
    Infeasible(Option<(ThreadId, Pc)>),
    /// The same, but a schedule was left only since it would have made a thread too late.
    TooLate(Option<(ThreadId, Pc)>),
    /// The budget was used up before anything could be said.
    Untested,
}

/// A run that failed while an anomaly was forced on it.
pub(super) struct Failing {
    pub(super) trial: Trial,
    /// The schedule was followed to its end before.
    pub(super) followed: bool,
    /// Threads went on one at a time after it, so that nothing else was broken.
    pub(super) alone: bool,
    /// Which of the anomaly's orders it was.
    pub(super) way: usize,
}

/// Tries to make an anomaly of a recorded run happen.
pub(super) fn attempt(
    runner: &Runner<'_>,
    base: &Recorded,
    anomaly: &Anomaly,
) -> Result<Attempt, LabError> {
    // Where a thread waits decides what it has seen; for these that makes two anomalies of one.
    let wanted = if anomaly.kind == AnomalyKind::Order { 2 } else { 1 };
    let (mut n_feasible, mut n_runs) = (0, 0);
    let (mut left, mut is_too_late) = (None, false);
    let mut cycle = None;
    let mut force = Force::new(base, &anomaly.ways, &AFTER).at_most(SCHEDULES_MAX);
    while let Some(Forced { order: way, after, trial }) = force.next(runner)? {
        n_runs += 1;
        let departed = trial.execution.outcome.left.as_ref().map(|at| (at.thread, at.pc));
        let followed = departed.is_none();
        left = departed.or(left);
        is_too_late |= trial.execution.lateness.is_too_much;
        match trial.verdict {
            Verdict::Fail(_) => {
                let alone = after == Policy::Rr;
                return Ok(Attempt::Failing(Box::new(Failing { trial, followed, alone, way })));
            }
            Verdict::Pass if followed => {
                n_feasible += usize::from(after == Policy::Rr);
                if anomaly.kind == AnomalyKind::Deadlock && has_cycle(&trial) {
                    cycle.get_or_insert(Box::new(trial));
                }
            }
            // It would be left at the same place again.
            Verdict::Pass | Verdict::Unjudged | Verdict::Unanswered(_) => force.skip_schedule(),
        }
        if n_feasible == wanted && force.is_at_end() {
            break;
        }
    }
    Ok(match (n_feasible, n_runs) {
        (1.., _) => cycle.map_or(Attempt::Benign, Attempt::Cycle),
        (0, 0) if runner.is_over() => Attempt::Untested,
        // There may be more ways to try it.
        (0, _) if runner.is_stopped() => Attempt::Untested,
        (0, _) if is_too_late => Attempt::TooLate(left),
        (0, _) => Attempt::Infeasible(left),
    })
}
