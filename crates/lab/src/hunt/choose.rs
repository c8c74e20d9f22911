//! Chooses among runs that fail in the same way the one whose anomaly explains the failure best.
//!
//! Best is an anomaly on memory that the failing thread read last, made to happen with nothing
//! else broken, of the kind that says most.

use raddle_analysis::accesses::Unit;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::sharing::GRANULE_BITS;
use raddle_analysis::witness::{AccessKind, Witness};

use super::search::{FailedRun, Search, Source};

/// What runs are chosen by.
pub(super) struct Choice<'a> {
    search: &'a Search<'a>,
    /// The pieces of memory that the failing thread read last.
    last_reads: &'a [u64],
    is_deadlock: bool,
}

impl<'a> Choice<'a> {
    /// By what one of the runs read last.
    pub(super) fn new(search: &'a Search<'a>, last_reads: &'a [u64], is_deadlock: bool) -> Self {
        Self { search, last_reads, is_deadlock }
    }

    /// The best of some runs.
    pub(super) fn of<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r FailedRun>,
    ) -> Option<&'r FailedRun> {
        runs.into_iter().min_by_key(|run| self.score(run))
    }

    /// The less the better.
    fn score(&self, run: &FailedRun) -> ((u32, u32), usize) {
        let source = run.source.map_or((1, 90), |source| {
            let anomaly = self.anomaly(source);
            let events = &anomaly.ways[source.way];
            let is_near =
                |event: &Witness| self.last_reads.contains(&(event.addr.0 >> GRANULE_BITS));
            // Variables that belong together are both looked at before they are found to differ.
            let near = match anomaly.kind {
                AnomalyKind::MultiVariable => events.iter().all(is_near),
                AnomalyKind::Race
                | AnomalyKind::Atomicity
                | AnomalyKind::Order
                | AnomalyKind::Deadlock => events.iter().any(is_near),
            };
            let far = u32::from(!(self.is_deadlock || near && source.followed));
            (far, self.doubt(source))
        });
        (source, run.n_stretches())
    }

    /// Whether an anomaly that was made to happen can be the cause of such a failure.
    pub(super) fn explains(&self, source: Source) -> bool {
        let anomaly = self.anomaly(source);
        let fits = match anomaly.kind {
            AnomalyKind::Deadlock => self.is_deadlock,
            // Threads that wait for each other are best explained by where they wait, unless it is
            // for a wake-up that came too early.
            _ if self.is_deadlock => is_sync(anomaly, source.way),
            AnomalyKind::Race
            | AnomalyKind::Atomicity
            | AnomalyKind::MultiVariable
            | AnomalyKind::Order => true,
        };
        source.followed && fits
    }

    fn anomaly(&self, source: Source) -> &Anomaly {
        &self.search.bases[source.base].anomalies[source.anomaly]
    }

    /// How badly an anomaly explains a failure: the less the better.
    fn doubt(&self, source: Source) -> u32 {
        let base = &self.search.bases[source.base];
        let anomaly = self.anomaly(source);
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
        let run = base.recorded.run();
        let is_own = &*self.search.executor.subject.is_own;
        let foreign = events.iter().any(|event| !is_own(run, event.pc));
        // Reference counts are near to whatever is referred to.
        let is_atomic = |event: &Witness| event.kind.is_atomic();
        let is_count = anomaly.kind == AnomalyKind::MultiVariable
            && events.iter().any(is_atomic)
            && !events.iter().all(is_atomic);
        let doubts = [(foreign, 15), (!source.alone, 9), (!source.followed, 50), (is_count, 1)];
        own + doubts.iter().map(|&(doubt, weight)| if doubt { weight } else { 0 }).sum::<u32>()
    }
}

/// Whether an anomaly is about synchronization objects.
pub(super) fn is_sync(anomaly: &Anomaly, way: usize) -> bool {
    anomaly.ways[way].iter().any(|event| event.kind.is_of_object())
}

/// Whether an anomaly is about the end of something.
fn ends(anomaly: &Anomaly, way: usize) -> bool {
    anomaly.ways[way]
        .iter()
        .any(|event| matches!(event.kind, AccessKind::Free | AccessKind::Destroy))
}
