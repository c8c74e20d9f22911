//! Which accesses are to blame: what failing runs have and passing runs have not.

use raddle_analysis::observed::{Observed, Seen, Sites};
use raddle_analysis::witness::Deed;
use raddle_report::symbols::name::Namer;
use raddle_trace::id::ThreadId;
use raddle_trace::run::Run;

use super::census::Census;

/// Accesses that most likely made a run fail, in their order.
pub(crate) struct Cause {
    pub(crate) sites: Sites,
    pub(crate) events: Vec<Seen>,
    /// How well they tell failing from passing runs, 0 to 100.
    pub(crate) suspicion: u32,
}

/// Suspicions are told apart by steps of this size: among the few runs that a hunt keeps, a
/// finer difference is chance.
const STEP: u32 = 10;

/// The accesses that most likely made a run fail, among those that `counts` lets through; none
/// if threads did not touch each other's memory there.
///
/// What tells failing runs from passing ones counts most. Among equals, a triple with its
/// thread preempted in the middle is most telling; then a pair; then any triple. Among equals
/// again the last one counts, since it is closest to the failure.
pub(crate) fn cause(
    failing: &Observed,
    failed: &Census,
    passed: &Census,
    run: &Run,
    counts: impl Fn(&Seen) -> bool,
) -> Option<Cause> {
    let namer = Namer::new(run);
    let preempted = |thread: ThreadId, from: u64, to: u64| {
        failing.preempted.iter().any(|&(who, when)| who == thread && from < when && when < to)
    };
    let rank = |sites: &Sites, events: &[Seen]| {
        let is_new = passed.n_with(sites) == 0;
        let first = &events[0];
        let last = &events[events.len() - 1];
        let broken = events.len() == 3 && preempted(first.thread, first.seq, last.seq);
        let ends = events.iter().any(|event| event.deed == Deed::Free);
        let foreign = events.iter().any(|event| namer.site(event.pc).own_frame().is_none());
        let own = match (is_new, events.len(), broken) {
            (true, 3, true) => 0,
            (true, 2, _) if ends => 0,
            (true, 2, _) => 1,
            (true, _, _) => 2,
            (false, 3, true) => 3,
            (false, 3, false) => 5,
            _ => 4,
        };
        let unsuspected = 100 / STEP - failed.suspicion(sites, passed) / STEP;
        (foreign, unsuspected, own)
    };
    failing
        .sequences
        .iter()
        .filter(|(_, events)| events.iter().all(&counts))
        .min_by_key(|(sites, events)| {
            (rank(sites, events), std::cmp::Reverse(events[events.len() - 1].seq), (*sites).clone())
        })
        .map(|(sites, events)| Cause {
            sites: sites.clone(),
            events: events.clone(),
            suspicion: failed.suspicion(sites, passed),
        })
}
