//! The best of the runs that fail in the same way: the one whose anomaly explains the failure best.

use std::collections::VecDeque;

use raddle_analysis::accesses::Unit;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::sharing::GRANULE_BITS;
use raddle_analysis::witness::{Deed, Witness};
use raddle_report::symbols::name::Namer;
use raddle_trace::event::Op;
use raddle_trace::file::Trace;
use raddle_trace::id::ThreadId;

use super::campaign::{Campaign, Hit, Source};
use super::team::Judged;

/// What runs are judged by.
pub(crate) struct Best<'a> {
    campaign: &'a Campaign<'a>,
    namer: Option<Namer>,
    /// Memory that was read last.
    last: VecDeque<u64>,
    is_deadlock: bool,
}

impl<'a> Best<'a> {
    /// By one of the runs, and its trace.
    pub(crate) fn new(
        campaign: &'a Campaign<'a>,
        trace: &Trace,
        judged: &Judged,
        is_deadlock: bool,
    ) -> Self {
        let namer = campaign.bases.first().map(|base| Namer::new(&base.execution.run));
        Self { campaign, namer, last: last_reads(trace, judged), is_deadlock }
    }

    /// The best of some runs.
    pub(crate) fn of<'h>(&self, hits: impl IntoIterator<Item = &'h Hit>) -> Option<&'h Hit> {
        hits.into_iter().min_by_key(|hit| self.score(hit))
    }

    /// The less the better.
    fn score(&self, hit: &Hit) -> ((u32, u32), usize) {
        let source = hit.source.map_or((1, 90), |source| {
            let anomaly = &self.campaign.bases[source.base].anomalies[source.anomaly];
            let events = &anomaly.ways[source.way];
            let is_near = |event: &Witness| self.last.contains(&(event.addr.0 >> GRANULE_BITS));
            // Variables that belong together are both looked at before they are found to differ.
            let near = match anomaly.kind {
                AnomalyKind::MultiVariable => events.iter().all(is_near),
                _ => events.iter().any(is_near),
            };
            let far = u32::from(!(self.is_deadlock || near && source.followed));
            (far, self.telling(source))
        });
        (source, hit.n_stretches())
    }

    /// Whether an anomaly that was made to happen can be the cause of such a failure.
    pub(crate) fn explains(&self, source: Source) -> bool {
        let anomaly = &self.campaign.bases[source.base].anomalies[source.anomaly];
        let fits = match anomaly.kind {
            AnomalyKind::Deadlock => self.is_deadlock,
            // Threads that wait for each other are best told by where they wait, unless it is
            // for a wake-up that came too early.
            _ if self.is_deadlock => is_sync(anomaly, source.way),
            _ => true,
        };
        source.followed && fits
    }

    /// How well an anomaly explains a failure: the less the better.
    fn telling(&self, source: Source) -> u32 {
        let base = &self.campaign.bases[source.base];
        let anomaly = &base.anomalies[source.anomaly];
        let events = &anomaly.ways[source.way];
        let ends = ends(anomaly, source.way);
        let own = match (anomaly.kind, anomaly.unit) {
            (AnomalyKind::Deadlock, _) if self.is_deadlock => 0,
            (AnomalyKind::Deadlock, _) => 60,
            (AnomalyKind::Order, _) if self.is_deadlock && is_sync(anomaly, source.way) => 5,
            // An end in the middle is what another violation leads to, if there is one.
            (AnomalyKind::Atomicity | AnomalyKind::Order, _) if ends => 13,
            (AnomalyKind::Atomicity, Unit::Section | Unit::Activation) => 10,
            (AnomalyKind::Atomicity, Unit::Caller) => 12,
            (AnomalyKind::Order, _) if anomaly.rank <= 4 => 14,
            (AnomalyKind::MultiVariable, Unit::Section | Unit::Activation) => 16,
            (AnomalyKind::MultiVariable, Unit::Caller) => 18,
            (AnomalyKind::Order, _) => 24,
            (AnomalyKind::Race, _) => 26,
            (AnomalyKind::Atomicity | AnomalyKind::MultiVariable, Unit::Thread) => 30,
        };
        let is_foreign =
            |namer: &Namer| events.iter().any(|event| namer.site(event.pc).own_frame().is_none());
        let foreign = self.namer.as_ref().is_some_and(is_foreign);
        // Counts of references are near to whatever is referred to.
        let is_atomic = |event: &Witness| event.deed.is_atomic();
        let is_count = anomaly.kind == AnomalyKind::MultiVariable
            && events.iter().any(is_atomic)
            && !events.iter().all(is_atomic);
        let doubts = [(foreign, 15), (!source.alone, 9), (!source.followed, 50), (is_count, 1)];
        own + doubts.iter().map(|&(doubt, weight)| if doubt { weight } else { 0 }).sum::<u32>()
    }
}

/// What the thread that failed had read last: what it failed on is most often among it.
fn last_reads(trace: &Trace, judged: &Judged) -> VecDeque<u64> {
    let outcome = &judged.execution.outcome;
    let thread = outcome.end.place().map_or(ThreadId(0), |place| place.thread);
    let mut last = VecDeque::new();
    // A trace that cannot be read further has told all that it can.
    for event in trace.events().map_while(Result::ok).filter(|event| event.thread == thread) {
        let addr = match event.op {
            Op::Read(access) => access.addr,
            Op::Atomic(atomic) => atomic.addr,
            _ => continue,
        };
        let granule = addr.0 >> GRANULE_BITS;
        last.retain(|&other| other != granule);
        last.push_back(granule);
        if last.len() > READS_MAX {
            last.pop_front();
        }
    }
    last
}

/// How many of them.
const READS_MAX: usize = 6;

/// Whether an anomaly is about synchronization objects.
pub(crate) fn is_sync(anomaly: &Anomaly, way: usize) -> bool {
    anomaly.ways[way].iter().any(|event| event.deed.is_of_object())
}

/// Whether an anomaly is about the end of something.
fn ends(anomaly: &Anomaly, way: usize) -> bool {
    anomaly.ways[way].iter().any(|event| matches!(event.deed, Deed::Free | Deed::Destroy))
}
