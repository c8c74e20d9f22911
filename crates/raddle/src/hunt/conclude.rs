//! From failing runs to findings: the best run of each failure, with as few switches as
//! possible, its cause, and its clip.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use raddle_analysis::accesses::Unit;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_trace::control::Policy;
use raddle_trace::file::{Trace, Writer};
use raddle_trial::verdict::{FailureKind, Verdict};
use raddle_trial::{Delivery, Order, Plan};

use super::base;
use super::campaign::{Campaign, Fault, Hit, Source};
use super::cause::cause;
use super::finding::{self, Finding, Told};
use super::minimize::minimize;
use super::team::{Judged, Team};
use crate::clip::{self, Kept};
use crate::explain::explain;

/// Runs and time that a failure's minimization may take.
const RUNS_MAX: usize = 200;
const TIME_MAX: Duration = Duration::from_secs(6);

/// All findings, failing ones first, then by how few switches they need.
pub(crate) fn conclude(campaign: &Campaign<'_>, context: &Context<'_>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (number, fault) in campaign.faults.iter().enumerate() {
        let path = context.output.join(format!("{}-{}.clip", context.name, number + 1));
        if let Some(finding) = of_fault(campaign, context, fault, &path)? {
            findings.push(finding);
        }
    }
    findings.sort_by_key(|finding| (finding.clip.is_none(), finding.n_switches));
    for &(at, number, verdict) in &campaign.tally.harmless {
        if findings.len() >= context.findings_max {
            break;
        }
        let base = &campaign.bases[at];
        let anomaly = &base.anomalies[number];
        let trace = Trace::open(&base.path)?;
        let accesses = finding::named(&trace, &finding::of_anomaly(&base.model, &anomaly.ways[0]));
        findings.push(Finding {
            kind: anomaly.kind.as_str(),
            pattern: anomaly.pattern.clone(),
            variable: Finding::variables(&accesses),
            accesses,
            verdict,
            failure: None,
            clip: None,
            n_switches: 0,
        });
    }
    Ok(findings)
}

/// What clips and output need to know.
pub(crate) struct Context<'a> {
    pub(crate) output: &'a Path,
    pub(crate) name: String,
    pub(crate) minimizes: bool,
    pub(crate) findings_max: usize,
    pub(crate) keep: &'a dyn Fn(&Path, &Judged, &Plan, Option<serde_json::Value>) -> Result<bool>,
}

fn of_fault(
    campaign: &Campaign<'_>,
    context: &Context<'_>,
    fault: &Fault,
    path: &Path,
) -> Result<Option<Finding>> {
    let is_deadlock = fault.hits.iter().any(|hit| kind(hit) == Some(FailureKind::Deadlock));
    let score = |hit: &Hit| {
        let switches = hit.judged.execution.schedule.as_ref().map_or(usize::MAX, |s| s.n_runs());
        (hit.source.map_or(90, |source| telling(campaign, source, is_deadlock)), switches)
    };
    let Some(best) = fault.hits.iter().min_by_key(|hit| score(hit)) else { return Ok(None) };
    let team = Team::new(
        campaign.team.launch.clone(),
        campaign.team.expected.clone(),
        Some(campaign.team.n_jobs() as u64),
        RUNS_MAX,
        TIME_MAX,
    );
    let minimized = match context.minimizes {
        true => minimize(&team, &best.plan, &best.judged, &fault.signature)?,
        false => None,
    };
    let judged = minimized.as_ref().unwrap_or(&best.judged);
    let Verdict::Fail(failure) = &judged.verdict else { return Ok(None) };
    let Some(schedule) = &judged.execution.schedule else { return Ok(None) };

    // Once more, with a trace that tells what happened.
    let order = Order::Follow { schedule: schedule.clone(), strict: false, after: Policy::Rr };
    let plan = Plan { order, ..best.plan.clone() };
    let spare = campaign.spare_path("failing.trace");
    let mut writer = Writer::create(&spare)?;
    let again = Team::new(
        campaign.team.launch.clone(),
        campaign.team.expected.clone(),
        Some(1),
        1,
        TIME_MAX,
    )
    .execute(&plan, Delivery::Records(&mut writer))?;
    writer.finish(&again.execution.run)?;
    let trace = Trace::open(&spare)?;
    let (_, observed, _) = base::read(&trace)?;

    let told = told(judged, failure, &trace);
    let predicted = best.source.filter(|source| source.followed).filter(|source| {
        let anomaly = &campaign.bases[source.base].anomalies[source.anomaly];
        match anomaly.kind {
            AnomalyKind::Deadlock => is_deadlock,
            AnomalyKind::MultiVariable => true,
            AnomalyKind::Atomicity | AnomalyKind::Race | AnomalyKind::Order => {
                is_sync(anomaly, source.way)
                    || observed.sequences.contains_key(&finding::sites(anomaly, source.way))
            }
        }
    });
    let (kind, pattern, accesses) = match predicted {
        Some(source) => {
            let base = &campaign.bases[source.base];
            let anomaly = &base.anomalies[source.anomaly];
            let events = finding::of_anomaly(&base.model, &anomaly.ways[source.way]);
            let accesses = finding::named(&Trace::open(&base.path)?, &events);
            (anomaly.kind.as_str(), anomaly.pattern.clone(), accesses)
        }
        None => match cause(&observed, &campaign.passing).filter(|_| !is_deadlock) {
            Some(events) => {
                let kind = if events.len() == 3 { "atomicity" } else { "race" };
                let accesses = finding::named(&trace, &finding::of_seen(&events));
                (kind, finding::pattern_of(&events), accesses)
            }
            None if is_deadlock => ("deadlock", String::new(), waiting(judged, &trace)),
            None => ("failure", String::new(), Vec::new()),
        },
    };
    let mut finding = Finding {
        kind,
        pattern,
        variable: Finding::variables(&accesses),
        accesses,
        verdict: "failing",
        failure: Some(told),
        clip: None,
        n_switches: schedule.n_runs().saturating_sub(1),
    };
    let anomaly = finding.json("");
    if (context.keep)(path, judged, &best.plan, Some(anomaly))? {
        finding.clip = Some(path.to_owned());
    }
    Ok(Some(finding))
}

fn kind(hit: &Hit) -> Option<FailureKind> {
    match &hit.judged.verdict {
        Verdict::Fail(failure) => Some(failure.kind),
        Verdict::Pass | Verdict::Unjudged => None,
    }
}

/// How well an anomaly explains a failure: the less the better.
fn telling(campaign: &Campaign<'_>, source: Source, is_deadlock: bool) -> u32 {
    let anomaly = &campaign.bases[source.base].anomalies[source.anomaly];
    let own = match (anomaly.kind, anomaly.unit) {
        (AnomalyKind::Deadlock, _) if is_deadlock => 0,
        (AnomalyKind::Deadlock, _) => 60,
        (AnomalyKind::Order, _) if is_sync(anomaly, source.way) => {
            if is_deadlock {
                5
            } else {
                12
            }
        }
        (AnomalyKind::Atomicity, Unit::Section | Unit::Activation) => 10,
        (AnomalyKind::Order, _) => 20,
        (AnomalyKind::MultiVariable, Unit::Section | Unit::Activation) => 25,
        (AnomalyKind::Atomicity, Unit::Caller) => 22,
        (AnomalyKind::Race, _) => 30,
        (AnomalyKind::Atomicity | AnomalyKind::MultiVariable, _) => 35,
    };
    own + if source.followed { 0 } else { 50 }
}

/// Whether an anomaly is about synchronization objects.
fn is_sync(anomaly: &Anomaly, way: usize) -> bool {
    use raddle_analysis::witness::Deed::{Acquire, Destroy, Init, Signal, Wait};
    anomaly.ways[way]
        .iter()
        .any(|event| matches!(event.deed, Acquire | Destroy | Init | Signal | Wait))
}

fn told(judged: &Judged, failure: &raddle_trial::verdict::Failure, trace: &Trace) -> Told {
    let outcome = clip::outcome(&judged.execution, &judged.verdict);
    let text = match judged.execution.outcome.end.is_failure() {
        true => explain(&judged.execution, Some(trace)),
        false => failure.detail.clone(),
    };
    Told {
        kind: failure.kind.as_str(),
        detail: failure.detail.clone(),
        file: outcome.as_ref().and_then(|outcome| outcome.file.clone()),
        line: outcome.and_then(|outcome| outcome.line),
        text,
    }
}

/// Where the threads of a deadlock wait, and where they got what others wait for.
fn waiting(judged: &Judged, trace: &Trace) -> Vec<finding::Access> {
    let events = finding::of_waiting(&judged.execution.outcome.threads);
    finding::named(trace, &events)
}

/// What a clip is kept with.
pub(crate) fn keep(
    kept: &Kept<'_>,
    path: &Path,
    expected: &raddle_trial::verdict::Expected,
) -> Result<bool> {
    Ok(clip::keep(path, kept, expected)?.is_some())
}
