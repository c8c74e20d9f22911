//! Locks built from atomics: Rust's mutexes, `atomic_flag`, hand-written spin locks.
//!
//! A word counts as a lock as long as it behaves like one: a thread makes it nonzero with a
//! read-modify-write that found zero, and the same thread makes it zero again; in between, others
//! at most mark that they wait (nonzero to a larger value). The first deviation, such as a plain
//! store of nonzero or a zero stored by another thread, and it never was a lock: lock sets
//! computed afterwards omit it. A word that is still held when the trace ends is not a lock
//! either, but a claim («only the first thread does this»).
//!
//! A thread that finds a lock taken often waits for it and acquires it in code that is not
//! instrumented, such as Rust's standard library. So a thread that waited for such a word and
//! then does something else holds it; and a thread that releases one that nobody acquired has
//! acquired it unseen.
//!
//! Misses ticket locks, counting reader-writer locks, and locks whose free state is not 0.

use raddle_trace::event::{Atomic, AtomicAction};
use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::FxHashMap;

/// The words that behave like locks.
#[derive(Clone, Debug, Default)]
pub struct LockWords {
    words: FxHashMap<Addr, Word>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Word {
    owner: Option<ThreadId>,
    n_cycles: u32,
    no_lock: bool,
}

/// What an atomic operation does to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Acquires it.
    Acquire,
    /// Releases it.
    Release,
    /// None of these.
    Nothing,
}

impl LockWords {
    /// Adds the next atomic operation.
    pub fn push(&mut self, thread: ThreadId, atomic: &Atomic) -> Meaning {
        let Atomic { action, before, after, .. } = *atomic;
        if matches!(action, AtomicAction::Load | AtomicAction::Miss) {
            return Meaning::Nothing;
        }
        let word = self.words.entry(atomic.addr).or_default();
        if word.no_lock {
            return Meaning::Nothing;
        }
        let rmw = action != AtomicAction::Store;
        match (before, after, word.owner) {
            (0, 0, _) => Meaning::Nothing,
            (0, _, None) if rmw => {
                word.owner = Some(thread);
                Meaning::Acquire
            }
            (_, 0, Some(owner)) if owner == thread => {
                word.owner = None;
                word.n_cycles += 1;
                Meaning::Release
            }
            (_, 0, None) if rmw && word.n_cycles > 0 => Meaning::Nothing,
            (_, 0, _) | (0, _, _) => {
                word.no_lock = true;
                Meaning::Nothing
            }
            _ => {
                word.no_lock |= !rmw || after < before;
                Meaning::Nothing
            }
        }
    }

    /// Whether a thread that waited for a word and now continues has acquired it as a lock.
    pub fn awaited(&mut self, thread: ThreadId, addr: Addr) -> bool {
        let is_free = |word: &&mut Word| !word.no_lock && word.n_cycles > 0 && word.owner.is_none();
        match self.words.get_mut(&addr).filter(is_free) {
            Some(word) => {
                word.owner = Some(thread);
                true
            }
            None => false,
        }
    }

    /// Whether the word is a lock, as far as the trace shows.
    #[must_use]
    pub fn is_lock(&self, addr: Addr) -> bool {
        self.words
            .get(&addr)
            .is_some_and(|word| !word.no_lock && word.owner.is_none() && word.n_cycles > 0)
    }

    /// Whether the word has behaved like a lock so far.
    #[must_use]
    pub fn looks_like_lock(&self, addr: Addr) -> bool {
        self.words.get(&addr).is_some_and(|word| !word.no_lock && word.n_cycles > 0)
    }

    /// Whether the word is known not to be a lock.
    #[must_use]
    pub fn is_other(&self, addr: Addr) -> bool {
        self.words.contains_key(&addr) && !self.is_lock(addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Addr = Addr(0x10);

    /// Thread, action, before, after.
    fn check(ops: &[(u32, AtomicAction, u64, u64)], is_lock: bool) {
        let mut words = LockWords::default();
        for &(thread, action, before, after) in ops {
            let atomic = Atomic { addr: X, bytes: 4, action, order: 5, before, after };
            words.push(ThreadId(thread), &atomic);
        }
        assert_eq!(words.is_lock(X), is_lock);
    }

    use AtomicAction::{Load, Miss, Store, Swap, Update};

    #[test]
    fn a_futex_mutex_is_a_lock() {
        check(&[(1, Swap, 0, 1), (1, Update, 1, 0), (2, Swap, 0, 1), (2, Update, 1, 0)], true);
        // Contended: the second thread marks it, and acquires it marked.
        check(
            &[
                (1, Swap, 0, 1),
                (2, Miss, 1, 1),
                (2, Update, 1, 2),
                (1, Update, 2, 0),
                (2, Update, 0, 2),
                (2, Update, 2, 0),
            ],
            true,
        );
    }

    #[test]
    fn a_lock_that_is_taken_unseen_is_one() {
        check(&[(1, Swap, 0, 1), (1, Update, 2, 0), (2, Update, 2, 0), (3, Swap, 0, 1)], false);
        check(&[(1, Swap, 0, 1), (1, Update, 2, 0), (2, Update, 2, 0)], true);
        let mut words = LockWords::default();
        assert!(!words.awaited(ThreadId(2), X));
        for (action, before, after) in [(Swap, 0, 1), (Update, 2, 0)] {
            let atomic = Atomic { addr: X, bytes: 4, action, order: 5, before, after };
            words.push(ThreadId(1), &atomic);
        }
        assert!(words.awaited(ThreadId(2), X));
        let atomic = Atomic { addr: X, bytes: 4, action: Update, order: 5, before: 2, after: 0 };
        assert_eq!(words.push(ThreadId(2), &atomic), Meaning::Release);
    }

    #[test]
    fn a_flag_a_claim_and_a_count_are_no_locks() {
        check(&[(1, Store, 0, 1), (2, Load, 1, 1)], false);
        check(&[(1, Swap, 0, 1)], false);
        check(&[(1, Update, 0, 1), (2, Update, 1, 2), (1, Update, 2, 1), (2, Update, 1, 0)], false);
    }
}
