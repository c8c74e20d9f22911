//! Checks suspects by executing them.
//!
//! A suspect is forced on runs that passed: its accesses in the order under suspicion. If they then
//! fail in the same way, and far more often than runs do by chance, the suspect is a cause. It is
//! also flipped in a run that failed: if the failure stays although the order is different, that
//! speaks against it. A flip after which nothing fails says little by itself, since most changes to
//! a run that fails by chance make it pass; it counts only when no passing run could be forced.
//!
//! What is counted are different schedules: two ways to force an order that come to the same
//! schedule are one execution and count once.
//!
//! A suspect is forced at several of its occurrences, with the threads then running one at a
//! time and interleaved. It is a cause if most of these runs fail in the same way, or far more
//! than fail by chance: one failure in many tries says nothing about a program that fails in
//! every fifth run. Suspects that cannot be forced do not use up the checking budget; otherwise
//! effects, which depend on their cause, would exhaust it.

use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use raddle_analysis::localize::facts::{Pair, Pattern, SiteAccess};
use raddle_analysis::localize::procedures::Suspect;
use raddle_analysis::weave::Hold;
use raddle_analysis::witness::Witness;
use raddle_trace::control::Policy;
use raddle_trace::schedule::Schedule;
use raddle_trial::verdict::Verdict;
use rustc_hash::FxHashMap;

use crate::error::LabError;
use crate::executor::Runner;
use crate::force::Force;
use crate::recorded::Recorded;
use crate::signature::Signature;

/// Combinations of occurrences that are tried.
const TRIES_MAX: usize = 4;
/// Runs that something is forced on.
const FORCED_MAX: usize = 16;
/// How threads go on after what is forced: one at a time, and interleaved, since some corruption
/// shows only while others are active.
const AFTER: [Policy; 2] = [Policy::Rr, Policy::Random];
/// Passing runs that suspects are forced on.
pub(super) const PASSED_MAX: usize = 2;
/// Executions that checking one suspect takes at most: it is forced in three orders at most, and
/// flipped in two.
pub(super) const RUNS_MAX: usize = Hold::ALL.len() * TRIES_MAX * (3 * PASSED_MAX * AFTER.len() + 2);
/// So many times as often as by chance is a cause, even if not most runs fail with it.
const RARE: f64 = 5.0;
/// What is less likely than this to come by chance did not: if not all runs fail, and if all do.
const ACCIDENT: f64 = 0.02;
const ACCIDENT_OF_ALL: f64 = 0.1;

/// Checks suspects of one failure.
pub(super) struct Checker<'a> {
    failed: Option<&'a Recorded>,
    passed: Vec<Recorded>,
    /// How runs of this kind fail.
    key: &'a str,
    /// The share of all runs that fail like this by chance.
    chance: f64,
    /// What came of changes: patterns and pairs have many in common.
    forced: Known<Vec<SiteAccess>, Forcing>,
    gone: Known<Pair, Option<bool>>,
}

/// Answers, each found once. Whoever asks while another is at it waits, so that how much is
/// executed does not depend on who is faster.
struct Known<K, V>(Mutex<FxHashMap<K, Arc<OnceLock<V>>>>);

impl<K: Eq + Hash + Clone, V: Copy + Default> Known<K, V> {
    fn new() -> Self {
        Self(Mutex::new(FxHashMap::default()))
    }

    fn get(&self, key: &K, find: impl FnOnce() -> Result<V, LabError>) -> Result<V, LabError> {
        let cell = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(key.clone()).or_default())
        };
        let mut error = None;
        let value = cell.get_or_init(|| match find() {
            Ok(value) => value,
            Err(found) => {
                // The whole command fails with it.
                error = Some(found);
                V::default()
            }
        });
        match error {
            Some(error) => Err(error),
            None => Ok(*value),
        }
    }
}

/// What executions say of a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// What came of forcing it on passing runs.
    pub forced: Forcing,
    /// Whether the failure is gone when it is flipped; none if that was not possible.
    pub gone: Option<bool>,
}

/// What came of forcing something on passing runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forcing {
    /// Schedules that failed.
    pub n_failed: usize,
    /// Schedules that passed, or failed in a different way.
    pub n_passed: usize,
    /// They fail far more often than runs do by chance.
    pub is_telling: bool,
}

impl Forcing {
    /// How many schedules there were.
    #[must_use]
    pub const fn n(self) -> usize {
        self.n_failed + self.n_passed
    }

    /// The share of them that fails.
    pub(super) fn rate(self) -> f64 {
        self.n_failed as f64 / self.n().max(1) as f64
    }

    /// Whether more than half of them fail.
    const fn mostly_fails(self) -> bool {
        self.n_failed > self.n_passed
    }

    /// Whether more of them fail than chance explains.
    fn is_beyond(self, chance: f64) -> bool {
        let least = if self.n_passed == 0 { ACCIDENT_OF_ALL } else { ACCIDENT };
        self.n_failed > 0 && at_least(self.n_failed, self.n(), chance) < least
    }

    /// Whether it makes runs fail; none if that cannot be decided.
    pub(super) const fn fails(self) -> Option<bool> {
        match self {
            Self { is_telling: true, .. } => Some(true),
            Self { n_failed: 0, n_passed: 1.., .. } => Some(false),
            Self { .. } => None,
        }
    }
}

impl Evidence {
    /// Whether it is a cause; none if that cannot be decided.
    #[must_use]
    pub const fn confirmed(self) -> Option<bool> {
        match self.forced.fails() {
            Some(fails) => Some(fails),
            None if self.forced.n() == 0 => self.gone,
            None => None,
        }
    }
}

impl<'a> Checker<'a> {
    /// For a failed run, runs that passed, and how and how often runs fail like this.
    pub(super) fn new(
        failed: Option<&'a Recorded>,
        passed: Vec<Recorded>,
        (key, chance): (&'a str, f64),
    ) -> Self {
        Self { failed, passed, key, chance, forced: Known::new(), gone: Known::new() }
    }

    /// What executions say of a pattern.
    pub(super) fn pattern(
        &self,
        pattern: &Pattern,
        runner: &Runner<'_>,
    ) -> Result<Evidence, LabError> {
        let forced = self.forced(pattern.accesses.clone(), runner)?;
        let gone = match pattern.accesses[..] {
            [one, two] => self.gone(Pair { head: one, tail: two }, runner)?,
            // The middle one first, and last: gone in both, or not at all.
            [one, two, three] => {
                let before = self.gone(Pair { head: one, tail: two }, runner)?;
                let after = self.gone(Pair { head: two, tail: three }, runner)?;
                either(before, after)
            }
            _ => None,
        };
        Ok(Evidence { forced, gone })
    }

    /// What they say of pairs.
    pub(super) fn suspect(
        &self,
        suspect: &Suspect,
        runner: &Runner<'_>,
    ) -> Result<Evidence, LabError> {
        match suspect.pairs[..] {
            [pair] => Ok(Evidence {
                forced: self.forced(vec![pair.head, pair.tail], runner)?,
                gone: self.gone(pair, runner)?,
            }),
            // One thread's accesses around those of the other.
            [one, two] => {
                let orders = [
                    [one.head, one.tail, two.head, two.tail],
                    [two.head, two.tail, one.head, one.tail],
                    [one.head, two.head, one.tail, two.tail],
                ];
                // Only one of them may be what makes it fail.
                let mut forced = Forcing::default();
                for order in orders {
                    let other = self.forced(order.to_vec(), runner)?;
                    if forced.n() == 0 || other.rate() > forced.rate() {
                        forced = other;
                    }
                    if forced.mostly_fails() {
                        break;
                    }
                }
                let gone = either(self.gone(one, runner)?, self.gone(two, runner)?);
                Ok(Evidence { forced, gone })
            }
            _ => Ok(Evidence::default()),
        }
    }

    /// How many passing runs fail, and how many do not, with accesses in this order.
    fn forced(&self, accesses: Vec<SiteAccess>, runner: &Runner<'_>) -> Result<Forcing, LabError> {
        self.forced.get(&accesses, || self.force(&accesses, runner))
    }

    fn force(&self, accesses: &[SiteAccess], runner: &Runner<'_>) -> Result<Forcing, LabError> {
        let mut forced = Forcing::default();
        for run in &self.passed {
            let mut known: [Vec<Schedule>; AFTER.len()] = Default::default();
            for order in orders(run, accesses) {
                for (after, known) in AFTER.iter().zip(&mut known) {
                    if forced.n() >= FORCED_MAX {
                        break;
                    }
                    match self.with_order(run, &order, *after, known, runner)? {
                        Change::Fails => forced.n_failed += 1,
                        Change::Impossible => break,
                        Change::Passes => forced.n_passed += 1,
                    }
                }
            }
        }
        let is_often = forced.mostly_fails() || forced.rate() >= RARE * self.chance;
        forced.is_telling = is_often && forced.is_beyond(self.chance);
        Ok(forced)
    }

    /// A run with these accesses in this order. Adds the schedules that were executed to those that
    /// are known, which are not executed again.
    fn with_order(
        &self,
        run: &Recorded,
        order: &[Witness],
        after: Policy,
        known: &mut Vec<Schedule>,
        runner: &Runner<'_>,
    ) -> Result<Change, LabError> {
        let (orders, after) = ([order.to_vec()], [after]);
        let force = Force::new(run, &orders, &after).except(std::mem::take(known));
        let mut force = force.with_search();
        let mut change = Change::Impossible;
        while let Some(forced) = force.next(runner)? {
            let trial = &forced.trial;
            if let Some(failure) = trial.failure() {
                let is_own = &*runner.executor.subject.is_own;
                let key = Signature::of(&trial.execution, failure, is_own).key();
                change = if key == self.key { Change::Fails } else { Change::Passes };
                break;
            }
            if trial.followed() && trial.verdict == Verdict::Pass {
                change = Change::Passes;
            }
        }
        *known = force.into_schedules();
        Ok(change)
    }

    /// Whether the failure is gone with the pair the other way around, at any of its occurrences.
    fn gone(&self, pair: Pair, runner: &Runner<'_>) -> Result<Option<bool>, LabError> {
        self.gone.get(&pair, || self.flip(pair, runner))
    }

    fn flip(&self, pair: Pair, runner: &Runner<'_>) -> Result<Option<bool>, LabError> {
        let Some(run) = self.failed else { return Ok(None) };
        let mut gone = None;
        let mut known = Vec::new();
        for order in orders(run, &[pair.tail, pair.head]) {
            match self.with_order(run, &order, Policy::Rr, &mut known, runner)? {
                Change::Fails => gone = Some(false),
                Change::Impossible => {}
                Change::Passes => return Ok(Some(true)),
            }
        }
        Ok(gone)
    }
}

/// What came of a change to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// No schedule could be followed, or all were executed before.
    Impossible,
    /// It passed, or failed in a different way.
    Passes,
    /// It failed in the way that is looked at.
    Fails,
}

/// How likely it is that of so many runs at least so many fail, if each does with this chance.
fn at_least(n_failed: usize, n: usize, chance: f64) -> f64 {
    let mut exactly = (1.0 - chance).powi(n as i32);
    let mut less = 0.0;
    for failed in 0..n_failed {
        less += exactly;
        exactly *= (n - failed) as f64 / (failed + 1) as f64 * chance / (1.0 - chance);
    }
    1.0 - less
}

/// Occurrences of accesses, by two threads in turn, on overlapping memory.
fn orders(run: &Recorded, accesses: &[SiteAccess]) -> Vec<Vec<Witness>> {
    let mut orders: Vec<Vec<Witness>> = vec![Vec::new()];
    for (at, access) in accesses.iter().enumerate() {
        let here = run.witnesses(*access);
        orders = orders
            .iter()
            .flat_map(|order| {
                here.iter().filter(|witness| fits(order, witness, accesses, at)).map(|witness| {
                    let mut longer = order.clone();
                    longer.push(*witness);
                    longer
                })
            })
            .take(64)
            .collect();
    }
    orders.truncate(TRIES_MAX);
    orders
}

/// Whether an access can come next: by the other thread than the one before for two and three
/// accesses; of four, the outer two belong to one thread and the inner two to another.
fn fits(order: &[Witness], next: &Witness, accesses: &[SiteAccess], at: usize) -> bool {
    let same_thread = |i: usize| order[i].thread == next.thread;
    let later = |i: usize| order[i].at < next.at;
    let meets = |i: usize| {
        order[i].addr.0 < next.addr.0 + u64::from(next.bytes)
            && next.addr.0 < order[i].addr.0 + u64::from(order[i].bytes)
    };
    match (accesses.len(), at) {
        (_, 0) => true,
        (_, 1) => !same_thread(0) && (accesses.len() == 4 || meets(0)),
        (3, 2) => same_thread(0) && later(0) && meets(1),
        (4, 2) => same_thread(1) && later(1),
        (4, 3) => same_thread(0) && later(0),
        _ => false,
    }
}

fn either(one: Option<bool>, two: Option<bool>) -> Option<bool> {
    match (one, two) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), _) | (_, Some(false)) => Some(false),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_that_of_coins() {
        for (n_failed, n, wanted) in [(0, 4, 1.0), (1, 1, 0.5), (1, 2, 0.75), (4, 4, 0.0625)] {
            assert!((at_least(n_failed, n, 0.5) - wanted).abs() < 1e-9, "{n_failed} of {n}");
        }
    }

    #[test]
    fn few_failures_of_what_fails_often_tell_nothing() {
        let forced = |n_failed, n_passed| Forcing { n_failed, n_passed, is_telling: false };
        assert!(forced(2, 0).is_beyond(0.1) && !forced(2, 0).is_beyond(0.5));
        assert!(forced(2, 14).is_beyond(0.01) && !forced(2, 14).is_beyond(0.1));
        assert!(!forced(0, 16).is_beyond(0.01));
    }
}
