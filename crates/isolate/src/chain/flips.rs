//! Executions in other orders, to tell whether a concurrency bug is at work at a definition.
//!
//! [`check`] says which accesses are to come in which order. The order is woven as those of
//! predictions are, so locks move with what they protect; threads are held back in several
//! ways, until one of the schedules can be followed to the access that decides. Values, where
//! they matter, come from debug registers on the location.
//!
//! Limits: behind the accesses threads go on in turn. A thread that goes another way before
//! they have happened makes the order infeasible, whatever it does then.

use raddle_analysis::model::Model;
use raddle_analysis::reading;
use raddle_analysis::skeleton::Stretch;
use raddle_lab::force::{Schedules, Woven};
use raddle_trace::control::Policy;
use raddle_trace::run::Run;
use raddle_trace::schedule::Schedule;
use raddle_trial::verdict::Verdict;
use raddle_trial::{Delivery, Order, Plan, Trial};

use super::Session;
use super::definition::{DefinedBy, Definition};
use super::isolation::{AccessAt, Cause, IsolateError, Target};
use super::run::{Ran, uninterrupted};
use crate::check::{self, CauseKind, Flipped, HOLDS, Trials};
use crate::follow::{Follower, Hit, Job};
use crate::location_history::Access;
use crate::origin::Location;

impl Session<'_> {
    /// Checks all definitions for concurrency bugs, first the one that was suppressed.
    pub(super) fn concurrency(
        &mut self,
        failing: &Ran,
        definitions: &[Definition],
        first: &[usize],
        suppressing: &Ran,
    ) -> Result<Option<Cause>, IsolateError> {
        let others = (0..definitions.len()).filter(|at| !first.contains(at));
        for at in first.iter().copied().chain(others) {
            let DefinedBy::Traced { history, target } = &definitions[at].by else { continue };
            let Some(mut flips) =
                self.flips(failing, definitions[at].used.location, suppressing)?
            else {
                continue;
            };
            let found = check::check(&mut flips, history, *target)?;
            self.executions.race += flips.n_race;
            self.executions.violation += flips.n_violation;
            if let Some((kind, accesses)) = found {
                return Ok(Some(cause_of(kind, &accesses, |access| flips.value(access))));
            }
        }
        Ok(None)
    }

    /// The special check at the end: two accesses in the wrong order.
    pub(super) fn two_accesses<'d>(
        &mut self,
        failing: &Ran,
        definitions: impl Iterator<Item = &'d Definition>,
        suppressing: &Ran,
    ) -> Result<Option<Cause>, IsolateError> {
        for definition in definitions {
            let DefinedBy::Traced { history, target } = &definition.by else { continue };
            let Some(mut flips) = self.flips(failing, definition.used.location, suppressing)?
            else {
                continue;
            };
            let found = check::order(&mut flips, history, *target)?;
            self.executions.violation += flips.n_violation;
            if let Some((kind, accesses)) = found {
                return Ok(Some(cause_of(kind, &accesses, |_| None)));
            }
        }
        Ok(None)
    }

    fn flips<'s>(
        &self,
        failing: &'s Ran,
        location: Location,
        watched: &Ran,
    ) -> Result<Option<Flips<'s>>, IsolateError>
    where
        Self: 's,
    {
        let (Some(trace), Some(plan)) = (&failing.trace, self.target.plan) else { return Ok(None) };
        Ok(Some(Flips {
            target: self.target,
            plan,
            run: failing.run(),
            model: reading::model(|| trace.events())?,
            location,
            // Behind the definition all is different.
            watched: {
                let report = &watched.report;
                let until = report.suppressed.last().map_or(report.hits.len(), |s| s.n_hits);
                about(&report.hits[..until], location)
            },
            n_race: 0,
            n_violation: 0,
        }))
    }
}

fn cause_of(kind: CauseKind, accesses: &[Access], value: impl Fn(&Access) -> Option<u64>) -> Cause {
    let at = |access: &Access| AccessAt {
        thread: access.thread,
        kind: access.kind,
        pcs: vec![access.pc],
        location: Some(access.location),
        value: value(access),
    };
    Cause { kind, accesses: accesses.iter().map(at).collect() }
}

/// Executions in other orders.
struct Flips<'a> {
    target: Target<'a>,
    plan: &'a Plan,
    run: &'a Run,
    model: Model,
    location: Location,
    /// Accesses to the location in the failing execution, up to the definition.
    watched: Vec<Hit>,
    n_race: u32,
    n_violation: u32,
}

impl Trials for Flips<'_> {
    type Error = IsolateError;

    fn flip(&mut self, order: &[&Access], with_values: bool) -> Result<Flipped, IsolateError> {
        self.execute(order, with_values, false)
    }

    fn put_last(&mut self, order: &[&Access]) -> Result<Flipped, IsolateError> {
        self.execute(order, false, true)
    }

    fn value(&self, access: &Access) -> Option<u64> {
        value_at(&self.watched, access, self.location).or_else(|| {
            // Behind the definition, everybody read what it wrote.
            let last = self.watched.iter().rev().find(|hit| hit.writes)?;
            (!access.writes()).then(|| last.values(self.location)[1])
        })
    }

    fn is_silent(&self, access: &Access) -> bool {
        hit_of(&self.watched, access).is_some_and(|hit| {
            let [before, after] = hit.values(self.location);
            before == after
        })
    }

    fn count_race(&mut self) {
        self.n_race += 1;
    }

    fn count_violation(&mut self) {
        self.n_violation += 1;
    }
}

impl Flips<'_> {
    /// Executes the program in this order; up to the last access, or up to the one before.
    fn execute(
        &self,
        order: &[&Access],
        with_values: bool,
        without_last: bool,
    ) -> Result<Flipped, IsolateError> {
        let n = order.len() - usize::from(without_last);
        // Behind the first access threads know that something is different.
        let decides = order[if without_last { n - 1 } else { 0 }];
        let is_done =
            |stretch: &Stretch| stretch.thread == decides.thread && stretch.to > decides.at;
        let orders = [order[..n].iter().map(|access| access.witness()).collect()];
        let schedules = Schedules::new(&self.model, self.run, &orders, &HOLDS).searching();
        for Woven { stretches, schedule, .. } in schedules {
            let (trial, hits) = self.trial(schedule, with_values)?;
            // Threads may go another way, and are left to it, if what was wanted has happened.
            let values: Vec<_> =
                order.iter().map(|access| value_at(&hits, access, self.location)).collect();
            let done = stretches.iter().position(is_done).unwrap_or(usize::MAX);
            let n_choices = self.model.skeleton.choices.len();
            let left = trial.execution.outcome.left;
            let followed =
                left.is_none_or(|left| left.step as usize > done.saturating_add(n_choices));
            if followed || with_values && values.iter().all(Option::is_some) {
                let passed = trial.verdict == Verdict::Pass;
                return Ok(Flipped { feasible: true, passed, values });
            }
        }
        Ok(Flipped::default())
    }

    /// Executes the program by a schedule; with the accesses to the location if they are wanted.
    fn trial(
        &self,
        schedule: Schedule,
        with_values: bool,
    ) -> Result<(Trial, Vec<Hit>), IsolateError> {
        let Target { launch, expected, files, .. } = self.target;
        let order = Order::Follow { schedule, strict: false, after: Policy::Rr };
        let plan = Plan { order, ..self.plan.clone() };
        if !with_values {
            let trial = Trial::run(launch, &plan, Delivery::Nothing, expected)?;
            return Ok((uninterrupted(trial)?, Vec::new()));
        }
        let job = Job { watches: vec![self.location], with_reads: true, ..Job::default() };
        let mut follower = Follower::new(job, files);
        let trial = Trial::traced(launch, &plan, Delivery::Nothing, &mut follower, expected)?;
        Ok((uninterrupted(trial)?, about(&follower.report.hits, self.location)))
    }
}

/// Those of the accesses that are about a location.
fn about(hits: &[Hit], location: Location) -> Vec<Hit> {
    hits.iter().filter(|hit| hit.is_of(&location)).cloned().collect()
}

/// The value of an access among those that were watched.
fn value_at(hits: &[Hit], access: &Access, location: Location) -> Option<u64> {
    let hit = hit_of(hits, access)?;
    Some(hit.values(location)[1])
}

/// An access among those that were watched.
fn hit_of<'h>(hits: &'h [Hit], access: &Access) -> Option<&'h Hit> {
    let is_it = |hit: &&Hit| {
        hit.thread == access.thread
            && hit.writes == access.writes()
            && (hit.pc.wrapping_sub(access.pc.0) < 64 || hit.callers.contains(&access.pc.0))
    };
    hits.iter().filter(is_it).nth(access.nth as usize)
}
