//! Random numbers: small, fast, deterministic (xorshift64*, Vigna 2016).

/// A sequence of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of a seed; different `stream`s of one seed are unrelated.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        // One round of splitmix64 over both, so that neighboring seeds differ everywhere.
        let mut z = seed
            .wrapping_add(stream.wrapping_mul(0xd134_2543_de82_ef95))
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        Self(if z == 0 { 0x9e37_79b9_7f4a_7c15 } else { z })
    }

    /// Restores a sequence from [`Random::state`].
    pub(crate) const fn from_state(state: u64) -> Self {
        Self(if state == 0 { 1 } else { state })
    }

    /// The state, in one word.
    pub(crate) const fn state(self) -> u64 {
        self.0
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn neighbouring_seeds_differ() {
        let firsts: Vec<u64> = (0..100).map(|seed| Random::new(seed, 0).next()).collect();
        let mut unique = firsts.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), firsts.len());
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut random = Random::new(7, 1);
        let mut seen = [false; 5];
        for _ in 0..1000 {
            seen[random.below(5) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
    }
}
