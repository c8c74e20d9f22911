//! What is to blame for a failure: what failing runs have in common and passing ones do not,
//! compared and confirmed as `raddle localize` does it.
//!
//! An anomaly that made a run fail is a candidate cause, not necessarily the root cause: whatever
//! holds a thread back in one place may bring about what happens in another. So hunts compare, too.
//! If an anomaly that made runs fail is what comparing blames, it is reported as such; if it is not,
//! and executions confirm what comparing blames, that is reported instead.
//!
//! Up to eight runs that failed in the same way are compared with 48 runs under any order, and
//! the first suspects are forced on runs that passed. Then the failing run is reported whose
//! anomaly is the one that comparing blames ([`super::choose`] picks among several). An anomaly
//! of two variables also qualifies if one of its pairs is the blamed one, unless that pair
//! alone makes every run fail; the more suspect its other pair, the better. If no anomaly
//! qualifies, what comparing blames is reported with the run that it explains. If executions do
//! not confirm that, the best anomaly is reported. A failure that does not recur while nothing
//! else runs is not reported, since parallel runs may have disturbed each other. A lock cycle
//! explains itself.

use std::sync::Arc;

use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::facts::SiteAccess;
use raddle_analysis::observed::{Observed, Sites};
use raddle_trace::control::Policy;
use raddle_trace::run::Run;
use raddle_trial::Order;

use super::search::{FailedRun, FailureGroup, Search};
use crate::compare::check::{Evidence, Forcing};
use crate::compare::{Example, Group, Shown, Terms, compare};
use crate::error::LabError;
use crate::sample::collect::{self, collect};
use crate::sample::{Sample, Spec};

/// Runs that are compared: passing ones, and failing ones of a failure.
const PASSED: usize = 48;
const FAILED: usize = 8;
/// With fewer passing runs nothing can be said.
const PASSED_MIN: usize = 4;
/// The share of what is left that goes into passing runs, of 1.
const PASSED_SHARE: usize = 4;
/// Suspects that are checked by executing them.
const CHECKED: usize = 6;
/// Pairs after the first that are looked at.
const OTHERS: usize = 10;
/// Patterns that are looked at for one that contains a pair.
const PATTERNS: usize = 5;

/// Passing runs that failing ones are compared with.
pub(super) struct Blamer<'a> {
    search: &'a Search<'a>,
    /// Runs under various schedules.
    samples: Vec<Sample>,
}

/// What is to blame.
pub(super) struct Blame {
    pub(super) accesses: Vec<SiteAccess>,
    pub(super) shown: Shown,
    /// The run that it is shown from.
    pub(super) example: Example,
    /// What executions say of it.
    pub(super) evidence: Evidence,
    /// The next pairs, the most suspect first.
    pub(super) others: Vec<[SiteAccess; 2]>,
}

impl Blame {
    /// Whether it needs nothing else to fail: a unit is broken, or every run fails.
    pub(super) fn is_enough(&self) -> bool {
        let Forcing { n_failed, n_passed, .. } = self.evidence.forced;
        self.accesses.len() == 3 || n_failed > 0 && n_passed == 0
    }

    /// Whether a run has it.
    pub(super) fn is_in(&self, observed: &Observed, run: &Run) -> bool {
        let site = |access: &SiteAccess| Some((access.kind, run.pc(access.site)?));
        let sites: Option<Sites> = self.accesses.iter().map(site).collect();
        sites.is_some_and(|sites| observed.sequences.contains(&sites))
    }
}

impl<'a> Blamer<'a> {
    /// Executes the target under various schedules.
    pub(super) fn new(search: &'a Search<'a>) -> Result<Self, LabError> {
        let base = search.bases.first();
        let n_steps = base.map_or(1, |base| base.recorded.trial.execution.outcome.n_steps);
        let seed = search.plan.seed;
        let n = PASSED.min(search.executor.budget.available() / PASSED_SHARE);
        let specs: Vec<_> =
            (0..n as u64).map(|at| Spec::varied(seed + at, n_steps.max(1))).collect();
        Ok(Self { search, samples: sample_all(search, &specs)? })
    }

    /// What is to blame for a failure, as one of its runs shows it; none if that is not known.
    pub(super) fn blame(
        &self,
        group: &FailureGroup,
        shown: &FailedRun,
    ) -> Result<Option<Blame>, LabError> {
        let n_passed = self.samples.iter().filter(|sample| sample.failed.is_none()).count();
        if n_passed < PASSED_MIN {
            return Ok(None);
        }
        let others = group.runs.iter().filter(|run| !std::ptr::eq(*run, shown));
        let specs: Vec<_> =
            std::iter::once(shown).chain(others).filter_map(spec).take(FAILED).collect();
        let key = group.signature.key();
        let is_same = |sample: &Sample| sample.key().is_none_or(|other| other == key);
        let mut samples = sample_all(self.search, &specs)?;
        samples.retain(|sample| sample.failed.is_some());
        samples.extend(self.samples.iter().cloned());
        samples.retain(is_same);
        let is_own = Arc::clone(&self.search.executor.subject.is_own);
        let terms = Terms {
            explained: specs.first().cloned(),
            checked: CHECKED,
            ..Terms::new(self.search.plan.clone(), Settings::default(), is_own)
        };
        let groups = compare(&terms, &samples, Some(self.search.executor))?;
        Ok(groups.into_iter().next().and_then(first))
    }
}

/// How a failing run is executed again.
fn spec(run: &FailedRun) -> Option<Spec> {
    let schedule = run.trial.execution.schedule.clone()?;
    let order = Order::Follow { schedule, strict: false, after: Policy::Rr };
    Some(Spec { seed: run.plan.seed, order, with_loops: false })
}

/// Samples runs.
fn sample_all(search: &Search<'_>, specs: &[Spec]) -> Result<Vec<Sample>, LabError> {
    let results = search.executor.all(specs, collect::RUNS_MAX, |spec, runner| {
        collect(runner, spec, &spec.plan(&search.plan), Settings::default())
    })?;
    Ok(results.into_iter().flatten().flatten().filter_map(|sampled| sampled.sample).collect())
}

/// The first pair, or the pattern that contains it: best one of three accesses that could all have
/// come in another order.
fn first(group: Group) -> Option<Blame> {
    let Group { mut patterns, mut pairs, mut examples, .. } = group;
    let pair = (!pairs.is_empty()).then(|| pairs.remove(0));
    let others =
        pairs.iter().filter_map(|pair| <[SiteAccess; 2]>::try_from(&pair.accesses[..]).ok());
    let others = others.take(OTHERS).collect();
    let is_confirmed = |evidence: Evidence| evidence.confirmed() == Some(true);
    let is_surer = |evidence| {
        is_confirmed(evidence) || pair.as_ref().is_none_or(|pair| !is_confirmed(pair.evidence))
    };
    let contains = |accesses: &[SiteAccess]| {
        pair.as_ref().is_none_or(|pair| accesses.windows(2).any(|two| two == &pair.accesses[..]))
    };
    let mut likely: Vec<_> = patterns.iter().take(PATTERNS).enumerate().collect();
    likely.retain(|(_, pattern)| contains(&pattern.accesses) && is_surer(pattern.evidence));
    let at = likely
        .iter()
        .min_by_key(|(_, pattern)| pattern.accesses.len() != 3 || pattern.n_fixed > 0)
        .map(|(at, _)| *at);
    let (accesses, shown, evidence) = match (at, pair) {
        (Some(at), _) => {
            let pattern = patterns.swap_remove(at);
            (pattern.accesses, pattern.shown, pattern.evidence)
        }
        (None, Some(pair)) => (pair.accesses, pair.shown, pair.evidence),
        (None, None) => return None,
    };
    let example = examples.swap_remove(shown.example);
    Some(Blame { accesses, shown, example, evidence, others })
}
