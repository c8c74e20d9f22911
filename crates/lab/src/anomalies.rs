//! A recorded run with the anomalies that were predicted from it.

use raddle_analysis::anomaly::Anomaly;
use raddle_analysis::localize::facts::SiteAccess;
use raddle_analysis::pattern::Pattern;
use raddle_analysis::predict::predict;
use raddle_analysis::witness::Witness;
use raddle_trial::Plan;

use crate::error::LabError;
use crate::executor::Runner;
use crate::recorded::{Detail, Recorded};

/// A recorded run with the anomalies that were predicted from it.
pub struct Predicted {
    /// The run.
    pub recorded: Recorded,
    /// What could go wrong in it.
    pub anomalies: Vec<Anomaly>,
}

impl Predicted {
    /// Executes the target with a trace and predicts from it; none if nothing more may be executed.
    pub fn new(
        runner: &Runner<'_>,
        plan: &Plan,
        patterns: &[Pattern],
    ) -> Result<Option<Self>, LabError> {
        let recorded = Recorded::new(runner, plan, Detail::Counted)?;
        Ok(recorded.map(|recorded| {
            let anomalies = predict(&recorded.model, patterns);
            Self { recorded, anomalies }
        }))
    }

    /// What an anomaly consists of, the same in all runs.
    #[must_use]
    pub fn accesses(&self, anomaly: usize, way: usize) -> Vec<SiteAccess> {
        let run = self.recorded.run();
        let access = |event: &Witness| SiteAccess { site: run.site(event.pc), kind: event.kind };
        self.anomalies[anomaly].ways[way].iter().map(access).collect()
    }
}
