//! Append-only lists in the history file, and numbered values.

use core::hash::{Hash, Hasher as _};
use core::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// A list. A value is stored before it is counted, so what is counted is complete whenever the
/// target dies.
pub(super) struct Log<T: 'static> {
    // invariant: `room` values of T, permanently; any bits are a valid T.
    start: *mut T,
    room: usize,
    len: &'static AtomicU32,
}

impl<T: Copy> Log<T> {
    /// # Safety
    /// There are permanently `room` values at `start`, which nobody else uses; any bits are a
    /// valid `T`.
    pub(super) unsafe fn new(start: *mut T, room: usize, len: &'static AtomicU32) -> Self {
        Self { start, room, len }
    }

    /// Number of values.
    fn len(&self) -> usize {
        // The program may have overwritten it.
        (self.len.load(Ordering::Relaxed) as usize).min(self.room)
    }

    pub(super) fn get(&self, number: u32) -> T {
        let number = (number as usize).min(self.room - 1);
        // SAFETY: within the room, and any bits are a valid value.
        unsafe { self.start.add(number).read() }
    }

    pub(super) fn set(&mut self, number: u32, value: T) {
        let number = (number as usize).min(self.room - 1);
        // SAFETY: within the room, which is ours alone.
        unsafe { self.start.add(number).write(value) }
    }

    /// The number of the new value; none if there is no room.
    pub(super) fn push(&mut self, value: T) -> Option<u32> {
        let len = self.len();
        if len == self.room {
            return None;
        }
        self.set(len as u32, value);
        self.len.store(len as u32 + 1, Ordering::Release);
        Some(len as u32)
    }
}

/// Distinct values, by number.
pub(super) struct Numbered<T: 'static> {
    pub(super) log: Log<T>,
    numbers: HashTable<u32>,
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    pub(super) fn new(log: Log<T>) -> Self {
        Self { log, numbers: HashTable::new() }
    }

    pub(super) fn get(&self, number: u32) -> T {
        self.log.get(number)
    }

    /// The number of a value, which is added if it is new; none if there is no room.
    pub(super) fn number(&mut self, value: T) -> Option<u32> {
        let (log, hash) = (&self.log, hash(&value));
        if let Some(&number) = self.numbers.find(hash, |&number| log.get(number) == value) {
            return Some(number);
        }
        let number = self.log.push(value)?;
        let log = &self.log;
        self.numbers.insert_unique(hash, number, |&number| self::hash(&log.get(number)));
        Some(number)
    }
}

fn hash<T: Hash>(value: &T) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}
