//! When a suspect came about, in each run.

/// What is in so many times the share of failing runs as of passing ones tells them apart.
const TELLING: f64 = 2.0;

/// When something came about, in each run that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) failed: Vec<Option<u64>>,
    pub(super) passed: Vec<Option<u64>>,
}

impl Timeline {
    /// Whether it tells failing from passing runs, and came about before another in every run that
    /// has the other, and also in runs that have not.
    pub(super) fn leads_to(&self, other: &Self) -> bool {
        let pairs = || self.runs().zip(other.runs());
        let comes_before = |pair: (Option<u64>, Option<u64>)| match pair {
            (_, None) => true,
            (Some(one), Some(other)) => one <= other,
            (None, Some(_)) => false,
        };
        self.is_telling()
            && other.runs().any(|time| time.is_some())
            && pairs().all(comes_before)
            && pairs().any(|(one, other)| one.is_some() && other.is_none())
    }

    fn runs(&self) -> impl Iterator<Item = Option<u64>> {
        self.failed.iter().chain(&self.passed).copied()
    }

    fn is_telling(&self) -> bool {
        let share = |times: &[Option<u64>]| {
            times.iter().flatten().count() as f64 / times.len().max(1) as f64
        };
        share(&self.failed) >= TELLING * share(&self.passed)
    }
}
