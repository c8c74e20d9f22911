//! Anomalies found so far, each once by its sites, with a few ways to reach it.

use raddle_trace::id::Pc;
use rustc_hash::FxHashMap;

use crate::accesses::Unit;
use crate::anomaly::{Anomaly, AnomalyKind};
use crate::classes::ClassId;
use crate::locks::LockSet;
use crate::model::Model;
use crate::witness::{AccessKind, Witness};

/// Maximum number of ways kept per anomaly.
const WAYS_MAX: usize = 4;

/// Rank of an anomaly that an atomic store and a load of it would rule out.
const WEAK_RANK: u32 = 12;

/// The anomalies found so far.
pub(super) struct Found<'a> {
    pub(super) model: &'a Model,
    pub(super) anomalies: Vec<Anomaly>,
    by_sites: FxHashMap<(AnomalyKind, Sites), usize>,
    sites: FxHashMap<(AccessKind, Pc), Site>,
    by_class: Vec<Site>,
    exclusions: Exclusions,
}

/// Kind and code address of an event, numbered from 1.
pub(super) type Site = u32;

/// The sites of an anomaly in order, padded with zeros.
pub(super) type Sites = [Site; EVENTS_MAX];

/// Maximum number of events of an anomaly; the longest are lock cycles.
pub(super) const EVENTS_MAX: usize = 5;

impl<'a> Found<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let mut found = Self {
            model,
            anomalies: Vec::new(),
            by_sites: FxHashMap::default(),
            sites: FxHashMap::default(),
            by_class: Vec::new(),
            exclusions: Exclusions::new(model.locks.n_sets()),
        };
        found.by_class =
            model.classes.all().map(|class| found.site_of(class.kind, class.pc)).collect();
        found
    }

    /// The site of an access class.
    pub(super) fn site(&self, class: ClassId) -> Site {
        self.by_class[class.0 as usize]
    }

    /// Number of sites, which is also the largest site.
    pub(super) fn n_sites(&self) -> usize {
        self.sites.len()
    }

    fn site_of(&mut self, kind: AccessKind, pc: Pc) -> Site {
        let next = self.sites.len() as Site + 1;
        *self.sites.entry((kind, pc)).or_insert(next)
    }

    /// Whether two lock sets exclude each other.
    #[inline]
    pub(super) fn exclude(&mut self, a: LockSet, b: LockSet) -> bool {
        if a == LockSet::NONE || b == LockSet::NONE {
            return false;
        }
        self.exclusions.ask(self.model, a, b)
    }

    /// The anomaly with these sites, if it has been found.
    pub(super) fn known(&self, kind: AnomalyKind, sites: Sites) -> Option<&Anomaly> {
        self.by_sites.get(&(kind, sites)).map(|&at| &self.anomalies[at])
    }

    /// Adds a way to reach an anomaly, and the anomaly if it is new. Returns whether that changed
    /// anything.
    pub(super) fn add(
        &mut self,
        kind: AnomalyKind,
        way: &[Witness],
        unit: Unit,
        rank: u32,
    ) -> bool {
        let observed = kind != AnomalyKind::Deadlock && way.is_sorted_by_key(|event| event.seq);
        let weak = |(at, later): (usize, &Witness)| {
            way[..at].iter().any(|earlier| {
                earlier.thread != later.thread && self.model.weak.before(later.weak, earlier.weak)
            })
        };
        let rank = rank + if way.iter().enumerate().any(weak) { WEAK_RANK } else { 0 };
        let mut sites = [0; EVENTS_MAX];
        for (site, event) in sites.iter_mut().zip(way) {
            *site = self.site_of(event.kind, event.pc);
        }
        let at = *self.by_sites.entry((kind, sites)).or_insert(self.anomalies.len());
        let Some(known) = self.anomalies.get_mut(at) else {
            let (pattern, ways) = (Anomaly::pattern_of(way), vec![way.to_vec()]);
            self.anomalies.push(Anomaly { kind, pattern, ways, unit, observed, rank });
            return true;
        };
        let mut news = observed && !known.observed || unit > known.unit;
        known.observed |= observed;
        known.unit = known.unit.max(unit);
        if rank < known.rank {
            known.rank = rank;
            known.ways.insert(0, way.to_vec());
            known.ways.truncate(WAYS_MAX);
            news = true;
        } else if known.ways.len() < WAYS_MAX {
            known.ways.push(way.to_vec());
            news = true;
        }
        news
    }

    /// Whether nothing rules this order out, and the order is not inevitable.
    pub(super) fn possible(&self, way: &[Witness]) -> bool {
        let before = |a: &Witness, b: &Witness| {
            a.thread == b.thread || self.model.order.before(a.moment, b.moment)
        };
        let inevitable = way.windows(2).all(|pair| before(&pair[0], &pair[1]));
        !inevitable
            && way.iter().enumerate().all(|(at, later)| {
                way[..at].iter().all(|earlier| {
                    earlier.thread == later.thread
                        || !self.model.order.before(later.moment, earlier.moment)
                })
            })
    }
}

/// Whether one more way that was not observed would change nothing. `rank` is a lower bound of
/// its rank.
pub(super) fn is_enough(known: Option<&Anomaly>, unit: Unit, rank: u32) -> bool {
    known.is_some_and(|known| {
        known.ways.len() == WAYS_MAX && rank >= known.rank && unit <= known.unit
    })
}

/// Which lock sets exclude each other, as far as asked.
struct Exclusions {
    n_sets: usize,
    /// By both sets; empty if there are too many sets.
    known: Vec<Option<bool>>,
}

/// Maximum number of pairs of lock sets that are cached.
const PAIRS_MAX: usize = 1 << 22;

impl Exclusions {
    fn new(n_sets: usize) -> Self {
        let n = n_sets * n_sets;
        Self { n_sets, known: if n <= PAIRS_MAX { vec![None; n] } else { Vec::new() } }
    }

    #[inline]
    fn ask(&mut self, model: &Model, a: LockSet, b: LockSet) -> bool {
        match self.known.get_mut(a.0 as usize * self.n_sets + b.0 as usize) {
            Some(known) => *known.get_or_insert_with(|| model.exclude(a, b)),
            None => model.exclude(a, b),
        }
    }
}
