//! Patterns of one variable.

use super::found::{EVENTS_MAX, Found, Sites, is_enough};
use super::four::{apart, interleaved};
use super::view::{DoubleView, SingleView, View, pairs};
use super::{fits, is_lock_word};
use crate::accesses::Unit;
use crate::anomaly::{Anomaly, AnomalyKind};
use crate::pattern::Pattern;
use crate::stop::unless_stopped;
use crate::witness::AccessKind;

/// Finds the matches of a one-variable pattern at a location.
pub(super) fn atomicity(found: &mut Found<'_>, view: &View<'_>, pattern: &Pattern) {
    let (mut first, mut second) = (pattern.of_thread(1), pattern.of_thread(2));
    if first.len() < second.len() {
        std::mem::swap(&mut first, &mut second);
    }
    match (&first[..], &second[..]) {
        (&[one, two], &[other]) => match_three(found, view, pattern, [one, two, other]),
        (&[one, two], &[three, other]) => {
            match_four(found, view, pattern, [one, two, three, other])
        }
        _ => {}
    }
}

/// What is known of three sites: for each unit, whether another way that was not observed would
/// change nothing; and whether the order was observed.
#[derive(Clone, Copy, Default)]
struct Known {
    asked: bool,
    observed: bool,
    enough: [bool; 4],
}

impl Known {
    fn new(anomaly: Option<&Anomaly>, kinds: [AccessKind; 3]) -> Self {
        let units = [Unit::Thread, Unit::Caller, Unit::Activation, Unit::Section];
        let enough = units.map(|unit| is_enough(anomaly, unit, rank(kinds, unit)));
        Self { asked: true, observed: anomaly.is_some_and(|anomaly| anomaly.observed), enough }
    }
}

/// Matches two accesses of one thread and one of another, at these positions of the pattern.
fn match_three(found: &mut Found<'_>, view: &View<'_>, pattern: &Pattern, places: [usize; 3]) {
    let writes = places.map(|at| pattern.events[at].writes);
    let others: Vec<_> = view.singles.iter().filter(|one| fits(writes[2], one.kind)).collect();
    if others.is_empty() {
        return;
    }
    let n_sites = view.sites.len();
    let mut known = vec![Known::default(); view.pairs.len() * n_sites];
    for (at, two) in unless_stopped(view.doubles.iter().enumerate()) {
        if !fits(writes[0], two.kinds[0]) || !fits(writes[1], two.kinds[1]) {
            continue;
        }
        for &other in &others {
            if other.thread == two.thread
                || !other.span.overlaps(two.spans[0])
                || !other.span.overlaps(two.spans[1])
            {
                continue;
            }
            // A lock held from one access to the other keeps out threads that need it.
            let between = places[0] < places[2] && places[2] < places[1];
            let apart = two.kept.map(|kept| !between || !found.exclude(kept, other.locks));
            if apart == [false, false] {
                continue;
            }
            let slot = &mut known[two.pair as usize * n_sites + other.site as usize];
            let kinds = [two.kinds[0], two.kinds[1], other.kind];
            if !slot.asked {
                let [a, b] = view.pairs[two.pair as usize];
                let sites = in_order(places, [a, b, view.sites[other.site as usize]]);
                *slot = Known::new(found.known(AnomalyKind::Atomicity, sites), kinds);
            }
            let enough = slot.enough[two.unit as usize];
            if enough && (slot.observed || !was_seen(places, two, other)) {
                continue;
            }
            for (number, pair) in pairs(&view.cell.doubles[at], &found.model.classes) {
                for other in other.witnesses(&found.model.classes) {
                    let way = in_order_of(places, [pair[0], pair[1], other]);
                    if apart[number] && found.possible(&way) && !is_lock_word(found.model, &way[0])
                    {
                        let rank = rank(kinds, two.unit);
                        let news = found.add(AnomalyKind::Atomicity, &way, two.unit, rank);
                        slot.asked &= !news;
                    }
                }
            }
        }
    }
}

/// Whether some occurrences happened in the order of the pattern.
fn was_seen(places: [usize; 3], two: &DoubleView, other: &SingleView<'_>) -> bool {
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

/// Matches two accesses of each of two threads, at these positions of the pattern.
fn match_four(found: &mut Found<'_>, view: &View<'_>, pattern: &Pattern, places: [usize; 4]) {
    let writes = places.map(|at| pattern.events[at].writes);
    let fit = |two: &DoubleView, writes: [bool; 2]| {
        fits(writes[0], two.kinds[0]) && fits(writes[1], two.kinds[1])
    };
    let doubles = || view.doubles.iter().zip(&view.cell.doubles);
    let ones = doubles().filter(|(one, _)| fit(one, [writes[0], writes[1]]));
    for (one, first) in unless_stopped(ones) {
        for (two, second) in doubles().filter(|(two, _)| fit(two, [writes[2], writes[3]])) {
            if one.thread == two.thread || !one.spans[0].overlaps(two.spans[0]) {
                continue;
            }
            let unit = one.unit.min(two.unit);
            for (a, first) in pairs(first, &found.model.classes) {
                for (b, second) in pairs(second, &found.model.classes) {
                    let kept = [one.kept[a], two.kept[b]];
                    let way = interleaved(places, first, second);
                    if found.possible(&way)
                        && apart(found, places, &way, kept)
                        && !is_lock_word(found.model, &way[0])
                    {
                        let rank = rank(way.map(|event| event.kind), unit);
                        found.add(AnomalyKind::Atomicity, &way, unit, rank);
                    }
                }
            }
        }
    }
}

/// How promising a violation by such events is; lower is better.
fn rank<const N: usize>(kinds: [AccessKind; N], unit: Unit) -> u32 {
    // Atomic operations are usually intended as they are.
    let n_atomic = kinds.iter().filter(|kind| kind.is_atomic()).count() as u32;
    n_atomic
        + match unit {
            Unit::Section => 1,
            Unit::Activation => 2,
            Unit::Caller => 6,
            Unit::Thread => 16,
        }
}
