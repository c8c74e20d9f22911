//! The search: recorded runs, predictions from them, attempts at what was predicted, and plain
//! exploration, until nothing new comes or the budget is used up.
//!
//! Rounds. In each, the most promising anomalies that were not tried yet are attempted, and a few
//! runs explore other schedules ([`super::explore`]); these are recorded and read too, since a new
//! order may take a new path through the code. What is new shows in access pairs.
//!
//! **The end.** A user who has given a budget wants it used: the search ends when executions or
//! time are used up. Without one, it ends when nothing is left to attempt and
//! [`NOTHING_NEW_MAX`] explored runs in a row have brought nothing new. A search that has found
//! something ends soon after, unless it is to keep going.
//!
//! **Late threads.** An order that makes a thread later than the plan allows
//! ([`raddle_trace::expiry`]) is left to the end: first everything else has to bring nothing, or to
//! have used up its share. Then what was left is attempted, and half of the explored runs let
//! deadlines expire early. Programs without deadlines have no such end.
//!
//! **Shares.** Half of the executions are held back to explain what is found. As long as nothing
//! is found, half of what was held back goes to the search whenever it has used up its share.

use std::ops::RangeInclusive;
use std::sync::Arc;

use raddle_analysis::anomaly::Identity;
use raddle_analysis::observed::Sites;
use raddle_analysis::witness::Witness;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trial::verdict::{Failure, Verdict};
use raddle_trial::{Delivery, End, Plan, Trial};
use rustc_hash::FxHashSet;

use super::Settings;
use super::attempt::{self, Attempt, attempt};
use super::cycle::Cycles;
use super::explore::Round;
use crate::anomalies::Predicted;
use crate::error::LabError;
use crate::executor::Executor;
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::signature::Signature;

/// Attempts per round.
const ATTEMPTS: usize = 48;
/// Explored runs without anything new before a search is over that has no budget to use up. What
/// has not come in n runs comes, with 95 % confidence, in less than 3/n of them (the rule of
/// three): here in less than one of 64.
const NOTHING_NEW_MAX: usize = 192;
/// Explored runs in which threads may be late, at least.
const LATE_RUNS: usize = 96;
/// A run of more events than this is not recorded just to explore.
const EVENTS_CHEAP: u64 = 50_000;
/// Runs that fail in the same way that are kept.
const KEPT_MAX: usize = 12;
/// How much more is done once something is found: runs, and steps of all of them.
const RUNS_AFTER: usize = 300;
const STEPS_AFTER: u64 = 1_000_000_000;
/// How many times the steps of the first run another one may take, unless these are too few or too
/// many.
const STEPS_TIMES: u64 = 50;
const STEPS_USUAL: RangeInclusive<u64> = 50_000_000..=200_000_000;
/// How many times the steps of the first run threads take turns, at least, before a run counts as
/// one that does not end: ten times with each of the two quanta.
const FAIR_TIMES: u64 = 20;
/// Steps for which threads may spin without progress, at least.
const IDLE_LEAST: u64 = 4_000_000;

/// What a hunt has seen so far.
pub(super) struct Search<'a> {
    pub(super) executor: &'a Executor<'a>,
    pub(super) settings: &'a Settings,
    /// How runs are executed, but for their order.
    pub(super) plan: Plan,
    pub(super) bases: Vec<Arc<Predicted>>,
    /// Anomalies that were not tried yet: rank, base, number.
    queue: Vec<(u32, usize, usize)>,
    /// The same, for anomalies that need a thread to be late, and who would have been.
    late: Vec<Late>,
    /// Whether late threads are tried now.
    is_late: bool,
    /// Whether time jumped to a deadline in any run.
    has_deadlines: bool,
    known: FxHashSet<Identity>,
    /// Access pairs and triples of runs that passed.
    passing: FxHashSet<Sites>,
    pub(super) groups: Vec<FailureGroup>,
    /// Lock cycles in runs that passed.
    pub(super) cycles: Cycles,
    pub(super) tally: Tally,
    /// Anomalies that happened without harm, could not be made to happen, or were not tried.
    pub(super) harmless: Vec<Harmless>,
    pub(super) coverage: Coverage,
    seed: u64,
    /// The steps of the first run.
    n_steps: u64,
    /// Whether runs are so short that each is recorded.
    is_cheap: bool,
    /// Explored runs since something was attempted.
    n_since_attempt: usize,
}

/// An anomaly that was not made to happen since a thread would have been too late.
struct Late {
    /// Rank, base, number.
    at: (u32, usize, usize),
    /// Who left the schedule, and where.
    left: Option<(ThreadId, Pc)>,
}

/// How much of the program's behavior was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Different pairs and triples of accesses that followed each other in passing runs.
    pub n_orders: usize,
    /// Runs that were explored since the last one that showed anything new.
    pub n_since_new: usize,
    /// Of these, the ones that were recorded. The others could have shown only a new failure.
    pub n_since_new_recorded: usize,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Enough was found.
    Found,
    /// Nothing new came any more.
    NothingNew,
    /// The executions were used up.
    Runs,
    /// The time was used up.
    Time,
    /// The user stopped it.
    Interrupted,
}

/// Runs that fail in the same way.
pub(super) struct FailureGroup {
    pub(super) signature: Signature,
    pub(super) failure: Failure,
    pub(super) runs: Vec<FailedRun>,
}

/// A run that failed.
pub(super) struct FailedRun {
    pub(super) trial: Trial,
    pub(super) plan: Plan,
    pub(super) source: Option<Source>,
}

impl FailedRun {
    /// How many stretches its schedule has.
    pub(super) fn n_stretches(&self) -> usize {
        self.trial.execution.schedule.as_ref().map_or(usize::MAX, |schedule| schedule.n_runs())
    }
}

/// The anomaly that a failing run was made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) base: usize,
    pub(super) anomaly: usize,
    pub(super) way: usize,
    pub(super) followed: bool,
    pub(super) alone: bool,
}

/// Counts, in PENELOPE's terms. Every predicted anomaly is failing, benign, infeasible or untested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Anomalies predicted.
    pub predicted: usize,
    /// Of these, seen in the run that they were predicted from.
    pub observed: usize,
    /// Runs failed while they were forced.
    pub failing: usize,
    /// They happened without harm.
    pub benign: usize,
    /// They could not be made to happen.
    pub infeasible: usize,
    /// Runs under other schedules.
    pub explored: usize,
    /// Runs that were recorded and read.
    pub recorded: usize,
}

impl Tally {
    /// Anomalies that were not tried.
    #[must_use]
    pub fn untested(&self) -> usize {
        self.predicted - self.failing - self.benign - self.infeasible
    }
}

/// An anomaly that did no harm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Harmless {
    pub(super) base: usize,
    pub(super) anomaly: usize,
    pub(super) why: Why,
}

/// Why an anomaly did no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It happened, and nothing came of it.
    Benign,
    /// It could not be made to happen: who left the schedule, and where.
    Infeasible(Option<(ThreadId, Pc)>),
    /// It was not tried.
    Untested,
}

impl<'a> Search<'a> {
    pub(super) fn new(executor: &'a Executor<'a>, settings: &'a Settings) -> Self {
        Self {
            executor,
            settings,
            plan: settings.plan.clone(),
            bases: Vec::new(),
            queue: Vec::new(),
            late: Vec::new(),
            is_late: false,
            has_deadlines: false,
            known: FxHashSet::default(),
            passing: FxHashSet::default(),
            groups: Vec::new(),
            cycles: Cycles::default(),
            tally: Tally::default(),
            harmless: Vec::new(),
            coverage: Coverage::default(),
            seed: settings.plan.seed,
            n_steps: 0,
            is_cheap: false,
            n_since_attempt: 0,
        }
    }

    /// Learns from the first run how long runs are.
    pub(super) fn measure(&mut self, first: &Recorded) {
        let n_steps = first.trial.execution.outcome.n_steps;
        let fair = n_steps.saturating_mul(FAIR_TIMES);
        if self.settings.limits_steps {
            let usual = n_steps.saturating_mul(STEPS_TIMES);
            let usual = usual.clamp(*STEPS_USUAL.start(), *STEPS_USUAL.end());
            self.plan.n_steps_max = Some(usual.max(fair));
        }
        if self.settings.limits_idling {
            self.plan.n_idle_max = Some(fair.max(IDLE_LEAST));
        }
        self.n_steps = n_steps;
        self.is_cheap = first.model.n_events <= EVENTS_CHEAP;
    }

    /// Goes on from the first run and other base runs until the end.
    pub(super) fn run(
        &mut self,
        first: Predicted,
        others: Vec<Predicted>,
    ) -> Result<Stopped, LabError> {
        self.add_base(first);
        for base in others {
            self.seed = self.seed.max(base.recorded.plan.seed);
            self.add_explored(base);
        }
        let budget = &self.executor.budget;
        budget.hold_back(budget.left() / 2);
        let ended = self.rounds()?;
        budget.hold_back(0);
        for (_, base, anomaly) in std::mem::take(&mut self.queue) {
            self.harmless.push(Harmless { base, anomaly, why: Why::Untested });
        }
        for Late { at: (_, base, anomaly), left } in std::mem::take(&mut self.late) {
            self.tally.infeasible += 1;
            self.harmless.push(Harmless { base, anomaly, why: Why::Infeasible(left) });
        }
        self.coverage.n_orders = self.passing.len();
        Ok(if self.stops_since_found() { Stopped::Found } else { ended })
    }

    /// Whether something was found, and that is reason enough to end.
    fn stops_since_found(&self) -> bool {
        !self.groups.is_empty() && !self.settings.keep_going
    }

    /// Round after round. Why there was no other one.
    fn rounds(&mut self) -> Result<Stopped, LabError> {
        let budget = &self.executor.budget;
        let mut held_back = budget.left() - budget.available();
        let mut found_at = None;
        let mut number = 0;
        loop {
            if budget.is_stopped() {
                return Ok(Stopped::Time);
            }
            if (budget.is_over() || self.is_quiet() || budget.is_past(PUNCTUAL_SHARE))
                && self.begin_late()
            {
                continue;
            }
            if budget.is_over() {
                // Each cycle is executed once more.
                let n_kept = self.cycles.n();
                if held_back <= n_kept || !self.groups.is_empty() {
                    return Ok(Stopped::Runs);
                }
                held_back = (held_back / 2).max(n_kept);
                budget.hold_back(held_back);
                continue;
            }
            let is_quiet = self.is_quiet();
            if is_quiet && (self.stops_since_found() || !self.settings.uses_budget) {
                return Ok(Stopped::NothingNew);
            }
            self.attempt_round()?;
            self.explore(Round { number, is_quiet, n_steps: self.n_steps })?;
            number += 1;
            self.report();
            // Once something is found, a little more is done to see it from its best side.
            if self.stops_since_found() {
                let (n_runs, n_steps) =
                    *found_at.get_or_insert((budget.n_runs(), budget.n_steps()));
                let is_enough = budget.n_runs() > n_runs + RUNS_AFTER
                    || budget.n_steps() > n_steps.saturating_add(STEPS_AFTER)
                    || budget.is_past(SEARCH_SHARE);
                if is_enough {
                    return Ok(Stopped::Found);
                }
            }
        }
    }

    /// From now on threads may be late; returns whether that has just begun.
    fn begin_late(&mut self) -> bool {
        let Some(expiry) = self.settings.expiry_last else { return false };
        if self.is_late || self.stops_since_found() {
            return false;
        }
        self.is_late = true;
        if !self.has_deadlines {
            return false;
        }
        for base in &mut self.bases {
            // Nobody else has it before the search is over.
            if let Some(base) = Arc::get_mut(base) {
                base.recorded.plan.expiry = expiry;
            }
        }
        self.queue.extend(std::mem::take(&mut self.late).into_iter().map(|late| late.at));
        self.n_since_attempt = self.n_since_attempt.min(NOTHING_NEW_MAX - LATE_RUNS);
        true
    }

    /// Whether nothing new has come for long, and nothing was left to attempt.
    fn is_quiet(&self) -> bool {
        self.coverage.n_since_new.min(self.n_since_attempt) >= NOTHING_NEW_MAX
    }

    /// Attempts the most promising anomalies.
    fn attempt_round(&mut self) -> Result<(), LabError> {
        self.queue.sort_unstable_by(|one, two| two.cmp(one));
        let from = self.queue.len().saturating_sub(ATTEMPTS);
        let batch: Vec<_> = self.queue.split_off(from).into_iter().rev().collect();
        if !batch.is_empty() {
            self.n_since_attempt = 0;
        }
        let results =
            self.executor.all(&batch, attempt::RUNS_MAX, |&(_, base, anomaly), runner| {
                let base = &self.bases[base];
                attempt(runner, &base.recorded, &base.anomalies[anomaly])
            })?;
        for (&(rank, base, anomaly), result) in batch.iter().zip(results) {
            let why = match result {
                Some(Attempt::Failing(failing)) => {
                    self.tally.failing += 1;
                    let attempt::Failing { trial, followed, alone, way } = *failing;
                    let source = Some(Source { base, anomaly, way, followed, alone });
                    let plan = self.bases[base].recorded.plan.clone();
                    self.failed(FailedRun { trial, plan, source });
                    continue;
                }
                Some(Attempt::Benign) => {
                    self.tally.benign += 1;
                    Why::Benign
                }
                Some(Attempt::Cycle(trial)) => {
                    self.tally.benign += 1;
                    self.cycles.see(&trial, &self.bases[base].recorded.plan);
                    continue;
                }
                Some(Attempt::Infeasible(left)) => {
                    self.tally.infeasible += 1;
                    Why::Infeasible(left)
                }
                Some(Attempt::TooLate(left)) => {
                    self.late.push(Late { at: (rank, base, anomaly), left });
                    continue;
                }
                // There may be more to spend later.
                Some(Attempt::Untested) | None => {
                    self.queue.push((rank, base, anomaly));
                    continue;
                }
            };
            self.harmless.push(Harmless { base, anomaly, why });
        }
        Ok(())
    }

    /// Runs under other schedules.
    fn explore(&mut self, round: Round) -> Result<(), LabError> {
        let mut plans = round.plans(&self.plan, &mut self.seed);
        let expiry = self.settings.expiry_last.filter(|_| self.is_late && self.has_deadlines);
        if let Some(expiry) = expiry {
            plans.iter_mut().skip(1).step_by(2).for_each(|plan| plan.expiry = expiry);
        }
        // Where recording is dear, some of them are recorded, and the others only tried.
        let n_recorded = if self.is_cheap { plans.len() } else { 2.min(plans.len()) };
        let (recorded, tried) = plans.split_at(n_recorded);
        let patterns = &self.settings.patterns;
        let bases = self
            .executor
            .all(recorded, 1, |plan, runner| Predicted::new(runner, plan, patterns))?;
        for base in bases.into_iter().flatten().flatten() {
            self.add_explored(base);
        }
        let results =
            self.executor.all(tried, 1, |plan, runner| runner.run(plan, Delivery::Schedule))?;
        for (trial, plan) in results.into_iter().zip(tried) {
            let Some(trial) = trial.flatten() else { continue };
            self.has_deadlines |= trial.execution.lateness.has_jumped;
            let n_groups = self.groups.len();
            self.cycles.see(&trial, plan);
            if trial.failure().is_some() {
                self.failed(FailedRun { trial, plan: plan.clone(), source: None });
            }
            self.count_explored(self.groups.len() > n_groups, false);
        }
        Ok(())
    }

    /// Takes in a recorded run under another schedule.
    fn add_explored(&mut self, base: Predicted) {
        let n_groups = self.groups.len();
        let is_new = self.add_base(base) || self.groups.len() > n_groups;
        self.count_explored(is_new, true);
    }

    fn count_explored(&mut self, is_new: bool, is_recorded: bool) {
        self.tally.explored += 1;
        self.n_since_attempt += 1;
        let coverage = &mut self.coverage;
        if is_new {
            (coverage.n_since_new, coverage.n_since_new_recorded) = (0, 0);
        } else {
            coverage.n_since_new += 1;
            coverage.n_since_new_recorded += usize::from(is_recorded);
        }
    }

    /// Takes in a recorded run. Whether it showed anything new.
    fn add_base(&mut self, base: Predicted) -> bool {
        self.tally.recorded += 1;
        self.has_deadlines |= base.recorded.trial.execution.lateness.has_jumped;
        let Predicted { recorded, mut anomalies } = base;
        self.cycles.see(&recorded.trial, &recorded.plan);
        // What is known already is not kept twice.
        anomalies.retain(|anomaly| self.known.insert(anomaly.identity()));
        let index = self.bases.len();
        for (number, anomaly) in anomalies.iter().enumerate() {
            self.tally.predicted += 1;
            self.tally.observed += usize::from(anomaly.observed);
            self.queue.push((anomaly.rank, index, number));
        }
        let is_wanted = !anomalies.is_empty();
        let mut new = is_wanted;
        if recorded.trial.verdict == Verdict::Pass {
            let n_known = self.passing.len();
            self.passing.extend(recorded.observed.sequences.iter().cloned());
            new |= self.passing.len() > n_known;
        }
        let end = &recorded.trial.execution.outcome.end;
        let is_hang = matches!(end, End::Livelock { .. } | End::Endless { .. });
        if recorded.trial.failure().is_some() && !(is_hang && self.groups.len() > HANGS_MAX) {
            let (trial, plan) = (recorded.trial.clone(), recorded.plan.clone());
            self.failed(FailedRun { trial, plan, source: None });
        }
        if is_wanted {
            self.bases.push(Arc::new(Predicted { recorded, anomalies }));
        }
        new
    }

    fn failed(&mut self, run: FailedRun) {
        let Some(failure) = run.trial.failure().cloned() else { return };
        let is_own = &*self.executor.subject.is_own;
        let signature = Signature::of(&run.trial.execution, &failure, is_own);
        let known = self.groups.iter().position(|group| group.signature == signature);
        let number = known.unwrap_or_else(|| {
            let number = self.groups.len();
            let (trial, plan) = (&run.trial, &run.plan);
            self.executor.report(Progress::Failed { number, trial, plan });
            self.groups.push(FailureGroup { signature, failure, runs: Vec::new() });
            number
        });
        let runs = &mut self.groups[number].runs;
        if runs.len() < KEPT_MAX || run.source.is_some() && runs.len() < 4 * KEPT_MAX {
            runs.push(run);
        }
    }

    fn report(&self) {
        self.executor.report(Progress::Searching {
            n_runs: self.executor.budget.n_runs(),
            n_predicted: self.tally.predicted,
            n_observed: self.tally.observed,
            n_decided: [self.tally.failing, self.tally.benign, self.tally.infeasible],
            n_explored: self.tally.explored,
            n_recorded: self.tally.recorded,
            n_orders: self.passing.len(),
            n_since_new: [self.coverage.n_since_new, self.coverage.n_since_new_recorded],
            n_queued: self.queue.len(),
            n_failures: self.groups.len(),
        });
    }

    /// The events of an anomaly that a run was made for.
    pub(super) fn events(&self, source: Source) -> &[Witness] {
        &self.bases[source.base].anomalies[source.anomaly].ways[source.way]
    }
}

/// After so many different failures, runs that hang bring no new ones.
const HANGS_MAX: usize = 8;
/// The share of the time after which a search that has found nothing lets threads be late.
const PUNCTUAL_SHARE: f64 = 0.6;
/// The share of the time after which a search that has found something gives way to explaining.
const SEARCH_SHARE: f64 = 0.5;
