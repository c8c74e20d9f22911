//! Runs that are made to fail, where none does by chance.
//!
//! What could go wrong is predicted from a run that passed, as for `raddle hunt`, and woven into
//! it. What then fails is a failed run like any other. One that passes may have come to code that
//! none came to before; then more can be predicted, and it is the next to be woven into.

use std::collections::VecDeque;

use anyhow::Result;
use raddle_analysis::anomaly::Identity;
use raddle_analysis::localize::facts::Act;
use raddle_analysis::pattern;
use raddle_trial::Plan;
use rustc_hash::FxHashSet;
use tempfile::TempDir;

use super::sample::{How, Policy, Sample};
use crate::hunt::attempt::schedules;
use crate::hunt::base::base;
use crate::hunt::team::Team;

/// Runs that are tried of what one run implies.
const WOVEN_MAX: usize = 400;
/// Runs that are woven into.
const BASES_MAX: usize = 16;

/// See the module.
#[derive(Default)]
pub(crate) struct Weaver {
    hows: VecDeque<How>,
    /// What runs that were looked at performed.
    acts: FxHashSet<Act>,
    anomalies: FxHashSet<Identity>,
    /// Seeds of passing runs that performed nothing new.
    spare: Vec<u64>,
    n_looked_at: usize,
    n_bases: usize,
}

impl Weaver {
    /// Takes in runs that passed since the last time; seeds are counted on.
    pub(crate) fn learn(
        &mut self,
        team: &Team,
        like: &Plan,
        samples: &[Sample],
        seed: &mut u64,
    ) -> Result<()> {
        let from = std::mem::replace(&mut self.n_looked_at, samples.len());
        for sample in samples[from..].iter().filter(|sample| sample.failure.is_none()) {
            let n_known = self.acts.len();
            self.acts.extend(&sample.facts.acts);
            if self.acts.len() > n_known {
                self.weave_into(team, like, sample, seed)?;
            } else {
                self.spare.push(sample.how.seed);
            }
        }
        // In another order the same accesses may imply what they did not.
        while self.hows.is_empty() && self.n_bases < BASES_MAX {
            let Some(spare) = self.spare.pop() else { break };
            if let Some(sample) = samples.iter().find(|sample| sample.how.seed == spare) {
                self.weave_into(team, like, sample, seed)?;
            }
        }
        Ok(())
    }

    fn weave_into(
        &mut self,
        team: &Team,
        like: &Plan,
        sample: &Sample,
        seed: &mut u64,
    ) -> Result<()> {
        if self.n_bases < BASES_MAX {
            self.n_bases += 1;
            // What is new comes first.
            for policy in self.policies(team, like, sample)?.into_iter().rev() {
                self.hows.push_front(How { seed: *seed, policy, with_laps: false });
                *seed += 1;
            }
        }
        Ok(())
    }

    /// The next runs, the likeliest to fail first.
    pub(crate) fn next(&mut self, n: usize) -> Vec<How> {
        self.hows.drain(..n.min(self.hows.len())).collect()
    }

    /// How to make what is predicted from a run happen.
    fn policies(&mut self, team: &Team, like: &Plan, sample: &Sample) -> Result<Vec<Policy>> {
        let directory = TempDir::with_prefix("raddle-localize-")?;
        let plan = sample.how.plan(like);
        let mut base = base(team, &plan, &directory.path().join("trace"), &pattern::built_in())?;
        base.anomalies.retain(|anomaly| self.anomalies.insert(anomaly.identity()));
        base.anomalies.sort_by_key(|anomaly| anomaly.rank);
        let run = &base.execution.run;
        let schedules =
            base.anomalies.iter().flat_map(|anomaly| schedules(&base.model, anomaly, run));
        let policies = schedules.flat_map(|(_, schedule)| {
            // Some damage shows only while threads go on mixed.
            [false, true].map(|mixed| Policy::Woven { schedule: schedule.clone(), mixed })
        });
        Ok(policies.take(WOVEN_MAX).collect())
    }
}
