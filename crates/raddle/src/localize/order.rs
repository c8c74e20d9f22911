//! The order in which suspects are told.
//!
//! Where accesses are comes first ([`Spot`]), then what executions say of them, then what
//! comparing runs says.

use raddle_analysis::localize::facts::Act;
use raddle_analysis::witness::Deed;
use raddle_report::symbols::name::Namer;
use raddle_trace::id::Site;
use raddle_trace::run::Run;

use super::again::{self, Again};
use super::confirm::Evidence;
use super::effects::{Course, causes_first};
use super::sample::Sample;

/// A suspect, with all that decides where it is told.
pub(crate) struct Candidate<T> {
    pub(crate) what: T,
    pub(crate) spot: Spot,
    /// By comparing runs.
    pub(crate) score: f64,
    /// By executing them.
    pub(crate) evidence: Evidence,
    /// It is part of a confirmed cause.
    pub(crate) is_part: bool,
    /// A part of it says as much, or runs that have it pass.
    pub(crate) is_padded: bool,
    /// That no passing run has it may be by chance.
    pub(crate) is_accident: bool,
    /// Pairs of its accesses that could not come in another order, or should not.
    pub(crate) n_fixed: usize,
    /// When it came about; none if no run failed for it.
    pub(crate) course: Option<Course>,
    /// Others are its effects.
    pub(crate) has_effects: bool,
}

impl<T> Candidate<T> {
    /// Before runs were executed.
    pub(crate) fn new(what: T, spot: Spot, score: f64) -> Self {
        let evidence = Evidence::default();
        let (course, has_effects) = Default::default();
        let (is_part, is_padded, is_accident, n_fixed) = Default::default();
        Self {
            what,
            spot,
            score,
            evidence,
            is_part,
            is_padded,
            is_accident,
            n_fixed,
            course,
            has_effects,
        }
    }

    /// Whether executions show that it is a cause.
    pub(crate) const fn is_confirmed(&self) -> bool {
        weight(self.evidence) == CONFIRMED
    }
}

/// Brings suspects into their order, and gives each its rank. Equal ones stay as they are, and
/// share a rank.
pub(crate) fn sort<T>(candidates: &mut [Candidate<T>]) -> Vec<Rank> {
    let open = candidates.iter().filter(|one| weight(one.evidence) <= UNKNOWN);
    let best = open.map(|one| one.score).fold(0.0, f64::max);
    let class = |one: &Candidate<T>| {
        let weight = match weight(one.evidence) {
            weight if one.is_padded => weight.max(UNKNOWN),
            weight if one.is_accident => weight.max(LIKELY),
            weight => weight,
        };
        let Spot { foreign, unusual, fixed, lock, elsewhere } = one.spot;
        // A confirmed cause may be anywhere in the code.
        let code = (weight > CONFIRMED).then_some((foreign, unusual));
        let is_apart = weight > CONFIRMED && !one.is_part;
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
pub(crate) struct Rank {
    /// From 1; the next rank counts those before.
    pub(crate) rank: usize,
    /// How many share it.
    pub(crate) n_ties: usize,
}

/// Runs fail with it, if not most of them then far more than by chance.
const CONFIRMED: u8 = 0;
/// They do, but there is more to it.
const LIKELY: u8 = 1;
/// Nothing is known, or as much for it as against it.
const UNKNOWN: u8 = 2;

/// What executions say: the less the better.
const fn weight(evidence: Evidence) -> u8 {
    let is_possible = evidence.forced.n() > 0;
    match (evidence.forced.fails(), evidence.gone) {
        (Some(true), Some(true) | None) => CONFIRMED,
        // There are other ways to fail as well.
        (Some(true), Some(false)) => LIKELY,
        (None, Some(false)) if !is_possible => 3,
        (None, _) => UNKNOWN,
        (Some(false), Some(true) | None) => 3,
        (Some(false), Some(false)) => 4,
    }
}

/// Where accesses are: what is said of them speaks against them, the first the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// Not all are in the program's own code.
    foreign: bool,
    /// Passing runs do not come to all of them: they are most often an effect.
    unusual: bool,
    /// Their order could be no other one, or should be no other one.
    fixed: bool,
    /// They are to the words of locks, which only follow the others.
    lock: bool,
    /// Threads wait in vain, and not for what they are about.
    elsewhere: bool,
}

/// Where a cause is to be looked for first.
pub(crate) struct Place<'a> {
    run: &'a Run,
    namer: Namer,
    passed: &'a [Sample],
    failed: Option<&'a Again>,
}

impl<'a> Place<'a> {
    /// By the names of a failed run, by passing runs, and by that run once more.
    pub(crate) fn new(run: &'a Run, passed: &'a [Sample], failed: Option<&'a Again>) -> Self {
        Self { run, namer: Namer::new(run), passed, failed }
    }

    /// Where accesses are: two pairs of them, or two or three that follow each other.
    pub(crate) fn of(&self, acts: &[Act]) -> Spot {
        let passes = |act: Act| self.passed.iter().any(|sample| sample.facts.has(act));
        // Where a thread waits in vain others take the lock; in a circle it need not be usual.
        let is_usual = |act: &Act| match act.deed {
            Deed::Block => {
                self.failed.is_some_and(|run| run.is_waited_for(*act))
                    || passes(Act { deed: Deed::Acquire, ..*act })
            }
            _ => passes(*act),
        };
        let n_pairs = if acts.len() == 4 { 2 } else { acts.len() - 1 };
        let in_run = |is_so: &dyn Fn(&Again) -> bool| self.failed.is_some_and(is_so);
        Spot {
            foreign: !acts.iter().all(|act| self.is_own(act.site)),
            unusual: !acts.iter().all(is_usual),
            fixed: self.n_fixed(acts) == n_pairs,
            lock: in_run(&|run| acts.iter().all(|act| run.is_of_lock(*act))),
            elsewhere: in_run(&|run| !acts.iter().any(|act| run.is_waited_for(*act))),
        }
    }

    /// How many pairs of accesses that follow each other do so in any order of threads, or should.
    pub(crate) fn n_fixed(&self, acts: &[Act]) -> usize {
        let Some(run) = self.failed else { return 0 };
        let is_fixed = |pair: &&[Act]| is_due(pair[0], pair[1]) || run.is_fixed(pair[0], pair[1]);
        match acts.len() {
            4 => acts.chunks(2).filter(is_fixed).count(),
            _ => acts.windows(2).filter(is_fixed).count(),
        }
    }

    /// Tells the program's own code from that of libraries, where a cause rarely is.
    fn is_own(&self, site: Site) -> bool {
        let pc = again::pc(self.run, site);
        pc.is_some_and(|pc| self.namer.site(pc).own_frame().is_some())
    }
}

/// Whether two accesses to a synchronization object come in the order in which they should: it is
/// used after it begins and before it ends. Not so for other memory, where whoever has used it may
/// rely on what is gone then.
const fn is_due(head: Act, tail: Act) -> bool {
    let begins = matches!(head.deed, Deed::Init) && !matches!(tail.deed, Deed::Init);
    let ends = matches!(tail.deed, Deed::Destroy) && !matches!(head.deed, Deed::Destroy);
    head.deed.is_of_object() && tail.deed.is_of_object() && (begins || ends)
}

#[cfg(test)]
mod tests {
    use super::super::confirm::Forced;
    use super::*;

    /// The order of suspects by score, failing and passing runs that they were forced on.
    fn check(suspects: &[(&'static str, f64, usize, usize)], wanted: &[(&'static str, usize)]) {
        let candidate = |&(name, score, n_failed, n_passed): &(&'static str, f64, usize, usize)| {
            let is_telling = n_failed > n_passed;
            let forced = Forced { n_failed, n_passed, is_telling };
            let evidence = Evidence { forced, gone: None };
            Candidate { evidence, ..Candidate::new(name, Spot::default(), score) }
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
    fn a_confirmed_cause_that_is_far_less_suspect_comes_behind_the_others() {
        check(&[("weak", 0.1, 4, 0), ("strong", 0.9, 3, 1)], &[("strong", 1), ("weak", 2)]);
    }

    #[test]
    fn what_passing_runs_lack_by_accident_comes_behind_causes_and_before_the_unknown() {
        let fails = Forced { n_failed: 4, n_passed: 0, is_telling: true };
        let cause = |name, is_accident| {
            let evidence = Evidence { forced: fails, gone: None };
            Candidate { evidence, is_accident, ..Candidate::new(name, Spot::default(), 1.0) }
        };
        let unknown = Candidate::new("unknown", Spot::default(), 1.0);
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
    fn a_lock_is_to_be_used_between_its_beginning_and_its_end() {
        let act = |deed| Act { site: Site(0), deed };
        let is_due = |head, tail| super::is_due(act(head), act(tail));
        assert!(is_due(Deed::Init, Deed::Acquire) && is_due(Deed::Release, Deed::Destroy));
        assert!(!is_due(Deed::Destroy, Deed::Release) && !is_due(Deed::Acquire, Deed::Init));
        assert!(!is_due(Deed::Destroy, Deed::Destroy) && !is_due(Deed::Read, Deed::Free));
    }

    #[test]
    fn what_could_not_be_otherwise_comes_last() {
        let fixed = Spot { fixed: true, ..Spot::default() };
        let mut candidates =
            [Candidate::new("fixed", fixed, 1.0), Candidate::new("free", Spot::default(), 0.1)];
        sort(&mut candidates);
        assert_eq!(candidates.map(|one| one.what), ["free", "fixed"]);
    }
}
