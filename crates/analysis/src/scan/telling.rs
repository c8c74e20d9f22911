//! What one thread does that another one waits for: creation and join, wake-ups, semaphores,
//! barriers, one-time initialization, annotations, atomics.
//!
//! Each is a gift of all that the giver knows ([`crate::order`]), and a place in the skeleton
//! behind which the taker goes on.

use std::collections::VecDeque;

use raddle_trace::event::Atomic;
use raddle_trace::id::{Addr, ThreadId};
use rustc_hash::FxHashMap;

use super::{Here, Scan};
use crate::order::Gift;
use crate::skeleton::{Sync, What};
use crate::witness::Deed;

/// What was given, and not yet taken by everybody who may.
#[derive(Debug, Default)]
pub(super) struct Tellings {
    objects: FxHashMap<Addr, Object>,
    signals: FxHashMap<(Addr, ThreadId), Given>,
    spawns: FxHashMap<ThreadId, Given>,
    ends: FxHashMap<ThreadId, Gift>,
    stored: FxHashMap<Addr, Stored>,
}

/// By whom, where in it, and what.
type Given = (ThreadId, u64, Gift);

/// A synchronization object while events are read.
#[derive(Debug, Default)]
struct Object {
    /// Of a semaphore: raised and not yet lowered.
    posts: VecDeque<Given>,
    /// Of a barrier: who has come in this round.
    arrived: Vec<Given>,
    /// Of a barrier: who came in the last round.
    passed: Vec<Given>,
    /// Of a one-time initialization, or of annotations: what was given there.
    given: Option<Given>,
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

impl Scan<'_> {
    #[cold]
    pub(super) fn begin(&mut self, thread: ThreadId) {
        self.thread(thread).begun = true;
        if let Some((parent, at, gift)) = self.tellings.spawns.remove(&thread) {
            self.model.order.take(thread, &gift);
            let what = What::After { thread: parent, steps: at + 1, soft: false };
            self.model.skeleton.line(thread).syncs.push(Sync { at: 0, what });
        }
    }

    pub(super) fn spawn(&mut self, thread: ThreadId, child: ThreadId) {
        let given = self.give(thread);
        let weak = self.model.weak.give(thread);
        self.model.weak.take(child, &weak);
        self.tellings.spawns.insert(child, given);
    }

    pub(super) fn end(&mut self, thread: ThreadId) {
        let gift = self.model.order.give(thread);
        self.tellings.ends.insert(thread, gift);
    }

    pub(super) fn join(&mut self, thread: ThreadId, child: ThreadId) {
        let steps = self.threads.get(child.0 as usize).map_or(0, |child| child.steps);
        self.after(thread, child, steps, false);
        // An imported trace does not say when a thread ends.
        let gift = match self.tellings.ends.get(&child) {
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

    pub(super) fn waits(&mut self, here: Here, deed: Deed, object: Addr) {
        if self.seen.insert((here.pc, object, deed)) {
            let witness = self.witness(here, deed, object);
            let list =
                if deed == Deed::Wait { &mut self.model.waits } else { &mut self.model.signals };
            list.push(witness);
        }
    }

    pub(super) fn signal(&mut self, thread: ThreadId, object: Addr) {
        let given = self.give(thread);
        self.tellings.signals.insert((object, thread), given);
    }

    pub(super) fn woken(&mut self, thread: ThreadId, object: Addr, by: ThreadId) {
        if let Some(given) = self.tellings.signals.get(&(object, by)).cloned() {
            self.take(thread, &given);
        }
    }

    pub(super) fn post(&mut self, thread: ThreadId, semaphore: Addr) {
        let given = self.give(thread);
        self.object(semaphore).posts.push_back(given);
    }

    pub(super) fn lower(&mut self, thread: ThreadId, semaphore: Addr) {
        if let Some(post) = self.object(semaphore).posts.pop_front() {
            self.take(thread, &post);
        }
    }

    pub(super) fn arrive(&mut self, thread: ThreadId, barrier: Addr) {
        let given = self.give(thread);
        self.object(barrier).arrived.push(given);
    }

    pub(super) fn pass(&mut self, thread: ThreadId, barrier: Addr) {
        let object = self.object(barrier);
        if object.arrived.iter().any(|(other, ..)| *other == thread) {
            object.passed = std::mem::take(&mut object.arrived);
        }
        let passed = object.passed.clone();
        for other in passed.iter().filter(|(other, ..)| *other != thread) {
            self.take(thread, other);
        }
    }

    pub(super) fn give_at(&mut self, thread: ThreadId, object: Addr) {
        let given = self.give(thread);
        self.object(object).given = Some(given);
    }

    pub(super) fn take_at(&mut self, thread: ThreadId, object: Addr) {
        let object = self.tellings.objects.get(&object);
        if let Some(given) = object.and_then(|object| object.given.clone()) {
            self.take(thread, &given);
        }
    }

    /// The thread loads what another one stored; `spun` if it loaded something else before,
    /// at the same place.
    pub(super) fn load(&mut self, thread: ThreadId, atomic: &Atomic, spun: bool) {
        let Some(stored) = self.tellings.stored.get(&atomic.addr) else { return };
        if stored.thread == thread {
            return;
        }
        let spun = spun && stored.value == atomic.before;
        let (other, steps) = (stored.thread, stored.at + 1);
        let is_lock = self.model.words.looks_like_lock(atomic.addr);
        if !is_lock {
            self.model.weak.take(thread, &stored.weak);
        }
        if spun {
            self.model.order.take(thread, &stored.strong);
        }
        if !is_lock {
            self.after(thread, other, steps, !spun);
        }
    }

    pub(super) fn store(&mut self, thread: ThreadId, atomic: &Atomic) {
        let at = self.at(thread);
        let strong = self.model.order.give(thread);
        let weak = self.model.weak.give(thread);
        let stored = Stored { thread, at, value: atomic.after, strong, weak };
        self.tellings.stored.insert(atomic.addr, stored);
    }

    fn object(&mut self, object: Addr) -> &mut Object {
        self.tellings.objects.entry(object).or_default()
    }

    fn give(&mut self, thread: ThreadId) -> Given {
        (thread, self.at(thread), self.model.order.give(thread))
    }

    fn take(&mut self, thread: ThreadId, (other, at, gift): &Given) {
        if *other != thread {
            self.after(thread, *other, at + 1, false);
            self.model.order.take(thread, gift);
        }
    }

    fn after(&mut self, thread: ThreadId, other: ThreadId, steps: u64, soft: bool) {
        // It may have done nothing that was seen.
        self.model.skeleton.line(other);
        self.sync(thread, What::After { thread: other, steps, soft });
    }
}
