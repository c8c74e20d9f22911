//! From failing runs to findings: the best run of each failure, with as few switches as
//! possible, its cause, and its clip.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use raddle_analysis::accesses::Unit;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::observed::{Observed, Seen, Sites};
use raddle_analysis::sharing::GRANULE_BITS;
use raddle_analysis::witness::{Deed, Witness};
use raddle_report::symbols::name::Namer;
use raddle_trace::control::Policy;
use raddle_trace::event::Op;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::id::ThreadId;
use raddle_trial::verdict::{Failure, FailureKind, Verdict};
use raddle_trial::{Delivery, Execution, Order, Plan};

use super::base;
use super::campaign::{Campaign, EVENTS_CHEAP, Fault, Harmless, Hit, Source};
use super::cause::{Cause, cause};
use super::census::Census;
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
    let namer = campaign.bases.first().map(|base| Namer::new(&base.execution.run));
    let Some(namer) = namer else { return Ok(findings) };
    for (number, fault) in campaign.faults.iter().enumerate() {
        let path = context.clip(number);
        if let Some(finding) = of_fault(campaign, context, &namer, fault, &path)? {
            findings.push(finding);
        }
    }
    findings.sort_by_key(|finding| (finding.clip.is_none(), finding.n_switches));
    harmless(campaign, context, &mut findings)?;
    Ok(findings)
}

/// Adds the anomalies that did no harm, with the traces read once each.
fn harmless(
    campaign: &Campaign<'_>,
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let room = context.findings_max.saturating_sub(findings.len());
    let mut by_base: BTreeMap<usize, Vec<&Harmless>> = BTreeMap::new();
    for harmless in campaign.tally.harmless.iter().take(room) {
        by_base.entry(harmless.base).or_default().push(harmless);
    }
    for (base, all) in by_base {
        let base = &campaign.bases[base];
        let namer = Namer::new(&base.execution.run);
        let anomaly = |harmless: &Harmless| &base.anomalies[harmless.anomaly];
        let events: Vec<_> = all
            .iter()
            .map(|harmless| finding::of_anomaly(&base.model, &anomaly(harmless).ways[0]))
            .collect();
        let named = finding::all_named(&Trace::open(&base.path)?, &events);
        for (harmless, accesses) in all.into_iter().zip(named) {
            let anomaly = anomaly(harmless);
            let why = match (harmless.verdict, harmless.left) {
                ("infeasible", Some((thread, pc))) => {
                    let place = namer.own_site(pc, None);
                    Some(format!("{} went another way at {place}", namer.thread(thread)))
                }
                ("infeasible", None) => Some("no order of the other events allows it".to_owned()),
                _ => None,
            };
            findings.push(Finding {
                kind: anomaly.kind.as_str(),
                pattern: anomaly.pattern.clone(),
                variable: Finding::variables(&accesses),
                accesses,
                verdict: harmless.verdict,
                why,
                failure: None,
                clip: None,
                n_switches: 0,
            });
        }
    }
    Ok(())
}

/// Writes a clip of a run with the anomaly that it shows; whether it was worth one.
pub(crate) type Keep<'a> =
    dyn Fn(&Path, &Judged, &Plan, Option<serde_json::Value>) -> Result<bool> + 'a;

/// What clips and output need to know.
pub(crate) struct Context<'a> {
    pub(crate) output: &'a Path,
    pub(crate) name: String,
    pub(crate) minimizes: bool,
    pub(crate) findings_max: usize,
    pub(crate) keep: &'a Keep<'a>,
}

impl Context<'_> {
    /// Where the clip of a failure goes.
    pub(crate) fn clip(&self, number: usize) -> PathBuf {
        self.output.join(format!("{}-{}.clip", self.name, number + 1))
    }
}

fn of_fault(
    campaign: &Campaign<'_>,
    context: &Context<'_>,
    namer: &Namer,
    fault: &Fault,
    path: &Path,
) -> Result<Option<Finding>> {
    let is_deadlock = fault.hits.iter().any(|hit| kind(hit) == Some(FailureKind::Deadlock));
    let spare = campaign.spare_path("failing.trace");
    let switches =
        |hit: &Hit| hit.judged.execution.schedule.as_ref().map_or(usize::MAX, |s| s.n_runs());
    let Some(shortest) = fault.hits.iter().min_by_key(|hit| switches(hit)) else {
        return Ok(None);
    };
    seen(campaign, &shortest.judged, &shortest.plan, &spare)?;
    let last = last_reads(&Trace::open(&spare)?, &shortest.judged);
    let score = |hit: &Hit| {
        let source = hit.source.map_or((1, 90), |source| {
            let anomaly = &campaign.bases[source.base].anomalies[source.anomaly];
            let events = &anomaly.ways[source.way];
            let is_near = |event: &Witness| last.contains(&(event.addr.0 >> GRANULE_BITS));
            // Variables that belong together are both looked at before they are found to differ.
            let near = match anomaly.kind {
                AnomalyKind::MultiVariable => events.iter().all(is_near),
                _ => events.iter().any(is_near),
            };
            let far = u32::from(!(is_deadlock || near && source.followed));
            (far, telling(campaign, namer, source, is_deadlock))
        });
        (source, switches(hit))
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
    let failed = census(campaign, fault, &spare)?;
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
    let text = match judged.execution.outcome.end.is_failure() {
        true => explain(&judged.execution, Some(&trace)),
        false => failure.detail.clone(),
    };
    let told = told(&judged.execution, &judged.verdict, failure, text);
    let suspect = |counts: &dyn Fn(&Seen) -> bool| {
        cause(&observed, &failed, &campaign.passing, trace.run(), counts)
    };
    // Code that only failing runs come to is most often an effect and not a cause.
    let is_usual = |seen: &Seen| campaign.passing.has_site(seen.pc);
    let (predicted, cause) = match predicted {
        Some(source) => {
            let anomaly = &campaign.bases[source.base].anomalies[source.anomaly];
            let sites = finding::sites(anomaly, source.way);
            let (least, better) = match anomaly.kind {
                // Two variables are too many if one of them alone tells.
                AnomalyKind::MultiVariable => {
                    let about = granules(anomaly, source.way);
                    let counts = |seen: &Seen| about.contains(&(seen.addr.0 >> GRANULE_BITS));
                    (TELLING_MIN, suspect(&counts))
                }
                // What ends the run is not among what was observed.
                _ if is_sync(anomaly, source.way) || ends(anomaly, source.way) => (0, None),
                _ => {
                    let least = failed.suspicion(&sites, &campaign.passing) + MARGIN;
                    (least, suspect(&is_usual))
                }
            };
            let says_more = |better: &Cause| {
                better.suspicion >= least.max(TELLING_MIN) && !contains(&sites, &better.sites)
            };
            match better.filter(says_more) {
                Some(better) => (predicted_as(campaign, &better.sites), Some(better)),
                None => (predicted, None),
            }
        }
        None if is_deadlock => (None, None),
        None => {
            let any = suspect(&is_usual).or_else(|| suspect(&|_| true));
            (any.as_ref().and_then(|any| predicted_as(campaign, &any.sites)), any)
        }
    };
    let (kind, pattern, accesses) = match (predicted, cause) {
        (Some(source), _) => {
            let base = &campaign.bases[source.base];
            let anomaly = &base.anomalies[source.anomaly];
            let events = finding::of_anomaly(&base.model, &anomaly.ways[source.way]);
            let accesses = finding::named(&Trace::open(&base.path)?, &events);
            (anomaly.kind.as_str(), anomaly.pattern.clone(), accesses)
        }
        (None, Some(cause)) => {
            let kind = match cause.events.len() {
                3 => "atomicity",
                _ if cause.events.iter().any(|event| event.deed == Deed::Free) => "order",
                _ => "race",
            };
            let accesses = finding::named(&trace, &finding::of_seen(&cause.events));
            (kind, finding::pattern_of(&cause.events), accesses)
        }
        (None, None) if is_deadlock => ("deadlock", String::new(), waiting(judged, &trace)),
        (None, None) => ("failure", String::new(), Vec::new()),
    };
    let mut finding = Finding {
        kind,
        pattern,
        variable: Finding::variables(&accesses),
        accesses,
        verdict: "failing",
        why: None,
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

/// What runs that fail like this have in common, from some of them.
fn census(campaign: &Campaign<'_>, fault: &Fault, spare: &Path) -> Result<Census> {
    let mut census = Census::default();
    let is_cheap = campaign.bases.first().is_some_and(|base| base.model.n_events <= EVENTS_CHEAP);
    for hit in fault.hits.iter().take(if is_cheap { FAILING_MAX } else { 1 }) {
        census.add(&seen(campaign, &hit.judged, &hit.plan, spare)?);
    }
    Ok(census)
}

/// What has this suspicion may explain a failure better than the anomaly that a run was made for,
/// if it is so much more suspect.
const TELLING_MIN: u32 = 70;
const MARGIN: u32 = 40;

/// How many of them.
const FAILING_MAX: usize = 8;

/// What memory an anomaly is about.
fn granules(anomaly: &Anomaly, way: usize) -> Vec<u64> {
    anomaly.ways[way].iter().map(|event| event.addr.0 >> GRANULE_BITS).collect()
}

/// Whether accesses come in this order among others, and are fewer.
fn contains(all: &Sites, some: &Sites) -> bool {
    let mut rest = all.iter();
    all.len() == 3 && some.iter().all(|one| rest.any(|other| other == one))
}

/// The anomaly that consists of these accesses, if it was predicted.
fn predicted_as(campaign: &Campaign<'_>, sites: &Sites) -> Option<Source> {
    let mut anomalies = campaign.bases.iter().enumerate().flat_map(|(base, its)| {
        its.anomalies.iter().enumerate().map(move |(number, anomaly)| (base, number, anomaly))
    });
    anomalies.find_map(|(base, number, anomaly)| {
        let way = (0..anomaly.ways.len()).find(|&way| finding::sites(anomaly, way) == *sites)?;
        Some(Source { base, anomaly: number, way, followed: true, alone: true })
    })
}

/// What the thread that failed had read last: what it failed on is most often among it.
fn last_reads(trace: &Trace, judged: &Judged) -> VecDeque<u64> {
    let outcome = &judged.execution.outcome;
    let thread = outcome.end.place().map_or(ThreadId(0), |place| place.thread);
    let mut last = VecDeque::new();
    // A trace that cannot be read further has told all that it can.
    for event in trace.events().map_while(Result::ok).filter(|event| event.thread == thread) {
        let addr = match event.op {
            Op::Read(access) => access.addr,
            Op::Atomic(atomic) => atomic.addr,
            _ => continue,
        };
        let granule = addr.0 >> GRANULE_BITS;
        last.retain(|&other| other != granule);
        last.push_back(granule);
        if last.len() > READS_MAX {
            last.pop_front();
        }
    }
    last
}

/// How many of them.
const READS_MAX: usize = 6;

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
fn telling(campaign: &Campaign<'_>, namer: &Namer, source: Source, is_deadlock: bool) -> u32 {
    let base = &campaign.bases[source.base];
    let anomaly = &base.anomalies[source.anomaly];
    let events = &anomaly.ways[source.way];
    let ends = ends(anomaly, source.way);
    let own = match (anomaly.kind, anomaly.unit) {
        (AnomalyKind::Deadlock, _) if is_deadlock => 0,
        (AnomalyKind::Deadlock, _) => 60,
        (AnomalyKind::Order, _) if is_deadlock && is_sync(anomaly, source.way) => 5,
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
    let foreign = events.iter().any(|event| namer.site(event.pc).own_frame().is_none());
    // Counts of references are near to whatever is referred to.
    let is_atomic = |event: &Witness| event.deed.is_atomic();
    let is_count = anomaly.kind == AnomalyKind::MultiVariable
        && events.iter().any(is_atomic)
        && !events.iter().all(is_atomic);
    let doubts = [(foreign, 15), (!source.alone, 9), (!source.followed, 50), (is_count, 1)];
    own + doubts.iter().map(|&(doubt, weight)| if doubt { weight } else { 0 }).sum::<u32>()
}

/// Whether an anomaly is about synchronization objects.
fn is_sync(anomaly: &Anomaly, way: usize) -> bool {
    anomaly.ways[way].iter().any(|event| event.deed.is_of_object())
}

/// Whether an anomaly is about the end of something.
fn ends(anomaly: &Anomaly, way: usize) -> bool {
    anomaly.ways[way].iter().any(|event| matches!(event.deed, Deed::Free | Deed::Destroy))
}

/// A failure in words, and where it was.
pub(crate) fn told(
    execution: &Execution,
    verdict: &Verdict,
    failure: &Failure,
    text: String,
) -> Told {
    let outcome = clip::outcome(execution, verdict);
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
