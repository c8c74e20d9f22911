//! Failing runs against passing ones: what is to blame, in its order.

use std::cmp::Ordering;
use std::collections::BTreeMap;

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
use super::gather::gather;
use super::order::{self, Place, standings};
use super::sample::{Fail, How, Sample};
use super::tell::{Group, PairTold, PatternTold};
use super::{plan, settings};
use crate::args::{FormulaName, LocalizeArgs};
use crate::hunt::finding::{self, Access, Unnamed};
use crate::hunt::team::Team;

/// Suspects that are checked.
const CHECKED: usize = 12;
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
    by_failure.sort_by_key(|(_, samples)| std::cmp::Reverse(samples.len()));
    let passed_facts: Vec<Facts> = passed.iter().map(|sample| sample.facts.clone()).collect();
    let mut groups = Vec::new();
    for (failure, mut failed) in by_failure {
        let chance = failed.len() as f64 / samples.len() as f64;
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

/// The same runs with loops told; as they are, where that does not work.
fn with_laps(args: &LocalizeArgs, team: &Team, samples: &[Sample]) -> Result<Vec<Sample>> {
    let told = team.all(samples, |sample, cpu| {
        let how = How { with_laps: true, ..sample.how };
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
        let mut ranked: Vec<_> = ranked
            .into_iter()
            .map(|one| {
                let acts = &one.pattern.acts;
                let key = (place.of(acts), place.n_fixed(acts), self.occurrence(first, &one));
                (key, one)
            })
            .collect();
        ranked.sort_by(|one, two| by_suspicion(one, two));
        let mut suspects: Vec<_> = suspects
            .into_iter()
            .map(|one| {
                let acts = one.pairs.iter().flat_map(|pair| [pair.head, pair.tail]);
                (place.of(&acts.collect::<Vec<_>>()), one)
            })
            .collect();
        suspects.sort_by_key(|(place, _)| *place);
        let most = self.args.count.map_or(NAMED, |n| n as usize).max(CHECKED);
        ranked.truncate(most);
        suspects.truncate(most);
        let evidence = self.evidence(failure, shown.as_ref(), &ranked, &suspects, &again)?;
        let of_patterns = ranked.iter().zip(&evidence.0).map(|((_, one), e)| (*e, one.score));
        let standings = standings(of_patterns);
        let mut ranked: Vec<_> = ranked.into_iter().zip(evidence.0).zip(standings).collect();
        ranked.sort_by(|((one, _), standing), ((two, _), other)| {
            (order::place(one.0.0, *standing), standing)
                .cmp(&(order::place(two.0.0, *other), other))
                .then_with(|| by_suspicion(one, two))
        });
        let score = |one: &Suspect| formula(self.args.score).score(one.counts);
        let of_pairs = suspects.iter().zip(&evidence.1).map(|((_, one), e)| (*e, score(one)));
        let standings = self::standings(of_pairs);
        let mut suspects: Vec<_> = suspects.into_iter().zip(evidence.1).zip(standings).collect();
        suspects.sort_by_key(|(((place, _), _), standing)| {
            (order::place(*place, *standing), *standing)
        });
        let mut patterns = self.patterns(
            first,
            &ranked.iter().map(|((one, _), _)| one.1.clone()).collect::<Vec<_>>(),
            &again,
        )?;
        let mut pairs = self.pairs(
            first,
            shown.as_ref(),
            &suspects.iter().map(|((one, _), _)| one.1.clone()).collect::<Vec<_>>(),
            &again,
        )?;
        for (told, ((one, evidence), standing)) in patterns.iter_mut().zip(&ranked) {
            told.evidence = *evidence;
            told.debug = format!("{:?} {:?}", one.0, standing);
        }
        for (told, ((one, evidence), standing)) in pairs.iter_mut().zip(&suspects) {
            told.evidence = *evidence;
            told.debug = format!("{:?} {:?} {}", one.0, standing, score(&one.1));
        }
        Ok(Group {
            failure: failure.clone(),
            n_failed: self.failed.len(),
            n_passed: self.passed.len(),
            patterns,
            pairs,
        })
    }

    /// What executions say of the first patterns and suspects.
    fn evidence(
        &self,
        failure: &Fail,
        failed: Option<&Again>,
        ranked: &[(PatternKey, Ranked)],
        suspects: &[([bool; 4], Suspect)],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<(Vec<Evidence>, Vec<Evidence>)> {
        let mut patterns = vec![Evidence::default(); ranked.len()];
        let mut pairs = vec![Evidence::default(); suspects.len()];
        if let Some(team) = self.team
            && !self.args.no_confirm
        {
            let passed: Result<Vec<_>> = self.passed.iter().take(FORCED).map(again).collect();
            let passed = passed?.into_iter().flatten().collect();
            let court =
                Court { team, failed, passed, key: failure.key.clone(), chance: self.chance };
            let checked = &ranked[..ranked.len().min(CHECKED)];
            let found = team.all(checked, |(_, one), cpu| court.pattern(&one.pattern, cpu))?;
            for (evidence, found) in patterns.iter_mut().zip(found) {
                *evidence = found.unwrap_or_default();
            }
            let checked = &suspects[..suspects.len().min(CHECKED)];
            let found = team.all(checked, |(_, one), cpu| court.suspect(one, cpu))?;
            for (evidence, found) in pairs.iter_mut().zip(found) {
                *evidence = found.unwrap_or_default();
            }
        }
        Ok((patterns, pairs))
    }

    fn patterns(
        &self,
        first: &Sample,
        ranked: &[Ranked],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<Vec<PatternTold>> {
        // By the run that they are shown from.
        let mut by_run: BTreeMap<Example, Vec<usize>> = BTreeMap::new();
        let own = self.failed.iter().position(|sample| sample.how.seed == first.how.seed);
        for (at, one) in ranked.iter().enumerate() {
            let has = |run: &usize| fact(&self.failed[*run].facts, &one.pattern).is_some();
            let run = match one.example {
                Example::Failed(_) => own.filter(has).map_or(one.example, Example::Failed),
                Example::Passed(_) => one.example,
            };
            by_run.entry(run).or_default().push(at);
        }
        let mut told: Vec<Option<PatternTold>> = ranked.iter().map(|_| None).collect();
        for (run, members) in by_run {
            let sample = match run {
                Example::Failed(number) => self.failed[number],
                Example::Passed(number) => &self.passed[number],
            };
            let points: Vec<Vec<Point>> =
                members.iter().map(|&at| points(&sample.facts, &ranked[at], run)).collect();
            let groups: Vec<Vec<Unnamed>> = members
                .iter()
                .zip(&points)
                .map(|(&at, points)| unnamed(&sample.run, &ranked[at].pattern.acts, points))
                .collect();
            let trace = again(sample)?;
            let named = named(&sample.run, trace.as_ref(), &groups);
            let namer = Namer::new(&sample.run);
            for (at, accesses) in members.into_iter().zip(named) {
                let stack = |sites: &Vec<Site>| -> Vec<String> {
                    sites.iter().map(|&site| site_name(&namer, &sample.run, site)).collect()
                };
                let one = &ranked[at];
                let stacks = fact(&sample.facts, &one.pattern).map(|fact| &fact.stacks[..]);
                told[at] = Some(PatternTold {
                    rank: one.rank,
                    ties: one.ties,
                    score: one.score,
                    name: one.pattern.name(),
                    accesses,
                    stacks: stacks.unwrap_or_default().iter().map(stack).collect(),
                    counts: one.counts,
                    evidence: Evidence::default(),
                    debug: String::new(),
                });
            }
        }
        Ok(told.into_iter().flatten().collect())
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
        suspects: &[Suspect],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<Vec<PairTold>> {
        let mut told: Vec<Option<PairTold>> = suspects.iter().map(|_| None).collect();
        let mut by_run: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (at, suspect) in suspects.iter().enumerate() {
            by_run.entry(suspect.passing).or_default().push(at);
        }
        for (passing, members) in by_run {
            let (sample, trace) = match passing {
                None => (first, None),
                Some(number) => (&self.passed[number], again(&self.passed[number])?),
            };
            let trace = if passing.is_none() { shown } else { trace.as_ref() };
            let groups: Vec<Vec<Unnamed>> = members
                .iter()
                .map(|&at| {
                    let suspect = &suspects[at];
                    let pairs = suspect.pairs.iter().zip(&suspect.points);
                    pairs
                        .flat_map(|(pair, points)| {
                            let mut points = points.clone();
                            // The points of a missing pair are from the other way round.
                            if passing.is_some() {
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
                let procedure = suspects[at].procedure;
                told[at] = Some(PairTold {
                    rank: at + 1,
                    procedure,
                    pairs,
                    evidence: Evidence::default(),
                    debug: String::new(),
                });
            }
        }
        Ok(told.into_iter().flatten().collect())
    }
}

/// Its place, how many of its pairs are in any order of threads as they are, and when it came.
type PatternKey = ([bool; 4], usize, Option<u64>);

/// The most suspect first; among equals, what could most be otherwise, triples before pairs, and
/// what came first.
fn by_suspicion(
    ((place, n_fixed, when), one): &(PatternKey, Ranked),
    (other, two): &(PatternKey, Ranked),
) -> Ordering {
    let n_acts = |ranked: &Ranked| ranked.pattern.acts.len();
    place
        .cmp(&other.0)
        .then(two.score.total_cmp(&one.score))
        .then(n_fixed.cmp(&other.1))
        .then(n_acts(two).cmp(&n_acts(one)))
        .then(when.cmp(&other.2))
}

/// What a run tells of a pattern.
fn fact<'a>(facts: &'a Facts, pattern: &Pattern) -> Option<&'a PatternFact> {
    facts.patterns.iter().find(|fact| fact.pattern == *pattern)
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
