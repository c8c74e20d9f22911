//! Failing runs against passing ones: what is to blame, in its order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::facts::{Act, Facts, Pair, Pattern, PatternFact};
use raddle_analysis::localize::procedures::{Level, Procedure, Suspect, often, suspects};
use raddle_analysis::localize::rank::{Example, Formula, Ranked, rank};
use raddle_analysis::localize::runs::Runs;
use raddle_trial::Plan;

use super::again::Again;
use super::confirm::{Court, Evidence};
use super::effects::Course;
use super::gather::gather;
use super::order::{Candidate, Place, sort};
use super::sample::{Fail, How, Policy, Sample};
use super::tell::Group;
use crate::hunt::team::Team;

/// Suspects that are to be forced on passing runs.
const CHECKED: usize = 12;
/// How many times as many are looked at for it at most, and how many at a time.
const LOOKED_AT: usize = 3;
const BATCH: usize = 4;
/// Passing runs that suspects are forced on.
const FORCED: usize = 2;
/// Patterns that are named for programs: beyond, nobody looks.
const NAMED: usize = 100;

/// On what terms runs are compared.
pub(crate) struct Terms {
    /// How runs are executed again, and what is collected.
    pub(crate) plan: Plan,
    pub(crate) settings: Settings,
    /// How many of each are compared at most.
    pub(crate) n_passed: usize,
    pub(crate) n_failed: usize,
    pub(crate) formula: Formula,
    /// Suspects that are told.
    pub(crate) count: usize,
    /// Suspects that are forced on passing runs, if that is possible with so many.
    pub(crate) checked: usize,
    /// The failed run that is to be explained; none for the shortest.
    pub(crate) explained: Option<How>,
}

impl Terms {
    /// Those of somebody who asks for nothing in particular.
    pub(crate) fn new(plan: Plan, settings: Settings) -> Self {
        let most = usize::MAX;
        Self {
            plan,
            settings,
            n_passed: most,
            n_failed: most,
            formula: Formula::Jaccard,
            count: NAMED,
            checked: CHECKED,
            explained: None,
        }
    }
}

/// Compares failing with passing runs, each kind of failure by itself, the most frequent first.
pub(crate) fn compare(
    terms: &Terms,
    samples: &[Sample],
    team: Option<&Team>,
) -> Result<Vec<Group>> {
    let (failed, passed): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.failure.is_some());
    let n_passed = terms.n_passed.min(passed.len());
    let passed = &passed[..n_passed];
    let mut by_failure: BTreeMap<&str, (&Fail, Vec<&Sample>)> = BTreeMap::new();
    for sample in failed {
        if let Some(failure) = &sample.failure {
            by_failure.entry(&failure.key).or_insert((failure, Vec::new())).1.push(sample);
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
        let is_other = |sample: &Sample| !explained.is_some_and(|how| how.is_same(&sample.how));
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
            && first.how.is_repeatable()
            && let Some(team) = team
        {
            // What is left to compare is loops, which takes the same runs once more.
            first = with_laps(terms, team, &[first])?.remove(0);
            passed = with_laps(terms, team, &passed)?;
            let facts: Vec<Facts> = passed.iter().map(|sample| sample.facts.clone()).collect();
            let runs = Runs { passed: &facts, failed: std::slice::from_ref(&first.facts) };
            suspects = self::suspects(&first.facts, &runs);
        }
        let ranked = rank(&runs, terms.formula, &suspects);
        suspects.extend(often(&first.facts, &runs, terms.formula));
        let case = Case { chance, terms, team, failed: &failed, passed: &passed };
        groups.push(case.group(failure, &first, ranked, suspects)?);
    }
    Ok(groups)
}

/// The share of runs that fail like these by chance, which is never quite none.
fn chance(samples: &[Sample], failed: &[&Sample]) -> f64 {
    let is_chance = |sample: &&Sample| !matches!(sample.how.policy, Policy::Woven { .. });
    let n_failed = failed.iter().filter(|sample| is_chance(sample)).count();
    let n = samples.iter().filter(is_chance).count();
    (n_failed as f64 + 0.5) / (n as f64 + 1.0)
}

/// The same runs with loops told; as they are, where that does not work.
fn with_laps(terms: &Terms, team: &Team, samples: &[Sample]) -> Result<Vec<Sample>> {
    let told = team.all(samples, |sample, cpu| {
        let how = How { with_laps: true, ..sample.how.clone() };
        let plan = Plan { cpu, ..how.plan(&terms.plan) };
        let (_, told) = gather(team, how, &plan, terms.settings)?;
        Ok(told.filter(|told| told.failure == sample.failure))
    })?;
    Ok(told
        .into_iter()
        .zip(samples)
        .map(|(told, sample)| told.flatten().unwrap_or_else(|| sample.clone()))
        .collect())
}

/// Runs that fail in the same way, and those that pass.
pub(crate) struct Case<'a> {
    /// The share of all runs that fail like this by chance.
    chance: f64,
    pub(crate) terms: &'a Terms,
    pub(crate) team: Option<&'a Team>,
    pub(crate) failed: &'a [&'a Sample],
    pub(crate) passed: &'a [Sample],
}

impl Case<'_> {
    fn group(
        &self,
        failure: &Fail,
        first: &Sample,
        ranked: Vec<Ranked>,
        suspects: Vec<Suspect>,
    ) -> Result<Group> {
        let again = |sample: &Sample| match self.team {
            Some(team) => Again::new(team, sample, &self.terms.plan),
            None => Ok(None),
        };
        let shown = again(first)?;
        let place = Place::new(&first.run, self.passed, shown.as_ref());
        let most = self.terms.count.max(LOOKED_AT * CHECKED);
        let mut ranked = self.by_suspicion(first, &place, ranked);
        ranked.truncate(most);
        let mut suspects: Vec<_> =
            suspects.into_iter().map(|one| self.candidate(&place, one)).collect();
        suspects.sort_by_key(|one| one.spot);
        suspects.truncate(most);
        if let Some(team) = self.team
            && self.terms.checked > 0
        {
            let passed: Result<Vec<_>> = self.passed.iter().take(FORCED).map(&again).collect();
            let passed = passed?.into_iter().flatten().collect();
            let failure = (&failure.key[..], self.chance);
            let checked = self.terms.checked;
            let court = Court::new(team, shown.as_ref(), passed, failure);
            check(team, checked, &mut ranked, |one, cpu| court.pattern(&one.pattern, cpu))?;
            check(team, checked, &mut suspects, |one, cpu| court.suspect(one, cpu))?;
        }
        for one in ranked.iter_mut().filter(|one| one.evidence.forced.n_failed > 0) {
            let time = |facts: &Facts| Some(fact(facts, &one.what.pattern)?.points.last()?.seq);
            one.course = Some(self.course(time));
        }
        for one in suspects.iter_mut().filter(|one| one.evidence.forced.n_failed > 0) {
            let time = |facts: &Facts| {
                let pairs = one.what.pairs.iter();
                let times = pairs.map(|pair| Some(facts.pair(*pair)?.first()[1].seq));
                times.collect::<Option<Vec<_>>>()?.into_iter().max()
            };
            one.course = Some(self.course(time));
        }
        let ranks = sort(&mut ranked);
        // Confirmed ones, or else the first if others are its effects.
        let n_confirmed = ranked.iter().take_while(|one| one.is_confirmed()).count();
        let is_likely = ranked.first().is_some_and(|one| one.has_effects);
        let causes = ranked.iter().take(n_confirmed.max(usize::from(is_likely)));
        let pairs: BTreeSet<&[Act]> =
            causes.flat_map(|one| one.what.pattern.acts.windows(2)).collect();
        for one in &mut suspects {
            let is_part = |pair: &Pair| pairs.contains(&[pair.head, pair.tail][..]);
            one.is_part = one.what.pairs.iter().all(is_part);
        }
        mark_padded(&mut suspects, self.chance);
        sort(&mut suspects);
        let mut patterns = self.patterns(first, &ranked, &again)?;
        for (told, rank) in patterns.iter_mut().zip(ranks) {
            told.rank = rank;
        }
        Ok(Group {
            failure: failure.clone(),
            n_failed: self.failed.len(),
            n_passed: self.passed.len(),
            patterns,
            pairs: self.pairs(first, shown.as_ref(), &suspects, &again)?,
        })
    }

    /// When something came about, in each run.
    fn course(&self, time: impl Fn(&Facts) -> Option<u64>) -> Course {
        let failed = self.failed.iter().map(|sample| time(&sample.facts)).collect();
        let passed = self.passed.iter().map(|sample| time(&sample.facts)).collect();
        Course { failed, passed }
    }

    /// Patterns, the most suspect first; among equals, what could most be otherwise, triples before
    /// pairs, and what came first.
    fn by_suspicion(
        &self,
        first: &Sample,
        place: &Place<'_>,
        ranked: Vec<Ranked>,
    ) -> Vec<Candidate<Ranked>> {
        let mut all: Vec<_> = ranked
            .into_iter()
            .map(|what| {
                let acts = &what.pattern.acts;
                let n_fixed = place.n_fixed(acts);
                let tie = (n_fixed, Reverse(acts.len()), self.occurrence(first, &what));
                let (spot, score) = (place.of(acts), what.score);
                (tie, Candidate { n_fixed, ..Candidate::new(what, spot, score) })
            })
            .collect();
        all.sort_by(|(tie, one), (other, two)| {
            let by_spot = one.spot.cmp(&two.spot);
            by_spot.then(two.score.total_cmp(&one.score)).then(tie.cmp(other))
        });
        all.into_iter().map(|(_, candidate)| candidate).collect()
    }

    fn candidate(&self, place: &Place<'_>, what: Suspect) -> Candidate<Suspect> {
        let acts: Vec<Act> = what.pairs.iter().flat_map(|pair| [pair.head, pair.tail]).collect();
        let score = self.terms.formula.score(what.counts);
        let is_accident = what.is_accident;
        Candidate { is_accident, ..Candidate::new(what, place.of(&acts), score) }
    }

    /// When a pattern is complete for the first time: causes come before effects.
    fn occurrence(&self, first: &Sample, ranked: &Ranked) -> Option<u64> {
        let found = match (fact(&first.facts, &ranked.pattern), ranked.example) {
            (Some(found), _) => found,
            (None, Example::Failed(number)) => fact(&self.failed[number].facts, &ranked.pattern)?,
            // It never is.
            (None, Example::Passed(_)) => return None,
        };
        found.points.last().map(|point| point.seq)
    }
}

/// Finds couples that say no more than one of their pairs alone, or of which there are passing runs
/// after all: those that they were forced on in vain. (In which turn of a loop cannot be forced.)
fn mark_padded(suspects: &mut [Candidate<Suspect>], chance: f64) {
    let alone = |one: &&Candidate<Suspect>| one.what.pairs.len() == 1;
    let alone: BTreeMap<Pair, Evidence> =
        suspects.iter().filter(alone).map(|one| (one.what.pairs[0], one.evidence)).collect();
    for couple in suspects {
        let [one, two] = couple.what.pairs[..] else { continue };
        let both = couple.evidence;
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
            both.forced.n_passed > 0 && couple.what.procedure != Procedure::Three(Level::Loop);
        couple.is_padded = passes || is_enough(one, two) || is_enough(two, one);
    }
}

/// Lets executions speak of the first ones; those that cannot be forced on any run do not count.
fn check<T: Sync>(
    team: &Team,
    wanted: usize,
    candidates: &mut [Candidate<T>],
    court: impl Fn(&T, Option<u32>) -> Result<Evidence> + Sync,
) -> Result<()> {
    let mut n_forced = 0;
    for batch in candidates.chunks_mut(BATCH).take(LOOKED_AT * wanted / BATCH) {
        let found = team.all(batch, |one, cpu| court(&one.what, cpu))?;
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

/// What a run tells of a pattern.
pub(crate) fn fact<'a>(facts: &'a Facts, pattern: &Pattern) -> Option<&'a PatternFact> {
    let at = facts.patterns.binary_search_by(|fact| fact.pattern.cmp(pattern)).ok()?;
    Some(&facts.patterns[at])
}
