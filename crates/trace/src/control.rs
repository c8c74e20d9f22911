//! The control block: the memory that parent and runtime share.
//!
//! The parent creates a memory file of [`Layout::bytes`] bytes, fills in the [`Plan`], names the
//! file in the environment variable [`VARIABLE`] and starts the target. The runtime maps it when
//! the first instrumented module calls `__tsan_init`, and claims it by storing its process id in
//! [`Control::claimed`]; a second process that finds it claimed stays uncontrolled.
//!
//! ```text
//! 0            Control
//! threads      [ThreadSlot; THREADS_MAX]
//! modules      [Module; MODULES_MAX]
//! death        Death                    the thread that a signal killed
//! follow       [FollowStep; n]          the schedule to follow
//! lanes        [Lane; n]                one under control, one per thread in free mode
//! rings        n × LANE_BYTES           the records
//! ```
//!
//! Everything that the target writes here survives the target, however it dies.

use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64};

use crate::allow::Judgement;
use crate::record::{RECORD_BYTES, codes};
use crate::remark::Remark;

/// Holds `PPPPPPPPPP:FFFFFFFFFF`: the parent's process id and its file descriptor of the control
/// block, as zero-padded decimal numbers, so that its length is constant.
pub const VARIABLE: &str = "RADDLE_CONTROL";
/// First word of a control block.
pub const MAGIC: u64 = u64::from_le_bytes(*b"raddle\0c");
/// Incremented with any change of this file or of [`crate::record`].
pub const VERSION: u32 = 8;
/// Maximum number of threads in a run, one after another or at a time. Slots that no thread has
/// used take no memory.
pub const THREADS_MAX: usize = 1 << 20;
/// Maximum number of modules (executable and shared libraries).
pub const MODULES_MAX: usize = 256;
/// Size of a lane's ring, chosen so that it stays in the second-level cache along with its
/// reader.
pub const LANE_BYTES: usize = 1 << 20;
/// The runtime publishes and waits once per chunk.
pub const CHUNK_BYTES: usize = 1 << 16;
/// Chunks in a ring.
pub const CHUNKS: u64 = (LANE_BYTES / CHUNK_BYTES) as u64;
/// A side that waits for the other is woken at this many chunks.
pub const CHUNKS_HALF: u64 = CHUNKS / 2;
/// Maximum number of lanes in free mode; further threads go unrecorded, and the trace says so.
pub const LANES_MAX: usize = 256;
/// How much stack is kept of a thread that dies: the calls of glibc, libstdc++ or Rust's standard
/// library between a failure and its signal take a few KiB, and some put buffers there.
pub const STACK_BYTES: usize = 64 << 10;
/// Maximum number of pieces of code in which judgements are allowed.
pub const ALLOWED_CODE_MAX: usize = 1024;
/// Maximum number of places that [`Control::remarks`] names.
pub const REMARKS_MAX: usize = 64;
/// Length of a function's name in a [`RemarkSlot`]; longer ones are cut off.
pub const CALL_BYTES: usize = 32;
/// Maximum length of [`Control::message`].
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
    /// What the runtime is to do.
    pub plan: Plan,
    /// An [`Ending`] code, stored last.
    pub ending: AtomicU32,
    /// The thread that it happened to.
    pub thread: AtomicU32,
    /// Its code address.
    pub pc: AtomicU64,
    /// The address involved: of a fault, a lock, a freed block.
    pub addr: AtomicU64,
    /// The signal number, the exit status, or the line of a failed assertion.
    pub code: AtomicI32,
    /// [`NONDETERMINISTIC`] and friends.
    pub flags: AtomicU32,
    /// The [`Outside`] code of what the run first depended on that is not controlled; 0 if nothing.
    pub outside: AtomicU32,
    /// The [`Outside`] code of the call that started the first child process; 0 if there was none.
    pub child: AtomicU32,
    /// Code address of [`Control::outside`], or 0.
    pub outside_pc: AtomicU64,
    /// Code address of [`Control::child`].
    pub child_pc: AtomicU64,
    /// For [`Ending::Diverged`]: the site that the schedule expected.
    pub expected_site: AtomicU64,
    /// For [`Ending::Diverged`]: the site that was reached.
    pub seen_site: AtomicU64,
    /// For [`Ending::Diverged`]: the index of the schedule's step.
    pub step: AtomicU64,
    /// For [`Ending::Diverged`]: number of events that the thread had performed.
    pub event: AtomicU64,
    /// Steps performed by all threads, as of the last switch.
    pub steps: AtomicU64,
    /// Number of switches.
    pub switches: AtomicU64,
    /// Virtual nanoseconds since the start.
    pub clock_ns: AtomicU64,
    /// The longest time by which a deadline that expired made a thread late that could run.
    pub late_ns: AtomicU64,
    /// That thread.
    pub late_thread: AtomicU32,
    /// Number of threads created, including the main thread.
    pub n_threads: AtomicU32,
    /// Number of modules.
    pub n_modules: AtomicU32,
    /// Number of lanes in use.
    pub n_lanes: AtomicU32,
    /// For [`Ending::Misuse`]: the codes of a [`Misuse`](crate::misuse::Misuse).
    pub misuse: [AtomicU8; 3],
    /// What was allowed so far, by the number of the [`Judgement`].
    pub allowed: [AllowedCount; Judgement::ALL.len()],
    /// Where judgements are allowed that are not allowed everywhere; the first
    /// [`Plan::n_allowed_code`] count.
    pub allowed_code: [AllowedCode; ALLOWED_CODE_MAX],
    /// What signal handlers did; the first free one has no [`RemarkSlot::key`].
    pub remarks: [RemarkSlot; REMARKS_MAX],
    /// Remarks at places for which there was no room.
    pub n_remarks_lost: AtomicU64,
    /// Length of the message.
    pub message_len: AtomicU32,
    /// The runtime's own error message; or the expression, file and function of a failed
    /// assertion, each followed by a zero byte.
    pub message: [AtomicU8; MESSAGE_BYTES],
}

/// In [`Control::flags`]: a thread made no progress and lost its turn.
pub const NONDETERMINISTIC: u32 = 1;
/// In [`Control::flags`]: a table of the control block was too small, so the trace has gaps.
pub const OVERFLOW: u32 = 2;
/// In [`Control::flags`]: the run depended on input from outside.
pub const EXTERNAL: u32 = 4;
/// In `Control::flags`: the schedule was abandoned before its end; `Control::step` and its
/// neighbors say where.
pub const LEFT: u32 = 8;
/// In `Control::flags`: the schedule was abandoned since it would have made a thread later than
/// [`Plan::delay_ns_max`] allows.
pub const TOO_LATE: u32 = 16;

/// What the runtime is to do. The parent writes it before the target starts.
#[repr(C)]
pub struct Plan {
    /// A [`Mode`] code.
    pub mode: AtomicU32,
    /// A [`Deliver`] code.
    pub deliver: AtomicU32,
    /// A [`Policy`] code.
    pub policy: AtomicU32,
    /// For `follow`: the policy after the schedule has ended.
    pub policy_after: AtomicU32,
    /// Seed of all random choices, including randomness that the target requests.
    pub seed: AtomicU64,
    /// For `pct`: the number of priority changes.
    pub depth: AtomicU32,
    /// [`SPURIOUS`] and friends.
    pub options: AtomicU32,
    /// For `pct`: expected number of steps.
    pub steps_expected: AtomicU64,
    /// A run with more steps than this has no end. 0 means no limit.
    pub steps_max: AtomicU64,
    /// Threads that spin for more steps than this, taking turns, without any progress are a
    /// livelock. 0 means no limit.
    pub idle_max: AtomicU64,
    /// [`Expiry::n_steps`](crate::expiry::Expiry::n_steps).
    pub expiry_steps: AtomicU64,
    /// [`Expiry::delay_ns_max`](crate::expiry::Expiry::delay_ns_max).
    pub delay_ns_max: AtomicU64,
    /// In free mode: probability of a delay at an access, in 2^-32.
    pub delay_probability: AtomicU32,
    /// In free mode: maximum delay.
    pub delay_us_max: AtomicU32,
    /// The processor to run on, or -1 for the current one.
    pub cpu: AtomicI32,
    /// Number of lanes in the block.
    pub n_lanes: AtomicU32,
    /// Number of steps in the schedule to follow.
    pub n_follow: AtomicU64,
    /// The parent's descriptor of the history file.
    pub histories: AtomicI32,
    /// Length of windows in histories.
    pub window: AtomicU32,
    /// The set of judgements and remarks that are allowed everywhere, by [`Judgement::bit`] and
    /// [`Remark::bit`].
    pub allowed: AtomicU32,
    /// Number of entries in [`Control::allowed_code`].
    pub n_allowed_code: AtomicU32,
}

/// How often a judgement was allowed.
#[repr(C)]
pub struct AllowedCount {
    /// How often.
    pub n: AtomicU64,
    /// Code address of the first time.
    pub pc: AtomicU64,
}

/// A piece of code in which judgements or remarks are allowed.
#[repr(C)]
pub struct AllowedCode {
    /// The [`Site`](crate::id::Site) of its first byte.
    pub start: AtomicU64,
    /// The site past its last byte.
    pub end: AtomicU64,
    /// The set of judgements and remarks.
    pub set: AtomicU64,
}

/// A remark on a signal handler. Thread leaks are not here: they follow from [`ThreadSlot`].
#[repr(C)]
pub struct RemarkSlot {
    /// What names it, by [`RemarkSlot::key_of`]; 0 if it is free.
    pub key: AtomicU64,
    /// How often.
    pub n: AtomicU64,
    /// The handler's code address.
    pub handler: AtomicU64,
    /// The name of the function that was called, ended by a zero byte if it is shorter.
    pub call: [AtomicU8; CALL_BYTES],
}

impl RemarkSlot {
    /// A key has the code address in its lower bits, which user space never exceeds, then the signal
    /// in a byte, then the code of the remark.
    const SIGNAL_SHIFT: u32 = 48;
    const REMARK_SHIFT: u32 = 56;

    /// What names a remark on the handler of a signal at a code address, which is not 0.
    #[must_use]
    pub const fn key_of(remark: Remark, signal: u8, pc: u64) -> u64 {
        let pc = pc & ((1 << Self::SIGNAL_SHIFT) - 1);
        (remark as u64) << Self::REMARK_SHIFT | (signal as u64) << Self::SIGNAL_SHIFT | pc
    }

    /// The remark, the signal and the code address of a key; none of a slot that is free.
    #[must_use]
    pub fn of_key(key: u64) -> Option<(Remark, u8, u64)> {
        let pc = key & ((1 << Self::SIGNAL_SHIFT) - 1);
        let remark = Remark::from_u8((key >> Self::REMARK_SHIFT) as u8)?;
        (pc != 0).then_some((remark, (key >> Self::SIGNAL_SHIFT) as u8, pc))
    }
}

const _: () = assert!(size_of::<RemarkSlot>() == 56);

/// In [`Plan::options`]: condition variables may wake spuriously.
pub const SPURIOUS: u32 = 1;
/// In [`Plan::options`]: a step of the schedule that does not match ends the run.
pub const STRICT: u32 = 2;
/// In [`Plan::options`]: every access is recorded, even if it only repeats others.
pub const EVERY: u32 = 8;
/// In [`Plan::options`]: a thread that makes no progress keeps the turn, since a debugger may
/// have stopped it.
pub const NO_WATCHDOG: u32 = 16;
/// In [`Plan::options`]: in histories, a visit is one access, as in Falcon's paper.
pub const PAPER: u32 = 32;
/// In [`Plan::options`]: the schedule counts other steps, so a thread that is not where it should
/// stop goes on until it gets there.
pub const BY_SITES: u32 = 64;
/// In [`Plan::options`]: nothing came from outside in the run that the schedule was made of.
pub const ALONE: u32 = 128;
/// In [`Plan::options`], from this bit on: signals that the parent blocks and the target, which
/// inherits the mask, has to unblock. One bit each, from signal 1.
pub const HELD_SIGNALS_SHIFT: u32 = 16;

codes! {
    /// How threads run.
    Mode:
    /// One thread at a time.
    Controlled = 1,
    /// In parallel.
    Free = 2,
}

codes! {
    /// What the target delivers.
    Deliver:
    /// Only the outcome.
    Nothing = 0,
    /// Switches and choices.
    Schedule = 1,
    /// Every event.
    Trace = 2,
    /// The history of each memory location ([`crate::history`]).
    Histories = 3,
}

codes! {
    /// The scheduling policy.
    Policy:
    /// A random thread at random steps.
    Random = 1,
    /// Probabilistic concurrency testing: priorities with few changes.
    Pct = 2,
    /// Partial order sampling: a priority for each event.
    Pos = 3,
    /// Round robin: run until blocked.
    Rr = 4,
    /// A given schedule.
    Follow = 5,
}

codes! {
    /// How a run ended, as far as the runtime knows. The parent learns the rest, such as a
    /// SIGKILL, from the wait status.
    Ending:
    /// It has not ended.
    None = 0,
    /// Exited with a status.
    Exit = 1,
    /// Killed by a signal.
    Signal = 2,
    /// A failed assertion; its texts are in the message.
    Assert = 3,
    /// Threads wait for each other in a cycle, or for something that nobody can provide.
    Deadlock = 4,
    /// Like Deadlock, and a wake-up was sent while nobody waited.
    LostWakeup = 5,
    /// Threads spin without progress, although they take turns.
    Livelock = 6,
    /// The schedule could not be followed.
    Diverged = 7,
    /// Use of freed memory.
    UseAfterFree = 8,
    /// A block freed twice.
    DoubleFree = 9,
    /// Misuse of a synchronization object: destroyed in use, used after destruction, unlocked by
    /// another thread.
    Misuse = 10,
    /// The runtime itself failed; the message says why.
    Internal = 11,
    /// The process replaced itself with another program.
    Exec = 12,
    /// More steps than allowed, also with threads that take turns.
    Endless = 13,
}

/// A thread, visible to the parent at any time.
#[repr(C, align(64))]
pub struct ThreadSlot {
    /// 0 while it waits for its turn, 1 while it holds it. A futex.
    pub turn: AtomicU32,
    /// A [`State`] code.
    pub state: AtomicU32,
    /// The thread that created it.
    pub parent: AtomicU32,
    /// It is the n-th child of its parent, from 1.
    pub ordinal: AtomicU32,
    /// Number of threads that it has created.
    pub n_children: AtomicU32,
    /// Its kernel thread id.
    pub kernel_id: AtomicU32,
    /// For a waiting thread of a deadlock, or of a cycle beside threads that can run: the holder
    /// of what it waits for. Otherwise `u32::MAX`.
    pub holder: AtomicU32,
    /// 1 once it is detached or has been joined.
    pub is_gone: AtomicU32,
    /// The address of what it waits for.
    pub object: AtomicU64,
    /// Its code address.
    pub pc: AtomicU64,
    /// Where the holder acquired it.
    pub holder_pc: AtomicU64,
    /// Steps performed, as of its last switch.
    pub steps: AtomicU64,
    /// Low end of its stack.
    pub stack_low: AtomicU64,
    /// High end of its stack.
    pub stack_high: AtomicU64,
    /// For a wait that missed its wake-up: where that was sent.
    pub missed_pc: AtomicU64,
    /// Where it was created; 0 if that is unknown, or if a leak of it is not to be mentioned.
    pub spawn_pc: AtomicU64,
    /// For the runtime: its data about this thread.
    pub private: AtomicU64,
    /// The name given to `pthread_setname_np`.
    pub name: [AtomicU8; 16],
}

const _: () = assert!(size_of::<ThreadSlot>() == 128);

codes! {
    /// What a thread is doing.
    State:
    /// Not started.
    Unborn = 0,
    /// Runnable or running.
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
    /// Waits for another thread to end.
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
    /// Waits for a lock of the loader (`dlopen`, `dlsym`).
    Loader = 16,
    /// Waits for a timer that starts threads.
    Timer = 17,
    /// Waits for a child process to end.
    Child = 18,
}

codes! {
    /// What is not controlled: a child process, by the call that started it, or something else.
    Outside:
    /// A child process by `fork`.
    Fork = 1,
    /// A child process by `vfork`.
    Vfork = 2,
    /// A child process by `posix_spawn` or `posix_spawnp`.
    Spawn = 3,
    /// A child process by `popen`.
    Popen = 4,
    /// A child process by `system`.
    System = 5,
    /// Input at a descriptor.
    Input = 6,
    /// A call that blocks in the kernel.
    Call = 7,
    /// A thread that the C library has started by itself.
    Thread = 8,
    /// A signal from another process.
    Signal = 9,
}

/// Maximum length of a module's path.
pub const PATH_BYTES: usize = 448;

/// A loaded module.
#[repr(C)]
pub struct Module {
    /// Load address, to be subtracted from an address to get one in the file.
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
    pub path: [AtomicU8; PATH_BYTES],
}

const _: () = assert!(size_of::<Module>() == 512);

/// A thread that a signal killed: enough for the parent to unwind it.
#[repr(C, align(64))]
pub struct Death {
    /// 1 once everything is stored.
    pub is_kept: AtomicU32,
    /// The thread.
    pub thread: AtomicU32,
    /// The general registers in instruction encoding order (rax, rcx, rdx, rbx, rsp, rbp, rsi,
    /// rdi, r8 to r15), then rip.
    pub registers: [AtomicU64; 17],
    /// Its stack from the stack pointer up. If it was handling a signal on another stack, the
    /// second one is the interrupted stack.
    pub stacks: [StackCopy; 2],
}

/// A part of a stack.
#[repr(C)]
pub struct StackCopy {
    /// Address of the first byte.
    pub start: AtomicU64,
    /// Number of bytes.
    pub n_bytes: AtomicU64,
    /// The contents.
    pub words: [AtomicU64; STACK_BYTES / 8],
}

/// One step of a schedule to follow.
#[repr(C)]
pub struct FollowStep {
    /// The thread to run; for a choice, the alternative.
    pub thread: AtomicU32,
    /// 0 to run, 1 to choose.
    pub kind: AtomicU32,
    /// Number of steps.
    pub count: AtomicU64,
    /// Site of the operation before which it stops; [`crate::id::Site::UNKNOWN`] for any.
    pub site: AtomicU64,
}

const _: () = assert!(size_of::<FollowStep>() == 24);

/// A stream of records to the parent. The runtime fills chunk after chunk, and waits when the
/// ring is full.
///
/// A waiting side is woken when the ring is half full or half empty, and not at each chunk: a
/// wake-up costs as much as a few thousand records.
#[repr(C, align(128))]
pub struct Lane {
    /// The target's address of the next record. Stored after the record, so that all records
    /// before it are complete.
    pub cursor: AtomicU64,
    /// The target's address of the end of the chunk.
    pub limit: AtomicU64,
    /// The target's address of the ring.
    pub ring: AtomicU64,
    /// Number of full chunks so far. A futex that the parent may wait on.
    pub filled: AtomicU32,
    /// The thread in free mode; 0 under control.
    pub thread: AtomicU32,
    /// Number of accesses that were not recorded because they repeat others. Only ever
    /// incremented, so that the parent knows exactly how many came after the last record.
    pub repeats: AtomicU64,
    /// How many of them are counted in records; used by the runtime only.
    pub repeats_recorded: AtomicU64,
    /// 1 while the target waits on `taken`.
    pub target_waits: AtomicU32,
    // Data written by the parent has its own cache line.
    _apart: [AtomicU32; 3],
    /// Number of chunks that the parent has consumed. A futex that the target waits on.
    pub taken: AtomicU32,
    /// 1 while the parent waits on `filled`.
    pub parent_waits: AtomicU32,
}

const _: () = assert!(core::mem::offset_of!(Lane, taken) == 64);

/// The layout of a control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of steps in the schedule to follow.
    pub n_follow: usize,
    /// Number of lanes.
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

    /// Offset of the thread that died.
    #[must_use]
    pub const fn death(self) -> usize {
        self.modules() + MODULES_MAX * size_of::<Module>()
    }

    /// Offset of the schedule to follow.
    #[must_use]
    pub const fn follow(self) -> usize {
        self.death() + size_of::<Death>()
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

    /// Total size.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.rings() + self.n_lanes * LANE_BYTES
    }
}

const PAGE: usize = 4096;
const _: () = assert!(CHUNK_BYTES.is_multiple_of(RECORD_BYTES));
const _: () = assert!(size_of::<Lane>() == 128);
