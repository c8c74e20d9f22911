//! Patterns of two variables.

use rustc_hash::FxHashSet;

use super::found::Found;
use super::four::{apart, interleaved};
use super::is_lock_word;
use crate::accesses::{Pair, Unit};
use crate::anomaly::AnomalyKind;
use crate::kinds::Kinds;
use crate::nearby::Couple;
use crate::pattern::Pattern;
use crate::witness::Deed;

/// Finds what patterns of two variables match.
pub(super) fn couples(found: &mut Found<'_>, patterns: &[Pattern]) {
    let patterns = Patterns::of(patterns);
    let couples = &found.model.couples;
    let place = |couple: &Couple| {
        let [a, b] = couple.addrs;
        if a < b { (a, b) } else { (b, a) }
    };
    let mut sorted: Vec<_> = couples.iter().map(|couple| (place(couple), couple)).collect();
    // Stable: couples of the same two locations stay in the order of the trace.
    sorted.sort_by_key(|(place, _)| *place);
    let mut tried = FxHashSet::default();
    for here in sorted.chunk_by(|(one, _), (two, _)| one == two) {
        for (_, one) in here {
            for (_, two) in here {
                let kinds = &found.model.kinds;
                let of = |couple: &Couple| couple.first.kinds().map(|kind| kinds.kind(kind));
                let ([a, b], [c, d]) = (of(one), of(two));
                if a.thread != c.thread
                    && tried.insert((a.pc, b.pc, c.pc, d.pc, a.thread, c.thread))
                {
                    let deeds = [a.deed, b.deed, c.deed, d.deed];
                    let crossed = two.addrs[0] != one.addrs[0];
                    for &places in patterns.matching(deeds, crossed) {
                        match_couples(found, places, one, two);
                    }
                }
            }
        }
    }
}

/// Patterns of two variables, by what tells which of them match.
struct Patterns([Vec<[usize; 4]>; 1 << 5]);

impl Patterns {
    fn of(patterns: &[Pattern]) -> Self {
        let mut table = [const { Vec::new() }; 1 << 5];
        for pattern in patterns.iter().filter(|pattern| pattern.has_two_variables()) {
            let (first, second) = (pattern.of_thread(1), pattern.of_thread(2));
            let (&[a, b], &[c, d]) = (&first[..], &second[..]) else { continue };
            let events = [a, b, c, d].map(|at| pattern.events[at]);
            // The first access of the first thread says which variable is x.
            if events[0].variable == 0 {
                let writes = events.map(|event| event.writes);
                table[index(writes, events[2].variable == 1)].push([a, b, c, d]);
            }
        }
        Self(table)
    }

    /// The places of accesses in each pattern that they match; `crossed` if the second thread
    /// comes to the second variable first.
    fn matching(&self, deeds: [Deed; 4], crossed: bool) -> &[[usize; 4]] {
        &self.0[index(deeds.map(Deed::writes), crossed)]
    }
}

fn index(writes: [bool; 4], crossed: bool) -> usize {
    let bits = writes.into_iter().chain([crossed]);
    bits.fold(0, |index, bit| index << 1 | usize::from(bit))
}

fn match_couples(found: &mut Found<'_>, places: [usize; 4], one: &Couple, two: &Couple) {
    let unit = one.unit.min(two.unit);
    let rank = match unit {
        Unit::Section => 5,
        Unit::Activation => 7,
        Unit::Caller => 12,
        Unit::Thread => 22,
    };
    let kinds: &Kinds = &found.model.kinds;
    for first in both(one) {
        for second in both(two) {
            let (a, b) = (first.witnesses(one.addrs, kinds), second.witnesses(two.addrs, kinds));
            let way = interleaved(places, a, b);
            if found.possible(&way)
                && apart(found, places, &way, [first.kept, second.kept])
                && !way.iter().any(|event| is_lock_word(found.model, event))
            {
                found.add(AnomalyKind::MultiVariable, &way, unit, rank);
            }
        }
    }
}

/// The first time, and the last one if there are two.
fn both(couple: &Couple) -> impl Iterator<Item = &Pair> {
    let Couple { first, last, .. } = couple;
    let n = 1 + usize::from(first.seqs() != last.seqs());
    [first, last].into_iter().take(n)
}
