//! Accesses of one thread to two different locations that belong together: the basis of
//! two-variable violations.
//!
//! Each access to shared memory is paired with the few accesses before it in its thread that
//! belong to the same unit. Pairs with the same two sites are kept for a few pairs of locations.

use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::FxHashMap;

use crate::accesses::{Pair, ThreadPast, Unit};
use crate::classes::Site;
use crate::recent::{Recent, mix};

/// How many earlier accesses an access is paired with.
const WINDOW: usize = 8;
/// Maximum number of location pairs per pair of sites.
const PLACES_MAX: usize = 12;

/// Maximum number of site pairs. Beyond it, pairs that have only their thread in common are
/// skipped and no pairs are added: random pairs of sites would need gigabytes.
const SITES_MAX: usize = 1 << 16;

/// Two accesses of a thread to two locations.
#[derive(Clone, Copy, Debug)]
pub struct CoupledPair {
    /// The first occurrence.
    pub first: Pair,
    /// The last occurrence.
    pub last: Pair,
    /// First bytes of the two accesses.
    pub addrs: [Addr; 2],
    /// How closely they belong together.
    pub unit: Unit,
}

/// Collects coupled pairs.
#[derive(Debug, Default)]
pub(crate) struct Nearby {
    /// Recent accesses by thread.
    windows: Vec<Window>,
    places: FxHashMap<(Site, Site), Places>,
    rows: Rows,
}

/// A thread's last accesses.
#[derive(Debug, Default)]
struct Window {
    accesses: Vec<Recent>,
    /// Indices of the accesses, oldest first, each once.
    order: Vec<u8>,
}

impl Window {
    /// From the oldest to the newest.
    #[inline]
    fn iter(&self) -> impl Iterator<Item = &Recent> {
        self.order.iter().map(|&at| &self.accesses[usize::from(at)])
    }

    /// Adds an access, replacing the same access if present, or else the oldest.
    #[inline]
    fn push(&mut self, new: &Recent) {
        let again = self.iter().position(|old| (old.site, old.addr) == (new.site, new.addr));
        if again.is_none() && self.order.len() < WINDOW {
            self.order.push(self.accesses.len() as u8);
            self.accesses.push(*new);
            return;
        }
        self.order[again.unwrap_or(0)..].rotate_left(1);
        if let Some(&at) = self.order.last() {
            self.accesses[usize::from(at)] = *new;
        }
    }
}

/// The coupled pairs of two sites: a row of [`Rows`].
#[derive(Clone, Copy, Debug)]
struct Places {
    row: u32,
    n: u8,
    /// A tag for each coupled pair, so that most lookups that fail need not read the pairs.
    tags: [u16; PLACES_MAX],
}

/// Coupled pairs in rows of [`PLACES_MAX`], split into the parts that are used together.
#[derive(Debug, Default)]
struct Rows {
    n: u32,
    addrs: Vec<[Addr; 2]>,
    lasts: Vec<Pair>,
    /// Position and first occurrence of each coupled pair, in order of appearance.
    firsts: Vec<(u32, Unit, Pair)>,
}

impl Nearby {
    /// Adds an access to shared memory.
    #[inline]
    pub(crate) fn push(&mut self, new: &Recent, past: &impl ThreadPast) {
        let Self { windows, places, rows } = self;
        let window = window(windows, new.thread);
        let full = places.len() >= SITES_MAX;
        for old in window.iter() {
            if old.overlaps(new) || full && past.unit(&old.mark) == Unit::Thread {
                continue;
            }
            let key = (old.site, new.site);
            let places = if full {
                let Some(places) = places.get_mut(&key) else { continue };
                places
            } else {
                places.entry(key).or_insert_with(|| rows.add())
            };
            places.record(rows, old, new, past);
        }
        window.push(new);
    }

    /// All coupled pairs, in a deterministic order.
    #[must_use]
    pub(crate) fn finish(self) -> Vec<CoupledPair> {
        let mut coupled_pairs = self.rows.coupled_pairs();
        coupled_pairs.sort_unstable_by_key(|coupled| {
            let [one, two] = coupled.first.seqs();
            (two, one)
        });
        coupled_pairs
    }
}

fn window(windows: &mut Vec<Window>, thread: ThreadId) -> &mut Window {
    let index = thread.0 as usize;
    if windows.len() <= index {
        windows.resize_with(index + 1, Window::default);
    }
    &mut windows[index]
}

impl Places {
    #[inline]
    fn record(&mut self, rows: &mut Rows, old: &Recent, new: &Recent, past: &impl ThreadPast) {
        let addrs: [Addr; 2] = [old.addr, new.addr];
        let tag = mix(old.addr.0, new.addr.0);
        let (n, row) = (usize::from(self.n), self.row as usize * PLACES_MAX);
        let any = self.tags.iter().fold(false, |any, &other| any | (other == tag));
        let is = |at: &usize| self.tags[*at] == tag && rows.addrs[row + at] == addrs;
        let known = if any { (0..n).find(is) } else { None };
        if known.is_none() && n == PLACES_MAX {
            return;
        }
        let kept = past.kept(&old.mark);
        let pair = Pair::new(&old.mark.occurrence, &new.mark.occurrence, kept);
        match known {
            Some(at) => rows.lasts[row + at] = pair,
            None => {
                self.tags[n] = tag;
                self.n += 1;
                rows.put(row + n, addrs, pair, past.unit(&old.mark));
            }
        }
    }
}

impl Rows {
    /// A new row.
    fn add(&mut self) -> Places {
        let row = self.n;
        self.n += 1;
        Places { row, n: 0, tags: [0; PLACES_MAX] }
    }

    #[inline(never)]
    fn put(&mut self, at: usize, addrs: [Addr; 2], pair: Pair, unit: Unit) {
        let end = self.n as usize * PLACES_MAX;
        if self.addrs.len() < end {
            self.addrs.resize(end, addrs);
            self.lasts.resize(end, pair);
        }
        (self.addrs[at], self.lasts[at]) = (addrs, pair);
        self.firsts.push((at as u32, unit, pair));
    }

    fn coupled_pairs(&self) -> Vec<CoupledPair> {
        let coupled = |&(at, unit, first): &(u32, Unit, Pair)| {
            let (last, addrs) = (self.lasts[at as usize], self.addrs[at as usize]);
            CoupledPair { first, last, addrs, unit }
        };
        self.firsts.iter().map(coupled).collect()
    }
}
