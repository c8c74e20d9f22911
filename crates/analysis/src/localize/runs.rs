//! The runs that are compared: which passed and which failed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::{Facts, Pair, Pattern, PatternFact, SiteAccess};
use super::formula::Counts;

/// Passing and failing runs.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Runs that passed.
    pub passed: &'a [Facts],
    /// Runs that failed, all with the same failure.
    pub failed: &'a [Facts],
}

/// A pattern of failing runs, and how many runs have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) failed: usize,
    pub(super) passed: usize,
    /// The first failing run that has it.
    pub(super) example: usize,
}

impl<'a> Runs<'a> {
    /// The patterns of failing runs.
    ///
    /// A run also has a pattern of two accesses if it continues to one of three, or has the pair:
    /// windows report two accesses only if no third one follows, and a run that its failure cut
    /// short lacks what would have followed.
    pub(super) fn patterns(&self) -> Vec<Counted<'a>> {
        let mut all: FxHashMap<&'a [SiteAccess], Counted<'a>> = FxHashMap::default();
        for (example, facts) in self.failed.iter().enumerate() {
            for PatternFact { pattern, .. } in &facts.patterns {
                let new = Counted { pattern, failed: 0, passed: 0, example };
                all.entry(&pattern.accesses).or_insert(new);
            }
        }
        let pairs: Vec<&'a [SiteAccess]> =
            all.keys().copied().filter(|accesses| accesses.len() == 2).collect();
        let mut had: FxHashSet<&[SiteAccess]> = FxHashSet::default();
        for (facts, fails) in self.all() {
            had.clear();
            for PatternFact { pattern, .. } in &facts.patterns {
                had.insert(&pattern.accesses);
                had.insert(&pattern.accesses[..2]);
            }
            had.extend(pairs.iter().filter(|accesses| {
                facts.pair(Pair { head: accesses[0], tail: accesses[1] }).is_some()
            }));
            for accesses in &had {
                if let Some(counted) = all.get_mut(accesses) {
                    *(if fails { &mut counted.failed } else { &mut counted.passed }) += 1;
                }
            }
        }
        all.into_values().collect()
    }

    /// All runs, and whether each failed.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'a Facts, bool)> {
        let failed = self.failed.iter().map(|facts| (facts, true));
        failed.chain(self.passed.iter().map(|facts| (facts, false)))
    }

    /// Number of runs for which `is_so` holds.
    pub(super) fn counts(&self, is_so: impl Fn(&Facts) -> bool) -> Counts {
        let count = |runs: &[Facts]| runs.iter().filter(|facts| is_so(facts)).count();
        let (failed, passed) = (count(self.failed), count(self.passed));
        Counts { failed, passed, n_failed: self.failed.len(), n_passed: self.passed.len() }
    }

    /// For each pair, the passing runs that have it.
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
    /// Number of runs in the set.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The runs in both sets.
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

    /// Whether no run is in both sets.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(one, two)| one & two == 0)
    }
}
