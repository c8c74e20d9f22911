//! Freed memory, and detection of its use.
//!
//! Under control, `free` does not return memory at once. The block waits in a queue; the oldest
//! blocks are returned to libc when there are too many. Until then nobody owns the memory, so a
//! use is detected when it happens, not after the same bytes have a new owner.
//!
//! - Blocks of libc's main heap have a shadow, one byte per 16 of theirs: no two blocks share
//!   that many. From the first free on, the access path checks it for addresses between the
//!   lowest and the highest block ever freed. Threads get no heaps of their own (`M_ARENA_MAX`);
//!   under control they do not need them.
//! - Blocks that libc maps individually lose their pages, so that a use is a fault.
//!
//! After a block is returned to libc, its uses go undetected: nothing is marked that libc may
//! hand out again, so no correct program is accused. Uninstrumented code is not checked. Neither
//! are blocks elsewhere, such as those of a heap that could not grow in place, except for double
//! frees.
//!
//! Why at all: a use of freed memory often looks like a pass, because the memory still holds
//! what it held. At most [`BYTES_MAX`] bytes and [`BLOCKS_MAX`] blocks wait. Until the first
//! free, an access costs what it would without this module (`shared::COUNT`); after that
//! (`shared::WATCH`) it takes five instructions more. `realloc` moves blocks by copying, so the
//! old block can be watched too. libc's own heap checks run late, when a block is given back.
//!
//! If the plan allows the use of freed memory ([`allow`]), libc maps no block individually, so that
//! a use reads what the block held.

use alloc::collections::{BTreeMap, VecDeque};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use raddle_trace::allow::Judgement;
use raddle_trace::control::Ending;

use crate::guarded::Guarded;
use crate::real::real;
use crate::{allow, die, shared, sys};

/// Maximum number of bytes that wait to be returned.
const BYTES_MAX: u64 = 64 << 20;
/// Maximum number of blocks that wait to be returned. Small ones are reused while some of them
/// are still in the cache.
const BLOCKS_MAX: usize = 1 << 16;
/// Protected pages use only address space, so they count for less.
const PROTECTED_DISCOUNT: u64 = 256;
/// How much of the heap can have a shadow. The shadow is mapped as far as blocks are freed, since a
/// program may have limited its address space.
const HEAP_BYTES: u64 = 16 << 30;
/// Bytes of shadow that are mapped at a time.
const SHADOW_PART: u64 = 4 << 20;
/// How much heap may exist below its end when we start.
const HEAP_BEFORE: u64 = 64 << 20;
/// Bytes per byte of shadow.
const GRAIN_SHIFT: u32 = 4;
const PAGE: u64 = 4096;
/// Sizes from here on are larger than any heap chunk of libc.
const CHUNK_MAX: u64 = 1 << 34;

/// For the access path: start of the freed blocks, number of bytes to their end, and the shadow
/// of the first.
pub(crate) static LOW: AtomicU64 = AtomicU64::new(0);
/// Bytes from [`LOW`] to the end of the freed blocks.
pub(crate) static BYTES: AtomicU64 = AtomicU64::new(0);
/// Shadow of [`LOW`].
pub(crate) static SHADOW: AtomicU64 = AtomicU64::new(0);

/// Number of queued blocks without a shadow.
static N_ELSEWHERE: AtomicU64 = AtomicU64::new(0);

static QUARANTINE: Guarded<Quarantine> = Guarded::new(Quarantine {
    heap: 0,
    shadow: 0,
    n_shadow: 0,
    queue: VecDeque::new(),
    cost: 0,
    elsewhere: BTreeMap::new(),
});

struct Quarantine {
    /// First address with a shadow, and its shadow; 0 if nothing is watched.
    heap: u64,
    shadow: u64,
    /// Bytes of shadow that are mapped.
    n_shadow: u64,
    /// Oldest first.
    queue: VecDeque<Block>,
    /// Total cost of the queued blocks.
    cost: u64,
    /// Ends of the queued blocks without a shadow, by start.
    elsewhere: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy)]
struct Block {
    start: u64,
    bytes: u64,
    /// The pages that were protected.
    pages: (u64, u64),
}

impl Block {
    fn cost(&self) -> u64 {
        if self.pages.0 < self.pages.1 { self.bytes / PROTECTED_DISCOUNT } else { self.bytes }
    }
}

/// From now on freed blocks are kept; used under control.
pub(crate) fn start() {
    const M_ARENA_MAX: i32 = -8;
    const M_MMAP_MAX: i32 = -4;
    real!(mallopt(M_ARENA_MAX => i32, 1 => i32) -> i32);
    if allow::freed_memory() {
        real!(mallopt(M_MMAP_MAX => i32, 0 => i32) -> i32);
    }
    let end = sys::syscall!(libc::SYS_brk, 0) as u64;
    let mut quarantine = QUARANTINE.lock();
    quarantine.heap = end.saturating_sub(HEAP_BEFORE) & !(PAGE - 1);
    quarantine.shadow = sys::reserve((HEAP_BYTES >> GRAIN_SHIFT) as usize);
}

/// For a forked child, where the thread that held the lock may not exist.
pub(crate) fn break_lock() {
    QUARANTINE.break_lock();
}

fn shadow_of(addr: u64) -> Option<&'static AtomicU8> {
    let from_low = addr.wrapping_sub(LOW.load(Ordering::Relaxed));
    if from_low >= BYTES.load(Ordering::Relaxed) {
        return None;
    }
    let at = SHADOW.load(Ordering::Relaxed) + (from_low >> GRAIN_SHIFT);
    // SAFETY: the shadow covers all of the range that was just checked, and is never unmapped.
    Some(unsafe { &*(at as *const AtomicU8) })
}

/// Whether the byte at an address is part of a freed block.
pub(crate) fn is_freed(addr: u64) -> bool {
    shadow_of(addr).is_some_and(|shadow| shadow.load(Ordering::Relaxed) != 0)
        || lies_elsewhere(addr)
}

fn lies_elsewhere(addr: u64) -> bool {
    if N_ELSEWHERE.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let quarantine = QUARANTINE.lock();
    quarantine.elsewhere.range(..=addr).next_back().is_some_and(|(_, &end)| addr < end)
}

/// The first byte of a range that is in a freed block of the heap.
fn first_freed(addr: u64, bytes: u64) -> Option<u64> {
    let low = LOW.load(Ordering::Relaxed);
    let end = (addr.saturating_add(bytes)).min(low + BYTES.load(Ordering::Relaxed));
    let mut at = addr.max(low);
    while at < end {
        if shadow_of(at)?.load(Ordering::Relaxed) != 0 {
            return Some(at);
        }
        at = (at & !((1 << GRAIN_SHIFT) - 1)) + (1 << GRAIN_SHIFT);
    }
    None
}

/// Ends the run if the thread, which holds the turn, is about to access freed memory, unless that
/// is allowed.
#[inline]
pub(crate) fn check(me: u32, addr: u64, bytes: u64, pc: u64) {
    if let Some(addr) = first_freed(addr, bytes) {
        used(me, addr, pc);
    }
}

#[cold]
fn used(me: u32, addr: u64, pc: u64) {
    if !allow::lifts(Judgement::UseAfterFree, pc) {
        die::stop(Ending::UseAfterFree, me, pc, addr);
    }
}

/// Number of bytes from an address on, up to `bytes`, that freed blocks of the heap still hold.
pub(crate) fn n_held(addr: u64, bytes: u64) -> u64 {
    let mut end = addr;
    while end < addr.saturating_add(bytes)
        && shadow_of(end).is_some_and(|shadow| shadow.load(Ordering::Relaxed) != 0)
    {
        end = (end & !((1 << GRAIN_SHIFT) - 1)) + (1 << GRAIN_SHIFT);
    }
    (end - addr).min(bytes)
}

/// Whether a fault at this address is due to a freed block whose pages we protected. Called from
/// a signal handler, so it does not wait.
pub(crate) fn is_protected(addr: u64) -> bool {
    QUARANTINE.try_lock().is_some_and(|quarantine| {
        quarantine.elsewhere.range(..=addr).next_back().is_some_and(|(_, &end)| addr < end)
    })
}

/// Keeps a block that the program has freed. Blocks that must be returned to libc in exchange are
/// passed to `give_back`, including the block itself if it cannot be kept.
pub(crate) fn keep(start: u64, bytes: u64, mut give_back: impl FnMut(u64)) {
    let size_word = |at: u64| {
        // SAFETY: glibc keeps the size of a block in the word before it, and the following block
        // does so too, as long as the heap is intact; otherwise libc would fault there as well.
        unsafe { *((at - 8) as *const u64) }
    };
    const MAPPED: u64 = 2;
    let mut block = Block { start, bytes, pages: (0, 0) };
    let mut quarantine = QUARANTINE.lock();
    if quarantine.shadow == 0 {
        drop(quarantine);
        give_back(start);
        return;
    }
    let is_in_heap =
        (quarantine.heap..quarantine.heap + HEAP_BYTES - bytes.min(HEAP_BYTES)).contains(&start);
    let size = size_word(start);
    if is_in_heap {
        let chunk = size & !7;
        let next = if (32..CHUNK_MAX).contains(&chunk) { size_word(start + chunk) & !7 } else { 0 };
        if !start.is_multiple_of(16) || !(16..CHUNK_MAX).contains(&next) {
            // libc reports what is wrong with it.
            drop(quarantine);
            give_back(start);
            return;
        }
        if !quarantine.has_shadow(start + bytes) {
            drop(quarantine);
            give_back(start);
            return;
        }
        quarantine.mark(start, bytes, 1);
    } else {
        if size & MAPPED != 0 {
            // The first page holds the block's size, which nobody needs until we return it.
            let first = if start % PAGE == 16 { start - 16 } else { start.next_multiple_of(PAGE) };
            block.pages = (first, (start + bytes) & !(PAGE - 1));
            protect(block.pages);
        }
        quarantine.elsewhere.insert(start, start + bytes);
    }
    N_ELSEWHERE.store(quarantine.elsewhere.len() as u64, Ordering::Relaxed);
    quarantine.cost += block.cost();
    quarantine.queue.push_back(block);
    while quarantine.cost > BYTES_MAX || quarantine.queue.len() > BLOCKS_MAX {
        let Some(oldest) = quarantine.queue.pop_front() else { break };
        quarantine.cost -= oldest.cost();
        if quarantine.elsewhere.remove(&oldest.start).is_none() {
            quarantine.mark(oldest.start, oldest.bytes, 0);
        }
        unprotect(oldest.pages);
        drop(quarantine);
        give_back(oldest.start);
        quarantine = QUARANTINE.lock();
    }
}

impl Quarantine {
    /// Maps the shadow of the heap up to an address; false if there is no room.
    fn has_shadow(&mut self, end: u64) -> bool {
        let n_needed = ((end - self.heap) >> GRAIN_SHIFT) + 1;
        while self.n_shadow < n_needed {
            if !sys::map_reserved(self.shadow + self.n_shadow, SHADOW_PART as usize) {
                return false;
            }
            self.n_shadow += SHADOW_PART;
        }
        true
    }

    /// Sets the shadow of a block of the heap.
    fn mark(&mut self, start: u64, bytes: u64, mark: u8) {
        let first = self.shadow + ((start - self.heap) >> GRAIN_SHIFT);
        let n = bytes.div_ceil(1 << GRAIN_SHIFT);
        // SAFETY: the block lies in the part of the heap that has a shadow.
        unsafe { core::ptr::write_bytes(first as *mut u8, mark, n as usize) };
        let low = LOW.load(Ordering::Relaxed);
        let end = (low + BYTES.load(Ordering::Relaxed)).max(start + bytes);
        if low == 0 || start < low {
            LOW.store(start, Ordering::Relaxed);
            SHADOW.store(first, Ordering::Relaxed);
        }
        BYTES.store(end - LOW.load(Ordering::Relaxed), Ordering::Relaxed);
        shared::watch();
    }
}

/// Drops the memory behind the pages, and access to them.
fn protect((low, high): (u64, u64)) {
    if low < high {
        // The block's size is in the first page, which therefore keeps its memory.
        sys::syscall!(
            libc::SYS_madvise,
            low + PAGE,
            (high - low).saturating_sub(PAGE),
            libc::MADV_DONTNEED
        );
        sys::syscall!(libc::SYS_mprotect, low, high - low, libc::PROT_NONE);
    }
}

fn unprotect((low, high): (u64, u64)) {
    if low < high {
        sys::syscall!(libc::SYS_mprotect, low, high - low, libc::PROT_READ | libc::PROT_WRITE);
    }
}
