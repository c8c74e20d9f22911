//! Many runs, until enough of them have passed and failed.
//!
//! If no number of runs was asked for, there are more runs while fewer than five have failed:
//! the fewer failing runs there are, the more passing runs have what they have by chance.
//!
//! Programs may disturb each other's runs, for example through a file. If two first runs of the
//! same order differ, and do not differ one after the other, runs are executed one at a time
//! from then on. Hunts do the same. The first ones may miss each other by chance; so the same is
//! done when a run that failed beside others does not fail again.

use std::path::Path;
use std::time::Duration;

use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::facts::Facts;
use raddle_trial::{End, Order, Plan};

use super::woven::Weaver;
use crate::error::LabError;
use crate::executor::{Executor, Runner};
use crate::progress::Progress;
use crate::sample::collect::{self, Sampled, collect};
use crate::sample::{Sample, Spec};

/// Runs of each kind that are enough.
const PASSED_ENOUGH: usize = 50;
const FAILED_ENOUGH: usize = 20;
/// Fewer are worth more runs than were planned.
const FAILED_FEW: usize = 5;
/// If so many have passed and none has failed, failures are looked for in another way.
const RARE: usize = 48;
/// What a free run may take of a processor if all is to be told of each.
const SHORT: Duration = Duration::from_millis(50);
/// Runs between two looks at whether it is enough.
const BATCH: usize = 16;

/// How a run ended, after how many steps, and what was collected.
type Comparable = (End, u64, Option<(Option<String>, Facts)>);

/// How runs are collected.
pub struct Collection<'a> {
    /// What executes them.
    pub executor: &'a Executor<'a>,
    /// How they are executed, but for their order.
    pub plan: Plan,
    /// Who goes next; none for several policies in turn.
    pub order: Option<Order>,
    /// What is collected of each.
    pub settings: Settings,
    /// How many runs there may be.
    pub runs_max: usize,
    /// How many more there may be as long as few have failed.
    pub runs_more: usize,
    /// Failing runs that are wanted, if a number was given.
    pub failed_wanted: Option<usize>,
    /// Where samples are kept.
    pub directory: &'a Path,
}

/// Runs that were collected.
#[derive(Default)]
pub struct Collected {
    /// What is kept of them.
    pub samples: Vec<Sample>,
    /// Runs that could not be judged.
    pub n_not_judged: usize,
    /// How the first of these ended.
    pub not_judged: Option<String>,
}

impl Collected {
    /// Runs that failed.
    #[must_use]
    pub fn n_failed(&self) -> usize {
        self.samples.iter().filter(|sample| sample.failed.is_some()).count()
    }
}

impl Collection<'_> {
    /// Adds runs to those that are there.
    pub fn run(&self, mut done: Collected) -> Result<Collected, LabError> {
        self.get_along()?;
        let mut seed = self.plan.seed;
        let mut n_steps = 0;
        if let Some(last) = done.samples.iter().map(|sample| sample.spec.seed).max() {
            seed = seed.max(last + 1);
            n_steps = done.samples[0].facts.n_events;
        }
        let mut n_runs = done.samples.len();
        let mut weaver = Weaver::default();
        let mut with_loops = false;
        while n_runs < self.most(&done) && !self.is_enough(&done) && !self.executor.budget.is_over()
        {
            // The first one tells how long a run is.
            let n = if n_steps == 0 { 1 } else { BATCH.min(self.most(&done) - n_runs) };
            let is_rare = n_runs >= self.runs_max.min(RARE) && done.n_failed() == 0;
            if is_rare && self.order.is_none() {
                weaver.learn(self.executor, &self.plan, &done.samples, &mut seed)?;
            }
            let mut specs = weaver.next(n);
            if specs.is_empty() {
                specs = (0..n as u64).map(|i| self.spec(seed + i, n_steps, with_loops)).collect();
                seed += n as u64;
            }
            let results = self.executor.all(&specs, collect::RUNS_MAX, |spec, runner| {
                collect(runner, spec, &spec.plan(&self.plan), self.settings)
            })?;
            let results: Vec<Sampled> = results.into_iter().flatten().flatten().collect();
            let unsteady = specs.iter().zip(&results).find(|(_, sampled)| sampled.is_unsteady);
            if let Some((spec, _)) = unsteady
                && self.goes_one_by_one(spec)?
            {
                continue;
            }
            // A controlled run can be executed again when there is more to ask, a free one cannot.
            // If they are short, everything is collected of each; the first one, of which it is
            // not, does not count then.
            if n_steps == 0
                && !specs[0].is_repeatable()
                && let [Sampled { trial, .. }] = &results[..]
                && trial.execution.outcome.cpu <= SHORT
            {
                (with_loops, n_steps) = (true, 1);
                continue;
            }
            for Sampled { trial, sample, .. } in results {
                n_steps = n_steps.max(trial.execution.outcome.n_steps);
                match sample {
                    Some(sample) => {
                        sample.keep(self.directory)?;
                        done.samples.push(sample);
                    }
                    None => {
                        done.n_not_judged += 1;
                        let why = trial.unjudged().unwrap_or_default();
                        done.not_judged.get_or_insert(why);
                    }
                }
            }
            n_runs += specs.len();
            n_steps = n_steps.max(1);
            self.executor.report(Progress::Collecting {
                n_runs: done.samples.len(),
                n_runs_max: self.most(&done),
                n_failed: done.n_failed(),
            });
            if done.samples.is_empty() && done.n_not_judged >= NOT_JUDGED_MAX {
                return Err(LabError::Unjudged(done.not_judged.unwrap_or_default()));
            }
        }
        Ok(done)
    }

    /// Finds out whether runs at the same time disturb each other.
    fn get_along(&self) -> Result<(), LabError> {
        let spec = self.spec(self.plan.seed, 0, false);
        if self.executor.n_jobs() == 1 || !spec.is_repeatable() {
            return Ok(());
        }
        let together = self
            .executor
            .all(&[(), ()], collect::RUNS_MAX, |(), runner| self.comparable(runner, &spec))?;
        if together[0] != together[1] && !self.executor.budget.is_stopped() {
            self.goes_one_by_one(&spec)?;
        }
        Ok(())
    }

    /// From now on executes one run at a time, if a run repeats that way, which did not repeat
    /// beside others; returns whether it does.
    fn goes_one_by_one(&self, spec: &Spec) -> Result<bool, LabError> {
        if self.executor.n_jobs() == 1 {
            return Ok(false);
        }
        let alone = || self.comparable(&self.executor.alone(collect::RUNS_MAX), spec);
        // The first one finds what others have left.
        alone()?;
        let (one, two) = (alone()?, alone()?);
        let is_disturbed = one.is_some() && one == two;
        if is_disturbed {
            self.executor.go_one_by_one();
        }
        Ok(is_disturbed)
    }

    /// A run, as far as it must be the same when it is executed again.
    fn comparable(&self, runner: &Runner<'_>, spec: &Spec) -> Result<Option<Comparable>, LabError> {
        let sampled = collect(runner, spec, &spec.plan(&self.plan), self.settings)?;
        Ok(sampled.map(|Sampled { trial, sample, .. }| {
            let outcome = trial.execution.outcome;
            let facts = sample.map(|sample| (sample.failed.map(|one| one.key), sample.facts));
            (outcome.end, outcome.n_steps, facts)
        }))
    }

    fn most(&self, done: &Collected) -> usize {
        match self.failed_wanted {
            // Failing runs beyond those that are wanted do not count, within reason.
            Some(_) => self.runs_max * 10,
            None if done.n_failed() < FAILED_FEW => self.runs_max + self.runs_more,
            None => self.runs_max,
        }
    }

    fn is_enough(&self, done: &Collected) -> bool {
        let n_failed = done.n_failed();
        let n_passed = done.samples.len() - n_failed;
        match self.failed_wanted {
            Some(wanted) => n_failed >= wanted && n_passed >= self.runs_max.saturating_sub(wanted),
            None => n_failed >= FAILED_ENOUGH && n_passed >= PASSED_ENOUGH,
        }
    }

    fn spec(&self, seed: u64, n_steps: u64, with_loops: bool) -> Spec {
        match &self.order {
            Some(order) => Spec { seed, order: order.clone(), with_loops },
            None => Spec::varied(seed, n_steps),
        }
    }
}

/// So many runs that cannot be judged, and none that can, are no accident.
const NOT_JUDGED_MAX: usize = 3;
