//! Which accesses are to blame: what a failing run has that no passing run had.

use raddle_analysis::observed::{Observed, Seen, Sites};
use raddle_analysis::witness::Deed;
use raddle_report::symbols::name::Namer;
use raddle_trace::id::ThreadId;
use raddle_trace::run::Run;
use rustc_hash::FxHashSet;

/// The accesses that most likely made a run fail, in their order; none if threads did not
/// touch each other's memory.
///
/// A triple that no passing run had, with its thread preempted in the middle, is most
/// telling; then a pair that no passing run had; then a triple that was seen before. Among
/// equals the last one counts, since it is closest to the failure.
pub(crate) fn cause(
    failing: &Observed,
    passing: &FxHashSet<Sites>,
    run: &Run,
) -> Option<Vec<Seen>> {
    let namer = Namer::new(run);
    let preempted = |thread: ThreadId, from: u64, to: u64| {
        failing.preempted.iter().any(|&(who, when)| who == thread && from < when && when < to)
    };
    let rank = |sites: &Sites, events: &[Seen]| {
        let is_new = !passing.contains(sites);
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
        own + if foreign { 6 } else { 0 }
    };
    failing
        .sequences
        .iter()
        .min_by_key(|(sites, events)| {
            (rank(sites, events), std::cmp::Reverse(events[events.len() - 1].seq), (*sites).clone())
        })
        .map(|(_, events)| events.clone())
}
