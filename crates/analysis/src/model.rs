//! What is known of a run after its trace has been read.

use std::sync::OnceLock;

use crate::accesses::Cell;
use crate::classes::AccessClasses;
use crate::generations::Generations;
use crate::lock_words::LockWords;
use crate::locks::{LockSet, LockSets};
use crate::nearby::CoupledPair;
use crate::order::Clocks;
use crate::skeleton::Skeleton;
use crate::starts::Starts;
use crate::witness::Witness;

/// What a run did, and which other orders it allows.
#[derive(Debug, Default)]
pub struct Model {
    /// Which thread ran when, and what it had to wait for.
    pub skeleton: Skeleton,
    /// The order that must be kept.
    pub order: Clocks,
    /// The same if every atomic load is ordered after the store that it reads.
    pub weak: Clocks,
    /// Lock sets.
    pub locks: LockSets,
    /// Locks built from atomics.
    pub words: LockWords,
    /// Classes of accesses to shared memory.
    pub classes: AccessClasses,
    /// Accesses to shared memory, by granule.
    pub cells: Vec<Cell>,
    /// Accesses of a thread to two locations.
    pub coupled_pairs: Vec<CoupledPair>,
    /// When memory got another meaning.
    pub generations: Generations,
    /// Locks acquired while others were held.
    pub nestings: Vec<Nesting>,
    /// Waits on condition variables and the like, one per site and object.
    pub waits: Vec<Witness>,
    /// Wake-ups, one per site and object.
    pub signals: Vec<Witness>,
    /// Number of events read.
    pub n_events: u64,
    /// Accesses that were dropped for lack of room.
    pub n_dropped: u64,
    /// Starting points of schedules, computed on first use.
    pub(crate) starts: OnceLock<Starts>,
}

/// A lock acquired while another is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nesting {
    /// Where the outer lock was acquired.
    pub outer: Witness,
    /// Whether the outer lock is held for reading.
    pub outer_shared: bool,
    /// Where the inner lock is acquired; `locks` are those held at that time.
    pub inner: Witness,
    /// Whether the inner lock is acquired for reading.
    pub inner_shared: bool,
}

impl Model {
    /// Whether two lock sets exclude each other, not counting words that turned out not to be
    /// locks.
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
