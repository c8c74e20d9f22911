//! The 16-byte record, as the runtime appends it.
//!
//! ```text
//! word 0: kind (8 bits) | info (8 bits) | operand, most often an address (48 bits)
//! word 1: extra (16 bits) | pc (48 bits)
//! ```
//! A record is what one callback can append with two stores. Whatever does not fit follows in
//! [`Kind::More`] records, whose second word is 64 bits of payload. Kind 0 is never written, so
//! untouched memory is not a record.
//!
//! Under control all threads append to one stream, in the order in which the events happened;
//! [`Kind::Switch`] says whose events follow. In free mode each thread has its own stream, whose
//! records follow [`Kind::Time`] records.
//!
//! A record is stored before the cursor that covers it, and both lie in memory that the parent
//! shares, so a target that is killed at any instant loses nothing that it performed. The
//! parent packs records while the target runs (`codec`). The two
//! sides wake each other when a ring is half full or half empty, not at each chunk.

/// One record. The words are public because reader, writer and runtime all handle them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C, align(16))]
pub struct Record {
    /// Kind, info and operand.
    pub head: u64,
    /// Extra and pc, or the payload of a [`Kind::More`].
    pub tail: u64,
}

const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// The size of a record.
pub const RECORD_BYTES: usize = 16;
/// The lower 48 bits of a word.
pub const LOW: u64 = (1 << 48) - 1;

impl Record {
    /// A record with all of its fields.
    #[must_use]
    pub const fn new(kind: Kind, info: u8, operand: u64, extra: u16, pc: u64) -> Self {
        Self {
            head: (kind as u64) << 56 | (info as u64) << 48 | operand & LOW,
            tail: (extra as u64) << 48 | pc & LOW,
        }
    }

    /// 64 bits of payload for the previous record.
    #[must_use]
    pub const fn more(payload: u64) -> Self {
        Self { head: (Kind::More as u64) << 56, tail: payload }
    }

    /// Its kind, or none if the byte is undefined.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        Kind::from_u8((self.head >> 56) as u8)
    }

    /// 8 bits whose meaning depends on the kind.
    #[must_use]
    pub const fn info(self) -> u8 {
        (self.head >> 48) as u8
    }

    /// 48 bits whose meaning depends on the kind, usually an address.
    #[must_use]
    pub const fn operand(self) -> u64 {
        self.head & LOW
    }

    /// 16 bits whose meaning depends on the kind.
    #[must_use]
    pub const fn extra(self) -> u16 {
        (self.tail >> 48) as u16
    }

    /// The code address.
    #[must_use]
    pub const fn pc(self) -> u64 {
        self.tail & LOW
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $value:literal),* $(,)?) => {
        /// The kind of a record. Numbers are part of the file format and never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name = $value),* }

        impl Kind {
            /// The kind with this number.
            #[must_use]
            pub const fn from_u8(byte: u8) -> Option<Self> {
                match byte { $($value => Some(Self::$name),)* _ => None }
            }

            /// Every kind, in order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

kinds! {
    /// Payload of the previous record.
    More = 1,
    /// A plain read of `info & SIZE` bytes at the operand, flags in `info`; `extra` is the number
    /// of repeats before it (see [`Kind::Repeats`]).
    Read = 2,
    /// A plain write of `info & SIZE` bytes at the operand, flags and `extra` as for Read.
    Write = 3,
    /// A read of a range. More: its length in bytes.
    ReadRange = 4,
    /// A write of a range. More: its length in bytes.
    WriteRange = 5,
    /// Function entry; the operand is its return address.
    Enter = 6,
    /// Function exit.
    Leave = 7,
    /// An atomic load, `info` bytes, `extra` its memory order. More: the value.
    AtomicLoad = 8,
    /// An atomic store, `info` bytes, `extra` its memory order. More: the value before, the value stored.
    AtomicStore = 9,
    /// An atomic exchange or fetch-and-op. More: the value before, the value after.
    AtomicUpdate = 10,
    /// A compare-and-exchange that succeeded. More: the value before, the value after.
    AtomicSwap = 11,
    /// A compare-and-exchange that failed. More: the value found, the value expected.
    AtomicMiss = 12,
    /// A fence; `extra` its memory order.
    Fence = 13,
    /// Memory was mapped at the operand. More: its size.
    Map = 14,
    /// The memory at the operand is unmapped, which counts as a write of all of it. More: its size.
    Unmap = 15,

    /// The thread in the operand holds the turn from here on; `info` says why the previous thread
    /// gave it up (a [`Switch`] code), `pc` where that thread will continue. More: number of
    /// steps of the previous thread's stretch.
    Switch = 16,
    /// A choice other than a switch: of `info` alternatives, the one in the operand was chosen.
    Choice = 17,
    /// The thread in the operand was created by the running one.
    Spawn = 18,
    /// The running thread starts. More: its parent; stack low; stack high.
    Begin = 19,
    /// The running thread ends.
    End = 20,
    /// The thread in the operand was joined.
    Join = 21,
    /// The thread in the operand was detached.
    Detach = 22,

    /// A lock (the operand) was acquired; `info` is its [`Lock`] code, with `SHARED` if for
    /// reading, `TRIED` if the call does not wait.
    Acquire = 24,
    /// A lock was released; `info` as for Acquire.
    Release = 25,
    /// A synchronization object (the operand) was initialized; `info` is its [`Lock`] code.
    Init = 26,
    /// A synchronization object was destroyed; `info` is its [`Lock`] code.
    Destroy = 27,
    /// A wait on the condition variable in the operand begins; its mutex was released just before. More: the mutex.
    CondWait = 28,
    /// The wait ended: `info` is a [`Wake`] code, `extra` the thread that woke it. The mutex is
    /// acquired next.
    CondWake = 29,
    /// One waiter is woken, if there is one: `info` is the number woken.
    CondSignal = 30,
    /// All waiters are woken: `extra` is the number woken.
    CondBroadcast = 31,
    /// The semaphore in the operand was incremented.
    SemPost = 32,
    /// The semaphore in the operand was decremented; `info` has `TRIED` if the call does not
    /// wait.
    SemWait = 33,
    /// A thread reached the barrier in the operand.
    BarrierEnter = 34,
    /// A thread left the barrier; `info` is 1 for the serial thread.
    BarrierLeave = 35,
    /// One-time initialization (`pthread_once`, a C++ static) begins.
    OnceBegin = 36,
    /// One-time initialization ended; `info` is 1 if an exception abandoned it.
    OnceEnd = 37,
    /// One-time initialization was already complete.
    OncePass = 38,
    /// Everything before is released to threads that perform [`Kind::After`] on the operand.
    Before = 39,
    /// Acquires what was released at the operand.
    After = 40,
    /// A futex wait begins. More: the expected value.
    FutexWait = 41,
    /// A futex wait ended: `info` is a [`Wake`] code, `extra` the thread that woke it.
    FutexWoken = 42,
    /// A futex wake; `extra` is the number of threads woken.
    FutexWake = 43,
    /// The value of the semaphore in the operand was read, or an attempt to decrement it failed.
    SemAsk = 44,
    /// Bytes, a connection, or an end of file are put into the channel in the operand, which
    /// releases everything before to those who receive from it; `info` is its [`Channel`] code,
    /// with `WAITED` if the thread had to wait for room.
    Send = 45,
    /// Something was received from the channel in the operand, or seen in it; `info` is its
    /// [`Channel`] code. Acquires what was released by sending.
    Receive = 46,

    /// A block of memory was allocated at the operand. Extra: bytes beyond the requested size.
    /// More: the requested size.
    Alloc = 48,
    /// The block at the operand is freed, which counts as a write of all of it. More: its size.
    Free = 49,
    /// The thread sleeps. More: nanoseconds.
    Sleep = 50,
    /// The thread yields the processor.
    Yield = 51,
    /// A call that may block on the file descriptor in the operand begins.
    Block = 52,
    /// The call that began with [`Kind::Block`] is over.
    Unblock = 53,
    /// Virtual time jumped. More: nanoseconds since the start of the run.
    Clock = 54,
    /// The process is about to exit; `info` is the status.
    Exit = 55,
    /// The process forked; the child continues without raddle.
    Fork = 56,
    /// A signal (`info`) was raised or arrived; the operand is the fault address.
    Signal = 57,
    /// The start of a region that the user marked as atomic.
    UnitBegin = 58,
    /// The end of the region.
    UnitEnd = 59,
    /// In free mode: the next record of this stream happened at this time stamp. More: time stamp counter.
    Time = 60,
    /// The running thread continues as the fiber in the operand.
    Fiber = 61,
    /// The running thread performs a step other than a plain access: the following event, or one
    /// without another record. Plain accesses are steps by themselves.
    Step = 62,
    /// The operand is the number of plain accesses that the running thread performed and that
    /// were not recorded, since each repeats one that it had already performed twice since it
    /// last did anything other than accesses and calls.
    Repeats = 63,
}

/// In `info` of a plain access: its size in bytes.
pub const SIZE: u8 = 0x1f;
/// In `info` of a plain access: through a volatile lvalue.
pub const VOLATILE: u8 = 0x20;
/// In `info` of a plain access: to an object's virtual table pointer.
pub const VPTR: u8 = 0x40;
/// In `info` of a lock operation: for reading.
pub const SHARED: u8 = 0x40;
/// In `info` of a lock operation: by a call that does not wait.
pub const TRIED: u8 = 0x80;
/// In `info` of a lock operation: its [`Lock`] code.
pub const LOCK: u8 = 0x0f;
/// In `info` of [`Kind::Send`]: there was no room at first.
pub const WAITED: u8 = 0x80;
/// In `info` of [`Kind::Send`] and [`Kind::Receive`]: the [`Channel`] code.
pub const CHANNEL: u8 = 0x0f;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident: $($(#[$vdoc:meta])* $variant:ident = $value:literal),* $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "std", serde(rename_all = "kebab-case"))]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $value),* }

        impl $name {
            /// The value with this number.
            #[must_use]
            pub const fn from_u8(byte: u8) -> Option<Self> {
                match byte { $($value => Some(Self::$variant),)* _ => None }
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// Why a thread gave up the turn.
    Switch:
    /// There was no previous thread.
    Start = 0,
    /// The policy chose another thread.
    Preempt = 1,
    /// It is blocked.
    Blocked = 2,
    /// It has ended.
    Ended = 3,
    /// It yielded, or spins.
    Yielded = 4,
    /// It lost the turn since it made no progress; not deterministic.
    Taken = 5,
}

codes! {
    /// The kind of a synchronization object.
    Lock:
    /// A mutex.
    Mutex = 1,
    /// A reader-writer lock.
    RwLock = 2,
    /// A spin lock.
    Spin = 3,
    /// A condition variable.
    Cond = 4,
    /// A semaphore.
    Semaphore = 5,
    /// A barrier.
    Barrier = 6,
    /// A lock that the program described by annotations.
    Annotated = 7,
}

codes! {
    /// What a channel is made of.
    Channel:
    /// A pipe or FIFO, from its writers to its readers.
    Pipe = 1,
    /// A direction of a socket, or a queue of connections.
    Socket = 2,
    /// An event counter, timer, or set of descriptors.
    Event = 3,
    /// A message queue.
    Queue = 4,
    /// A terminal.
    Terminal = 5,
    /// A file, or a descriptor of another kind.
    File = 6,
}

codes! {
    /// How a wait ended.
    Wake:
    /// Another thread woke it.
    Woken = 0,
    /// It timed out.
    TimedOut = 1,
    /// Spuriously, as POSIX allows.
    Spurious = 2,
    /// By a signal handler.
    Interrupted = 3,
    /// The futex did not have the expected value.
    Mismatch = 4,
    /// The thread was cancelled.
    Cancelled = 5,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let record = Record::new(Kind::Acquire, 0x81, 0x7fff_1234_5678, 9, 0x5555_5555_0001);
        assert_eq!(record.kind(), Some(Kind::Acquire));
        assert_eq!((record.info(), record.extra()), (0x81, 9));
        assert_eq!((record.operand(), record.pc()), (0x7fff_1234_5678, 0x5555_5555_0001));
    }

    #[test]
    fn untouched_memory_is_no_record() {
        assert_eq!(Record::default().kind(), None);
    }
}
