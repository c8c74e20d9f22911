//! Patterns of two variables.

use rustc_hash::FxHashSet;

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
        for (_, one) in unless_stopped(here.iter()) {
            for (_, two) in here {
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
