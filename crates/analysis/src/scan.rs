//! From events to a [`Model`], in one pass behind the one of [`Sharing`].

use std::collections::VecDeque;

use raddle_trace::event::{Access, Atomic, AtomicAction, Event, LockOp, Op, is_event};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::record::{Switch, Wake};
use rustc_hash::FxHashMap;

use crate::accesses::{Accesses, Cell, Unit};
use crate::lock_words::{LockWords, Meaning};
use crate::locks::{Held, LockSet, LockSets};
use crate::nearby::{Couple, Nearby};
use crate::order::{Clocks, Gift};
use crate::sharing::{GRANULE_BITS, Sharing};
use crate::skeleton::{Skeleton, Stretch, Sync, What};
use crate::witness::{Deed, Witness};

/// What is known of a run when its trace has been read.
#[derive(Debug, Default)]
pub struct Model {
    /// Who ran when, and who had to wait for whom.
    pub skeleton: Skeleton,
    /// What must come in the order seen.
    pub order: Clocks,
    /// The same, if each atomic store is taken to tell whoever loads it.
    pub weak: Clocks,
    /// Sets of locks.
    pub locks: LockSets,
    /// Locks made of atomics.
    pub words: LockWords,
    /// Shared memory.
    pub cells: Vec<Cell>,
    /// Accesses to two locations.
    pub couples: Vec<Couple>,
    /// Locks taken while others were held.
    pub nestings: Vec<Nesting>,
    /// Waits on condition variables and the like, one per site and object.
    pub waits: Vec<Witness>,
    /// Wake-ups, one per site and object.
    pub signals: Vec<Witness>,
    /// Events read.
    pub n_events: u64,
    /// Accesses that found no room.
    pub n_dropped: u64,
}

/// A lock is taken while another is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nesting {
    /// Where the outer one was taken.
    pub outer: Witness,
    /// The outer one is held for reading.
    pub outer_shared: bool,
    /// Where the inner one is taken; its locks are those held then.
    pub inner: Witness,
    /// The inner one is taken for reading.
    pub inner_shared: bool,
}

impl Model {
    /// Whether two locks sets keep their threads apart, by locks that are some.
    #[must_use]
    pub fn exclude(&self, a: LockSet, b: LockSet) -> bool {
        self.locks.exclude(a, b, |lock| !self.words.is_other(lock))
    }

    /// Whether one of two events of different threads must come before the other.
    #[must_use]
    pub fn ordered(&self, a: &Witness, b: &Witness) -> bool {
        self.order.before(a.moment, b.moment) || self.order.before(b.moment, a.moment)
    }
}

/// Reads a trace.
#[derive(Debug, Default)]
pub struct Scan {
    model: Model,
    accesses: Accesses,
    nearby: Nearby,
    threads: Vec<State>,
    running: Option<(ThreadId, u64)>,
    objects: FxHashMap<Addr, Object>,
    signals: FxHashMap<(Addr, ThreadId), (u64, Gift)>,
    spawns: FxHashMap<ThreadId, (ThreadId, u64, Gift)>,
    ends: FxHashMap<ThreadId, Gift>,
    seen: FxHashMap<(Pc, Addr, Deed), ()>,
    nestings: FxHashMap<(Pc, Pc, Addr, Addr, ThreadId), usize>,
    stored: FxHashMap<Addr, Stored>,
    seq: u64,
}

/// A thread while its events are read.
#[derive(Debug, Default)]
struct State {
    steps: u64,
    held: Vec<Holding>,
    locks: LockSet,
    section: u32,
    n_sections: u32,
    marks: u32,
    stack: Vec<u32>,
    n_activations: u32,
    /// The last atomic load: where, of what, its value.
    load: Option<(Pc, Addr, u64)>,
    begun: bool,
}

#[derive(Clone, Copy, Debug)]
struct Holding {
    lock: Addr,
    shared: bool,
    depth: u32,
    taken: Witness,
}

/// A synchronization object while events are read.
#[derive(Debug, Default)]
struct Object {
    /// Of a semaphore: raised and not yet lowered.
    posts: VecDeque<(ThreadId, u64, Gift)>,
    /// Of a barrier: who has come in this round.
    arrived: Vec<(ThreadId, u64, Gift)>,
    /// Of a barrier: who came in the last round.
    passed: Vec<(ThreadId, u64, Gift)>,
    /// Of a one-time initialization, or of annotations: what was given there.
    given: Option<(ThreadId, u64, Gift)>,
}

/// The last store to an atomic.
#[derive(Debug)]
struct Stored {
    thread: ThreadId,
    at: u64,
    value: u64,
    strong: Gift,
    weak: Gift,
}

impl Scan {
    /// Takes the next event.
    pub fn push(&mut self, event: &Event, sharing: &Sharing) {
        let seq = self.seq;
        self.seq += 1;
        let Event { thread, pc, op } = *event;
        if let Op::Switch { reason, stopped_at, .. } = op {
            self.switch(thread, reason, stopped_at);
            return;
        }
        if is_event(op.kind()) {
            self.model.n_events += 1;
        }
        self.begin(thread);
        match op {
            Op::Read(access) => self.access(thread, pc, Deed::Read, &access, seq, sharing),
            Op::Write(access) => self.access(thread, pc, Deed::Write, &access, seq, sharing),
            Op::Atomic(atomic) => self.atomic(thread, pc, &atomic, seq, sharing),
            Op::Step => self.state(thread).steps += 1,
            Op::Repeats { n } => self.repeats(thread, n),
            Op::Choice { taken, .. } => self.model.skeleton.choices.push(taken as u32),
            Op::Enter { .. } => {
                let state = self.state(thread);
                state.n_activations += 1;
                let activation = state.n_activations;
                state.stack.push(activation);
            }
            Op::Leave => {
                self.state(thread).stack.pop();
            }
            Op::Spawn(child) => {
                let at = self.at(thread);
                let gift = self.model.order.give(thread);
                let weak = self.model.weak.give(thread);
                self.model.weak.take(child, &weak);
                self.spawns.insert(child, (thread, at, gift));
            }
            Op::End => {
                let gift = self.model.order.give(thread);
                self.ends.insert(thread, gift);
            }
            Op::Join(child) => {
                let steps = self.threads.get(child.0 as usize).map_or(0, |state| state.steps);
                self.after(thread, child, steps, false);
                // An imported trace does not say when a thread ends.
                let gift = match self.ends.get(&child) {
                    Some(gift) => Some(gift.clone()),
                    None if steps > 0 => Some(self.model.order.give(child)),
                    None => None,
                };
                if let Some(gift) = gift {
                    self.model.order.take(thread, &gift);
                    let weak = self.model.weak.give(child);
                    self.model.weak.take(thread, &weak);
                }
            }
            Op::Acquire(lock) => {
                self.used(thread, pc, Deed::Acquire, lock.lock, seq, sharing);
                self.acquire(thread, pc, lock, seq);
            }
            Op::Release(lock) => self.release(thread, lock.lock, lock.shared),
            Op::Init { object, .. } => {
                self.used(thread, pc, Deed::Init, object, seq, sharing);
            }
            Op::Destroy { object, .. } => {
                self.used(thread, pc, Deed::Destroy, object, seq, sharing);
            }
            Op::CondWait { cond, .. } => {
                self.used(thread, pc, Deed::Wait, cond, seq, sharing);
                self.waits(thread, pc, Deed::Wait, cond, seq);
            }
            Op::CondWake { cond, how: Wake::Woken, by } => self.woken(thread, cond, by),
            Op::CondSignal { cond, .. } | Op::CondBroadcast { cond, .. } => {
                self.used(thread, pc, Deed::Signal, cond, seq, sharing);
                self.waits(thread, pc, Deed::Signal, cond, seq);
                self.signal(thread, cond);
            }
            Op::FutexWait { futex, .. } => self.waits(thread, pc, Deed::Wait, futex, seq),
            Op::FutexWoken { futex, how: Wake::Woken, by }
                if !self.model.words.looks_like_lock(futex) =>
            {
                self.woken(thread, futex, by);
            }
            Op::FutexWake { futex, .. } => {
                self.waits(thread, pc, Deed::Signal, futex, seq);
                self.signal(thread, futex);
            }
            Op::SemPost(semaphore) => {
                self.used(thread, pc, Deed::Signal, semaphore, seq, sharing);
                let at = self.at(thread);
                let gift = self.model.order.give(thread);
                self.objects.entry(semaphore).or_default().posts.push_back((thread, at, gift));
            }
            Op::SemWait { semaphore, .. } => {
                self.used(thread, pc, Deed::Wait, semaphore, seq, sharing);
                let post = self.objects.entry(semaphore).or_default().posts.pop_front();
                if let Some(post) = post {
                    self.take(thread, &post);
                }
            }
            Op::BarrierEnter(barrier) => {
                self.used(thread, pc, Deed::Wait, barrier, seq, sharing);
                let at = self.at(thread);
                let gift = self.model.order.give(thread);
                self.objects.entry(barrier).or_default().arrived.push((thread, at, gift));
            }
            Op::BarrierLeave(barrier) => {
                let object = self.objects.entry(barrier).or_default();
                if object.arrived.iter().any(|(other, ..)| *other == thread) {
                    object.passed = std::mem::take(&mut object.arrived);
                }
                let passed = object.passed.clone();
                for other in passed.iter().filter(|(other, ..)| *other != thread) {
                    self.take(thread, other);
                }
            }
            Op::OnceBegin(control) => self.take_lock(thread, pc, control, false, seq),
            Op::OnceEnd { control, .. } => {
                self.release(thread, control, false);
                self.give_at(thread, control);
            }
            Op::OncePass(control) | Op::After(control) => {
                if let Some(given) = self.objects.get(&control).and_then(|o| o.given.clone()) {
                    self.take(thread, &given);
                }
            }
            Op::Before(at) => self.give_at(thread, at),
            Op::Alloc { block, bytes } => {
                self.accesses.renew(block, bytes, |granule| sharing.is_shared(granule));
            }
            Op::Free { block, bytes } => {
                let witness = self.witness(
                    thread,
                    pc,
                    Deed::Free,
                    block,
                    bytes.min(u64::from(u32::MAX)) as u32,
                    seq,
                );
                self.note(&witness, sharing, false);
            }
            Op::UnitBegin(_) => {
                let state = self.state(thread);
                state.marks += 1;
                if state.section == 0 {
                    state.n_sections += 1;
                    state.section = state.n_sections;
                }
            }
            Op::UnitEnd(_) => {
                let state = self.state(thread);
                state.marks = state.marks.saturating_sub(1);
                if state.marks == 0 && state.held.is_empty() {
                    state.section = 0;
                }
            }
            _ => {}
        }
    }

    /// What was read. Call it when the trace has ended.
    #[must_use]
    pub fn finish(mut self) -> Model {
        if let Some((thread, from)) = self.running.take() {
            self.stretch(thread, from, Pc(0));
        }
        for (index, state) in self.threads.iter().enumerate() {
            self.model.skeleton.line(ThreadId(index as u32)).n_steps = state.steps;
        }
        self.model.n_dropped = self.accesses.n_dropped;
        self.model.cells = self.accesses.finish();
        self.model.couples = self.nearby.finish();
        self.model
    }

    fn switch(&mut self, to: ThreadId, _reason: Switch, stopped_at: Pc) {
        if let Some((thread, from)) = self.running.take() {
            self.stretch(thread, from, stopped_at);
        }
        self.running = Some((to, self.state(to).steps));
    }

    fn stretch(&mut self, thread: ThreadId, from: u64, stopped_at: Pc) {
        let to = self.state(thread).steps;
        self.model.skeleton.stretches.push(Stretch { thread, from, to, stopped_at });
    }

    fn state(&mut self, thread: ThreadId) -> &mut State {
        let index = thread.0 as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, State::default);
        }
        &mut self.threads[index]
    }

    /// Where the thread is with an event that is no plain access: its step is counted.
    fn at(&mut self, thread: ThreadId) -> u64 {
        self.state(thread).steps.saturating_sub(1)
    }

    fn begin(&mut self, thread: ThreadId) {
        if self.state(thread).begun {
            return;
        }
        self.state(thread).begun = true;
        if let Some((parent, at, gift)) = self.spawns.remove(&thread) {
            self.model.order.take(thread, &gift);
            let what = What::After { thread: parent, steps: at + 1, soft: false };
            self.model.skeleton.line(thread).syncs.push(Sync { at: 0, what });
        }
    }

    fn sync(&mut self, thread: ThreadId, what: What) {
        let at = self.at(thread);
        self.model.skeleton.line(thread).syncs.push(Sync { at, what });
    }

    fn after(&mut self, thread: ThreadId, other: ThreadId, steps: u64, soft: bool) {
        // It may have done nothing that was seen.
        self.model.skeleton.line(other);
        self.sync(thread, What::After { thread: other, steps, soft });
    }

    fn take(&mut self, thread: ThreadId, (other, at, gift): &(ThreadId, u64, Gift)) {
        if *other != thread {
            self.after(thread, *other, at + 1, false);
            self.model.order.take(thread, gift);
        }
    }

    fn give_at(&mut self, thread: ThreadId, object: Addr) {
        let at = self.at(thread);
        let gift = self.model.order.give(thread);
        self.objects.entry(object).or_default().given = Some((thread, at, gift));
    }

    fn signal(&mut self, thread: ThreadId, object: Addr) {
        let at = self.at(thread);
        let gift = self.model.order.give(thread);
        self.signals.insert((object, thread), (at, gift));
    }

    fn woken(&mut self, thread: ThreadId, object: Addr, by: ThreadId) {
        if let Some((at, gift)) = self.signals.get(&(object, by)).cloned() {
            self.take(thread, &(by, at, gift));
        }
    }

    fn acquire(&mut self, thread: ThreadId, pc: Pc, lock: LockOp, seq: u64) {
        self.take_lock(thread, pc, lock.lock, lock.shared, seq);
    }

    fn take_lock(&mut self, thread: ThreadId, pc: Pc, lock: Addr, shared: bool, seq: u64) {
        let taken = self.witness(thread, pc, Deed::Acquire, lock, 1, seq);
        let state = self.state(thread);
        if let Some(held) =
            state.held.iter_mut().find(|held| held.lock == lock && held.shared == shared)
        {
            held.depth += 1;
            return;
        }
        let held = state.held.clone();
        state.held.push(Holding { lock, shared, depth: 1, taken });
        if state.section == 0 {
            state.n_sections += 1;
            state.section = state.n_sections;
        }
        for outer in held {
            let key = (outer.taken.pc, pc, outer.lock, lock, thread);
            let nestings = &mut self.model.nestings;
            let nesting = Nesting {
                outer: outer.taken,
                outer_shared: outer.shared,
                inner: taken,
                inner_shared: shared,
            };
            // The last of its kind is kept beside the first: it is free to move forwards.
            match self.nestings.get(&key) {
                Some(&at) => nestings[at + 1] = nesting,
                None => {
                    self.nestings.insert(key, nestings.len());
                    nestings.extend([nesting, nesting]);
                }
            }
        }
        self.locks_changed(thread);
        self.sync(thread, What::Acquire { lock, shared });
    }

    fn release(&mut self, thread: ThreadId, lock: Addr, shared: bool) {
        let state = self.state(thread);
        let held = state
            .held
            .iter()
            .position(|held| held.lock == lock && held.shared == shared)
            .or_else(|| state.held.iter().position(|held| held.lock == lock));
        let Some(index) = held else { return };
        state.held[index].depth -= 1;
        if state.held[index].depth > 0 {
            return;
        }
        let shared = state.held.remove(index).shared;
        if state.held.is_empty() && state.marks == 0 {
            state.section = 0;
        }
        self.locks_changed(thread);
        self.sync(thread, What::Release { lock, shared });
    }

    fn locks_changed(&mut self, thread: ThreadId) {
        let held = self.threads[thread.0 as usize].held.iter();
        let held = held.map(|held| Held { lock: held.lock, shared: held.shared });
        let locks = self.model.locks.set(held);
        self.threads[thread.0 as usize].locks = locks;
    }

    fn witness(
        &mut self,
        thread: ThreadId,
        pc: Pc,
        deed: Deed,
        addr: Addr,
        bytes: u32,
        seq: u64,
    ) -> Witness {
        let (moment, weak) = (self.model.order.now(thread), self.model.weak.now(thread));
        let at = self.at(thread);
        let state = &self.threads[thread.0 as usize];
        let depth = state.stack.len();
        let activation = |up: usize| if depth >= up { state.stack[depth - up] } else { 0 };
        Witness {
            thread,
            pc,
            deed,
            addr,
            bytes: bytes.max(1),
            at,
            seq,
            moment,
            weak,
            locks: state.locks,
            section: state.section,
            activations: [activation(1), activation(2)],
        }
    }

    fn access(
        &mut self,
        thread: ThreadId,
        pc: Pc,
        deed: Deed,
        access: &Access,
        seq: u64,
        sharing: &Sharing,
    ) {
        let Access { addr, bytes, range, repeats, .. } = *access;
        self.repeats(thread, u64::from(repeats));
        if !range {
            self.state(thread).steps += 1;
            if !sharing.is_shared(addr.0 >> GRANULE_BITS)
                && !sharing.is_shared((addr.0 + bytes.max(1) - 1) >> GRANULE_BITS)
            {
                return;
            }
        }
        let bytes = bytes.min(u64::from(u32::MAX)) as u32;
        let witness = self.witness(thread, pc, deed, addr, bytes, seq);
        self.note(&witness, sharing, true);
    }

    /// The thread has repeated earlier accesses, which tells nothing new.
    fn repeats(&mut self, thread: ThreadId, n: u64) {
        self.state(thread).steps += n;
        self.model.n_events += n;
    }

    /// Puts an access where it belongs.
    fn note(&mut self, witness: &Witness, sharing: &Sharing, near: bool) {
        let state = &self.threads[witness.thread.0 as usize];
        let unit = |before: &Witness| unit(before, state);
        let last = (witness.addr.0 + u64::from(witness.bytes) - 1) >> GRANULE_BITS;
        let mut shared = false;
        for granule in witness.addr.0 >> GRANULE_BITS..=last {
            if sharing.is_shared(granule) {
                shared = true;
                self.accesses.push(granule, witness, unit);
            }
        }
        if near && shared {
            self.nearby.push(witness, unit);
        }
    }

    /// A synchronization object is used, made or destroyed: an access to it, of a kind.
    fn used(
        &mut self,
        thread: ThreadId,
        pc: Pc,
        deed: Deed,
        object: Addr,
        seq: u64,
        sharing: &Sharing,
    ) {
        if sharing.is_shared(object.0 >> GRANULE_BITS) {
            let witness = self.witness(thread, pc, deed, object, 1, seq);
            self.note(&witness, sharing, false);
        }
    }

    fn waits(&mut self, thread: ThreadId, pc: Pc, deed: Deed, object: Addr, seq: u64) {
        if self.seen.insert((pc, object, deed), ()).is_none() {
            let witness = self.witness(thread, pc, deed, object, 1, seq);
            let list =
                if deed == Deed::Wait { &mut self.model.waits } else { &mut self.model.signals };
            list.push(witness);
        }
    }

    fn atomic(&mut self, thread: ThreadId, pc: Pc, atomic: &Atomic, seq: u64, sharing: &Sharing) {
        let addr = atomic.addr;
        let reads = atomic.action != AtomicAction::Store;
        let writes = !matches!(atomic.action, AtomicAction::Load | AtomicAction::Miss);
        let before = self.state(thread).load.replace((pc, addr, atomic.before));
        if reads
            && let Some(stored) = self.stored.get(&addr)
            && stored.thread != thread
        {
            // A thread that loads the same again until it is something else waits for it.
            let span = before.is_some_and(|(at, of, value)| {
                (at, of) == (pc, addr) && value != atomic.before && stored.value == atomic.before
            });
            let (other, steps) = (stored.thread, stored.at + 1);
            let (strong, weak) = (span.then(|| stored.strong.clone()), stored.weak.clone());
            if !self.model.words.looks_like_lock(addr) {
                self.after(thread, other, steps, !span);
                self.model.weak.take(thread, &weak);
            }
            if let Some(strong) = strong {
                self.model.order.take(thread, &strong);
            }
        }
        match self.model.words.push(thread, atomic) {
            Meaning::Acquire => self.take_lock(thread, pc, addr, false, seq),
            Meaning::Release => self.release(thread, addr, false),
            Meaning::Nothing => {}
        }
        let deed = if writes { Deed::AtomicWrite } else { Deed::AtomicRead };
        if sharing.is_shared(addr.0 >> GRANULE_BITS) {
            let witness = self.witness(thread, pc, deed, addr, u32::from(atomic.bytes), seq);
            self.note(&witness, sharing, true);
        }
        if writes && !self.model.words.looks_like_lock(addr) {
            let at = self.at(thread);
            let strong = self.model.order.give(thread);
            let weak = self.model.weak.give(thread);
            self.stored.insert(addr, Stored { thread, at, value: atomic.after, strong, weak });
        }
    }
}

/// How closely an earlier access belongs to where the thread is now.
fn unit(before: &Witness, now: &State) -> Unit {
    let on_stack = |activation: u32| {
        activation != 0 && now.stack.iter().rev().take(64).any(|&a| a == activation)
    };
    if before.section != 0 && before.section == now.section {
        Unit::Section
    } else if before.activations[0] == 0 && now.stack.is_empty() || on_stack(before.activations[0])
    {
        Unit::Activation
    } else if on_stack(before.activations[1]) {
        Unit::Caller
    } else {
        Unit::Thread
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
        let mut scan = Scan::default();
        notation.events.iter().for_each(|event| scan.push(event, &sharing));
        (notation, scan.finish())
    }

    fn labelled(notation: &Notation, model: &Model, label: &str) -> Witness {
        let all = model.cells.iter().flat_map(|cell| &cell.singles).map(|single| single.first);
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
