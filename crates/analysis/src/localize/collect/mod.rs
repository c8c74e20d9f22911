//! Collects the facts of a run, event by event.
//!
//! A location that only one thread has touched so far, as is most of memory, keeps its first
//! access, last write and last read. Windows and pairs start when a second thread arrives.

mod cells;
mod classes;
mod nests;
mod stacks;

use raddle_trace::event::{Event, Op};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::run::Run;
use rustc_hash::FxHashMap;

use self::cells::{Cells, Place, SeenAccess};
use self::classes::{AccessClass, AccessClasses, Key};
use self::nests::Nests;
use self::stacks::{Node, ROOT, Stacks};
use super::facts::{
    Facts, LoopIteration, Pair, PairFact, Pattern, PatternFact, Point, SiteAccess, writes,
};
use super::pairs::LastAccesses;
use super::window::{Policy, Window};
use crate::accessed::accessed;
use crate::sharing::GRANULE_BITS;
use crate::witness::AccessKind;

/// Maximum number of enclosing loops kept per access.
pub const LOOPS_MAX: usize = 3;
/// Maximum number of occurrences kept per pair, each with different threads or loops.
const INSTANCES_MAX: usize = 256;

/// Tracks calls and knows the loops that enclose an access.
pub trait EnclosingLoops: Send {
    /// The thread enters a function that will return to this address.
    fn enter(&mut self, thread: ThreadId, pc: Pc);
    /// The thread leaves its current function.
    fn leave(&mut self, thread: ThreadId);
    /// The thread starts, or continues as another fiber.
    fn forget(&mut self, thread: ThreadId);
    /// Fills in the loops around an access, innermost first, and returns how many there are.
    fn loops_at(
        &mut self,
        thread: ThreadId,
        pc: Pc,
        loops: &mut [LoopIteration; LOOPS_MAX],
    ) -> usize;
}

/// What the collector keeps.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of entries in a window.
    pub window: usize,
    /// How a window keeps its entries.
    pub policy: Policy,
}

impl Default for Settings {
    fn default() -> Self {
        Self { window: 5, policy: Policy::Precise }
    }
}

/// Collects the facts of one run.
pub struct Collector {
    settings: Settings,
    loops: Option<Box<dyn EnclosingLoops>>,
    cells: Cells,
    found: Found,
    classes: AccessClasses,
    nests: Nests,
    /// Call stack by thread.
    calls: Vec<Node>,
    stacks: Stacks,
    seq: u64,
    n_shared: u64,
    /// Shared locations that are kept now; `n_left_out` counts those that did not fit.
    n_kept: u64,
    n_left_out: u64,
}

/// Maximum number of shared locations kept at a time, about half a kilobyte each.
const KEPT_MAX: u64 = 1 << 21;

/// An occurrence: the access and its granule.
type At = (SeenAccess, u64);

#[derive(Default)]
struct Found {
    /// By the classes of head and tail.
    pairs: FxHashMap<[u32; 2], Vec<[At; 2]>>,
    /// By the classes of the accesses; the third is empty for a pair.
    patterns: FxHashMap<[Option<u32>; 3], (Vec<At>, usize)>,
}

impl Found {
    fn pair(&mut self, granule: u64, head: &SeenAccess, tail: &SeenAccess) {
        let instances = self.pairs.entry([head.class, tail.class]).or_default();
        let same = |[other_head, other_tail]: &[At; 2]| {
            other_head.0.nest == head.nest && other_tail.0.nest == tail.nest
        };
        if instances.len() < INSTANCES_MAX && !instances.iter().rev().any(same) {
            instances.push([(*head, granule), (*tail, granule)]);
        }
    }

    fn pattern(&mut self, granule: u64, seen: &[&SeenAccess], window: usize) {
        let mut key = [None; 3];
        for (place, one) in key.iter_mut().zip(seen) {
            *place = Some(one.class);
        }
        let (_, least) = self
            .patterns
            .entry(key)
            .or_insert_with(|| (seen.iter().map(|one| (**one, granule)).collect(), window));
        *least = window.min(*least);
    }

    /// Visits every access that is still kept.
    fn each(&mut self, mut visit: impl FnMut(&mut SeenAccess)) {
        let pairs = self.pairs.values_mut().flatten().flatten();
        let patterns = self.patterns.values_mut().flat_map(|(at, _)| at);
        pairs.chain(patterns).for_each(|(seen, _)| visit(seen));
    }
}

impl Collector {
    /// A collector for a run that is about to start.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            loops: None,
            cells: Cells::default(),
            found: Found::default(),
            classes: AccessClasses::default(),
            nests: Nests::default(),
            calls: Vec::new(),
            stacks: Stacks::default(),
            seq: 0,
            n_shared: 0,
            n_kept: 0,
            n_left_out: 0,
        }
    }

    /// From now on, accesses carry their enclosing loops.
    pub fn track_loops(&mut self, loops: Box<dyn EnclosingLoops>) {
        self.loops = Some(loops);
    }

    /// Adds the next event.
    pub fn push(&mut self, event: &Event) {
        let Event { thread, pc, op } = *event;
        match op {
            Op::Alloc { block, room: bytes, .. } | Op::Map { addr: block, bytes } => {
                self.forget(block, bytes);
            }
            Op::Unmap { addr, bytes } => self.unmap(thread, pc, addr, bytes),
            Op::Enter { return_to } => {
                let from = *self.calls(thread);
                *self.calls(thread) = self.stacks.below(from, return_to);
                if let Some(loops) = &mut self.loops {
                    loops.enter(thread, pc);
                }
            }
            Op::Leave => {
                let from = *self.calls(thread);
                *self.calls(thread) = self.stacks.above(from);
                if let Some(loops) = &mut self.loops {
                    loops.leave(thread);
                }
            }
            Op::Begin { stack_low, stack_high, .. } => {
                self.forget(stack_low, stack_high.0.saturating_sub(stack_low.0));
                self.start_over(thread);
            }
            Op::Fiber(_) => self.start_over(thread),
            // Who arrives at a barrier first makes no difference.
            Op::BarrierEnter(_) => {}
            _ => {
                if let Some((kind, addr, bytes)) = accessed(&op) {
                    self.access(thread, pc, kind, addr, bytes);
                }
            }
        }
        self.seq += 1;
    }

    /// Adds a thread that was blocked on a lock when the run ended, and the thread that holds it:
    /// a pair and a pattern that only such runs have.
    pub fn block(&mut self, thread: ThreadId, pc: Pc, lock: Addr, holder: ThreadId) {
        let kind = AccessKind::Block;
        let stack = *self.calls(thread);
        let class = self.classes.number(AccessClass { thread, pc, kind, stack });
        let nest = self.nest(thread, pc);
        let granule = lock.0 >> GRANULE_BITS;
        let from = (lock.0 - (granule << GRANULE_BITS)) as u8;
        let (seq, to, writes) = (self.seq, from, true);
        let blocked = SeenAccess { seq, class, nest, thread: thread.0 as u16, from, to, writes };
        self.seq += 1;
        let classes = &self.classes.all;
        let is_taken = |one: &SeenAccess| {
            let class = classes[one.class as usize];
            class.thread == holder && class.kind == AccessKind::Acquire && one.from == from
        };
        let mut taken = None;
        self.cells.each(granule, |seen| {
            if is_taken(seen) && taken.is_none_or(|taken: SeenAccess| taken.seq < seen.seq) {
                taken = Some(*seen);
            }
        });
        if let Some(taken) = taken {
            self.found.pair(granule, &taken, &blocked);
            self.found.pattern(granule, &[&taken, &blocked], 2);
        }
    }

    /// The facts of the run, which is over.
    #[must_use]
    pub fn finish(mut self, run: &Run) -> Facts {
        self.forget(Addr(0), u64::MAX);
        let Self { found, classes, nests, stacks, .. } = self;
        let mut sites: FxHashMap<Pc, Site> = FxHashMap::default();
        let mut site = |pc: Pc| *sites.entry(pc).or_insert_with(|| run.site(pc));
        let mut access = |(pc, kind): Key| SiteAccess { site: site(pc), kind };
        let class = |number: u32| classes.all[number as usize];
        let point = |&(seen, granule): &At| Point {
            thread: class(seen.class).thread,
            seq: seen.seq,
            addr: Addr((granule << GRANULE_BITS) + u64::from(seen.from)),
            bytes: u32::from(seen.to - seen.from) + 1,
            loops: nests.get(seen.nest).to_vec(),
        };
        // Classes that differ only in thread or stack belong to one pair.
        let mut pairs: FxHashMap<[Key; 2], Vec<[At; 2]>> = FxHashMap::default();
        for (classes, instances) in found.pairs {
            pairs.entry(classes.map(|number| class(number).key())).or_default().extend(instances);
        }
        let mut pairs: Vec<_> = pairs
            .into_iter()
            .map(|([head, tail], mut instances)| {
                instances.sort_by_key(|[_, tail]| tail.0.seq);
                instances.truncate(INSTANCES_MAX);
                PairFact {
                    pair: Pair { head: access(head), tail: access(tail) },
                    instances: instances.iter().map(|at| [point(&at[0]), point(&at[1])]).collect(),
                }
            })
            .collect();
        pairs.sort_unstable_by_key(|fact| fact.pair);
        // Two code addresses can be one site if a module was loaded twice.
        pairs.dedup_by_key(|fact| fact.pair);
        let mut accesses: Vec<_> = classes.all.iter().map(|class| access(class.key())).collect();
        accesses.sort_unstable();
        accesses.dedup();
        let mut patterns: FxHashMap<Vec<Key>, (Vec<At>, usize)> = FxHashMap::default();
        for (classes, (at, window)) in found.patterns {
            let key = classes.into_iter().flatten().map(|number| class(number).key()).collect();
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
                pattern: Pattern { accesses: key.into_iter().map(&mut access).collect() },
                points: at.iter().map(point).collect(),
                stacks: at
                    .iter()
                    .map(|(seen, _)| {
                        stacks.calls(class(seen.class).stack).map(|pc| run.site(pc)).collect()
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
            accesses,
            n_events: self.seq,
            n_threads: run.threads.len() as u32,
            n_shared: self.n_shared,
            n_left_out: self.n_left_out,
            is_exact: true,
        }
    }

    fn access(&mut self, thread: ThreadId, pc: Pc, kind: AccessKind, addr: Addr, bytes: u64) {
        let stack = *self.calls(thread);
        let class = self.classes.number(AccessClass { thread, pc, kind, stack });
        let nest = self.nest(thread, pc);
        let last = addr.0.saturating_add(bytes.max(1) - 1);
        for granule in addr.0 >> GRANULE_BITS..=last >> GRANULE_BITS {
            let start = granule << GRANULE_BITS;
            let end = start + (1 << GRANULE_BITS) - 1;
            let new = SeenAccess {
                seq: self.seq,
                class,
                nest,
                thread: thread.0 as u16,
                from: (addr.0.max(start) - start) as u8,
                to: (last.min(end) - start) as u8,
                writes: writes(kind),
            };
            self.touch(granule, new);
            if kind == AccessKind::Free {
                self.end(granule, new);
            }
        }
    }

    /// Resets the thread's call stack.
    fn start_over(&mut self, thread: ThreadId) {
        *self.calls(thread) = ROOT;
        if let Some(loops) = &mut self.loops {
            loops.forget(thread);
        }
    }

    /// The number of the loop nest around an access.
    fn nest(&mut self, thread: ThreadId, pc: Pc) -> u32 {
        let Some(tracker) = &mut self.loops else { return 0 };
        if self.nests.is_full() {
            let Self { nests, cells, found, .. } = self;
            nests.keep(|renumber| {
                let places = cells.cells.iter_mut().map(|cell| &mut cell.place);
                places.for_each(|place| place.each(|seen| renumber(&mut seen.nest)));
                found.each(|seen| renumber(&mut seen.nest));
            });
        }
        self.nests.number(thread, |loops| tracker.loops_at(thread, pc, loops))
    }

    fn touch(&mut self, granule: u64, new: SeenAccess) {
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
                    let shared = Self::push_to(
                        &mut cell.place,
                        new,
                        size,
                        policy,
                        |head, tail, n| match n {
                            None => self.found.pair(granule, head[0], tail),
                            Some(n) => self.found.pattern(granule, head, n),
                        },
                    );
                    self.n_shared += u64::from(shared);
                    self.n_kept += u64::from(shared);
                }
                // The other bytes were not accessed.
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

    /// Adds an access to a location. Returns whether that made the location shared.
    fn push_to(
        place: &mut Place,
        new: SeenAccess,
        size: usize,
        policy: Policy,
        mut found: impl FnMut(&[&SeenAccess], &SeenAccess, Option<usize>),
    ) -> bool {
        let mut became = false;
        match place {
            Place::Own { first, write, read } if first.thread == new.thread => {
                let last = if new.writes { write } else { read };
                *last = Some(new);
                return false;
            }
            Place::Own { first, write, read } => {
                let mut before: Vec<SeenAccess> =
                    [Some(*first), *write, *read].into_iter().flatten().collect();
                before.sort_by_key(|one| one.seq);
                before.dedup_by_key(|one| one.seq);
                let (mut window, mut last) = (Window::default(), LastAccesses::default());
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

    /// Closes memory that was freed, except for the free itself.
    fn end(&mut self, granule: u64, free: SeenAccess) {
        self.drain(granule);
        let place = Place::Own { first: free, write: None, read: None };
        self.cells.add(granule, free.bytes(), place);
    }

    /// Closes memory that was unmapped. Only what was accessed counts: a mapping may be larger than
    /// all memory.
    fn unmap(&mut self, thread: ThreadId, pc: Pc, addr: Addr, bytes: u64) {
        let last = addr.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS;
        for granule in self.cells.granules(addr.0 >> GRANULE_BITS, last) {
            if *self.cells.first(granule) != 0 {
                let start = Addr(granule << GRANULE_BITS);
                self.access(thread, pc, AccessKind::Free, start, 1 << GRANULE_BITS);
            }
        }
    }

    /// Closes whatever was in memory that has just been allocated.
    fn forget(&mut self, block: Addr, bytes: u64) {
        let last = block.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS;
        for granule in self.cells.granules(block.0 >> GRANULE_BITS, last) {
            self.drain(granule);
        }
    }

    fn drain(&mut self, granule: u64) {
        self.cells.remove(granule, |place| {
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
