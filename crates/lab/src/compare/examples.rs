//! Examples: where in which run a suspect can be seen.

use std::borrow::Cow;

use raddle_analysis::localize::facts::{Facts, Pair, Point, SiteAccess};
use raddle_analysis::localize::procedures::Suspect;
use raddle_analysis::localize::rank::{Example as From, Ranked};
use raddle_trace::id::Pc;
use raddle_trace::run::Run;
use rustc_hash::FxHashMap;

use super::candidate::Candidate;
use super::{Case, Example, Rank, RankedPair, RankedPattern, Shown, fact};
use crate::access::{self, AccessAt};
use crate::error::LabError;
use crate::recorded::Recorded;
use crate::sample::Sample;
use crate::sample::collect::in_detail;

/// Finds examples, and keeps the runs that they are in.
pub(super) struct Examples<'a> {
    case: &'a Case<'a>,
    first: &'a Sample,
    /// Examples so far, each with its sample in every detail, by where it is from.
    known: FxHashMap<Source, usize>,
    found: Vec<(Example, Cow<'a, Sample>)>,
}

/// Where an example is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    /// The failed run that is explained.
    First,
    /// Another failed run, by its number.
    Failed(usize),
    /// A passing run, by its number.
    Passed(usize),
}

impl<'a> Examples<'a> {
    /// With the failed run that is explained, executed again.
    pub(super) fn new(case: &'a Case<'a>, first: &'a Sample, shown: Option<Recorded>) -> Self {
        let trace = shown.map(|recorded| recorded.trace);
        let example = Example { run: first.run.clone(), trace };
        let found = vec![(example, Cow::Borrowed(first))];
        Self { case, first, known: FxHashMap::from_iter([(Source::First, 0)]), found }
    }

    /// All runs that examples are in.
    pub(super) fn finish(self) -> Vec<Example> {
        self.found.into_iter().map(|(example, _)| example).collect()
    }

    /// Patterns in their order.
    pub(super) fn patterns(
        &mut self,
        ranked: &[Candidate<Ranked>],
        ranks: &[Rank],
    ) -> Result<Vec<RankedPattern>, LabError> {
        let own = self.case.failed.iter().position(|other| other.spec.is_same(&self.first.spec));
        let mut patterns = Vec::new();
        for (Candidate { what, evidence, n_fixed, .. }, rank) in ranked.iter().zip(ranks) {
            let accesses = &what.pattern.accesses;
            let source = match what.example {
                From::Failed(_)
                    if own.is_some() && fact(&self.first.facts, &what.pattern).is_some() =>
                {
                    Source::First
                }
                From::Failed(number) => Source::Failed(number),
                From::Passed(number) => Source::Passed(number),
            };
            let example = self.example(source)?;
            let (_, sample) = &self.found[example];
            let points = points(&sample.facts, what);
            let stacks = fact(&sample.facts, &what.pattern).map(|fact| fact.stacks.clone());
            patterns.push(RankedPattern {
                rank: *rank,
                score: what.score,
                accesses: accesses.clone(),
                n_fixed: *n_fixed,
                shown: Shown { example, accesses: accesses_at(&sample.run, accesses, &points) },
                stacks: stacks.unwrap_or_default(),
                counts: what.counts,
                evidence: *evidence,
            });
        }
        Ok(patterns)
    }

    /// Pairs in their order.
    pub(super) fn pairs(
        &mut self,
        suspects: &[Candidate<Suspect>],
    ) -> Result<Vec<RankedPair>, LabError> {
        let mut pairs = Vec::new();
        for (rank, Candidate { what, score, evidence, .. }) in (1..).zip(suspects) {
            let example = self.example(what.passing.map_or(Source::First, Source::Passed))?;
            let (_, sample) = &self.found[example];
            let of_pair = |(pair, points): (&Pair, &[Point; 2])| {
                let mut points = points.clone();
                // The points of a missing pair are those of the pair the other way around.
                if what.passing.is_some() {
                    let known = sample.facts.pair(pair.reversed());
                    points = known.map_or(points, |fact| fact.first().clone());
                    points.reverse();
                }
                accesses_at(&sample.run, &[pair.head, pair.tail], &points)
            };
            let accesses = what.pairs.iter().zip(&what.points).flat_map(of_pair).collect();
            pairs.push(RankedPair {
                rank,
                procedure: what.procedure,
                accesses: what.pairs.iter().flat_map(|pair| [pair.head, pair.tail]).collect(),
                shown: Shown { example, accesses },
                counts: what.counts,
                score: *score,
                evidence: *evidence,
            });
        }
        Ok(pairs)
    }

    /// The number of an example, which is executed again if it was not before.
    fn example(&mut self, source: Source) -> Result<usize, LabError> {
        if let Some(&known) = self.known.get(&source) {
            return Ok(known);
        }
        let sample = match source {
            Source::First => Cow::Borrowed(self.first),
            Source::Failed(number) => Cow::Borrowed(self.case.failed[number]),
            Source::Passed(number) => self.detailed(&self.case.passed[number])?,
        };
        let recorded = self.case.again(&sample)?;
        let trace = recorded.map(|recorded| recorded.trace);
        let number = self.found.len();
        self.found.push((Example { run: sample.run.clone(), trace }, sample));
        self.known.insert(source, number);
        Ok(number)
    }

    /// A passing run in every detail; as it is, where that does not work.
    fn detailed(&self, sample: &'a Sample) -> Result<Cow<'a, Sample>, LabError> {
        if let Some(executor) = self.case.executor
            && !sample.facts.is_exact
            && sample.spec.is_repeatable()
        {
            let terms = self.case.terms;
            let plan = sample.spec.plan(&terms.plan);
            let again = in_detail(&executor.alone(1), &sample.spec, &plan, terms.settings)?;
            let again = again.and_then(|again| again.sample);
            if let Some(again) = again.filter(|again| again.key() == sample.key()) {
                return Ok(Cow::Owned(again));
            }
        }
        Ok(Cow::Borrowed(sample))
    }
}

/// Where in a run a pattern is; the other way around in a passing one.
fn points(facts: &Facts, ranked: &Ranked) -> Vec<Point> {
    let accesses = &ranked.pattern.accesses;
    let points = match ranked.example {
        From::Failed(_) => fact(facts, &ranked.pattern).map(|fact| fact.points.clone()),
        From::Passed(_) => {
            let pair = Pair { head: accesses[1], tail: accesses[0] };
            facts.pair(pair).map(|fact| {
                let [head, tail] = fact.first().clone();
                vec![tail, head]
            })
        }
    };
    points.unwrap_or_default()
}

fn accesses_at(run: &Run, accesses: &[SiteAccess], points: &[Point]) -> Vec<AccessAt> {
    accesses
        .iter()
        .zip(points)
        .map(|(access, point)| {
            access::of_point(*access, run.pc(access.site).unwrap_or(Pc(0)), point)
        })
        .collect()
}
