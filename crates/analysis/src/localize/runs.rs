//! Runs that are compared: which passed, and which failed.

use rustc_hash::FxHashMap;

use super::facts::{Facts, Pair, Pattern};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Those that passed.
    pub passed: &'a [Facts],
    /// Those that failed, all in the same way.
    pub failed: &'a [Facts],
}

/// Patterns with the number of runs that have them, and the first of these.
type PatternCounts<'a> = FxHashMap<&'a Pattern, (usize, usize)>;

impl<'a> Runs<'a> {
    pub(super) fn failed_patterns(&self) -> PatternCounts<'a> {
        patterns(self.failed)
    }

    pub(super) fn passed_patterns(&self) -> PatternCounts<'a> {
        patterns(self.passed)
    }

    /// Which passing runs have which pair.
    #[must_use]
    pub fn passed_pairs(&self) -> FxHashMap<Pair, Bits> {
        let n_words = self.passed.len().div_ceil(64);
        let mut pairs: FxHashMap<Pair, Bits> = FxHashMap::default();
        for (number, facts) in self.passed.iter().enumerate() {
            for fact in &facts.pairs {
                let bits = pairs.entry(fact.pair).or_insert_with(|| Bits(vec![0; n_words].into()));
                bits.0[number / 64] |= 1 << (number % 64);
            }
        }
        pairs
    }
}

fn patterns(runs: &[Facts]) -> PatternCounts<'_> {
    let mut counts: PatternCounts<'_> = FxHashMap::default();
    for (number, facts) in runs.iter().enumerate() {
        for fact in &facts.patterns {
            counts.entry(&fact.pattern).or_insert((0, number)).0 += 1;
        }
    }
    counts
}

/// A set of runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bits(Box<[u64]>);

impl Bits {
    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Those that are in both.
    pub fn both<'b>(&'b self, other: &'b Self) -> impl Iterator<Item = usize> + 'b {
        self.0.iter().zip(&other.0).enumerate().flat_map(|(at, (one, two))| {
            let mut word = one & two;
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                word &= word.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }

    /// Whether there are none in both.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(one, two)| one & two == 0)
    }
}
