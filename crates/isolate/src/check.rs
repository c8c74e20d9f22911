//! On-the-fly checks: is the last definition of a location part of a race, an atomicity
//! violation or an order violation? Figures 2 and 3 of the paper.
//!
//! Each suspicion is tested by executions in which the accesses come in another order, and the
//! locks around them with them. A race counts if the values that its accesses read or write
//! change; a violation if the failure goes away. If values cannot be seen (the memory is
//! freed, say), a race counts if the failure goes away.

use raddle_analysis::weave::Hold;
use raddle_analysis::witness::AccessKind;

use crate::location_history::{Access, LocationHistory};

/// What a suspicion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// Two accesses that nothing orders.
    Race,
    /// Two accesses of a thread that belong together, with another thread's between.
    Atomicity,
    /// Accesses in the wrong order.
    Order,
    /// A definition that is wrong by itself.
    Statement,
}

impl CauseKind {
    /// As the output has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::Atomicity => "atomicity",
            Self::Order => "order",
            Self::Statement => "statement",
        }
    }
}

/// What came of an execution with another order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flipped {
    /// It could be executed in that order.
    pub(crate) feasible: bool,
    /// Nothing failed.
    pub(crate) passed: bool,
    /// The values of the accesses, in the order of the question.
    pub(crate) values: Vec<Option<u64>>,
}

/// Whoever can execute the program in another order.
pub(crate) trait Trials {
    type Error;

    /// Executes the program so that these accesses come in this order; with values if they
    /// are wanted.
    fn flip(&mut self, order: &[&Access], with_values: bool) -> Result<Flipped, Self::Error>;

    /// Executes the program so that the first accesses come in this order, and then their
    /// thread goes on as far as it can before the last one comes.
    fn put_last(&mut self, order: &[&Access]) -> Result<Flipped, Self::Error>;

    /// The value that an access read or wrote in the failing execution.
    fn value(&self, access: &Access) -> Option<u64>;

    /// Whether an access wrote what was there already.
    fn is_silent(&self, access: &Access) -> bool;

    /// Another execution for a race was needed.
    fn count_race(&mut self);

    /// Another execution for a violation was needed.
    fn count_violation(&mut self);
}

/// In which ways threads may be held back, in the order in which they are tried.
pub(crate) const HOLDS: [Hold; 4] =
    [Hold::LockFree, Hold::Event, Hold::AllLockFree, Hold::Anywhere];

/// A cause that was confirmed: what, and the accesses in the order in which they failed.
pub(crate) type Found = (CauseKind, Vec<Access>);

/// Checks a definition: the access with the number `target` of a history.
pub(crate) fn check<T: Trials>(
    trials: &mut T,
    history: &LocationHistory,
    target: usize,
) -> Result<Option<Found>, T::Error> {
    if let Some(found) = race(trials, history, target)? {
        return Ok(Some(found));
    }
    violation(trials, history, target)
}

/// Figure 2.
fn race<T: Trials>(
    trials: &mut T,
    history: &LocationHistory,
    target: usize,
) -> Result<Option<Found>, T::Error> {
    let write = &history.accesses[target];
    let others = |access: &&Access| access.thread != write.thread;
    let last = history.accesses[..target].iter().rev().find(others);
    if let Some(last) = last
        && is_memory(last)
        && !history.synchronized(last, write)
        && is_harmful(trials, last, write)?
    {
        return Ok(Some((CauseKind::Race, vec![last.clone(), write.clone()])));
    }
    // The last one is what failed, or is nearest to it.
    let reads = |access: &&Access| {
        others(access)
            && !access.writes()
            && is_memory(access)
            && !history.synchronized(write, access)
    };
    if let Some(read) = history.accesses[target + 1..].iter().rev().find(reads)
        && is_harmful(trials, write, read)?
    {
        return Ok(Some((CauseKind::Race, vec![write.clone(), read.clone()])));
    }
    Ok(None)
}

/// Whether it is an access to memory, not to a synchronization object.
fn is_memory(access: &Access) -> bool {
    use AccessKind::{AtomicRead, AtomicWrite, Free, Read, Write};
    matches!(access.kind, AtomicRead | AtomicWrite | Free | Read | Write)
}

fn is_harmful<T: Trials>(
    trials: &mut T,
    first: &Access,
    second: &Access,
) -> Result<bool, T::Error> {
    let flipped = trials.flip(&[second, first], true)?;
    if !flipped.feasible {
        return Ok(false);
    }
    trials.count_race();
    let before = [trials.value(second), trials.value(first)];
    let known = |(before, after): (&Option<u64>, &Option<u64>)| Some((*before)? != (*after)?);
    let changes: Vec<Option<bool>> = before.iter().zip(&flipped.values).map(known).collect();
    Ok(match &changes[..] {
        [Some(one), Some(two)] => *one || *two,
        [Some(true), _] | [_, Some(true)] => true,
        _ => flipped.passed,
    })
}

/// Figure 3.
fn violation<T: Trials>(
    trials: &mut T,
    history: &LocationHistory,
    target: usize,
) -> Result<Option<Found>, T::Error> {
    let accesses = &history.accesses;
    let write = &accesses[target];
    // The nearest access of each place in the code comes first: the paper's choice is the very
    // nearest, but a loop between a test and its use has accesses of its own. A violation of
    // atomicity tells more than one of order.
    let mut ordered = None;
    let mut triples: Vec<[&Access; 3]> = Vec::new();
    let other = accesses[..target].iter().rposition(|access| access.thread != write.thread);
    if let Some(other) = other
        && !accesses[other + 1..target].iter().any(|access| access.thread == write.thread)
    {
        let middle = &accesses[other];
        let fits = |access: &&Access| access.thread == write.thread;
        let firsts = nearest(accesses[..other].iter().rev().filter(fits));
        let breaks = firsts.into_iter().filter(|first| first.writes() != middle.writes());
        triples.extend(breaks.map(|first| [first, middle, write]));
    }
    let is_read = |access: &&Access| !access.writes() && access.thread != write.thread;
    if let Some(read) = accesses[target + 1..].iter().rev().find(is_read) {
        let is_reader = |access: &&Access| access.thread == read.thread;
        let firsts = nearest(accesses[..target].iter().rev().filter(is_reader));
        triples.extend(firsts.into_iter().map(|first| [first, write, read]));
    }
    for [first, middle, last] in triples {
        // What changes nothing can come at any time.
        let changes = if middle.writes() { middle } else { last };
        if trials.is_silent(changes) {
            continue;
        }
        let kind = true_violation(trials, first, middle, last)?;
        let accesses = || vec![first.clone(), middle.clone(), last.clone()];
        match kind {
            Some(CauseKind::Atomicity) => return Ok(Some((CauseKind::Atomicity, accesses()))),
            Some(kind) => ordered = ordered.or_else(|| Some((kind, accesses()))),
            None => {}
        }
    }
    Ok(ordered)
}

/// The first of each place in the code, of few places.
fn nearest<'a>(accesses: impl Iterator<Item = &'a Access>) -> Vec<&'a Access> {
    let mut nearest: Vec<&Access> = Vec::new();
    for access in accesses {
        if nearest.len() == PLACES_MAX {
            break;
        }
        if !nearest.iter().any(|other| other.pc == access.pc) {
            nearest.push(access);
        }
    }
    nearest
}

/// How many places in the code a violation may begin at.
const PLACES_MAX: usize = 3;

/// The special check of Figure 3 at the end of an execution: two accesses in the wrong order.
pub(crate) fn order<T: Trials>(
    trials: &mut T,
    history: &LocationHistory,
    target: usize,
) -> Result<Option<Found>, T::Error> {
    let accesses = &history.accesses;
    let write = &accesses[target];
    let is_other = |access: &&Access| access.thread != write.thread;
    let read = accesses[target + 1..].iter().filter(is_other).find(|access| !access.writes());
    let last = accesses[..target].iter().rev().find(is_other);
    let pairs = [read.map(|read| (write, read)), last.map(|last| (last, write))];
    if trials.is_silent(write) {
        return Ok(None);
    }
    for (first, second) in pairs.into_iter().flatten() {
        let flipped = trials.flip(&[second, first], false)?;
        if !flipped.feasible {
            continue;
        }
        trials.count_violation();
        if flipped.passed {
            return Ok(Some((CauseKind::Order, vec![first.clone(), second.clone()])));
        }
    }
    Ok(None)
}

/// The middle one before the others, and behind them: does the failure go away?
fn true_violation<T: Trials>(
    trials: &mut T,
    first: &Access,
    middle: &Access,
    last: &Access,
) -> Result<Option<CauseKind>, T::Error> {
    let mut n_passed = 0;
    let before = trials.flip(&[middle, first, last], false)?;
    let after = trials.put_last(&[first, last, middle])?;
    for flipped in [before, after] {
        if flipped.feasible {
            trials.count_violation();
            n_passed += u32::from(flipped.passed);
        }
    }
    Ok(match n_passed {
        2 => Some(CauseKind::Atomicity),
        1 => Some(CauseKind::Order),
        _ => None,
    })
}
