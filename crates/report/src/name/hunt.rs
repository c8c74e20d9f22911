//! A hunt's findings with names.

use raddle_analysis::anomaly::AnomalyKind;
use raddle_lab::budget::Budget;
use raddle_lab::hunt::finding::{self as ids, FindingVerdict};
use raddle_lab::hunt::{Coverage as Seen, Hunt as Hunted, NoOrder, Stopped as Ended};
use raddle_symbols::name::Namer;
use raddle_trace::expiry::Expiry;
use raddle_trial::Trial;
use rustc_hash::FxHashMap;

use super::access::Named;
use super::{Names, id};
use crate::model::{
    Anomalies, Coverage, Delay, Finding, FindingKind, Forced, Hunt, Stopped, Trials, Verdict,
};

/// A hunt that is over.
pub struct HuntInput<'a> {
    /// What came of it.
    pub hunt: &'a Hunted,
    /// What it took.
    pub budget: &'a Budget,
}

impl Names<'_> {
    /// A hunt with names. Clips and isolations are added by whoever makes them.
    #[must_use]
    pub fn hunt(&self, input: &HuntInput<'_>) -> Hunt {
        let HuntInput { hunt, budget } = input;
        let tally = hunt.tally;
        let findings = self.findings(&hunt.findings);
        let mut notes = Vec::new();
        if let Some(irregular) = &hunt.difference {
            let [first, second] = &irregular.runs;
            if let (Some(first), Some(second)) = (&first.trace, &second.trace) {
                let difference =
                    self.difference(&irregular.difference, [first, second], irregular.doubts);
                notes.push(format!(
                    "this program does not repeat under the same schedule; {difference}"
                ));
            }
        }
        if hunt.n_gone > 0 {
            let failures = if hunt.n_gone == 1 { "a failure" } else { "some failures" };
            notes.push(format!(
                "{failures} did not come again when nothing else ran; parallel runs may disturb each other: try --jobs 1"
            ));
        }
        notes.extend(untested(budget));
        let n_runs = budget.n_runs();
        if budget.n_failed() == n_runs && n_runs > 10 {
            notes.push(
                "it failed under every schedule that was tried; thread order may not be the cause"
                    .into(),
            );
        }
        notes.extend(self.allowed_in_all(budget));
        notes.extend(self.remarks_in_all(budget));
        Hunt {
            trials: trials(budget, tally.infeasible),
            anomalies: Anomalies {
                predicted: tally.predicted,
                observed: tally.observed,
                feasible: tally.failing + tally.benign,
                failing: tally.failing,
                benign: tally.benign,
                infeasible: tally.infeasible,
                untested: tally.untested(),
            },
            recorded: tally.recorded,
            explored: tally.explored,
            stopped: Stopped::from(hunt.stopped),
            coverage: Coverage::from(hunt.coverage),
            findings,
            notes,
        }
    }

    /// A hunt that was stopped before a run could be judged.
    #[must_use]
    pub fn no_run(&self, budget: &Budget) -> Hunt {
        Hunt {
            trials: trials(budget, 0),
            anomalies: Anomalies::default(),
            recorded: 0,
            explored: 0,
            stopped: match () {
                () if budget.is_interrupted() => Stopped::Interrupted,
                () if budget.is_stopped() => Stopped::Time,
                () => Stopped::Runs,
            },
            coverage: Coverage::default(),
            findings: Vec::new(),
            notes: untested(budget).into_iter().collect(),
        }
    }

    /// A failure as it was seen, without an explanation; none if the run did not fail.
    #[must_use]
    pub fn unexplained(&self, trial: &Trial) -> Option<Finding> {
        let execution = &trial.execution;
        let failure = trial.failure()?;
        let failure = self.failure(&execution.run, &execution.outcome, failure, None);
        let schedule = execution.schedule.as_ref();
        Some(Finding {
            id: id::of_failure(&failure),
            kind: FindingKind::Failure,
            pattern: String::new(),
            variable: None,
            accesses: Vec::new(),
            verdict: Verdict::Failing,
            why: None,
            forced: None,
            delay: None,
            failure: Some(failure),
            clip: None,
            switches: schedule.map_or(0, |schedule| schedule.n_runs().saturating_sub(1)),
            isolation: None,
        })
    }

    /// A hunt in a program in which the order of threads makes no difference.
    #[must_use]
    pub fn no_order(&self, why: NoOrder, trial: &Trial, budget: &Budget) -> Hunt {
        let why = match why {
            NoOrder::OneThread => "only one thread ran, so there is no order to change",
            NoOrder::NothingShared => {
                "its threads share no memory that is written and wait only for each other to end, so their order makes no difference"
            }
        };
        let finding = self.unexplained(trial).map(|finding| Finding { switches: 0, ..finding });
        Hunt {
            trials: trials(budget, 0),
            anomalies: Anomalies::default(),
            recorded: budget.n_runs(),
            explored: 0,
            stopped: Stopped::NoOrder,
            coverage: Coverage::default(),
            findings: finding.into_iter().collect(),
            notes: std::iter::once(why.to_owned())
                .chain(self.allowed_in_all(budget))
                .chain(self.remarks_in_all(budget))
                .collect(),
        }
    }

    /// Findings with names: accesses of the same run in one pass over its trace.
    fn findings(&self, findings: &[ids::Finding]) -> Vec<Finding> {
        let mut by_run: FxHashMap<*const raddle_trace::run::Run, Vec<usize>> = FxHashMap::default();
        let mut order = Vec::new();
        for (at, finding) in findings.iter().enumerate() {
            let Some((run, _)) = finding.source() else { continue };
            let group = by_run.entry(std::ptr::from_ref(run)).or_default();
            if group.is_empty() {
                order.push(std::ptr::from_ref(run));
            }
            group.push(at);
        }
        let mut named: Vec<Named> = findings.iter().map(|_| Named::default()).collect();
        for run in order {
            let members = &by_run[&run];
            let Some((run, trace)) = findings[members[0]].source() else { continue };
            let groups: Vec<_> = members.iter().map(|&at| &findings[at].accesses[..]).collect();
            for (&at, group) in members.iter().zip(self.accesses(run, trace, &groups)) {
                named[at] = group;
            }
        }
        let pairs = findings.iter().zip(named);
        pairs.map(|(finding, named)| self.finding(finding, named)).collect()
    }

    fn finding(&self, finding: &ids::Finding, named: Named) -> Finding {
        let failure = finding.proof.as_ref().and_then(|proof| {
            let execution = &proof.trial.execution;
            let trace = proof.recorded.as_ref().map(|recorded| &*recorded.trace);
            let failure = proof.trial.failure()?;
            Some(self.failure(&execution.run, &execution.outcome, failure, trace))
        });
        let id = match &failure {
            Some(failure) if named.accesses.is_empty() => id::of_failure(failure),
            _ => id::of_accesses(&finding.pattern, &named),
        };
        Finding {
            id,
            kind: match finding.kind {
                ids::FindingKind::Anomaly(kind) => FindingKind::from(kind),
                ids::FindingKind::Failure => FindingKind::Failure,
            },
            pattern: finding.pattern.clone(),
            variable: named.variable,
            accesses: named.accesses,
            verdict: match finding.verdict {
                FindingVerdict::Failing => Verdict::Failing,
                FindingVerdict::Benign => Verdict::Benign,
                FindingVerdict::Infeasible => Verdict::Infeasible,
                FindingVerdict::Untested => Verdict::Untested,
            },
            why: self.why(finding),
            forced: finding.forced.map(Forced::from),
            delay: self.delay(finding),
            failure,
            clip: None,
            switches: finding.n_switches(),
            isolation: None,
        }
    }

    /// Which thread has to be later than preemption makes threads anyway.
    fn delay(&self, finding: &ids::Finding) -> Option<Delay> {
        let execution = &finding.proof.as_ref()?.trial.execution;
        let (thread, delay) = execution.lateness.longest?;
        let ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let thread = Namer::new(&execution.run, self.cache).thread(thread).to_string();
        (ns > Expiry::FAIR.delay_ns_max).then_some(Delay { thread, ns })
    }

    /// Why an anomaly is infeasible, or a lock cycle did no harm.
    fn why(&self, finding: &ids::Finding) -> Option<String> {
        match finding.verdict {
            FindingVerdict::Infeasible => Some(self.why_infeasible(finding)),
            FindingVerdict::Benign => Some(self.why_harmless(finding.proof.as_ref()?)),
            FindingVerdict::Failing | FindingVerdict::Untested => None,
        }
    }

    /// Who ended the program.
    fn why_harmless(&self, proof: &ids::Proof) -> String {
        let recorded = proof.recorded.as_deref();
        let who = match recorded.and_then(|recorded| recorded.model.skeleton.exit.as_ref()) {
            Some(exit) => {
                let namer = Namer::new(&proof.trial.execution.run, self.cache);
                format!("{} ended the program", namer.thread(exit.thread))
            }
            None => "the program ended".to_owned(),
        };
        format!("{who} before this was a deadlock")
    }

    fn why_infeasible(&self, finding: &ids::Finding) -> String {
        let (Some((thread, pc)), Some((run, _))) = (finding.left, finding.source()) else {
            return "no order of the other events allows it".to_owned();
        };
        let namer = Namer::new(run, self.cache);
        let place = namer.own_site(pc, None);
        format!("{} took a different path at {place}", namer.thread(thread))
    }
}

/// What to say of a hunt if no run could be judged.
pub const NO_RUN: &str = "no run could be judged, so nothing was tested";

/// What the user should know about runs that were not judged.
fn untested(budget: &Budget) -> Option<String> {
    let n_runs = budget.n_runs();
    let n_unjudged = budget.n_not_judged() - budget.n_cut_short();
    if budget.n_judged() == 0 {
        Some(NO_RUN.to_owned())
    } else if n_unjudged > 0 {
        Some(format!("{n_unjudged} of {n_runs} runs could not be judged"))
    } else {
        None
    }
}

/// Executions so far.
#[must_use]
pub fn trials(budget: &Budget, infeasible: usize) -> Trials {
    Trials {
        total: budget.n_runs(),
        failed: budget.n_failed(),
        infeasible,
        not_judged: budget.n_not_judged(),
    }
}

impl From<Ended> for Stopped {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Found => Self::Found,
            Ended::NothingNew => Self::NothingNew,
            Ended::Runs => Self::Runs,
            Ended::Time => Self::Time,
            Ended::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Seen> for Coverage {
    fn from(seen: Seen) -> Self {
        let Seen { n_orders: orders, n_since_new, n_since_new_recorded } = seen;
        Self { orders, since_new: n_since_new, since_new_recorded: n_since_new_recorded }
    }
}

impl From<AnomalyKind> for FindingKind {
    fn from(kind: AnomalyKind) -> Self {
        match kind {
            AnomalyKind::Race => Self::Race,
            AnomalyKind::Atomicity => Self::Atomicity,
            AnomalyKind::MultiVariable => Self::MultiVariable,
            AnomalyKind::Order => Self::Order,
            AnomalyKind::Deadlock => Self::Deadlock,
        }
    }
}

impl From<raddle_lab::compare::check::Forcing> for Forced {
    fn from(forced: raddle_lab::compare::check::Forcing) -> Self {
        Self { failed: forced.n_failed, passed: forced.n_passed }
    }
}
