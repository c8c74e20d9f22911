//! LOCON's three procedures: the access pairs to blame for one failing run.
//!
//! - **I**: pairs that the failing run has and no passing run has.
//! - **II**: pairs that all passing runs have and the failing run lacks because it ended too
//!   early; reported is the pair in the opposite order. Also a pair that passing runs have only
//!   together with another one, if the failing run has only the other one.
//! - **III**: two pairs that the failing run has together and no passing run does: compared by
//!   code, then by thread, then by loop iteration.
//!
//! A pair that says no more than another is dropped: if the accesses of one pair enclose those of
//! another in both threads, the inner order implies the outer one, and the inner one is dropped.
//! The remaining pairs are sorted by when they occurred, since whatever follows the cause is its
//! effect.
//!
//! Deviations: a missing pair counts only if the failing run performed the access that needed the
//! other one, since a run that was cut short lacks many pairs. At the levels of threads and loops
//! we search only among pairs that are close in the run, so that time grows with the number of
//! pairs and not with its square. With few passing runs, or pairs that few runs have, some two
//! pairs never occur together by accident; they are reported, and marked.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::{Facts, LoopIteration, Pair, PairFact, Point};
use super::formula::{Counts, Formula};
use super::runs::{Bits, Runs};
use crate::stop::unless_stopped;

/// The procedure that found a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Procedure {
    /// I: a pair that only the failing run has.
    One,
    /// II: a pair that the failing run lacks.
    Two,
    /// III: two pairs that only the failing run has together.
    Three(Level),
    /// None of LOCON's: a pair that is more frequent in failing runs.
    Often,
}

/// What is compared about accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Their code addresses.
    Pc,
    /// Code addresses and threads.
    Thread,
    /// Code addresses, threads, and whether they are in the same iteration of a loop.
    Loop,
}

impl Procedure {
    /// `I`, `II` or `III`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "I",
            Self::Two => "II",
            Self::Three(_) => "III",
            Self::Often => "often",
        }
    }

    /// `pc`, `thread` or `loop` for procedure III.
    #[must_use]
    pub const fn level(self) -> Option<&'static str> {
        match self {
            Self::One | Self::Two | Self::Often => None,
            Self::Three(Level::Pc) => Some("pc"),
            Self::Three(Level::Thread) => Some("thread"),
            Self::Three(Level::Loop) => Some("loop"),
        }
    }
}

/// A pair, or two pairs, that may be to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The procedure that found it.
    pub procedure: Procedure,
    /// One pair, or two that must not occur together.
    pub pairs: Vec<Pair>,
    /// Number of runs that have it.
    pub counts: Counts,
    /// Head and tail of each pair; for a missing pair, as they occurred in a passing run.
    pub points: Vec<[Point; 2]>,
    /// The passing run that the points are from; none if they are from the failing run.
    pub passing: Option<usize>,
    /// Whether no passing run may have both pairs only because few have either.
    pub is_accident: bool,
}

/// How many neighbors of a pair are considered for procedure III.
const NEAR: usize = 48;
/// Maximum number of occurrences of a pair that are compared.
const INSTANCES_MAX: usize = 48;
/// Probability below which a coincidence is ruled out.
const ACCIDENT: f64 = 0.05;
/// Maximum number of suspects per procedure.
const SUSPECTS_MAX: usize = 200;

/// All suspects of a failing run, by procedure and then by when they occurred; those that were
/// found so far if it is stopped.
#[must_use]
pub fn suspects(failed: &Facts, runs: &Runs<'_>) -> Vec<Suspect> {
    let passing = runs.passed_pairs();
    let mut suspects = new_pairs(failed, runs, &passing);
    suspects.extend(missing_pairs(failed, runs, &passing));
    suspects.extend(coupled_pairs(failed, runs, &passing));
    suspects
}

fn new_pairs(failed: &Facts, runs: &Runs<'_>, passing: &FxHashMap<Pair, Bits>) -> Vec<Suspect> {
    let new: Vec<_> =
        failed.pairs.iter().filter(|fact| !passing.contains_key(&fact.pair)).collect();
    let mut left = unpredictable(&new);
    left.sort_by_key(|fact| occurrence(fact.first()));
    left.truncate(SUSPECTS_MAX);
    left.into_iter()
        .map(|fact| Suspect {
            procedure: Procedure::One,
            pairs: vec![fact.pair],
            counts: runs.counts(|facts| facts.pair(fact.pair).is_some()),
            points: vec![fact.first().clone()],
            passing: None,
            is_accident: false,
        })
        .collect()
}

fn missing_pairs(failed: &Facts, runs: &Runs<'_>, passing: &FxHashMap<Pair, Bits>) -> Vec<Suspect> {
    let n_passed = runs.passed.len();
    let is_missing = |pair: &Pair| failed.pair(*pair).is_none() && failed.has(pair.tail);
    let mut missing: FxHashSet<Pair> = FxHashSet::default();
    // Pairs that always occur together, by the runs that have them.
    let mut together: FxHashMap<&Bits, Vec<Pair>> = FxHashMap::default();
    for (pair, bits) in passing {
        match bits.count() {
            n if n == n_passed => missing.extend(Some(*pair).filter(is_missing)),
            1 => {}
            _ => together.entry(bits).or_default().push(*pair),
        }
    }
    for pairs in unless_stopped(together.values()) {
        let there: Vec<_> = pairs.iter().filter_map(|&pair| failed.pair(pair)).collect();
        for &pair in pairs.iter().filter(|pair| is_missing(pair)) {
            let elsewhere = |other: &&PairFact| {
                let here = example(runs, pair).map(|(_, points)| points[1].addr);
                here.is_some_and(|addr| addr != other.first()[1].addr)
            };
            if there.iter().any(elsewhere) {
                missing.insert(pair);
            }
        }
    }
    let mut told: Vec<(u64, usize, Suspect)> = missing
        .into_iter()
        // Pairs that the failing run has in the opposite order belong to procedure I.
        .filter(|pair| failed.pair(pair.reversed()).is_none())
        .filter_map(|pair| {
            let (number, points) = example(runs, pair)?;
            let suspect = Suspect {
                procedure: Procedure::Two,
                pairs: vec![pair.reversed()],
                counts: Counts::default(),
                points: vec![points.clone()],
                passing: Some(number),
                is_accident: false,
            };
            // In millionths of the run, as runs differ in length.
            let n_events = runs.passed[number].n_events.max(1);
            Some((occurrence(points) * 1_000_000 / n_events, number, suspect))
        })
        .collect();
    told.sort_by(|one, two| (one.0, one.1, &one.2.pairs).cmp(&(two.0, two.1, &two.2.pairs)));
    told.truncate(SUSPECTS_MAX);
    let counted = |(_, _, suspect): (u64, usize, Suspect)| {
        let pair = suspect.pairs[0].reversed();
        Suspect { counts: runs.counts(|facts| is_unmet(facts, pair)), ..suspect }
    };
    told.into_iter().map(counted).collect()
}

/// All pairs of the failing run except those of procedure I, the most suspicious first, then the
/// earliest.
#[must_use]
pub fn often(failed: &Facts, runs: &Runs<'_>, formula: Formula) -> Vec<Suspect> {
    let passing = runs.passed_pairs();
    let mut scored: Vec<(f64, Counts, &PairFact)> = failed
        .pairs
        .iter()
        .filter_map(|fact| {
            let passed = passing.get(&fact.pair)?.count();
            let failed = runs.failed.iter().filter(|run| run.pair(fact.pair).is_some()).count();
            let (n_failed, n_passed) = (runs.failed.len(), runs.passed.len());
            let counts = Counts { failed, passed, n_failed, n_passed };
            Some((formula.score(counts), counts, fact))
        })
        .collect();
    scored.sort_by(|(score, _, fact), (other, _, two)| {
        other.total_cmp(score).then(occurrence(fact.first()).cmp(&occurrence(two.first())))
    });
    scored.truncate(SUSPECTS_MAX);
    let suspect = |(_, counts, fact): (f64, Counts, &PairFact)| Suspect {
        procedure: Procedure::Often,
        pairs: vec![fact.pair],
        counts,
        points: vec![fact.first().clone()],
        passing: None,
        is_accident: false,
    };
    scored.into_iter().map(suspect).collect()
}

/// Whether a run performed the tail of a pair but ended before its head.
fn is_unmet(facts: &Facts, pair: Pair) -> bool {
    facts.pair(pair).is_none() && facts.has(pair.tail) && !facts.has(pair.head)
}

/// A passing run that has a pair, and its points there.
fn example<'a>(runs: &Runs<'a>, pair: Pair) -> Option<(usize, &'a [Point; 2])> {
    runs.passed
        .iter()
        .enumerate()
        .find_map(|(number, facts)| Some((number, facts.pair(pair)?.first())))
}

/// Two pairs of the failing run that no passing run has together.
struct CoupledPairs<'a> {
    facts: [&'a PairFact; 2],
    points: [[Point; 2]; 2],
    is_accident: bool,
}

impl CoupledPairs<'_> {
    fn is_in(&self, facts: &Facts) -> bool {
        self.facts.iter().all(|fact| facts.pair(fact.pair).is_some())
    }
}

fn coupled_pairs(failed: &Facts, runs: &Runs<'_>, passing: &FxHashMap<Pair, Bits>) -> Vec<Suspect> {
    let mut known: Vec<(&PairFact, &Bits)> =
        failed.pairs.iter().filter_map(|fact| Some((fact, passing.get(&fact.pair)?))).collect();
    known.sort_by_key(|(fact, _)| occurrence(fact.first()));
    let mut told: FxHashSet<[Pair; 2]> = FxHashSet::default();
    let mut suspects = Vec::new();
    for level in [Level::Pc, Level::Thread, Level::Loop] {
        let mut all_coupled: Vec<CoupledPairs<'_>> = Vec::new();
        for (at, (one, bits)) in unless_stopped(known.iter().enumerate()) {
            for (two, others) in known[at + 1..].iter().take(NEAR) {
                if told.contains(&[one.pair, two.pair]) {
                    continue;
                }
                let Some(points) = opposite(one, two) else { continue };
                let is_new = match level {
                    Level::Pc => bits.is_disjoint(others),
                    Level::Thread => bits
                        .both(others)
                        .all(|number| !comes(&runs.passed[number], [one.pair, two.pair], |_| true)),
                    Level::Loop => match loop_relations(&points) {
                        None => false,
                        Some(wanted) => bits.both(others).all(|number| {
                            !comes(&runs.passed[number], [one.pair, two.pair], |points| {
                                loop_relations(points)
                                    .is_none_or(|loop_relations| loop_relations == wanted)
                            })
                        }),
                    },
                };
                if is_new {
                    let chance = match level {
                        Level::Pc => apart(bits.count(), others.count(), runs.passed.len()),
                        // Each run that has both could equally well have had them in this way.
                        Level::Thread | Level::Loop => bits.both(others).map(|_| 0.5).product(),
                    };
                    let is_accident = chance > ACCIDENT;
                    all_coupled.push(CoupledPairs { facts: [one, two], points, is_accident });
                }
            }
        }
        told.extend(all_coupled.iter().map(|coupled| coupled.facts.map(|fact| fact.pair)));
        suspects.extend(unpredictable_coupled(all_coupled).into_iter().take(SUSPECTS_MAX).map(
            |coupled| Suspect {
                procedure: Procedure::Three(level),
                pairs: coupled.facts.iter().map(|fact| fact.pair).collect(),
                // No passing run has both in this way.
                counts: Counts { passed: 0, ..runs.counts(|facts| coupled.is_in(facts)) },
                points: coupled.points.to_vec(),
                passing: None,
                is_accident: coupled.is_accident,
            },
        ));
    }
    suspects
}

/// The probability that, of `n` runs, no run is both among `n_ones` and among `n_others`, if the
/// two are independent.
fn apart(n_ones: usize, n_others: usize, n: usize) -> f64 {
    (0..n_others)
        .map(|taken| n.saturating_sub(n_ones + taken) as f64 / (n - taken) as f64)
        .product()
}

/// Occurrences of two pairs at different locations that run in opposite directions between the
/// same two threads, as in every two-variable bug.
fn opposite(one: &PairFact, two: &PairFact) -> Option<[[Point; 2]; 2]> {
    let combine = |one: &[Point; 2], two: &[Point; 2]| is_opposite(one, two);
    let (one, two) = one.instances.iter().take(INSTANCES_MAX).find_map(|first| {
        let second = two.instances.iter().take(INSTANCES_MAX).find(|two| combine(first, two))?;
        Some((first, second))
    })?;
    Some([one.clone(), two.clone()])
}

fn is_opposite(one: &[Point; 2], two: &[Point; 2]) -> bool {
    one[0].thread == two[1].thread
        && one[1].thread == two[0].thread
        && !(one[0].addr == two[0].addr || overlap(&one[1], &two[1]))
}

fn overlap(one: &Point, two: &Point) -> bool {
    one.addr.0 < two.addr.0 + u64::from(two.bytes) && two.addr.0 < one.addr.0 + u64::from(one.bytes)
}

/// Whether a run has two pairs in opposite directions that satisfy `counts`.
fn comes(facts: &Facts, pairs: [Pair; 2], counts: impl Fn(&[[Point; 2]; 2]) -> bool) -> bool {
    let [Some(one), Some(two)] = pairs.map(|pair| facts.pair(pair)) else { return false };
    one.instances.iter().take(INSTANCES_MAX).any(|one| {
        let mut others = two.instances.iter().take(INSTANCES_MAX);
        others.any(|two| is_opposite(one, two) && counts(&[one.clone(), two.clone()]))
    })
}

/// Whether the two accesses of each thread are in the same iteration of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopRelation {
    /// No loop encloses both.
    None,
    Same,
    Other,
}

/// The loop relations of both threads, if known.
fn loop_relations([one, two]: &[[Point; 2]; 2]) -> Option<[LoopRelation; 2]> {
    Some([loop_relation(&one[0], &two[1])?, loop_relation(&one[1], &two[0])?])
}

fn loop_relation(one: &Point, two: &Point) -> Option<LoopRelation> {
    let same_loop =
        |a: &LoopIteration, b: &LoopIteration| a.entry == b.entry && a.activation == b.activation;
    let shared = one.loops.iter().find_map(|a| {
        let b = two.loops.iter().find(|b| same_loop(a, b))?;
        Some((a.iteration, b.iteration))
    });
    match shared {
        None => Some(LoopRelation::None),
        Some((Some(a), Some(b))) => {
            Some(if a == b { LoopRelation::Same } else { LoopRelation::Other })
        }
        Some(_) => None,
    }
}

/// When a pair occurred.
fn occurrence(points: &[Point; 2]) -> u64 {
    points[1].seq
}

/// Drops pairs that say no more than another one; see the module.
fn unpredictable<'a>(facts: &[&'a PairFact]) -> Vec<&'a PairFact> {
    // By the two threads, sorted by head, the widest first among those with the same head.
    let mut between: BTreeMap<_, Vec<&'a PairFact>> = BTreeMap::new();
    for &fact in facts {
        let [head, tail] = fact.first();
        between.entry((head.thread, tail.thread)).or_default().push(fact);
    }
    let mut left = Vec::new();
    for mut facts in between.into_values() {
        facts.sort_by_key(|fact| (fact.first()[0].seq, std::cmp::Reverse(fact.first()[1].seq)));
        let mut widest: Option<[u64; 2]> = None;
        for fact in facts {
            let [head, tail] = fact.first();
            let here = [head.seq, tail.seq];
            // Equal accesses imply each other.
            let is_inner = widest.is_some_and(|wide| here[1] <= wide[1] && here != wide);
            if !is_inner {
                widest = Some(here);
                left.push(fact);
            }
        }
    }
    left
}

/// The same for coupled pairs: they are dropped if one of their pairs lies within a pair of
/// others.
fn unpredictable_coupled(mut all_coupled: Vec<CoupledPairs<'_>>) -> Vec<CoupledPairs<'_>> {
    all_coupled.sort_by_key(|coupled| {
        let last = coupled.points.iter().map(occurrence).max();
        (last, coupled.facts.map(|fact| fact.pair))
    });
    all_coupled.truncate(COUPLED_MAX);
    let within = |inner: &[Point; 2], outer: &[Point; 2]| {
        inner[0].thread == outer[0].thread
            && inner[1].thread == outer[1].thread
            && outer[0].seq <= inner[0].seq
            && inner[1].seq <= outer[1].seq
            && (outer[0].seq, outer[1].seq) != (inner[0].seq, inner[1].seq)
    };
    let says_less = |coupled: &CoupledPairs<'_>, other: &CoupledPairs<'_>| {
        let any = |one: &[[Point; 2]; 2], two: &[[Point; 2]; 2]| {
            one.iter().any(|inner| two.iter().any(|outer| within(inner, outer)))
        };
        any(&coupled.points, &other.points) && !any(&other.points, &coupled.points)
    };
    let keep: Vec<bool> = all_coupled
        .iter()
        .map(|coupled| !all_coupled.iter().any(|other| says_less(coupled, other)))
        .collect();
    let mut keep = keep.into_iter();
    all_coupled.retain(|_| keep.next().unwrap_or(true));
    all_coupled
}

/// Maximum number of coupled pairs that are compared with each other.
const COUPLED_MAX: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_pairs_are_apart_by_chance_and_frequent_ones_are_not() {
        for (ones, others, n, wanted) in
            [(5, 5, 10, 1.0 / 252.0), (2, 3, 10, 56.0 / 120.0), (0, 4, 10, 1.0), (6, 5, 10, 0.0)]
        {
            let chance = apart(ones, others, n);
            assert!((chance - wanted).abs() < 1e-9, "{ones} and {others} of {n}: {chance}");
        }
    }
}
