//! Escape analysis: which memory more than one thread touches, and at least one writes.
//!
//! A separate first pass, so that memory touched by only one thread, usually almost all, costs
//! the analyses nothing. The unit is a granule of eight bytes. Two threads that use the same
//! memory one after the other, with a `free` in between, count as sharing it; the analyses
//! distinguish generations.
//!
//! Shared granules are numbered in order of appearance, so that later passes can look up what
//! they know of a granule in an array.

use std::cell::Cell;

use raddle_trace::event::Event;
use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::FxHashMap;

use crate::accessed::accessed;

/// Size of a granule, as a power of two.
pub const GRANULE_BITS: u32 = 3;

/// Granules per page.
const PAGE: u64 = 512;

/// Size of the cache of recent pages. Programs stay on a few dozen pages for a while.
const N_RECENT: usize = 256;

/// Which threads touch which memory.
#[derive(Clone, Debug)]
pub struct Sharing {
    pages: Vec<[Word; PAGE as usize]>,
    by_number: FxHashMap<u64, u32>,
    /// Recent pages by the lower bits of their number: number and index.
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

/// What is known of a granule: its number if it is shared and written, otherwise who touched it.
#[derive(Clone, Copy, Debug, Default)]
struct Word(u32);

impl Word {
    /// Shared and written; the other bits are the number.
    const NUMBERED: u32 = 1 << 31;
    /// More than one thread has touched it.
    const SHARED: u32 = 1 << 30;
    /// A thread has written it.
    const WRITTEN: u32 = 1 << 29;
    /// The only thread that has touched it, from 1.
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
    /// Adds the next event of a trace.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        if let Some((kind, addr, bytes)) = accessed(&event.op) {
            self.touch(event.thread, addr, bytes, kind.writes());
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

    /// Index of a page.
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

    /// The number of a granule (an address without its lower bits) if it is shared and written.
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

    /// The numbers of the granules of a block of any size that are shared and written.
    pub fn numbers_within(&self, addr: Addr, bytes: u64) -> impl Iterator<Item = u32> + '_ {
        let first = addr.0 >> GRANULE_BITS;
        let last = addr.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS;
        let pages = first / PAGE..=last / PAGE;
        // Whichever is fewer: the block's pages, or those that exist.
        let mut places: Vec<(u64, usize)> = if last / PAGE - first / PAGE < self.pages.len() as u64
        {
            pages.filter_map(|page| Some((page, self.place(page)?))).collect()
        } else {
            let all = self.by_number.iter().map(|(&page, &place)| (page, place as usize));
            all.filter(|(page, _)| pages.contains(page)).collect()
        };
        places.sort_unstable();
        places.into_iter().flat_map(move |(page, place)| {
            let from = first.max(page * PAGE) % PAGE;
            let to = last.min(page * PAGE + PAGE - 1) % PAGE;
            self.pages[place][from as usize..=to as usize].iter().filter_map(|word| word.number())
        })
    }

    /// Number of granules that are shared and written; granule numbers are below it.
    #[must_use]
    pub fn n_shared(&self) -> u64 {
        u64::from(self.n_shared)
    }
}

/// Of an access to more bytes than this, such as one large `memset`, only the first ones count. A
/// trace from elsewhere may claim any size.
const RANGE_BYTES_MAX: u64 = 1 << 24;

/// The first and the last granule of a block.
#[inline]
pub(crate) fn granules(addr: Addr, bytes: u64) -> (u64, u64) {
    let bytes = bytes.min(RANGE_BYTES_MAX);
    (addr.0 >> GRANULE_BITS, addr.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse;

    /// Checks the numbers of the granules of the first few names of a trace.
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
        for bytes in [0x3000, u64::MAX] {
            assert_eq!(sharing.numbers_within(Addr(0), bytes).collect::<Vec<_>>(), listed);
        }
        assert_eq!(sharing.numbers_within(Addr(0x100_0000), u64::MAX).count(), 0);
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
