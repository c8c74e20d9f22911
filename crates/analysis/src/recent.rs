//! Data used while a trace is read: recent accesses that later ones are compared with, and a
//! small index to find summaries.

use raddle_trace::id::{Addr, ThreadId};

use crate::classes::{Occurrence, Site};

/// An access that later ones of its thread may belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recent {
    pub(crate) mark: Mark,
    pub(crate) thread: ThreadId,
    pub(crate) site: Site,
    pub(crate) addr: Addr,
    pub(crate) bytes: u32,
    pub(crate) writes: bool,
}

/// When an access happened and what it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) occurrence: Occurrence,
    /// The outermost critical section that it is in, numbered per thread; 0 for none.
    pub(crate) section: u32,
    /// The function activation that it is in, and the caller's, numbered per thread.
    pub(crate) activations: [u32; 2],
}

impl Recent {
    /// Whether the two have a byte in common.
    #[inline]
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.addr.0 < other.addr.0 + u64::from(other.bytes)
            && other.addr.0 < self.addr.0 + u64::from(self.bytes)
    }
}

/// Small keys that distinguish the elements of a list, searched instead of the list.
#[derive(Clone, Debug)]
pub(crate) struct Tags<T>(Vec<T>);

impl<T> Default for Tags<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Number of tags compared at once.
const LANES: usize = 16;

impl<T: Copy + Eq> Tags<T> {
    /// The first element with this tag that satisfies `is`.
    #[inline]
    pub(crate) fn find(&self, tag: T, mut is: impl FnMut(usize) -> bool) -> Option<usize> {
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for (chunk, tags) in chunks.iter().enumerate() {
            if tags.iter().fold(false, |any, &other| any | (other == tag))
                && let Some(at) = (0..LANES).find(|&at| tags[at] == tag && is(chunk * LANES + at))
            {
                return Some(chunk * LANES + at);
            }
        }
        let before = chunks.len() * LANES;
        (0..rest.len()).find(|&at| rest[at] == tag && is(before + at)).map(|at| before + at)
    }

    /// The first element whose tag satisfies `is`.
    #[inline]
    pub(crate) fn position(&self, is: impl Fn(&T) -> bool) -> Option<usize> {
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        let any = |tags: &[T; LANES]| tags.iter().fold(false, |any, tag| any | is(tag));
        match chunks.iter().position(any) {
            Some(chunk) => chunks[chunk].iter().position(is).map(|at| chunk * LANES + at),
            None => rest.iter().position(is).map(|at| chunks.len() * LANES + at),
        }
    }

    /// Adds the tag of the list's next element.
    pub(crate) fn push(&mut self, tag: T) {
        self.0.push(tag);
    }

    /// One tag per cache line.
    #[inline]
    pub(crate) fn lines(&self) -> impl Iterator<Item = T> {
        self.0.iter().step_by(64 / size_of::<T>()).copied()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// A tag for two words.
#[inline]
pub(crate) fn mix(one: u64, two: u64) -> u16 {
    // Odd constants without a pattern.
    let mixed = one.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ two.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(23);
    (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 48) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_their_tags() {
        let mut tags = Tags::<u16>::default();
        for at in 0..50 {
            tags.push(at % 7);
        }
        for first in 0..50_usize {
            let found = tags.find(first as u16 % 7, |at| at >= first);
            assert_eq!(found, Some(first));
        }
        assert_eq!(tags.find(3, |_| false), None);
        assert_eq!(tags.find(7, |_| true), None);
    }
}
