//! An access in one execution, with all that decides where else it could have happened.

use raddle_trace::id::{Addr, Pc, ThreadId};

use crate::locks::LockSet;
use crate::order::Moment;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Who.
    pub thread: ThreadId,
    /// Where in the program.
    pub pc: Pc,
    /// What.
    pub deed: Deed,
    /// First byte, or the object.
    pub addr: Addr,
    /// How many bytes.
    pub bytes: u32,
    /// Steps that the thread performs before it.
    pub at: u64,
    /// Its number in the trace.
    pub seq: u64,
    /// What the thread knew of others.
    pub moment: Moment,
    /// The same, if each atomic store is taken to tell whoever loads it.
    pub weak: Moment,
    /// Locks that the thread held.
    pub locks: LockSet,
}

/// What a thread does to memory, or to an object.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Deed {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An atomic read.
    AtomicRead,
    /// An atomic write, or read and write.
    AtomicWrite,
    /// The memory is freed.
    Free,
    /// A lock is taken.
    Acquire,
    /// A lock is given back.
    Release,
    /// A wait begins.
    Wait,
    /// A semaphore is lowered.
    Lower,
    /// A semaphore is asked for its value.
    Ask,
    /// A wake-up is sent.
    Signal,
    /// A synchronization object comes to be.
    Init,
    /// A synchronization object ends.
    Destroy,
    /// A lock is waited for in vain.
    Block,
}

impl Deed {
    /// Whether it changes what is there.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AtomicWrite | Self::Free | Self::Init | Self::Destroy)
    }

    /// Whether it is atomic by itself.
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::AtomicRead | Self::AtomicWrite)
    }

    /// Whether it is to a synchronization object, which is used as a whole.
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

    /// In one letter, as patterns have it.
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
    /// Whether the two touch a common byte.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.addr.0 < other.addr.0 + u64::from(other.bytes)
            && other.addr.0 < self.addr.0 + u64::from(self.bytes)
    }

    /// Whether they are from two threads, on a common byte, and one of them writes.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.thread != other.thread
            && (self.deed.writes() || other.deed.writes())
            && self.overlaps(other)
    }
}
