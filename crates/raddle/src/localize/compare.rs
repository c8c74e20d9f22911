//! Failing runs against passing ones: what is to blame, in its order.

use std::collections::BTreeMap;

use anyhow::Result;
use raddle_analysis::localize::facts::{Act, Facts, PatternFact, Point};
use raddle_analysis::localize::procedures::{Suspect, often, suspects};
use raddle_analysis::localize::rank::{Formula, Ranked, rank};
use raddle_analysis::localize::runs::Runs;
use raddle_report::symbols::name::Namer;
use raddle_trace::id::{Pc, Site};
use raddle_trace::run::Run;
use raddle_trial::Plan;

use super::again::{self, Again};
use super::confirm::{Court, Evidence};
use super::gather::gather;
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
        failed.truncate(args.failed.map_or(usize::MAX, |n| n as usize));
        let failed_facts: Vec<Facts> = failed.iter().map(|sample| sample.facts.clone()).collect();
        let runs = Runs { passed: &passed_facts, failed: &failed_facts };
        let ranked = rank(&runs, formula(args.score));
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
        suspects.extend(often(&first.facts, &runs, formula(args.score)));
        let case = Case { args, team, failed: &failed, passed: &passed };
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

/// Where a cause is to be looked for first.
struct Place<'a> {
    own: Own<'a>,
    passed: &'a [Sample],
    failed: Option<&'a Again>,
}

impl Place<'_> {
    /// The less the better: in the program's own code, which passing runs come to as well;
    /// what only failing runs come to is most often an effect. And accesses whose order could be
    /// another one.
    fn of(&self, acts: &[Act]) -> (bool, bool, bool) {
        let is_usual = |act: &Act| self.passed.iter().any(|sample| sample.facts.has(*act));
        let n_pairs = if acts.len() == 4 { 2 } else { acts.len() - 1 };
        (
            !acts.iter().all(|act| self.own.has(act.site)),
            !acts.iter().all(is_usual),
            self.n_fixed(acts) == n_pairs,
        )
    }

    /// How many pairs of accesses that follow each other do so in any order of threads.
    fn n_fixed(&self, acts: &[Act]) -> usize {
        let Some(run) = self.failed else { return 0 };
        let is_fixed = |pair: &&[Act]| run.is_fixed(pair[0], pair[1]);
        match acts.len() {
            4 => acts.chunks(2).filter(is_fixed).count(),
            _ => acts.windows(2).filter(is_fixed).count(),
        }
    }
}

/// When a pattern is complete for the first time: causes come before effects.
fn occurrence(facts: &Facts, ranked: &Ranked) -> Option<u64> {
    let fact = facts.patterns.iter().find(|fact| fact.pattern == ranked.pattern)?;
    fact.points.last().map(|point| point.seq)
}

/// Tells the program's own code from that of libraries, where a cause rarely is.
struct Own<'a> {
    run: &'a Run,
    namer: Namer,
}

impl<'a> Own<'a> {
    fn new(run: &'a Run) -> Self {
        Self { run, namer: Namer::new(run) }
    }

    fn has(&self, site: Site) -> bool {
        let pc = again::pc(self.run, site);
        pc.is_some_and(|pc| self.namer.site(pc).own_frame().is_some())
    }
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
        let place =
            Place { own: Own::new(&first.run), passed: self.passed, failed: shown.as_ref() };
        let mut ranked: Vec<_> = ranked
            .into_iter()
            .map(|ranked| {
                let acts = &ranked.pattern.acts;
                let facts = &self.failed[ranked.example].facts;
                (place.of(acts), place.n_fixed(acts), occurrence(facts, &ranked), ranked)
            })
            .collect();
        ranked.sort_by(|(place, n_fixed, when, ranked), other| {
            let n_acts = |ranked: &Ranked| ranked.pattern.acts.len();
            place
                .cmp(&other.0)
                .then(other.3.score.total_cmp(&ranked.score))
                .then(n_fixed.cmp(&other.1))
                .then(n_acts(&other.3).cmp(&n_acts(ranked)))
                .then(when.cmp(&other.2))
        });
        let mut ranked: Vec<Ranked> = ranked.into_iter().map(|(.., ranked)| ranked).collect();
        let mut suspects = suspects;
        suspects.sort_by_cached_key(|suspect| {
            let acts = suspect.pairs.iter().flat_map(|pair| [pair.head, pair.tail]);
            place.of(&acts.collect::<Vec<_>>())
        });
        let most = self.args.count.map_or(NAMED, |n| n as usize).max(CHECKED);
        ranked.truncate(most);
        suspects.truncate(most);
        let mut patterns = self.patterns(first, &ranked, &again)?;
        let mut pairs = self.pairs(first, shown.as_ref(), &suspects, &again)?;
        for (told, ranked) in patterns.iter_mut().zip(&ranked) {
            told.debug = format!(
                "{:?} {}",
                place.of(&ranked.pattern.acts),
                place.n_fixed(&ranked.pattern.acts)
            );
        }
        for (told, suspect) in pairs.iter_mut().zip(&suspects) {
            let acts: Vec<_> =
                suspect.pairs.iter().flat_map(|pair| [pair.head, pair.tail]).collect();
            told.debug = format!("{:?}", place.of(&acts));
        }
        if let Some(team) = self.team
            && !self.args.no_confirm
        {
            let passed: Result<Vec<_>> = self.passed.iter().take(FORCED).map(&again).collect();
            let passed = passed?.into_iter().flatten().collect();
            let court = Court { team, failed: shown, passed, key: failure.key.clone() };
            let checked = &ranked[..ranked.len().min(CHECKED)];
            let found = team.all(checked, |ranked, cpu| court.pattern(&ranked.pattern, cpu))?;
            for (told, evidence) in patterns.iter_mut().zip(found) {
                told.evidence = evidence.unwrap_or_default();
            }
            let checked = &suspects[..suspects.len().min(CHECKED)];
            let found = team.all(checked, |suspect, cpu| court.suspect(suspect, cpu))?;
            for (told, evidence) in pairs.iter_mut().zip(found) {
                told.evidence = evidence.unwrap_or_default();
            }
        }
        // Confirmed causes come first, unless they are far less suspect.
        pairs.sort_by_key(|told| told.evidence.confirmed() != Some(true));
        let least = patterns.first().map_or(0.0, |first| first.score / 2.0);
        patterns.sort_by_key(|told| told.evidence.confirmed() != Some(true) || told.score < least);
        for (at, told) in pairs.iter_mut().enumerate() {
            told.rank = at + 1;
        }
        Ok(Group {
            failure: failure.clone(),
            n_failed: self.failed.len(),
            n_passed: self.passed.len(),
            patterns,
            pairs,
        })
    }

    fn patterns(
        &self,
        first: &Sample,
        ranked: &[Ranked],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<Vec<PatternTold>> {
        // By the run that they are shown from.
        let mut by_run: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let is_first = |facts: &Facts, ranked: &Ranked| {
            facts.patterns.iter().any(|fact| fact.pattern == ranked.pattern)
        };
        let own = self.failed.iter().position(|sample| sample.how.seed == first.how.seed);
        for (at, one) in ranked.iter().enumerate() {
            let run = own.filter(|_| is_first(&first.facts, one)).unwrap_or(one.example);
            by_run.entry(run).or_default().push(at);
        }
        let mut told: Vec<Option<PatternTold>> = ranked.iter().map(|_| None).collect();
        for (run, members) in by_run {
            let sample = self.failed[run];
            let facts: Vec<_> = members
                .iter()
                .filter_map(|&at| {
                    let same = |fact: &&PatternFact| fact.pattern == ranked[at].pattern;
                    Some((at, sample.facts.patterns.iter().find(same)?))
                })
                .collect();
            let groups: Vec<Vec<Unnamed>> = facts
                .iter()
                .map(|(_, fact)| unnamed(&sample.run, &fact.pattern.acts, &fact.points))
                .collect();
            let trace = again(sample)?;
            let named = named(&sample.run, trace.as_ref(), &groups);
            let namer = Namer::new(&sample.run);
            for ((at, fact), accesses) in facts.into_iter().zip(named) {
                let stack = |sites: &Vec<Site>| -> Vec<String> {
                    sites.iter().map(|&site| site_name(&namer, &sample.run, site)).collect()
                };
                let one = &ranked[at];
                told[at] = Some(PatternTold {
                    rank: one.rank,
                    ties: one.ties,
                    score: one.score,
                    name: one.pattern.name(),
                    accesses,
                    stacks: fact.stacks.iter().map(stack).collect(),
                    counts: one.counts,
                    evidence: Evidence::default(),
                    debug: String::new(),
                });
            }
        }
        Ok(told.into_iter().flatten().collect())
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
