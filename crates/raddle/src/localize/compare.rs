//! Failing runs against passing ones: what is to blame, in its order.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use raddle_analysis::localize::facts::{Act, Facts, Pair, Pattern, PatternFact, Point};
use raddle_analysis::localize::procedures::{Suspect, often, suspects};
use raddle_analysis::localize::rank::{Example, Formula, Ranked, rank};
use raddle_analysis::localize::runs::Runs;
use raddle_report::symbols::name::Namer;
use raddle_trace::id::{Pc, Site};
use raddle_trace::run::Run;
use raddle_trial::Plan;

use super::again::{self, Again};
use super::confirm::{Court, Evidence};
use super::gather::{gather, in_detail};
use super::order::{Candidate, Place, Rank, sort};
use super::sample::{Fail, How, Policy, Sample};
use super::tell::{Group, PairTold, PatternTold};
use super::{plan, settings};
use crate::args::{FormulaName, LocalizeArgs};
use crate::hunt::finding::{self, Access, Unnamed};
use crate::hunt::team::Team;

/// Suspects that are to be forced on passing runs, the most that are looked at for it, and how many
/// at a time.
const CHECKED: usize = 12;
const LOOKED_AT: usize = 36;
const BATCH: usize = 4;
/// What is in so many times the share of failing runs as of passing ones tells them apart.
const TELLING: f64 = 2.0;
/// Passing runs that suspects are forced on.
const FORCED: usize = 2;
/// Patterns that are named for programs: beyond, nobody looks.
const NAMED: usize = 100;

/// Compares failing with passing runs, each kind of failure by itself, the most frequent first.
pub(crate) fn compare(
    args: &LocalizeArgs,
    samples: &[Sample],
    team: Option<&Team>,
) -> Result<Vec<Group>> {
    let (failed, passed): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.failure.is_some());
    let n_passed = args.passed.map_or(usize::MAX, |n| n as usize).min(passed.len());
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
        failed.truncate(args.failed.map_or(usize::MAX, |n| n as usize));
        let failed_facts: Vec<Facts> = failed.iter().map(|sample| sample.facts.clone()).collect();
        let runs = Runs { passed: &passed_facts, failed: &failed_facts };
        // The failed run with the fewest events is the one with the least beside the point.
        let Some((at, first)) =
            failed.iter().enumerate().min_by_key(|(_, sample)| sample.facts.n_events)
        else {
            continue;
        };
        let mut suspects = suspects(&failed_facts[at], &runs);
        let mut first = (*first).clone();
        let mut passed: Vec<Sample> = passed.iter().map(|&sample| sample.clone()).collect();
        if suspects.is_empty()
            && let Some(team) = team
        {
            // What is left to compare is loops, which takes the same runs once more.
            first = with_laps(args, team, &[first])?.remove(0);
            passed = with_laps(args, team, &passed)?;
            let facts: Vec<Facts> = passed.iter().map(|sample| sample.facts.clone()).collect();
            let runs = Runs { passed: &facts, failed: std::slice::from_ref(&first.facts) };
            suspects = self::suspects(&first.facts, &runs);
        }
        let ranked = rank(&runs, formula(args.score), &suspects);
        suspects.extend(often(&first.facts, &runs, formula(args.score)));
        let case = Case { chance, args, team, failed: &failed, passed: &passed };
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
fn with_laps(args: &LocalizeArgs, team: &Team, samples: &[Sample]) -> Result<Vec<Sample>> {
    let told = team.all(samples, |sample, cpu| {
        let how = How { with_laps: true, ..sample.how.clone() };
        let plan = Plan { cpu, ..how.plan(&plan(args)) };
        let (_, told) = gather(team, how, &plan, settings(args))?;
        Ok(told.filter(|told| told.failure == sample.failure))
    })?;
    Ok(told
        .into_iter()
        .zip(samples)
        .map(|(told, sample)| told.flatten().unwrap_or_else(|| sample.clone()))
        .collect())
}

fn formula(name: FormulaName) -> Formula {
    match name {
        FormulaName::Jaccard => Formula::Jaccard,
        FormulaName::Tarantula => Formula::Tarantula,
        FormulaName::Ochiai => Formula::Ochiai,
        FormulaName::Dstar => Formula::DStar,
    }
}

/// Runs that fail in the same way, and those that pass.
struct Case<'a> {
    /// The share of all runs that fail like this.
    chance: f64,
    args: &'a LocalizeArgs,
    team: Option<&'a Team>,
    failed: &'a [&'a Sample],
    passed: &'a [Sample],
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
            Some(team) => Again::new(team, sample, &plan(self.args)),
            None => Ok(None),
        };
        let shown = again(first)?;
        let place = Place::new(&first.run, self.passed, shown.as_ref());
        let most = self.args.count.map_or(NAMED, |n| n as usize).max(LOOKED_AT);
        let mut ranked = self.by_suspicion(first, &place, ranked);
        ranked.truncate(most);
        let mut suspects: Vec<_> =
            suspects.into_iter().map(|one| self.candidate(&place, one)).collect();
        suspects.sort_by_key(|one| one.spot);
        suspects.truncate(most);
        if let Some(team) = self.team
            && !self.args.no_confirm
        {
            let passed: Result<Vec<_>> = self.passed.iter().take(FORCED).map(&again).collect();
            let passed = passed?.into_iter().flatten().collect();
            let failure = (&failure.key[..], self.chance);
            let court = Court::new(team, shown.as_ref(), passed, failure);
            check(team, &mut ranked, |one, cpu| court.pattern(&one.pattern, cpu))?;
            check(team, &mut suspects, |one, cpu| court.suspect(one, cpu))?;
        }
        for one in &mut ranked {
            let Ranked { pattern, .. } = &one.what;
            let time = |facts: &Facts| Some(fact(facts, pattern)?.points.last()?.seq);
            self.tell_times(&mut one.times, &mut one.is_telling, one.evidence, time);
        }
        for one in &mut suspects {
            let time = |facts: &Facts| {
                let pairs = one.what.pairs.iter();
                let times = pairs.map(|pair| Some(facts.pair(*pair)?.first()[1].seq));
                times.collect::<Option<Vec<_>>>()?.into_iter().max()
            };
            self.tell_times(&mut one.times, &mut one.is_telling, one.evidence, time);
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

    /// Notes when a suspect was complete in each run, if runs fail with it.
    fn tell_times(
        &self,
        times: &mut Vec<Option<u64>>,
        is_telling: &mut bool,
        evidence: Evidence,
        time: impl Fn(&Facts) -> Option<u64>,
    ) {
        if evidence.forced.n_failed == 0 {
            return;
        }
        *times = self.facts().map(time).collect();
        let share = |times: &[Option<u64>]| {
            times.iter().flatten().count() as f64 / times.len().max(1) as f64
        };
        let (failed, passed) = times.split_at(self.failed.len());
        *is_telling = share(failed) >= TELLING * share(passed);
    }

    /// What all runs tell.
    fn facts(&self) -> impl Iterator<Item = &Facts> {
        let failed = self.failed.iter().map(|sample| &sample.facts);
        failed.chain(self.passed.iter().map(|sample| &sample.facts))
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
                let tie = (place.n_fixed(acts), Reverse(acts.len()), self.occurrence(first, &what));
                let (spot, score) = (place.of(acts), what.score);
                (tie, Candidate::new(what, spot, score))
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
        let score = formula(self.args.score).score(what.counts);
        Candidate::new(what, place.of(&acts), score)
    }

    fn patterns(
        &self,
        first: &Sample,
        ranked: &[Candidate<Ranked>],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<Vec<PatternTold>> {
        // By the run that they are shown from.
        let mut by_run: BTreeMap<Example, Vec<usize>> = BTreeMap::new();
        let own = self.failed.iter().position(|sample| sample.how.seed == first.how.seed);
        for (at, Candidate { what: one, .. }) in ranked.iter().enumerate() {
            let has = |run: &usize| fact(&self.failed[*run].facts, &one.pattern).is_some();
            let run = match one.example {
                Example::Failed(_) => own.filter(has).map_or(one.example, Example::Failed),
                Example::Passed(_) => one.example,
            };
            by_run.entry(run).or_default().push(at);
        }
        let mut told: Vec<Option<PatternTold>> = ranked.iter().map(|_| None).collect();
        for (run, members) in by_run {
            let sample = &*match run {
                Example::Failed(number) => Cow::Borrowed(self.failed[number]),
                Example::Passed(number) => self.detailed(&self.passed[number])?,
            };
            let points: Vec<Vec<Point>> =
                members.iter().map(|&at| points(&sample.facts, &ranked[at].what, run)).collect();
            let groups: Vec<Vec<Unnamed>> = members
                .iter()
                .zip(&points)
                .map(|(&at, points)| unnamed(&sample.run, &ranked[at].what.pattern.acts, points))
                .collect();
            let trace = again(sample)?;
            let named = named(&sample.run, trace.as_ref(), &groups);
            let namer = Namer::new(&sample.run);
            for (at, accesses) in members.into_iter().zip(named) {
                let stack = |sites: &Vec<Site>| -> Vec<String> {
                    sites.iter().map(|&site| site_name(&namer, &sample.run, site)).collect()
                };
                let Candidate { what: one, evidence, .. } = &ranked[at];
                let stacks = fact(&sample.facts, &one.pattern).map(|fact| &fact.stacks[..]);
                told[at] = Some(PatternTold {
                    rank: Rank { rank: at + 1, n_ties: 1 },
                    score: one.score,
                    name: one.pattern.name(),
                    accesses,
                    stacks: stacks.unwrap_or_default().iter().map(stack).collect(),
                    counts: one.counts,
                    evidence: *evidence,
                });
            }
        }
        Ok(told.into_iter().flatten().collect())
    }

    /// A passing run in every detail; as it is, where that does not work.
    fn detailed<'s>(&self, sample: &'s Sample) -> Result<Cow<'s, Sample>> {
        if let Some(team) = self.team
            && !sample.facts.is_exact
        {
            let plan = sample.how.plan(&plan(self.args));
            let (_, told) = in_detail(team, sample.how.clone(), &plan, settings(self.args))?;
            if let Some(told) = told.filter(|told| told.failure == sample.failure) {
                return Ok(Cow::Owned(told));
            }
        }
        Ok(Cow::Borrowed(sample))
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

    fn pairs(
        &self,
        first: &Sample,
        shown: Option<&Again>,
        suspects: &[Candidate<Suspect>],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<Vec<PairTold>> {
        let mut told: Vec<Option<PairTold>> = suspects.iter().map(|_| None).collect();
        let mut by_run: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (at, suspect) in suspects.iter().enumerate() {
            by_run.entry(suspect.what.passing).or_default().push(at);
        }
        for (passing, members) in by_run {
            let sample = &*match passing {
                None => Cow::Borrowed(first),
                Some(number) => self.detailed(&self.passed[number])?,
            };
            let trace = if passing.is_some() { again(sample)? } else { None };
            let trace = if passing.is_none() { shown } else { trace.as_ref() };
            let groups: Vec<Vec<Unnamed>> = members
                .iter()
                .map(|&at| {
                    let suspect = &suspects[at].what;
                    let pairs = suspect.pairs.iter().zip(&suspect.points);
                    pairs
                        .flat_map(|(pair, points)| {
                            let mut points = points.clone();
                            // The points of a missing pair are from the other way round.
                            if passing.is_some() {
                                let known = sample.facts.pair(pair.reversed());
                                points = known.map_or(points, |fact| fact.first().clone());
                                points.reverse();
                            }
                            unnamed(&sample.run, &[pair.head, pair.tail], &points)
                        })
                        .collect()
                })
                .collect();
            for (at, accesses) in members.into_iter().zip(named(&sample.run, trace, &groups)) {
                let mut accesses = accesses.into_iter();
                let mut pairs = Vec::new();
                while let (Some(head), Some(tail)) = (accesses.next(), accesses.next()) {
                    pairs.push([head, tail]);
                }
                let Candidate { what, score, evidence, .. } = &suspects[at];
                told[at] = Some(PairTold {
                    rank: at + 1,
                    procedure: what.procedure,
                    pairs,
                    counts: what.counts,
                    score: *score,
                    evidence: *evidence,
                });
            }
        }
        Ok(told.into_iter().flatten().collect())
    }
}

/// Finds couples that say no more than one of their pairs alone.
fn mark_padded(suspects: &mut [Candidate<Suspect>], chance: f64) {
    let alone = |one: &&Candidate<Suspect>| one.what.pairs.len() == 1;
    let alone: BTreeMap<Pair, Evidence> =
        suspects.iter().filter(alone).map(|one| (one.what.pairs[0], one.evidence)).collect();
    for couple in suspects {
        let [one, two] = couple.what.pairs[..] else { continue };
        let [Some(one), Some(two)] = [one, two].map(|pair| alone.get(&pair).copied()) else {
            continue;
        };
        let both = couple.evidence;
        let is_enough = |pair: Evidence, rest: Evidence| {
            let is_as_telling = match both.forced.n() {
                0 => pair.forced.n() == 0 && pair.gone == Some(true),
                _ => pair.forced.fails() == Some(true) && pair.forced.rate() >= both.forced.rate(),
            };
            is_as_telling && rest.forced.n() > 0 && rest.forced.rate() <= chance
        };
        couple.is_padded = is_enough(one, two) || is_enough(two, one);
    }
}

/// Lets executions speak of the first ones; those that cannot be forced on any run do not count.
fn check<T: Sync>(
    team: &Team,
    candidates: &mut [Candidate<T>],
    court: impl Fn(&T, Option<u32>) -> Result<Evidence> + Sync,
) -> Result<()> {
    let mut n_forced = 0;
    for batch in candidates.chunks_mut(BATCH).take(LOOKED_AT / BATCH) {
        let found = team.all(batch, |one, cpu| court(&one.what, cpu))?;
        for (one, evidence) in batch.iter_mut().zip(found) {
            one.evidence = evidence.unwrap_or_default();
            n_forced += usize::from(one.evidence.forced.n() > 0);
        }
        if n_forced >= CHECKED {
            break;
        }
    }
    Ok(())
}

/// What a run tells of a pattern.
fn fact<'a>(facts: &'a Facts, pattern: &Pattern) -> Option<&'a PatternFact> {
    let at = facts.patterns.binary_search_by(|fact| fact.pattern.cmp(pattern)).ok()?;
    Some(&facts.patterns[at])
}

/// Where in a run a pattern is; the other way round in a passing one.
fn points(facts: &Facts, ranked: &Ranked, example: Example) -> Vec<Point> {
    let acts = &ranked.pattern.acts;
    let points = match example {
        Example::Failed(_) => fact(facts, &ranked.pattern).map(|fact| fact.points.clone()),
        Example::Passed(_) => {
            let pair = Pair { head: acts[1], tail: acts[0] };
            facts.pair(pair).map(|fact| {
                let [head, tail] = fact.first().clone();
                vec![tail, head]
            })
        }
    };
    points.unwrap_or_default()
}

fn unnamed(run: &Run, acts: &[Act], points: &[Point]) -> Vec<Unnamed> {
    acts.iter()
        .zip(points)
        .map(|(act, point)| {
            finding::of_point(*act, again::pc(run, act.site).unwrap_or(Pc(0)), point)
        })
        .collect()
}

fn named(run: &Run, again: Option<&Again>, groups: &[Vec<Unnamed>]) -> Vec<Vec<Access>> {
    match again {
        Some(again) => finding::all_named(&again.trace, groups),
        None => finding::named_without(run, groups),
    }
}

fn site_name(namer: &Namer, run: &Run, site: Site) -> String {
    again::pc(run, site).map_or_else(|| site.to_string(), |pc| namer.own_site(pc, None))
}
