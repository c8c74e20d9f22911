//! Synchronization objects, as the scheduler models them.
//!
//! The program's own objects stay in step: the real primitive is called when the model says
//! that it will succeed at once. The model adds who holds what since where, which libc does
//! not tell, and which waiter is woken, which libc would decide by itself.

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
    /// What it is.
    pub(crate) kind: Lock,
    /// Who has it for itself.
    pub(crate) owner: u32,
    /// How often the owner took it.
    pub(crate) depth: u32,
    /// Where it was taken.
    pub(crate) owner_pc: u64,
    /// Who has it for reading, and since where.
    pub(crate) readers: Vec<(u32, u64)>,
    /// Of a barrier: how many it takes.
    pub(crate) count: u32,
    /// Of a barrier: how many have come.
    pub(crate) arrived: u32,
    /// Of a barrier: how often it opened.
    pub(crate) round: u32,
    /// Of a condition variable or futex: where a wake-up was last sent that nobody waited for.
    pub(crate) missed_pc: u64,
    /// Of a futex: what its word was then, and has been since, and who sent it.
    pub(crate) missed: Option<(u32, u32)>,
    /// Of a reader-writer lock: readers wait behind writers that wait.
    pub(crate) writers_first: bool,
}

impl Object {
    /// One that nobody holds.
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

    /// Whether somebody can have it for itself.
    pub(crate) fn is_free(&self) -> bool {
        self.owner == NOBODY && self.readers.is_empty()
    }

    /// Whether somebody can have it for reading.
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
    /// None.
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

    /// The object at an address, which may be new to us.
    pub(crate) fn get_or_new(&mut self, at: u64, kind: Lock) -> &mut Object {
        let addresses = &mut self.addresses;
        self.objects.entry(at).or_insert_with(|| {
            addresses.insert(at);
            Object::new(kind)
        })
    }

    /// Puts an object at an address, whatever was there.
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

    /// All of them, in no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&u64, &mut Object)> {
        self.objects.iter_mut()
    }
}
