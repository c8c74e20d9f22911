//! Locations: which accesses touch the same memory.
//!
//! A program reads a field of 4 bytes, clears the structure around it with `memset`, and copies
//! half of it as one word of 8 bytes. Locations are what such accesses have in common: bytes are
//! cut wherever an access begins or ends, and what lies between two adjacent cuts is one location
//! if it was accessed. So an access covers only whole locations, and two accesses overlap exactly
//! if they cover a common location. (The alternative, joining whatever overlaps into one
//! location, would merge all the fields that a `memset` ever covered, and report races between
//! unrelated fields.)
//!
//! For each page of 4096 bytes that is touched there are two bitmaps: which bytes were accessed,
//! and where the cuts are. Ranges larger than a page are kept as intervals, so that they cost as
//! little as short ones, however long they claim to be.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::id::Addr;

/// A set of locations, which becomes finer with each access.
#[derive(Default)]
pub struct Locations {
    pages: Vec<Page>,
    // From page number to index in `pages`.
    places: FxHashMap<u64, u32>,
    // The page that was touched last: number and index.
    last: Option<(u64, u32)>,
    // Long ranges, merged where they meet: start to end.
    spans: BTreeMap<u64, u64>,
    n_retired: u64,
}

const PAGE_BITS: u32 = 12;
const PAGE_BYTES: u64 = 1 << PAGE_BITS;
const WORDS: usize = (PAGE_BYTES / 64) as usize;

#[derive(Clone)]
struct Page {
    number: u64,
    accessed: [u64; WORDS],
    cuts: [u64; WORDS],
}

impl Locations {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an access to `bytes` bytes at `addr`.
    pub fn touch(&mut self, addr: Addr, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let bit = addr.0 & 63;
        if bytes < 64 - bit {
            // Most accesses stay within one word of the bitmaps, cuts included.
            let word = (addr.0 & (PAGE_BYTES - 1)) >> 6;
            let page = self.page(addr.0 >> PAGE_BITS);
            page.accessed[word as usize] |= ((1 << bytes) - 1) << bit;
            page.cuts[word as usize] |= (1 << bytes | 1) << bit;
            return;
        }
        let (start, end) = (addr.0, addr.0.saturating_add(bytes));
        self.cut(start);
        self.cut(end);
        if end - start > PAGE_BYTES {
            self.insert_span(start, end);
            return;
        }
        let mut from = start;
        while from < end {
            let to = end.min(page_bytes(from >> PAGE_BITS).end);
            for (word, mask) in masks(from, to) {
                self.page(from >> PAGE_BITS).accessed[word] |= mask;
            }
            from = to;
        }
    }

    /// Forgets a block of memory, since it will hold other data. Its locations stay counted.
    pub fn retire(&mut self, block: Addr, bytes: u64) {
        let (start, end) = (block.0, block.0.saturating_add(bytes));
        if start >= end {
            return;
        }
        let (first, last) = (start >> PAGE_BITS, (end - 1) >> PAGE_BITS);
        // Whichever is fewer: the block's pages, or those that exist.
        let places: Vec<u32> = if last - first < self.places.len() as u64 {
            (first..=last).filter_map(|number| self.places.get(&number).copied()).collect()
        } else {
            let inside = |(number, _): &(&u64, &u32)| (first..=last).contains(*number);
            self.places.iter().filter(inside).map(|(_, &place)| place).collect()
        };
        for place in places {
            let place = place as usize;
            let accessed = self.accessed(&self.pages[place]);
            let page = &mut self.pages[place];
            let Range { start: low, end: high } = page_bytes(page.number);
            for (word, mask) in masks(start.max(low), end.min(high)) {
                let n = (page.cuts[word] & accessed[word] & mask).count_ones();
                self.n_retired += u64::from(n);
                page.accessed[word] &= !mask;
                page.cuts[word] &= !mask;
            }
        }
        self.remove_span(start, end);
        // What a straddling access covered outside the block has borders again.
        for (border, outside) in [(start, start.saturating_sub(1)), (end, end)] {
            if self.is_accessed(outside) {
                self.cut(border);
            }
        }
    }

    /// Number of locations, including retired ones.
    #[must_use]
    pub fn count(&self) -> u64 {
        let in_page = |page: &Page| -> u64 {
            let accessed = self.accessed(page);
            page.cuts
                .iter()
                .zip(accessed)
                .map(|(cuts, bits)| u64::from((cuts & bits).count_ones()))
                .sum()
        };
        self.n_retired + self.pages.iter().map(in_page).sum::<u64>()
    }

    /// The locations in address order.
    #[must_use]
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut pages: Vec<&Page> = self.pages.iter().collect();
        pages.sort_unstable_by_key(|page| page.number);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        // The start of a location whose end has not been seen.
        let mut open = None;
        for page in pages {
            let accessed = self.accessed(page);
            for (word, &cuts) in page.cuts.iter().enumerate() {
                let mut left = cuts;
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    let at = page.number << PAGE_BITS | (word as u64) << 6 | u64::from(bit);
                    ranges.extend(open.take().map(|start| start..at));
                    open = (accessed[word] >> bit & 1 != 0).then_some(at);
                }
            }
        }
        ranges
    }

    fn cut(&mut self, at: u64) {
        let bit = at & (PAGE_BYTES - 1);
        self.page(at >> PAGE_BITS).cuts[(bit >> 6) as usize] |= 1 << (bit & 63);
    }

    #[inline]
    fn page(&mut self, number: u64) -> &mut Page {
        let place = match self.last {
            Some((last, place)) if last == number => place,
            _ => {
                let pages = &mut self.pages;
                let place = *self.places.entry(number).or_insert_with(|| {
                    pages.push(Page { number, accessed: [0; WORDS], cuts: [0; WORDS] });
                    (pages.len() - 1) as u32
                });
                self.last = Some((number, place));
                place
            }
        };
        &mut self.pages[place as usize]
    }

    /// The accessed bytes of a page, including those in long ranges.
    fn accessed(&self, page: &Page) -> [u64; WORDS] {
        let mut accessed = page.accessed;
        let Range { start, end } = page_bytes(page.number);
        for (&from, &to) in self.spans.range(..end).rev().take_while(|&(_, &to)| to > start) {
            for (word, mask) in masks(from.max(start), to.min(end)) {
                accessed[word] |= mask;
            }
        }
        accessed
    }

    fn is_accessed(&self, at: u64) -> bool {
        let bit = at & (PAGE_BYTES - 1);
        let in_page = self.places.get(&(at >> PAGE_BITS)).is_some_and(|&place| {
            self.pages[place as usize].accessed[(bit >> 6) as usize] >> (bit & 63) & 1 != 0
        });
        in_page || self.spans.range(..=at).next_back().is_some_and(|(_, &end)| end > at)
    }

    fn insert_span(&mut self, mut start: u64, mut end: u64) {
        while let Some((&from, &to)) = self.spans.range(..=end).next_back()
            && to >= start
        {
            self.spans.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.spans.insert(start, end);
    }

    fn remove_span(&mut self, start: u64, end: u64) {
        while let Some((&from, &to)) = self.spans.range(..end).next_back()
            && to > start
        {
            self.spans.remove(&from);
            if from < start {
                self.spans.insert(from, start);
            }
            if to > end {
                self.spans.insert(end, to);
            }
        }
    }
}

/// The bytes of a page. Omitting the very last byte does no harm: the target's half of the
/// address space ends long before it.
fn page_bytes(number: u64) -> Range<u64> {
    let start = number << PAGE_BITS;
    start..start.saturating_add(PAGE_BYTES)
}

/// The words of a page's bitmap that `from..to` covers, with the bits in question. Both are in
/// one page, or `to` is the page's end.
fn masks(from: u64, to: u64) -> impl Iterator<Item = (usize, u64)> {
    let first = from & (PAGE_BYTES - 1);
    let end = first + (to - from);
    (first >> 6..end.div_ceil(64)).map(move |word| {
        let (low, high) = (word << 6, (word << 6) + 64);
        let skip = first.saturating_sub(low);
        let spare = high.saturating_sub(end);
        (word as usize, u64::MAX << skip & u64::MAX >> spare)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `accesses` are "start+length", an "x" before one retires the block.
    fn check(accesses: &str, expect: &str) {
        let mut locations = Locations::new();
        let mut n_retired = 0;
        for access in accesses.split_whitespace() {
            let number = |text: &str| text.parse::<u64>().expect("a number");
            let (start, bytes) = access.trim_start_matches('x').split_once('+').expect("a +");
            let (start, bytes) = (Addr(number(start)), number(bytes));
            if access.starts_with('x') {
                locations.retire(start, bytes);
                n_retired = locations.n_retired;
            } else {
                locations.touch(start, bytes);
            }
        }
        let ranges = locations.ranges();
        assert_eq!(locations.count(), n_retired + ranges.len() as u64);
        let shown: Vec<_> =
            ranges.iter().map(|r| format!("{}+{}", r.start, r.end - r.start)).collect();
        assert_eq!(format!("{n_retired} {}", shown.join(" ")).trim(), expect);
    }

    #[test]
    fn equal_accesses_share_a_location() {
        check("8+4 8+4", "0 8+4");
    }

    #[test]
    fn neighbours_do_not() {
        check("8+4 12+4", "0 8+4 12+4");
    }

    #[test]
    fn a_wide_access_covers_the_fields_within() {
        check("8+4 8+8", "0 8+4 12+4");
        check("8+16 12+4", "0 8+4 12+4 16+8");
    }

    #[test]
    fn an_unaligned_access_is_cut() {
        check("8+8 12+8", "0 8+4 12+4 16+4");
    }

    #[test]
    fn a_gap_is_no_location() {
        check("0+1 100+1", "0 0+1 100+1");
    }

    #[test]
    fn pages_do_not_cut() {
        check("4090+16", "0 4090+16");
        check("4088+8 4096+8", "0 4088+8 4096+8");
    }

    #[test]
    fn a_long_range_covers_what_lies_within() {
        check("0+100000 50000+8", "0 0+50000 50000+8 50008+49992");
        check("50000+8 0+100000", "0 0+50000 50000+8 50008+49992");
        check("0+10000 5000+10000", "0 0+5000 5000+5000 10000+5000");
    }

    #[test]
    fn a_range_of_absurd_length_costs_nothing() {
        check("16+18446744073709551615 64+8", "0 16+48 64+8 72+18446744073709551543");
        check("16+18446744073709551615 x0+18446744073709551615", "1");
    }

    #[test]
    fn a_freed_block_starts_anew() {
        check("8+4 12+4 100+4 x8+8 8+8", "2 8+8 100+4");
        check("4096+4 0+100000 x4096+8192", "2 0+4096 12288+87712");
        check("4+8 x8+8", "0 4+4");
        check("4+8 x0+8", "1 8+4");
    }

    #[test]
    fn an_empty_access_touches_nothing() {
        check("8+0", "0");
    }
}
