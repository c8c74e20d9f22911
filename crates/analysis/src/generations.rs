//! Generations of memory: the same addresses, allocated or mapped again.
//!
//! Accesses to one location are summed up by generation ([`crate::accesses`]). Pairs of locations
//! are kept by address alone, and ask here.

use raddle_trace::id::Addr;

use crate::sharing::GRANULE_BITS;

/// When generations ended.
#[derive(Clone, Debug, Default)]
pub struct Generations {
    /// Granule and position in the trace. invariant: sorted.
    ends: Vec<(u64, u64)>,
}

impl Generations {
    /// From granules and positions in any order.
    #[must_use]
    pub fn new(mut ends: Vec<(u64, u64)>) -> Self {
        ends.sort_unstable();
        Self { ends }
    }

    /// Whether accesses to an address at two positions belong to one generation.
    #[must_use]
    pub fn same(&self, addr: Addr, one: u64, two: u64) -> bool {
        let granule = addr.0 >> GRANULE_BITS;
        let (before, after) = (one.min(two), one.max(two));
        let next = self.ends.partition_point(|&end| end <= (granule, before));
        self.ends.get(next).is_none_or(|&(other, at)| other != granule || at > after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_separates_what_came_before_from_what_comes_after() {
        let generations = Generations::new(vec![(2, 20), (1, 10), (2, 30)]);
        let same = |addr, one, two| generations.same(Addr(addr), one, two);
        assert!(same(8, 1, 9) && same(8, 11, 99) && !same(8, 9, 11) && !same(8, 11, 9));
        assert!(same(16, 1, 19) && same(16, 21, 29) && !same(16, 19, 31) && !same(20, 29, 31));
        assert!(same(0, 1, 99) && same(24, 1, 99));
    }
}
