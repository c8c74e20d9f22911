//! What threads that never block have not seen before.
//!
//! Two threads that hand something over by an atomic, and yield until it is theirs, may never
//! block. They look like a livelock, but one repeats itself: sooner or later all that its threads
//! read and write was there before. So a value that its memory did not have since we began to look is
//! progress.
//!
//! We look only if threads have yielded for a while without other progress, and keep a Bloom filter
//! of (address, value) pairs: a pair that is new may count as seen, but not the other way around. When
//! it is full, we begin anew. Thus a loop of more than [`PAIRS_MAX`] pairs is never a livelock,
//! and neither is one that counts its own rounds in memory; the limit on steps ends those.

/// Pairs that the filter holds before it is emptied.
const PAIRS_MAX: u32 = 4096;
/// Bits of the filter: 16 per pair, of which a pair has two, so that at most one new pair in 70
/// counts as seen.
const BITS: usize = 16 * PAIRS_MAX as usize;

/// Pairs of address and value.
pub(super) struct Novelty {
    bits: [u64; BITS / 64],
    n_pairs: u32,
}

impl Novelty {
    pub(super) const fn new() -> Self {
        Self { bits: [0; BITS / 64], n_pairs: 0 }
    }

    /// Adds a pair; returns whether it is new.
    pub(super) fn is_new(&mut self, addr: u64, value: u64) -> bool {
        let hash = mix(mix(addr) ^ value);
        let places = [hash as usize % BITS, (hash >> 32) as usize % BITS];
        let is_set = |&place: &usize| self.bits[place / 64] >> (place % 64) & 1 != 0;
        if places.iter().all(is_set) {
            return false;
        }
        if self.n_pairs == PAIRS_MAX {
            *self = Self::new();
        }
        self.n_pairs += 1;
        for place in places {
            self.bits[place / 64] |= 1 << (place % 64);
        }
        true
    }
}

/// The last step of `SplitMix64`: every bit depends on all others.
fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_itself_is_not_new() {
        let mut novelty = Novelty::new();
        let n_new = (0..1000).filter(|n| novelty.is_new(8 * (n % 7), n % 3)).count();
        assert_eq!(n_new, 21);
    }

    #[test]
    fn a_counter_is_always_new() {
        let mut novelty = Novelty::new();
        let n_new = (0..100_000).filter(|&n| novelty.is_new(0x7fff_0000, n)).count();
        assert!(n_new > 98_000, "{n_new}");
    }
}
