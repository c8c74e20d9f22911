//! Runs that are compared: which passed, and which failed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::{Act, Facts, Pair, Pattern, PatternFact};
use super::rank::Counts;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Those that passed.
    pub passed: &'a [Facts],
    /// Those that failed, all in the same way.
    pub failed: &'a [Facts],
}

/// A pattern that failing runs tell, and how many runs have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) failed: usize,
    pub(super) passed: usize,
    /// The first failing run that tells it.
    pub(super) example: usize,
}

impl<'a> Runs<'a> {
    /// The patterns that failing runs tell.
    ///
    /// A run has a pattern of two accesses also if it goes on to one of three, or depends on it:
    /// windows tell of two only where no third one follows, and in a run that was cut off by its
    /// failure much does not follow.
    pub(super) fn patterns(&self) -> Vec<Counted<'a>> {
        let mut all: FxHashMap<&'a [Act], Counted<'a>> = FxHashMap::default();
        for (example, facts) in self.failed.iter().enumerate() {
            for PatternFact { pattern, .. } in &facts.patterns {
                let new = Counted { pattern, failed: 0, passed: 0, example };
                all.entry(&pattern.acts).or_insert(new);
            }
        }
        let pairs: Vec<&'a [Act]> = all.keys().copied().filter(|acts| acts.len() == 2).collect();
        let mut had: FxHashSet<&[Act]> = FxHashSet::default();
        for (facts, fails) in self.all() {
            had.clear();
            for PatternFact { pattern, .. } in &facts.patterns {
                had.insert(&pattern.acts);
                had.insert(&pattern.acts[..2]);
            }
            had.extend(
                pairs
                    .iter()
                    .filter(|acts| facts.pair(Pair { head: acts[0], tail: acts[1] }).is_some()),
            );
            for acts in &had {
                if let Some(counted) = all.get_mut(acts) {
                    *(if fails { &mut counted.failed } else { &mut counted.passed }) += 1;
                }
            }
        }
        all.into_values().collect()
    }

    /// All runs, and whether they failed.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'a Facts, bool)> {
        let failed = self.failed.iter().map(|facts| (facts, true));
        failed.chain(self.passed.iter().map(|facts| (facts, false)))
    }

    /// In how many runs something is so.
    pub(super) fn counts(&self, is_so: impl Fn(&Facts) -> bool) -> Counts {
        let count = |runs: &[Facts]| runs.iter().filter(|facts| is_so(facts)).count();
        let (failed, passed) = (count(self.failed), count(self.passed));
        Counts { failed, passed, n_failed: self.failed.len(), n_passed: self.passed.len() }
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
