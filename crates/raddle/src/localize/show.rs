//! What was compared, with names.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::Result;
use raddle_analysis::localize::facts::{Act, Facts, Pair, Point};
use raddle_analysis::localize::procedures::Suspect;
use raddle_analysis::localize::rank::{Example, Ranked};
use raddle_report::symbols::name::Namer;
use raddle_trace::id::{Pc, Site};
use raddle_trace::run::Run;

use super::again::{self, Again};
use super::compare::{Case, fact};
use super::gather::in_detail;
use super::order::{Candidate, Rank};
use super::sample::Sample;
use super::tell::{PairTold, PatternTold};
use crate::hunt::finding::{self, Access, Unnamed};

impl Case<'_> {
    /// Patterns in their order, shown from runs that have them.
    pub(crate) fn patterns(
        &self,
        first: &Sample,
        ranked: &[Candidate<Ranked>],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<Vec<PatternTold>> {
        // By the run that they are shown from.
        let mut by_run: BTreeMap<Example, Vec<usize>> = BTreeMap::new();
        let own = self.failed.iter().position(|sample| sample.how.is_same(&first.how));
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
                let Candidate { what: one, evidence, n_fixed, .. } = &ranked[at];
                let stacks = fact(&sample.facts, &one.pattern).map(|fact| &fact.stacks[..]);
                let name = match &accesses[..] {
                    // A thread that waits for a lock that it has itself.
                    [one, two] if one.thread == two.thread => {
                        format!("{}1-{}1", one.deed.letter(), two.deed.letter())
                    }
                    _ => one.pattern.name(),
                };
                told[at] = Some(PatternTold {
                    rank: Rank { rank: at + 1, n_ties: 1 },
                    score: one.score,
                    name,
                    acts: one.pattern.acts.clone(),
                    n_fixed: *n_fixed,
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
            && sample.how.is_repeatable()
        {
            let plan = sample.how.plan(&self.terms.plan);
            let (_, told) = in_detail(team, sample.how.clone(), &plan, self.terms.settings)?;
            if let Some(told) = told.filter(|told| told.failure == sample.failure) {
                return Ok(Cow::Owned(told));
            }
        }
        Ok(Cow::Borrowed(sample))
    }

    /// Pairs likewise.
    pub(crate) fn pairs(
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
                    acts: what.pairs.iter().flat_map(|pair| [pair.head, pair.tail]).collect(),
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
