//! Runs that are made to fail, where none does by chance.
//!
//! What could go wrong is predicted from a run that passed, as for `raddle hunt`, and woven into
//! it. What then fails is a failed run like any other.

use anyhow::Result;
use raddle_analysis::pattern;
use raddle_trial::Plan;
use tempfile::TempDir;

use super::sample::{How, Policy, Sample};
use crate::hunt::attempt::schedules;
use crate::hunt::base::base;
use crate::hunt::team::Team;

/// Runs that are tried.
const WOVEN_MAX: usize = 400;

/// How to make what is predicted from a run happen, the likeliest first; seeds count from one.
pub(crate) fn hows(team: &Team, like: &Plan, sample: &Sample, seed: u64) -> Result<Vec<How>> {
    let directory = TempDir::with_prefix("raddle-localize-")?;
    let plan = sample.how.plan(like);
    let mut base = base(team, &plan, &directory.path().join("trace"), &pattern::built_in())?;
    base.anomalies.sort_by_key(|anomaly| anomaly.rank);
    let run = &base.execution.run;
    let schedules = base.anomalies.iter().flat_map(|anomaly| schedules(&base.model, anomaly, run));
    let policies = schedules.flat_map(|(_, schedule)| {
        // Some damage shows only while threads go on mixed.
        [false, true].map(|mixed| Policy::Woven { schedule: schedule.clone(), mixed })
    });
    let hows = (seed..).zip(policies).map(|(seed, policy)| How { seed, policy, with_laps: false });
    Ok(hows.take(WOVEN_MAX).collect())
}
