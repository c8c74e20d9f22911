//! From events to a [`Model`], in one pass behind the one of [`Sharing`].
//!
//! Events come one by one, in the order of the trace. This file says what each of them
//! means; what that does is in the files of their subjects: locks in `locking`, what tells
//! threads of each other in `telling`, accesses to memory in `memory`.

mod queue;
mod locking;
mod memory;
mod telling;
mod thread;

use raddle_trace::event::{Event, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::record::Wake;
use rustc_hash::FxHashSet;

use self::locking::Nestings;
use self::queue::{Granule, Queue, Queued};
use self::telling::Tellings;
use self::thread::Thread;
use crate::accesses::Accesses;
use crate::locks::Held;
use crate::nearby::Nearby;
use crate::sharing::{Sharing, granules};
use crate::skeleton::{Stretch, Sync, What};
use crate::witness::{Deed, Witness};

pub use crate::model::{Model, Nesting};

/// Reads a trace.
#[derive(Debug)]
pub struct Scan<'a> {
    sharing: &'a Sharing,
    queue: Queue,
    model: Model,
    accesses: Accesses,
    nearby: Nearby,
    threads: Vec<Thread>,
    running: Option<(ThreadId, u64)>,
    tellings: Tellings,
    nestings: Nestings,
    /// Who has waited for what looks like a lock.
    awaiting: Vec<(ThreadId, Addr)>,
    /// Waits and wake-ups that are known.
    seen: FxHashSet<(Pc, Addr, Deed)>,
    seq: u64,
}

/// Where an event is: who performs it, at which place in the program, as which of the trace.
#[derive(Clone, Copy, Debug)]
struct Here {
    thread: ThreadId,
    pc: Pc,
    seq: u64,
}

impl<'a> Scan<'a> {
    /// A scan of the trace that this is the sharing of.
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
            tellings: Tellings::default(),
            nestings: Nestings::default(),
            awaiting: Vec::new(),
            seen: FxHashSet::default(),
            seq: 0,
        }
    }

    /// Takes the next event.
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
            self.take_in_all();
        }
    }

    /// Takes in all that was collected.
    fn take_in_all(&mut self) {
        let mut queue = std::mem::take(&mut self.queue);
        self.accesses.touch(&queue.shared);
        queue.shared.clear();
        for Queued { event, granule } in queue.events.drain(..) {
            self.take_in(&event, granule);
        }
        self.queue = queue;
    }

    #[inline]
    fn take_in(&mut self, event: &Event, granule: Granule) {
        let Event { thread, pc, op } = *event;
        let here = Here { thread, pc, seq: self.seq };
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
            Op::Read(access) => self.access(here, Deed::Read, &access, granule),
            Op::Write(access) => self.access(here, Deed::Write, &access, granule),
            Op::Enter { .. } => self.threads[thread.0 as usize].enter(),
            Op::Leave => self.threads[thread.0 as usize].leave(),
            Op::Step => {
                self.model.n_events -= 1;
                self.threads[thread.0 as usize].steps += 1;
            }
            _ => self.take_in_rare(here, &op),
        }
    }

    fn take_in_rare(&mut self, here: Here, op: &Op) {
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
                self.used(here, Deed::Acquire, lock.lock);
                self.acquire(here, Held { lock: lock.lock, shared: lock.shared });
            }
            Op::Release(lock) => {
                self.used(here, Deed::Release, lock.lock);
                self.release(thread, Held { lock: lock.lock, shared: lock.shared });
            }
            Op::Init { object, .. } => self.used(here, Deed::Init, object),
            Op::Destroy { object, .. } => self.used(here, Deed::Destroy, object),
            Op::CondWait { cond, .. } => {
                self.used(here, Deed::Wait, cond);
                self.waits(here, Deed::Wait, cond);
            }
            Op::CondWake { cond, how: Wake::Woken, by } => self.woken(thread, cond, by),
            Op::CondSignal { cond, .. } | Op::CondBroadcast { cond, .. } => {
                self.used(here, Deed::Signal, cond);
                self.waits(here, Deed::Signal, cond);
                self.signal(thread, cond);
            }
            Op::FutexWait { futex, .. } => self.waits(here, Deed::Wait, futex),
            Op::FutexWoken { futex, .. } if self.model.words.looks_like_lock(futex) => {
                self.awaiting.push((thread, futex));
            }
            Op::FutexWoken { futex, how: Wake::Woken, by } => self.woken(thread, futex, by),
            Op::FutexWake { futex, .. } => {
                self.waits(here, Deed::Signal, futex);
                self.signal(thread, futex);
            }
            Op::SemPost(semaphore) => {
                self.used(here, Deed::Signal, semaphore);
                self.post(thread, semaphore);
            }
            Op::SemWait { semaphore, .. } => {
                self.used(here, Deed::Lower, semaphore);
                self.lower(thread, semaphore);
            }
            Op::SemAsk(semaphore) => self.used(here, Deed::Ask, semaphore),
            Op::BarrierEnter(barrier) => {
                self.used(here, Deed::Wait, barrier);
                self.arrive(thread, barrier);
            }
            Op::BarrierLeave(barrier) => self.pass(thread, barrier),
            Op::OnceBegin(control) => self.acquire(here, Held { lock: control, shared: false }),
            Op::OnceEnd { control, .. } => {
                self.release(thread, Held { lock: control, shared: false });
                self.give_at(thread, control);
            }
            Op::OncePass(control) | Op::After(control) => self.take_at(thread, control),
            Op::Before(at) => self.give_at(thread, at),
            Op::Alloc { block, room, .. } => {
                let numbers = self.sharing.numbers(block, room).map(|(_, number)| number);
                self.accesses.renew(numbers, &self.model.kinds);
            }
            Op::Free { block, bytes } => self.free(here, block, bytes),
            Op::UnitBegin(_) => self.threads[thread.0 as usize].mark(),
            Op::UnitEnd(_) => self.threads[thread.0 as usize].unmark(),
            _ => {}
        }
    }

    /// What was read. Call it when the trace has ended.
    #[must_use]
    pub fn finish(mut self) -> Model {
        self.take_in_all();
        if let Some((thread, from)) = self.running.take() {
            self.stretch(thread, from, Pc(0));
        }
        for (index, thread) in self.threads.iter().enumerate() {
            self.model.skeleton.line(ThreadId(index as u32)).n_steps = thread.steps;
        }
        self.model.n_dropped = self.accesses.n_dropped;
        self.model.cells = self.accesses.finish(&self.model.kinds);
        self.model.couples = self.nearby.finish();
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

    /// The thread, made if it is new.
    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let index = thread.0 as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// Where a thread is with an event that is no plain access.
    fn at(&self, thread: ThreadId) -> u64 {
        self.threads[thread.0 as usize].at()
    }

    fn sync(&mut self, thread: ThreadId, what: What) {
        let at = self.at(thread);
        self.model.skeleton.line(thread).syncs.push(Sync { at, what });
    }

    fn witness(&mut self, here: Here, deed: Deed, addr: Addr) -> Witness {
        let Here { thread, pc, seq } = here;
        let (moment, weak) = (self.model.order.now(thread), self.model.weak.now(thread));
        let state = &self.threads[thread.0 as usize];
        let (at, locks) = (state.at(), state.locks());
        Witness { thread, pc, deed, addr, bytes: 1, at, seq, moment, weak, locks }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::notation::{self, Notation};

    /// What a trace in [`notation`] says.
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
        let all = singles.map(|single| model.kinds.witness(single.addr, &single.first));
        let mut all = all.filter(|witness| notation.label(witness.pc) == label);
        all.next().expect("an access to shared memory with this label")
    }

    /// Whether `a` must come before `b`.
    #[track_caller]
    fn check(text: &str, ordered: bool) {
        let (notation, model) = read(text);
        let [a, b] = ["a", "b"].map(|label| labelled(&notation, &model, label));
        assert_eq!(model.order.before(a.moment, b.moment), ordered);
        assert!(!model.order.before(b.moment, a.moment));
    }

    /// Whether a lock keeps `a` and `b` apart.
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
        // A claim that is never given back is none.
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
