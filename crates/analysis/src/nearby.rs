//! Accesses of one thread to two different locations that belong together: what
//! violations of two variables are made of.
//!
//! Each access to shared memory is paired with the few before it in its thread that belong
//! to the same unit. Pairs with the same two sites are kept for a few pairs of locations.

use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::FxHashMap;

use crate::accesses::{Pair, Past, Unit};
use crate::kinds::Site;
use crate::recent::{Recent, mix};

/// How far back an access is paired.
const WINDOW: usize = 8;
/// Pairs of locations per pair of sites.
const PLACES_MAX: usize = 12;

/// Pairs of sites. When there are more, those that belong together by nothing but their
/// thread are left out, and no others are added: random pairs of sites would need gigabytes.
const SITES_MAX: usize = 1 << 16;

/// Two accesses of a thread to two locations.
#[derive(Clone, Copy, Debug)]
pub struct Couple {
    /// The first time.
    pub first: Pair,
    /// The last time.
    pub last: Pair,
    /// How closely they belong together.
    pub unit: Unit,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Nearby {
    /// By thread, the oldest first.
    windows: Vec<Vec<Recent>>,
    by_sites: FxHashMap<(Site, Site), u32>,
    places: Vec<Places>,
}

/// Couples of two sites.
#[derive(Debug, Default)]
struct Places {
    /// Of each of the couples: what is searched, so it is small.
    /// invariant: as many as there are couples, then zeros.
    tags: [u16; PLACES_MAX],
    couples: Vec<Couple>,
}

impl Nearby {
    /// Takes an access to shared memory.
    #[inline]
    pub(crate) fn push(&mut self, new: &Recent, past: &impl Past) {
        let Self { windows, by_sites, places } = self;
        let window = window(windows, new.thread);
        let full = places.len() >= SITES_MAX;
        for old in window.iter() {
            if old.overlaps(new) || full && past.unit(old) == Unit::Thread {
                continue;
            }
            let key = (old.site, new.site);
            let at = if full {
                let Some(at) = by_sites.get(&key) else { continue };
                *at
            } else {
                *by_sites.entry(key).or_insert_with(|| {
                    places.push(Places::default());
                    places.len() as u32 - 1
                })
            };
            places[at as usize].note(old, new, past);
        }
        let again = |old: &Recent| (old.site, old.addr) == (new.site, new.addr);
        if let Some(at) = window.iter().position(again) {
            window.remove(at);
        } else if window.len() == WINDOW {
            window.remove(0);
        }
        window.push(*new);
    }

    /// All couples, in an order that is the same every time.
    #[must_use]
    pub(crate) fn finish(self) -> Vec<Couple> {
        let mut couples: Vec<_> =
            self.places.into_iter().flat_map(|places| places.couples).collect();
        couples.sort_unstable_by_key(|couple| {
            let [one, two] = couple.first.occurrences;
            (two.seq, one.seq)
        });
        couples
    }
}

fn window(windows: &mut Vec<Vec<Recent>>, thread: ThreadId) -> &mut Vec<Recent> {
    let index = thread.0 as usize;
    if windows.len() <= index {
        windows.resize_with(index + 1, || Vec::with_capacity(WINDOW));
    }
    &mut windows[index]
}

impl Places {
    #[inline]
    fn note(&mut self, old: &Recent, new: &Recent, past: &impl Past) {
        let addrs: [Addr; 2] = [old.addr, new.addr];
        let tag = mix(old.addr.0, new.addr.0);
        let n = self.couples.len();
        let any = self.tags.iter().fold(false, |any, &other| any | (other == tag));
        let is = |at: &usize| self.tags[*at] == tag && self.couples[*at].first.addrs == addrs;
        let known = if any { (0..n).find(is) } else { None };
        if known.is_none() && n == PLACES_MAX {
            return;
        }
        let occurrences = [old.occurrence, new.occurrence];
        let pair = Pair { addrs, occurrences, kept: past.kept(old) };
        match known {
            Some(at) => self.couples[at].last = pair,
            None => {
                self.tags[n] = tag;
                self.couples.push(Couple { first: pair, last: pair, unit: past.unit(old) });
            }
        }
    }
}
