//! Summaries of the accesses to shared memory: a trace with each kind of access kept once.
//!
//! After PENELOPE, which keeps one witness per site and lock set: per granule, the accesses of
//! one thread at one site with one set of locks are one [`Single`], and two consecutive accesses
//! of one thread there are one [`Double`]. For each we keep the first and the last occurrence,
//! since the first is usually free to move backward and the last to move forward. Memory grows
//! with shared granules and sites, not with accesses.
//!
//! A granule that is freed and allocated again starts over. Granules that look alike, such as
//! those of a thousand list nodes, are kept only a few times. Freed granules stay available for a
//! while ([`FREED_MAX`]) to match later uses; after that they are closed.
//!
//! Most accesses belong to a class that their granule has seen, and change only the last
//! occurrence, so that case must be cheap. With ten thousand locations, little of what an access
//! changes is in the processor's cache, and memory latency dominates: granules are found by
//! number and classes by [`Tags`], without reading the entries themselves; the two last
//! occurrences of a [`Double`] share one cache line, which is written and not read; and whatever
//! some accesses must read is prefetched for many at once ([`Accesses::touch`]).

use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash as _, Hasher as _};
use std::hint::black_box;

use crate::classes::{AccessClasses, ClassId, Occurrence};
use crate::locks::LockSet;
use crate::order::Moment;
use crate::recent::{Mark, Recent, Tags};
use crate::sharing::GRANULE_BITS;
use crate::witness::Witness;

/// Access classes per granule; accesses of further classes are dropped and counted.
const CLASSES_MAX: usize = 96;
/// How many granules that look alike are kept.
const ALIKE_MAX: u32 = 3;

/// Accesses of one class.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    /// First byte accessed.
    pub addr: Addr,
    /// The first occurrence.
    pub first: Occurrence,
    /// The last occurrence.
    pub last: Occurrence,
}

/// Two accesses of one thread, with none to the same granule between them that matters.
#[derive(Clone, Copy, Debug)]
pub struct Double {
    /// The first occurrence.
    pub first: Pair,
    /// The last occurrence.
    pub last: Pair,
    /// First bytes of the two accesses, in the first occurrence and in the last.
    pub addrs: [[Addr; 2]; 2],
    /// How closely they belong together.
    pub unit: Unit,
}

/// Two accesses of one thread, one after the other.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Pair {
    at: [u64; 2],
    seq: [u64; 2],
    moment: [Moment; 2],
    weak: [Moment; 2],
    class: [ClassId; 2],
    /// Locks that the thread held throughout, from the first access to the second.
    pub kept: LockSet,
}

const _: () = assert!(size_of::<Pair>() == 64, "a line of the cache");

impl Pair {
    #[inline]
    pub(crate) fn new(one: &Occurrence, two: &Occurrence, kept: LockSet) -> Self {
        Self {
            at: [one.at, two.at],
            seq: [one.seq, two.seq],
            moment: [one.moment, two.moment],
            weak: [one.weak, two.weak],
            class: [one.class, two.class],
            kept,
        }
    }

    /// Their positions in the trace.
    #[must_use]
    pub fn seqs(&self) -> [u64; 2] {
        self.seq
    }

    /// Their classes.
    #[must_use]
    pub fn classes(&self) -> [ClassId; 2] {
        self.class
    }

    /// Both accesses as witnesses.
    #[must_use]
    pub fn witnesses(&self, addrs: [Addr; 2], classes: &AccessClasses) -> [Witness; 2] {
        [0, 1].map(|i| {
            let occurrence = Occurrence {
                at: self.at[i],
                seq: self.seq[i],
                moment: self.moment[i],
                weak: self.weak[i],
                class: self.class[i],
            };
            classes.witness(addrs[i], &occurrence)
        })
    }
}

/// How closely two accesses of a thread belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Only the thread: nothing more is known.
    Thread,
    /// The same caller, direct or indirect.
    Caller,
    /// The same activation of a function.
    Activation,
    /// The same outermost critical section, or a region that the user marked.
    Section,
}

/// What happened at a granule, in one generation.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// Single accesses by class.
    pub singles: Vec<Single>,
    /// Double accesses by class.
    pub doubles: Vec<Double>,
}

/// A cell that still receives accesses. Keys that are searched are kept apart from the entries,
/// and fields written on every access apart from those written once, so that fewer pages are
/// touched.
#[derive(Debug, Default)]
struct OpenCell {
    granule: u64,
    /// Threads that accessed the granule, with the last accesses of each.
    threads: Vec<LastSingles>,
    /// The [`single_key`] of each single.
    single_keys: Tags<u32>,
    single_lasts: Vec<Mark>,
    single_firsts: Vec<(Addr, Occurrence)>,
    /// The [`double_key`] of each double.
    double_keys: Tags<u16>,
    double_lasts: Vec<Pair>,
    double_firsts: Vec<OpenDouble>,
    /// Whether singles of one class exist at several addresses.
    has_alike: bool,
}

#[derive(Debug)]
struct OpenDouble {
    first: Pair,
    /// The numbers of its singles, in the first occurrence and in the last.
    of: [[u8; 2]; 2],
    unit: Unit,
}

/// A thread's last accesses at a granule, by the numbers of their singles.
#[derive(Clone, Copy, Debug)]
struct LastSingles {
    thread: ThreadId,
    read: u8,
    write: u8,
}

/// No single.
const NONE: u8 = u8::MAX;

const _: () = assert!(CLASSES_MAX <= 1 << 7, "two numbers and a bit are a key");

/// Key that distinguishes a double from others of its granule: its first single, the first single
/// of its second one's class, and whether both are in one section.
#[inline]
fn double_key(one: u8, two: u8, same_section: bool) -> u16 {
    u16::from(one) << 8 | u16::from(two) << 1 | u16::from(same_section)
}

/// Key that distinguishes a single from others of its granule, unless it is [`ELSEWHERE`].
#[inline]
fn single_key(granule: u64, class: ClassId, addr: Addr) -> u32 {
    // A plain access begins at most fifteen bytes before a granule that it touches.
    let from = addr.0.wrapping_add(16).wrapping_sub(granule << GRANULE_BITS);
    let from = if class.0 < 1 << 27 { from.min(u64::from(ELSEWHERE)) as u32 } else { ELSEWHERE };
    class.0 << CLASS_SHIFT | from
}

/// In the lower bits of a single's key: compare class and address instead.
const ELSEWHERE: u32 = (1 << CLASS_SHIFT) - 1;
/// In a single's key, the class starts at this bit.
const CLASS_SHIFT: u32 = 5;

/// Collects the accesses of a trace into cells.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    /// By granule number: index of its cell, plus one; 0 if there is none.
    places: Vec<u32>,
    open: Vec<OpenCell>,
    /// Cells that are not in use.
    free: Vec<u32>,
    /// Numbers of freed granules, oldest first.
    freed: VecDeque<u32>,
    closed: Vec<Cell>,
    alike: FxHashMap<u64, u32>,
    /// Granules whose generation ended, and when.
    pub(crate) ended: Vec<(u64, u64)>,
    /// Accesses that were dropped for lack of room.
    pub(crate) n_dropped: u64,
}

/// Freed granules that are kept to match uses after free.
const FREED_MAX: usize = 1 << 16;

/// What the thread of an access knows about an earlier access of its own.
pub(crate) trait ThreadPast {
    /// How closely they belong together.
    fn unit(&self, before: &Mark) -> Unit;
    /// The locks that the thread has held ever since.
    fn kept(&self, before: &Mark) -> LockSet;
}

impl Accesses {
    /// Prefetches the cells that these upcoming accesses will look at.
    ///
    /// Reading is enough. In a loop that does nothing else the processor has a dozen reads in
    /// flight; interleaved with other work, each would be waited for separately.
    pub(crate) fn touch(&self, accesses: &[(u32, ThreadId)]) {
        let open = |number: u32| {
            let place = self.places.get(number as usize).copied().unwrap_or(0);
            self.open.get((place as usize).wrapping_sub(1))
        };
        let mut sum = 0;
        for &(number, _) in accesses {
            sum += open(number).map_or(0, |open| open.granule as usize + open.double_lasts.len());
        }
        black_box(sum);
        for &(number, _) in accesses {
            let Some(open) = open(number) else { continue };
            sum += open.threads.first().map_or(0, |lasts| usize::from(lasts.read));
            sum += open.single_keys.lines().fold(0, |sum, key| sum ^ key as usize);
            sum += open.double_keys.lines().fold(0, |sum, key| sum ^ usize::from(key));
        }
        black_box(sum);
        for &(number, thread) in accesses {
            let Some(open) = open(number) else { continue };
            let Some(lasts) = open.threads.iter().find(|lasts| lasts.thread == thread) else {
                continue;
            };
            for last in [lasts.read, lasts.write] {
                let last = open.single_lasts.get(usize::from(last));
                sum += last.map_or(0, |last| last.section as usize);
            }
        }
        black_box(sum);
    }

    /// Adds an access to a granule.
    #[inline]
    pub(crate) fn push(
        &mut self,
        (granule, number): (u64, u32),
        new: &Recent,
        past: &impl ThreadPast,
    ) {
        let place = self.places.get(number as usize).copied().unwrap_or(0);
        let place = if place == 0 { self.begin(granule, number) } else { place };
        let open = &mut self.open[place as usize - 1];
        let at = match open.threads.iter().position(|lasts| lasts.thread == new.thread) {
            Some(at) => at,
            None => {
                open.threads.push(LastSingles { thread: new.thread, read: NONE, write: NONE });
                open.threads.len() - 1
            }
        };
        let LastSingles { read, write, .. } = open.threads[at];
        let single = open.single(new);
        match single {
            Some(single) => {
                let class = new.mark.occurrence.class;
                let alike = if open.has_alike { open.first_alike(single, class) } else { single };
                for before in [read, write] {
                    if before != NONE && !open.note_double([before, single], alike, new, past) {
                        self.n_dropped += 1;
                    }
                }
                open.single_lasts[usize::from(single)] = new.mark;
            }
            None => self.n_dropped += 1,
        }
        let lasts = &mut open.threads[at];
        lasts.read = if new.writes { NONE } else { single.unwrap_or(NONE) };
        if new.writes {
            lasts.write = single.unwrap_or(NONE);
        }
    }

    /// Makes a cell for a granule.
    #[inline(never)]
    fn begin(&mut self, granule: u64, number: u32) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.open.push(OpenCell::default());
            self.open.len() as u32
        });
        self.open[place as usize - 1].granule = granule;
        let number = number as usize;
        if self.places.len() <= number {
            self.places.resize(number + 1, 0);
        }
        self.places[number] = place;
        place
    }

    /// A block with these granules was allocated: whatever was there before is closed.
    pub(crate) fn renew(
        &mut self,
        numbers: impl Iterator<Item = u32>,
        classes: &AccessClasses,
        seq: u64,
    ) {
        for number in numbers {
            self.end(number, classes, seq);
        }
    }

    /// A block with these granules was freed.
    pub(crate) fn freed(
        &mut self,
        numbers: impl Iterator<Item = u32>,
        classes: &AccessClasses,
        seq: u64,
    ) {
        self.freed.extend(numbers);
        while self.freed.len() > FREED_MAX
            && let Some(number) = self.freed.pop_front()
        {
            self.end(number, classes, seq);
        }
    }

    fn end(&mut self, number: u32, classes: &AccessClasses, seq: u64) {
        let Some(place) = self.places.get_mut(number as usize).filter(|place| **place != 0) else {
            return;
        };
        let place = std::mem::take(place);
        let mut open = std::mem::take(&mut self.open[place as usize - 1]);
        self.ended.push((open.granule, seq));
        self.close(&open, classes);
        open.clear();
        self.open[place as usize - 1] = open;
        self.free.push(place);
    }

    /// All cells, those that look alike only a few times, in a deterministic order.
    #[must_use]
    pub(crate) fn finish(mut self, classes: &AccessClasses) -> Vec<Cell> {
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|open| open.granule);
        for open in open {
            self.close(&open, classes);
        }
        self.closed
    }

    fn close(&mut self, open: &OpenCell, classes: &AccessClasses) {
        let singles = || open.single_firsts.iter().map(|(_, first)| classes.class(first.class));
        let Some(one) = singles().next() else { return };
        if singles().all(|class| class.thread == one.thread)
            || !singles().any(|class| class.kind.writes())
        {
            return;
        }
        let mut hasher = FxHasher::default();
        for class in singles() {
            (class.pc, class.kind, class.thread, class.locks).hash(&mut hasher);
        }
        for double in &open.double_firsts {
            let [one, two] = double.first.classes().map(|class| classes.class(class));
            (one.pc, two.pc, one.thread).hash(&mut hasher);
        }
        let alike = self.alike.entry(hasher.finish()).or_default();
        *alike += 1;
        if *alike <= ALIKE_MAX {
            self.closed.push(open.cell());
        }
    }
}

impl OpenCell {
    /// The number of an access among the singles, which is added if it is new.
    #[inline]
    fn single(&mut self, new: &Recent) -> Option<u8> {
        let class = new.mark.occurrence.class;
        let key = single_key(self.granule, class, new.addr);
        let is = |at: usize| {
            let (addr, first) = &self.single_firsts[at];
            (*addr, first.class) == (new.addr, class)
        };
        let exact = key & ELSEWHERE != ELSEWHERE;
        if let Some(at) = self.single_keys.find(key, |at| exact || is(at)) {
            return Some(at as u8);
        }
        let at = self.single_lasts.len();
        if at == CLASSES_MAX {
            return None;
        }
        self.has_alike |= self.first_alike(at as u8, class) != at as u8;
        self.single_keys.push(key);
        self.single_lasts.push(new.mark);
        self.single_firsts.push((new.addr, new.mark.occurrence));
        Some(at as u8)
    }

    /// The first single of the same class, at whatever address.
    #[inline]
    fn first_alike(&self, single: u8, class: ClassId) -> u8 {
        let same = |key: &u32| key >> CLASS_SHIFT == class.0 << CLASS_SHIFT >> CLASS_SHIFT;
        self.single_keys.position(same).map_or(single, |at| at as u8)
    }

    #[inline]
    fn note_double(
        &mut self,
        of: [u8; 2],
        alike: u8,
        new: &Recent,
        past: &impl ThreadPast,
    ) -> bool {
        let before = &self.single_lasts[usize::from(of[0])];
        let key = double_key(of[0], alike, before.section == new.mark.section);
        let known = self.double_keys.find(key, |_| true);
        if known.is_none() && self.double_lasts.len() == CLASSES_MAX {
            return false;
        }
        let pair = Pair::new(&before.occurrence, &new.mark.occurrence, past.kept(before));
        match known {
            Some(at) => {
                self.double_lasts[at] = pair;
                if self.has_alike {
                    self.double_firsts[at].of[1] = of;
                }
            }
            None => {
                let unit = past.unit(before);
                self.double_keys.push(key);
                self.double_lasts.push(pair);
                self.double_firsts.push(OpenDouble { first: pair, of: [of, of], unit });
            }
        }
        true
    }

    /// The finished cell.
    fn cell(&self) -> Cell {
        let singles = self.single_firsts.iter().zip(&self.single_lasts);
        let singles =
            singles.map(|(&(addr, first), last)| Single { addr, first, last: last.occurrence });
        let addr = |single: u8| self.single_firsts[usize::from(single)].0;
        let doubles = self.double_firsts.iter().zip(&self.double_lasts);
        let doubles = doubles.map(|(&OpenDouble { first, of, unit }, &last)| Double {
            first,
            last,
            addrs: of.map(|of| of.map(addr)),
            unit,
        });
        Cell { singles: singles.collect(), doubles: doubles.collect() }
    }

    /// Empties the cell and keeps its allocations.
    fn clear(&mut self) {
        self.threads.clear();
        self.single_keys.clear();
        self.single_lasts.clear();
        self.single_firsts.clear();
        self.double_keys.clear();
        self.double_lasts.clear();
        self.double_firsts.clear();
        self.has_alike = false;
    }
}
