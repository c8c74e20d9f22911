//! The order of suspects.
//!
//! Where accesses are counts most ([`Objections`]), then what
//! executions say of them, then what comparing runs says.
//!
//! In detail, each criterion deciding among suspects that the ones before it leave equal:
//!
//! - *Where accesses are.* The program's own code before libraries. Code that passing runs
//!   reach too before code that only failing runs reach, which is an effect. Accesses that
//!   could come in another order before those that cannot (one thread has created or joined the
//!   other) or should not (the use of a lock before its end). Memory before the words of locks.
//!   In a deadlock, what threads wait for before what they do not; in a lock cycle, what closes
//!   it before anything else. The first two do not count for a confirmed cause, which may be
//!   anywhere in the code.
//! - *What executions say.* Confirmed; confirmed, but the failure stays when it is flipped, so
//!   there are other causes; unknown; refuted. Coupled pairs come later if one of the pairs
//!   alone makes runs fail as often and the other no more than chance does. So do, after single
//!   pairs that are causes, coupled pairs that passing runs may lack by accident, since few of
//!   them have either pair (`Suspect::is_accident`: if the pairs were independent, no run would
//!   have both with a likelihood of more than one in twenty).
//! - Pairs that are part of patterns that were found to be causes.
//! - *Suspicion.* At least half as suspect as the best, before the rest; then
//!   [`super::effects`]; only then the score itself, as Falcon and LOCON have it. Among equals,
//!   triples first, and what came first in the run.

use super::candidate::{Candidate, Objections, Weight};
use super::effects::causes_first;

/// Sorts suspects, the most likely cause first, and gives each its rank. Equal ones keep their order
/// and share a rank.
pub(super) fn sort<T>(candidates: &mut [Candidate<T>]) -> Vec<Rank> {
    let open = candidates.iter().filter(|one| one.weight() <= Weight::Unknown);
    let best = open.map(|one| one.score).fold(0.0, f64::max);
    let class = |one: &Candidate<T>| {
        let weight = match one.weight() {
            weight if one.is_padded => weight.max(Weight::Unknown),
            weight if one.is_accident => weight.max(Weight::Likely),
            weight => weight,
        };
        let Objections { foreign, unusual, fixed, lock, elsewhere } = one.objections;
        // A confirmed cause may be anywhere in the code.
        let code = (weight > Weight::Confirmed).then_some((foreign, unusual));
        let is_apart = weight > Weight::Confirmed && !one.is_part;
        (code.unwrap_or_default(), fixed, lock, elsewhere, weight, one.is_padded, is_apart)
    };
    let key = |one: &Candidate<T>| (class(one), one.score < best / 2.0);
    candidates.sort_by_key(key);
    for alike in candidates.chunk_by_mut(|one, two| class(one) == class(two)) {
        if !alike[0].is_confirmed() {
            causes_first(alike);
        }
    }
    let same = |one: &Candidate<T>, two: &Candidate<T>| {
        key(one) == key(two) && one.score.total_cmp(&two.score).is_eq()
    };
    let mut ranks = Vec::new();
    for equals in candidates.chunk_by(same) {
        let (rank, n_ties) = (ranks.len() + 1, equals.len());
        ranks.extend(equals.iter().map(|_| Rank { rank, n_ties }));
    }
    ranks
}

/// The place of a suspect among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// From 1; the next rank counts those before.
    pub rank: usize,
    /// How many suspects share it.
    pub n_ties: usize,
}

#[cfg(test)]
mod tests {
    use super::super::candidate::Objections;
    use super::super::check::{Evidence, Forcing};
    use super::*;

    /// The order of suspects by score, failing and passing runs that they were forced on.
    fn check(suspects: &[(&'static str, f64, usize, usize)], wanted: &[(&'static str, usize)]) {
        let candidate = |&(name, score, n_failed, n_passed): &(&'static str, f64, usize, usize)| {
            let is_telling = n_failed > n_passed;
            let forced = Forcing { n_failed, n_passed, is_telling };
            let evidence = Evidence { forced, gone: None };
            Candidate { evidence, ..Candidate::new(name, Objections::default(), score) }
        };
        let mut candidates: Vec<_> = suspects.iter().map(candidate).collect();
        let ranks = sort(&mut candidates);
        let told: Vec<_> =
            candidates.iter().zip(&ranks).map(|(one, rank)| (one.what, rank.rank)).collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn executions_count_more_than_suspicion() {
        check(
            &[("refuted", 1.0, 0, 4), ("unknown", 0.9, 0, 0), ("confirmed", 0.8, 4, 0)],
            &[("confirmed", 1), ("unknown", 2), ("refuted", 3)],
        );
    }

    #[test]
    fn a_confirmed_cause_that_is_far_less_suspect_comes_after_the_others() {
        check(&[("weak", 0.1, 4, 0), ("strong", 0.9, 3, 1)], &[("strong", 1), ("weak", 2)]);
    }

    #[test]
    fn what_passing_runs_lack_by_accident_comes_after_causes_and_before_the_unknown() {
        let fails = Forcing { n_failed: 4, n_passed: 0, is_telling: true };
        let cause = |name, is_accident| {
            let evidence = Evidence { forced: fails, gone: None };
            Candidate { evidence, is_accident, ..Candidate::new(name, Objections::default(), 1.0) }
        };
        let unknown = Candidate::new("unknown", Objections::default(), 1.0);
        let mut candidates = [unknown, cause("accident", true), cause("cause", false)];
        sort(&mut candidates);
        assert_eq!(candidates.map(|one| one.what), ["cause", "accident", "unknown"]);
    }

    #[test]
    fn equals_share_a_rank() {
        check(
            &[("one", 1.0, 0, 0), ("two", 1.0, 0, 0), ("three", 0.9, 0, 0)],
            &[("one", 1), ("two", 1), ("three", 3)],
        );
    }

    #[test]
    fn what_could_not_be_otherwise_comes_last() {
        let fixed = Objections { fixed: true, ..Objections::default() };
        let mut candidates = [
            Candidate::new("fixed", fixed, 1.0),
            Candidate::new("free", Objections::default(), 0.1),
        ];
        sort(&mut candidates);
        assert_eq!(candidates.map(|one| one.what), ["free", "fixed"]);
    }
}
