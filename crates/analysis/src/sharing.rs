//! Escape analysis: which memory more than one thread touches, and at least one writes.
//!
//! A pass of its own before everything else, so that what only one thread touches, most
//! often nearly all, costs the analyses nothing. Memory is told apart in granules of eight
//! bytes. Two threads that use the same memory one after the other, with a `free` in
//! between, count as sharing it; the analyses tell generations apart.
//!
//! Granules that are shared are numbered as they come to be, so that the passes behind this
//! one find what they know of a granule by its number, in an array.

use std::cell::Cell;

use raddle_trace::event::{AtomicAction, Event, Op};
use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::FxHashMap;

/// Bytes of a granule, as a power of two.
pub const GRANULE_BITS: u32 = 3;

/// Granules of a page.
const PAGE: u64 = 512;

/// Pages that are found without a search. Programs stay on some dozen for a while.
const N_RECENT: usize = 256;

/// Who touches what.
#[derive(Clone, Debug)]
pub struct Sharing {
    pages: Vec<[Word; PAGE as usize]>,
    by_number: FxHashMap<u64, u32>,
    /// Pages that were looked at, by the lower part of their number: number and place.
    recent: Box<[Cell<(u64, u32)>; N_RECENT]>,
    n_shared: u32,
}

impl Default for Sharing {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            by_number: FxHashMap::default(),
            recent: Box::new([const { Cell::new((u64::MAX, 0)) }; N_RECENT]),
            n_shared: 0,
        }
    }
}

/// What is known of a granule: its number if it is shared and written, else who touched it.
#[derive(Clone, Copy, Debug, Default)]
struct Word(u32);

impl Word {
    /// Shared and written; the rest is the number.
    const NUMBERED: u32 = 1 << 31;
    /// More than one thread touches it.
    const SHARED: u32 = 1 << 30;
    /// Somebody wrote it.
    const WRITTEN: u32 = 1 << 29;
    /// The only thread that touches it, from 1 on.
    const OWNER: u32 = Self::WRITTEN - 1;

    #[inline]
    fn number(self) -> Option<u32> {
        (self.0 & Self::NUMBERED != 0).then_some(self.0 & !Self::NUMBERED)
    }

    #[inline]
    fn touch(&mut self, owner: u32, writes: bool, n_shared: &mut u32) {
        if self.0 & Self::NUMBERED != 0 {
            return;
        }
        let before = self.0 & Self::OWNER;
        let shared = before != 0 && before != owner;
        self.0 |=
            if shared { Self::SHARED } else { owner } | if writes { Self::WRITTEN } else { 0 };
        if self.0 & (Self::SHARED | Self::WRITTEN) == Self::SHARED | Self::WRITTEN {
            self.0 = Self::NUMBERED | *n_shared;
            *n_shared += 1;
        }
    }
}

impl Sharing {
    /// Takes the next event of a trace.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        match event.op {
            Op::Read(access) => self.touch(event.thread, access.addr, access.bytes, false),
            Op::Write(access) => self.touch(event.thread, access.addr, access.bytes, true),
            Op::Enter { .. } | Op::Leave | Op::Step => {}
            _ => self.push_rare(event),
        }
    }

    fn push_rare(&mut self, event: &Event) {
        match event.op {
            Op::Atomic(atomic) => {
                let writes = !matches!(atomic.action, AtomicAction::Load | AtomicAction::Miss);
                self.touch(event.thread, atomic.addr, u64::from(atomic.bytes), writes);
            }
            Op::Free { block, bytes } => self.touch(event.thread, block, bytes, true),
            Op::Init { object, .. } | Op::Destroy { object, .. } => {
                self.touch(event.thread, object, 1, true);
            }
            Op::Acquire(lock) | Op::Release(lock) => self.touch(event.thread, lock.lock, 1, false),
            Op::CondWait { cond: object, .. }
            | Op::CondSignal { cond: object, .. }
            | Op::CondBroadcast { cond: object, .. }
            | Op::SemPost(object)
            | Op::SemAsk(object)
            | Op::SemWait { semaphore: object, .. }
            | Op::BarrierEnter(object) => self.touch(event.thread, object, 1, false),
            _ => {}
        }
    }

    #[inline]
    fn touch(&mut self, thread: ThreadId, addr: Addr, bytes: u64, writes: bool) {
        let owner = thread.0.min(Word::OWNER - 1) + 1;
        let (first, last) = granules(addr, bytes);
        let mut granule = first;
        while granule <= last {
            let place = match self.place(granule / PAGE) {
                Some(place) => place,
                None => self.add(granule / PAGE),
            };
            let end = (granule / PAGE + 1) * PAGE - 1;
            let page = &mut self.pages[place];
            let words = (granule % PAGE) as usize..=(end.min(last) % PAGE) as usize;
            for word in &mut page[words] {
                word.touch(owner, writes, &mut self.n_shared);
            }
            granule = end + 1;
        }
    }

    /// Where a page is.
    #[inline]
    fn place(&self, page: u64) -> Option<usize> {
        let recent = &self.recent[page as usize % N_RECENT];
        let (known, place) = recent.get();
        if known == page {
            return Some(place as usize);
        }
        let place = *self.by_number.get(&page)?;
        recent.set((page, place));
        Some(place as usize)
    }

    #[cold]
    fn add(&mut self, page: u64) -> usize {
        let place = self.pages.len();
        self.pages.push([Word::default(); PAGE as usize]);
        self.by_number.insert(page, place as u32);
        place
    }

    /// The number of a granule (an address without its lower bits) that is shared and written.
    #[inline]
    #[must_use]
    pub fn number(&self, granule: u64) -> Option<u32> {
        let place = self.place(granule / PAGE)?;
        self.pages[place][(granule % PAGE) as usize].number()
    }

    /// The granules of a block that are shared and written, with their numbers.
    pub fn numbers(&self, addr: Addr, bytes: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        let (first, last) = granules(addr, bytes);
        (first / PAGE..=last / PAGE).flat_map(move |page| {
            let place = self.place(page);
            let from = first.max(page * PAGE);
            let to = last.min(page * PAGE + PAGE - 1);
            let range = if place.is_some() { from..to + 1 } else { 0..0 };
            range.filter_map(move |granule| {
                let word = self.pages[place?][(granule % PAGE) as usize];
                Some((granule, word.number()?))
            })
        })
    }

    /// How many granules are shared and written: numbers are below it.
    #[must_use]
    pub fn n_shared(&self) -> u64 {
        u64::from(self.n_shared)
    }
}

/// The first and the last granule of a block.
#[inline]
pub(crate) fn granules(addr: Addr, bytes: u64) -> (u64, u64) {
    (addr.0 >> GRANULE_BITS, addr.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse;

    /// Numbers of the granules of the first few names of a trace.
    #[track_caller]
    fn check(text: &str, expected: &[Option<u32>]) {
        let mut sharing = Sharing::default();
        parse(text).events.iter().for_each(|event| sharing.push(event));
        let first = 0x1000 >> GRANULE_BITS;
        let numbers: Vec<_> =
            (0..expected.len() as u64).map(|at| sharing.number(first + at)).collect();
        assert_eq!(numbers, expected);
        let all: Vec<_> = sharing.numbers(Addr(0), 0x3000).map(|(_, number)| number).collect();
        let listed: Vec<_> = expected.iter().copied().flatten().collect();
        assert_eq!(all, listed);
        assert_eq!(sharing.n_shared(), listed.len() as u64);
    }

    #[test]
    fn what_one_thread_touches_is_not_shared() {
        check("T0 write x\n T0 read x\n T1 write y", &[None, None]);
    }

    #[test]
    fn what_nobody_writes_is_not_shared() {
        check("T0 read x\n T1 read x", &[None]);
    }

    #[test]
    fn the_write_may_come_last_or_first() {
        check("T0 read x\n T1 read x\n T0 write x", &[Some(0)]);
        check("T0 write x\n T1 read x", &[Some(0)]);
    }

    #[test]
    fn granules_are_numbered_as_they_come_to_be_shared() {
        check("T0 write x\n T0 write y\n T1 read y\n T1 read x", &[Some(1), Some(0)]);
    }
}
