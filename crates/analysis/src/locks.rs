//! Sets of locks, each kept once.

use raddle_trace::id::Addr;
use rustc_hash::FxHashMap;

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    /// Which.
    pub lock: Addr,
    /// For reading, together with others.
    pub shared: bool,
}

/// A set of locks; 0 is the empty set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockSet(pub u32);

impl LockSet {
    /// No lock.
    pub const NONE: Self = Self(0);
}

/// All sets of locks that were held.
#[derive(Clone, Debug)]
pub struct LockSets {
    /// invariant: each sorted, and none twice.
    sets: Vec<Box<[Held]>>,
    numbers: FxHashMap<Box<[Held]>, LockSet>,
}

impl Default for LockSets {
    fn default() -> Self {
        let none: Box<[Held]> = Box::default();
        Self { sets: vec![none.clone()], numbers: [(none, LockSet::NONE)].into_iter().collect() }
    }
}

impl LockSets {
    /// The set of these locks.
    pub fn set(&mut self, held: impl Iterator<Item = Held>) -> LockSet {
        let mut locks: Vec<_> = held.collect();
        locks.sort_unstable();
        locks.dedup();
        let locks = locks.into_boxed_slice();
        if let Some(&set) = self.numbers.get(&locks) {
            return set;
        }
        let set = LockSet(self.sets.len() as u32);
        self.sets.push(locks.clone());
        self.numbers.insert(locks, set);
        set
    }

    /// The locks of a set.
    #[must_use]
    pub fn held(&self, set: LockSet) -> &[Held] {
        &self.sets[set.0 as usize]
    }

    /// Whether a lock that counts keeps two threads with these sets apart.
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

    #[test]
    fn equal_sets_have_one_number() {
        let mut sets = LockSets::default();
        let ab = sets.set([held(1, false), held(2, false)].into_iter());
        let ba = sets.set([held(2, false), held(1, false)].into_iter());
        assert_eq!(ab, ba);
        assert_eq!(sets.set([].into_iter()), LockSet::NONE);
    }

    #[test]
    fn readers_do_not_exclude_each_other() {
        let mut sets = LockSets::default();
        let reader = sets.set([held(1, true)].into_iter());
        let writer = sets.set([held(1, false)].into_iter());
        let other = sets.set([held(2, false)].into_iter());
        assert!(!sets.exclude(reader, reader, |_| true));
        assert!(sets.exclude(reader, writer, |_| true) && sets.exclude(writer, writer, |_| true));
        assert!(!sets.exclude(writer, other, |_| true));
    }
}
