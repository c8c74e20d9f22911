//! What is known of a run when its trace has been read.

use std::sync::OnceLock;

use crate::accesses::Cell;
use crate::kinds::Kinds;
use crate::lock_words::LockWords;
use crate::locks::{LockSet, LockSets};
use crate::nearby::Couple;
use crate::order::Clocks;
use crate::skeleton::Skeleton;
use crate::weave::Starts;
use crate::witness::Witness;

/// See the module.
#[derive(Debug, Default)]
pub struct Model {
    /// Who ran when, and who had to wait for whom.
    pub skeleton: Skeleton,
    /// What must come in the order seen.
    pub order: Clocks,
    /// The same, if each atomic store is taken to tell whoever loads it.
    pub weak: Clocks,
    /// Sets of locks.
    pub locks: LockSets,
    /// Locks made of atomics.
    pub words: LockWords,
    /// Kinds of accesses to shared memory.
    pub kinds: Kinds,
    /// Shared memory.
    pub cells: Vec<Cell>,
    /// Accesses to two locations.
    pub couples: Vec<Couple>,
    /// Locks taken while others were held.
    pub nestings: Vec<Nesting>,
    /// Waits on condition variables and the like, one per site and object.
    pub waits: Vec<Witness>,
    /// Wake-ups, one per site and object.
    pub signals: Vec<Witness>,
    /// Events read.
    pub n_events: u64,
    /// Accesses that found no room.
    pub n_dropped: u64,
    /// Where schedules begin, once one is asked for.
    pub(crate) starts: OnceLock<Starts>,
}

/// A lock is taken while another is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nesting {
    /// Where the outer one was taken.
    pub outer: Witness,
    /// The outer one is held for reading.
    pub outer_shared: bool,
    /// Where the inner one is taken; its locks are those held then.
    pub inner: Witness,
    /// The inner one is taken for reading.
    pub inner_shared: bool,
}

impl Model {
    /// Whether two locks sets keep their threads apart, by locks that are some.
    #[must_use]
    pub fn exclude(&self, a: LockSet, b: LockSet) -> bool {
        self.locks.exclude(a, b, |lock| !self.words.is_other(lock))
    }

    /// Whether one of two events of different threads must come before the other.
    #[must_use]
    pub fn ordered(&self, a: &Witness, b: &Witness) -> bool {
        self.order.before(a.moment, b.moment) || self.order.before(b.moment, a.moment)
    }
}
