//! What is to blame for a failure: what failing runs have in common and passing ones have not,
//! compared and confirmed as `raddle localize` does it.
//!
//! An anomaly that a run was made to fail with is a cause of the failure, but it need not be the
//! cause: whatever brings a thread to a standstill somewhere may bring about what happens elsewhere.
//! So hunts compare, too. If an anomaly that runs were made to fail with is what comparing says, it
//! is told as such; if it is not, and executions confirm what comparing says, that is told instead.

use std::time::{Duration, Instant};

use anyhow::Result;
use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::facts::Act;
use raddle_analysis::observed::{Observed, Sites};
use raddle_trace::run::Run;
use raddle_trial::Plan;

use super::campaign::{Campaign, Fault, Hit};
use super::finding::{self, Access};
use super::team::Team;
use crate::localize::again;
use crate::localize::compare::{Terms, compare};
use crate::localize::confirm::{Evidence, Forced};
use crate::localize::gather::gather;
use crate::localize::sample::{How, Policy, Sample};
use crate::localize::tell::Group;

/// Runs that are compared: passing ones, and failing ones of a fault.
const PASSED: usize = 48;
const FAILED: usize = 8;
/// With fewer passing runs nothing can be told.
const PASSED_MIN: usize = 4;
/// Time for passing runs, for each fault, and after which no other fault is looked at.
const TIME_MAX: Duration = Duration::from_secs(6);
const TIME_OF_ALL: Duration = Duration::from_secs(20);
/// Suspects that are checked by executing them.
const CHECKED: usize = 6;
/// Pairs beside the first that are looked at.
const OTHERS: usize = 10;
/// Patterns that are looked at for one that goes on from a pair.
const PATTERNS: usize = 5;

/// Runs that faults are compared with.
pub(crate) struct Blamer<'a> {
    pub(crate) campaign: &'a Campaign<'a>,
    /// Runs under any order, and how they ended.
    samples: Vec<Sample>,
    start: Instant,
}

/// What is to blame.
pub(crate) struct Blame {
    pub(crate) acts: Vec<Act>,
    pub(crate) pattern: String,
    pub(crate) accesses: Vec<Access>,
    /// What executions say of it.
    pub(crate) evidence: Evidence,
    /// The next pairs, the most suspect first.
    pub(crate) others: Vec<[Act; 2]>,
}

impl Blame {
    /// Whether it needs nothing else to fail: a unit is broken, or every run fails.
    pub(crate) fn is_enough(&self) -> bool {
        let Forced { n_failed, n_passed, .. } = self.evidence.forced;
        self.acts.len() == 3 || n_failed > 0 && n_passed == 0
    }

    /// Whether a run has it.
    pub(crate) fn is_in(&self, observed: &Observed, run: &Run) -> bool {
        let site = |act: &Act| Some((act.deed, again::pc(run, act.site)?));
        let sites: Option<Sites> = self.acts.iter().map(site).collect();
        sites.is_some_and(|sites| observed.sequences.contains(&sites))
    }
}

impl<'a> Blamer<'a> {
    /// Executes the target under many orders.
    pub(crate) fn new(campaign: &'a Campaign<'a>) -> Result<Self> {
        let start = Instant::now();
        let team = campaign.team.with_budget(usize::MAX, TIME_MAX);
        let n_steps = campaign.bases.first().map_or(1, |base| base.execution.outcome.n_steps);
        let seed = campaign.settings.plan.seed;
        let hows: Vec<_> =
            (0..PASSED as u64).map(|at| How::varied(seed + at, n_steps.max(1))).collect();
        let samples = all(&team, &campaign.settings.plan, &hows)?;
        Ok(Self { campaign, samples, start })
    }

    /// What is to blame for a fault, as one of its runs shows it; none if that cannot be told.
    pub(crate) fn blame(&self, fault: &Fault, shown: &Hit) -> Result<Option<Blame>> {
        let n_passed = self.samples.iter().filter(|sample| sample.failure.is_none()).count();
        if n_passed < PASSED_MIN || self.start.elapsed() > TIME_OF_ALL {
            return Ok(None);
        }
        let team = self.campaign.team.with_budget(usize::MAX, TIME_MAX);
        let plan = &self.campaign.settings.plan;
        let others = fault.hits.iter().filter(|hit| !std::ptr::eq(*hit, shown));
        let hows: Vec<_> =
            std::iter::once(shown).chain(others).filter_map(how).take(FAILED).collect();
        let key = fault.signature.key();
        let is_same = |sample: &Sample| sample.failure.as_ref().is_none_or(|fail| fail.key == key);
        let mut samples = all(&team, plan, &hows)?;
        samples.retain(|sample| sample.failure.is_some());
        samples.extend(self.samples.iter().cloned());
        samples.retain(is_same);
        let explained = hows.first().cloned();
        let terms =
            Terms { explained, checked: CHECKED, ..Terms::new(plan.clone(), Settings::default()) };
        let groups = compare(&terms, &samples, Some(&team))?;
        Ok(groups.into_iter().next().and_then(first))
    }
}

/// How a failing run is executed again.
fn how(hit: &Hit) -> Option<How> {
    let schedule = hit.judged.execution.schedule.clone()?;
    let policy = Policy::Woven { schedule, mixed: false };
    Some(How { seed: hit.plan.seed, policy, with_laps: false })
}

/// Executes runs, and collects what they give.
fn all(team: &Team, like: &Plan, hows: &[How]) -> Result<Vec<Sample>> {
    let results = team.all(hows, |how, cpu| {
        let plan = Plan { cpu, ..how.plan(like) };
        gather(team, how.clone(), &plan, Settings::default())
    })?;
    Ok(results.into_iter().flatten().filter_map(|(_, sample)| sample).collect())
}

/// The first pair that is told, or the pattern that goes on from it: best one of three accesses that
/// could all have come in another order.
fn first(group: Group) -> Option<Blame> {
    let Group { mut patterns, mut pairs, .. } = group;
    let pair = (!pairs.is_empty()).then(|| pairs.remove(0));
    let others = pairs.iter().filter_map(|told| <[Act; 2]>::try_from(&told.acts[..]).ok());
    let others = others.take(OTHERS).collect();
    let is_confirmed = |evidence: Evidence| evidence.confirmed() == Some(true);
    let is_surer = |evidence| {
        is_confirmed(evidence) || pair.as_ref().is_none_or(|pair| !is_confirmed(pair.evidence))
    };
    let goes_on = |acts: &[Act]| {
        pair.as_ref().is_none_or(|pair| acts.windows(2).any(|two| two == &pair.acts[..]))
    };
    let mut likely: Vec<_> = patterns.iter().take(PATTERNS).enumerate().collect();
    likely.retain(|(_, told)| goes_on(&told.acts) && is_surer(told.evidence));
    let at = likely
        .iter()
        .min_by_key(|(_, told)| told.acts.len() != 3 || told.n_fixed > 0)
        .map(|(at, _)| *at);
    let (acts, pattern, accesses, evidence) = match (at, pair) {
        (Some(at), _) => {
            let told = patterns.swap_remove(at);
            (told.acts, told.name, told.accesses, told.evidence)
        }
        (None, Some(pair)) => {
            let accesses: Vec<Access> = pair.pairs.into_iter().flatten().collect();
            (pair.acts, finding::pattern_of(&accesses), accesses, pair.evidence)
        }
        (None, None) => return None,
    };
    Some(Blame { acts, pattern, accesses, evidence, others })
}
