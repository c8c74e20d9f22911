//! Counts of what a trace holds.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::{ReadError, Trace};
use crate::event::{Access, Event, Op, is_event};
use crate::id::{Addr, ThreadId};
use crate::location::Locations;
use crate::record::Kind;

/// Counts of what a trace holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Events, as [`is_event`] counts them, and repeats.
    pub events: u64,
    /// Accesses among them that repeat earlier ones and were not recorded.
    pub repeats: u64,
    /// Threads that performed at least one event.
    pub threads: u64,
    /// Memory locations that were accessed, as [`Locations`] tells them apart.
    pub locations: u64,
    /// Locks that were taken or released; one that is made again after it was destroyed, or
    /// after its memory was freed, is another one.
    pub locks: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Whether the recording was closed.
    pub complete: bool,
    /// How many events of each kind, without the kinds that do not occur, in the order of
    /// their numbers. Here what is no event ([`Kind::Switch`] and its like) counts as well.
    pub kinds: Vec<(Kind, u64)>,
}

impl Stats {
    pub(super) fn of(trace: &Trace) -> Result<Self, ReadError> {
        let mut counter = Counter::default();
        for event in trace.events() {
            counter.note(event?);
        }
        let counts = |&kind: &Kind| (kind, counter.n_kinds[kind as usize]);
        let kinds: Vec<_> = Kind::ALL.iter().map(counts).filter(|&(_, n)| n > 0).collect();
        let recorded = kinds.iter().filter(|(kind, _)| is_event(*kind)).map(|(_, n)| n);
        Ok(Self {
            events: recorded.sum::<u64>().saturating_add(counter.n_repeats),
            repeats: counter.n_repeats,
            threads: counter.threads.len() as u64,
            locations: counter.locations.count(),
            locks: counter.n_locks_retired + counter.locks.len() as u64,
            bytes: trace.bytes(),
            complete: trace.complete(),
            kinds,
        })
    }
}

struct Counter {
    n_kinds: [u64; 256],
    n_repeats: u64,
    threads: FxHashSet<ThreadId>,
    // Whose event the last one was.
    last: Option<ThreadId>,
    locations: Locations,
    locks: BTreeSet<Addr>,
    n_locks_retired: u64,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            n_kinds: [0; 256],
            n_repeats: 0,
            threads: FxHashSet::default(),
            last: None,
            locations: Locations::new(),
            locks: BTreeSet::new(),
            n_locks_retired: 0,
        }
    }
}

impl Counter {
    fn note(&mut self, Event { thread, op, .. }: Event) {
        let kind = op.kind();
        self.n_kinds[kind as usize] += 1;
        if self.last != Some(thread) && is_event(kind) {
            self.threads.insert(thread);
            self.last = Some(thread);
        }
        match op {
            Op::Read(access) | Op::Write(access) => {
                let Access { addr, bytes, repeats, .. } = access;
                self.n_repeats = self.n_repeats.saturating_add(u64::from(repeats));
                self.locations.touch(addr, bytes);
            }
            Op::Repeats { n } => self.n_repeats = self.n_repeats.saturating_add(n),
            Op::Atomic(atomic) => self.locations.touch(atomic.addr, u64::from(atomic.bytes)),
            Op::Acquire(op) | Op::Release(op) => {
                self.locks.insert(op.lock);
            }
            Op::Destroy { object, .. } => {
                self.n_locks_retired += u64::from(self.locks.remove(&object));
            }
            Op::Alloc { block, room: bytes, .. } | Op::Free { block, bytes } => {
                self.locations.retire(block, bytes);
                self.retire_locks(block, bytes);
            }
            _ => {}
        }
    }

    fn retire_locks(&mut self, block: Addr, bytes: u64) {
        let end = Addr(block.0.saturating_add(bytes));
        while let Some(&lock) = self.locks.range(block..end).next() {
            self.locks.remove(&lock);
            self.n_locks_retired += 1;
        }
    }
}
