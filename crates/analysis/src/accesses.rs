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
//!
//! Most accesses are of a kind that their granule has seen, and all that they change is the
//! last occurrence. So that is what is made cheap: granules are found by number, kinds by
//! [`Tags`], and an occurrence is half a line of the cache.

use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash as _, Hasher as _};

use crate::kinds::{KindId, Kinds, Occurrence};
use crate::locks::LockSet;
use crate::recent::{Recent, Tags, mix};
use crate::witness::Witness;

/// Kinds of accesses per granule; what comes beyond is dropped, and counted.
const KINDS_MAX: usize = 96;
/// Granules that look alike.
const ALIKE_MAX: u32 = 3;

/// Accesses of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    /// First byte.
    pub addr: Addr,
    /// The first one.
    pub first: Occurrence,
    /// The last one.
    pub last: Occurrence,
}

/// Two accesses of one thread, with none to the same granule between them that matters.
#[derive(Clone, Copy, Debug)]
pub struct Double {
    /// The first time.
    pub first: Pair,
    /// The last time.
    pub last: Pair,
    /// How closely they belong together.
    pub unit: Unit,
}

/// Two accesses of one thread, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Their first bytes.
    pub addrs: [Addr; 2],
    /// The accesses.
    pub occurrences: [Occurrence; 2],
    /// Locks that the thread held from the one to the other.
    pub kept: LockSet,
}

impl Pair {
    /// All that is known of both.
    #[must_use]
    pub fn witnesses(&self, kinds: &Kinds) -> [Witness; 2] {
        let [a, b] = self.addrs;
        let [one, two] = &self.occurrences;
        [kinds.witness(a, one), kinds.witness(b, two)]
    }
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
}

/// A cell while its accesses come in.
#[derive(Debug, Default)]
struct Open {
    granule: u64,
    cell: Cell,
    /// Of each single and double: what is searched, so it is small.
    single_tags: Tags,
    double_tags: Tags,
    /// Who was here, and each one's last accesses.
    threads: Vec<ThreadId>,
    lasts: Vec<Lasts>,
}

/// A thread's last accesses at a granule.
#[derive(Clone, Copy, Debug, Default)]
struct Lasts {
    read: Option<Recent>,
    write: Option<Recent>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    /// By the granule's number.
    open: Vec<Open>,
    closed: Vec<Cell>,
    alike: FxHashMap<u64, u32>,
    /// Accesses that found no room.
    pub(crate) n_dropped: u64,
}

/// What the thread of an access says about an earlier one of its own.
pub(crate) trait Past {
    /// How closely they belong together.
    fn unit(&self, before: &Recent) -> Unit;
    /// The locks that it held from there on.
    fn kept(&self, before: &Recent) -> LockSet;
}

impl Accesses {
    /// Takes an access to a granule.
    #[inline]
    pub(crate) fn push(&mut self, (granule, number): (u64, u32), new: &Recent, past: &impl Past) {
        let number = number as usize;
        if self.open.len() <= number {
            self.open.resize_with(number + 1, Open::default);
        }
        let open = &mut self.open[number];
        open.granule = granule;
        let at = match open.threads.iter().position(|thread| *thread == new.thread) {
            Some(at) => at,
            None => {
                open.threads.push(new.thread);
                open.lasts.push(Lasts::default());
                open.lasts.len() - 1
            }
        };
        let lasts = &mut open.lasts[at];
        let Open { cell, double_tags, single_tags, .. } = open;
        for before in [&lasts.read, &lasts.write].into_iter().flatten() {
            if !note_double(&mut cell.doubles, double_tags, before, new, past) {
                self.n_dropped += 1;
            }
        }
        if !note_single(&mut cell.singles, single_tags, new) {
            self.n_dropped += 1;
        }
        if new.writes {
            (lasts.read, lasts.write) = (None, Some(*new));
        } else {
            lasts.read = Some(*new);
        }
    }

    /// A block of memory came to be, which has these granules: what was there before was
    /// something else.
    pub(crate) fn renew(&mut self, numbers: impl Iterator<Item = u32>, kinds: &Kinds) {
        for number in numbers {
            if let Some(open) = self.open.get_mut(number as usize) {
                let cell = std::mem::take(open).cell;
                self.close(cell, kinds);
            }
        }
    }

    /// All granules, those that look alike a few times only; in an order that is the same
    /// every time.
    #[must_use]
    pub(crate) fn finish(mut self, kinds: &Kinds) -> Vec<Cell> {
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|open| open.granule);
        for open in open {
            self.close(open.cell, kinds);
        }
        self.closed
    }

    fn close(&mut self, mut cell: Cell, kinds: &Kinds) {
        let kind = |occurrence: &Occurrence| kinds.kind(occurrence.kind);
        let singles = || cell.singles.iter().map(|single| kind(&single.first));
        let threads: FxHashSet<_> = singles().map(|kind| kind.thread).collect();
        if threads.len() < 2 || !singles().any(|kind| kind.deed.writes()) {
            return;
        }
        let mut hasher = FxHasher::default();
        for kind in singles() {
            (kind.pc, kind.deed, kind.thread, kind.locks).hash(&mut hasher);
        }
        for double in &cell.doubles {
            let [one, two] = double.first.occurrences.each_ref().map(kind);
            (one.pc, two.pc, one.thread).hash(&mut hasher);
        }
        let alike = self.alike.entry(hasher.finish()).or_default();
        *alike += 1;
        if *alike <= ALIKE_MAX {
            cell.singles.shrink_to_fit();
            cell.doubles.shrink_to_fit();
            self.closed.push(cell);
        }
    }
}

#[inline]
fn note_single(singles: &mut Vec<Single>, tags: &mut Tags, new: &Recent) -> bool {
    let kind = new.occurrence.kind;
    let tag = mix(u64::from(kind.0), new.addr.0);
    let known = tags.find(tag, |at| singles[at].last.kind == kind && singles[at].addr == new.addr);
    if let Some(at) = known {
        singles[at].last = new.occurrence;
        return true;
    }
    let room = singles.len() < KINDS_MAX;
    if room {
        tags.push(tag);
        singles.push(Single { addr: new.addr, first: new.occurrence, last: new.occurrence });
    }
    room
}

#[inline]
fn note_double(
    doubles: &mut Vec<Double>,
    tags: &mut Tags,
    one: &Recent,
    two: &Recent,
    past: &impl Past,
) -> bool {
    let kinds = |pair: &[Occurrence; 2]| -> [KindId; 2] { [pair[0].kind, pair[1].kind] };
    let same_section = |pair: &[Occurrence; 2]| pair[0].section == pair[1].section;
    let pair = [one.occurrence, two.occurrence];
    let [a, b] = kinds(&pair);
    let same = same_section(&pair);
    let tag = mix(u64::from(a.0) << 32 | u64::from(b.0), one.addr.0 << 1 | u64::from(same));
    let known = tags.find(tag, |at| {
        let Pair { addrs, occurrences, .. } = &doubles[at].last;
        kinds(occurrences) == [a, b] && addrs[0] == one.addr && same_section(occurrences) == same
    });
    if known.is_none() && doubles.len() == KINDS_MAX {
        return false;
    }
    let addrs = [one.addr, two.addr];
    let pair = Pair { addrs, occurrences: pair, kept: past.kept(one) };
    match known {
        Some(at) => doubles[at].last = pair,
        None => {
            tags.push(tag);
            doubles.push(Double { first: pair, last: pair, unit: past.unit(one) });
        }
    }
    true
}
