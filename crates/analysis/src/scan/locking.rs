//! Acquiring and releasing locks.

use raddle_trace::event::Op;
use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::FxHashMap;

use super::{Position, Scan};
use crate::locks::Held;
use crate::model::Nesting;
use crate::skeleton::{Sync, SyncKind};
use crate::witness::AccessKind;

/// Index of each nesting, by outer and inner site, outer and inner lock, and thread.
pub(super) type Nestings = FxHashMap<(Pc, Pc, Addr, Addr, ThreadId), usize>;

impl Scan<'_> {
    pub(super) fn acquire(&mut self, here: Position, lock: Held) {
        let taken = self.witness(here, AccessKind::Acquire, lock.lock);
        let thread = &mut self.threads[here.thread.0 as usize];
        let Some(outers) = thread.acquire(lock, taken, &mut self.model.locks) else { return };
        let nestings = &mut self.model.nestings;
        for outer in outers {
            let key = (outer.taken.pc, here.pc, outer.held.lock, lock.lock, here.thread);
            let nesting = Nesting {
                outer: outer.taken,
                outer_shared: outer.held.shared,
                inner: taken,
                inner_shared: lock.shared,
            };
            // The last nesting is kept beside the first, since it is free to move forward.
            match self.nestings.get(&key) {
                Some(&at) => nestings[at + 1] = nesting,
                None => {
                    self.nestings.insert(key, nestings.len());
                    nestings.extend([nesting, nesting]);
                }
            }
        }
        self.sync(here.thread, SyncKind::Acquire { lock: lock.lock, shared: lock.shared });
    }

    /// A thread that waited for a lock in uninstrumented code now holds it, unless it waits
    /// again.
    pub(super) fn settle(&mut self, here: Position, op: &Op) {
        let is_own = |(thread, _): &(ThreadId, Addr)| *thread == here.thread;
        // These are bookkeeping and not operations of the thread.
        if matches!(op, Op::Step | Op::Repeats { .. } | Op::Choice { .. } | Op::Clock { .. }) {
            return;
        }
        let Some(at) = self.awaiting.iter().position(is_own) else { return };
        let (thread, lock) = self.awaiting.swap_remove(at);
        let waits_again = matches!(*op, Op::FutexWait { futex, .. } if futex == lock);
        if !waits_again && self.model.words.awaited(thread, lock) {
            // Where it found the lock held.
            let tried = self.threads[thread.0 as usize].load.filter(|(_, addr, _)| *addr == lock);
            let pc = tried.map_or(here.pc, |(pc, ..)| pc);
            self.acquire(Position { pc, ..here }, Held { lock, shared: false });
        }
    }

    pub(super) fn release(&mut self, thread: ThreadId, lock: Held) {
        let state = &mut self.threads[thread.0 as usize];
        if !lock.shared && !state.holds(lock.lock) {
            self.release_for_other(thread, lock);
            return;
        }
        let Some(Held { lock, shared }) = state.release(lock, &mut self.model.locks) else {
            return;
        };
        self.sync(thread, SyncKind::Release { lock, shared });
    }

    /// A thread releases a lock that another one holds, which a run may allow: the holder loses it
    /// where it is then, and not before the other thread has come that far.
    fn release_for_other(&mut self, thread: ThreadId, lock: Held) {
        let Some(holder) = self.threads.iter().position(|other| other.holds(lock.lock)) else {
            return;
        };
        let steps = self.threads[thread.0 as usize].steps;
        let state = &mut self.threads[holder];
        let Some(Held { lock, shared }) = state.release(lock, &mut self.model.locks) else {
            return;
        };
        let at = state.steps;
        let line = self.model.skeleton.line(ThreadId(holder as u32));
        line.syncs.push(Sync { at, kind: SyncKind::After { thread, steps, soft: false } });
        line.syncs.push(Sync { at, kind: SyncKind::Release { lock, shared } });
    }
}
