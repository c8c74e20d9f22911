//! Accesses of one thread to two different locations that belong together: what
//! violations of two variables are made of.
//!
//! Each access to shared memory is paired with the few before it in its thread that belong
//! to the same unit. Pairs with the same two sites are kept for a few pairs of locations.

use std::collections::VecDeque;

use raddle_trace::id::{Pc, ThreadId};
use rustc_hash::FxHashMap;

use crate::accesses::Unit;
use crate::sharing::GRANULE_BITS;
use crate::witness::Witness;

/// How far back an access is paired.
const WINDOW: usize = 8;
/// Pairs of locations per pair of sites.
const PLACES_MAX: usize = 12;

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
    couples: FxHashMap<(ThreadId, Pc, Pc), Vec<Couple>>,
}

impl Nearby {
    /// Takes an access to shared memory.
    pub fn push(&mut self, new: &Witness, unit: impl Fn(&Witness) -> Unit) {
        let window = self.windows.entry(new.thread).or_default();
        let granule = new.addr.0 >> GRANULE_BITS;
        for old in window.iter() {
            if old.overlaps(new) {
                continue;
            }
            let couples = self.couples.entry((new.thread, old.pc, new.pc)).or_default();
            let pair = [*old, *new];
            let known = couples.iter().position(|couple| {
                couple.last[0].addr == old.addr && couple.last[1].addr == new.addr
            });
            match known {
                Some(at) => couples[at].last = pair,
                None if couples.len() < PLACES_MAX => {
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
        let mut couples: Vec<_> = self.couples.into_values().flatten().collect();
        couples.sort_unstable_by_key(|couple| (couple.first[1].seq, couple.first[0].seq));
        couples
    }
}
