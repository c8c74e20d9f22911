//! Accesses to shared memory, summed up: what remains of a trace when all that is alike is
//! kept once.
//!
//! After PENELOPE, which keeps one witness per site and lock set: per granule, the accesses
//! of one thread at one site with one set of locks are one [`Single`], and two accesses of
//! one thread that follow each other there are one [`Double`]. Of each the first and the
//! last occurrence are kept, since the first is most often free to move backwards and the
//! last to move forwards. Memory grows with shared granules and sites, not with accesses.
//!
//! A granule that is freed and allocated again starts anew; granules that look alike, as
//! those of a thousand nodes of a list do, are kept a few times only.

use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher as _};

use crate::locks::LockSet;
use crate::sharing::GRANULE_BITS;
use crate::witness::{Deed, Witness};

/// Kinds of accesses per granule; what comes beyond is dropped, and counted.
const KINDS_MAX: usize = 96;
/// Granules that look alike.
const ALIKE_MAX: u32 = 3;

/// Accesses of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    /// The first one.
    pub first: Witness,
    /// The last one.
    pub last: Witness,
}

/// Two accesses of one thread, with none to the same granule between them that matters.
#[derive(Clone, Copy, Debug)]
pub struct Double {
    /// The first time.
    pub first: [Witness; 2],
    /// The last time.
    pub last: [Witness; 2],
    /// How closely they belong together.
    pub unit: Unit,
}

/// How closely two accesses of a thread belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Not that one could tell.
    Thread,
    /// By a function that called both of theirs, or one of theirs.
    Caller,
    /// By a function activation.
    Activation,
    /// By an outermost critical section, or the user's mark.
    Section,
}

/// What happened at a granule, in one generation.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// Single accesses by kind.
    pub singles: Vec<Single>,
    /// Double accesses by kind.
    pub doubles: Vec<Double>,
    /// Of each single and double a hash of its kind: what is searched, so it is small.
    single_keys: Vec<u64>,
    double_keys: Vec<u64>,
    lasts: Vec<Lasts>,
}

/// A thread's last accesses at a granule.
#[derive(Clone, Copy, Debug)]
struct Lasts {
    thread: ThreadId,
    read: Option<Witness>,
    write: Option<Witness>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Accesses {
    open: FxHashMap<u64, Cell>,
    closed: Vec<Cell>,
    alike: FxHashMap<u64, u32>,
    /// Accesses that found no room.
    pub n_dropped: u64,
}

impl Accesses {
    /// Takes an access to a granule. `unit` tells how closely an earlier access of the
    /// same thread belongs to this one.
    pub fn push(&mut self, granule: u64, new: &Witness, unit: impl Fn(&Witness) -> Unit) {
        let cell = self.open.entry(granule).or_default();
        let lasts = match cell.lasts.iter().position(|lasts| lasts.thread == new.thread) {
            Some(at) => at,
            None => {
                cell.lasts.push(Lasts { thread: new.thread, read: None, write: None });
                cell.lasts.len() - 1
            }
        };
        let Lasts { read, write, .. } = cell.lasts[lasts];
        for before in [read, write].into_iter().flatten() {
            if !cell.note_double(&before, new, &unit) {
                self.n_dropped += 1;
            }
        }
        if !cell.note_single(new) {
            self.n_dropped += 1;
        }
        let lasts = &mut cell.lasts[lasts];
        if new.deed.writes() {
            (lasts.read, lasts.write) = (None, Some(*new));
        } else {
            lasts.read = Some(*new);
        }
    }

    /// A block of memory came to be: what was there before was something else.
    pub fn renew(&mut self, block: Addr, bytes: u64, is_shared: impl Fn(u64) -> bool) {
        let last = block.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS;
        for granule in block.0 >> GRANULE_BITS..=last {
            if is_shared(granule)
                && let Some(cell) = self.open.remove(&granule)
            {
                self.close(cell);
            }
        }
    }

    /// All granules, those that look alike a few times only; in an order that is the same
    /// every time.
    #[must_use]
    pub fn finish(mut self) -> Vec<Cell> {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        open.sort_unstable_by_key(|(granule, _)| *granule);
        for (_, cell) in open {
            self.close(cell);
        }
        self.closed
    }

    fn close(&mut self, mut cell: Cell) {
        let threads: FxHashSet<_> = cell.singles.iter().map(|single| single.first.thread).collect();
        if threads.len() < 2 || !cell.singles.iter().any(|single| single.first.deed.writes()) {
            return;
        }
        let mut hasher = FxHasher::default();
        for Single { first, .. } in &cell.singles {
            (first.pc, first.deed, first.thread, first.locks).hash(&mut hasher);
        }
        for Double { first: [one, two], .. } in &cell.doubles {
            (one.pc, two.pc, one.thread).hash(&mut hasher);
        }
        let alike = self.alike.entry(hasher.finish()).or_default();
        *alike += 1;
        if *alike <= ALIKE_MAX {
            (cell.single_keys, cell.double_keys, cell.lasts) = Default::default();
            self.closed.push(cell);
        }
    }
}

impl Cell {
    fn note_single(&mut self, new: &Witness) -> bool {
        let key = hash((kind(new), new.addr));
        for (at, _) in self.single_keys.iter().enumerate().filter(|(_, other)| **other == key) {
            let old = &self.singles[at].last;
            if kind(old) == kind(new) && old.addr == new.addr {
                self.singles[at].last = *new;
                return true;
            }
        }
        let room = self.singles.len() < KINDS_MAX;
        if room {
            self.single_keys.push(key);
            self.singles.push(Single { first: *new, last: *new });
        }
        room
    }

    fn note_double(
        &mut self,
        one: &Witness,
        two: &Witness,
        unit: impl Fn(&Witness) -> Unit,
    ) -> bool {
        let same_section = |pair: &[Witness; 2]| pair[0].section == pair[1].section;
        let pair = [*one, *two];
        let key = hash((kind(one), kind(two), one.addr, same_section(&pair)));
        for (at, _) in self.double_keys.iter().enumerate().filter(|(_, other)| **other == key) {
            let double = &mut self.doubles[at];
            let [a, b] = &double.last;
            if kind(b) == kind(two)
                && kind(a) == kind(one)
                && a.addr == one.addr
                && same_section(&double.last) == same_section(&pair)
            {
                double.last = pair;
                return true;
            }
        }
        let room = self.doubles.len() < KINDS_MAX;
        if room {
            self.double_keys.push(key);
            self.doubles.push(Double { first: pair, last: pair, unit: unit(one) });
        }
        room
    }
}

fn kind(witness: &Witness) -> (ThreadId, Pc, Deed, LockSet, u32) {
    (witness.thread, witness.pc, witness.deed, witness.locks, witness.bytes)
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    hasher.finish()
}
