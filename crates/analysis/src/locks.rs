//! Lock sets, each kept once.

use raddle_trace::id::Addr;
use rustc_hash::FxHashMap;

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    /// Address of the lock.
    pub lock: Addr,
    /// Whether it is held for reading.
    pub shared: bool,
}

/// A lock set, by number; 0 is the empty set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockSet(pub u32);

impl LockSet {
    /// The empty set.
    pub const NONE: Self = Self(0);
}

/// All lock sets that were held.
#[derive(Clone, Debug)]
pub struct LockSets {
    /// invariant: each sorted, and none twice.
    sets: Vec<Box<[Held]>>,
    numbers: FxHashMap<Box<[Held]>, LockSet>,
    /// The result of adding a lock to a set.
    with: FxHashMap<(LockSet, Held), LockSet>,
}

impl Default for LockSets {
    fn default() -> Self {
        let none: Box<[Held]> = Box::default();
        Self {
            sets: vec![none.clone()],
            numbers: [(none, LockSet::NONE)].into_iter().collect(),
            with: FxHashMap::default(),
        }
    }
}

impl LockSets {
    /// Number of sets; ids are below it.
    #[must_use]
    pub fn n_sets(&self) -> usize {
        self.sets.len()
    }

    /// A set with one more lock.
    pub fn with(&mut self, set: LockSet, new: Held) -> LockSet {
        if let Some(&set) = self.with.get(&(set, new)) {
            return set;
        }
        let mut locks = self.held(set).to_vec();
        locks.push(new);
        locks.sort_unstable();
        locks.dedup();
        let locks = locks.into_boxed_slice();
        let made = LockSet(self.sets.len() as u32);
        let made = *self.numbers.entry(locks.clone()).or_insert(made);
        if made.0 as usize == self.sets.len() {
            self.sets.push(locks);
        }
        self.with.insert((set, new), made);
        made
    }

    /// The locks of a set.
    #[must_use]
    pub fn held(&self, set: LockSet) -> &[Held] {
        &self.sets[set.0 as usize]
    }

    /// Whether a lock for which `counts` holds excludes threads with these sets.
    #[must_use]
    pub fn exclude(&self, a: LockSet, b: LockSet, counts: impl Fn(Addr) -> bool) -> bool {
        if a == LockSet::NONE || b == LockSet::NONE {
            return false;
        }
        self.held(a).iter().any(|held| {
            self.held(b)
                .iter()
                .any(|other| held.lock == other.lock && !(held.shared && other.shared))
                && counts(held.lock)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(lock: u64, shared: bool) -> Held {
        Held { lock: Addr(lock), shared }
    }

    fn set(sets: &mut LockSets, held: &[Held]) -> LockSet {
        held.iter().fold(LockSet::NONE, |set, &held| sets.with(set, held))
    }

    #[test]
    fn equal_sets_have_one_number() {
        let mut sets = LockSets::default();
        let ab = set(&mut sets, &[held(1, false), held(2, false)]);
        let ba = set(&mut sets, &[held(2, false), held(1, false)]);
        assert_eq!(ab, ba);
        assert_eq!(set(&mut sets, &[held(2, false), held(1, false), held(2, false)]), ab);
        assert_eq!(set(&mut sets, &[]), LockSet::NONE);
    }

    #[test]
    fn readers_do_not_exclude_each_other() {
        let mut sets = LockSets::default();
        let reader = set(&mut sets, &[held(1, true)]);
        let writer = set(&mut sets, &[held(1, false)]);
        let other = set(&mut sets, &[held(2, false)]);
        assert!(!sets.exclude(reader, reader, |_| true));
        assert!(sets.exclude(reader, writer, |_| true) && sets.exclude(writer, writer, |_| true));
        assert!(!sets.exclude(writer, other, |_| true));
    }
}
