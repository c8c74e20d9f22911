//! What a trace tells of one location: who accessed it, in which order, and what kept threads
//! in that order.
//!
//! Two accesses are synchronized if a lock excludes them from each other, or if one must come
//! before the other: by fork and join, wake-ups, semaphores, barriers, one-time
//! initialization, or atomics that release and acquire. Places are counted in steps, as
//! schedules count them.

use raddle_analysis::lock_words::{LockWords, Meaning};
use raddle_analysis::locks::LockSet;
use raddle_analysis::order::{Clocks, Gift, Moment};
use raddle_analysis::scan::{Model, Scan};
use raddle_analysis::sharing::Sharing;
use raddle_analysis::witness::{Deed, Witness};
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
    pub(crate) deed: Deed,
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
        self.deed.writes() || self.deed == Deed::Signal
    }

    /// As weaving needs it.
    pub(crate) fn witness(&self) -> Witness {
        Witness {
            thread: self.thread,
            pc: self.pc,
            deed: self.deed,
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

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// In the order in which they happened, since the memory was last given out.
    pub(crate) accesses: Vec<Access>,
    /// Where the memory was given out, if it is part of a heap block: who, and where.
    pub(crate) allocated: Option<(ThreadId, Pc)>,
    clocks: Clocks,
}

impl Story {
    /// Whether something keeps two accesses of different threads in order, or apart.
    pub(crate) fn synchronized(&self, first: &Access, second: &Access) -> bool {
        let is_ordered = self.clocks.before(first.moment, second.moment);
        let is_excluded = first.locks.iter().any(|(lock, shared)| {
            second.locks.iter().any(|(other, too)| lock == other && !(*shared && *too))
        });
        is_ordered || is_excluded || first.deed.is_atomic() && second.deed.is_atomic()
    }
}

/// Reads what a trace tells of a location.
pub(crate) fn story(trace: &Trace, location: Location) -> Result<Story, ReadError> {
    let mut reader = Reader { location, ..Reader::default() };
    for event in trace.events() {
        reader.push(&event?);
    }
    let mut counts: FxHashMap<(ThreadId, Pc, bool), u64> = FxHashMap::default();
    for access in &mut reader.story.accesses {
        let count = counts.entry((access.thread, access.pc, access.writes())).or_default();
        access.nth = *count;
        *count += 1;
    }
    Ok(reader.story)
}

/// Reads what weaving needs to know of a run.
pub(crate) fn model(trace: &Trace) -> Result<Model, ReadError> {
    let mut sharing = Sharing::default();
    for event in trace.events() {
        sharing.push(&event?);
    }
    let mut scan = Scan::new(&sharing);
    for event in trace.events() {
        scan.push(&event?);
    }
    Ok(scan.finish())
}

#[derive(Default)]
struct Reader {
    location: Location,
    story: Story,
    threads: Vec<State>,
    words: LockWords,
    /// What was given away: to a thread at its start, at its end, at an object.
    starts: FxHashMap<ThreadId, Gift>,
    ends: FxHashMap<ThreadId, Gift>,
    objects: FxHashMap<Addr, Vec<Gift>>,
    posts: FxHashMap<Addr, std::collections::VecDeque<Gift>>,
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
            self.story.clocks.take(thread, &gift);
        }
        match op {
            Op::Read(access) | Op::Write(access) => {
                let state = self.state(thread);
                state.steps += u64::from(access.repeats) + u64::from(!access.range);
                let deed = if matches!(op, Op::Read(_)) { Deed::Read } else { Deed::Write };
                self.note(thread, pc, deed, access.addr, access.bytes);
            }
            Op::Atomic(atomic) => {
                let deed = match atomic.action {
                    AtomicAction::Load | AtomicAction::Miss => Deed::AtomicRead,
                    _ => Deed::AtomicWrite,
                };
                match self.words.push(thread, &atomic) {
                    Meaning::Acquire => self.state(thread).locks.push((atomic.addr, false)),
                    Meaning::Release => self.release(thread, atomic.addr),
                    Meaning::Nothing => {}
                }
                self.note(thread, pc, deed, atomic.addr, u64::from(atomic.bytes));
                // Acquire and up, without release; release and up.
                if matches!(atomic.order, 1 | 2 | 4 | 5) {
                    self.take_at(thread, atomic.addr);
                }
                if matches!(atomic.order, 3..=5) && deed == Deed::AtomicWrite {
                    self.give_at(thread, atomic.addr);
                }
            }
            Op::Step => self.state(thread).steps += 1,
            Op::Repeats { n } => self.state(thread).steps += n,
            Op::Spawn(child) => {
                let gift = self.story.clocks.give(thread);
                self.starts.insert(child, gift);
            }
            Op::End => {
                let gift = self.story.clocks.give(thread);
                self.ends.insert(thread, gift);
            }
            Op::Join(child) => {
                if let Some(gift) = self.ends.get(&child).cloned() {
                    self.story.clocks.take(thread, &gift);
                }
            }
            Op::Acquire(lock) => {
                self.note(thread, pc, Deed::Acquire, lock.lock, 1);
                self.state(thread).locks.push((lock.lock, lock.shared));
            }
            Op::Release(lock) => self.release(thread, lock.lock),
            Op::Init { object, .. } => self.note(thread, pc, Deed::Init, object, 1),
            Op::Destroy { object, .. } => self.note(thread, pc, Deed::Destroy, object, 1),
            Op::CondWait { cond, .. } => self.note(thread, pc, Deed::Wait, cond, 1),
            Op::CondWake { cond, how: Wake::Woken, .. } => self.take_at(thread, cond),
            Op::CondSignal { cond, n_woken } | Op::CondBroadcast { cond, n_woken } => {
                self.note(thread, pc, Deed::Signal, cond, 1);
                if n_woken > 0 {
                    self.give_at(thread, cond);
                }
            }
            Op::FutexWoken { futex, how: Wake::Woken, .. } => self.take_at(thread, futex),
            Op::FutexWake { futex, n_woken } if n_woken > 0 => self.give_at(thread, futex),
            Op::SemPost(semaphore) => {
                self.note(thread, pc, Deed::Signal, semaphore, 1);
                let gift = self.story.clocks.give(thread);
                self.posts.entry(semaphore).or_default().push_back(gift);
            }
            Op::SemWait { semaphore, .. } => {
                self.note(thread, pc, Deed::Lower, semaphore, 1);
                let post = self.posts.entry(semaphore).or_default().pop_front();
                if let Some(gift) = post {
                    self.story.clocks.take(thread, &gift);
                }
            }
            Op::SemAsk(semaphore) => self.note(thread, pc, Deed::Ask, semaphore, 1),
            Op::BarrierEnter(barrier) => self.give_at(thread, barrier),
            Op::BarrierLeave(barrier) => self.take_at(thread, barrier),
            Op::OnceEnd { control, .. } | Op::Before(control) => self.give_at(thread, control),
            Op::OncePass(control) | Op::After(control) => self.take_at(thread, control),
            Op::Alloc { block, room, .. } if self.location.overlaps(block.0, room) => {
                self.story.accesses.clear();
                self.story.allocated = Some((thread, pc));
            }
            Op::Free { block, bytes } => self.note(thread, pc, Deed::Free, block, bytes),
            _ => {}
        }
    }

    fn release(&mut self, thread: ThreadId, lock: Addr) {
        let locks = &mut self.state(thread).locks;
        if let Some(at) = locks.iter().rposition(|(held, _)| *held == lock) {
            locks.remove(at);
        }
    }

    fn give_at(&mut self, thread: ThreadId, object: Addr) {
        let gift = self.story.clocks.give(thread);
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
                self.story.clocks.take(thread, gift);
            }
        }
    }

    fn note(&mut self, thread: ThreadId, pc: Pc, deed: Deed, addr: Addr, bytes: u64) {
        if !self.location.overlaps(addr.0, bytes.max(1)) {
            return;
        }
        let moment = self.story.clocks.now(thread);
        let state = self.state(thread);
        let (at, locks) = (state.steps.saturating_sub(1), state.locks.clone());
        let location = Location { address: addr.0, n_bytes: bytes.max(1) };
        let access = Access { thread, pc, deed, location, at, nth: 0, moment, locks };
        self.story.accesses.push(access);
    }
}

/// As many as a barrier has threads.
const GIFTS_MAX: usize = 64;

impl Default for Location {
    fn default() -> Self {
        Self { address: 0, n_bytes: 1 }
    }
}
