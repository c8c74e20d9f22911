//! Two accesses in the other order: races, and order violations.

use super::found::{EVENTS_MAX, Found, Site, Sites, is_enough};
use super::is_lock_word;
use super::view::{One, View};
use crate::accesses::Unit;
use crate::anomaly::AnomalyKind;
use crate::pattern::{Pattern, PatternKind};
use crate::witness::{Deed, Witness};

/// Which of two accesses writes, of each race that is looked for.
pub(super) struct Races(Vec<[bool; 2]>);

impl Races {
    pub(super) fn of(patterns: &[Pattern]) -> Self {
        let races = patterns.iter().filter(|pattern| pattern.kind == PatternKind::Race);
        Self(races.map(|race| [race.events[0].writes, race.events[1].writes]).collect())
    }
}

/// How promising a race is.
const RACE_RANK: u32 = 4;

/// What is known of two sites, with a lock that keeps their accesses apart or without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// Not asked yet, or not since something was found.
    Anew,
    /// Nothing new can come of them.
    Skip,
    /// Something may.
    Look,
}

/// Finds what can come of two accesses of a location.
pub(super) fn orders(found: &mut Found<'_>, view: &View<'_>, races: &Races) {
    let begin = view.ones.iter().map(|one| one.seqs[0]).min().unwrap_or(0);
    let n = view.sites.len();
    let mut asked = vec![Ask::Anew; n * n * 2];
    for (at, one) in view.ones.iter().enumerate() {
        for two in &view.ones[at + 1..] {
            if one.thread == two.thread
                || !(one.deed.writes() || two.deed.writes())
                || !one.span.overlaps(two.span)
            {
                continue;
            }
            let excluded = found.exclude(one.locks, two.locks);
            let slot = (one.site as usize * n + two.site as usize) * 2 + usize::from(excluded);
            let is_first = one.seqs[0] == begin || two.seqs[0] == begin;
            if !is_first {
                if asked[slot] == Ask::Anew {
                    let sites = [one, two].map(|one| view.sites[one.site as usize]);
                    let settled = settled(found, races, [one.deed, two.deed], sites, excluded);
                    asked[slot] = if settled { Ask::Skip } else { Ask::Look };
                }
                if asked[slot] == Ask::Skip {
                    continue;
                }
            }
            if both_orders(found, races, one, two, begin, excluded) {
                // The other way round it is another slot.
                let other = (two.site as usize * n + one.site as usize) * 2 + usize::from(excluded);
                (asked[slot], asked[other]) = (Ask::Anew, Ask::Anew);
            }
        }
    }
}

/// Whether nothing new can come of two sites, in neither order.
fn settled(
    found: &Found<'_>,
    races: &Races,
    deeds: [Deed; 2],
    sites: [Site; 2],
    excluded: bool,
) -> bool {
    [[0, 1], [1, 0]].into_iter().all(|[earlier, later]| {
        match kind(races, deeds[earlier], deeds[later], excluded, false) {
            None => true,
            Some((kind, rank)) => {
                let known = found.known(kind, sites_of(sites[later], sites[earlier]));
                is_enough(known, Unit::Thread, rank)
            }
        }
    })
}

fn sites_of(later: Site, earlier: Site) -> Sites {
    let mut sites = [0; EVENTS_MAX];
    [sites[0], sites[1]] = [later, earlier];
    sites
}

/// Looks at all occurrences, and tells whether anything new came of them.
fn both_orders(
    found: &mut Found<'_>,
    races: &Races,
    one: &One<'_>,
    two: &One<'_>,
    begin: u64,
    excluded: bool,
) -> bool {
    let kinds = &found.model.kinds;
    let mut added = false;
    for a in one.witnesses(kinds) {
        for b in two.witnesses(kinds) {
            let (earlier, later) = if a.seq < b.seq { (a, b) } else { (b, a) };
            added |= order(found, races, &earlier, &later, begin, excluded);
        }
    }
    added
}

fn order(
    found: &mut Found<'_>,
    races: &Races,
    earlier: &Witness,
    later: &Witness,
    begin: u64,
    excluded: bool,
) -> bool {
    let is_first = earlier.seq == begin;
    let kind = kind(races, earlier.deed, later.deed, excluded, is_first);
    let Some((kind, rank)) = kind else { return false };
    let way = [*later, *earlier];
    found.possible(&way)
        && !is_lock_word(found.model, earlier)
        && found.add(kind, &way, Unit::Thread, rank)
}

/// What it is if two accesses come in the other order, and how promising. `is_first` if the
/// earlier one is the first of all at its location.
fn kind(
    races: &Races,
    earlier: Deed,
    later: Deed,
    excluded: bool,
    is_first: bool,
) -> Option<(AnomalyKind, u32)> {
    let ends = |deed| matches!(deed, Deed::Free | Deed::Destroy);
    match (earlier, later) {
        // Two ends, or an end before a use.
        (_, deed) if ends(deed) => Some((AnomalyKind::Order, 2)),
        // An end that was seen before a use is not one that can be moved behind it.
        (deed, _) if ends(deed) => None,
        // Whoever gives a lock back has taken it.
        (Deed::Init, Deed::Release) => None,
        (Deed::Init, _) => Some((AnomalyKind::Order, 4)),
        (_, Deed::Init) => None,
        (one, two) if one.is_of_object() || two.is_of_object() => None,
        (one, two) if one.writes() && !two.writes() && is_first => {
            Some((AnomalyKind::Order, if excluded { 8 } else { 2 }))
        }
        (one, two) if excluded => {
            (one.writes() && !two.writes()).then_some((AnomalyKind::Order, 14))
        }
        (one, two) if one.is_atomic() && two.is_atomic() => Some((AnomalyKind::Order, 10)),
        (one, two) => {
            let races = races.0.contains(&[two.writes(), one.writes()]);
            races.then_some((AnomalyKind::Race, RACE_RANK))
        }
    }
}
