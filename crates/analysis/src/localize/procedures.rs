//! LOCON's three procedures: the access pairs to blame for one failed run.
//!
//! - **I**: pairs that the failed run has and no passing run.
//! - **II**: pairs that all passing runs have and the failed run has not, since it ended before;
//!   what is told is the pair the other way round. Also a pair that passing runs have together
//!   with another one or not at all, when the failed run has only the other one.
//! - **III**: couples of pairs that the failed run has and no passing run has together: by
//!   their code, then by the threads, then by the loops that they are in.
//!
//! A pair is dropped that says no more than another: if the accesses of one lie around those of
//! another in both threads, the inner order implies the outer one, and the inner one is dropped.
//! Then what came first in the run comes first, since what follows the cause is its effect.
//!
//! Deviations. A missing pair counts only if the failed run performed the access that waited in
//! vain for the other: a run that was cut off lacks much. Couples at the levels of threads and
//! loops are looked for among pairs that are near to each other in the run, so that time grows
//! with the number of pairs and not with its square. Of few passing runs, or pairs that few of them
//! have, some couple is never together by accident; such couples are told, and marked.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::{Facts, Lap, Pair, PairFact, Point};
use super::rank::{Counts, Formula};
use super::runs::{Bits, Runs};

/// How a pair was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Procedure {
    /// See the module.
    One,
    /// See the module.
    Two,
    /// See the module.
    Three(Level),
    /// None of LOCON's.
    Often,
}

/// What is compared of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Where they are in the code.
    Pc,
    /// And who performs them.
    Thread,
    /// And in which turn of which loop.
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

    /// `pc`, `thread` or `loop`, for the third one.
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

/// What may be to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// How it was found.
    pub procedure: Procedure,
    /// One pair, or two that must not come together.
    pub pairs: Vec<Pair>,
    /// In how many runs it is so.
    pub counts: Counts,
    /// Head and tail of each; of a missing pair, from a passing run that has it the right way
    /// round.
    pub points: Vec<[Point; 2]>,
    /// The passing run that the points are from; otherwise the failed run.
    pub passing: Option<usize>,
    /// That no passing run has both pairs may be because few have either.
    pub is_accident: bool,
}

/// Neighbours among pairs that are looked at for couples.
const NEAR: usize = 48;
/// Occurrences of a pair that are compared.
const INSTANCES_MAX: usize = 48;
/// What is less likely than this to come by chance did not.
const ACCIDENT: f64 = 0.05;
/// Suspects that a procedure tells.
const SUSPECTS_MAX: usize = 200;

/// All suspects of a failed run: by procedure, then by when they came.
#[must_use]
pub fn suspects(failed: &Facts, runs: &Runs<'_>) -> Vec<Suspect> {
    let passing = runs.passed_pairs();
    let mut suspects = one(failed, runs, &passing);
    suspects.extend(two(failed, runs, &passing));
    suspects.extend(three(failed, runs, &passing));
    suspects
}

fn one(failed: &Facts, runs: &Runs<'_>, passing: &FxHashMap<Pair, Bits>) -> Vec<Suspect> {
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

fn two(failed: &Facts, runs: &Runs<'_>, passing: &FxHashMap<Pair, Bits>) -> Vec<Suspect> {
    let n_passed = runs.passed.len();
    let is_missing = |pair: &Pair| failed.pair(*pair).is_none() && failed.has(pair.tail);
    let mut missing: FxHashSet<Pair> = FxHashSet::default();
    // What always comes together, by the runs that have it.
    let mut together: FxHashMap<&Bits, Vec<Pair>> = FxHashMap::default();
    for (pair, bits) in passing {
        match bits.count() {
            n if n == n_passed => missing.extend(Some(*pair).filter(is_missing)),
            1 => {}
            _ => together.entry(bits).or_default().push(*pair),
        }
    }
    for pairs in together.values() {
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
        // What the failed run has in the other order is told by the first procedure.
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
            // In parts of a million of the run, as runs differ in length.
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

/// All pairs of the failed run, the most suspect first, then what came first; but for those that
/// the first procedure tells.
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

/// Whether a run performed the tail of a pair and not its head: it ended before.
fn is_unmet(facts: &Facts, pair: Pair) -> bool {
    facts.pair(pair).is_none() && facts.has(pair.tail) && !facts.has(pair.head)
}

/// A passing run that has a pair, and how.
fn example<'a>(runs: &Runs<'a>, pair: Pair) -> Option<(usize, &'a [Point; 2])> {
    runs.passed
        .iter()
        .enumerate()
        .find_map(|(number, facts)| Some((number, facts.pair(pair)?.first())))
}

/// Two pairs of the failed run.
struct Couple<'a> {
    facts: [&'a PairFact; 2],
    points: [[Point; 2]; 2],
    is_accident: bool,
}

impl Couple<'_> {
    fn is_in(&self, facts: &Facts) -> bool {
        self.facts.iter().all(|fact| facts.pair(fact.pair).is_some())
    }
}

fn three(failed: &Facts, runs: &Runs<'_>, passing: &FxHashMap<Pair, Bits>) -> Vec<Suspect> {
    let mut known: Vec<(&PairFact, &Bits)> =
        failed.pairs.iter().filter_map(|fact| Some((fact, passing.get(&fact.pair)?))).collect();
    known.sort_by_key(|(fact, _)| occurrence(fact.first()));
    let mut told: FxHashSet<[Pair; 2]> = FxHashSet::default();
    let mut suspects = Vec::new();
    for level in [Level::Pc, Level::Thread, Level::Loop] {
        let mut couples: Vec<Couple<'_>> = Vec::new();
        for (at, (one, bits)) in known.iter().enumerate() {
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
                    Level::Loop => match turns(&points) {
                        None => false,
                        Some(wanted) => bits.both(others).all(|number| {
                            !comes(&runs.passed[number], [one.pair, two.pair], |points| {
                                turns(points).is_none_or(|turns| turns == wanted)
                            })
                        }),
                    },
                };
                if is_new {
                    let chance = match level {
                        Level::Pc => apart(bits.count(), others.count(), runs.passed.len()),
                        // Each run that has both could as well have had them in this way.
                        Level::Thread | Level::Loop => bits.both(others).map(|_| 0.5).product(),
                    };
                    let is_accident = chance > ACCIDENT;
                    couples.push(Couple { facts: [one, two], points, is_accident });
                }
            }
        }
        told.extend(couples.iter().map(|couple| couple.facts.map(|fact| fact.pair)));
        suspects.extend(unpredictable_couples(couples).into_iter().take(SUSPECTS_MAX).map(
            |couple| Suspect {
                procedure: Procedure::Three(level),
                pairs: couple.facts.iter().map(|fact| fact.pair).collect(),
                // No passing run has both in this way.
                counts: Counts { passed: 0, ..runs.counts(|facts| couple.is_in(facts)) },
                points: couple.points.to_vec(),
                passing: None,
                is_accident: couple.is_accident,
            },
        ));
    }
    suspects
}

/// How likely it is that of so many runs none is both among these many and among those many, if
/// the ones have nothing to do with the others.
fn apart(n_ones: usize, n_others: usize, n: usize) -> f64 {
    (0..n_others)
        .map(|taken| n.saturating_sub(n_ones + taken) as f64 / (n - taken) as f64)
        .product()
}

/// Occurrences of two pairs at different places that run in opposite directions between the
/// same two threads, which is what every bug of two variables does.
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

/// Whether a run has two pairs in opposite directions, in a way that counts.
fn comes(facts: &Facts, pairs: [Pair; 2], counts: impl Fn(&[[Point; 2]; 2]) -> bool) -> bool {
    let [Some(one), Some(two)] = pairs.map(|pair| facts.pair(pair)) else { return false };
    one.instances.iter().take(INSTANCES_MAX).any(|one| {
        let mut others = two.instances.iter().take(INSTANCES_MAX);
        others.any(|two| is_opposite(one, two) && counts(&[one.clone(), two.clone()]))
    })
}

/// How the two accesses of each thread lie to each other in loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// No loop is around both.
    None,
    Same,
    Other,
}

/// The turns of both threads; none if they cannot be told.
fn turns([one, two]: &[[Point; 2]; 2]) -> Option<[Turn; 2]> {
    Some([turn(&one[0], &two[1])?, turn(&one[1], &two[0])?])
}

fn turn(one: &Point, two: &Point) -> Option<Turn> {
    let same_loop = |a: &Lap, b: &Lap| a.entry == b.entry && a.activation == b.activation;
    let shared = one.laps.iter().find_map(|a| {
        let b = two.laps.iter().find(|b| same_loop(a, b))?;
        Some((a.iteration, b.iteration))
    });
    match shared {
        None => Some(Turn::None),
        Some((Some(a), Some(b))) => Some(if a == b { Turn::Same } else { Turn::Other }),
        Some(_) => None,
    }
}

/// When a pair came about.
fn occurrence(points: &[Point; 2]) -> u64 {
    points[1].seq
}

/// Without pairs that say no more than another one: see the module.
fn unpredictable<'a>(facts: &[&'a PairFact]) -> Vec<&'a PairFact> {
    // Between two threads: by the head, the widest first among those with the same head.
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
            // The very same accesses imply each other.
            let is_inner = widest.is_some_and(|wide| here[1] <= wide[1] && here != wide);
            if !is_inner {
                widest = Some(here);
                left.push(fact);
            }
        }
    }
    left
}

/// The same for couples: one is dropped if a pair of it lies within a pair of another.
fn unpredictable_couples(mut couples: Vec<Couple<'_>>) -> Vec<Couple<'_>> {
    couples.sort_by_key(|couple| {
        let last = couple.points.iter().map(occurrence).max();
        (last, couple.facts.map(|fact| fact.pair))
    });
    couples.truncate(COUPLES_MAX);
    let within = |inner: &[Point; 2], outer: &[Point; 2]| {
        inner[0].thread == outer[0].thread
            && inner[1].thread == outer[1].thread
            && outer[0].seq <= inner[0].seq
            && inner[1].seq <= outer[1].seq
            && (outer[0].seq, outer[1].seq) != (inner[0].seq, inner[1].seq)
    };
    let says_less = |couple: &Couple<'_>, other: &Couple<'_>| {
        let any = |one: &[[Point; 2]; 2], two: &[[Point; 2]; 2]| {
            one.iter().any(|inner| two.iter().any(|outer| within(inner, outer)))
        };
        any(&couple.points, &other.points) && !any(&other.points, &couple.points)
    };
    let keep: Vec<bool> = couples
        .iter()
        .map(|couple| !couples.iter().any(|other| says_less(couple, other)))
        .collect();
    let mut keep = keep.into_iter();
    couples.retain(|_| keep.next().unwrap_or(true));
    couples
}

/// Couples that are compared with each other.
const COUPLES_MAX: usize = 2000;

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
