//! Kinds of accesses, each kept once: what stays the same when a thread does the same again.
//!
//! A program does most of the time what it did before, at another location perhaps. So the
//! summaries keep a number for who, where, what and under which locks, and beside it only
//! what is new each time ([`Occurrence`]).

use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher as _;

use crate::locks::LockSet;
use crate::order::Moment;
use crate::witness::{Deed, Witness};

/// Accesses that differ in when they happened, and where in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Where in the program.
    pub pc: Pc,
    /// Who.
    pub thread: ThreadId,
    /// Locks that the thread held.
    pub locks: LockSet,
    /// How many bytes.
    pub bytes: u32,
    /// What.
    pub deed: Deed,
}

/// A kind, numbered as they come up in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KindId(pub u32);

/// A place in the program that a thread comes by, numbered as they come up in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site(pub(crate) u32);

/// What tells an access from others of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Steps that the thread performs before it.
    pub at: u64,
    /// Its number in the trace.
    pub seq: u64,
    /// What the thread knew of others.
    pub moment: Moment,
    /// The same, if each atomic store is taken to tell whoever loads it.
    pub weak: Moment,
    /// What it is one of.
    pub kind: KindId,
}

/// Kinds that are found without a search.
const N_RECENT: usize = 1 << 14;

/// All kinds of a trace.
#[derive(Clone, Debug)]
pub struct Kinds {
    kinds: Vec<(Kind, Site)>,
    numbers: FxHashMap<Kind, KindId>,
    sites: FxHashMap<(ThreadId, Pc), Site>,
    /// By the lower part of their hash.
    recent: Box<[KindId]>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            numbers: FxHashMap::default(),
            sites: FxHashMap::default(),
            recent: vec![KindId(0); N_RECENT].into(),
        }
    }
}

impl Kinds {
    /// The number of a kind, and of its site.
    #[inline]
    pub(crate) fn number(&mut self, kind: &Kind) -> (KindId, Site) {
        let slot = (FxBuildHasher.hash_one(kind) >> 40) as usize % N_RECENT;
        let recent = self.recent[slot];
        match self.kinds.get(recent.0 as usize) {
            Some((known, site)) if known == kind => (recent, *site),
            _ => self.search(kind, slot),
        }
    }

    #[inline(never)]
    fn search(&mut self, kind: &Kind, slot: usize) -> (KindId, Site) {
        let new = KindId(self.kinds.len() as u32);
        let id = *self.numbers.entry(*kind).or_insert(new);
        if id == new {
            let site = Site(self.sites.len() as u32);
            let site = *self.sites.entry((kind.thread, kind.pc)).or_insert(site);
            self.kinds.push((*kind, site));
        }
        self.recent[slot] = id;
        (id, self.kinds[id.0 as usize].1)
    }

    /// The kind with a number.
    #[must_use]
    pub fn kind(&self, id: KindId) -> &Kind {
        &self.kinds[id.0 as usize].0
    }

    /// All kinds, by number.
    pub fn all(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter().map(|(kind, _)| kind)
    }

    /// All that is known of an access.
    #[must_use]
    pub fn witness(&self, addr: Addr, occurrence: &Occurrence) -> Witness {
        let Kind { pc, thread, locks, bytes, deed } = *self.kind(occurrence.kind);
        let Occurrence { at, seq, moment, weak, .. } = *occurrence;
        Witness { thread, pc, deed, addr, bytes, at, seq, moment, weak, locks }
    }
}
