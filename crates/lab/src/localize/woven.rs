//! Runs that are made to fail, where none does by chance.
//!
//! What could go wrong is predicted from a run that passed, as for `raddle hunt`, and woven into
//! it. What then fails is a failed run like any other. One that passes may have come to code that
//! none came to before; then more can be predicted, and it is the next to be woven into.
//!
//! Runs that performed something new come first, then others, in whose order the same accesses
//! may imply more.

use std::collections::VecDeque;

use raddle_analysis::anomaly::Identity;
use raddle_analysis::localize::facts::SiteAccess;
use raddle_analysis::pattern;
use raddle_trace::control::Policy;
use raddle_trial::{Order, Plan};
use rustc_hash::FxHashSet;

use crate::anomalies::Predicted;
use crate::error::LabError;
use crate::executor::Executor;
use crate::force::schedules;
use crate::hunt::SCHEDULES_MAX;
use crate::sample::{Sample, Spec};

/// Runs that are tried of what one run implies.
const WOVEN_MAX: usize = 400;
/// Runs that are woven into.
const BASES_MAX: usize = 16;

/// Weaves what is predicted into runs that passed.
#[derive(Default)]
pub(super) struct Weaver {
    specs: VecDeque<Spec>,
    /// What runs that were looked at performed.
    accesses: FxHashSet<SiteAccess>,
    anomalies: FxHashSet<Identity>,
    /// Seeds of passing runs that performed nothing new.
    spare: Vec<u64>,
    n_looked_at: usize,
    n_bases: usize,
}

impl Weaver {
    /// Takes in runs that passed since the last time; seeds are counted on.
    pub(super) fn learn(
        &mut self,
        executor: &Executor<'_>,
        like: &Plan,
        samples: &[Sample],
        seed: &mut u64,
    ) -> Result<(), LabError> {
        let from = std::mem::replace(&mut self.n_looked_at, samples.len());
        for sample in samples[from..].iter().filter(|sample| sample.failed.is_none()) {
            let n_known = self.accesses.len();
            self.accesses.extend(&sample.facts.accesses);
            if self.accesses.len() > n_known {
                self.weave_into(executor, like, sample, seed)?;
            } else {
                self.spare.push(sample.spec.seed);
            }
        }
        // In another order the same accesses may imply what they did not.
        while self.specs.is_empty() && self.n_bases < BASES_MAX {
            let Some(spare) = self.spare.pop() else { break };
            if let Some(sample) = samples.iter().find(|sample| sample.spec.seed == spare) {
                self.weave_into(executor, like, sample, seed)?;
            }
        }
        Ok(())
    }

    fn weave_into(
        &mut self,
        executor: &Executor<'_>,
        like: &Plan,
        sample: &Sample,
        seed: &mut u64,
    ) -> Result<(), LabError> {
        if self.n_bases < BASES_MAX {
            self.n_bases += 1;
            // What is new comes first.
            for order in self.orders(executor, like, sample)?.into_iter().rev() {
                self.specs.push_front(Spec { seed: *seed, order, with_loops: false });
                *seed += 1;
            }
        }
        Ok(())
    }

    /// The next runs, the likeliest to fail first.
    pub(super) fn next(&mut self, n: usize) -> Vec<Spec> {
        self.specs.drain(..n.min(self.specs.len())).collect()
    }

    /// Orders that make what is predicted from a run happen.
    fn orders(
        &mut self,
        executor: &Executor<'_>,
        like: &Plan,
        sample: &Sample,
    ) -> Result<Vec<Order>, LabError> {
        let plan = sample.spec.plan(like);
        let base = Predicted::new(&executor.alone(1), &plan, &pattern::built_in())?;
        let Some(Predicted { recorded, mut anomalies }) = base else { return Ok(Vec::new()) };
        anomalies.retain(|anomaly| self.anomalies.insert(anomaly.identity()));
        anomalies.sort_by_key(|anomaly| anomaly.rank);
        let schedules =
            anomalies.iter().flat_map(|one| schedules(&recorded, &one.ways, SCHEDULES_MAX));
        let orders = schedules.flat_map(|(_, schedule)| {
            // Some corruption shows only while threads interleave.
            [Policy::Rr, Policy::Random].map(|after| {
                let schedule = schedule.clone();
                Order::Follow { schedule, strict: false, after }
            })
        });
        Ok(orders.take(WOVEN_MAX).collect())
    }
}
