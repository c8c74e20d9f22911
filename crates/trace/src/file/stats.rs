//! Statistics of a trace.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::{ReadError, Trace};
use crate::event::{Access, Event, Op, is_event};
use crate::id::{Addr, ThreadId};
use crate::location::Locations;
use crate::record::Kind;

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Number of events, as defined by [`is_event`], including repeats.
    pub events: u64,
    /// Number of accesses among them that repeat earlier ones and were not recorded.
    pub repeats: u64,
    /// Number of threads that performed at least one event.
    pub threads: u64,
    /// Number of memory locations accessed, as defined by [`Locations`].
    pub locations: u64,
    /// Number of locks acquired or released; a lock that is created again after it was destroyed,
    /// or after its memory was freed, counts again.
    pub locks: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Whether the recording was finished.
    pub complete: bool,
    /// Number of events of each kind that occurs, in order of their numbers. Includes kinds that
    /// are not events ([`Kind::Switch`] and its like).
    pub kinds: Vec<(Kind, u64)>,
}

impl Trace {
    /// Computes the statistics. Reads the whole trace.
    pub fn stats(&self) -> Result<Stats, ReadError> {
        let mut counter = Counter::default();
        for event in self.events() {
            counter.count(event?);
        }
        let counts = |&kind: &Kind| (kind, counter.n_kinds[kind as usize]);
        let kinds: Vec<_> = Kind::ALL.iter().map(counts).filter(|&(_, n)| n > 0).collect();
        let recorded = kinds.iter().filter(|(kind, _)| is_event(*kind)).map(|(_, n)| n);
        Ok(Stats {
            events: recorded.sum::<u64>().saturating_add(counter.n_repeats),
            repeats: counter.n_repeats,
            threads: counter.threads.len() as u64,
            locations: counter.locations.count(),
            locks: counter.n_locks_retired + counter.locks.len() as u64,
            bytes: self.bytes(),
            complete: self.complete(),
            kinds,
        })
    }
}

struct Counter {
    n_kinds: [u64; 256],
    n_repeats: u64,
    threads: FxHashSet<ThreadId>,
    // The thread of the last event.
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
    fn count(&mut self, Event { thread, op, .. }: Event) {
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
            Op::Alloc { block, room: bytes, .. }
            | Op::Free { block, bytes }
            | Op::Map { addr: block, bytes }
            | Op::Unmap { addr: block, bytes } => {
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
