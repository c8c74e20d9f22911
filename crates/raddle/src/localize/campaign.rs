//! Many runs, until enough of them have passed and failed.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use raddle_analysis::localize::collect::Settings;
use raddle_trial::Plan;

use super::gather::gather;
use super::sample::{How, Policy, Sample};
use super::woven::Weaver;
use crate::hunt::team::Team;

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

/// What a campaign was told.
pub(crate) struct Campaign<'a> {
    pub(crate) team: &'a Team,
    pub(crate) plan: Plan,
    /// None for several in turn.
    pub(crate) policy: Option<Policy>,
    pub(crate) settings: Settings,
    pub(crate) runs_max: usize,
    /// How many more there may be as long as few have failed.
    pub(crate) runs_more: usize,
    /// Failing runs that are wanted, if a number was given.
    pub(crate) failed_wanted: Option<usize>,
    pub(crate) directory: &'a Path,
    pub(crate) quiet: bool,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) samples: Vec<Sample>,
    /// Runs that could not be judged, and what the first of them said.
    pub(crate) n_unjudged: usize,
    pub(crate) unjudged: Option<String>,
}

impl Done {
    fn n_failed(&self) -> usize {
        self.samples.iter().filter(|sample| sample.failure.is_some()).count()
    }
}

impl Campaign<'_> {
    /// Adds runs to those that are there.
    pub(crate) fn run(&self, mut done: Done) -> Result<Done> {
        self.get_along()?;
        let mut seed = self.plan.seed;
        let mut n_steps = 0;
        if let Some(last) = done.samples.iter().map(|sample| sample.how.seed).max() {
            seed = seed.max(last + 1);
            n_steps = done.samples[0].facts.n_events;
        }
        let mut n_runs = done.samples.len();
        let mut weaver = Weaver::default();
        let mut with_laps = false;
        while n_runs < self.most(&done) && !self.is_enough(&done) && !self.team.is_over() {
            // The first one tells how long a run is.
            let n = if n_steps == 0 { 1 } else { BATCH.min(self.most(&done) - n_runs) };
            let is_rare = n_runs >= self.runs_max.min(RARE) && done.n_failed() == 0;
            if is_rare && self.policy.is_none() {
                weaver.learn(self.team, &self.plan, &done.samples, &mut seed)?;
            }
            let mut hows = weaver.next(n);
            if hows.is_empty() {
                hows = (0..n as u64).map(|i| self.how(seed + i, n_steps, with_laps)).collect();
                seed += n as u64;
            }
            let results = self.team.all(&hows, |how, cpu| {
                let plan = Plan { cpu, ..how.plan(&self.plan) };
                gather(self.team, how.clone(), &plan, self.settings)
            })?;
            // A controlled run can be executed again when there is more to ask, a free one cannot.
            // If they are short enough all is told of each; the first one, of which it is not,
            // does not count then.
            if n_steps == 0
                && !hows[0].is_repeatable()
                && let [Some((judged, _))] = &results[..]
                && judged.execution.outcome.cpu <= SHORT
            {
                (with_laps, n_steps) = (true, 1);
                continue;
            }
            for (judged, sample) in results.into_iter().flatten() {
                n_steps = n_steps.max(judged.execution.outcome.n_steps);
                match sample {
                    Some(sample) => {
                        sample.keep(self.directory)?;
                        done.samples.push(sample);
                    }
                    None => {
                        done.n_unjudged += 1;
                        let end = judged.execution.outcome.end.to_string();
                        done.unjudged.get_or_insert(end);
                    }
                }
            }
            n_runs += hows.len();
            n_steps = n_steps.max(1);
            self.progress(&done);
            if done.samples.is_empty() && done.n_unjudged >= UNJUDGED_MAX {
                bail!("the program cannot be judged: {}", done.unjudged.unwrap_or_default());
            }
        }
        self.clear_progress();
        Ok(done)
    }

    /// Finds out whether runs at the same time get in each other's way.
    fn get_along(&self) -> Result<()> {
        let how = self.how(self.plan.seed, 0, false);
        if self.team.n_jobs() == 1 || !how.is_repeatable() {
            return Ok(());
        }
        let one = |cpu| {
            let plan = Plan { cpu, ..how.plan(&self.plan) };
            let (judged, sample) = gather(self.team, how.clone(), &plan, self.settings)?;
            let outcome = judged.execution.outcome;
            let facts = sample.map(|sample| (sample.failure, sample.facts));
            Ok((outcome.end, outcome.n_steps, facts))
        };
        let together = self.team.all(&[(), ()], |(), cpu| one(cpu))?;
        if together[0] != together[1] {
            // The first one finds what others have left.
            one(None)?;
            if one(None)? == one(None)? {
                self.team.go_one_by_one();
            }
        }
        Ok(())
    }

    fn most(&self, done: &Done) -> usize {
        match self.failed_wanted {
            // Failing runs beyond those that are wanted do not count, within reason.
            Some(_) => self.runs_max * 10,
            None if done.n_failed() < FAILED_FEW => self.runs_max + self.runs_more,
            None => self.runs_max,
        }
    }

    fn is_enough(&self, done: &Done) -> bool {
        let n_failed = done.n_failed();
        let n_passed = done.samples.len() - n_failed;
        match self.failed_wanted {
            Some(wanted) => n_failed >= wanted && n_passed >= self.runs_max.saturating_sub(wanted),
            None => n_failed >= FAILED_ENOUGH && n_passed >= PASSED_ENOUGH,
        }
    }

    fn how(&self, seed: u64, n_steps: u64, with_laps: bool) -> How {
        match &self.policy {
            Some(policy) => How { seed, policy: policy.clone(), with_laps },
            None => How { with_laps, ..How::varied(seed, n_steps) },
        }
    }

    fn progress(&self, done: &Done) {
        if !self.quiet && io::stderr().is_terminal() {
            let n_failed = done.n_failed();
            // It is only for the eye.
            let _ = write!(
                io::stderr().lock(),
                "\r\x1b[K{:.0} s, {} of {} runs, {n_failed} failed",
                self.team.elapsed().as_secs_f64(),
                done.samples.len(),
                self.most(done),
            );
        }
    }

    fn clear_progress(&self) {
        if !self.quiet && io::stderr().is_terminal() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// So many runs that cannot be judged, and none that can, are no accident.
const UNJUDGED_MAX: usize = 3;
