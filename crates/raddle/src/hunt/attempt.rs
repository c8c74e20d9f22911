//! Attempts: an anomaly, re-executed by the schedules that should show it.

use anyhow::Result;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::scan::Model;
use raddle_analysis::skeleton::Stretch;
use raddle_analysis::weave::{Hold, weave};
use raddle_trace::control::Policy;
use raddle_trace::id::{Pc, Site};
use raddle_trace::run::Run;
use raddle_trace::schedule::{Schedule, Step};
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
        /// Which of the anomaly's ways it was.
        way: usize,
    },
    /// It happened, and nothing came of it.
    Benign,
    /// No schedule could be followed to its end, or there was none.
    Infeasible,
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
    let found = schedules(&base.model, anomaly, &base.execution.run);
    if found.is_empty() && std::env::var_os("RADDLE_DEBUG_ATTEMPTS").is_some() {
        eprintln!("-- no schedule: {} {}", anomaly.kind.as_str(), anomaly.pattern);
    }
    for (way, schedule) in found {
        let order = Order::Follow { schedule, strict: false, after: Policy::Rr };
        let plan = Plan { order, cpu, ..base.plan.clone() };
        let judged = team.execute(&plan, Delivery::Schedule)?;
        let followed = judged.execution.outcome.left.is_none();
        if std::env::var_os("RADDLE_DEBUG_ATTEMPTS").is_some() {
            let site = |w: &raddle_analysis::witness::Witness| {
                format!(
                    "T{} {:?}@{} {}",
                    w.thread.0,
                    w.deed,
                    w.at,
                    raddle_report::symbols::name::Namer::new(&base.execution.run).site(w.pc)
                )
            };
            eprintln!(
                "-- {} {} rank {} followed {followed} left {:?} end {}",
                anomaly.kind.as_str(),
                anomaly.pattern,
                anomaly.rank,
                judged.execution.outcome.left,
                judged.execution.outcome.end
            );
            for w in &anomaly.ways[way] {
                eprintln!("     {}", site(w));
            }
            if let Order::Follow { schedule, .. } = &plan.order {
                for s in &schedule.steps {
                    eprintln!("       {s}");
                }
            }
            for s in &base.model.skeleton.stretches {
                eprintln!("         base T{} {}..{}", s.thread.0, s.from, s.to);
            }
        }
        match judged.verdict {
            Verdict::Fail(_) => {
                return Ok(Attempt::Failing { judged: Box::new(judged), followed, way });
            }
            Verdict::Pass if followed => n_feasible += 1,
            Verdict::Pass | Verdict::Unjudged => {}
        }
        if n_feasible == wanted || team.is_over() {
            break;
        }
    }
    Ok(if n_feasible > 0 { Attempt::Benign } else { Attempt::Infeasible })
}

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

/// Stretches in the form that the runtime follows.
fn schedule(model: &Model, stretches: &[Stretch], run: &Run) -> Schedule {
    let choices = model.skeleton.choices.iter().map(|&choose| Step::Choose { choose });
    let runs = stretches.iter().map(|stretch| Step::Run {
        thread: stretch.thread,
        count: stretch.to - stretch.from,
        site: match stretch.stopped_at {
            Pc(0) => Site::UNKNOWN,
            pc => run.site(pc),
        },
    });
    Schedule { steps: choices.chain(runs).collect() }
}
