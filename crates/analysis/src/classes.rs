//! Access classes, each kept once: what stays the same when a thread repeats an access.
//!
//! Programs mostly repeat what they have done before, perhaps at another location. So the
//! summaries keep one number for thread, site, kind and lock set, and beside it only what differs
//! each time ([`Occurrence`]).

use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher as _;

use crate::locks::LockSet;
use crate::order::Moment;
use crate::witness::{AccessKind, Witness};

/// Accesses that differ only in when they happened and at which address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessClass {
    /// The code address.
    pub pc: Pc,
    /// The thread that performs it.
    pub thread: ThreadId,
    /// Locks that the thread held.
    pub locks: LockSet,
    /// Size of the access.
    pub bytes: u32,
    /// What the access does.
    pub kind: AccessKind,
}

/// An access class, numbered in order of appearance in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId(pub u32);

/// A code address executed by a thread, numbered in order of appearance in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site(pub(crate) u32);

/// What distinguishes an access from others of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Number of steps that the thread performed before it.
    pub at: u64,
    /// Its position in the trace.
    pub seq: u64,
    /// What the thread knew about other threads.
    pub moment: Moment,
    /// The same if every atomic load is ordered after the store that it reads.
    pub weak: Moment,
    /// The class that it belongs to.
    pub class: ClassId,
}

/// Size of the cache of recently used classes.
const N_RECENT: usize = 1 << 14;

/// All classes of a trace.
#[derive(Clone, Debug)]
pub struct AccessClasses {
    classes: Vec<(AccessClass, Site)>,
    numbers: FxHashMap<AccessClass, ClassId>,
    sites: FxHashMap<(ThreadId, Pc), Site>,
    /// Recently used classes, by hash.
    recent: Box<[ClassId]>,
}

impl Default for AccessClasses {
    fn default() -> Self {
        Self {
            classes: Vec::new(),
            numbers: FxHashMap::default(),
            sites: FxHashMap::default(),
            recent: vec![ClassId(0); N_RECENT].into(),
        }
    }
}

impl AccessClasses {
    /// The number of a class, and of its site.
    #[inline]
    pub(crate) fn number(&mut self, class: &AccessClass) -> (ClassId, Site) {
        let slot = (FxBuildHasher.hash_one(class) >> 40) as usize % N_RECENT;
        let recent = self.recent[slot];
        match self.classes.get(recent.0 as usize) {
            Some((known, site)) if known == class => (recent, *site),
            _ => self.search(class, slot),
        }
    }

    #[inline(never)]
    fn search(&mut self, class: &AccessClass, slot: usize) -> (ClassId, Site) {
        let new = ClassId(self.classes.len() as u32);
        let id = *self.numbers.entry(*class).or_insert(new);
        if id == new {
            let site = Site(self.sites.len() as u32);
            let site = *self.sites.entry((class.thread, class.pc)).or_insert(site);
            self.classes.push((*class, site));
        }
        self.recent[slot] = id;
        (id, self.classes[id.0 as usize].1)
    }

    /// The class with this id.
    #[must_use]
    pub fn class(&self, id: ClassId) -> &AccessClass {
        &self.classes[id.0 as usize].0
    }

    /// All classes, by number.
    pub fn all(&self) -> impl Iterator<Item = &AccessClass> {
        self.classes.iter().map(|(class, _)| class)
    }

    /// The occurrence as a witness.
    #[must_use]
    pub fn witness(&self, addr: Addr, occurrence: &Occurrence) -> Witness {
        let AccessClass { pc, thread, locks, bytes, kind } = *self.class(occurrence.class);
        let Occurrence { at, seq, moment, weak, .. } = *occurrence;
        Witness { thread, pc, kind, addr, bytes, at, seq, moment, weak, locks }
    }
}
