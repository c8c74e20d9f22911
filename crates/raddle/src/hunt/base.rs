//! Base runs: executed with a trace, and read.

use std::path::{Path, PathBuf};

use anyhow::Result;
use raddle_analysis::anomaly::Anomaly;
use raddle_analysis::observed::Observed;
use raddle_analysis::pattern::Pattern;
use raddle_analysis::predict::predict;
use raddle_analysis::scan::{Model, Scan};
use raddle_analysis::sharing::Sharing;
use raddle_trace::event::Event;
use raddle_trace::file::{Trace, Writer};
use raddle_trial::verdict::Verdict;
use raddle_trial::{Delivery, Execution, Plan};

use super::team::{Judged, Team};

/// A run with its trace, and what the trace implies.
pub(crate) struct Base {
    pub(crate) execution: Execution,
    pub(crate) verdict: Verdict,
    pub(crate) plan: Plan,
    pub(crate) model: Model,
    pub(crate) observed: Observed,
    pub(crate) anomalies: Vec<Anomaly>,
    /// Where the trace is.
    pub(crate) path: PathBuf,
    pub(crate) n_shared: u64,
}

/// Executes the target with a trace, and reads it.
pub(crate) fn base(team: &Team, plan: &Plan, path: &Path, patterns: &[Pattern]) -> Result<Base> {
    let mut writer = Writer::create(path)?;
    let Judged { execution, verdict } = team.execute(plan, Delivery::Records(&mut writer))?;
    writer.finish(&execution.run)?;
    let trace = Trace::open(path)?;
    let (model, observed, n_shared) = read(&trace)?;
    let anomalies = predict(&model, patterns);
    let (plan, path) = (plan.clone(), path.to_owned());
    Ok(Base { execution, verdict, plan, model, observed, anomalies, path, n_shared })
}

/// Reads a trace: once for what is shared, and once for everything else.
pub(crate) fn read(trace: &Trace) -> Result<(Model, Observed, u64)> {
    let sharing = sharing(trace)?;
    let mut scan = Scan::new(&sharing);
    let mut observed = Observed::default();
    for event in trace.events() {
        let event: Event = event?;
        scan.push(&event);
        observed.push(&event, &sharing);
    }
    Ok((scan.finish(), observed, sharing.n_shared()))
}

/// Reads a trace for what it implies, and not for what was seen.
pub(crate) fn model(trace: &Trace) -> Result<Model> {
    let sharing = sharing(trace)?;
    let mut scan = Scan::new(&sharing);
    for event in trace.events() {
        scan.push(&event?);
    }
    Ok(scan.finish())
}

fn sharing(trace: &Trace) -> Result<Sharing> {
    let mut sharing = Sharing::default();
    for event in trace.events() {
        sharing.push(&event?);
    }
    Ok(sharing)
}
