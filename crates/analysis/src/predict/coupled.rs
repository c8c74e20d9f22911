//! Patterns of two variables.
//!
//! Every thread that accesses the same two locations is matched with every other one. Of threads
//! that do so at the same two sites, the first and the last are tried, [`ALIKE_MAX`] in all: they
//! lead to the same anomalies, and a program with thousands of such threads has millions of pairs.

use raddle_trace::id::Pc;
use rustc_hash::{FxHashMap, FxHashSet};

use super::found::Found;
use super::four::{apart, interleaved};
use super::is_lock_word;
use crate::accesses::{Pair, Unit};
use crate::anomaly::AnomalyKind;
use crate::classes::AccessClasses;
use crate::nearby::CoupledPair;
use crate::pattern::Pattern;
use crate::stop::unless_stopped;
use crate::witness::{AccessKind, Witness};

/// Threads that do the same at the same two locations of which pairs are tried.
const ALIKE_MAX: usize = 64;

/// Finds the matches of two-variable patterns.
pub(super) fn coupled_pairs(found: &mut Found<'_>, patterns: &[Pattern]) {
    let patterns = Patterns::new(patterns);
    let coupled_pairs = &found.model.coupled_pairs;
    let place = |coupled: &CoupledPair| {
        let [a, b] = coupled.addrs;
        if a < b { (a, b) } else { (b, a) }
    };
    let mut sorted: Vec<_> =
        coupled_pairs.iter().map(|coupled| (place(coupled), coupled)).collect();
    // Stable: coupled pairs of the same two locations stay in the order of the trace.
    sorted.sort_by_key(|(place, _)| *place);
    let mut tried = FxHashSet::default();
    for here in sorted.chunk_by(|(one, _), (two, _)| one == two) {
        let here = thinned(here.iter().map(|(_, coupled)| *coupled).collect(), |coupled| {
            coupled.first.classes().map(|class| found.model.classes.class(class).pc)
        });
        for one in unless_stopped(here.iter()) {
            for two in &here {
                let classes = &found.model.classes;
                let of = |coupled: &CoupledPair| {
                    coupled.first.classes().map(|class| classes.class(class))
                };
                let ([a, b], [c, d]) = (of(one), of(two));
                if a.thread != c.thread
                    && tried.insert((a.pc, b.pc, c.pc, d.pc, a.thread, c.thread))
                {
                    let kinds = [a.kind, b.kind, c.kind, d.kind];
                    let crossed = two.addrs[0] != one.addrs[0];
                    for &places in patterns.matching(kinds, crossed) {
                        match_coupled(found, places, one, two);
                    }
                }
            }
        }
    }
}

/// Without those between the first and the last of the same sites, if there are many.
fn thinned<T: Copy>(all: Vec<T>, sites: impl Fn(T) -> [Pc; 2]) -> Vec<T> {
    if all.len() <= ALIKE_MAX {
        return all;
    }
    let mut n_of: FxHashMap<[Pc; 2], usize> = FxHashMap::default();
    let numbered: Vec<_> = all
        .iter()
        .map(|&one| {
            let n = n_of.entry(sites(one)).or_default();
            *n += 1;
            (*n - 1, one)
        })
        .collect();
    let is_kept = |(number, one): &(usize, T)| {
        let n = n_of[&sites(*one)];
        *number < ALIKE_MAX / 2 || *number + ALIKE_MAX / 2 >= n
    };
    numbered.into_iter().filter(is_kept).map(|(_, one)| one).collect()
}

/// Two-variable patterns, indexed by what decides which of them match.
struct Patterns([Vec<[usize; 4]>; 1 << 5]);

impl Patterns {
    fn new(patterns: &[Pattern]) -> Self {
        let mut table = [const { Vec::new() }; 1 << 5];
        for pattern in patterns.iter().filter(|pattern| pattern.has_two_variables()) {
            let (first, second) = (pattern.of_thread(1), pattern.of_thread(2));
            let (&[a, b], &[c, d]) = (&first[..], &second[..]) else { continue };
            let events = [a, b, c, d].map(|at| pattern.events[at]);
            // The first access of the first thread determines which variable is x.
            if events[0].variable == 0 {
                let writes = events.map(|event| event.writes);
                table[index(writes, events[2].variable == 1)].push([a, b, c, d]);
            }
        }
        Self(table)
    }

    /// The positions of the accesses in each pattern that they match; `crossed` if the second
    /// thread accesses the second variable first.
    fn matching(&self, kinds: [AccessKind; 4], crossed: bool) -> &[[usize; 4]] {
        &self.0[index(kinds.map(AccessKind::writes), crossed)]
    }
}

fn index(writes: [bool; 4], crossed: bool) -> usize {
    let bits = writes.into_iter().chain([crossed]);
    bits.fold(0, |index, bit| index << 1 | usize::from(bit))
}

fn match_coupled(found: &mut Found<'_>, places: [usize; 4], one: &CoupledPair, two: &CoupledPair) {
    let unit = one.unit.min(two.unit);
    let rank = match unit {
        Unit::Section => 5,
        Unit::Activation => 7,
        Unit::Caller => 12,
        Unit::Thread => 22,
    };
    let classes: &AccessClasses = &found.model.classes;
    for first in both(one) {
        for second in both(two) {
            let (a, b) =
                (first.witnesses(one.addrs, classes), second.witnesses(two.addrs, classes));
            let way = interleaved(places, a, b);
            if same_generations(found, &way)
                && found.possible(&way)
                && apart(found, places, &way, [first.kept, second.kept])
                && !way.iter().any(|event| is_lock_word(found.model, event))
            {
                found.add(AnomalyKind::MultiVariable, &way, unit, rank);
            }
        }
    }
}

/// Whether the threads access the same variables, and not others that had the same addresses.
fn same_generations(found: &Found<'_>, way: &[Witness]) -> bool {
    let generations = &found.model.generations;
    way.iter().enumerate().all(|(at, one)| {
        let mut others = way[at + 1..].iter().filter(|other| other.addr == one.addr);
        others.all(|other| generations.same(one.addr, one.seq, other.seq))
    })
}

/// The first occurrence, and the last if it differs.
fn both(coupled: &CoupledPair) -> impl Iterator<Item = &Pair> {
    let CoupledPair { first, last, .. } = coupled;
    let n = 1 + usize::from(first.seqs() != last.seqs());
    [first, last].into_iter().take(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::built_in;
    use crate::predict::predict;
    use crate::scan::tests::read;

    #[test]
    fn of_many_alike_the_first_and_the_last_are_kept() {
        let half = ALIKE_MAX / 2;
        let kept = thinned((0..1000).collect(), |number: u64| [Pc(number % 2), Pc(0)]);
        let of_one: Vec<_> = kept.iter().filter(|&&number| number % 2 == 1).collect();
        assert_eq!(of_one.len(), ALIKE_MAX);
        assert_eq!(
            (*of_one[half - 1], *of_one[half]),
            (2 * half as u64 - 1, 1001 - 2 * half as u64)
        );
        assert_eq!(thinned((0..ALIKE_MAX).collect(), |_| [Pc(0); 2]).len(), ALIKE_MAX);
    }

    /// The patterns of two variables that so many threads imply which all do the same.
    fn patterns(n_threads: usize) -> Vec<String> {
        let mut text = String::new();
        for thread in 1..=n_threads {
            text += &format!("T0 spawn T{thread}\n");
        }
        text += "a: T0 write x\n b: T0 write y\n";
        for thread in 1..=n_threads {
            text += &format!("c: T{thread} read x\n d: T{thread} write y\n");
        }
        let (_, model) = read(&text);
        let anomalies = predict(&model, &built_in());
        let of_two = anomalies.iter().filter(|one| one.kind == AnomalyKind::MultiVariable);
        let mut patterns: Vec<_> = of_two.map(|one| one.pattern.clone()).collect();
        patterns.sort();
        patterns
    }

    #[test]
    fn more_threads_that_do_the_same_imply_nothing_else() {
        assert!(!patterns(3).is_empty());
        assert_eq!(patterns(3 * ALIKE_MAX), patterns(3));
    }
}
