//! Suspects, checked by executing them.
//!
//! A suspect is forced on runs that passed: its accesses in the order that is suspected. If that
//! makes them fail in the same way, and far more often than runs do by chance, the suspect is a
//! cause. And it is flipped in a run that failed: if the failure stays though the order is
//! another one, that speaks against it. A flip after which nothing fails says little by itself,
//! as most changes to a run that fails by chance make it pass; it counts when no passing run could
//! be forced.

use std::fmt;
use std::hash::Hash;
use std::sync::Mutex;

use anyhow::Result;
use raddle_analysis::localize::facts::{Act, Pair, Pattern};
use raddle_analysis::localize::procedures::Suspect;
use raddle_analysis::witness::Witness;
use raddle_trace::control::Policy;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::again::{Again, Change};
use crate::hunt::team::Team;

/// Combinations of occurrences that are tried.
const TRIES_MAX: usize = 4;
/// Runs that something is forced on.
const FORCED_MAX: usize = 16;
/// So many times as often as by chance is a cause, even if not most runs fail with it.
const RARE: f64 = 5.0;
/// What is less likely than this to come by chance did not: if not all runs fail, and if all do.
const ACCIDENT: f64 = 0.02;
const ACCIDENT_OF_ALL: f64 = 0.1;

/// Runs to be changed.
pub(crate) struct Court<'a> {
    team: &'a Team,
    failed: Option<&'a Again>,
    passed: Vec<Again>,
    /// How runs of this kind fail.
    key: &'a str,
    /// The share of all runs that fail like this by chance.
    chance: f64,
    /// What came of changes: patterns and pairs have many in common.
    forced: Mutex<FxHashMap<Vec<Act>, Forced>>,
    gone: Mutex<FxHashMap<Pair, Option<bool>>>,
}

/// Looks something up, or finds it out.
fn known<K: Eq + Hash + Clone, V: Copy>(
    all: &Mutex<FxHashMap<K, V>>,
    key: &K,
    find: impl FnOnce() -> Result<V>,
) -> Result<V> {
    let seen = all.lock().expect("no panic").get(key).copied();
    match seen {
        Some(value) => Ok(value),
        None => {
            let value = find()?;
            all.lock().expect("no panic").insert(key.clone(), value);
            Ok(value)
        }
    }
}

/// What executions say of a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// What came of forcing it on passing runs.
    pub(crate) forced: Forced,
    /// Whether the failure is gone when it is flipped; none if that was not possible.
    pub(crate) gone: Option<bool>,
}

/// Passing runs that something was forced on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forced {
    pub(crate) n_failed: usize,
    pub(crate) n_passed: usize,
    /// They fail far more often than runs do by chance.
    pub(crate) is_telling: bool,
}

impl Forced {
    pub(crate) const fn n(self) -> usize {
        self.n_failed + self.n_passed
    }

    /// As other programs read it.
    pub(crate) fn json(self) -> Value {
        json!({"failed": self.n_failed, "passed": self.n_passed})
    }

    /// The share of them that fails.
    pub(crate) fn rate(self) -> f64 {
        self.n_failed as f64 / self.n().max(1) as f64
    }

    /// Whether more than half of them fail.
    const fn mostly_fails(self) -> bool {
        self.n_failed > self.n_passed
    }

    /// Whether more of them fail than by a chance.
    fn is_beyond(self, chance: f64) -> bool {
        let least = if self.n_passed == 0 { ACCIDENT_OF_ALL } else { ACCIDENT };
        self.n_failed > 0 && at_least(self.n_failed, self.n(), chance) < least
    }

    /// Whether it makes runs fail; none if that cannot be told.
    pub(crate) const fn fails(self) -> Option<bool> {
        match self {
            Self { is_telling: true, .. } => Some(true),
            Self { n_failed: 0, n_passed: 1.., .. } => Some(false),
            Self { .. } => None,
        }
    }
}

impl fmt::Display for Forced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "forced on passing runs, {} of {} fail", self.n_failed, self.n())
    }
}

impl Evidence {
    /// Whether it is a cause; none if that cannot be told.
    pub(crate) const fn confirmed(self) -> Option<bool> {
        match self.forced.fails() {
            Some(fails) => Some(fails),
            None if self.forced.n() == 0 => self.gone,
            None => None,
        }
    }
}

impl<'a> Court<'a> {
    /// For a failed run, runs that passed, and how and how often runs fail like this.
    pub(crate) fn new(
        team: &'a Team,
        failed: Option<&'a Again>,
        passed: Vec<Again>,
        (key, chance): (&'a str, f64),
    ) -> Self {
        let (forced, gone) = Default::default();
        Self { team, failed, passed, key, chance, forced, gone }
    }

    /// What executions say of a pattern.
    pub(crate) fn pattern(&self, pattern: &Pattern, cpu: Option<u32>) -> Result<Evidence> {
        let forced = self.forced(pattern.acts.clone(), cpu)?;
        let gone = match pattern.acts[..] {
            [one, two] => self.gone(Pair { head: one, tail: two }, cpu)?,
            // The middle one first, and last: gone in both, or not at all.
            [one, two, three] => {
                let before = self.gone(Pair { head: one, tail: two }, cpu)?;
                let after = self.gone(Pair { head: two, tail: three }, cpu)?;
                either(before, after)
            }
            _ => None,
        };
        Ok(Evidence { forced, gone })
    }

    /// What they say of pairs.
    pub(crate) fn suspect(&self, suspect: &Suspect, cpu: Option<u32>) -> Result<Evidence> {
        match suspect.pairs[..] {
            [pair] => Ok(Evidence {
                forced: self.forced(vec![pair.head, pair.tail], cpu)?,
                gone: self.gone(pair, cpu)?,
            }),
            // One thread's accesses around those of the other.
            [one, two] => {
                let orders = [
                    [one.head, one.tail, two.head, two.tail],
                    [two.head, two.tail, one.head, one.tail],
                    [one.head, two.head, one.tail, two.tail],
                ];
                // Only one of them may be what makes it fail.
                let mut forced = Forced::default();
                for order in orders {
                    let other = self.forced(order.to_vec(), cpu)?;
                    if forced.n() == 0 || other.rate() > forced.rate() {
                        forced = other;
                    }
                    if forced.mostly_fails() {
                        break;
                    }
                }
                let gone = either(self.gone(one, cpu)?, self.gone(two, cpu)?);
                Ok(Evidence { forced, gone })
            }
            _ => Ok(Evidence::default()),
        }
    }

    /// How many passing runs fail, and do not, with accesses in this order: going on thread by
    /// thread, and mixed, since some damage shows only while others are at it.
    fn forced(&self, acts: Vec<Act>, cpu: Option<u32>) -> Result<Forced> {
        known(&self.forced, &acts, || self.force(&acts, cpu))
    }

    fn force(&self, acts: &[Act], cpu: Option<u32>) -> Result<Forced> {
        let mut forced = Forced::default();
        for run in &self.passed {
            for order in orders(run, acts) {
                if self.team.is_over() || forced.n() >= FORCED_MAX {
                    break;
                }
                self.force_on(run, &order, &mut forced, cpu)?;
            }
        }
        let is_often = forced.mostly_fails() || forced.rate() >= RARE * self.chance;
        forced.is_telling = is_often && forced.is_beyond(self.chance);
        Ok(forced)
    }

    /// Counts what comes of accesses in this order on one run.
    fn force_on(
        &self,
        run: &Again,
        order: &[Witness],
        forced: &mut Forced,
        cpu: Option<u32>,
    ) -> Result<()> {
        for after in [Policy::Rr, Policy::Random] {
            match run.with_order(self.team, order, after, cpu)? {
                Change::Fails(key) if key == self.key => forced.n_failed += 1,
                Change::Impossible => break,
                Change::Fails(_) | Change::Passes => forced.n_passed += 1,
            }
        }
        Ok(())
    }

    /// Whether the failure is gone with the pair the other way round, at any of its occurrences.
    fn gone(&self, pair: Pair, cpu: Option<u32>) -> Result<Option<bool>> {
        known(&self.gone, &pair, || self.flip(pair, cpu))
    }

    fn flip(&self, pair: Pair, cpu: Option<u32>) -> Result<Option<bool>> {
        let Some(run) = self.failed else { return Ok(None) };
        let mut gone = None;
        for order in orders(run, &[pair.tail, pair.head]) {
            match run.with_order(self.team, &order, Policy::Rr, cpu)? {
                Change::Fails(key) if key == self.key => gone = Some(false),
                Change::Impossible => {}
                Change::Fails(_) | Change::Passes => return Ok(Some(true)),
            }
        }
        Ok(gone)
    }
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

/// Occurrences of accesses, by two threads in turn, on memory that fits.
fn orders(run: &Again, acts: &[Act]) -> Vec<Vec<Witness>> {
    let mut orders: Vec<Vec<Witness>> = vec![Vec::new()];
    for (at, act) in acts.iter().enumerate() {
        let here = run.witnesses(*act);
        orders = orders
            .iter()
            .flat_map(|order| {
                here.iter().filter(|witness| fits(order, witness, acts, at)).map(|witness| {
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
fn fits(order: &[Witness], next: &Witness, acts: &[Act], at: usize) -> bool {
    let same_thread = |i: usize| order[i].thread == next.thread;
    let later = |i: usize| order[i].at < next.at;
    let meets = |i: usize| {
        order[i].addr.0 < next.addr.0 + u64::from(next.bytes)
            && next.addr.0 < order[i].addr.0 + u64::from(order[i].bytes)
    };
    match (acts.len(), at) {
        (_, 0) => true,
        (_, 1) => !same_thread(0) && (acts.len() == 4 || meets(0)),
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
        let forced = |n_failed, n_passed| Forced { n_failed, n_passed, is_telling: false };
        assert!(forced(2, 0).is_beyond(0.1) && !forced(2, 0).is_beyond(0.5));
        assert!(forced(2, 14).is_beyond(0.01) && !forced(2, 14).is_beyond(0.1));
        assert!(!forced(0, 16).is_beyond(0.01));
    }
}
