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
//! those of a thousand nodes of a list do, are kept a few times only. What was freed is kept
//! at hand for a while ([`FREED_MAX`]), for uses that come behind; then it counts as over.
//!
//! Most accesses are of a kind that their granule has seen, and all that they change is the
//! last occurrence. So that is what is made cheap. With ten thousand locations, little of what
//! an access changes is in the processor's cache, and waiting for memory is what takes time:
//! granules are found by number, kinds by [`Tags`], without a look at what is found; the two
//! last occurrences of a [`Double`] are one line of the cache, which is written and not read;
//! and what is read for some accesses is read for many at once before ([`Accesses::touch`]).

use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash as _, Hasher as _};
use std::hint::black_box;

use crate::kinds::{KindId, Kinds, Occurrence};
use crate::locks::LockSet;
use crate::order::Moment;
use crate::recent::{Mark, Recent, Tags};
use crate::sharing::GRANULE_BITS;
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
    /// Their first bytes, the first time and the last.
    pub addrs: [[Addr; 2]; 2],
    /// How closely they belong together.
    pub unit: Unit,
}

/// Two accesses of one thread, one behind the other.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Pair {
    at: [u64; 2],
    seq: [u64; 2],
    moment: [Moment; 2],
    weak: [Moment; 2],
    kind: [KindId; 2],
    /// Locks that the thread held from the one to the other.
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
            kind: [one.kind, two.kind],
            kept,
        }
    }

    /// Their numbers in the trace.
    #[must_use]
    pub fn seqs(&self) -> [u64; 2] {
        self.seq
    }

    /// Their kinds.
    #[must_use]
    pub fn kinds(&self) -> [KindId; 2] {
        self.kind
    }

    /// All that is known of both.
    #[must_use]
    pub fn witnesses(&self, addrs: [Addr; 2], kinds: &Kinds) -> [Witness; 2] {
        [0, 1].map(|i| {
            let occurrence = Occurrence {
                at: self.at[i],
                seq: self.seq[i],
                moment: self.moment[i],
                weak: self.weak[i],
                kind: self.kind[i],
            };
            kinds.witness(addrs[i], &occurrence)
        })
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

/// A cell while its accesses come in. What is searched is apart from what is found, and what
/// is written each time from what is written once: the fewer pages are in use, the better.
#[derive(Debug, Default)]
struct Open {
    granule: u64,
    /// Who was here, and what each did last.
    threads: Vec<Lasts>,
    /// The [`single_key`] of each single.
    single_keys: Tags<u32>,
    single_lasts: Vec<Mark>,
    single_firsts: Vec<(Addr, Occurrence)>,
    /// The [`double_key`] of each double.
    double_keys: Tags<u16>,
    double_lasts: Vec<Pair>,
    double_firsts: Vec<OpenDouble>,
    /// There are singles of one kind at several addresses.
    has_alike: bool,
}

#[derive(Debug)]
struct OpenDouble {
    first: Pair,
    /// The numbers of its singles, the first time and the last.
    of: [[u8; 2]; 2],
    unit: Unit,
}

/// A thread's last accesses at a granule, by the numbers of their singles.
#[derive(Clone, Copy, Debug)]
struct Lasts {
    thread: ThreadId,
    read: u8,
    write: u8,
}

/// No single.
const NONE: u8 = u8::MAX;

const _: () = assert!(KINDS_MAX <= 1 << 7, "two numbers and a bit are a key");

/// What tells a double from others of its granule: its first single, the first single of its
/// second one's kind, and whether both are in one section.
#[inline]
fn double_key(one: u8, two: u8, same_section: bool) -> u16 {
    u16::from(one) << 8 | u16::from(two) << 1 | u16::from(same_section)
}

/// What tells a single from others of its granule, unless it is [`ELSEWHERE`].
#[inline]
fn single_key(granule: u64, kind: KindId, addr: Addr) -> u32 {
    // A plain access begins at most fifteen bytes before a granule that it touches.
    let from = addr.0.wrapping_add(16).wrapping_sub(granule << GRANULE_BITS);
    let from = if kind.0 < 1 << 27 { from.min(u64::from(ELSEWHERE)) as u32 } else { ELSEWHERE };
    kind.0 << KIND_SHIFT | from
}

/// In the lower bits of a single's key: look at its kind and address.
const ELSEWHERE: u32 = (1 << KIND_SHIFT) - 1;
/// In a single's key: the kind is above.
const KIND_SHIFT: u32 = 5;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    /// By the granule's number: where its cell is, plus one; 0 if there is none.
    places: Vec<u32>,
    open: Vec<Open>,
    /// Cells that are not in use.
    free: Vec<u32>,
    /// Granules that were freed, in that order, by number.
    freed: VecDeque<u32>,
    closed: Vec<Cell>,
    alike: FxHashMap<u64, u32>,
    /// Accesses that found no room.
    pub(crate) n_dropped: u64,
}

/// Freed granules that are kept for uses behind the end.
const FREED_MAX: usize = 1 << 16;

/// What the thread of an access says about an earlier one of its own.
pub(crate) trait Past {
    /// How closely they belong together.
    fn unit(&self, before: &Mark) -> Unit;
    /// The locks that it held from there on.
    fn kept(&self, before: &Mark) -> LockSet;
}

impl Accesses {
    /// Accesses to these granules, by these threads, come up: has at hand what they look at.
    ///
    /// Reading alone does that. In loops that do nothing else the processor has a dozen reads
    /// under way at a time, while those in between other work would be waited for one by one.
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

    /// Takes an access to a granule.
    #[inline]
    pub(crate) fn push(&mut self, (granule, number): (u64, u32), new: &Recent, past: &impl Past) {
        let place = self.places.get(number as usize).copied().unwrap_or(0);
        let place = if place == 0 { self.begin(granule, number) } else { place };
        let open = &mut self.open[place as usize - 1];
        let at = match open.threads.iter().position(|lasts| lasts.thread == new.thread) {
            Some(at) => at,
            None => {
                open.threads.push(Lasts { thread: new.thread, read: NONE, write: NONE });
                open.threads.len() - 1
            }
        };
        let Lasts { read, write, .. } = open.threads[at];
        let single = open.single(new);
        match single {
            Some(single) => {
                let kind = new.mark.occurrence.kind;
                let alike = if open.has_alike { open.first_alike(single, kind) } else { single };
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
            self.open.push(Open::default());
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

    /// A block of memory came to be, which has these granules: what was there before was
    /// something else.
    pub(crate) fn renew(&mut self, numbers: impl Iterator<Item = u32>, kinds: &Kinds) {
        for number in numbers {
            self.end(number, kinds);
        }
    }

    /// A block of memory was freed, which has these granules.
    pub(crate) fn freed(&mut self, numbers: impl Iterator<Item = u32>, kinds: &Kinds) {
        self.freed.extend(numbers);
        while self.freed.len() > FREED_MAX
            && let Some(number) = self.freed.pop_front()
        {
            self.end(number, kinds);
        }
    }

    fn end(&mut self, number: u32, kinds: &Kinds) {
        let Some(place) = self.places.get_mut(number as usize).filter(|place| **place != 0) else {
            return;
        };
        let place = std::mem::take(place);
        let mut open = std::mem::take(&mut self.open[place as usize - 1]);
        self.close(&open, kinds);
        open.clear();
        self.open[place as usize - 1] = open;
        self.free.push(place);
    }

    /// All granules, those that look alike a few times only; in an order that is the same
    /// every time.
    #[must_use]
    pub(crate) fn finish(mut self, kinds: &Kinds) -> Vec<Cell> {
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|open| open.granule);
        for open in open {
            self.close(&open, kinds);
        }
        self.closed
    }

    fn close(&mut self, open: &Open, kinds: &Kinds) {
        let singles = || open.single_firsts.iter().map(|(_, first)| kinds.kind(first.kind));
        let Some(one) = singles().next() else { return };
        if singles().all(|kind| kind.thread == one.thread)
            || !singles().any(|kind| kind.deed.writes())
        {
            return;
        }
        let mut hasher = FxHasher::default();
        for kind in singles() {
            (kind.pc, kind.deed, kind.thread, kind.locks).hash(&mut hasher);
        }
        for double in &open.double_firsts {
            let [one, two] = double.first.kinds().map(|kind| kinds.kind(kind));
            (one.pc, two.pc, one.thread).hash(&mut hasher);
        }
        let alike = self.alike.entry(hasher.finish()).or_default();
        *alike += 1;
        if *alike <= ALIKE_MAX {
            self.closed.push(open.cell());
        }
    }
}

impl Open {
    /// The number of an access among the singles, made if it is new.
    #[inline]
    fn single(&mut self, new: &Recent) -> Option<u8> {
        let kind = new.mark.occurrence.kind;
        let key = single_key(self.granule, kind, new.addr);
        let is = |at: usize| {
            let (addr, first) = &self.single_firsts[at];
            (*addr, first.kind) == (new.addr, kind)
        };
        let exact = key & ELSEWHERE != ELSEWHERE;
        if let Some(at) = self.single_keys.find(key, |at| exact || is(at)) {
            return Some(at as u8);
        }
        let at = self.single_lasts.len();
        if at == KINDS_MAX {
            return None;
        }
        self.has_alike |= self.first_alike(at as u8, kind) != at as u8;
        self.single_keys.push(key);
        self.single_lasts.push(new.mark);
        self.single_firsts.push((new.addr, new.mark.occurrence));
        Some(at as u8)
    }

    /// The first single of the same kind, at whatever address.
    #[inline]
    fn first_alike(&self, single: u8, kind: KindId) -> u8 {
        let same = |key: &u32| key >> KIND_SHIFT == kind.0 << KIND_SHIFT >> KIND_SHIFT;
        self.single_keys.position(same).map_or(single, |at| at as u8)
    }

    #[inline]
    fn note_double(&mut self, of: [u8; 2], alike: u8, new: &Recent, past: &impl Past) -> bool {
        let before = &self.single_lasts[usize::from(of[0])];
        let key = double_key(of[0], alike, before.section == new.mark.section);
        let known = self.double_keys.find(key, |_| true);
        if known.is_none() && self.double_lasts.len() == KINDS_MAX {
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

    /// What remains of it.
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

    /// Makes it new, with the room that it has.
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
