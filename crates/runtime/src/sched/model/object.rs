//! Synchronization objects, as the scheduler models them.
//!
//! The program's own objects stay in sync: the real function is called when the model says that
//! it will succeed at once. The model adds who holds what and since where, which libc does not
//! track, and which waiter is woken, which libc would decide by itself.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Range;

use hashbrown::HashMap;
use raddle_trace::record::Lock;
use rustc_hash::FxBuildHasher;

/// No thread.
pub(crate) const NOBODY: u32 = u32::MAX;

/// A lock, condition variable or barrier, by its address.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// The kind of object.
    pub(crate) kind: Lock,
    /// The exclusive holder.
    pub(crate) owner: u32,
    /// How many times the owner has acquired it.
    pub(crate) depth: u32,
    /// Where it was acquired.
    pub(crate) owner_pc: u64,
    /// Threads that hold it for reading, and where they acquired it.
    pub(crate) readers: Vec<(u32, u64)>,
    /// For a barrier: number of participants. For an annotated lock: its properties.
    pub(crate) count: u32,
    /// For a barrier: number of threads that have arrived.
    pub(crate) arrived: u32,
    /// For a barrier: the round that threads now arrive for. No two rounds of any barriers have
    /// the same number, since a barrier may be initialized again before all have left it.
    pub(crate) round: u32,
    /// For a condition variable or futex: where the last wake-up was sent that nobody waited for.
    pub(crate) missed_pc: u64,
    /// For a futex: its word at that time, unchanged since, and the sender.
    pub(crate) missed: Option<(u32, u32)>,
    /// For a reader-writer lock: whether readers wait for waiting writers.
    pub(crate) writers_first: bool,
}

impl Object {
    /// An object that nobody holds.
    pub(crate) const fn new(kind: Lock) -> Self {
        Self {
            kind,
            owner: NOBODY,
            depth: 0,
            owner_pc: 0,
            readers: Vec::new(),
            count: 0,
            arrived: 0,
            round: 0,
            missed_pc: 0,
            missed: None,
            writers_first: false,
        }
    }

    /// Whether it can be acquired exclusively.
    pub(crate) fn is_free(&self) -> bool {
        self.owner == NOBODY && self.readers.is_empty()
    }

    /// Whether it can be acquired for reading.
    pub(crate) fn is_readable(&self) -> bool {
        self.owner == NOBODY
    }
}

/// All objects, by address.
pub(crate) struct Objects {
    objects: HashMap<u64, Object, FxBuildHasher>,
    // invariant: exactly the keys of `objects`.
    addresses: BTreeSet<u64>,
}

impl Objects {
    /// An empty set.
    pub(crate) const fn new() -> Self {
        Self { objects: HashMap::with_hasher(FxBuildHasher), addresses: BTreeSet::new() }
    }

    /// The object at an address.
    pub(crate) fn get(&self, at: &u64) -> Option<&Object> {
        self.objects.get(at)
    }

    /// The object at an address.
    pub(crate) fn get_mut(&mut self, at: &u64) -> Option<&mut Object> {
        self.objects.get_mut(at)
    }

    /// The object at an address, which is added if it is new.
    pub(crate) fn get_or_new(&mut self, at: u64, kind: Lock) -> &mut Object {
        let addresses = &mut self.addresses;
        self.objects.entry(at).or_insert_with(|| {
            addresses.insert(at);
            Object::new(kind)
        })
    }

    /// Sets the object at an address, replacing any other.
    pub(crate) fn insert(&mut self, at: u64, object: Object) {
        self.addresses.insert(at);
        self.objects.insert(at, object);
    }

    /// Forgets the object at an address.
    pub(crate) fn remove(&mut self, at: &u64) {
        if self.objects.remove(at).is_some() {
            self.addresses.remove(at);
        }
    }

    /// The first object in a range of addresses.
    pub(crate) fn first_in(&self, range: Range<u64>) -> Option<(u64, &Object)> {
        let &at = self.addresses.range(range).next()?;
        Some((at, self.objects.get(&at)?))
    }

    /// All objects, in no particular order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&u64, &mut Object)> {
        self.objects.iter_mut()
    }
}
