//! Two accesses in the opposite order: races and order violations.

use super::found::{EVENTS_MAX, Found, Site, Sites, is_enough};
use super::is_lock_word;
use super::view::{SingleView, View};
use crate::accesses::Unit;
use crate::anomaly::AnomalyKind;
use crate::pattern::{Pattern, PatternKind};
use crate::stop::unless_stopped;
use crate::witness::{AccessKind, Witness};

/// For each race pattern, which of the two accesses write.
pub(super) struct Races(Vec<[bool; 2]>);

impl Races {
    pub(super) fn new(patterns: &[Pattern]) -> Self {
        let races = patterns.iter().filter(|pattern| pattern.kind == PatternKind::Race);
        Self(races.map(|race| [race.events[0].writes, race.events[1].writes]).collect())
    }
}

/// Rank of a race.
const RACE_RANK: u32 = 4;

/// What is known of two sites, with or without a lock that excludes them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outlook {
    /// Not determined, or not since the last anomaly was found.
    Unknown,
    /// Nothing new can be found.
    Skip,
    /// Something new may be found.
    Check,
}

/// Finds races and order violations at a location.
pub(super) fn orders(found: &mut Found<'_>, view: &View<'_>, races: &Races) {
    let begin = view.singles.iter().map(|one| one.seqs[0]).min().unwrap_or(0);
    let n = view.sites.len();
    let mut outlooks = vec![Outlook::Unknown; n * n * 2];
    for (at, one) in unless_stopped(view.singles.iter().enumerate()) {
        for two in &view.singles[at + 1..] {
            if one.thread == two.thread
                || !(one.kind.writes() || two.kind.writes())
                || !one.span.overlaps(two.span)
            {
                continue;
            }
            let excluded = found.exclude(one.locks, two.locks);
            let slot = (one.site as usize * n + two.site as usize) * 2 + usize::from(excluded);
            let is_first = one.seqs[0] == begin || two.seqs[0] == begin;
            if !is_first {
                if outlooks[slot] == Outlook::Unknown {
                    let sites = [one, two].map(|one| view.sites[one.site as usize]);
                    let settled = settled(found, races, [one.kind, two.kind], sites, excluded);
                    outlooks[slot] = if settled { Outlook::Skip } else { Outlook::Check };
                }
                if outlooks[slot] == Outlook::Skip {
                    continue;
                }
            }
            if both_orders(found, races, one, two, begin, excluded) {
                // The opposite order has another slot.
                let other = (two.site as usize * n + one.site as usize) * 2 + usize::from(excluded);
                (outlooks[slot], outlooks[other]) = (Outlook::Unknown, Outlook::Unknown);
            }
        }
    }
}

/// Whether nothing new can be found for two sites, in either order.
fn settled(
    found: &Found<'_>,
    races: &Races,
    kinds: [AccessKind; 2],
    sites: [Site; 2],
    excluded: bool,
) -> bool {
    [[0, 1], [1, 0]].into_iter().all(|[earlier, later]| {
        match anomaly_kind(races, kinds[earlier], kinds[later], excluded, false) {
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

/// Tries all occurrences. Returns whether anything new was found.
fn both_orders(
    found: &mut Found<'_>,
    races: &Races,
    one: &SingleView<'_>,
    two: &SingleView<'_>,
    begin: u64,
    excluded: bool,
) -> bool {
    let classes = &found.model.classes;
    let mut added = false;
    for a in one.witnesses(classes) {
        for b in two.witnesses(classes) {
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
    let found_kind = anomaly_kind(races, earlier.kind, later.kind, excluded, is_first);
    let Some((kind, rank)) = found_kind else { return false };
    let way = [*later, *earlier];
    found.possible(&way)
        && !is_lock_word(found.model, earlier)
        && found.add(kind, &way, Unit::Thread, rank)
}

/// The kind and rank of the anomaly if two accesses swap. `is_first` if the earlier one is the
/// first access to its location.
fn anomaly_kind(
    races: &Races,
    earlier: AccessKind,
    later: AccessKind,
    excluded: bool,
    is_first: bool,
) -> Option<(AnomalyKind, u32)> {
    let ends = |kind| matches!(kind, AccessKind::Free | AccessKind::Destroy);
    match (earlier, later) {
        // Two frees, or a free before a use.
        (_, kind) if ends(kind) => Some((AnomalyKind::Order, 2)),
        // A free that preceded a use cannot be moved after it.
        (kind, _) if ends(kind) => None,
        // A thread that releases a lock has acquired it.
        (AccessKind::Init, AccessKind::Release) => None,
        (AccessKind::Init, _) => Some((AnomalyKind::Order, 4)),
        (_, AccessKind::Init) => None,
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
