//! Where in its loops an access was.

use raddle_trace::id::Pc;

/// A loop of the target, numbered as a [`Tracker`] meets them; [`Tracker::entry`] has a name
/// for it that other trackers understand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

/// Where in its loops an access was. Small, and without a pointer, so that it can be kept with
/// each access.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nest {
    // Innermost first. What lies behind `depth` is zero, so that equal nests compare equal.
    pub(super) loops: [LoopId; Self::KEPT],
    pub(super) iterations: [u32; Self::KEPT],
    pub(super) depth: u8,
}

const _: () = assert!(size_of::<Nest>() == 36);

/// An iteration that is not known.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// A nest of which not even the loops are known.
const DEPTH_UNKNOWN: u8 = u8::MAX;

impl Nest {
    /// How many loops are kept; of more, the innermost.
    pub const KEPT: usize = 4;

    /// Nothing is known.
    pub const UNKNOWN: Self =
        Self { loops: [LoopId(0); Self::KEPT], iterations: [0; Self::KEPT], depth: DEPTH_UNKNOWN };

    /// How many loops are around the access, kept or not, up to 254; none if that is not known.
    #[must_use]
    pub fn depth(&self) -> Option<usize> {
        (self.depth != DEPTH_UNKNOWN).then_some(self.depth.into())
    }

    /// The loops that are kept, innermost first, and the iteration in each, from 0; none if
    /// it is not known.
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

/// A loop that an access was in, and in which iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Turn {
    /// The first instruction of the loop's header.
    pub entry: Pc,
    /// From 0; none if it is not known.
    pub iteration: Option<u32>,
}
