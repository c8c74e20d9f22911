//! Memory that was freed, and whoever uses it all the same.
//!
//! Under control `free` gives nothing back at once. The block waits in a queue, the oldest is
//! given back when there are too many, and until then its memory is nobody's: a use of it is
//! found when it happens, not when somebody else has come to own the same bytes.
//!
//! - Blocks of libc's main heap have a shadow, one byte for 16 of theirs: no two blocks share
//!   so many. From the first free on the access path looks at it, for addresses between the
//!   lowest and the highest block that was ever freed. Threads get no heaps of their own (`M_ARENA_MAX`), which under control they have no use for.
//! - Blocks that libc maps by themselves lose their pages, and a use is a fault.
//!
//! Once a block is given back its uses go unseen: nothing is marked that libc may hand out,
//! to whomever and by whatever way, so that no correct program is accused. Code that is not
//! instrumented is not looked at; nor are blocks elsewhere, such as those of a heap that could
//! not grow in place, but they are known when they are freed twice.

use alloc::collections::{BTreeMap, VecDeque};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use raddle_trace::control::Ending;

use crate::guarded::Guarded;
use crate::real::real;
use crate::{hook, shared, sys};

/// Bytes that wait to be given back, at most.
const BYTES_MAX: u64 = 64 << 20;
/// Blocks that wait to be given back, at most: small ones come back while the cache still has
/// some of them.
const BLOCKS_MAX: usize = 1 << 16;
/// Protected pages take address space only, and count for so much less.
const PROTECTED_DISCOUNT: u64 = 256;
/// How much of the heap has a shadow; it takes memory only where blocks are freed.
const HEAP_BYTES: u64 = 16 << 30;
/// What the heap may have below its end when we start.
const HEAP_BEFORE: u64 = 64 << 20;
/// Bytes per byte of shadow.
const GRAIN_SHIFT: u32 = 4;
const PAGE: u64 = 4096;
/// Memory from here on is larger than libc ever makes a chunk of the heap.
const CHUNK_MAX: u64 = 1 << 34;

/// For the access path: where the freed blocks begin, how many bytes to their end, and the
/// shadow of the first.
pub(crate) static LOW: AtomicU64 = AtomicU64::new(0);
/// See [`LOW`].
pub(crate) static BYTES: AtomicU64 = AtomicU64::new(0);
/// See [`LOW`].
pub(crate) static SHADOW: AtomicU64 = AtomicU64::new(0);

/// How many blocks without a shadow are kept.
static N_ELSEWHERE: AtomicU64 = AtomicU64::new(0);

static QUARANTINE: Guarded<Quarantine> = Guarded::new(Quarantine {
    heap: 0,
    shadow: 0,
    queue: VecDeque::new(),
    cost: 0,
    elsewhere: BTreeMap::new(),
});

struct Quarantine {
    /// First address with a shadow, and that shadow; 0 if nothing is watched.
    heap: u64,
    shadow: u64,
    /// The oldest first.
    queue: VecDeque<Block>,
    /// Of all blocks in the queue.
    cost: u64,
    /// Ends of the blocks in the queue that have no shadow, by their starts.
    elsewhere: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy)]
struct Block {
    start: u64,
    bytes: u64,
    /// The pages that were taken from it.
    pages: (u64, u64),
}

impl Block {
    fn cost(&self) -> u64 {
        if self.pages.0 < self.pages.1 { self.bytes / PROTECTED_DISCOUNT } else { self.bytes }
    }
}

/// Under control: from now on freed blocks are kept.
pub(crate) fn start() {
    const M_ARENA_MAX: i32 = -8;
    real!(mallopt(M_ARENA_MAX => i32, 1 => i32) -> i32);
    let end = sys::syscall!(libc::SYS_brk, 0) as u64;
    let shadow = sys::map_anonymous((HEAP_BYTES >> GRAIN_SHIFT) as usize) as u64;
    if shadow != 0 {
        let mut quarantine = QUARANTINE.lock();
        quarantine.heap = end.saturating_sub(HEAP_BEFORE) & !(PAGE - 1);
        quarantine.shadow = shadow;
    }
}

/// In a forked child, where the thread that had the lock may not exist.
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

/// The first byte of a range that is part of a freed block of the heap.
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

/// Ends the run if the access of a thread that has the turn is one to freed memory.
#[inline]
pub(crate) fn check(me: u32, addr: u64, bytes: u64, pc: u64) {
    if let Some(addr) = first_freed(addr, bytes) {
        hook::stop(Ending::UseAfterFree, me, pc, addr, b"");
    }
}

/// Whether a fault at this address came from taking the pages of a freed block. From a signal
/// handler, so it does not wait.
pub(crate) fn is_protected(addr: u64) -> bool {
    QUARANTINE.try_lock().is_some_and(|quarantine| {
        quarantine.elsewhere.range(..=addr).next_back().is_some_and(|(_, &end)| addr < end)
    })
}

/// Keeps a block that the program has freed. What is to be given back for it goes to
/// `give_back`; that is the block itself if it is not one that can be kept.
pub(crate) fn keep(start: u64, bytes: u64, mut give_back: impl FnMut(u64)) {
    let size_word = |at: u64| {
        // SAFETY: glibc keeps the size of a block in the word before it, and so does the block
        // behind it, as long as the heap is whole; where it is not libc would fault there too.
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
            // libc says what is wrong with it.
            drop(quarantine);
            give_back(start);
            return;
        }
        quarantine.mark(start, bytes, 1);
    } else {
        if size & MAPPED != 0 {
            // The first page holds the block's size, which nobody needs until we give it back.
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

/// Takes the memory behind the pages, and the right to use them.
fn protect((low, high): (u64, u64)) {
    if low < high {
        // The size of the block is in the first page, so that one keeps its memory.
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
