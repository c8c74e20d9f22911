//! Forces an order of accesses on a recorded run.
//!
//! An order is woven into schedules, in several ways: where threads are held until their access
//! comes ([`Hold`]), and how they go on after it. [`Schedules`] makes the schedules as they are
//! asked for, all different; [`Force`] executes them one by one. Whoever asks decides when it has
//! seen enough.

use raddle_analysis::model::Model;
use raddle_analysis::skeleton::Stretch;
use raddle_analysis::stop::is_requested;
use raddle_analysis::weave::{Hold, schedule, weave};
use raddle_analysis::witness::Witness;
use raddle_trace::control::Policy;
use raddle_trace::run::Run;
use raddle_trace::schedule::Schedule;
use raddle_trial::{Delivery, Order, Plan, Trial};

use crate::error::LabError;
use crate::executor::Runner;
use crate::recorded::Recorded;

/// A schedule that shows an order.
#[derive(Clone, Debug)]
pub struct Woven {
    /// Which of the orders it is.
    pub order: usize,
    /// Who runs from where to where.
    pub stretches: Vec<Stretch>,
    /// The same, to be followed.
    pub schedule: Schedule,
}

/// The schedules that show any of several orders of a run, all different: those of all orders with
/// the first way to hold threads, then with the next.
pub struct Schedules<'a> {
    model: &'a Model,
    run: &'a Run,
    orders: &'a [Vec<Witness>],
    /// Ways to hold threads that are still to be tried, for each order in turn; the next one last.
    ways: Vec<(Hold, usize)>,
    /// Schedules that are left out.
    known: Vec<Schedule>,
    /// Schedules so far.
    made: Vec<Schedule>,
    searches_always: bool,
}

impl<'a> Schedules<'a> {
    /// Holds threads in these ways. [`Hold::Anywhere`] is a search, which is dear, so it is only
    /// for what has no schedule at all.
    #[must_use]
    pub fn new(model: &'a Model, run: &'a Run, orders: &'a [Vec<Witness>], holds: &[Hold]) -> Self {
        let ways = holds.iter().flat_map(|hold| (0..orders.len()).map(|order| (*hold, order)));
        let mut ways: Vec<_> = ways.collect();
        ways.reverse();
        let (known, made) = (Vec::new(), Vec::new());
        Self { model, run, orders, ways, known, made, searches_always: false }
    }

    /// Also searches if there are schedules already: whoever asks for more could not use them.
    #[must_use]
    pub fn searching(self) -> Self {
        Self { searches_always: true, ..self }
    }
}

impl Iterator for Schedules<'_> {
    type Item = Woven;

    fn next(&mut self) -> Option<Woven> {
        while !is_requested()
            && let Some((hold, order)) = self.ways.pop()
        {
            if hold == Hold::Anywhere && !self.made.is_empty() && !self.searches_always {
                return None;
            }
            let Ok(stretches) = weave(self.model, &self.orders[order], hold) else { continue };
            let schedule = schedule(self.model, &stretches, self.run);
            if !self.made.contains(&schedule) && !self.known.contains(&schedule) {
                self.made.push(schedule.clone());
                return Some(Woven { order, stretches, schedule });
            }
        }
        None
    }
}

/// An order that was forced on a run.
pub struct Forced {
    /// Which of the orders it was.
    pub order: usize,
    /// How threads went on after it.
    pub after: Policy,
    /// What came of it.
    pub trial: Trial,
}

/// Executes orders of accesses, one execution at a time.
pub struct Force<'a> {
    plan: &'a Plan,
    after: &'a [Policy],
    schedules: Schedules<'a>,
    schedules_max: usize,
    /// The last schedule, and the policies that are still to be tried after it.
    open: Option<(Woven, std::slice::Iter<'a, Policy>)>,
}

impl<'a> Force<'a> {
    /// Forces any of these orders on a run. Each schedule goes on by each of the policies in turn.
    #[must_use]
    pub fn new(recorded: &'a Recorded, orders: &'a [Vec<Witness>], after: &'a [Policy]) -> Self {
        let schedules = Schedules::new(&recorded.model, recorded.run(), orders, &Hold::ALL);
        Self { plan: &recorded.plan, after, schedules, schedules_max: usize::MAX, open: None }
    }

    /// Leaves out schedules that were executed before.
    #[must_use]
    pub fn except(mut self, known: Vec<Schedule>) -> Self {
        self.schedules.known = known;
        self
    }

    /// Also searches for schedules where there are some ([`Hold::Anywhere`]), which is dear.
    #[must_use]
    pub fn with_search(self) -> Self {
        Self { schedules: self.schedules.searching(), ..self }
    }

    /// All schedules, those that were left out first.
    #[must_use]
    pub fn into_schedules(self) -> Vec<Schedule> {
        [self.schedules.known, self.schedules.made].concat()
    }

    /// Makes at most so many schedules.
    #[must_use]
    pub fn at_most(self, schedules_max: usize) -> Self {
        Self { schedules_max, ..self }
    }

    /// Executes the next one; none if there is none, or nothing more may be executed.
    pub fn next(&mut self, runner: &Runner<'_>) -> Result<Option<Forced>, LabError> {
        loop {
            if let Some((woven, after)) = &mut self.open
                && let Some(&after) = after.next()
            {
                let (order, schedule) = (woven.order, woven.schedule.clone());
                let follow = Order::Follow { schedule, strict: false, after };
                let plan = Plan { order: follow, ..self.plan.clone() };
                let trial = runner.run(&plan, Delivery::Schedule)?;
                return Ok(trial.map(|trial| Forced { order, after, trial }));
            }
            let is_enough = self.schedules.made.len() >= self.schedules_max;
            let woven = if is_enough { None } else { self.schedules.next() };
            self.open = woven.map(|woven| (woven, self.after.iter()));
            if self.open.is_none() {
                return Ok(None);
            }
        }
    }

    /// Whether the last schedule was tried with all policies.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.open.as_ref().is_none_or(|(_, after)| after.len() == 0)
    }

    /// Does not try the last schedule with other policies.
    pub fn skip_schedule(&mut self) {
        self.open = None;
    }
}

/// The schedules that show any of these orders, all different, each with the number of its order.
#[must_use]
pub fn schedules(
    recorded: &Recorded,
    orders: &[Vec<Witness>],
    schedules_max: usize,
) -> Vec<(usize, Schedule)> {
    Schedules::new(&recorded.model, recorded.run(), orders, &Hold::ALL)
        .take(schedules_max)
        .map(|woven| (woven.order, woven.schedule))
        .collect()
}
