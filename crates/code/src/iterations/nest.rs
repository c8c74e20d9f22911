//! The loop nest of an access.

use raddle_trace::id::Pc;

/// A loop of the target, numbered in order of appearance in a [`super::Tracker`];
/// [`super::Tracker::entry`] identifies it across trackers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

/// The loops and iterations of an access. Small and without a pointer, so that it can be kept
/// with each access.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nest {
    // Innermost first. Entries beyond `depth` are zero, so that equal nests compare equal.
    pub(super) loops: [LoopId; Self::KEPT],
    pub(super) iterations: [u32; Self::KEPT],
    pub(super) depth: u8,
}

const _: () = assert!(size_of::<Nest>() == 36);

/// An unknown iteration.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// A nest whose loops are unknown.
const DEPTH_UNKNOWN: u8 = u8::MAX;

impl Nest {
    /// Maximum number of loops kept; the innermost ones.
    pub const KEPT: usize = 4;

    /// A nest of which nothing is known.
    pub const UNKNOWN: Self =
        Self { loops: [LoopId(0); Self::KEPT], iterations: [0; Self::KEPT], depth: DEPTH_UNKNOWN };

    /// Number of loops around the access, kept or not, up to 254; none if unknown.
    #[must_use]
    pub fn depth(&self) -> Option<usize> {
        (self.depth != DEPTH_UNKNOWN).then_some(self.depth.into())
    }

    /// The kept loops, innermost first, each with its iteration from 0, if known.
    pub fn iter(&self) -> impl Iterator<Item = (LoopId, Option<u32>)> + use<> {
        let n_kept = self.depth().unwrap_or(0).min(Self::KEPT);
        let iteration = |n: u32| (n != UNKNOWN).then_some(n);
        self.loops.into_iter().zip(self.iterations.map(iteration)).take(n_kept)
    }
}

impl std::fmt::Debug for Nest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.depth() {
            Some(_) => f.debug_list().entries(self.iter()).finish(),
            None => f.write_str("unknown"),
        }
    }
}

/// A loop around an access, and the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoopIteration {
    /// The first instruction of the loop's header.
    pub entry: Pc,
    /// The iteration from 0; none if unknown.
    pub iteration: Option<u32>,
}
