//! Traces: what they imply and what they hold.

use raddle_analysis::anomaly::Anomaly;
use raddle_analysis::model::Model;
use raddle_lab::access::of_anomaly;
use raddle_trace::file::{Stats as Counted, Trace};

use super::{Names, id};
use crate::model::{Finding, FindingKind, Prediction, Stats, Verdict};

impl Names<'_> {
    /// The first anomalies that a trace implies, as many as are wanted.
    #[must_use]
    pub fn prediction(
        &self,
        trace: &Trace,
        model: &Model,
        anomalies: &[Anomaly],
        wanted: usize,
    ) -> Prediction {
        let shown = &anomalies[..wanted.min(anomalies.len())];
        let accesses: Vec<_> =
            shown.iter().map(|anomaly| of_anomaly(model, &anomaly.ways[0])).collect();
        let groups: Vec<_> = accesses.iter().map(|accesses| &accesses[..]).collect();
        let named = self.accesses(trace.run(), Some(trace), &groups);
        let finding = |(anomaly, named): (&Anomaly, _)| {
            let named: super::access::Named = named;
            Finding {
                id: id::of_accesses(&anomaly.pattern, &named),
                kind: FindingKind::from(anomaly.kind),
                pattern: anomaly.pattern.clone(),
                variable: named.variable,
                accesses: named.accesses,
                verdict: Verdict::Untested,
                why: None,
                forced: None,
                delay: None,
                failure: None,
                clip: None,
                switches: 0,
                isolation: None,
            }
        };
        Prediction {
            events: model.n_events,
            anomalies: shown.iter().zip(named).map(finding).collect(),
            predicted: anomalies.len(),
        }
    }
}

/// What a trace holds.
#[must_use]
pub fn stats(trace: &Trace, counted: &Counted) -> Stats {
    let run = trace.run();
    Stats {
        command: run.command.clone(),
        ending: run.ending.clone(),
        events: counted.events,
        repeats: counted.repeats,
        threads: counted.threads,
        locations: counted.locations,
        locks: counted.locks,
        bytes: counted.bytes,
        complete: counted.complete,
        kinds: counted.kinds.iter().map(|(kind, n)| (format!("{kind:?}"), *n)).collect(),
    }
}
