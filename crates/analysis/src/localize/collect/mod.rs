//! Collects the facts of a run, event by event.
//!
//! A place that only one thread has touched so far, as most of memory is, keeps its first access,
//! its last write and its last read; windows and pairs start when a second thread comes.

mod cells;
mod kinds;
mod nests;
mod stacks;

use raddle_trace::event::{AtomicAction, Event, Op};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::run::Run;
use rustc_hash::FxHashMap;

use self::cells::{Cells, Place, Seen};
use self::kinds::{Key, Kind, Kinds};
use self::nests::Nests;
use self::stacks::{Node, ROOT, Stacks};
use super::facts::{Act, Facts, Lap, Pair, PairFact, Pattern, PatternFact, Point, writes};
use super::pairs::Last;
use super::window::{Policy, Window};
use crate::sharing::GRANULE_BITS;
use crate::witness::Deed;

/// Loops around an access that are kept.
pub const LAPS_MAX: usize = 3;
/// Occurrences of a pair that are kept, each with other threads or loops.
const INSTANCES_MAX: usize = 256;

/// Tells the loops that an access is in.
pub trait Laps: Send {
    /// A thread enters a function that will return to this address.
    fn enter(&mut self, thread: ThreadId, pc: Pc);
    /// It leaves it.
    fn leave(&mut self, thread: ThreadId);
    /// It begins, or goes on as another fiber.
    fn forget(&mut self, thread: ThreadId);
    /// It performs an access: loops around it, innermost first.
    fn at(&mut self, thread: ThreadId, pc: Pc, laps: &mut [Lap; LAPS_MAX]) -> usize;
}

/// What is collected, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Entries of a window.
    pub window: usize,
    /// How they are kept.
    pub policy: Policy,
}

impl Default for Settings {
    fn default() -> Self {
        Self { window: 5, policy: Policy::Precise }
    }
}

/// See the module.
pub struct Collector {
    settings: Settings,
    laps: Option<Box<dyn Laps>>,
    cells: Cells,
    found: Found,
    kinds: Kinds,
    nests: Nests,
    /// By thread.
    calls: Vec<Node>,
    stacks: Stacks,
    seq: u64,
    n_shared: u64,
    /// Shared places that are kept now, and those that found no room.
    n_kept: u64,
    n_left_out: u64,
}

/// Shared places that are kept at a time, of some half a kilobyte each.
const KEPT_MAX: u64 = 1 << 21;

/// An occurrence: the access, and its granule.
type At = (Seen, u64);

#[derive(Default)]
struct Found {
    /// By the kinds of head and tail.
    pairs: FxHashMap<[u32; 2], Vec<[At; 2]>>,
    /// By the kinds of the accesses, with nothing in the third place of a pair.
    patterns: FxHashMap<[Option<u32>; 3], (Vec<At>, usize)>,
}

impl Found {
    fn pair(&mut self, granule: u64, head: &Seen, tail: &Seen) {
        let instances = self.pairs.entry([head.kind, tail.kind]).or_default();
        let same = |[other_head, other_tail]: &[At; 2]| {
            other_head.0.nest == head.nest && other_tail.0.nest == tail.nest
        };
        if instances.len() < INSTANCES_MAX && !instances.iter().rev().any(same) {
            instances.push([(*head, granule), (*tail, granule)]);
        }
    }

    fn pattern(&mut self, granule: u64, seen: &[&Seen], window: usize) {
        let mut key = [None; 3];
        for (place, one) in key.iter_mut().zip(seen) {
            *place = Some(one.kind);
        }
        let (_, least) = self
            .patterns
            .entry(key)
            .or_insert_with(|| (seen.iter().map(|one| (**one, granule)).collect(), window));
        *least = window.min(*least);
    }

    /// Every access that is remembered.
    fn each(&mut self, mut visit: impl FnMut(&mut Seen)) {
        let pairs = self.pairs.values_mut().flatten().flatten();
        let patterns = self.patterns.values_mut().flat_map(|(at, _)| at);
        pairs.chain(patterns).for_each(|(seen, _)| visit(seen));
    }
}

impl Collector {
    /// For a run that begins.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            laps: None,
            cells: Cells::default(),
            found: Found::default(),
            kinds: Kinds::default(),
            nests: Nests::default(),
            calls: Vec::new(),
            stacks: Stacks::default(),
            seq: 0,
            n_shared: 0,
            n_kept: 0,
            n_left_out: 0,
        }
    }

    /// From now on loops are told.
    pub fn tell_laps(&mut self, laps: Box<dyn Laps>) {
        self.laps = Some(laps);
    }

    /// Takes the next event.
    pub fn push(&mut self, event: &Event) {
        let Event { thread, pc, op } = *event;
        match op {
            Op::Read(access) => self.access(thread, pc, Deed::Read, access.addr, access.bytes),
            Op::Write(access) => self.access(thread, pc, Deed::Write, access.addr, access.bytes),
            Op::Atomic(atomic) => {
                let deed = match atomic.action {
                    AtomicAction::Load | AtomicAction::Miss => Deed::AtomicRead,
                    _ => Deed::AtomicWrite,
                };
                self.access(thread, pc, deed, atomic.addr, u64::from(atomic.bytes));
            }
            Op::Free { block, bytes } => self.access(thread, pc, Deed::Free, block, bytes),
            // Synchronization objects are memory too: of one byte, for they are never looked into.
            Op::Acquire(lock) => self.access(thread, pc, Deed::Acquire, lock.lock, 1),
            Op::Release(lock) => self.access(thread, pc, Deed::Release, lock.lock, 1),
            Op::Init { object, .. } => self.access(thread, pc, Deed::Init, object, 1),
            Op::Destroy { object, .. } => self.access(thread, pc, Deed::Destroy, object, 1),
            Op::CondWait { cond, .. } => self.access(thread, pc, Deed::Wait, cond, 1),
            Op::SemWait { semaphore, .. } => self.access(thread, pc, Deed::Lower, semaphore, 1),
            Op::SemAsk(semaphore) => self.access(thread, pc, Deed::Ask, semaphore, 1),
            Op::CondSignal { cond, .. } | Op::CondBroadcast { cond, .. } => {
                self.access(thread, pc, Deed::Signal, cond, 1);
            }
            Op::SemPost(semaphore) => self.access(thread, pc, Deed::Signal, semaphore, 1),
            Op::Alloc { block, room, .. } => self.forget(block, room),
            Op::Enter { return_to } => {
                let from = *self.calls(thread);
                *self.calls(thread) = self.stacks.below(from, return_to);
                if let Some(laps) = &mut self.laps {
                    laps.enter(thread, pc);
                }
            }
            Op::Leave => {
                let from = *self.calls(thread);
                *self.calls(thread) = self.stacks.above(from);
                if let Some(laps) = &mut self.laps {
                    laps.leave(thread);
                }
            }
            Op::Begin { stack_low, stack_high, .. } => {
                self.forget(stack_low, stack_high.0.saturating_sub(stack_low.0));
                self.start_over(thread);
            }
            Op::Fiber(_) => self.start_over(thread),
            _ => {}
        }
        self.seq += 1;
    }

    /// When the run ended a thread waited for a lock, which another one had taken: that is a pair
    /// and a pattern of its own, which only such runs have.
    pub fn block(&mut self, thread: ThreadId, pc: Pc, lock: Addr, holder: ThreadId) {
        let deed = Deed::Block;
        let stack = *self.calls(thread);
        let kind = self.kinds.number(Kind { thread, pc, deed, stack });
        let nest = self.nest(thread, pc);
        let granule = lock.0 >> GRANULE_BITS;
        let from = (lock.0 - (granule << GRANULE_BITS)) as u8;
        let (seq, to, writes) = (self.seq, from, true);
        let blocked = Seen { seq, kind, nest, thread: thread.0 as u16, from, to, writes };
        self.seq += 1;
        let kinds = &self.kinds.all;
        let is_taken = |one: &Seen| {
            let kind = kinds[one.kind as usize];
            kind.thread == holder && kind.deed == Deed::Acquire && one.from == from
        };
        let mut taken = None;
        self.cells.each(granule, |seen| {
            if is_taken(seen) && taken.is_none_or(|taken: Seen| taken.seq < seen.seq) {
                taken = Some(*seen);
            }
        });
        if let Some(taken) = taken {
            self.found.pair(granule, &taken, &blocked);
            self.found.pattern(granule, &[&taken, &blocked], 2);
        }
    }

    /// The run is over, however it ended.
    #[must_use]
    pub fn finish(mut self, run: &Run) -> Facts {
        self.forget(Addr(0), u64::MAX);
        let Self { found, kinds, nests, stacks, .. } = self;
        let mut sites: FxHashMap<Pc, Site> = FxHashMap::default();
        let mut site = |pc: Pc| *sites.entry(pc).or_insert_with(|| run.site(pc));
        let mut act = |(pc, deed): Key| Act { site: site(pc), deed };
        let kind = |number: u32| kinds.all[number as usize];
        let point = |&(seen, granule): &At| Point {
            thread: kind(seen.kind).thread,
            seq: seen.seq,
            addr: Addr((granule << GRANULE_BITS) + u64::from(seen.from)),
            bytes: u32::from(seen.to - seen.from) + 1,
            laps: nests.get(seen.nest).to_vec(),
        };
        // Kinds of different threads and stacks are one pair.
        let mut pairs: FxHashMap<[Key; 2], Vec<[At; 2]>> = FxHashMap::default();
        for (kinds, instances) in found.pairs {
            pairs.entry(kinds.map(|number| kind(number).key())).or_default().extend(instances);
        }
        let mut pairs: Vec<_> = pairs
            .into_iter()
            .map(|([head, tail], mut instances)| {
                instances.sort_by_key(|[_, tail]| tail.0.seq);
                instances.truncate(INSTANCES_MAX);
                PairFact {
                    pair: Pair { head: act(head), tail: act(tail) },
                    instances: instances.iter().map(|at| [point(&at[0]), point(&at[1])]).collect(),
                }
            })
            .collect();
        pairs.sort_unstable_by_key(|fact| fact.pair);
        // Two code addresses may be one site if a module was loaded twice.
        pairs.dedup_by_key(|fact| fact.pair);
        let mut acts: Vec<_> = kinds.all.iter().map(|kind| act(kind.key())).collect();
        acts.sort_unstable();
        acts.dedup();
        let mut patterns: FxHashMap<Vec<Key>, (Vec<At>, usize)> = FxHashMap::default();
        for (kinds, (at, window)) in found.patterns {
            let key = kinds.into_iter().flatten().map(|number| kind(number).key()).collect();
            let (first, least) = patterns.entry(key).or_insert_with(|| (at.clone(), window));
            let seq = |at: &[At]| at.last().map(|(seen, _)| seen.seq);
            if seq(&at) < seq(first) {
                *first = at;
            }
            *least = window.min(*least);
        }
        let mut patterns: Vec<_> = patterns
            .into_iter()
            .map(|(key, (at, window))| PatternFact {
                pattern: Pattern { acts: key.into_iter().map(&mut act).collect() },
                points: at.iter().map(point).collect(),
                stacks: at
                    .iter()
                    .map(|(seen, _)| {
                        stacks.calls(kind(seen.kind).stack).map(|pc| run.site(pc)).collect()
                    })
                    .collect(),
                window: u8::try_from(window).unwrap_or(u8::MAX),
            })
            .collect();
        patterns.sort_unstable_by(|one, two| one.pattern.cmp(&two.pattern));
        patterns.dedup_by(|one, two| one.pattern == two.pattern);
        Facts {
            pairs,
            patterns,
            acts,
            n_events: self.seq,
            n_threads: run.threads.len() as u32,
            n_shared: self.n_shared,
            n_left_out: self.n_left_out,
            is_exact: true,
        }
    }

    fn access(&mut self, thread: ThreadId, pc: Pc, deed: Deed, addr: Addr, bytes: u64) {
        let stack = *self.calls(thread);
        let kind = self.kinds.number(Kind { thread, pc, deed, stack });
        let nest = self.nest(thread, pc);
        let last = addr.0.saturating_add(bytes.max(1) - 1);
        for granule in addr.0 >> GRANULE_BITS..=last >> GRANULE_BITS {
            let start = granule << GRANULE_BITS;
            let end = start + (1 << GRANULE_BITS) - 1;
            let new = Seen {
                seq: self.seq,
                kind,
                nest,
                thread: thread.0 as u16,
                from: (addr.0.max(start) - start) as u8,
                to: (last.min(end) - start) as u8,
                writes: writes(deed),
            };
            self.at(granule, new);
            if deed == Deed::Free {
                self.end(granule, new);
            }
        }
    }

    /// The thread has called nothing yet.
    fn start_over(&mut self, thread: ThreadId) {
        *self.calls(thread) = ROOT;
        if let Some(laps) = &mut self.laps {
            laps.forget(thread);
        }
    }

    /// The number of the loops around an access.
    fn nest(&mut self, thread: ThreadId, pc: Pc) -> u32 {
        let Some(teller) = &mut self.laps else { return 0 };
        if self.nests.is_full() {
            let Self { nests, cells, found, .. } = self;
            nests.keep(|renumber| {
                let places = cells.cells.iter_mut().map(|cell| &mut cell.place);
                places.for_each(|place| place.each(|seen| renumber(&mut seen.nest)));
                found.each(|seen| renumber(&mut seen.nest));
            });
        }
        self.nests.number(thread, |laps| teller.at(thread, pc, laps))
    }

    fn at(&mut self, granule: u64, new: Seen) {
        let Settings { window: size, policy } = self.settings;
        let mut number = *self.cells.first(granule);
        let mut unknown = new.bytes();
        while number != 0 {
            let cell = &mut self.cells.cells[number as usize - 1];
            let next = cell.next;
            let (here, elsewhere) = (cell.bytes & new.bytes(), cell.bytes & !new.bytes());
            if here != 0 {
                unknown &= !here;
                cell.bytes = here;
                let rest = (elsewhere != 0).then(|| cell.place.copy());
                if let Place::Own { first, .. } = &mut cell.place
                    && first.thread != new.thread
                    && self.n_kept >= KEPT_MAX
                {
                    self.n_left_out += 1;
                    cell.place = Place::Own { first: new, write: None, read: None };
                } else {
                    let shared =
                        Self::note(&mut cell.place, new, size, policy, |head, tail, n| match n {
                            None => self.found.pair(granule, head[0], tail),
                            Some(n) => self.found.pattern(granule, head, n),
                        });
                    self.n_shared += u64::from(shared);
                    self.n_kept += u64::from(shared);
                }
                // To the other bytes nothing has happened.
                if let Some(place) = rest {
                    self.n_kept += u64::from(matches!(place, Place::Shared(_)));
                    self.cells.add(granule, elsewhere, place);
                }
            }
            number = next;
        }
        if unknown != 0 {
            let place = Place::Own { first: new, write: None, read: None };
            self.cells.add(granule, unknown, place);
        }
    }

    /// A place takes an access. Whether it became shared by that.
    fn note(
        place: &mut Place,
        new: Seen,
        size: usize,
        policy: Policy,
        mut found: impl FnMut(&[&Seen], &Seen, Option<usize>),
    ) -> bool {
        let mut became = false;
        match place {
            Place::Own { first, write, read } if first.thread == new.thread => {
                let last = if new.writes { write } else { read };
                *last = Some(new);
                return false;
            }
            Place::Own { first, write, read } => {
                let mut before: Vec<Seen> =
                    [Some(*first), *write, *read].into_iter().flatten().collect();
                before.sort_by_key(|one| one.seq);
                before.dedup_by_key(|one| one.seq);
                let (mut window, mut last) = (Window::default(), Last::default());
                for old in before {
                    window.push(old, size, policy, |_, _| {});
                    last.push(old, |_, _| {});
                }
                *place = Place::Shared(Box::new((window, last)));
                became = true;
            }
            Place::Shared(_) => {}
        }
        if let Place::Shared(shared) = place {
            let (window, last) = &mut **shared;
            window.push(new, size, policy, |seen, n| found(seen, &new, Some(n)));
            last.push(new, |head, tail| found(&[head], tail, None));
        }
        became
    }

    /// Memory that was freed: its history is over, but for its end.
    fn end(&mut self, granule: u64, free: Seen) {
        self.drain(granule);
        let place = Place::Own { first: free, write: None, read: None };
        self.cells.add(granule, free.bytes(), place);
    }

    /// Memory that comes to be: what was there before is over.
    fn forget(&mut self, block: Addr, bytes: u64) {
        let last = block.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS;
        for granule in self.cells.granules(block.0 >> GRANULE_BITS, last) {
            self.drain(granule);
        }
    }

    fn drain(&mut self, granule: u64) {
        self.cells.take(granule, |place| {
            if let Place::Shared(mut shared) = place {
                self.n_kept -= 1;
                shared.0.drain(|seen, n| self.found.pattern(granule, seen, n));
            }
        });
    }

    fn calls(&mut self, thread: ThreadId) -> &mut Node {
        let index = thread.0 as usize;
        if index >= self.calls.len() {
            self.calls.resize(index + 1, ROOT);
        }
        &mut self.calls[index]
    }
}
