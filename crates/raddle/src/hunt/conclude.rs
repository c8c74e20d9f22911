//! From failing runs to findings: the best run of each failure, with as few switches as
//! possible, its cause, and its clip.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use raddle_analysis::accesses::Unit;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::observed::Observed;
use raddle_analysis::witness::Deed;
use raddle_report::symbols::name::Namer;
use raddle_trace::control::Policy;
use raddle_trace::file::{Trace, Writer};
use raddle_trial::verdict::{FailureKind, Verdict};
use raddle_trial::{Delivery, Order, Plan};

use super::base;
use super::campaign::{Campaign, Fault, Hit, Source};
use super::cause::cause;
use super::finding::{self, Finding, Told};
use super::minimize::minimize;
use super::team::Judged;
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
    pub(crate) keep: &'a Keep<'a>,
}

/// Keeps a run as a clip at a path, with the anomaly that it shows.
type Keep<'a> = dyn Fn(&Path, &Judged, &Plan, Option<serde_json::Value>) -> Result<bool> + 'a;

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
    let predicted = best.source.filter(|source| explains(campaign, *source, is_deadlock));
    let minimized = match context.minimizes {
        true => {
            let team = campaign.team.with_budget(RUNS_MAX, TIME_MAX);
            minimize(&team, &best.plan, &best.judged, &fault.signature)?
        }
        false => None,
    };
    let spare = campaign.spare_path("failing.trace");
    let mut judged = minimized.as_ref().unwrap_or(&best.judged);
    let mut observed = seen(campaign, judged, &best.plan, &spare)?;
    if let Some(source) = predicted
        && minimized.is_some()
        && !shows(campaign, source, &observed)
    {
        // Fewer switches, but another story.
        judged = &best.judged;
        observed = seen(campaign, judged, &best.plan, &spare)?;
    }
    let Verdict::Fail(failure) = &judged.verdict else { return Ok(None) };
    let Some(schedule) = &judged.execution.schedule else { return Ok(None) };
    let trace = Trace::open(&spare)?;
    let told = told(judged, failure, &trace);
    let (kind, pattern, accesses) = match predicted {
        Some(source) => {
            let base = &campaign.bases[source.base];
            let anomaly = &base.anomalies[source.anomaly];
            let events = finding::of_anomaly(&base.model, &anomaly.ways[source.way]);
            let accesses = finding::named(&Trace::open(&base.path)?, &events);
            (anomaly.kind.as_str(), anomaly.pattern.clone(), accesses)
        }
        None if is_deadlock => ("deadlock", String::new(), waiting(judged, &trace)),
        None => match cause(&observed, &campaign.passing, trace.run()) {
            Some(events) => {
                let kind = match events.len() {
                    3 => "atomicity",
                    _ if events.iter().any(|event| event.deed == Deed::Free) => "order",
                    _ => "race",
                };
                let accesses = finding::named(&trace, &finding::of_seen(&events));
                (kind, finding::pattern_of(&events), accesses)
            }
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

/// The run once more, with a trace that tells what happened.
fn seen(campaign: &Campaign<'_>, judged: &Judged, plan: &Plan, path: &Path) -> Result<Observed> {
    let schedule = judged.execution.schedule.clone().unwrap_or_default();
    let order = Order::Follow { schedule, strict: false, after: Policy::Rr };
    let plan = Plan { order, ..plan.clone() };
    let mut writer = Writer::create(path)?;
    let team = campaign.team.with_budget(1, TIME_MAX);
    let again = team.execute(&plan, Delivery::Records(&mut writer))?;
    writer.finish(&again.execution.run)?;
    let (_, observed, _) = base::read(&Trace::open(path)?)?;
    Ok(observed)
}

/// Whether the accesses of an anomaly came in its order in a run.
fn shows(campaign: &Campaign<'_>, source: Source, observed: &Observed) -> bool {
    let anomaly = &campaign.bases[source.base].anomalies[source.anomaly];
    match anomaly.kind {
        AnomalyKind::Deadlock | AnomalyKind::MultiVariable => true,
        AnomalyKind::Atomicity | AnomalyKind::Race | AnomalyKind::Order => {
            is_sync(anomaly, source.way)
                || observed.sequences.contains_key(&finding::sites(anomaly, source.way))
        }
    }
}

/// Whether an anomaly that was made to happen can be the cause of such a failure.
fn explains(campaign: &Campaign<'_>, source: Source, is_deadlock: bool) -> bool {
    let anomaly = &campaign.bases[source.base].anomalies[source.anomaly];
    let fits = match anomaly.kind {
        AnomalyKind::Deadlock => is_deadlock,
        // Threads that wait for each other are best told by where they wait, unless it is
        // for a wake-up that came too early.
        _ if is_deadlock => is_sync(anomaly, source.way),
        _ => true,
    };
    source.followed && fits
}

fn kind(hit: &Hit) -> Option<FailureKind> {
    match &hit.judged.verdict {
        Verdict::Fail(failure) => Some(failure.kind),
        Verdict::Pass | Verdict::Unjudged => None,
    }
}

/// How well an anomaly explains a failure: the less the better.
fn telling(campaign: &Campaign<'_>, source: Source, is_deadlock: bool) -> u32 {
    let base = &campaign.bases[source.base];
    let anomaly = &base.anomalies[source.anomaly];
    let events = &anomaly.ways[source.way];
    let ends = events.iter().any(|event| matches!(event.deed, Deed::Free | Deed::Destroy));
    let own = match (anomaly.kind, anomaly.unit) {
        (AnomalyKind::Deadlock, _) if is_deadlock => 0,
        (AnomalyKind::Deadlock, _) => 60,
        (AnomalyKind::Order, _) if is_deadlock && is_sync(anomaly, source.way) => 5,
        (AnomalyKind::Order, _) if ends => 8,
        (AnomalyKind::Atomicity, Unit::Section | Unit::Activation) => 10,
        (AnomalyKind::Atomicity, Unit::Caller) => 12,
        (AnomalyKind::Order, _) if anomaly.rank <= 4 => 14,
        (AnomalyKind::MultiVariable, Unit::Section | Unit::Activation) => 16,
        (AnomalyKind::MultiVariable, Unit::Caller) => 18,
        (AnomalyKind::Order, _) => 24,
        (AnomalyKind::Race, _) => 26,
        (AnomalyKind::Atomicity | AnomalyKind::MultiVariable, Unit::Thread) => 30,
    };
    let namer = Namer::new(&base.execution.run);
    let foreign = events.iter().any(|event| namer.site(event.pc).own_frame().is_none());
    own + if foreign { 15 } else { 0 } + if source.followed { 0 } else { 50 }
}

/// Whether an anomaly is about synchronization objects.
fn is_sync(anomaly: &Anomaly, way: usize) -> bool {
    use Deed::{Acquire, Destroy, Init, Signal, Wait};
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
