//! Suspicion scores, computed from the number of runs that have something.

/// A formula that turns counts into a suspicion score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formula {
    /// failed(p) / (all failed + passed(p)), as in Falcon.
    #[default]
    Jaccard,
    /// The share of failing runs relative to the share of passing runs.
    Tarantula,
    /// The cosine similarity of having p and failing.
    Ochiai,
    /// failed(p)² / (passed(p) + failed without p).
    DStar,
}

/// Number of runs that have something, and of all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Failing runs that have it.
    pub failed: usize,
    /// Passing runs that have it.
    pub passed: usize,
    /// All failing runs.
    pub n_failed: usize,
    /// All passing runs.
    pub n_passed: usize,
}

impl Formula {
    /// The score for these counts. Infinite for DStar if no run speaks against it.
    #[must_use]
    pub fn score(self, counts: Counts) -> f64 {
        let Counts { failed, passed, n_failed, n_passed } = counts;
        let [failed, passed, n_failed, n_passed] =
            [failed, passed, n_failed, n_passed].map(|n| n as f64);
        if failed == 0.0 {
            return 0.0;
        }
        match self {
            Self::Jaccard => failed / (n_failed + passed),
            Self::Tarantula => {
                let share = failed / n_failed;
                let other = if n_passed == 0.0 { 0.0 } else { passed / n_passed };
                share / (share + other)
            }
            Self::Ochiai => failed / (n_failed * (failed + passed)).sqrt(),
            Self::DStar => failed * failed / (passed + n_failed - failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(failed: usize, passed: usize) -> Counts {
        Counts { failed, passed, n_failed: 4, n_passed: 4 }
    }

    #[test]
    fn formulas_give_what_they_are_known_for() {
        assert_eq!(Formula::Jaccard.score(counts(4, 0)), 1.0);
        assert_eq!(Formula::Jaccard.score(counts(2, 4)), 0.25);
        assert_eq!(Formula::Tarantula.score(counts(4, 4)), 0.5);
        assert_eq!(Formula::Ochiai.score(counts(1, 0)), 0.5);
        assert_eq!(Formula::DStar.score(counts(2, 0)), 2.0);
        assert_eq!(Formula::DStar.score(counts(4, 0)), f64::INFINITY);
        for formula in [Formula::Jaccard, Formula::Tarantula, Formula::Ochiai, Formula::DStar] {
            assert_eq!(formula.score(counts(0, 3)), 0.0);
        }
    }
}
