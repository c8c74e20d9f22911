//! Escape analysis: which memory more than one thread touches, and at least one writes.
//!
//! A pass of its own before everything else, so that what only one thread touches, most
//! often nearly all, costs the analyses nothing. Memory is told apart in granules of eight
//! bytes. Two threads that use the same memory one after the other, with a `free` in
//! between, count as sharing it; the analyses tell generations apart.

use raddle_trace::event::{AtomicAction, Event, Op};
use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::FxHashMap;

/// Bytes of a granule, as a power of two.
pub const GRANULE_BITS: u32 = 3;

/// Granules of a page.
const PAGE: usize = 512;

/// Who touches what.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    pages: FxHashMap<u64, Box<[u16; PAGE]>>,
    n_shared: u64,
}

/// More than one thread touches it.
const SHARED: u16 = 1 << 15;
/// Somebody wrote it.
const WRITTEN: u16 = 1 << 14;
/// The only thread that touches it, from 1 on.
const OWNER: u16 = WRITTEN - 1;

impl Sharing {
    /// Takes the next event of a trace.
    pub fn push(&mut self, event: &Event) {
        match event.op {
            Op::Read(access) => self.touch(event.thread, access.addr, access.bytes, false),
            Op::Write(access) => self.touch(event.thread, access.addr, access.bytes, true),
            Op::Atomic(atomic) => {
                let writes = !matches!(atomic.action, AtomicAction::Load | AtomicAction::Miss);
                self.touch(event.thread, atomic.addr, u64::from(atomic.bytes), writes);
            }
            Op::Free { block, bytes } => self.touch(event.thread, block, bytes, true),
            Op::Init { object, .. } | Op::Destroy { object, .. } => {
                self.touch(event.thread, object, 1, true);
            }
            Op::Acquire(lock) => self.touch(event.thread, lock.lock, 1, false),
            Op::CondWait { cond: object, .. }
            | Op::CondSignal { cond: object, .. }
            | Op::CondBroadcast { cond: object, .. }
            | Op::SemPost(object)
            | Op::SemWait { semaphore: object, .. }
            | Op::BarrierEnter(object) => self.touch(event.thread, object, 1, false),
            _ => {}
        }
    }

    fn touch(&mut self, thread: ThreadId, addr: Addr, bytes: u64, writes: bool) {
        let owner = (thread.0 as u16).min(OWNER - 1) + 1;
        let first = addr.0 >> GRANULE_BITS;
        let last = addr.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS;
        let mut granule = first;
        while granule <= last {
            let page =
                self.pages.entry(granule / PAGE as u64).or_insert_with(|| Box::new([0; PAGE]));
            let end = (granule / PAGE as u64 + 1) * PAGE as u64;
            while granule <= last && granule < end {
                let word = &mut page[granule as usize % PAGE];
                let before = *word & OWNER;
                let shared = before != 0 && before != owner;
                let was = *word & (SHARED | WRITTEN) == SHARED | WRITTEN;
                *word |= if shared { SHARED } else { owner } | if writes { WRITTEN } else { 0 };
                self.n_shared += u64::from(!was && *word & (SHARED | WRITTEN) == SHARED | WRITTEN);
                granule += 1;
            }
        }
    }

    /// Whether a granule (an address without its lower bits) is shared and written.
    #[must_use]
    pub fn is_shared(&self, granule: u64) -> bool {
        let page = self.pages.get(&(granule / PAGE as u64));
        page.is_some_and(|page| {
            page[granule as usize % PAGE] & (SHARED | WRITTEN) == SHARED | WRITTEN
        })
    }

    /// How many granules are shared and written.
    #[must_use]
    pub fn n_shared(&self) -> u64 {
        self.n_shared
    }
}
