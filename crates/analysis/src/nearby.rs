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
    /// Their first bytes.
    pub addrs: [Addr; 2],
    /// How closely they belong together.
    pub unit: Unit,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Nearby {
    /// By thread.
    windows: Vec<Window>,
    places: FxHashMap<(Site, Site), Places>,
    rows: Rows,
}

/// A thread's last accesses.
#[derive(Debug, Default)]
struct Window {
    accesses: Vec<Recent>,
    /// Where they are, the oldest first; each place once.
    order: Vec<u8>,
}

impl Window {
    /// From the oldest to the latest.
    #[inline]
    fn iter(&self) -> impl Iterator<Item = &Recent> {
        self.order.iter().map(|&at| &self.accesses[usize::from(at)])
    }

    /// Takes an access in the place of the same one before, or of the oldest.
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

/// Where the couples of two sites are: a row of [`Rows`].
#[derive(Clone, Copy, Debug)]
struct Places {
    row: u32,
    n: u8,
    /// Of each of the couples: what is searched, so that most that are not there are not
    /// looked for elsewhere.
    tags: [u16; PLACES_MAX],
}

/// Couples, in rows of [`PLACES_MAX`], in the parts that are used together.
#[derive(Debug, Default)]
struct Rows {
    n: u32,
    addrs: Vec<[Addr; 2]>,
    lasts: Vec<Pair>,
    /// Of the couples that there are, as they came up: where, and the first time.
    firsts: Vec<(u32, Unit, Pair)>,
}

impl Nearby {
    /// Takes an access to shared memory.
    #[inline]
    pub(crate) fn push(&mut self, new: &Recent, past: &impl Past) {
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
            places.note(rows, old, new, past);
        }
        window.push(new);
    }

    /// All couples, in an order that is the same every time.
    #[must_use]
    pub(crate) fn finish(self) -> Vec<Couple> {
        let mut couples = self.rows.couples();
        couples.sort_unstable_by_key(|couple| {
            let [one, two] = couple.first.seqs();
            (two, one)
        });
        couples
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
    fn note(&mut self, rows: &mut Rows, old: &Recent, new: &Recent, past: &impl Past) {
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

    fn couples(&self) -> Vec<Couple> {
        let couple = |&(at, unit, first): &(u32, Unit, Pair)| {
            let (last, addrs) = (self.lasts[at as usize], self.addrs[at as usize]);
            Couple { first, last, addrs, unit }
        };
        self.firsts.iter().map(couple).collect()
    }
}
