//! Collects the facts of a run, event by event.
//!
//! A place that only one thread has touched so far, as most of memory is, keeps its first access,
//! its last write and its last read; windows and pairs start when a second thread comes.

use raddle_trace::event::{AtomicAction, Event, Op};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::run::Run;
use rustc_hash::FxHashMap;

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
    cells: Cells,
    found: Found,
    kinds: Kinds,
    nests: Vec<([Lap; LAPS_MAX], u8)>,
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

enum Place {
    /// By one thread: the first access, the last write, the last read.
    Own {
        first: Seen,
        write: Option<Seen>,
        read: Option<Seen>,
    },
    Shared(Box<(Window<Seen>, Last<Seen>)>),
}

/// An access. Small, since there are many: what is the same each time is in its kind.
#[derive(Clone, Copy, Debug)]
struct Seen {
    seq: u64,
    kind: u32,
    /// Number of its loops; 0 for none.
    nest: u32,
    thread: u16,
    /// First and last byte within the granule.
    from: u8,
    to: u8,
    writes: bool,
}

const _: () = assert!(size_of::<Option<Seen>>() == 24);

impl Seen {
    /// A bit for each byte of the granule.
    fn bytes(&self) -> u8 {
        (u8::MAX >> (7 - self.to + self.from)) << self.from
    }
}

impl Entry for Seen {
    fn thread(&self) -> u32 {
        u32::from(self.thread)
    }

    fn writes(&self) -> bool {
        self.writes
    }
}

/// What is the same about many accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    thread: ThreadId,
    pc: Pc,
    deed: Deed,
    stack: Node,
}

impl Kind {
    fn key(self) -> Key {
        (self.pc, self.deed)
    }
}

/// Kinds that are found without a search.
const N_RECENT: usize = 1 << 12;

/// All kinds, by number.
struct Kinds {
    all: Vec<Kind>,
    numbers: FxHashMap<Kind, u32>,
    recent: Vec<u32>,
}

impl Kinds {
    fn number(&mut self, kind: Kind) -> u32 {
        let mixed = (kind.pc.0 ^ u64::from(kind.stack) << 7 ^ u64::from(kind.thread.0) << 3)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let recent = &mut self.recent[(mixed >> 52) as usize % N_RECENT];
        if self.all.get(*recent as usize) == Some(&kind) {
            return *recent;
        }
        let all = &mut self.all;
        *recent = *self.numbers.entry(kind).or_insert_with(|| {
            all.push(kind);
            all.len() as u32 - 1
        });
        *recent
    }
}

type Key = (Pc, Deed);
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
}

/// What is known of memory, by granule: most often nothing, or one place.
#[derive(Default)]
struct Cells {
    pages: FxHashMap<u64, Box<[u32]>>,
    cells: Vec<Cell>,
    free: Vec<u32>,
}

/// A place: bytes of a granule to which the same has happened; and the number of the next one
/// in the same granule, plus one.
struct Cell {
    next: u32,
    /// A bit for each byte.
    bytes: u8,
    place: Place,
}

/// Granules of a page.
const PAGE: u64 = 512;

impl Cells {
    /// The number of a granule's first cell, plus one; 0 for none.
    fn first(&mut self, granule: u64) -> &mut u32 {
        let page = self.pages.entry(granule / PAGE);
        let page = page.or_insert_with(|| vec![0; PAGE as usize].into());
        &mut page[(granule % PAGE) as usize]
    }

    /// Adds a cell to a granule.
    fn add(&mut self, granule: u64, bytes: u8, place: Place) -> u32 {
        let next = *self.first(granule);
        let cell = Cell { next, bytes, place };
        let number = match self.free.pop() {
            Some(number) => {
                self.cells[number as usize] = cell;
                number + 1
            }
            None => {
                self.cells.push(cell);
                self.cells.len() as u32
            }
        };
        *self.first(granule) = number;
        number
    }

    /// Takes all cells out of a granule.
    fn take(&mut self, granule: u64, mut taken: impl FnMut(Place)) {
        let Some(page) = self.pages.get_mut(&(granule / PAGE)) else { return };
        let mut number = std::mem::take(&mut page[(granule % PAGE) as usize]);
        while number != 0 {
            let index = number - 1;
            let cell = &mut self.cells[index as usize];
            number = cell.next;
            let none = Seen { seq: 0, kind: 0, nest: 0, thread: 0, from: 0, to: 0, writes: false };
            let nothing = Place::Own { first: none, write: None, read: None };
            taken(std::mem::replace(&mut cell.place, nothing));
            self.free.push(index);
        }
    }

    /// The granules of a range that may have cells, by page.
    fn granules(&self, first: u64, last: u64) -> Vec<u64> {
        let pages = first / PAGE..=last / PAGE;
        let within = |page: u64| (page * PAGE).max(first)..=(page * PAGE + PAGE - 1).min(last);
        if last / PAGE - first / PAGE > self.pages.len() as u64 {
            let pages = self.pages.keys().copied().filter(|page| pages.contains(page));
            pages.flat_map(within).collect()
        } else {
            pages.filter(|page| self.pages.contains_key(page)).flat_map(within).collect()
        }
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
            kinds: Kinds {
                all: Vec::new(),
                numbers: FxHashMap::default(),
                recent: vec![0; N_RECENT],
            },
            nests: vec![([NO_LAP; LAPS_MAX], 0)],
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
            Op::Begin { stack_low, stack_high, .. } => {
                self.forget(stack_low, stack_high.0.saturating_sub(stack_low.0));
                self.start_over(thread);
            }
            Op::Fiber(_) => self.start_over(thread),
            _ => {}
        }
        self.seq += 1;
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
        let point = |&(seen, granule): &At| {
            let (laps, n_laps) = &nests[seen.nest as usize];
            Point {
                thread: kind(seen.kind).thread,
                seq: seen.seq,
                addr: Addr((granule << GRANULE_BITS) + u64::from(seen.from)),
                bytes: u32::from(seen.to - seen.from) + 1,
                laps: laps[..usize::from(*n_laps)].to_vec(),
            }
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
        let mut laps = [NO_LAP; LAPS_MAX];
        let n_laps = teller.at(thread, pc, &mut laps) as u8;
        if n_laps == 0 {
            return 0;
        }
        // Most often it is the same as before.
        if self.nests.last() != Some(&(laps, n_laps)) {
            self.nests.push((laps, n_laps));
        }
        self.nests.len() as u32 - 1
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

const NO_LAP: Lap = Lap { entry: 0, activation: 0, iteration: None };

impl Place {
    fn copy(&self) -> Self {
        match self {
            Self::Own { first, write, read } => {
                Self::Own { first: *first, write: *write, read: *read }
            }
            Self::Shared(shared) => Self::Shared(shared.clone()),
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
