//! An access in one run, with everything that decides where else it could have happened.

use raddle_trace::id::{Addr, Pc, ThreadId};

use crate::locks::LockSet;
use crate::order::Moment;

/// An access in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The thread that performed it.
    pub thread: ThreadId,
    /// The code address.
    pub pc: Pc,
    /// What the access does.
    pub kind: AccessKind,
    /// First byte, or address of the object.
    pub addr: Addr,
    /// Size of the access.
    pub bytes: u32,
    /// Number of steps that the thread performed before it.
    pub at: u64,
    /// Its position in the trace.
    pub seq: u64,
    /// What the thread knew about other threads.
    pub moment: Moment,
    /// The same if every atomic load is ordered after the store that it reads.
    pub weak: Moment,
    /// Locks that the thread held.
    pub locks: LockSet,
}

/// What an access does to memory or to a synchronization object.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum AccessKind {
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Reads atomically.
    AtomicRead,
    /// Writes atomically, or reads and writes.
    AtomicWrite,
    /// Frees memory.
    Free,
    /// Acquires a lock.
    Acquire,
    /// Releases a lock.
    Release,
    /// Begins to wait.
    Wait,
    /// Decrements a semaphore.
    Lower,
    /// Reads the value of a semaphore.
    Ask,
    /// Wakes a waiting thread.
    Signal,
    /// Initializes a synchronization object.
    Init,
    /// Destroys a synchronization object.
    Destroy,
    /// Blocks on a lock forever.
    Block,
}

impl AccessKind {
    /// Whether it changes memory, or starts or ends an object's life.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AtomicWrite | Self::Free | Self::Init | Self::Destroy)
    }

    /// Whether it is an atomic operation.
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::AtomicRead | Self::AtomicWrite)
    }

    /// Whether it is on a synchronization object, which is used as a whole.
    #[must_use]
    pub const fn is_of_object(self) -> bool {
        matches!(
            self,
            Self::Acquire
                | Self::Release
                | Self::Wait
                | Self::Lower
                | Self::Ask
                | Self::Signal
                | Self::Init
                | Self::Destroy
                | Self::Block
        )
    }

    /// The letter used in patterns.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Read | Self::AtomicRead | Self::Ask => 'R',
            Self::Write | Self::AtomicWrite => 'W',
            Self::Free => 'F',
            Self::Acquire => 'A',
            Self::Release => 'U',
            Self::Wait => 'C',
            Self::Lower => 'L',
            Self::Signal => 'S',
            Self::Init => 'I',
            Self::Destroy => 'D',
            Self::Block => 'B',
        }
    }
}

impl Witness {
    /// Whether the two have a byte in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.addr.0 < other.addr.0.saturating_add(u64::from(other.bytes))
            && other.addr.0 < self.addr.0.saturating_add(u64::from(self.bytes))
    }

    /// Whether they are by two threads, have a byte in common, and at least one writes.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.thread != other.thread
            && (self.kind.writes() || other.kind.writes())
            && self.overlaps(other)
    }
}
