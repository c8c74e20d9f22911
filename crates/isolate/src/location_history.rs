//! What a trace tells of one location: who accessed it, in which order, and what kept threads
//! in that order.
//!
//! Two accesses are synchronized if a lock excludes them from each other, or if one must come
//! before the other: by fork and join, wake-ups, semaphores, barriers, channels, one-time
//! initialization, or atomics that release and acquire. Places are counted in steps, as
//! schedules count them.

use raddle_analysis::lock_words::{LockWords, Meaning};
use raddle_analysis::locks::LockSet;
use raddle_analysis::order::{Clocks, Moment};
use raddle_analysis::vector_clock::VectorClock;
use raddle_analysis::witness::{AccessKind, Witness};
use raddle_trace::event::{AtomicAction, Event, Op};
use raddle_trace::file::{ReadError, Trace};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::record::Wake;
use rustc_hash::FxHashMap;

use crate::origin::Location;

/// An access to the location.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) thread: ThreadId,
    pub(crate) pc: Pc,
    pub(crate) kind: AccessKind,
    pub(crate) location: Location,
    /// Steps that the thread performs before it.
    pub(crate) at: u64,
    /// How many accesses of its thread at the same place of the program, to the same location
    /// and of the same kind, came before.
    pub(crate) nth: u64,
    moment: Moment,
    /// Locks held, and whether for reading only.
    locks: Vec<(Addr, bool)>,
}

impl Access {
    /// Whether it changes what is there.
    pub(crate) fn writes(&self) -> bool {
        self.kind.writes() || self.kind == AccessKind::Signal
    }

    /// As weaving needs it.
    pub(crate) fn witness(&self) -> Witness {
        Witness {
            thread: self.thread,
            pc: self.pc,
            kind: self.kind,
            addr: Addr(self.location.address),
            bytes: self.location.n_bytes as u32,
            at: self.at,
            seq: 0,
            moment: Moment(0),
            weak: Moment(0),
            locks: LockSet::NONE,
        }
    }
}

/// What a trace says about one location.
#[derive(Debug, Default)]
pub(crate) struct LocationHistory {
    /// In the order in which they happened, since the memory was last given out.
    pub(crate) accesses: Vec<Access>,
    /// Where the memory was given out, if it is part of a heap block: who, and where.
    pub(crate) allocated: Option<(ThreadId, Pc)>,
    clocks: Clocks,
}

impl LocationHistory {
    /// Whether something keeps two accesses of different threads in order, or apart.
    pub(crate) fn synchronized(&self, first: &Access, second: &Access) -> bool {
        let is_ordered = self.clocks.before(first.moment, second.moment);
        let is_excluded = first.locks.iter().any(|(lock, shared)| {
            second.locks.iter().any(|(other, too)| lock == other && !(*shared && *too))
        });
        is_ordered || is_excluded || first.kind.is_atomic() && second.kind.is_atomic()
    }
}

/// Reads what a trace tells of a location.
pub(crate) fn of(trace: &Trace, location: Location) -> Result<LocationHistory, ReadError> {
    let mut reader = Reader { location, ..Reader::default() };
    for event in trace.events() {
        reader.push(&event?);
    }
    let mut counts: FxHashMap<(ThreadId, Pc, bool), u64> = FxHashMap::default();
    for access in &mut reader.history.accesses {
        let count = counts.entry((access.thread, access.pc, access.writes())).or_default();
        access.nth = *count;
        *count += 1;
    }
    Ok(reader.history)
}

#[derive(Default)]
struct Reader {
    location: Location,
    history: LocationHistory,
    threads: Vec<State>,
    words: LockWords,
    /// What was given away: to a thread at its start, at its end, at an object.
    starts: FxHashMap<ThreadId, VectorClock>,
    ends: FxHashMap<ThreadId, VectorClock>,
    objects: FxHashMap<Addr, Vec<VectorClock>>,
    posts: FxHashMap<Addr, std::collections::VecDeque<VectorClock>>,
}

#[derive(Clone, Default)]
struct State {
    steps: u64,
    locks: Vec<(Addr, bool)>,
}

impl Reader {
    fn state(&mut self, thread: ThreadId) -> &mut State {
        let index = thread.0 as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, State::default);
        }
        &mut self.threads[index]
    }

    fn push(&mut self, event: &Event) {
        let Event { thread, pc, op } = *event;
        if let Some(gift) = self.starts.remove(&thread) {
            self.history.clocks.receive(thread, &gift);
        }
        match op {
            Op::Read(access) | Op::Write(access) => {
                let state = self.state(thread);
                state.steps += u64::from(access.repeats) + u64::from(!access.range);
                let kind =
                    if matches!(op, Op::Read(_)) { AccessKind::Read } else { AccessKind::Write };
                self.note(thread, pc, kind, access.addr, access.bytes);
            }
            Op::Atomic(atomic) => {
                let kind = match atomic.action {
                    AtomicAction::Load | AtomicAction::Miss => AccessKind::AtomicRead,
                    _ => AccessKind::AtomicWrite,
                };
                match self.words.push(thread, &atomic) {
                    Meaning::Acquire => self.state(thread).locks.push((atomic.addr, false)),
                    Meaning::Release => self.release(thread, atomic.addr),
                    Meaning::Nothing => {}
                }
                self.note(thread, pc, kind, atomic.addr, u64::from(atomic.bytes));
                // Acquire and up, without release; release and up.
                if matches!(atomic.order, 1 | 2 | 4 | 5) {
                    self.take_at(thread, atomic.addr);
                }
                if matches!(atomic.order, 3..=5) && kind == AccessKind::AtomicWrite {
                    self.give_at(thread, atomic.addr);
                }
            }
            Op::Step => self.state(thread).steps += 1,
            Op::Repeats { n } => self.state(thread).steps += n,
            Op::Spawn(child) => {
                let gift = self.history.clocks.publish(thread);
                self.starts.insert(child, gift);
            }
            Op::End => {
                let gift = self.history.clocks.publish(thread);
                self.ends.insert(thread, gift);
            }
            Op::Join(child) => {
                if let Some(gift) = self.ends.get(&child).cloned() {
                    self.history.clocks.receive(thread, &gift);
                }
            }
            Op::Acquire(lock) => {
                self.note(thread, pc, AccessKind::Acquire, lock.lock, 1);
                self.state(thread).locks.push((lock.lock, lock.shared));
            }
            Op::Release(lock) => self.release(thread, lock.lock),
            Op::Init { object, .. } => self.note(thread, pc, AccessKind::Init, object, 1),
            Op::Destroy { object, .. } => self.note(thread, pc, AccessKind::Destroy, object, 1),
            Op::CondWait { cond, .. } => self.note(thread, pc, AccessKind::Wait, cond, 1),
            Op::CondWake { cond, how: Wake::Woken, .. } => self.take_at(thread, cond),
            Op::CondSignal { cond, n_woken } | Op::CondBroadcast { cond, n_woken } => {
                self.note(thread, pc, AccessKind::Signal, cond, 1);
                if n_woken > 0 {
                    self.give_at(thread, cond);
                }
            }
            Op::FutexWoken { futex, how: Wake::Woken, .. } => self.take_at(thread, futex),
            Op::FutexWake { futex, n_woken } if n_woken > 0 => self.give_at(thread, futex),
            Op::SemPost(semaphore) => {
                self.note(thread, pc, AccessKind::Signal, semaphore, 1);
                let gift = self.history.clocks.publish(thread);
                self.posts.entry(semaphore).or_default().push_back(gift);
            }
            Op::SemWait { semaphore, .. } => {
                self.note(thread, pc, AccessKind::Lower, semaphore, 1);
                let post = self.posts.entry(semaphore).or_default().pop_front();
                if let Some(gift) = post {
                    self.history.clocks.receive(thread, &gift);
                }
            }
            Op::SemAsk(semaphore) => self.note(thread, pc, AccessKind::Ask, semaphore, 1),
            Op::BarrierEnter(barrier) => self.give_at(thread, barrier),
            Op::BarrierLeave(barrier) => self.take_at(thread, barrier),
            Op::OnceEnd { control, .. } | Op::Before(control) => self.give_at(thread, control),
            Op::OncePass(control) | Op::After(control) => self.take_at(thread, control),
            // No object has an address that small.
            Op::Send(op) => self.give_at(thread, Addr(op.channel)),
            Op::Receive(op) => self.take_at(thread, Addr(op.channel)),
            Op::Alloc { block, room: bytes, .. } | Op::Map { addr: block, bytes }
                if self.location.overlaps(block.0, bytes) =>
            {
                self.history.accesses.clear();
                self.history.allocated = Some((thread, pc));
            }
            Op::Free { block, bytes } | Op::Unmap { addr: block, bytes } => {
                self.note(thread, pc, AccessKind::Free, block, bytes)
            }
            Op::Fence { .. }
            | Op::Enter { .. }
            | Op::Leave
            | Op::Switch { .. }
            | Op::Choice { .. }
            | Op::Begin { .. }
            | Op::Detach(_)
            | Op::CondWake { .. }
            | Op::OnceBegin(_)
            | Op::FutexWait { .. }
            | Op::FutexWoken { .. }
            | Op::FutexWake { .. }
            | Op::Alloc { .. }
            | Op::Map { .. }
            | Op::Sleep { .. }
            | Op::Yield
            | Op::Block { .. }
            | Op::Unblock { .. }
            | Op::Clock { .. }
            | Op::Exit { .. }
            | Op::Fork
            | Op::Signal { .. }
            | Op::UnitBegin(_)
            | Op::UnitEnd(_)
            | Op::Fiber(_) => {}
        }
    }

    fn release(&mut self, thread: ThreadId, lock: Addr) {
        let locks = &mut self.state(thread).locks;
        if let Some(at) = locks.iter().rposition(|(held, _)| *held == lock) {
            locks.remove(at);
        }
    }

    fn give_at(&mut self, thread: ThreadId, object: Addr) {
        let gift = self.history.clocks.publish(thread);
        let gifts = self.objects.entry(object).or_default();
        // What a later gift knows of the same thread, it knows too.
        gifts.push(gift);
        if gifts.len() > GIFTS_MAX {
            gifts.remove(0);
        }
    }

    fn take_at(&mut self, thread: ThreadId, object: Addr) {
        if let Some(gifts) = self.objects.get(&object) {
            for gift in gifts {
                self.history.clocks.receive(thread, gift);
            }
        }
    }

    fn note(&mut self, thread: ThreadId, pc: Pc, kind: AccessKind, addr: Addr, bytes: u64) {
        if !self.location.overlaps(addr.0, bytes.max(1)) {
            return;
        }
        let moment = self.history.clocks.now(thread);
        let state = self.state(thread);
        let (at, locks) = (state.steps.saturating_sub(1), state.locks.clone());
        let location = Location { address: addr.0, n_bytes: bytes.max(1) };
        let access = Access { thread, pc, kind, location, at, nth: 0, moment, locks };
        self.history.accesses.push(access);
    }
}

/// As many as a barrier has threads.
const GIFTS_MAX: usize = 64;

impl Default for Location {
    fn default() -> Self {
        Self { address: 0, n_bytes: 1 }
    }
}
