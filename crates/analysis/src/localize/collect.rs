//! Collects the facts of a run, event by event.
//!
//! A place that only one thread has touched so far, as most of memory is, keeps its first access,
//! its last write and its last read; windows and pairs start when a second thread comes.

use raddle_trace::event::{AtomicAction, Event, Op};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::run::Run;
use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::{Act, Facts, Lap, Pair, PairFact, Pattern, PatternFact, Point, writes};
use super::pairs::Last;
use super::window::{Entry, Policy, Window};
use crate::sharing::GRANULE_BITS;
use crate::witness::Deed;

/// Loops around an access that are kept.
pub const LAPS_MAX: usize = 3;
/// Occurrences of a pair that are kept, each with other threads or loops.
const INSTANCES_MAX: usize = 256;
/// Calls around an access that are told.
const STACK_MAX: usize = 16;

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
    /// By granule, what of it was accessed as one.
    places: FxHashMap<u64, Vec<(Bytes, Place)>>,
    found: Found,
    /// By thread.
    calls: Vec<Node>,
    stacks: Stacks,
    acts: FxHashSet<Key>,
    seq: u64,
    n_shared: u64,
}

/// Bytes of a granule, from the first to the last.
type Bytes = (u64, u64);

enum Place {
    /// By one thread: the first access, the last write, the last read.
    Own {
        first: Seen,
        write: Option<Seen>,
        read: Option<Seen>,
    },
    Shared {
        window: Window<Seen>,
        last: Last<Seen>,
    },
}

/// An access.
#[derive(Clone, Copy, Debug)]
struct Seen {
    thread: ThreadId,
    pc: Pc,
    deed: Deed,
    addr: Addr,
    bytes: u32,
    seq: u64,
    stack: Node,
    laps: [Lap; LAPS_MAX],
    n_laps: u8,
}

impl Entry for Seen {
    fn thread(&self) -> u32 {
        self.thread.0
    }

    fn writes(&self) -> bool {
        writes(self.deed)
    }

    fn meets(&self, other: &Self) -> bool {
        self.addr.0 < other.addr.0 + u64::from(other.bytes)
            && other.addr.0 < self.addr.0 + u64::from(self.bytes)
    }
}

impl Seen {
    fn point(&self) -> Point {
        let Self { thread, seq, addr, bytes, .. } = *self;
        Point { thread, seq, addr, bytes, laps: self.laps[..usize::from(self.n_laps)].to_vec() }
    }

    /// What makes two occurrences of a pair different.
    fn instance(&self) -> (ThreadId, [Lap; LAPS_MAX]) {
        (self.thread, self.laps)
    }
}

type Key = (Pc, Deed);

#[derive(Default)]
struct Found {
    pairs: FxHashMap<[Key; 2], Vec<[Seen; 2]>>,
    patterns: FxHashMap<Vec<Key>, (Vec<Seen>, usize)>,
}

impl Found {
    fn pair(&mut self, head: &Seen, tail: &Seen) {
        let instances = self.pairs.entry([(head.pc, head.deed), (tail.pc, tail.deed)]);
        let instances = instances.or_default();
        let same = |[other_head, other_tail]: &[Seen; 2]| {
            other_head.instance() == head.instance() && other_tail.instance() == tail.instance()
        };
        if instances.len() < INSTANCES_MAX && !instances.iter().rev().any(same) {
            instances.push([*head, *tail]);
        }
    }

    fn pattern(&mut self, seen: &[&Seen], window: usize) {
        let key = seen.iter().map(|one| (one.pc, one.deed)).collect();
        let pattern = self.patterns.entry(key);
        let (_, least) =
            pattern.or_insert_with(|| (seen.iter().copied().copied().collect(), window));
        *least = window.min(*least);
    }
}

impl Collector {
    /// For a run that begins.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            laps: None,
            places: FxHashMap::default(),
            found: Found::default(),
            calls: Vec::new(),
            stacks: Stacks::default(),
            acts: FxHashSet::default(),
            seq: 0,
            n_shared: 0,
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
            Op::Init { object, .. } => self.access(thread, pc, Deed::Init, object, 1),
            Op::Destroy { object, .. } => self.access(thread, pc, Deed::Destroy, object, 1),
            Op::CondWait { cond, .. } => self.access(thread, pc, Deed::Wait, cond, 1),
            Op::SemWait { semaphore, .. } => self.access(thread, pc, Deed::Wait, semaphore, 1),
            Op::CondSignal { cond, .. } | Op::CondBroadcast { cond, .. } => {
                self.access(thread, pc, Deed::Signal, cond, 1);
            }
            Op::SemPost(semaphore) => self.access(thread, pc, Deed::Signal, semaphore, 1),
            Op::Alloc { block, bytes } => self.forget(block, bytes),
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
            Op::Begin { .. } | Op::Fiber(_) => {
                *self.calls(thread) = ROOT;
                if let Some(laps) = &mut self.laps {
                    laps.forget(thread);
                }
            }
            _ => {}
        }
        self.seq += 1;
    }

    /// The run is over, however it ended.
    #[must_use]
    pub fn finish(mut self, run: &Run) -> Facts {
        let places: Vec<u64> = self.places.keys().copied().collect();
        for granule in places {
            self.drain(granule);
        }
        let mut sites: FxHashMap<Pc, Site> = FxHashMap::default();
        let mut site = |pc: Pc| *sites.entry(pc).or_insert_with(|| run.site(pc));
        let mut act = |(pc, deed): Key| Act { site: site(pc), deed };
        let mut pairs: Vec<_> = self
            .found
            .pairs
            .into_iter()
            .map(|([head, tail], instances)| PairFact {
                pair: Pair { head: act(head), tail: act(tail) },
                instances: instances
                    .iter()
                    .map(|[head, tail]| [head.point(), tail.point()])
                    .collect(),
            })
            .collect();
        pairs.sort_unstable_by_key(|fact| fact.pair);
        // Two code addresses may be one site if a module was loaded twice.
        pairs.dedup_by_key(|fact| fact.pair);
        let mut acts: Vec<_> = self.acts.into_iter().map(&mut act).collect();
        acts.sort_unstable();
        acts.dedup();
        let stacks = &self.stacks;
        let mut patterns: Vec<_> = self
            .found
            .patterns
            .into_iter()
            .map(|(key, (seen, window))| PatternFact {
                pattern: Pattern { acts: key.into_iter().map(&mut act).collect() },
                points: seen.iter().map(Seen::point).collect(),
                stacks: seen
                    .iter()
                    .map(|one| stacks.calls(one.stack).map(|pc| run.site(pc)).collect())
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
        }
    }

    fn access(&mut self, thread: ThreadId, pc: Pc, deed: Deed, addr: Addr, bytes: u64) {
        self.acts.insert((pc, deed));
        let mut laps = [NO_LAP; LAPS_MAX];
        let n_laps = match &mut self.laps {
            Some(teller) => teller.at(thread, pc, &mut laps),
            None => 0,
        };
        let stack = *self.calls(thread);
        let bytes = bytes.max(1);
        let last = addr.0.saturating_add(bytes - 1);
        let new = Seen {
            thread,
            pc,
            deed,
            addr,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            seq: self.seq,
            stack,
            laps,
            n_laps: n_laps as u8,
        };
        for granule in addr.0 >> GRANULE_BITS..=last >> GRANULE_BITS {
            let start = granule << GRANULE_BITS;
            let end = start + (1 << GRANULE_BITS) - 1;
            self.at(granule, (addr.0.max(start) - start, last.min(end) - start), new);
        }
    }

    fn at(&mut self, granule: u64, bytes: Bytes, new: Seen) {
        let touches = |&(from, to): &Bytes| from <= bytes.1 && bytes.0 <= to;
        let places = self.places.entry(granule).or_default();
        // Fields that lie side by side are places of their own. What is accessed as a whole for
        // the first time takes over what is known of a part, or of more than it.
        if !places.iter().any(|(known, _)| *known == bytes) {
            let known = places.iter().find(|(known, _)| touches(known));
            let place = match known {
                Some((_, place)) => place.copy(),
                None => Place::Own { first: new, write: None, read: None },
            };
            places.push((bytes, place));
        }
        let Settings { window: size, policy } = self.settings;
        for (_, place) in places.iter_mut().filter(|(known, _)| touches(known)) {
            match place {
                Place::Own { first, write, read } if first.thread == new.thread => {
                    let last = if new.writes() { write } else { read };
                    *last = Some(new);
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
                    self.n_shared += 1;
                    *place = Place::Shared { window, last };
                }
                Place::Shared { .. } => {}
            }
            if let Place::Shared { window, last } = place {
                let found = &mut self.found;
                window.push(new, size, policy, |seen, n| found.pattern(seen, n));
                last.push(new, |head, tail| found.pair(head, tail));
            }
        }
    }

    /// Memory that comes to be: what was there before is over.
    fn forget(&mut self, block: Addr, bytes: u64) {
        let last = block.0.saturating_add(bytes.max(1) - 1) >> GRANULE_BITS;
        let first = block.0 >> GRANULE_BITS;
        if last - first > self.places.len() as u64 {
            let within: Vec<u64> =
                self.places.keys().copied().filter(|at| (first..=last).contains(at)).collect();
            within.into_iter().for_each(|granule| self.drain(granule));
        } else {
            (first..=last).for_each(|granule| self.drain(granule));
        }
    }

    fn drain(&mut self, granule: u64) {
        for (_, place) in self.places.remove(&granule).into_iter().flatten() {
            if let Place::Shared { mut window, .. } = place {
                window.drain(|seen, n| self.found.pattern(seen, n));
            }
        }
    }

    fn calls(&mut self, thread: ThreadId) -> &mut Node {
        let index = thread.0 as usize;
        if index >= self.calls.len() {
            self.calls.resize(index + 1, ROOT);
        }
        &mut self.calls[index]
    }
}

const NO_LAP: Lap = Lap { entry: 0, activation: 0, iteration: None };

impl Place {
    fn copy(&self) -> Self {
        match self {
            Self::Own { first, write, read } => {
                Self::Own { first: *first, write: *write, read: *read }
            }
            Self::Shared { window, last } => {
                Self::Shared { window: window.clone(), last: last.clone() }
            }
        }
    }
}

/// A stack of calls, as a node in a tree of them.
type Node = u32;
const ROOT: Node = 0;

/// The stacks that were seen: each is a call within another.
struct Stacks {
    nodes: Vec<(Node, Pc)>,
    below: FxHashMap<(Node, Pc), Node>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self { nodes: vec![(ROOT, Pc(0))], below: FxHashMap::default() }
    }
}

impl Stacks {
    fn below(&mut self, node: Node, call: Pc) -> Node {
        let nodes = &mut self.nodes;
        *self.below.entry((node, call)).or_insert_with(|| {
            nodes.push((node, call));
            nodes.len() as Node - 1
        })
    }

    fn above(&self, node: Node) -> Node {
        self.nodes[node as usize].0
    }

    /// The calls of a stack, innermost first.
    fn calls(&self, mut node: Node) -> impl Iterator<Item = Pc> + '_ {
        std::iter::from_fn(move || {
            let (above, call) = *self.nodes.get(node as usize).filter(|_| node != ROOT)?;
            node = above;
            Some(call)
        })
        .take(STACK_MAX)
    }
}
