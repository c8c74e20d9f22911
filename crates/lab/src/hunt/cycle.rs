//! Lock cycles that did no harm: other threads ended the program before it was a deadlock.
//!
//! Such a run passes. The threads of the cycle would have waited forever, so whoever reads the
//! findings should know: one run per cycle is kept, the one with the fewest switches, and reported
//! after what fails. A cycle that is a deadlock in other runs is reported as that alone.

use std::sync::Arc;

use raddle_analysis::anomaly::AnomalyKind;
use raddle_trace::id::Site;
use raddle_trial::{Execution, Plan, Trial};

use super::finding::{Finding, FindingKind, FindingVerdict, Proof, Source};
use crate::access;
use crate::error::LabError;
use crate::executor::Executor;
use crate::recorded::{Detail, Recorded, has_cycle, waiting};

/// Cycles that are reported.
const CYCLES_MAX: usize = 8;

/// The cycles of a search, in the order in which they were first seen.
#[derive(Default)]
pub(super) struct Cycles(Vec<CycleRun>);

/// A run that passed although a cycle formed in it.
struct CycleRun {
    /// Where its threads wait.
    sites: Vec<Site>,
    trial: Trial,
    plan: Plan,
}

/// Where the threads of a deadlock, or of a cycle, wait.
pub(super) fn sites(execution: &Execution) -> Vec<Site> {
    let threads = waiting(&execution.outcome.threads);
    let mut sites: Vec<_> = threads.iter().map(|at| execution.run.site(at.pc)).collect();
    sites.sort_unstable();
    sites.dedup();
    sites
}

fn n_stretches(trial: &Trial) -> usize {
    trial.execution.schedule.as_ref().map_or(usize::MAX, |schedule| schedule.n_runs())
}

impl Cycles {
    /// Keeps a run if a cycle formed in it that is new, or was not seen in so few switches.
    pub(super) fn see(&mut self, trial: &Trial, plan: &Plan) {
        if !has_cycle(trial) {
            return;
        }
        let sites = sites(&trial.execution);
        let known = self.0.iter().position(|known| known.sites == sites);
        let run = || CycleRun { sites, trial: trial.clone(), plan: plan.clone() };
        match known {
            Some(at) if n_stretches(&self.0[at].trial) <= n_stretches(trial) => {}
            Some(at) => self.0[at] = run(),
            None if self.0.len() < CYCLES_MAX => self.0.push(run()),
            None => {}
        }
    }

    /// How many there are.
    pub(super) fn n(&self) -> usize {
        self.0.len()
    }

    /// The findings, numbered from `number`, without those of the `failing` sites. Each run is
    /// executed once more, with a trace; one in which the cycle does not form again is left out.
    /// `follow` makes the plan of that.
    pub(super) fn findings(
        &self,
        executor: &Executor<'_>,
        number: usize,
        failing: &[Vec<Site>],
        follow: impl Fn(&Trial, &Plan) -> Plan,
    ) -> Result<Vec<Finding>, LabError> {
        let mut findings = Vec::new();
        for CycleRun { sites: known, trial, plan } in &self.0 {
            if failing.contains(known) {
                continue;
            }
            let runner = executor.alone(1);
            let again = Recorded::new(&runner, &follow(trial, plan), Detail::Counted)?;
            let is_gone = again.as_ref().is_some_and(|again| {
                !has_cycle(&again.trial) || sites(&again.trial.execution) != *known
            });
            if is_gone {
                continue;
            }
            let number = number + findings.len();
            let (trial, plan, recorded) = (trial.clone(), plan.clone(), again.map(Arc::new));
            findings.push(Finding {
                kind: FindingKind::Anomaly(AnomalyKind::Deadlock),
                pattern: String::new(),
                accesses: access::of_waiting(&trial.execution.outcome.threads),
                from: Source::Proof,
                verdict: FindingVerdict::Benign,
                left: None,
                forced: None,
                proof: Some(Proof { number, plan, trial, recorded }),
            });
        }
        Ok(findings)
    }
}
