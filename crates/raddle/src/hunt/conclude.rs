//! From failing runs to findings: the best run of each failure, with as few switches as
//! possible, its cause, and its clip.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::localize::facts::Act;
use raddle_analysis::observed::Observed;
use raddle_analysis::witness::{Deed, Witness};
use raddle_report::symbols::name::Namer;
use raddle_trace::control::Policy;
use raddle_trace::file::{Trace, Writer};
use raddle_trial::verdict::{Failure, FailureKind, Verdict};
use raddle_trial::{Delivery, Execution, Order, Plan};

use super::base::{self, Base};
use super::best::{Best, is_sync};
use super::blame::{Blame, Blamer};
use super::campaign::{Campaign, Fault, Harmless, Hit, Source};
use super::failure::Signature;
use super::finding::{self, Finding, Told};
use super::minimize::minimize;
use super::team::Judged;
use crate::clip::{self, Kept};
use crate::explain::explain;

/// Runs and time that a failure's minimization may take.
const RUNS_MAX: usize = 200;
const TIME_MAX: Duration = Duration::from_secs(6);

/// What a hunt comes to.
pub(crate) struct Conclusion {
    /// Failing ones first, then by how few switches they need.
    pub(crate) findings: Vec<Finding>,
    /// Failures that did not come again when nothing else ran.
    pub(crate) n_gone: usize,
}

/// Concludes a hunt in a program that is known to repeat, or not to.
pub(crate) fn conclude(
    campaign: &Campaign<'_>,
    context: &Context<'_>,
    repeats: bool,
) -> Result<Conclusion> {
    let (mut findings, mut n_gone) = (Vec::new(), 0);
    let mut blamer = None;
    let is_alone = campaign.team.n_jobs() == 1 || !repeats;
    for (number, fault) in campaign.faults.iter().enumerate() {
        let path = context.clip(number);
        if !is_alone && !comes_again(campaign, fault)? {
            n_gone += 1;
            // It was kept when the failure was seen; if it cannot be removed it does no harm.
            let _ = std::fs::remove_file(&path);
            continue;
        }
        let blamer = match &blamer {
            Some(blamer) => blamer,
            None => blamer.insert(Blamer::new(campaign)?),
        };
        if let Some(finding) = of_fault(blamer, context, fault, &path)? {
            findings.push(finding);
        }
    }
    findings.sort_by_key(|finding| (finding.clip.is_none(), finding.n_switches));
    harmless(campaign, context, &mut findings)?;
    Ok(Conclusion { findings, n_gone })
}

/// Whether one of the runs that failed does so again while nothing else runs: others may have got in
/// its way.
fn comes_again(campaign: &Campaign<'_>, fault: &Fault) -> Result<bool> {
    let mut hits: Vec<_> = fault.hits.iter().collect();
    hits.sort_by_key(|hit| hit.n_stretches());
    let team = campaign.team.with_budget(AGAIN_MAX, TIME_MAX);
    for hit in hits.into_iter().take(AGAIN_MAX) {
        let again = team.execute(&follow(&hit.judged, &hit.plan), Delivery::Nothing)?;
        if let Verdict::Fail(failure) = &again.verdict
            && Signature::of(&again.execution, failure) == fault.signature
        {
            return Ok(true);
        }
    }
    // If somebody stops us, it counts as it was seen.
    Ok(team.is_interrupted())
}

/// How many of them are executed again.
const AGAIN_MAX: usize = 3;

/// How to execute a run again.
fn follow(judged: &Judged, plan: &Plan) -> Plan {
    let schedule = judged.execution.schedule.clone().unwrap_or_default();
    let order = Order::Follow { schedule, strict: false, after: Policy::Rr };
    Plan { order, ..plan.clone() }
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
                forced: None,
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
    blamer: &Blamer<'_>,
    context: &Context<'_>,
    fault: &Fault,
    path: &Path,
) -> Result<Option<Finding>> {
    let campaign = blamer.campaign;
    let is_deadlock = fault.hits.iter().any(|hit| kind(hit) == Some(FailureKind::Deadlock));
    let spare = campaign.spare_path("failing.trace");
    let Some(shortest) = fault.hits.iter().min_by_key(|hit| hit.n_stretches()) else {
        return Ok(None);
    };
    // A circle of locks says all; and whatever hangs takes its time, each time.
    let is_circle = is_deadlock && !shortest.judged.execution.outcome.circle().is_empty();
    let is_hang = kind(shortest) == Some(FailureKind::Hang);
    let blame = match is_circle || is_hang {
        true => None,
        false => blamer.blame(fault, shortest)?,
    };
    let confirmed = blame.as_ref().filter(|blame| blame.evidence.confirmed() == Some(true));
    let likely = blame.as_ref().filter(|blame| blame.evidence.confirmed() != Some(false));
    let agrees = |source: Source| likely.is_some_and(|blame| contains(campaign, source, blame));
    seen(campaign, &shortest.judged, &shortest.plan, &spare)?;
    let best = Best::new(campaign, &Trace::open(&spare)?, &shortest.judged, is_deadlock);
    let rest = |hit: &&Hit| match (hit.source, likely) {
        (Some(source), Some(blame)) => rank_of_rest(campaign, source, blame),
        _ => 0,
    };
    let mut agreeing: Vec<&Hit> =
        fault.hits.iter().filter(|hit| hit.source.is_some_and(agrees)).collect();
    if let Some(least) = agreeing.iter().map(rest).min() {
        agreeing.retain(|hit| rest(hit) == least);
    }
    let is_right = |source: Source| confirmed.is_none() || agrees(source);
    let explains = |source: &Source| is_right(*source) && best.explains(*source);
    let best = match best.of(agreeing) {
        Some(hit) => hit,
        // The one that was explained.
        None if confirmed.is_some() => shortest,
        None => best.of(&fault.hits).unwrap_or(shortest),
    };
    let predicted = best.source.filter(explains);
    let minimized = match context.minimizes {
        true => {
            let team = campaign.team.with_budget(RUNS_MAX, TIME_MAX);
            minimize(&team, &best.plan, &best.judged, &fault.signature)?
        }
        false => None,
    };
    let is_shown = |judged: &Judged| -> Result<bool> {
        let observed = seen(campaign, judged, &best.plan, &spare)?;
        Ok(match (predicted, confirmed) {
            (Some(source), _) => shows(campaign, source, &observed),
            (None, Some(blame)) => blame.is_in(&observed, &judged.execution.run),
            (None, None) => true,
        })
    };
    let mut judged = minimized.as_ref().unwrap_or(&best.judged);
    if !is_shown(judged)? && minimized.is_some() {
        // Fewer switches, but another story; unless neither of the two can be seen to tell it.
        match is_shown(&best.judged)? {
            true => judged = &best.judged,
            false => drop(seen(campaign, judged, &best.plan, &spare)?),
        }
    }
    let Verdict::Fail(failure) = &judged.verdict else { return Ok(None) };
    let Some(schedule) = &judged.execution.schedule else { return Ok(None) };
    let trace = Trace::open(&spare)?;
    let text = match judged.execution.outcome.end.is_failure() {
        true => explain(&judged.execution, Some(&trace)),
        false => failure.detail.clone(),
    };
    let told = told(&judged.execution, &judged.verdict, failure, text);
    let is_it = |blame: &&Blame| predicted.is_none_or(|it| acts_of(campaign, it) == blame.acts);
    let forced = confirmed.filter(is_it).map(|blame| blame.evidence.forced);
    let (kind, pattern, accesses) = match (predicted, blame) {
        (Some(source), _) => {
            let base = &campaign.bases[source.base];
            let anomaly = &base.anomalies[source.anomaly];
            let events = finding::of_anomaly(&base.model, &anomaly.ways[source.way]);
            let accesses = finding::named(&Trace::open(&base.path)?, &events);
            (anomaly.kind.as_str(), anomaly.pattern.clone(), accesses)
        }
        (None, Some(blame)) if !is_deadlock || blame.evidence.confirmed() != Some(false) => {
            (kind_of(campaign, &blame), blame.pattern, blame.accesses)
        }
        (None, _) if is_deadlock => ("deadlock", String::new(), waiting(judged, &trace)),
        (None, _) => ("failure", String::new(), Vec::new()),
    };
    let mut finding = Finding {
        kind,
        pattern,
        variable: Finding::variables(&accesses),
        accesses,
        verdict: "failing",
        why: None,
        forced,
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

/// Whether an anomaly consists of what is to blame; or has it for one of two variables, if that
/// alone is not enough to fail.
fn contains(campaign: &Campaign<'_>, source: Source, blame: &Blame) -> bool {
    let acts = acts_of(campaign, source);
    let is_one = |act: &Act| acts.contains(act);
    match campaign.bases[source.base].anomalies[source.anomaly].kind {
        AnomalyKind::MultiVariable => !blame.is_enough() && blame.acts.iter().all(is_one),
        _ => acts == blame.acts,
    }
}

/// Where among the suspects the pair is that an anomaly of two variables has beside what is to
/// blame.
fn rank_of_rest(campaign: &Campaign<'_>, source: Source, blame: &Blame) -> usize {
    let acts = acts_of(campaign, source);
    let rest: Vec<_> = acts.iter().filter(|act| !blame.acts.contains(act)).collect();
    let is_rest = |pair: &[Act; 2]| rest.iter().all(|act| pair.contains(act));
    blame.others.iter().position(is_rest).unwrap_or(blame.others.len())
}

/// What the anomaly that a run was made for consists of.
fn acts_of(campaign: &Campaign<'_>, source: Source) -> Vec<Act> {
    let base = &campaign.bases[source.base];
    acts(base, &base.anomalies[source.anomaly], source.way)
}

/// What an anomaly consists of, the same in all runs.
fn acts(base: &Base, anomaly: &Anomaly, way: usize) -> Vec<Act> {
    let act = |event: &Witness| Act { site: base.execution.run.site(event.pc), deed: event.deed };
    anomaly.ways[way].iter().map(act).collect()
}

/// What kind of anomaly is to blame.
fn kind_of(campaign: &Campaign<'_>, blame: &Blame) -> &'static str {
    let predicted = campaign.bases.iter().find_map(|base| {
        let is_it = |anomaly: &&Anomaly| {
            (0..anomaly.ways.len()).any(|way| acts(base, anomaly, way) == blame.acts)
        };
        base.anomalies.iter().find(is_it)
    });
    let blocks = blame.acts.iter().any(|act| act.deed == Deed::Block);
    match (predicted, blame.acts.len()) {
        _ if blocks => "deadlock",
        (Some(anomaly), _) => anomaly.kind.as_str(),
        (None, 4) => "multi-variable",
        (None, 3) => "atomicity",
        (None, _) => "order",
    }
}

/// The run once more, with a trace that tells what happened.
fn seen(campaign: &Campaign<'_>, judged: &Judged, plan: &Plan, path: &Path) -> Result<Observed> {
    let mut writer = Writer::create(path)?;
    let team = campaign.team.with_budget(1, TIME_MAX);
    let again = team.execute(&follow(judged, plan), Delivery::Records(&mut writer))?;
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
                || observed.sequences.contains(&finding::sites(anomaly, source.way))
        }
    }
}

fn kind(hit: &Hit) -> Option<FailureKind> {
    match &hit.judged.verdict {
        Verdict::Fail(failure) => Some(failure.kind),
        Verdict::Pass | Verdict::Unjudged => None,
    }
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
