//! Suspects, checked by executing them.
//!
//! A suspect is forced on a run that passed: its accesses in the order that is suspected. If
//! that makes it fail in the same way, the suspect is a cause. And it is flipped in a run that
//! failed: if the failure stays though the order is another one, it is none. A flip after which
//! nothing fails says little by itself, as most changes to a run that fails by chance make it
//! pass; it counts when no passing run could be forced.

use anyhow::Result;
use raddle_analysis::localize::facts::{Act, Pair, Pattern};
use raddle_analysis::localize::procedures::Suspect;
use raddle_analysis::witness::Witness;

use super::again::{Again, Change};
use crate::hunt::team::Team;

/// Combinations of occurrences that are tried.
const TRIES_MAX: usize = 4;

/// Runs to be changed.
pub(crate) struct Court<'a> {
    pub(crate) team: &'a Team,
    pub(crate) failed: Option<&'a Again>,
    pub(crate) passed: Vec<Again>,
    /// How runs of this kind fail.
    pub(crate) key: String,
}

/// What executions say of a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Whether passing runs fail when it is forced on them; none if that was not possible.
    pub(crate) forced: Option<bool>,
    /// Whether the failure is gone when it is flipped; none if that was not possible.
    pub(crate) gone: Option<bool>,
}

impl Evidence {
    /// Whether it is a cause; none if that cannot be told.
    pub(crate) const fn confirmed(self) -> Option<bool> {
        match self {
            Self { forced: Some(forced), .. } => Some(forced),
            Self { gone, .. } => gone,
        }
    }
}

impl Court<'_> {
    /// What executions say of a pattern.
    pub(crate) fn pattern(&self, pattern: &Pattern, cpu: Option<u32>) -> Result<Evidence> {
        let forced = self.forced(&pattern.acts, cpu)?;
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
                forced: self.forced(&[pair.head, pair.tail], cpu)?,
                gone: self.gone(pair, cpu)?,
            }),
            // One thread's accesses around those of the other.
            [one, two] => {
                let orders = [
                    [one.head, one.tail, two.head, two.tail],
                    [two.head, two.tail, one.head, one.tail],
                    [one.head, two.head, one.tail, two.tail],
                ];
                let mut forced = None;
                for order in orders {
                    forced = either(forced, self.forced(&order, cpu)?);
                    if forced == Some(true) {
                        break;
                    }
                }
                let gone = either(self.gone(one, cpu)?, self.gone(two, cpu)?);
                Ok(Evidence { forced, gone })
            }
            _ => Ok(Evidence::default()),
        }
    }

    /// Whether passing runs fail with the accesses in this order.
    fn forced(&self, acts: &[Act], cpu: Option<u32>) -> Result<Option<bool>> {
        let mut tried = None;
        for run in &self.passed {
            for order in orders(run, acts) {
                match run.with_order(self.team, &order, cpu)? {
                    Change::Fails(key) if key == self.key => return Ok(Some(true)),
                    Change::Impossible => {}
                    Change::Fails(_) | Change::Passes => tried = Some(false),
                }
            }
        }
        Ok(tried)
    }

    /// Whether the failure is gone with the pair the other way round, at any of its occurrences.
    fn gone(&self, pair: Pair, cpu: Option<u32>) -> Result<Option<bool>> {
        let Some(run) = self.failed else { return Ok(None) };
        let mut gone = None;
        for order in orders(run, &[pair.tail, pair.head]) {
            match run.with_order(self.team, &order, cpu)? {
                Change::Fails(key) if key == self.key => gone = Some(false),
                Change::Impossible => {}
                Change::Fails(_) | Change::Passes => return Ok(Some(true)),
            }
        }
        Ok(gone)
    }
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
