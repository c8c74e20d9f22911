//! Suspects, with all that decides their rank.

use super::check::Evidence;
use super::timeline::Timeline;

/// A suspect, with all that decides its rank.
pub(super) struct Candidate<T> {
    pub(super) what: T,
    pub(super) objections: Objections,
    /// By comparing runs.
    pub(super) score: f64,
    /// By executing them.
    pub(super) evidence: Evidence,
    /// It is part of a confirmed cause.
    pub(super) is_part: bool,
    /// A part of it says as much, or runs that have it pass.
    pub(super) is_padded: bool,
    /// That no passing run has it may be by chance.
    pub(super) is_accident: bool,
    /// Pairs of its accesses that could not come in another order, or should not.
    pub(super) n_fixed: usize,
    /// When it came about; none if no run failed for it.
    pub(super) timeline: Option<Timeline>,
    /// Others are its effects.
    pub(super) has_effects: bool,
}

impl<T> Candidate<T> {
    /// Before runs were executed.
    pub(super) fn new(what: T, objections: Objections, score: f64) -> Self {
        let evidence = Evidence::default();
        let (timeline, has_effects) = Default::default();
        let (is_part, is_padded, is_accident, n_fixed) = Default::default();
        Self {
            what,
            objections,
            score,
            evidence,
            is_part,
            is_padded,
            is_accident,
            n_fixed,
            timeline,
            has_effects,
        }
    }

    /// Whether executions show that it is a cause.
    pub(super) const fn is_confirmed(&self) -> bool {
        matches!(self.weight(), Weight::Confirmed)
    }

    /// What executions say of it.
    pub(super) const fn weight(&self) -> Weight {
        let Evidence { forced, gone } = self.evidence;
        let is_possible = forced.n() > 0;
        match (forced.fails(), gone) {
            (Some(true), Some(true) | None) => Weight::Confirmed,
            // There are other ways to fail as well.
            (Some(true), Some(false)) => Weight::Likely,
            (None, Some(false)) if !is_possible => Weight::Unlikely,
            (None, _) => Weight::Unknown,
            (Some(false), Some(true) | None) => Weight::Unlikely,
            (Some(false), Some(false)) => Weight::Refuted,
        }
    }
}

/// What executions say of a suspect, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Runs fail with it, if not most of them then far more than by chance.
    Confirmed,
    /// They do, but there is more to it.
    Likely,
    /// Nothing is known, or as much for it as against it.
    Unknown,
    /// Runs pass with it, or fail without it.
    Unlikely,
    /// Both.
    Refuted,
}

/// What speaks against a suspect because of where its accesses are; the first the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Objections {
    /// Not all are in the program's own code.
    pub(super) foreign: bool,
    /// Passing runs do not come to all of them: they are most often an effect.
    pub(super) unusual: bool,
    /// Their order could be no other one, or should be no other one.
    pub(super) fixed: bool,
    /// They are to the words of locks, which only follow the others.
    pub(super) lock: bool,
    /// Threads are blocked, and not on what these are about.
    pub(super) elsewhere: bool,
}
