//! From failing runs to findings.
//!
//! Each failure goes through four steps, with values between them: **blame** what failing runs
//! have in common ([`super::blame`]), **choose** the run whose anomaly agrees with that
//! ([`super::choose`]), **minimize** its context switches ([`crate::minimize`]), and record the
//! result as the **witness**, if it still shows what is blamed.

use std::sync::Arc;

use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::localize::facts::SiteAccess;
use raddle_analysis::witness::AccessKind;
use raddle_trace::control::Policy;
use raddle_trace::failure::FailureKind;
use raddle_trace::id::Site;
use raddle_trial::{Delivery, Order, Plan, Trial};

use super::blame::{Blame, Blamer};
use super::choose::{Choice, is_sync};
use super::cycle;
use super::finding::{Finding, FindingKind, FindingVerdict, Proof, Source as From};
use super::search::{FailedRun, FailureGroup, Harmless, Search, Source, Why};
use crate::access::{self, AccessAt};
use crate::error::LabError;
use crate::minimize::minimize;
use crate::progress::Progress;
use crate::recorded::{Detail, Recorded};
use crate::signature::Signature;

/// Executions that minimizing a failure may take.
const MINIMIZE_MAX: usize = 200;
/// Executions that recording its witness may take: the shortest run, the minimized one, and the
/// chosen one.
const WITNESS_MAX: usize = 3;
/// How many of the runs that failed are executed again alone.
const AGAIN_MAX: usize = 3;

/// What a hunt comes to.
pub(super) struct Conclusion {
    /// The best explained first.
    pub(super) findings: Vec<Finding>,
    /// Failures that did not come again when nothing else ran.
    pub(super) n_gone: usize,
}

/// Concludes a search in a program that is known to repeat, or not to.
pub(super) fn conclude(search: &Search<'_>, repeats: bool) -> Result<Conclusion, LabError> {
    let (mut findings, mut n_gone) = (Vec::new(), 0);
    let mut blamer = None;
    let budget = &search.executor.budget;
    let is_alone = search.executor.n_jobs() == 1 || !repeats;
    let n_failures = search.groups.len();
    for (number, group) in search.groups.iter().enumerate() {
        search.executor.report(Progress::Explaining { number, n_failures });
        // What is left is shared out evenly.
        let n_more = n_failures - number - 1;
        budget.hold_back(budget.left() / (n_more + 1) * n_more);
        if !is_alone && !comes_again(search, group)? {
            n_gone += 1;
            continue;
        }
        let blamer = match &blamer {
            Some(blamer) => blamer,
            None => blamer.insert(Blamer::new(search)?),
        };
        findings.extend(Case { search, group, number }.conclude(blamer)?);
    }
    budget.hold_back(0);
    findings.sort_by_key(Finding::order);
    let deadlocks: Vec<_> = deadlock_sites(search).collect();
    findings.extend(search.cycles.findings(search.executor, n_failures, &deadlocks, follow)?);
    findings.extend(harmless(search));
    Ok(Conclusion { findings, n_gone })
}

/// Whether one of the runs that failed does so again while nothing else runs: others may have
/// disturbed it.
fn comes_again(search: &Search<'_>, group: &FailureGroup) -> Result<bool, LabError> {
    let mut runs: Vec<_> = group.runs.iter().collect();
    runs.sort_by_key(|run| run.n_stretches());
    let runner = search.executor.alone(AGAIN_MAX);
    for run in runs.into_iter().take(AGAIN_MAX) {
        let again = runner.run(&follow(&run.trial, &run.plan), Delivery::Nothing)?;
        // Without a budget, or if the user stops us, it counts as it was seen.
        let Some(again) = again else { return Ok(true) };
        if let Some(failure) = again.failure() {
            let is_own = &*search.executor.subject.is_own;
            if Signature::of(&again.execution, failure, is_own) == group.signature {
                return Ok(true);
            }
        }
    }
    Ok(search.executor.budget.is_interrupted())
}

/// Where threads wait in each deadlock.
fn deadlock_sites<'a>(search: &'a Search<'_>) -> impl Iterator<Item = Vec<Site>> + 'a {
    let groups = search.groups.iter();
    groups
        .filter(|group| group.failure.kind == FailureKind::Deadlock)
        .filter_map(|group| group.runs.first())
        .map(|run| cycle::sites(&run.trial.execution))
}

/// How to execute a run again.
fn follow(trial: &Trial, plan: &Plan) -> Plan {
    let schedule = trial.execution.schedule.clone().unwrap_or_default();
    let order = Order::Follow { schedule, strict: false, after: Policy::Rr };
    Plan { order, ..plan.clone() }
}

/// The anomalies that did no harm.
fn harmless<'a>(search: &'a Search<'_>) -> impl Iterator<Item = Finding> + 'a {
    let finding = |harmless: &Harmless| {
        let base = &search.bases[harmless.base];
        let anomaly = &base.anomalies[harmless.anomaly];
        let (verdict, left) = match harmless.why {
            Why::Benign => (FindingVerdict::Benign, None),
            Why::Infeasible(left) => (FindingVerdict::Infeasible, left),
            Why::Untested => (FindingVerdict::Untested, None),
        };
        Finding {
            kind: FindingKind::Anomaly(anomaly.kind),
            pattern: anomaly.pattern.clone(),
            accesses: access::of_anomaly(&base.recorded.model, &anomaly.ways[0]),
            from: From::Predicted(Arc::clone(base)),
            verdict,
            left,
            forced: None,
            proof: None,
        }
    };
    search.harmless.iter().take(search.settings.harmless_max).map(finding)
}

/// A failure on its way to a finding.
struct Case<'a> {
    search: &'a Search<'a>,
    group: &'a FailureGroup,
    number: usize,
}

/// The run that is reported.
struct Chosen<'a> {
    run: &'a FailedRun,
    /// The anomaly that it was made for, if that explains the failure.
    predicted: Option<Source>,
}

/// A failing run that shows what is blamed.
struct Witness {
    trial: Trial,
    recorded: Option<Arc<Recorded>>,
}

impl<'a> Case<'a> {
    fn conclude(&self, blamer: &Blamer<'_>) -> Result<Option<Finding>, LabError> {
        let Some(shortest) = self.group.runs.iter().min_by_key(|run| run.n_stretches()) else {
            return Ok(None);
        };
        let blame = self.blame(blamer, shortest)?;
        let first = self.record(&shortest.trial, &shortest.plan)?;
        let chosen = self.choose(blame.as_ref(), first.as_deref(), shortest);
        let minimized = self.minimize(&chosen)?;
        let first = first.filter(|_| std::ptr::eq(chosen.run, shortest));
        let witness = self.witness(&chosen, minimized, blame.as_ref(), first)?;
        Ok(Some(self.finding(blame, &chosen, witness)))
    }

    fn is_deadlock(&self) -> bool {
        self.group.failure.kind == FailureKind::Deadlock
    }

    /// What failing runs have in common; none if that is not known.
    fn blame(&self, blamer: &Blamer<'_>, shortest: &FailedRun) -> Result<Option<Blame>, LabError> {
        // A lock cycle explains itself, and whatever hangs takes its time, each time.
        let is_cycle = self.is_deadlock() && !shortest.trial.execution.outcome.cycle().is_empty();
        if is_cycle || self.group.failure.kind == FailureKind::Hang {
            return Ok(None);
        }
        let budget = &self.search.executor.budget;
        let held_back = budget.left() - budget.available();
        // Half of its share is for minimizing, and something for the witness.
        budget.hold_back(held_back + (budget.available() / 2).max(WITNESS_MAX));
        let blame = blamer.blame(self.group, shortest);
        budget.hold_back(held_back);
        blame
    }

    /// Chooses the run whose anomaly agrees with what is blamed.
    fn choose(
        &self,
        blame: Option<&Blame>,
        first: Option<&Recorded>,
        shortest: &'a FailedRun,
    ) -> Chosen<'a> {
        let last_reads = first.map_or(&[][..], |recorded| &recorded.last_reads);
        let choice = Choice::new(self.search, last_reads, self.is_deadlock());
        let is_confirmed = blame.is_some_and(|blame| blame.evidence.confirmed() == Some(true));
        let likely = blame.filter(|blame| blame.evidence.confirmed() != Some(false));
        let agrees = |source: Source| likely.is_some_and(|blame| self.contains(source, blame));
        let rest = |run: &&FailedRun| match (run.source, likely) {
            (Some(source), Some(blame)) => self.rank_of_rest(source, blame),
            _ => 0,
        };
        let mut agreeing: Vec<&FailedRun> =
            self.group.runs.iter().filter(|run| run.source.is_some_and(agrees)).collect();
        if let Some(least) = agreeing.iter().map(rest).min() {
            agreeing.retain(|run| rest(run) == least);
        }
        let run = match choice.of(agreeing) {
            Some(run) => run,
            // The one that was explained.
            None if is_confirmed => shortest,
            None => choice.of(&self.group.runs).unwrap_or(shortest),
        };
        let is_right = |source: Source| !is_confirmed || agrees(source);
        let predicted = run.source.filter(|source| is_right(*source) && choice.explains(*source));
        Chosen { run, predicted }
    }

    /// The same failure with fewer context switches; none if there is no better run.
    fn minimize(&self, chosen: &Chosen<'_>) -> Result<Option<Trial>, LabError> {
        if !self.search.settings.minimizes {
            return Ok(None);
        }
        let FailedRun { trial, plan, .. } = chosen.run;
        let executor = self.search.executor;
        let budget = &executor.budget;
        let held_back = budget.left() - budget.available();
        budget.hold_back(held_back + WITNESS_MAX);
        let minimized = minimize(executor, plan, trial, &self.group.signature, MINIMIZE_MAX);
        budget.hold_back(held_back);
        minimized
    }

    /// The run that is reported, recorded: the minimized one if it shows what is blamed.
    fn witness(
        &self,
        chosen: &Chosen<'_>,
        minimized: Option<Trial>,
        blame: Option<&Blame>,
        first: Option<Arc<Recorded>>,
    ) -> Result<Witness, LabError> {
        let confirmed = blame.filter(|blame| blame.evidence.confirmed() == Some(true));
        let is_shown = |recorded: &Option<Arc<Recorded>>| {
            let Some(recorded) = recorded else { return false };
            match (chosen.predicted, confirmed) {
                (Some(source), _) => self.shows(source, recorded),
                (None, Some(blame)) => blame.is_in(&recorded.observed, recorded.run()),
                (None, None) => true,
            }
        };
        let FailedRun { trial, plan, .. } = chosen.run;
        let original = |first: Option<Arc<Recorded>>| match first {
            Some(first) => Ok(Some(first)),
            None => self.record(trial, plan),
        };
        let Some(minimized) = minimized else {
            return Ok(Witness { trial: trial.clone(), recorded: original(first)? });
        };
        let recorded = self.record(&minimized, plan)?;
        if !is_shown(&recorded) {
            // Fewer switches, but a different story; unless neither of the two shows it.
            let other = original(first)?;
            if is_shown(&other) {
                return Ok(Witness { trial: trial.clone(), recorded: other });
            }
        }
        Ok(Witness { trial: minimized, recorded })
    }

    /// Executes a run once more, with a trace; none if nothing more may be executed.
    fn record(&self, trial: &Trial, plan: &Plan) -> Result<Option<Arc<Recorded>>, LabError> {
        let runner = self.search.executor.alone(1);
        let recorded = Recorded::new(&runner, &follow(trial, plan), Detail::Counted)?;
        Ok(recorded.map(Arc::new))
    }

    fn finding(&self, blame: Option<Blame>, chosen: &Chosen<'_>, witness: Witness) -> Finding {
        let is_it = |blame: &&Blame| {
            chosen.predicted.is_none_or(|source| self.accesses(source) == blame.accesses)
        };
        let forced = blame
            .as_ref()
            .filter(|blame| blame.evidence.confirmed() == Some(true))
            .filter(is_it)
            .map(|blame| blame.evidence.forced)
            .filter(|forced| forced.n() > 0);
        let proof = Proof {
            number: self.number,
            plan: chosen.run.plan.clone(),
            trial: witness.trial,
            recorded: witness.recorded,
        };
        let is_deadlock = self.is_deadlock();
        let (kind, pattern, accesses, from) = match (chosen.predicted, blame) {
            (Some(source), _) => {
                let base = &self.search.bases[source.base];
                let anomaly = &base.anomalies[source.anomaly];
                let events = &anomaly.ways[source.way];
                let accesses = access::of_anomaly(&base.recorded.model, events);
                let kind = FindingKind::Anomaly(anomaly.kind);
                (kind, anomaly.pattern.clone(), accesses, From::Predicted(Arc::clone(base)))
            }
            (None, Some(blame)) if !is_deadlock || blame.evidence.confirmed() != Some(false) => {
                let kind = FindingKind::Anomaly(self.kind_of(&blame));
                let accesses: Vec<AccessAt> = blame.shown.accesses;
                let pattern = access::pattern(&accesses);
                (kind, pattern, accesses, From::Example(Arc::new(blame.example)))
            }
            (None, _) if is_deadlock => {
                let threads = &proof.trial.execution.outcome.threads;
                let kind = FindingKind::Anomaly(AnomalyKind::Deadlock);
                (kind, String::new(), access::of_waiting(threads), From::Proof)
            }
            (None, _) => (FindingKind::Failure, String::new(), Vec::new(), From::Proof),
        };
        let (verdict, left, proof) = (FindingVerdict::Failing, None, Some(proof));
        Finding { kind, pattern, accesses, from, verdict, left, forced, proof }
    }

    fn anomaly(&self, source: Source) -> &Anomaly {
        &self.search.bases[source.base].anomalies[source.anomaly]
    }

    fn accesses(&self, source: Source) -> Vec<SiteAccess> {
        self.search.bases[source.base].accesses(source.anomaly, source.way)
    }

    /// Whether an anomaly consists of what is blamed; or has it for one of two variables, if that
    /// alone is not enough to fail.
    fn contains(&self, source: Source, blame: &Blame) -> bool {
        let accesses = self.accesses(source);
        let is_one = |access: &SiteAccess| accesses.contains(access);
        match self.anomaly(source).kind {
            AnomalyKind::MultiVariable => !blame.is_enough() && blame.accesses.iter().all(is_one),
            AnomalyKind::Race
            | AnomalyKind::Atomicity
            | AnomalyKind::Order
            | AnomalyKind::Deadlock => accesses == blame.accesses,
        }
    }

    /// The rank among the suspects of the pair that an anomaly of two variables has beside what is
    /// blamed.
    fn rank_of_rest(&self, source: Source, blame: &Blame) -> usize {
        let accesses = self.accesses(source);
        let rest: Vec<_> =
            accesses.iter().filter(|access| !blame.accesses.contains(access)).collect();
        let is_rest = |pair: &[SiteAccess; 2]| rest.iter().all(|access| pair.contains(access));
        blame.others.iter().position(is_rest).unwrap_or(blame.others.len())
    }

    /// What kind of anomaly is blamed.
    fn kind_of(&self, blame: &Blame) -> AnomalyKind {
        let predicted = self.search.bases.iter().find_map(|base| {
            base.anomalies.iter().enumerate().find_map(|(number, anomaly)| {
                let is_it =
                    (0..anomaly.ways.len()).any(|way| base.accesses(number, way) == blame.accesses);
                is_it.then_some(anomaly.kind)
            })
        });
        let blocks = blame.accesses.iter().any(|access| access.kind == AccessKind::Block);
        match (predicted, blame.accesses.len()) {
            _ if blocks => AnomalyKind::Deadlock,
            (Some(kind), _) => kind,
            (None, 4) => AnomalyKind::MultiVariable,
            (None, 3) => AnomalyKind::Atomicity,
            (None, _) => AnomalyKind::Order,
        }
    }

    /// Whether the accesses of an anomaly came in its order in a run.
    fn shows(&self, source: Source, recorded: &Recorded) -> bool {
        let anomaly = self.anomaly(source);
        match anomaly.kind {
            AnomalyKind::Deadlock | AnomalyKind::MultiVariable => true,
            AnomalyKind::Atomicity | AnomalyKind::Race | AnomalyKind::Order => {
                let events = self.search.events(source);
                let sites = events.iter().map(|event| (event.kind, event.pc)).collect();
                is_sync(anomaly, source.way)
                    || recorded.observed.sequences.contains::<Vec<_>>(&sites)
            }
        }
    }
}
