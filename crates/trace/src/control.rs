//! The control block: the memory that parent and runtime share.
//!
//! The parent makes a memory file of [`Layout::bytes`] bytes, fills in the [`Plan`], names
//! the file in the environment variable [`VARIABLE`] and starts the target. The runtime
//! maps it when the first instrumented module calls `__tsan_init`, and claims it by
//! storing its process id in [`Control::claimed`]; a second process that finds it claimed
//! stays out of control.
//!
//! ```text
//! 0            Control
//! threads      [ThreadSlot; THREADS_MAX]
//! modules      [Module; MODULES_MAX]
//! follow       [FollowStep; n]          the schedule to follow
//! lanes        [Lane; n]                one under control, one per thread in free mode
//! rings        n × LANE_BYTES           the records
//! ```
//!
//! Everything that the target writes here survives it, however it dies.

use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64};

use crate::record::{RECORD_BYTES, codes};

/// Holds `PPPPPPPPPP:FFFFFFFFFF`: process id of the parent and its file descriptor of the
/// control block, as zero-padded decimal numbers, so that its length is constant.
pub const VARIABLE: &str = "RADDLE_CONTROL";
/// First word of a control block.
pub const MAGIC: u64 = u64::from_le_bytes(*b"raddle\0c");
/// Raised with any change of this file or of [`crate::record`].
pub const VERSION: u32 = 3;
/// Threads that a run may create.
pub const THREADS_MAX: usize = 4096;
/// Modules (executable and shared libraries) that are told apart.
pub const MODULES_MAX: usize = 256;
/// A lane's ring: chosen so that it stays in the second-level cache with what reads it.
pub const LANE_BYTES: usize = 1 << 20;
/// The runtime publishes and waits once per chunk.
pub const CHUNK_BYTES: usize = 1 << 16;
/// Chunks in a ring.
pub const CHUNKS: u64 = (LANE_BYTES / CHUNK_BYTES) as u64;
/// Whoever waits for the other side is woken at this many chunks.
pub const CHUNKS_HALF: u64 = CHUNKS / 2;
/// Lanes in free mode; a thread beyond goes unrecorded and the trace says so.
pub const LANES_MAX: usize = 256;
/// Longest message in [`Control::message`].
pub const MESSAGE_BYTES: usize = 1024;

/// The head of the control block.
#[repr(C, align(64))]
pub struct Control {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// The target's process id, once it has attached.
    pub claimed: AtomicU32,
    /// What to do.
    pub plan: Plan,
    /// An [`Ending`] code, stored last.
    pub ending: AtomicU32,
    /// The thread that it happened to.
    pub thread: AtomicU32,
    /// Where.
    pub pc: AtomicU64,
    /// The address that it was about: of a fault, a lock, a freed block.
    pub addr: AtomicU64,
    /// Number of the signal, or the exit status.
    pub code: AtomicI32,
    /// [`NONDETERMINISTIC`] and friends.
    pub flags: AtomicU32,
    /// For [`Ending::Diverged`]: the site that the schedule expected.
    pub expected_site: AtomicU64,
    /// For [`Ending::Diverged`]: the site that was seen.
    pub seen_site: AtomicU64,
    /// For [`Ending::Diverged`]: the number of the schedule's step.
    pub step: AtomicU64,
    /// For [`Ending::Diverged`]: events that the thread had performed.
    pub event: AtomicU64,
    /// Steps performed by all threads, as of the last switch.
    pub steps: AtomicU64,
    /// Switches made.
    pub switches: AtomicU64,
    /// Virtual nanoseconds since the start.
    pub clock_ns: AtomicU64,
    /// Threads created so far, the main thread included.
    pub n_threads: AtomicU32,
    /// Modules seen so far.
    pub n_modules: AtomicU32,
    /// Lanes in use.
    pub n_lanes: AtomicU32,
    /// Length of the message.
    pub message_len: AtomicU32,
    /// Text of a failed assertion, or of the runtime's own complaint.
    pub message: [AtomicU8; MESSAGE_BYTES],
}

/// In [`Control::flags`]: a thread made no progress and its turn was taken away.
pub const NONDETERMINISTIC: u32 = 1;
/// In [`Control::flags`]: a table of the control block was too small; the trace has gaps.
pub const OVERFLOW: u32 = 2;
/// In [`Control::flags`]: the run depended on input from outside while it ran.
pub const EXTERNAL: u32 = 4;
/// In `Control::flags`: the schedule was left before its end; `Control::step` and its
/// neighbours say where.
pub const LEFT: u32 = 8;

/// What the runtime is to do. Written by the parent before the target starts.
#[repr(C)]
pub struct Plan {
    /// A [`Mode`] code.
    pub mode: AtomicU32,
    /// A [`Deliver`] code.
    pub deliver: AtomicU32,
    /// A [`Policy`] code.
    pub policy: AtomicU32,
    /// For `follow`: the policy once the schedule has ended.
    pub policy_after: AtomicU32,
    /// Of all random choices, also those that the target asks for.
    pub seed: AtomicU64,
    /// For `pct`: the number of priority changes.
    pub depth: AtomicU32,
    /// [`SPURIOUS`] and friends.
    pub options: AtomicU32,
    /// For `pct`: steps that the run is expected to take.
    pub steps_expected: AtomicU64,
    /// More steps than this are a livelock. 0: no limit.
    pub steps_max: AtomicU64,
    /// In free mode: probability of a delay at an access, in 2^-32.
    pub delay_probability: AtomicU32,
    /// In free mode: longest delay.
    pub delay_us_max: AtomicU32,
    /// The processor to run on, or -1 for the one it starts on.
    pub cpu: AtomicI32,
    /// Lanes that the block has room for.
    pub n_lanes: AtomicU32,
    /// Steps in the schedule to follow.
    pub n_follow: AtomicU64,
    /// The parent's descriptor of the file of histories.
    pub histories: AtomicI32,
    /// The length of windows in histories.
    pub window: AtomicU32,
}

/// In [`Plan::options`]: condition variables may wake spuriously.
pub const SPURIOUS: u32 = 1;
/// In [`Plan::options`]: a step of the schedule that does not fit ends the run.
pub const STRICT: u32 = 2;
/// In [`Plan::options`]: a sleeping thread may be chosen before its time.
pub const EARLY_SLEEPERS: u32 = 4;
/// In [`Plan::options`]: each access is recorded, also those that only repeat others.
pub const EVERY: u32 = 8;
/// In [`Plan::options`]: a thread that makes no progress keeps the turn, as somebody may have
/// stopped it to look at it.
pub const NO_WATCHDOG: u32 = 16;
/// In [`Plan::options`]: in histories, a stint is one access, as in Falcon's paper.
pub const PAPER: u32 = 32;
/// In [`Plan::options`], from this bit on: signals that the parent holds back and the target,
/// which inherits that, is to let through. One bit each, from signal 1 on.
pub const HELD_SIGNALS_SHIFT: u32 = 16;

codes! {
    /// How threads run.
    Mode:
    /// One at a time.
    Controlled = 1,
    /// In parallel.
    Free = 2,
}

codes! {
    /// What leaves the target.
    Deliver:
    /// The outcome only.
    Nothing = 0,
    /// Switches and choices.
    Schedule = 1,
    /// Every event.
    Trace = 2,
    /// What happened at each place of memory ([`crate::history`]).
    Histories = 3,
}

codes! {
    /// Who goes next.
    Policy:
    /// Any, at random moments.
    Random = 1,
    /// Probabilistic concurrency testing: priorities, with few changes.
    Pct = 2,
    /// Partial order sampling: a priority for each event.
    Pos = 3,
    /// Run until blocked.
    Rr = 4,
    /// A given schedule.
    Follow = 5,
}

codes! {
    /// How a run ended, as far as the runtime knows. What it does not know, such as
    /// a SIGKILL, the parent reads off the wait status.
    Ending:
    /// It has not.
    None = 0,
    /// By exit, with a status.
    Exit = 1,
    /// A signal that kills.
    Signal = 2,
    /// A failed assertion; its text is in the message.
    Assert = 3,
    /// Threads wait for each other in a circle, or for what nobody can give.
    Deadlock = 4,
    /// As Deadlock, and a wake-up was sent when nobody waited.
    LostWakeup = 5,
    /// Steps without end.
    Livelock = 6,
    /// The schedule could not be followed.
    Diverged = 7,
    /// Use of freed memory.
    UseAfterFree = 8,
    /// A block freed twice.
    DoubleFree = 9,
    /// A synchronization object misused: destroyed in use, used destroyed, unlocked by another.
    Misuse = 10,
    /// The runtime itself gave up; the message says why.
    Internal = 11,
    /// It replaced itself by another program.
    Exec = 12,
}

/// A thread, as the parent can see it at any time.
#[repr(C, align(64))]
pub struct ThreadSlot {
    /// 0 waits for its turn, 1 has it. A futex.
    pub turn: AtomicU32,
    /// A [`State`] code.
    pub state: AtomicU32,
    /// Who created it.
    pub parent: AtomicU32,
    /// It is the n-th thread of its parent, from 1.
    pub ordinal: AtomicU32,
    /// Its kernel thread id.
    pub kernel_id: AtomicU32,
    /// For a waiting thread: who holds what it waits for, or `u32::MAX`.
    pub holder: AtomicU32,
    /// The address of what it waits for.
    pub object: AtomicU64,
    /// Where it is.
    pub pc: AtomicU64,
    /// Where the holder got it.
    pub holder_pc: AtomicU64,
    /// Steps performed, as of its last switch.
    pub steps: AtomicU64,
    /// Its stack.
    pub stack_low: AtomicU64,
    /// Its stack's end.
    pub stack_high: AtomicU64,
    /// For a wait that a wake-up missed: where that was sent.
    pub missed_pc: AtomicU64,
    /// For the runtime: its data about this thread.
    pub private: AtomicU64,
    /// As given to `pthread_setname_np`.
    pub name: [AtomicU8; 16],
}

const _: () = assert!(size_of::<ThreadSlot>() == 128);

codes! {
    /// What a thread is at.
    State:
    /// Not started.
    Unborn = 0,
    /// Can run, or runs.
    Ready = 1,
    /// Waits for a mutex, spin lock or annotated lock.
    Lock = 2,
    /// Waits to read under a reader-writer lock.
    ReadLock = 3,
    /// Waits to write under a reader-writer lock.
    WriteLock = 4,
    /// Waits on a condition variable.
    Cond = 5,
    /// Waits for a semaphore.
    Semaphore = 6,
    /// Waits at a barrier.
    Barrier = 7,
    /// Waits for another thread's end.
    Join = 8,
    /// Waits for a one-time initialization by another thread.
    Once = 9,
    /// Waits on a futex.
    Futex = 10,
    /// Sleeps.
    Sleep = 11,
    /// Waits for a file descriptor.
    Descriptor = 12,
    /// In a call that raddle does not control.
    Outside = 13,
    /// Has ended.
    Ended = 14,
    /// Waits for a signal (`pause`, `sigwait`).
    SignalWait = 15,
}

/// A loaded module.
#[repr(C)]
pub struct Module {
    /// Load address: what to subtract from an address to get one of the file.
    pub base: AtomicU64,
    /// First mapped address.
    pub low: AtomicU64,
    /// End of the last mapping.
    pub high: AtomicU64,
    /// Length of the path.
    pub path_len: AtomicU32,
    /// Length of the build-id, 0 if it has none.
    pub build_id_len: AtomicU32,
    /// The build-id.
    pub build_id: [AtomicU8; 32],
    /// The path; empty for the executable.
    pub path: [AtomicU8; 448],
}

const _: () = assert!(size_of::<Module>() == 512);

/// One step of a schedule to follow.
#[repr(C)]
pub struct FollowStep {
    /// Who runs, or for a choice which alternative.
    pub thread: AtomicU32,
    /// 0: run; 1: choose.
    pub kind: AtomicU32,
    /// For how many steps.
    pub count: AtomicU64,
    /// Where it stops then: its next operation's site, [`crate::id::Site::UNKNOWN`] for anywhere.
    pub site: AtomicU64,
}

const _: () = assert!(size_of::<FollowStep>() == 24);

/// A stream of records on its way to the parent. The runtime fills chunk after chunk, and
/// waits when the ring is full.
///
/// Whoever waits is woken when the ring is half full or half empty, and not at each chunk:
/// a wake-up costs as much as a few thousand records.
#[repr(C, align(128))]
pub struct Lane {
    /// The target's address of the next record. Stored after the record, so that it never
    /// points behind one that is not there.
    pub cursor: AtomicU64,
    /// The target's address of the end of the chunk.
    pub limit: AtomicU64,
    /// The target's address of the ring.
    pub ring: AtomicU64,
    /// Full chunks so far. A futex that the parent may wait on.
    pub filled: AtomicU32,
    /// The thread in free mode; 0 under control.
    pub thread: AtomicU32,
    /// Accesses that were not recorded since they repeat others. Only ever counted up, so
    /// that the parent knows to the last one how many came behind the last record.
    pub repeats: AtomicU64,
    /// How many of them the records tell: the runtime's own note.
    pub repeats_told: AtomicU64,
    /// 1 while the target waits on `taken`.
    pub target_waits: AtomicU32,
    // What the parent writes has a cache line of its own.
    _apart: [AtomicU32; 3],
    /// Chunks that the parent has taken. A futex that the target waits on.
    pub taken: AtomicU32,
    /// 1 while the parent waits on `filled`.
    pub parent_waits: AtomicU32,
}

const _: () = assert!(core::mem::offset_of!(Lane, taken) == 64);

/// Where the parts of a control block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Steps of the schedule to follow.
    pub n_follow: usize,
    /// Lanes.
    pub n_lanes: usize,
}

impl Layout {
    /// Offset of the thread slots.
    #[must_use]
    pub const fn threads(self) -> usize {
        size_of::<Control>().next_multiple_of(PAGE)
    }

    /// Offset of the modules.
    #[must_use]
    pub const fn modules(self) -> usize {
        self.threads() + THREADS_MAX * size_of::<ThreadSlot>()
    }

    /// Offset of the schedule to follow.
    #[must_use]
    pub const fn follow(self) -> usize {
        self.modules() + MODULES_MAX * size_of::<Module>()
    }

    /// Offset of the lanes.
    #[must_use]
    pub const fn lanes(self) -> usize {
        (self.follow() + self.n_follow * size_of::<FollowStep>()).next_multiple_of(PAGE)
    }

    /// Offset of the rings.
    #[must_use]
    pub const fn rings(self) -> usize {
        (self.lanes() + self.n_lanes * size_of::<Lane>()).next_multiple_of(PAGE)
    }

    /// Size of it all.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.rings() + self.n_lanes * LANE_BYTES
    }
}

const PAGE: usize = 4096;
const _: () = assert!(CHUNK_BYTES.is_multiple_of(RECORD_BYTES));
const _: () = assert!(size_of::<Lane>() == 128);
