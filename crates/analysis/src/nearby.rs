//! Accesses of one thread to two different locations that belong together: what
//! violations of two variables are made of.
//!
//! Each access to shared memory is paired with the few before it in its thread that belong
//! to the same unit. Pairs with the same two sites are kept for a few pairs of locations.

use std::collections::VecDeque;

use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::FxHashMap;

use crate::accesses::Unit;
use crate::sharing::GRANULE_BITS;
use crate::witness::Witness;

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
    pub first: [Witness; 2],
    /// The last time.
    pub last: [Witness; 2],
    /// How closely they belong together.
    pub unit: Unit,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Nearby {
    windows: FxHashMap<ThreadId, VecDeque<Witness>>,
    couples: FxHashMap<(ThreadId, Pc, Pc), Places>,
}

/// Couples of two sites.
#[derive(Debug, Default)]
struct Places {
    /// Where each of the couples is; apart from them, since this is what is searched.
    addrs: Vec<[Addr; 2]>,
    couples: Vec<Couple>,
}

impl Nearby {
    /// Takes an access to shared memory.
    pub fn push(&mut self, new: &Witness, unit: impl Fn(&Witness) -> Unit) {
        let window = self.windows.entry(new.thread).or_default();
        let granule = new.addr.0 >> GRANULE_BITS;
        let full = self.couples.len() >= SITES_MAX;
        for old in window.iter() {
            if old.overlaps(new) {
                continue;
            }
            let key = (new.thread, old.pc, new.pc);
            let places = if !full {
                self.couples.entry(key).or_default()
            } else if unit(old) == Unit::Thread {
                continue;
            } else {
                let Some(places) = self.couples.get_mut(&key) else { continue };
                places
            };
            let Places { addrs, couples } = places;
            let here = [old.addr, new.addr];
            match addrs.iter().position(|addrs| *addrs == here) {
                Some(at) => couples[at].last = [*old, *new],
                None if addrs.len() < PLACES_MAX => {
                    let pair = [*old, *new];
                    addrs.push(here);
                    couples.push(Couple { first: pair, last: pair, unit: unit(old) });
                }
                None => {}
            }
        }
        window.retain(|old| {
            old.addr.0 >> GRANULE_BITS != granule || old.pc != new.pc || old.addr != new.addr
        });
        if window.len() == WINDOW {
            window.pop_front();
        }
        window.push_back(*new);
    }

    /// All couples, in an order that is the same every time.
    #[must_use]
    pub fn finish(self) -> Vec<Couple> {
        let mut couples: Vec<_> =
            self.couples.into_values().flat_map(|places| places.couples).collect();
        couples.sort_unstable_by_key(|couple| (couple.first[1].seq, couple.first[0].seq));
        couples
    }
}
