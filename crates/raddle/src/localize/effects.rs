//! Causes and their effects.
//!
//! An effect is as well confirmed as its cause, and most often more suspect: it always leads to the
//! failure, and not every cause leads to it. But it never comes without its cause, and its cause comes
//! without it.

use super::order::Candidate;

/// What is in so many times the share of failing runs as of passing ones tells them apart.
const TELLING: f64 = 2.0;

/// When something came about, in each run that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    pub(crate) failed: Vec<Option<u64>>,
    pub(crate) passed: Vec<Option<u64>>,
}

impl Course {
    /// Whether it tells failing from passing runs, and came about before another in every run that
    /// has the other, and also in runs that have not.
    fn leads_to(&self, other: &Self) -> bool {
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

/// Brings suspects of which all else is equal behind those that lead to them; others stay.
pub(crate) fn causes_first<T>(alike: &mut [Candidate<T>]) {
    for at in 0..alike.len() {
        alike[at].has_effects = alike.iter().any(|other| leads_to(&alike[at], other));
    }
    for at in 0..alike.len() {
        let rest = &mut alike[at..];
        let is_led = |one: &Candidate<T>| rest.iter().any(|other| leads_to(other, one));
        let first = rest.iter().position(|one| !is_led(one)).unwrap_or(0);
        rest[..=first].rotate_right(1);
    }
}

fn leads_to<T>(one: &Candidate<T>, other: &Candidate<T>) -> bool {
    match (&one.course, &other.course) {
        (Some(one), Some(other)) => one.leads_to(other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Spot;
    use super::*;

    /// The order of suspects by when they came about in a failing and two passing runs.
    fn check(suspects: &[(&'static str, [Option<u64>; 3])], wanted: &[&str]) {
        let mut alike: Vec<_> = suspects
            .iter()
            .map(|&(name, [failed, one, two])| Candidate {
                course: Some(Course { failed: vec![failed], passed: vec![one, two] }),
                ..Candidate::new(name, Spot::default(), 0.0)
            })
            .collect();
        causes_first(&mut alike);
        assert_eq!(alike.iter().map(|one| one.what).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn an_effect_comes_behind_its_cause() {
        let effect = ("effect", [Some(9), None, None]);
        check(&[effect, ("cause", [Some(3), Some(4), None])], &["cause", "effect"]);
        check(&[effect, ("later", [Some(10), Some(4), None])], &["effect", "later"]);
        check(&[effect, ("never alone", [Some(3), None, None])], &["effect", "never alone"]);
        check(&[effect, ("everywhere", [Some(3), Some(4), Some(4)])], &["effect", "everywhere"]);
    }
}
