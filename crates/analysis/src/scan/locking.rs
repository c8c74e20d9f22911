//! Locks that are taken and released.

use raddle_trace::event::Op;
use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::FxHashMap;

use super::{Here, Scan};
use crate::locks::Held;
use crate::model::Nesting;
use crate::skeleton::What;
use crate::witness::Deed;

/// Where the nestings of a kind are: outer and inner site, outer and inner lock, thread.
pub(super) type Nestings = FxHashMap<(Pc, Pc, Addr, Addr, ThreadId), usize>;

impl Scan<'_> {
    pub(super) fn acquire(&mut self, here: Here, lock: Held) {
        let taken = self.witness(here, Deed::Acquire, lock.lock);
        let thread = &mut self.threads[here.thread.0 as usize];
        let Some(outers) = thread.take(lock, taken, &mut self.model.locks) else { return };
        let nestings = &mut self.model.nestings;
        for outer in outers {
            let key = (outer.taken.pc, here.pc, outer.held.lock, lock.lock, here.thread);
            let nesting = Nesting {
                outer: outer.taken,
                outer_shared: outer.held.shared,
                inner: taken,
                inner_shared: lock.shared,
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
        self.sync(here.thread, What::Acquire { lock: lock.lock, shared: lock.shared });
    }

    /// A thread that has waited for a lock in code that is not instrumented has it, unless it waits
    /// again.
    pub(super) fn settle(&mut self, here: Here, op: &Op) {
        let is_own = |(thread, _): &(ThreadId, Addr)| *thread == here.thread;
        // These are not what it does, but how it is counted.
        if matches!(op, Op::Step | Op::Repeats { .. } | Op::Choice { .. } | Op::Clock { .. }) {
            return;
        }
        let Some(at) = self.awaiting.iter().position(is_own) else { return };
        let (thread, lock) = self.awaiting.swap_remove(at);
        let waits_again = matches!(*op, Op::FutexWait { futex, .. } if futex == lock);
        if !waits_again && self.model.words.awaited(thread, lock) {
            // Where it found the lock taken.
            let tried = self.threads[thread.0 as usize].load.filter(|(_, addr, _)| *addr == lock);
            let pc = tried.map_or(here.pc, |(pc, ..)| pc);
            self.acquire(Here { pc, ..here }, Held { lock, shared: false });
        }
    }

    pub(super) fn release(&mut self, thread: ThreadId, lock: Held) {
        let state = &mut self.threads[thread.0 as usize];
        let Some(Held { lock, shared }) = state.release(lock, &mut self.model.locks) else {
            return;
        };
        self.sync(thread, What::Release { lock, shared });
    }
}
