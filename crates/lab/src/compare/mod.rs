//! Failing runs against passing ones: what is to blame, the most likely cause first.
//!
//! Patterns and pairs of accesses are ranked by how well they tell failing from passing runs
//! (Falcon, LOCON), and the first ones are checked by executing them ([`mod@check`]).

mod timeline;
pub mod check;
mod candidate;
mod surroundings;
mod effects;
mod order;
mod examples;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::facts::{Facts, Pair, Pattern, PatternFact, SiteAccess};
use raddle_analysis::localize::procedures::{Level, Procedure, Suspect, often, suspects};
use raddle_analysis::localize::rank::{Counts, Example as From, Formula, Ranked, rank};
use raddle_analysis::localize::runs::Runs;
use raddle_trace::file::Trace;
use raddle_trace::id::Site;
use raddle_trace::run::Run;
use raddle_trial::Plan;

use self::candidate::Candidate;
use self::check::{Checker, Evidence, PASSED_MAX};
use self::examples::Examples;
pub use self::order::Rank;
use self::order::sort;
use self::surroundings::Surroundings;
use self::timeline::Timeline;
use crate::access::AccessAt;
use crate::error::LabError;
use crate::executor::{Executor, IsOwn, Runner};
use crate::recorded::{Detail, Recorded};
use crate::sample::collect::{self, collect};
use crate::sample::{Failed, Sample, Spec};
use crate::signature::Signature;

/// Suspects that are to be forced on passing runs.
const CHECKED: usize = 12;
/// How many times as many are looked at for it at most, and how many at a time.
const LOOKED_AT: usize = 3;
const BATCH: usize = 4;
/// Patterns that are given examples: nobody looks at more.
const SHOWN: usize = 100;

/// On what terms runs are compared.
pub struct Terms {
    /// How runs are executed again.
    pub plan: Plan,
    /// What is collected.
    pub settings: Settings,
    /// How many passing runs are compared at most.
    pub n_passed: usize,
    /// How many failing runs are compared at most.
    pub n_failed: usize,
    /// How suspicion is computed.
    pub formula: Formula,
    /// Suspects that are wanted.
    pub count: usize,
    /// Suspects that are forced on passing runs, if that many can be.
    pub checked: usize,
    /// The failed run that is to be explained; none for the shortest.
    pub explained: Option<Spec>,
    /// Which code is the program's own.
    pub is_own: Arc<IsOwn>,
}

impl Terms {
    /// The defaults.
    #[must_use]
    pub fn new(plan: Plan, settings: Settings, is_own: Arc<IsOwn>) -> Self {
        let most = usize::MAX;
        Self {
            plan,
            settings,
            n_passed: most,
            n_failed: most,
            formula: Formula::Jaccard,
            count: SHOWN,
            checked: CHECKED,
            explained: None,
            is_own,
        }
    }
}

/// A failure, and what is to blame for it.
pub struct Group {
    /// How runs fail.
    pub failed: Failed,
    /// A run that fails like this.
    pub run: Run,
    /// Failing runs that were compared.
    pub n_failed: usize,
    /// Passing runs that were compared.
    pub n_passed: usize,
    /// Patterns, the most suspect first.
    pub patterns: Vec<RankedPattern>,
    /// Pairs, the most suspect first.
    pub pairs: Vec<RankedPair>,
    /// The runs that accesses are shown from.
    pub examples: Vec<Example>,
}

/// A run that accesses are shown from.
pub struct Example {
    /// What ran.
    pub run: Run,
    /// All that it did; none if it could not be executed again.
    pub trace: Option<Arc<Trace>>,
}

/// Accesses of an example.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The number of the example.
    pub example: usize,
    /// In their order.
    pub accesses: Vec<AccessAt>,
}

/// A pattern with its rank.
pub struct RankedPattern {
    /// Its rank.
    pub rank: Rank,
    /// How suspect it is.
    pub score: f64,
    /// What it consists of, the same in all runs.
    pub accesses: Vec<SiteAccess>,
    /// Pairs of its accesses that could not come in another order.
    pub n_fixed: usize,
    /// An example.
    pub shown: Shown,
    /// The callers of the function of each access, innermost first.
    pub stacks: Vec<Vec<Site>>,
    /// Runs that have it.
    pub counts: Counts,
    /// What executions say of it.
    pub evidence: Evidence,
}

/// A pair, or two coupled pairs, with its rank.
pub struct RankedPair {
    /// Its rank, from 1.
    pub rank: usize,
    /// The procedure that found it.
    pub procedure: Procedure,
    /// Head and tail of each pair, the same in all runs.
    pub accesses: Vec<SiteAccess>,
    /// An example: head and tail of each pair.
    pub shown: Shown,
    /// Runs that have it.
    pub counts: Counts,
    /// How suspect it is.
    pub score: f64,
    /// What executions say of it.
    pub evidence: Evidence,
}

/// Compares failing with passing runs, each kind of failure by itself, the most frequent first.
/// Without an executor nothing is executed.
pub fn compare(
    terms: &Terms,
    samples: &[Sample],
    executor: Option<&Executor<'_>>,
) -> Result<Vec<Group>, LabError> {
    let (failed, passed): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.failed.is_some());
    let n_passed = terms.n_passed.min(passed.len());
    let passed = &passed[..n_passed];
    let mut by_failure: BTreeMap<&str, (&Failed, Vec<&Sample>)> = BTreeMap::new();
    for sample in failed {
        if let Some(failed) = &sample.failed {
            by_failure.entry(&failed.key).or_insert((failed, Vec::new())).1.push(sample);
        }
    }
    let mut by_failure: Vec<_> = by_failure.into_values().collect();
    by_failure.sort_by_key(|(_, samples)| Reverse(samples.len()));
    let passed_facts: Vec<Facts> = passed.iter().map(|sample| sample.facts.clone()).collect();
    let mut groups = Vec::new();
    for (failure, mut failed) in by_failure {
        let chance = chance(samples, &failed);
        failed.truncate(terms.n_failed);
        let failed_facts: Vec<Facts> = failed.iter().map(|sample| sample.facts.clone()).collect();
        let runs = Runs { passed: &passed_facts, failed: &failed_facts };
        // The failed run with the fewest events is the one with the least beside the point.
        let explained = terms.explained.as_ref();
        let is_other = |sample: &Sample| !explained.is_some_and(|spec| spec.is_same(&sample.spec));
        let Some((at, first)) = failed
            .iter()
            .enumerate()
            .min_by_key(|(_, sample)| (is_other(sample), sample.facts.n_events))
        else {
            continue;
        };
        let mut suspects = suspects(&failed_facts[at], &runs);
        let mut first = (*first).clone();
        let mut passed: Vec<Sample> = passed.iter().map(|&sample| sample.clone()).collect();
        if suspects.is_empty()
            && first.spec.is_repeatable()
            && let Some(executor) = executor
        {
            // What is left to compare is loops, which takes the same runs once more.
            first = with_loops(terms, executor, &[first])?.remove(0);
            passed = with_loops(terms, executor, &passed)?;
            let facts: Vec<Facts> = passed.iter().map(|sample| sample.facts.clone()).collect();
            let runs = Runs { passed: &facts, failed: std::slice::from_ref(&first.facts) };
            suspects = self::suspects(&first.facts, &runs);
        }
        let ranked = rank(&runs, terms.formula, &suspects);
        suspects.extend(often(&first.facts, &runs, terms.formula));
        let case = Case { chance, terms, executor, failed: &failed, passed: &passed };
        groups.push(case.group(failure, &first, ranked, suspects)?);
    }
    Ok(groups)
}

/// The share of runs that fail like these by chance, which is never quite none.
fn chance(samples: &[Sample], failed: &[&Sample]) -> f64 {
    let is_chance = |sample: &&Sample| sample.spec.is_chance();
    let n_failed = failed.iter().filter(|sample| is_chance(sample)).count();
    let n = samples.iter().filter(is_chance).count();
    (n_failed as f64 + 0.5) / (n as f64 + 1.0)
}

/// The same runs with their loops; as they are, where that does not work.
fn with_loops(
    terms: &Terms,
    executor: &Executor<'_>,
    samples: &[Sample],
) -> Result<Vec<Sample>, LabError> {
    let again = executor.all(samples, collect::RUNS_MAX, |sample, runner| {
        let spec = Spec { with_loops: true, ..sample.spec.clone() };
        let plan = spec.plan(&terms.plan);
        let sampled = collect(runner, &spec, &plan, terms.settings)?;
        Ok(sampled.and_then(|again| again.sample).filter(|again| again.key() == sample.key()))
    })?;
    let pairs = again.into_iter().zip(samples);
    Ok(pairs.map(|(again, sample)| again.flatten().unwrap_or_else(|| sample.clone())).collect())
}

/// Runs that fail in the same way, and those that pass.
struct Case<'a> {
    /// The share of all runs that fail like this by chance.
    chance: f64,
    terms: &'a Terms,
    executor: Option<&'a Executor<'a>>,
    failed: &'a [&'a Sample],
    passed: &'a [Sample],
}

impl Case<'_> {
    fn group(
        &self,
        failed: &Failed,
        first: &Sample,
        ranked: Vec<Ranked>,
        suspects: Vec<Suspect>,
    ) -> Result<Group, LabError> {
        let shown = self.again(first)?;
        let is_own = &*self.terms.is_own;
        let around = Surroundings::new(&first.run, is_own, self.passed, shown.as_ref());
        let most = self.terms.count.max(LOOKED_AT * CHECKED);
        let mut ranked = self.by_suspicion(first, &around, ranked);
        ranked.truncate(most);
        let mut suspects: Vec<_> =
            suspects.into_iter().map(|one| self.candidate(&around, one)).collect();
        suspects.sort_by_key(|one| one.objections);
        suspects.truncate(most);
        if let Some(executor) = self.executor
            && self.terms.checked > 0
        {
            let mut passed = Vec::new();
            for sample in self.passed.iter().take(PASSED_MAX) {
                passed.extend(self.again(sample)?);
            }
            let checked = self.terms.checked;
            let checker = Checker::new(shown.as_ref(), passed, (&failed.key, self.chance));
            check(executor, checked, &mut ranked, |one, runner| {
                checker.pattern(&one.pattern, runner)
            })?;
            check(executor, checked, &mut suspects, |one, runner| checker.suspect(one, runner))?;
        }
        for one in ranked.iter_mut().filter(|one| one.evidence.forced.n_failed > 0) {
            let time = |facts: &Facts| Some(fact(facts, &one.what.pattern)?.points.last()?.seq);
            one.timeline = Some(self.timeline(time));
        }
        for one in suspects.iter_mut().filter(|one| one.evidence.forced.n_failed > 0) {
            let time = |facts: &Facts| {
                let pairs = one.what.pairs.iter();
                let times = pairs.map(|pair| Some(facts.pair(*pair)?.first()[1].seq));
                times.collect::<Option<Vec<_>>>()?.into_iter().max()
            };
            one.timeline = Some(self.timeline(time));
        }
        let ranks = sort(&mut ranked);
        // Confirmed ones, or else the first if others are its effects.
        let n_confirmed = ranked.iter().take_while(|one| one.is_confirmed()).count();
        let is_likely = ranked.first().is_some_and(|one| one.has_effects);
        let causes = ranked.iter().take(n_confirmed.max(usize::from(is_likely)));
        let pairs: BTreeSet<&[SiteAccess]> =
            causes.flat_map(|one| one.what.pattern.accesses.windows(2)).collect();
        for one in &mut suspects {
            let is_part = |pair: &Pair| pairs.contains(&[pair.head, pair.tail][..]);
            one.is_part = one.what.pairs.iter().all(is_part);
        }
        mark_padded(&mut suspects, self.chance);
        sort(&mut suspects);
        let mut examples = Examples::new(self, first, shown);
        let patterns = examples.patterns(&ranked, &ranks)?;
        let pairs = examples.pairs(&suspects)?;
        Ok(Group {
            failed: failed.clone(),
            run: first.run.clone(),
            n_failed: self.failed.len(),
            n_passed: self.passed.len(),
            patterns,
            pairs,
            examples: examples.finish(),
        })
    }

    /// Executes a sample's run again, with a trace; none if it does not end as it did.
    fn again(&self, sample: &Sample) -> Result<Option<Recorded>, LabError> {
        let Some(executor) = self.executor else { return Ok(None) };
        if !sample.spec.is_repeatable() {
            return Ok(None);
        }
        // The same events, or their numbers would not fit.
        let detail = if sample.facts.is_exact { Detail::Every } else { Detail::Counted };
        let plan = sample.spec.plan(&self.terms.plan);
        let Some(recorded) = Recorded::new(&executor.alone(1), &plan, detail)? else {
            return Ok(None);
        };
        let build_id = recorded.run().modules.first().map(|module| &module.build_id[..]);
        if build_id.unwrap_or_default() != sample.build_id() {
            return Err(LabError::OtherBuild);
        }
        let trial = &recorded.trial;
        let key = trial.failure().map(|failure| {
            Signature::of(&trial.execution, failure, &*executor.subject.is_own).key()
        });
        Ok((key.as_deref() == sample.key()).then_some(recorded))
    }

    /// When something came about, in each run.
    fn timeline(&self, time: impl Fn(&Facts) -> Option<u64>) -> Timeline {
        let failed = self.failed.iter().map(|sample| time(&sample.facts)).collect();
        let passed = self.passed.iter().map(|sample| time(&sample.facts)).collect();
        Timeline { failed, passed }
    }

    /// Patterns, the most suspect first; among equals, what could most be otherwise, triples before
    /// pairs, and what came first.
    fn by_suspicion(
        &self,
        first: &Sample,
        around: &Surroundings<'_>,
        ranked: Vec<Ranked>,
    ) -> Vec<Candidate<Ranked>> {
        let mut all: Vec<_> = ranked
            .into_iter()
            .map(|what| {
                let accesses = &what.pattern.accesses;
                let n_fixed = around.n_fixed(accesses);
                let tie = (n_fixed, Reverse(accesses.len()), self.occurrence(first, &what));
                let (objections, score) = (around.objections(accesses), what.score);
                (tie, Candidate { n_fixed, ..Candidate::new(what, objections, score) })
            })
            .collect();
        all.sort_by(|(tie, one), (other, two)| {
            let by_place = one.objections.cmp(&two.objections);
            by_place.then(two.score.total_cmp(&one.score)).then(tie.cmp(other))
        });
        all.into_iter().map(|(_, candidate)| candidate).collect()
    }

    fn candidate(&self, around: &Surroundings<'_>, what: Suspect) -> Candidate<Suspect> {
        let accesses: Vec<SiteAccess> =
            what.pairs.iter().flat_map(|pair| [pair.head, pair.tail]).collect();
        let score = self.terms.formula.score(what.counts);
        let is_accident = what.is_accident;
        Candidate { is_accident, ..Candidate::new(what, around.objections(&accesses), score) }
    }

    /// When a pattern is complete for the first time: causes come before effects.
    fn occurrence(&self, first: &Sample, ranked: &Ranked) -> Option<u64> {
        let found = match (fact(&first.facts, &ranked.pattern), ranked.example) {
            (Some(found), _) => found,
            (None, From::Failed(number)) => fact(&self.failed[number].facts, &ranked.pattern)?,
            // It never is.
            (None, From::Passed(_)) => return None,
        };
        found.points.last().map(|point| point.seq)
    }
}

/// Finds coupled pairs that say no more than one of the pairs alone, or with which runs pass after
/// all: those that they were forced on. (In which iteration of a loop cannot be forced.)
fn mark_padded(suspects: &mut [Candidate<Suspect>], chance: f64) {
    let alone = |one: &&Candidate<Suspect>| one.what.pairs.len() == 1;
    let alone: BTreeMap<Pair, Evidence> =
        suspects.iter().filter(alone).map(|one| (one.what.pairs[0], one.evidence)).collect();
    for coupled in suspects {
        let [one, two] = coupled.what.pairs[..] else { continue };
        let both = coupled.evidence;
        let is_enough = |pair: Pair, rest: Pair| {
            let [Some(pair), Some(rest)] = [pair, rest].map(|pair| alone.get(&pair)) else {
                return false;
            };
            let is_as_telling = match both.forced.n() {
                0 => pair.forced.n() == 0 && pair.gone == Some(true),
                _ => pair.forced.fails() == Some(true) && pair.forced.rate() >= both.forced.rate(),
            };
            is_as_telling && rest.forced.n() > 0 && rest.forced.rate() <= chance
        };
        let passes =
            both.forced.n_passed > 0 && coupled.what.procedure != Procedure::Three(Level::Loop);
        coupled.is_padded = passes || is_enough(one, two) || is_enough(two, one);
    }
}

/// Checks the first candidates by executing them, as many as are wanted; those that cannot be
/// forced on any run do not count.
fn check<T: Sync>(
    executor: &Executor<'_>,
    wanted: usize,
    candidates: &mut [Candidate<T>],
    evidence: impl Fn(&T, &Runner<'_>) -> Result<Evidence, LabError> + Sync,
) -> Result<(), LabError> {
    let mut n_forced = 0;
    for batch in candidates.chunks_mut(BATCH).take(LOOKED_AT * wanted / BATCH) {
        let found =
            executor.all(batch, check::RUNS_MAX, |one, runner| evidence(&one.what, runner))?;
        for (one, evidence) in batch.iter_mut().zip(found) {
            one.evidence = evidence.unwrap_or_default();
            n_forced += usize::from(one.evidence.forced.n() > 0);
        }
        if n_forced >= wanted {
            break;
        }
    }
    Ok(())
}

/// What a run says of a pattern.
fn fact<'a>(facts: &'a Facts, pattern: &Pattern) -> Option<&'a PatternFact> {
    let at = facts.patterns.binary_search_by(|fact| fact.pattern.cmp(pattern)).ok()?;
    Some(&facts.patterns[at])
}
