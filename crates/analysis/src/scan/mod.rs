//! From events to a [`Model`], in one pass after that of [`Sharing`].
//!
//! Events arrive one by one, in trace order. This file dispatches them; their effects are in the
//! file of their subject: locks in `locking`, communication between threads in `communication`,
//! memory accesses in `memory`.
//!
//! Memory that only one thread touches is skipped. Of the rest, one summary per class is kept:
//! single accesses, double ones of one thread to one place, and pairs to two places
//! ([`crate::accesses`], [`crate::nearby`]), each with its site, the locks held, what must come
//! before it ([`crate::order`]), and its first and last occurrence. So the cost of matching
//! patterns does not depend on the length of the trace; the cost of reading does.

mod queue;
mod locking;
mod memory;
mod communication;
mod thread;

use raddle_trace::event::{Event, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::record::Wake;
use rustc_hash::FxHashSet;

use self::communication::Communications;
use self::locking::Nestings;
use self::queue::{Granule, Queue, Queued};
use self::thread::Thread;
use crate::accesses::Accesses;
use crate::generations::Generations;
use crate::locks::Held;
use crate::nearby::Nearby;
use crate::sharing::{Sharing, granules};
use crate::skeleton::{Exit, Stretch, Sync, SyncKind};
use crate::witness::{AccessKind, Witness};

pub use crate::model::{Model, Nesting};

/// Builds a [`Model`] from a trace.
#[derive(Debug)]
pub struct Scan<'a> {
    sharing: &'a Sharing,
    queue: Queue,
    model: Model,
    accesses: Accesses,
    nearby: Nearby,
    threads: Vec<Thread>,
    running: Option<(ThreadId, u64)>,
    communications: Communications,
    nestings: Nestings,
    /// Threads that have waited for a word that looks like a lock.
    awaiting: Vec<(ThreadId, Addr)>,
    /// Waits and wake-ups seen so far.
    seen: FxHashSet<(Pc, Addr, AccessKind)>,
    seq: u64,
}

/// Where an event happened: its thread, its code address, and its position in the trace.
#[derive(Clone, Copy, Debug)]
struct Position {
    thread: ThreadId,
    pc: Pc,
    seq: u64,
}

impl<'a> Scan<'a> {
    /// A scan of the trace that `sharing` was computed from.
    #[must_use]
    pub fn new(sharing: &'a Sharing) -> Self {
        Self {
            sharing,
            queue: Queue::default(),
            model: Model::default(),
            accesses: Accesses::default(),
            nearby: Nearby::default(),
            threads: Vec::new(),
            running: None,
            communications: Communications::default(),
            nestings: Nestings::default(),
            awaiting: Vec::new(),
            seen: FxHashSet::default(),
            seq: 0,
        }
    }

    /// Adds the next event.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        let granule = match event.op {
            Op::Read(access) | Op::Write(access) => match granules(access.addr, access.bytes) {
                (first, last) if first == last => {
                    self.sharing.number(first).map_or(Granule::Own, Granule::Shared)
                }
                _ => Granule::Several,
            },
            _ => Granule::Several,
        };
        self.queue.push(event, granule);
        if self.queue.is_full() {
            self.process_all();
        }
    }

    /// Processes all queued events.
    fn process_all(&mut self) {
        let mut queue = std::mem::take(&mut self.queue);
        self.accesses.touch(&queue.shared);
        queue.shared.clear();
        for Queued { event, granule } in queue.events.drain(..) {
            self.process(&event, granule);
        }
        self.queue = queue;
    }

    #[inline]
    fn process(&mut self, event: &Event, granule: Granule) {
        let Event { thread, pc, op } = *event;
        let here = Position { thread, pc, seq: self.seq };
        self.seq += 1;
        if let Op::Switch { stopped_at, .. } = op {
            self.switch(thread, stopped_at);
            return;
        }
        if !self.threads.get(thread.0 as usize).is_some_and(|thread| thread.begun) {
            self.begin(thread);
        }
        self.model.n_events += 1;
        if !self.awaiting.is_empty() {
            self.settle(here, &op);
        }
        match op {
            Op::Read(access) => self.access(here, AccessKind::Read, &access, granule),
            Op::Write(access) => self.access(here, AccessKind::Write, &access, granule),
            Op::Enter { .. } => self.threads[thread.0 as usize].enter(),
            Op::Leave => self.threads[thread.0 as usize].leave(),
            Op::Step => {
                self.model.n_events -= 1;
                self.threads[thread.0 as usize].steps += 1;
            }
            _ => self.process_rare(here, &op),
        }
    }

    fn process_rare(&mut self, here: Position, op: &Op) {
        let thread = here.thread;
        match *op {
            Op::Atomic(atomic) => self.atomic(here, &atomic),
            Op::Repeats { n } => {
                self.model.n_events -= 1;
                self.repeats(thread, n);
            }
            Op::Choice { taken, .. } => {
                self.model.n_events -= 1;
                self.model.skeleton.choices.push(taken as u32);
            }
            Op::Clock { .. } => self.model.n_events -= 1,
            Op::Spawn(child) => self.spawn(thread, child),
            Op::End => self.end(thread),
            Op::Join(child) => self.join(thread, child),
            Op::Acquire(lock) => {
                self.used(here, AccessKind::Acquire, lock.lock);
                self.acquire(here, Held { lock: lock.lock, shared: lock.shared });
            }
            Op::Release(lock) => {
                self.used(here, AccessKind::Release, lock.lock);
                self.release(thread, Held { lock: lock.lock, shared: lock.shared });
            }
            Op::Init { object, .. } => self.used(here, AccessKind::Init, object),
            Op::Destroy { object, .. } => self.used(here, AccessKind::Destroy, object),
            Op::CondWait { cond, .. } => {
                self.used(here, AccessKind::Wait, cond);
                self.waits(here, AccessKind::Wait, cond);
            }
            Op::CondWake { cond, how: Wake::Woken, by } => self.woken(thread, cond, by),
            Op::CondSignal { cond, .. } | Op::CondBroadcast { cond, .. } => {
                self.used(here, AccessKind::Signal, cond);
                self.waits(here, AccessKind::Signal, cond);
                self.signal(thread, cond);
            }
            Op::FutexWait { futex, .. } => self.waits(here, AccessKind::Wait, futex),
            Op::FutexWoken { futex, .. } if self.model.words.looks_like_lock(futex) => {
                self.awaiting.push((thread, futex));
            }
            Op::FutexWoken { futex, how: Wake::Woken, by } => self.woken(thread, futex, by),
            Op::FutexWake { futex, .. } => {
                self.waits(here, AccessKind::Signal, futex);
                self.signal(thread, futex);
            }
            Op::SemPost(semaphore) => {
                self.used(here, AccessKind::Signal, semaphore);
                self.post(thread, semaphore);
            }
            Op::SemWait { semaphore, .. } => {
                self.used(here, AccessKind::Lower, semaphore);
                self.lower(thread, semaphore);
            }
            Op::SemAsk(semaphore) => self.used(here, AccessKind::Ask, semaphore),
            Op::BarrierEnter(barrier) => {
                self.used(here, AccessKind::Wait, barrier);
                self.arrive(thread, barrier);
            }
            Op::BarrierLeave(barrier) => self.pass(thread, barrier),
            Op::OnceBegin(control) => self.acquire(here, Held { lock: control, shared: false }),
            Op::OnceEnd { control, .. } => {
                self.release(thread, Held { lock: control, shared: false });
                self.publish_at(thread, control);
            }
            Op::OncePass(control) | Op::After(control) => self.receive_at(thread, control),
            Op::Before(at) => self.publish_at(thread, at),
            Op::Send(op) => self.send(thread, op),
            Op::Receive(op) => self.receive_from(thread, op),
            Op::Alloc { block, room, .. } => {
                let numbers = self.sharing.numbers(block, room).map(|(_, number)| number);
                self.accesses.renew(numbers, &self.model.classes, here.seq);
            }
            Op::Map { addr, bytes } => {
                let numbers = self.sharing.numbers_within(addr, bytes);
                self.accesses.renew(numbers, &self.model.classes, here.seq);
            }
            Op::Free { block, bytes } | Op::Unmap { addr: block, bytes } => {
                self.free(here, block, bytes);
            }
            Op::UnitBegin(_) => self.threads[thread.0 as usize].mark(),
            Op::UnitEnd(_) => self.threads[thread.0 as usize].unmark(),
            Op::Exit { .. } => {
                let exit = Exit { thread, at: self.at(thread), pc: here.pc };
                self.model.skeleton.exit.get_or_insert(exit);
            }
            Op::Read(_)
            | Op::Write(_)
            | Op::Fence { .. }
            | Op::Enter { .. }
            | Op::Leave
            | Op::Switch { .. }
            | Op::Begin { .. }
            | Op::Detach(_)
            | Op::CondWake { .. }
            | Op::FutexWoken { .. }
            | Op::Sleep { .. }
            | Op::Yield
            | Op::Block { .. }
            | Op::Unblock { .. }
            | Op::Fork
            | Op::Signal { .. }
            | Op::Fiber(_)
            | Op::Step => {}
        }
    }

    /// The model. Call it after the last event.
    #[must_use]
    pub fn finish(mut self) -> Model {
        self.process_all();
        if let Some((thread, from)) = self.running.take() {
            self.stretch(thread, from, Pc(0));
        }
        for (index, thread) in self.threads.iter().enumerate() {
            self.model.skeleton.line(ThreadId(index as u32)).n_steps = thread.steps;
        }
        self.model.n_dropped = self.accesses.n_dropped;
        self.model.generations = Generations::new(std::mem::take(&mut self.accesses.ended));
        self.model.cells = self.accesses.finish(&self.model.classes);
        self.model.coupled_pairs = self.nearby.finish();
        self.model
    }

    fn switch(&mut self, to: ThreadId, stopped_at: Pc) {
        if let Some((thread, from)) = self.running.take() {
            self.stretch(thread, from, stopped_at);
        }
        self.running = Some((to, self.thread(to).steps));
    }

    fn stretch(&mut self, thread: ThreadId, from: u64, stopped_at: Pc) {
        let to = self.thread(thread).steps;
        self.model.skeleton.stretches.push(Stretch { thread, from, to, stopped_at });
    }

    /// The thread, which is added if it is new.
    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let index = thread.0 as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// Number of steps before the thread's current event, if that is not a plain access.
    fn at(&self, thread: ThreadId) -> u64 {
        self.threads[thread.0 as usize].at()
    }

    fn sync(&mut self, thread: ThreadId, kind: SyncKind) {
        let at = self.at(thread);
        self.model.skeleton.line(thread).syncs.push(Sync { at, kind });
    }

    fn witness(&mut self, here: Position, kind: AccessKind, addr: Addr) -> Witness {
        let Position { thread, pc, seq } = here;
        let (moment, weak) = (self.model.order.now(thread), self.model.weak.now(thread));
        let state = &self.threads[thread.0 as usize];
        let (at, locks) = (state.at(), state.locks());
        Witness { thread, pc, kind, addr, bytes: 1, at, seq, moment, weak, locks }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::notation::{self, Notation};

    /// The model of a trace in [`notation`].
    pub(crate) fn read(text: &str) -> (Notation, Model) {
        let notation = notation::parse(text);
        let mut sharing = Sharing::default();
        notation.events.iter().for_each(|event| sharing.push(event));
        let mut scan = Scan::new(&sharing);
        notation.events.iter().for_each(|event| scan.push(event));
        (notation, scan.finish())
    }

    fn labelled(notation: &Notation, model: &Model, label: &str) -> Witness {
        let singles = model.cells.iter().flat_map(|cell| &cell.singles);
        let all = singles.map(|single| model.classes.witness(single.addr, &single.first));
        let mut all = all.filter(|witness| notation.label(witness.pc) == label);
        all.next().expect("an access to shared memory with this label")
    }

    /// Checks whether `a` must come before `b`.
    #[track_caller]
    fn check(text: &str, ordered: bool) {
        let (notation, model) = read(text);
        let [a, b] = ["a", "b"].map(|label| labelled(&notation, &model, label));
        assert_eq!(model.order.before(a.moment, b.moment), ordered);
        assert!(!model.order.before(b.moment, a.moment));
    }

    /// Checks whether a lock excludes `a` and `b`.
    #[track_caller]
    fn check_locks(text: &str, excluded: bool) {
        let (notation, model) = read(text);
        let [a, b] = ["a", "b"].map(|label| labelled(&notation, &model, label));
        assert_eq!(model.exclude(a.locks, b.locks), excluded);
    }

    #[test]
    fn creation_and_join_order() {
        check("a: T0 write x\n T0 spawn T1\n b: T1 write x", true);
        check("T0 spawn T1\n a: T0 write x\n b: T1 write x", false);
        check("T0 spawn T1\n a: T1 write x\n T1 end\n T0 join T1\n b: T0 write x", true);
        check("T0 spawn T1\n a: T1 write x\n T1 end\n b: T0 write x", false);
    }

    #[test]
    fn a_lock_does_not_order() {
        check(
            "
            T0 spawn T1
            T0 acquire m
            a: T0 write x
            T0 release m
            T1 acquire m
            b: T1 write x
            T1 release m",
            false,
        );
    }

    #[test]
    fn a_lock_that_another_thread_releases_is_free() {
        let trace = |release: &str| {
            format!(
                "
                T0 spawn T1
                T0 spawn T2
                T0 acquire m
                {release}
                a: T0 write x
                T2 acquire m
                b: T2 write x
                T2 release m"
            )
        };
        check_locks(&trace("T1 release m"), false);
        check_locks(&trace(""), true);
    }

    #[test]
    fn a_semaphore_orders() {
        check(
            "
            T0 spawn T1
            a: T0 write x
            T0 post s
            T1 lower s
            b: T1 read x",
            true,
        );
    }

    #[test]
    fn a_semaphore_that_was_raised_before_does_not() {
        check(
            "
            T0 spawn T1
            T0 post s
            a: T0 write x
            T1 lower s
            b: T1 read x",
            false,
        );
    }

    #[test]
    fn a_barrier_orders_what_comes_before_it() {
        let trace = |a: &str, b: &str| {
            format!(
                "
                T0 spawn T1
                {a}
                T0 enter r
                T1 enter r
                T1 leave r
                {b}
                T0 leave r
                T0 write x"
            )
        };
        check(&trace("a: T0 write x", "b: T1 write x"), true);
        let behind = trace("", "a: T1 write x").replace("T0 write x", "b: T0 write x");
        check(&behind, false);
    }

    #[test]
    fn an_annotation_orders_what_several_threads_did_before() {
        let trace = |a: &str, other: &str| {
            format!(
                "
                T0 spawn T1
                T0 spawn T2
                {a}
                T1 before o
                {other}
                T2 before o
                T0 after o
                b: T0 read x"
            )
        };
        check(&trace("a: T1 write x", ""), true);
        check(&trace("", "a: T2 write x"), true);
        check("T0 spawn T1\n T1 before o\n a: T1 write x\n T0 after o\n b: T0 read x", false);
    }

    #[test]
    fn a_channel_orders_what_was_sent_before_it_was_received() {
        check("T0 spawn T1\n a: T0 write x\n T0 send p\n T1 receive p\n b: T1 read x", true);
        check("T0 spawn T1\n T0 send p\n a: T0 write x\n T1 receive p\n b: T1 read x", false);
        check("T0 spawn T1\n a: T0 write x\n T0 send p\n T1 receive q\n b: T1 read x", false);
        check("T0 spawn T1\n T1 receive p\n a: T0 write x\n T0 send p\n b: T1 read x", false);
    }

    #[test]
    fn every_receiver_comes_after_every_sender() {
        let trace = |a: &str, b: &str| {
            format!(
                "
                T0 spawn T1
                T0 spawn T2
                T0 spawn T3
                {a}
                T1 send p
                T2 receive p
                T1 send p
                T0 send p
                T2 receive p
                T3 receive p
                {b}"
            )
        };
        check(&trace("a: T1 write x", "b: T2 read x"), true);
        check(&trace("a: T1 write x", "b: T3 read x"), true);
        check(&trace("a: T0 write x", "b: T2 read x"), true);
        check(&trace("a: T0 write x", "b: T3 read x"), true);
        check(&trace("a: T0 write x", "b: T1 read x"), false);
    }

    #[test]
    fn a_sender_that_waited_for_room_comes_after_a_receiver() {
        let trace = |send: &str| {
            format!(
                "
                T0 spawn T1
                T0 send p
                a: T1 write x
                T1 receive p
                T0 {send} p
                b: T0 read x"
            )
        };
        check(&trace("waits-and-sends"), true);
        check(&trace("send"), false);
    }

    #[test]
    fn a_wake_up_orders() {
        check(
            "
            T0 spawn T1
            T1 wait c
            a: T0 write x
            T0 signal c
            T1 woken c by T0
            b: T1 read x",
            true,
        );
    }

    #[test]
    fn a_flag_that_was_spun_on_orders() {
        check(
            "
            T0 spawn T1
            s: T1 load f 0
            a: T0 write x
            T0 store f 0 1
            s: T1 load f 1
            b: T1 read x",
            true,
        );
    }

    #[test]
    fn a_flag_that_was_looked_at_once_does_not() {
        check(
            "
            T0 spawn T1
            a: T0 write x
            T0 store f 0 1
            T1 load f 1
            b: T1 read x",
            false,
        );
    }

    #[test]
    fn a_futex_mutex_is_a_lock() {
        let trace = |unlock: &str| {
            format!(
                "
                T0 spawn T1
                T0 update m 0 1
                a: T0 write x
                T0 update m 1 0
                T1 update m 0 1
                b: T1 write x
                {unlock}"
            )
        };
        check_locks(&trace("T1 update m 1 0"), true);
        // A claim that is never released is not a lock.
        check_locks(&trace(""), false);
    }

    #[test]
    fn readers_are_not_kept_apart() {
        let trace = |mode: &str| {
            format!(
                "
                T0 spawn T1
                T0 acquire m shared
                a: T0 write x
                T0 release m shared
                T1 acquire m {mode}
                b: T1 write x
                T1 release m {mode}"
            )
        };
        check_locks(&trace("shared"), false);
        check_locks(&trace(""), true);
    }
}
