//! A location as matching looks at it: what decides, in few bytes, with sites numbered from
//! 0 on, so that what is known of them fits a small table.

use raddle_trace::id::{Addr, ThreadId};

use super::found::{Found, Site};
use crate::accesses::{Cell, Double, Unit};
use crate::kinds::{Kinds, Occurrence};
use crate::locks::LockSet;
use crate::witness::{Deed, Witness};

/// See the module.
pub(super) struct View<'a> {
    pub(super) cell: &'a Cell,
    pub(super) ones: Vec<One<'a>>,
    pub(super) twos: Vec<Two>,
    /// By local number.
    pub(super) sites: &'a [Site],
    /// Pairs of sites that doubles have, by local number.
    pub(super) pairs: Vec<[Site; 2]>,
}

/// Of a single.
pub(super) struct One<'a> {
    pub(super) span: Span,
    pub(super) thread: ThreadId,
    pub(super) locks: LockSet,
    pub(super) deed: Deed,
    /// Local number.
    pub(super) site: u32,
    /// The first occurrence, and the last one.
    pub(super) seqs: [u64; 2],
    first: &'a Occurrence,
    last: &'a Occurrence,
}

/// Of a double.
pub(super) struct Two {
    pub(super) spans: [Span; 2],
    pub(super) deeds: [Deed; 2],
    pub(super) thread: ThreadId,
    pub(super) unit: Unit,
    /// Local number of its two sites.
    pub(super) pair: u32,
    /// Of the first occurrence, and of the last one.
    pub(super) kept: [LockSet; 2],
    pub(super) seqs: [[u64; 2]; 2],
}

/// Bytes that are touched.
#[derive(Clone, Copy)]
pub(super) struct Span {
    from: u64,
    to: u64,
}

impl Span {
    fn new(addr: Addr, bytes: u32) -> Self {
        Self { from: addr.0, to: addr.0 + u64::from(bytes) }
    }

    #[inline]
    pub(super) fn overlaps(self, other: Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}

impl One<'_> {
    /// Its first occurrence, and its last one if there are two.
    pub(super) fn witnesses(&self, kinds: &Kinds) -> impl Iterator<Item = Witness> {
        let n = 1 + usize::from(self.seqs[0] != self.seqs[1]);
        let addr = Addr(self.span.from);
        [self.first, self.last]
            .map(|occurrence| kinds.witness(addr, occurrence))
            .into_iter()
            .take(n)
    }
}

/// The first occurrence, and the last one if there are two; each with its number.
pub(super) fn pairs(double: &Double, kinds: &Kinds) -> impl Iterator<Item = (usize, [Witness; 2])> {
    let Double { first, last, .. } = double;
    let n = 1 + usize::from(first.seqs() != last.seqs());
    let witnesses =
        [first.witnesses(double.addrs[0], kinds), last.witnesses(double.addrs[1], kinds)];
    witnesses.into_iter().take(n).enumerate()
}

/// Makes views.
#[derive(Default)]
pub(super) struct Viewer {
    /// By site: for which view it has a local number, and which.
    locals: Vec<(u32, u32)>,
    sites: Vec<Site>,
    n_views: u32,
}

impl Viewer {
    pub(super) fn view<'a>(&'a mut self, found: &mut Found<'_>, cell: &'a Cell) -> View<'a> {
        self.n_views += 1;
        self.locals.resize(found.n_sites() + 1, (0, 0));
        self.sites.clear();
        let kinds = &found.model.kinds;
        let mut local = |site: Site| {
            let (view, number) = &mut self.locals[site as usize];
            if *view != self.n_views {
                (*view, *number) = (self.n_views, self.sites.len() as u32);
                self.sites.push(site);
            }
            *number
        };
        let ones = cell.singles.iter().map(|single| {
            let kind = kinds.kind(single.first.kind);
            One {
                span: Span::new(single.addr, kind.bytes),
                thread: kind.thread,
                locks: kind.locks,
                deed: kind.deed,
                site: local(found.site(single.first.kind)),
                seqs: [single.first.seq, single.last.seq],
                first: &single.first,
                last: &single.last,
            }
        });
        let ones = ones.collect();
        let mut pairs: Vec<[Site; 2]> = Vec::new();
        let twos = cell.doubles.iter().map(|double| {
            let of = double.first.kinds().map(|kind| kinds.kind(kind));
            let sites = double.first.kinds().map(|kind| found.site(kind));
            let pair = pairs.iter().position(|pair| *pair == sites).unwrap_or_else(|| {
                pairs.push(sites);
                pairs.len() - 1
            });
            let [a, b] = double.addrs[0];
            Two {
                spans: [Span::new(a, of[0].bytes), Span::new(b, of[1].bytes)],
                deeds: [of[0].deed, of[1].deed],
                thread: of[0].thread,
                unit: double.unit,
                pair: pair as u32,
                kept: [double.first.kept, double.last.kept],
                seqs: [double.first.seqs(), double.last.seqs()],
            }
        });
        let twos = twos.collect();
        View { cell, ones, twos, sites: &self.sites, pairs }
    }
}
