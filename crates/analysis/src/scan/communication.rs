//! Operations by which threads wait for each other: creation and join, wake-ups, semaphores,
//! barriers, one-time initialization, channels, annotations, atomics.
//!
//! Each publishes everything that its thread knows ([`crate::order`]), and adds to the skeleton a
//! point after which the receiver continues.
//!
//! A receive from a channel comes after everything that was sent into it before, not only after
//! the bytes that it got: a count of bytes would be wrong as soon as one write is not seen. This
//! misses orders in which a receiver is content with what was sent first, and predicts none that
//! cannot happen. A sender that had to wait for room comes after what was received before.

use std::collections::VecDeque;

use raddle_trace::event::{Atomic, ChannelOp};
use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::FxHashMap;

use super::{Position, Scan};
use crate::skeleton::{Sync, SyncKind};
use crate::vector_clock::VectorClock;
use crate::witness::AccessKind;

/// Clocks that were published and may still be received.
#[derive(Debug, Default)]
pub(super) struct Communications {
    objects: FxHashMap<Addr, Object>,
    signals: FxHashMap<(Addr, ThreadId), Published>,
    spawns: FxHashMap<ThreadId, Published>,
    ends: FxHashMap<ThreadId, VectorClock>,
    stored: FxHashMap<Addr, Stored>,
    channels: FxHashMap<u64, Channel>,
}

/// The publishing thread, its number of steps, and its clock.
type Published = (ThreadId, u64, VectorClock);

/// A synchronization object while events are read.
#[derive(Debug, Default)]
struct Object {
    /// For a semaphore: posts that were not yet consumed.
    posts: VecDeque<Published>,
    /// For a barrier: threads that have arrived in this round.
    arrived: Vec<Published>,
    /// For a barrier: threads that arrived in the last round.
    passed: Vec<Published>,
    /// For one-time initialization and annotations: what each thread published last.
    published: Vec<Published>,
}

/// A channel while events are read: what was sent, and what was received and so made room.
#[derive(Debug, Default)]
struct Channel {
    sent: Board,
    received: Board,
}

/// What each thread published last, and how much of it each thread knows.
#[derive(Debug, Default)]
struct Board {
    /// Numbered from 1. invariant: sorted by number.
    published: Vec<(u64, Published)>,
    n: u64,
    /// The number up to which a thread knows all.
    known: FxHashMap<ThreadId, u64>,
}

impl Board {
    fn put(&mut self, published: Published) {
        self.published.retain(|(_, (other, ..))| *other != published.0);
        self.n += 1;
        self.published.push((self.n, published));
    }

    /// What the thread does not know yet.
    fn news(&mut self, thread: ThreadId) -> Vec<Published> {
        let known = self.known.insert(thread, self.n).unwrap_or(0);
        let from = self.published.partition_point(|(number, _)| *number <= known);
        self.published[from..].iter().map(|(_, published)| published.clone()).collect()
    }
}

/// The last store to an atomic.
#[derive(Debug)]
struct Stored {
    thread: ThreadId,
    at: u64,
    value: u64,
    strong: VectorClock,
    weak: VectorClock,
}

impl Scan<'_> {
    #[cold]
    pub(super) fn begin(&mut self, thread: ThreadId) {
        self.thread(thread).begun = true;
        if let Some((parent, at, clock)) = self.communications.spawns.remove(&thread) {
            self.model.order.receive(thread, &clock);
            let kind = SyncKind::After { thread: parent, steps: at + 1, soft: false };
            self.model.skeleton.line(thread).syncs.push(Sync { at: 0, kind });
        }
    }

    pub(super) fn spawn(&mut self, thread: ThreadId, child: ThreadId) {
        let published = self.publish(thread);
        let weak = self.model.weak.publish(thread);
        self.model.weak.receive(child, &weak);
        self.communications.spawns.insert(child, published);
    }

    pub(super) fn end(&mut self, thread: ThreadId) {
        let clock = self.model.order.publish(thread);
        self.communications.ends.insert(thread, clock);
    }

    pub(super) fn join(&mut self, thread: ThreadId, child: ThreadId) {
        let steps = self.threads.get(child.0 as usize).map_or(0, |child| child.steps);
        self.after(thread, child, steps, false);
        // An imported trace has no thread ends.
        let clock = match self.communications.ends.get(&child) {
            Some(clock) => Some(clock.clone()),
            None if steps > 0 => Some(self.model.order.publish(child)),
            None => None,
        };
        if let Some(clock) = clock {
            self.model.order.receive(thread, &clock);
            let weak = self.model.weak.publish(child);
            self.model.weak.receive(thread, &weak);
        }
    }

    pub(super) fn waits(&mut self, here: Position, kind: AccessKind, object: Addr) {
        if self.seen.insert((here.pc, object, kind)) {
            let witness = self.witness(here, kind, object);
            let list = if kind == AccessKind::Wait {
                &mut self.model.waits
            } else {
                &mut self.model.signals
            };
            list.push(witness);
        }
    }

    pub(super) fn signal(&mut self, thread: ThreadId, object: Addr) {
        let published = self.publish(thread);
        self.communications.signals.insert((object, thread), published);
    }

    pub(super) fn woken(&mut self, thread: ThreadId, object: Addr, by: ThreadId) {
        if let Some(published) = self.communications.signals.get(&(object, by)).cloned() {
            self.receive(thread, &published);
        }
    }

    pub(super) fn post(&mut self, thread: ThreadId, semaphore: Addr) {
        let published = self.publish(thread);
        self.object(semaphore).posts.push_back(published);
    }

    pub(super) fn lower(&mut self, thread: ThreadId, semaphore: Addr) {
        if let Some(post) = self.object(semaphore).posts.pop_front() {
            self.receive(thread, &post);
        }
    }

    pub(super) fn arrive(&mut self, thread: ThreadId, barrier: Addr) {
        let published = self.publish(thread);
        self.object(barrier).arrived.push(published);
    }

    pub(super) fn pass(&mut self, thread: ThreadId, barrier: Addr) {
        let object = self.object(barrier);
        if object.arrived.iter().any(|(other, ..)| *other == thread) {
            object.passed = std::mem::take(&mut object.arrived);
        }
        let passed = object.passed.clone();
        for other in passed.iter().filter(|(other, ..)| *other != thread) {
            self.receive(thread, other);
        }
    }

    pub(super) fn publish_at(&mut self, thread: ThreadId, object: Addr) {
        let published = self.publish(thread);
        let all = &mut self.object(object).published;
        all.retain(|(other, ..)| *other != thread);
        all.push(published);
    }

    pub(super) fn receive_at(&mut self, thread: ThreadId, object: Addr) {
        let Some(object) = self.communications.objects.get(&object) else { return };
        for published in &object.published.clone() {
            self.receive(thread, published);
        }
    }

    pub(super) fn send(&mut self, thread: ThreadId, op: ChannelOp) {
        if op.waited {
            let news = self.channel(op).received.news(thread);
            news.iter().for_each(|published| self.receive(thread, published));
        }
        let published = self.publish(thread);
        self.channel(op).sent.put(published);
    }

    pub(super) fn receive_from(&mut self, thread: ThreadId, op: ChannelOp) {
        let news = self.channel(op).sent.news(thread);
        news.iter().for_each(|published| self.receive(thread, published));
        let published = self.publish(thread);
        self.channel(op).received.put(published);
    }

    fn channel(&mut self, op: ChannelOp) -> &mut Channel {
        self.communications.channels.entry(op.channel).or_default()
    }

    /// The thread loads what another thread stored; `spun` if it loaded another value before, at
    /// the same code address.
    pub(super) fn load(&mut self, thread: ThreadId, atomic: &Atomic, spun: bool) {
        let Some(stored) = self.communications.stored.get(&atomic.addr) else { return };
        if stored.thread == thread {
            return;
        }
        let spun = spun && stored.value == atomic.before;
        let (other, steps) = (stored.thread, stored.at + 1);
        let is_lock = self.model.words.looks_like_lock(atomic.addr);
        if !is_lock {
            self.model.weak.receive(thread, &stored.weak);
        }
        if spun {
            self.model.order.receive(thread, &stored.strong);
        }
        if !is_lock {
            self.after(thread, other, steps, !spun);
        }
    }

    pub(super) fn store(&mut self, thread: ThreadId, atomic: &Atomic) {
        let at = self.at(thread);
        let strong = self.model.order.publish(thread);
        let weak = self.model.weak.publish(thread);
        let stored = Stored { thread, at, value: atomic.after, strong, weak };
        self.communications.stored.insert(atomic.addr, stored);
    }

    fn object(&mut self, object: Addr) -> &mut Object {
        self.communications.objects.entry(object).or_default()
    }

    fn publish(&mut self, thread: ThreadId) -> Published {
        (thread, self.at(thread), self.model.order.publish(thread))
    }

    fn receive(&mut self, thread: ThreadId, (other, at, clock): &Published) {
        if *other != thread {
            self.after(thread, *other, at + 1, false);
            self.model.order.receive(thread, clock);
        }
    }

    fn after(&mut self, thread: ThreadId, other: ThreadId, steps: u64, soft: bool) {
        // The other thread may have no events.
        self.model.skeleton.line(other);
        self.sync(thread, SyncKind::After { thread: other, steps, soft });
    }
}
