//! Patterns of one variable.

use super::found::{EVENTS_MAX, Found, Sites, is_enough};
use super::four::{apart, interleaved};
use super::view::{One, Two, View, pairs};
use super::{fits, is_lock_word};
use crate::accesses::Unit;
use crate::anomaly::{Anomaly, AnomalyKind};
use crate::pattern::Pattern;
use crate::witness::Deed;

/// Finds what a pattern of one variable matches at a location.
pub(super) fn atomicity(found: &mut Found<'_>, view: &View<'_>, pattern: &Pattern) {
    let (mut first, mut second) = (pattern.of_thread(1), pattern.of_thread(2));
    if first.len() < second.len() {
        std::mem::swap(&mut first, &mut second);
    }
    match (&first[..], &second[..]) {
        (&[one, two], &[other]) => three(found, view, pattern, [one, two, other]),
        (&[one, two], &[three, other]) => four(found, view, pattern, [one, two, three, other]),
        _ => {}
    }
}

/// What is known of three sites: for each unit whether another way would change nothing, if
/// it was not seen to happen; and whether that was seen.
#[derive(Clone, Copy, Default)]
struct Known {
    asked: bool,
    observed: bool,
    enough: [bool; 4],
}

impl Known {
    fn of(anomaly: Option<&Anomaly>, deeds: [Deed; 3]) -> Self {
        let units = [Unit::Thread, Unit::Caller, Unit::Activation, Unit::Section];
        let enough = units.map(|unit| is_enough(anomaly, unit, rank(deeds, unit)));
        Self { asked: true, observed: anomaly.is_some_and(|anomaly| anomaly.observed), enough }
    }
}

/// Two accesses of one thread and one of another, at these places of the pattern.
fn three(found: &mut Found<'_>, view: &View<'_>, pattern: &Pattern, places: [usize; 3]) {
    let writes = places.map(|at| pattern.events[at].writes);
    let others: Vec<_> = view.ones.iter().filter(|one| fits(writes[2], one.deed)).collect();
    if others.is_empty() {
        return;
    }
    let n_sites = view.sites.len();
    let mut known = vec![Known::default(); view.pairs.len() * n_sites];
    for (at, two) in view.twos.iter().enumerate() {
        if !fits(writes[0], two.deeds[0]) || !fits(writes[1], two.deeds[1]) {
            continue;
        }
        for &other in &others {
            if other.thread == two.thread
                || !other.span.overlaps(two.spans[0])
                || !other.span.overlaps(two.spans[1])
            {
                continue;
            }
            // A lock that is held from the one to the other keeps out whoever needs it.
            let between = places[0] < places[2] && places[2] < places[1];
            let apart = two.kept.map(|kept| !between || !found.exclude(kept, other.locks));
            if apart == [false, false] {
                continue;
            }
            let slot = &mut known[two.pair as usize * n_sites + other.site as usize];
            let deeds = [two.deeds[0], two.deeds[1], other.deed];
            if !slot.asked {
                let [a, b] = view.pairs[two.pair as usize];
                let sites = in_order(places, [a, b, view.sites[other.site as usize]]);
                *slot = Known::of(found.known(AnomalyKind::Atomicity, sites), deeds);
            }
            let enough = slot.enough[two.unit as usize];
            if enough && (slot.observed || !was_seen(places, two, other)) {
                continue;
            }
            for (number, pair) in pairs(&view.cell.doubles[at], &found.model.kinds) {
                for other in other.witnesses(&found.model.kinds) {
                    let way = in_order_of(places, [pair[0], pair[1], other]);
                    if apart[number] && found.possible(&way) && !is_lock_word(found.model, &way[0])
                    {
                        let rank = rank(deeds, two.unit);
                        let news = found.add(AnomalyKind::Atomicity, &way, two.unit, rank);
                        slot.asked &= !news;
                    }
                }
            }
        }
    }
}

/// Whether some occurrences come in the order of the pattern.
fn was_seen(places: [usize; 3], two: &Two, other: &One<'_>) -> bool {
    two.seqs.iter().any(|&[a, b]| {
        other.seqs.iter().any(|&other| {
            if places == [0, 2, 1] {
                a <= other && other <= b
            } else {
                in_order_of(places, [a, b, other]).is_sorted()
            }
        })
    })
}

fn in_order_of<T: Copy>(places: [usize; 3], of: [T; 3]) -> [T; 3] {
    let mut ordered = of;
    for (place, value) in places.into_iter().zip(of) {
        ordered[place] = value;
    }
    ordered
}

fn in_order(places: [usize; 3], of: [u32; 3]) -> Sites {
    let mut sites = [0; EVENTS_MAX];
    sites[..3].copy_from_slice(&in_order_of(places, of));
    sites
}

/// Two accesses of each of two threads, at these places of the pattern.
fn four(found: &mut Found<'_>, view: &View<'_>, pattern: &Pattern, places: [usize; 4]) {
    let writes = places.map(|at| pattern.events[at].writes);
    let fit = |two: &Two, writes: [bool; 2]| {
        fits(writes[0], two.deeds[0]) && fits(writes[1], two.deeds[1])
    };
    let twos = || view.twos.iter().zip(&view.cell.doubles);
    for (one, first) in twos().filter(|(one, _)| fit(one, [writes[0], writes[1]])) {
        for (two, second) in twos().filter(|(two, _)| fit(two, [writes[2], writes[3]])) {
            if one.thread == two.thread || !one.spans[0].overlaps(two.spans[0]) {
                continue;
            }
            let unit = one.unit.min(two.unit);
            for (a, first) in pairs(first, &found.model.kinds) {
                for (b, second) in pairs(second, &found.model.kinds) {
                    let kept = [one.kept[a], two.kept[b]];
                    let way = interleaved(places, first, second);
                    if found.possible(&way)
                        && apart(found, places, &way, kept)
                        && !is_lock_word(found.model, &way[0])
                    {
                        let rank = rank(way.map(|event| event.deed), unit);
                        found.add(AnomalyKind::Atomicity, &way, unit, rank);
                    }
                }
            }
        }
    }
}

/// How promising a violation by such events is.
fn rank<const N: usize>(deeds: [Deed; N], unit: Unit) -> u32 {
    // Atomic operations are most often what they should be.
    let n_atomic = deeds.iter().filter(|deed| deed.is_atomic()).count() as u32;
    n_atomic
        + match unit {
            Unit::Section => 1,
            Unit::Activation => 2,
            Unit::Caller => 6,
            Unit::Thread => 16,
        }
}
