//! A location in the form that matching uses: only what decides, in few bytes, with sites
//! numbered from 0, so that what is known of them fits a small table.

use raddle_trace::id::{Addr, ThreadId};

use super::found::{Found, Site};
use crate::accesses::{Cell, Double, Unit};
use crate::classes::{AccessClasses, Occurrence};
use crate::locks::LockSet;
use crate::witness::{AccessKind, Witness};

/// A location prepared for matching.
pub(super) struct View<'a> {
    pub(super) cell: &'a Cell,
    pub(super) singles: Vec<SingleView<'a>>,
    pub(super) doubles: Vec<DoubleView>,
    /// Global site by local number.
    pub(super) sites: &'a [Site],
    /// Pairs of sites of doubles, by local number.
    pub(super) pairs: Vec<[Site; 2]>,
}

/// A single, prepared for matching.
pub(super) struct SingleView<'a> {
    pub(super) span: Span,
    pub(super) thread: ThreadId,
    pub(super) locks: LockSet,
    pub(super) kind: AccessKind,
    /// Local number of its site.
    pub(super) site: u32,
    /// Positions of the first and the last occurrence.
    pub(super) seqs: [u64; 2],
    first: &'a Occurrence,
    last: &'a Occurrence,
}

/// A double, prepared for matching.
pub(super) struct DoubleView {
    pub(super) spans: [Span; 2],
    pub(super) kinds: [AccessKind; 2],
    pub(super) thread: ThreadId,
    pub(super) unit: Unit,
    /// Local number of its pair of sites.
    pub(super) pair: u32,
    /// For the first and the last occurrence.
    pub(super) kept: [LockSet; 2],
    pub(super) seqs: [[u64; 2]; 2],
}

/// A range of bytes.
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

impl SingleView<'_> {
    /// The first occurrence, and the last if it differs.
    pub(super) fn witnesses(&self, classes: &AccessClasses) -> impl Iterator<Item = Witness> {
        let n = 1 + usize::from(self.seqs[0] != self.seqs[1]);
        let addr = Addr(self.span.from);
        [self.first, self.last]
            .map(|occurrence| classes.witness(addr, occurrence))
            .into_iter()
            .take(n)
    }
}

/// The first occurrence, and the last if it differs, each with its number.
pub(super) fn pairs(
    double: &Double,
    classes: &AccessClasses,
) -> impl Iterator<Item = (usize, [Witness; 2])> {
    let Double { first, last, .. } = double;
    let n = 1 + usize::from(first.seqs() != last.seqs());
    let witnesses =
        [first.witnesses(double.addrs[0], classes), last.witnesses(double.addrs[1], classes)];
    witnesses.into_iter().take(n).enumerate()
}

/// Builds views.
#[derive(Default)]
pub(super) struct Viewer {
    /// By site: the last view in which it has a local number, and that number.
    locals: Vec<(u32, u32)>,
    sites: Vec<Site>,
    n_views: u32,
}

impl Viewer {
    pub(super) fn view<'a>(&'a mut self, found: &mut Found<'_>, cell: &'a Cell) -> View<'a> {
        self.n_views += 1;
        self.locals.resize(found.n_sites() + 1, (0, 0));
        self.sites.clear();
        let classes = &found.model.classes;
        let mut local = |site: Site| {
            let (view, number) = &mut self.locals[site as usize];
            if *view != self.n_views {
                (*view, *number) = (self.n_views, self.sites.len() as u32);
                self.sites.push(site);
            }
            *number
        };
        let singles = cell.singles.iter().map(|single| {
            let class = classes.class(single.first.class);
            SingleView {
                span: Span::new(single.addr, class.bytes),
                thread: class.thread,
                locks: class.locks,
                kind: class.kind,
                site: local(found.site(single.first.class)),
                seqs: [single.first.seq, single.last.seq],
                first: &single.first,
                last: &single.last,
            }
        });
        let singles = singles.collect();
        let mut pairs: Vec<[Site; 2]> = Vec::new();
        let doubles = cell.doubles.iter().map(|double| {
            let of = double.first.classes().map(|class| classes.class(class));
            let sites = double.first.classes().map(|class| found.site(class));
            let pair = pairs.iter().position(|pair| *pair == sites).unwrap_or_else(|| {
                pairs.push(sites);
                pairs.len() - 1
            });
            let [a, b] = double.addrs[0];
            DoubleView {
                spans: [Span::new(a, of[0].bytes), Span::new(b, of[1].bytes)],
                kinds: [of[0].kind, of[1].kind],
                thread: of[0].thread,
                unit: double.unit,
                pair: pair as u32,
                kept: [double.first.kept, double.last.kept],
                seqs: [double.first.seqs(), double.last.seqs()],
            }
        });
        let doubles = doubles.collect();
        View { cell, singles, doubles, sites: &self.sites, pairs }
    }
}
