//! Attempts: an anomaly, re-executed by the schedules that should show it.

use anyhow::Result;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::scan::Model;
use raddle_analysis::weave::{Hold, schedule, weave};
use raddle_trace::control::Policy;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trace::run::Run;
use raddle_trace::schedule::Schedule;
use raddle_trial::verdict::Verdict;
use raddle_trial::{Delivery, Order, Plan};

use super::base::Base;
use super::team::{Judged, Team};

/// Schedules per anomaly that are executed, as long as they depart.
const TRIES_MAX: usize = 4;

/// What came of an attempt.
pub(crate) enum Attempt {
    /// The run failed.
    Failing {
        judged: Box<Judged>,
        /// The schedule was followed to its end before.
        followed: bool,
        /// Threads went on one by one behind it, so that nothing else was broken.
        alone: bool,
        /// Which of the anomaly's ways it was.
        way: usize,
    },
    /// It happened, and nothing came of it.
    Benign,
    /// No schedule could be followed to its end: who left the last one, and where; none if there
    /// was none to follow.
    Infeasible(Option<(ThreadId, Pc)>),
}

/// Tries to make an anomaly of a base run happen.
pub(crate) fn attempt(
    team: &Team,
    base: &Base,
    anomaly: &Anomaly,
    cpu: Option<u32>,
) -> Result<Attempt> {
    // Where a thread waits decides what it has seen; for these that makes two anomalies of one.
    let wanted = if anomaly.kind == AnomalyKind::Order { 2 } else { 1 };
    let mut n_feasible = 0;
    let mut left = None;
    for (way, schedule) in schedules(&base.model, anomaly, &base.execution.run) {
        for after in AFTER {
            let order = Order::Follow { schedule: schedule.clone(), strict: false, after };
            let plan = Plan { order, cpu, ..base.plan.clone() };
            let judged = team.execute(&plan, Delivery::Schedule)?;
            let departed = judged.execution.outcome.left.as_ref();
            let followed = departed.is_none();
            left = departed.map(|at| (at.thread, at.pc)).or(left);
            match judged.verdict {
                Verdict::Fail(_) => {
                    let (judged, alone) = (Box::new(judged), after == Policy::Rr);
                    return Ok(Attempt::Failing { judged, followed, alone, way });
                }
                Verdict::Pass if followed => n_feasible += usize::from(after == Policy::Rr),
                // It would be left at the same place again.
                Verdict::Pass | Verdict::Unjudged => break,
            }
        }
        if n_feasible == wanted || team.is_over() {
            break;
        }
    }
    Ok(if n_feasible > 0 { Attempt::Benign } else { Attempt::Infeasible(left) })
}

/// How threads go on behind the anomaly: one by one, and mixed, since some damage shows
/// only while both are at it.
const AFTER: [Policy; 3] = [Policy::Rr, Policy::Pos, Policy::Random];

/// The schedules for an anomaly, each with the number of its way, different from each other.
pub(crate) fn schedules(model: &Model, anomaly: &Anomaly, run: &Run) -> Vec<(usize, Schedule)> {
    let mut schedules: Vec<(usize, Schedule)> = Vec::new();
    // Each way in the first manner, then each in the next.
    for hold in Hold::ALL {
        if hold == Hold::Anywhere && !schedules.is_empty() {
            break;
        }
        for (way, events) in anomaly.ways.iter().enumerate() {
            let Ok(stretches) = weave(model, events, hold) else { continue };
            let schedule = schedule(model, &stretches, run);
            if !schedules.iter().any(|(_, other)| *other == schedule) {
                schedules.push((way, schedule));
            }
            if schedules.len() == TRIES_MAX {
                return schedules;
            }
        }
    }
    schedules
}
