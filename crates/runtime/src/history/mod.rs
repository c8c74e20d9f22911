//! The history of each memory location, kept while the target runs.
//!
//! The file is described in [`raddle_trace::history`]. Most accesses find their transition in the
//! table of `abi::access` and need nothing from this module.
//!
//! **States.** Each word of memory has a state, a number of four bytes: the last two visits
//! (what one thread did before another one came: its first access, its last read, its last
//! write), the last write, and who has read since. Where an access leads depends on the state
//! and the access alone, so the access path looks the step up in a table, in 29 instructions
//! for four bytes. Only a step that is not there, or that brings another thread, takes more. No
//! step from freed memory is ever put there, so the path need not look for it. Places with the
//! same history share a state: four threads that sort three million numbers make 1,200 states.
//! Older visits stay with the place, in 16 bytes beside it. Words whose bytes are accessed one
//! by one have a state for each byte. Findings go to lists in the same file once. The file is
//! sparse, is shared with the parent, and survives the target; the parent adds what windows
//! still hold at the end.
//!
//! **Free threads** do the same in parallel. A step that the table knows leaves a place with
//! the same thread and is taken by a compare-and-exchange; all others take a lock. The holder
//! may never release that lock (a signal handler may `longjmp`). We wait three seconds, then
//! stop collecting for this run.

mod cells;
mod log;
mod machine;

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use raddle_trace::control::{Mode, PAPER, Plan};
use raddle_trace::history::{
    ACCESSES, ACCESSES_MAX, BYTES, FILE_BYTES, FIRST, Head, PAIRS, PAIRS_MAX, PATTERNS,
    PATTERNS_MAX, STATES, STATES_MAX, ThreadAccess, VISITS, VISITS_MAX, WINDOW_MAX, WORDS,
};
use raddle_trace::record::{Kind, LOW, Record, SIZE};

use self::cells::Cells;
use self::log::Log;
use self::machine::{Lists, Machine};
use crate::guarded::Guarded;
use crate::{shared, sys, tls};

/// A transition that the access path performs by itself.
#[repr(C, align(16))]
pub(crate) struct Fast {
    /// Thread and code address; see [`tls::READER`].
    key: AtomicU64,
    /// The state before.
    before: AtomicU32,
    /// The state after.
    next: AtomicU32,
}

const _: () = assert!(core::mem::offset_of!(Fast, before) == 8);
const _: () = assert!(core::mem::offset_of!(Fast, next) == 12);
const _: () = assert!(size_of::<Fast>() == 16);

/// The logarithm of the table's size: 256 kilobytes, which leaves room in the second-level cache.
pub(crate) const FAST_BITS: u32 = 14;
/// For the access path: transitions by hash. In `.bss`, so untouched pages cost nothing.
pub(crate) static FAST: [Fast; 1 << FAST_BITS] =
    [const { Fast { key: AtomicU64::new(0), before: AtomicU32::new(0), next: AtomicU32::new(0) } };
        1 << FAST_BITS];
/// How code addresses are spread over the table.
pub(crate) const SPREAD: u32 = 0x1e37_79b1;
/// The bits of a hash that are the offset in the table, in half bytes.
pub(crate) const HALVES: u32 = ((1 << FAST_BITS) - 1) << 3;

/// For the access path: addresses of the states of words and of bytes.
pub(crate) static WORDS_START: AtomicU64 = AtomicU64::new(0);
/// Address of the states of bytes.
pub(crate) static BYTES_START: AtomicU64 = AtomicU64::new(0);

/// The histories, for the thread that holds the turn.
struct Histories {
    machine: Machine,
    cells: Cells,
    /// Accesses by hash, each with its number.
    recent: [(ThreadAccess, u32); RECENT],
}

const RECENT: usize = 1 << 10;

struct TurnCell(UnsafeCell<MaybeUninit<Histories>>);

// SAFETY: used only by the thread that holds the turn, or, if threads are free, the lock; see
// `with`.
unsafe impl Sync for TurnCell {}

/// Takes the place of the turn if threads are free.
static LOCK: Guarded<()> = Guarded::new(());

static HISTORIES: TurnCell = TurnCell(UnsafeCell::new(MaybeUninit::uninit()));

/// Maps the file that the plan names and initializes it; false if it cannot be mapped.
pub(crate) fn start_by(plan: &Plan) -> bool {
    let descriptor = plan.histories.load(Ordering::Relaxed);
    let Some(descriptor) = shared::open_of_parent(descriptor as u64) else { return false };
    let start = sys::map_shared(descriptor, FILE_BYTES as usize);
    sys::close(descriptor);
    if start.is_null() {
        return false;
    }
    sys::keep_to_ourselves(start as u64, FILE_BYTES);
    let window = (plan.window.load(Ordering::Relaxed) as usize).clamp(2, WINDOW_MAX);
    let precise = plan.options.load(Ordering::Relaxed) & PAPER == 0;
    // SAFETY: the file begins with its head, which holds atomics only, and stays mapped.
    let head = unsafe { &*start.cast::<Head>() };
    for len in [&head.n_accesses, &head.n_visits, &head.n_states] {
        len.store(FIRST, Ordering::Relaxed);
    }
    // SAFETY: the offsets are those of the file's lists.
    let lists = unsafe {
        Lists {
            accesses: Log::new(start.add(ACCESSES as usize).cast(), ACCESSES_MAX, &head.n_accesses),
            visits: Log::new(start.add(VISITS as usize).cast(), VISITS_MAX, &head.n_visits),
            states: Log::new(start.add(STATES as usize).cast(), STATES_MAX, &head.n_states),
            pairs: Log::new(start.add(PAIRS as usize).cast(), PAIRS_MAX, &head.n_pairs),
            patterns: Log::new(start.add(PATTERNS as usize).cast(), PATTERNS_MAX, &head.n_patterns),
        }
    };
    let histories = Histories {
        machine: Machine::new(
            head,
            lists,
            window,
            precise,
            plan.mode.load(Ordering::Relaxed) == Mode::Free as u32,
        ),
        // SAFETY: the mapping of the whole file, which stays.
        cells: unsafe { Cells::new(start) },
        recent: [(ThreadAccess::default(), 0); RECENT],
    };
    WORDS_START.store(histories.cells.start() + WORDS, Ordering::Relaxed);
    BYTES_START.store(histories.cells.start() + BYTES, Ordering::Relaxed);
    // SAFETY: the process has one thread yet.
    unsafe { (*HISTORIES.0.get()).write(histories) };
    head.condition.store(1, Ordering::Release);
    true
}

/// Stops collecting: the thread with the turn, or the lock, may lose it at any time.
pub(crate) fn stop() {
    let mode = match shared::mode() {
        shared::COLLECT => shared::WATCH,
        shared::COLLECT_FREE => shared::FREE,
        _ => return,
    };
    shared::MODE.store(mode, Ordering::SeqCst);
    // SAFETY: collecting means that it was mapped, for good.
    let head = unsafe { &*((WORDS_START.load(Ordering::Relaxed) - WORDS) as *const Head) };
    head.condition.store(2, Ordering::Release);
}

/// Calls `work` with the histories, if they are kept and the running thread holds the turn or, if
/// threads are free, gets the lock.
fn with(work: impl FnOnce(&mut Histories, u32)) {
    if tls::get(tls::QUIET) != 0 {
        return;
    }
    let Some(me) = tls::thread() else { return };
    match shared::mode() {
        // SAFETY: written before the mode was set. One thread at a time holds the turn; the
        // program's signal handlers run between operations, not within this one, and nothing in
        // `work` re-enters.
        shared::COLLECT if tls::get(tls::TURN) == 1 => unsafe { with_all(work, me) },
        shared::COLLECT_FREE => {
            // A signal handler that interrupts us finds us quiet; if it never returns, the lock
            // is not released either.
            tls::set(tls::QUIET, 1);
            match LOCK.lock_soon() {
                // SAFETY: written before the mode was set. One thread at a time holds the lock,
                // and nothing in `work` re-enters.
                Some(_guard) => unsafe { with_all(work, me) },
                None => stop(),
            }
            tls::set(tls::QUIET, 0);
        }
        _ => {}
    }
}

/// # Safety
/// There are histories, and nobody else uses them.
#[inline]
unsafe fn with_all(work: impl FnOnce(&mut Histories, u32), me: u32) {
    // SAFETY: by the caller's promise.
    work(unsafe { (*HISTORIES.0.get()).assume_init_mut() }, me);
}

/// Number of steps of the run; the time if threads are free.
fn n_steps() -> u64 {
    if shared::free() {
        return sys::time_stamp();
    }
    shared::control().steps.load(Ordering::Relaxed) + tls::performed()
}

/// A plain access whose transition the access path does not know. `head` is the record's first
/// word without the address.
pub(crate) extern "C" fn access(addr: u64, head: u64, pc: u64) {
    let record = Record { head: head | addr & LOW, tail: pc & LOW };
    let writes = record.kind() == Some(Kind::Write);
    let kind = if writes { Kind::Write } else { Kind::Read };
    let bytes = u64::from(record.info() & SIZE);
    with(|histories, me| {
        let access = histories.access(me, pc, kind, writes);
        let step = histories.cells.touch(&mut histories.machine, addr, bytes, access);
        if let Some((before, next)) = step
            && tls::get(tls::READER) != 0
            && !histories.machine.may_be_freed(before)
        {
            remember(tls::get(if writes { tls::WRITER } else { tls::READER }) | pc, before, next);
        }
    });
}

/// Adds a transition to the access path's table.
fn remember(key: u64, before: u32, next: u32) {
    let hash = (key as u32).wrapping_mul(SPREAD).wrapping_add(before << 3);
    let fast = &FAST[(hash & HALVES) as usize >> 3];
    // Free threads that look meanwhile find no key, or see it change.
    fast.key.store(0, Ordering::Release);
    fast.before.store(before, Ordering::Release);
    fast.next.store(next, Ordering::Release);
    fast.key.store(key, Ordering::Release);
}

/// Clears the access path's table.
fn unlearn() {
    for fast in &FAST {
        fast.key.store(0, Ordering::Relaxed);
    }
}

/// Any other event.
pub(crate) fn event(kind: Kind, info: u8, operand: u64, extra: u16, pc: u64, more: &[u64]) {
    let bytes = match kind {
        Kind::ReadRange | Kind::WriteRange | Kind::Map | Kind::Unmap | Kind::Alloc | Kind::Free => {
            more.first().copied().unwrap_or(0)
        }
        Kind::AtomicLoad
        | Kind::AtomicStore
        | Kind::AtomicUpdate
        | Kind::AtomicSwap
        | Kind::AtomicMiss => u64::from(info),
        // Synchronization objects are memory too. They count as one byte, since they are used as
        // a whole.
        Kind::Acquire
        | Kind::Release
        | Kind::Init
        | Kind::Destroy
        | Kind::CondWait
        | Kind::CondSignal
        | Kind::CondBroadcast
        | Kind::SemWait
        | Kind::SemAsk
        | Kind::SemPost => 1,
        _ => return,
    };
    let writes = !matches!(
        kind,
        Kind::ReadRange
            | Kind::AtomicLoad
            | Kind::AtomicMiss
            | Kind::Acquire
            | Kind::Release
            | Kind::CondWait
            | Kind::SemAsk
    );
    with(|Histories { machine, cells, .. }, _| match kind {
        Kind::Alloc => cells.forget(machine, operand, bytes.saturating_add(extra.into())),
        Kind::Map => cells.map(machine, operand, bytes),
        _ => {}
    });
    if matches!(kind, Kind::Alloc | Kind::Map) {
        return;
    }
    let kind = match kind {
        Kind::ReadRange => Kind::Read,
        Kind::WriteRange => Kind::Write,
        other => other,
    };
    with(|histories, me| {
        let access = histories.access(me, pc, kind, writes);
        let Histories { machine, cells, .. } = histories;
        match kind {
            Kind::Free => cells.free(machine, operand, bytes, access),
            Kind::Unmap => cells.unmap(machine, operand, bytes, access),
            _ => {
                cells.touch(machine, operand, bytes.max(1), access);
            }
        }
    });
}

/// Memory is reused, as the stack of a new thread.
pub(crate) fn forget(addr: u64, bytes: u64) {
    with(|Histories { machine, cells, .. }, _| cells.forget(machine, addr, bytes));
}

impl Histories {
    /// The number of an access.
    fn access(&mut self, thread: u32, pc: u64, kind: Kind, writes: bool) -> u32 {
        let access =
            ThreadAccess { pc, thread, kind: kind as u8, writes: u8::from(writes), unused: 0 };
        let at = (pc ^ pc >> 10 ^ u64::from(thread) << 4 ^ u64::from(writes)) as usize % RECENT;
        if self.recent[at].0 == access {
            return self.recent[at].1;
        }
        let number = self.machine.accesses.number(access).unwrap_or(FIRST);
        self.recent[at] = (access, number);
        number
    }
}
