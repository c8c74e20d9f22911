//! Threads that wait for each other, or for what nobody can give.

use core::sync::atomic::Ordering;

use raddle_trace::control::Ending;

use super::Sched;
use super::object::{NOBODY, Object};
use super::thread::{NEVER, Wait};
use crate::{shared, sys};

impl Sched {
    /// Who has what this thread waits for, and since where.
    fn holder(&self, id: u32, wait: Wait) -> Option<(u32, u64)> {
        match wait {
            Wait::Lock(at) | Wait::WriteLock(at) | Wait::ReadLock(at) => {
                let lock = self.objects.get(&at)?;
                if lock.owner != NOBODY {
                    return Some((lock.owner, lock.owner_pc));
                }
                // A writer waits for all readers; the one that waits too is the culprit, and
                // a reader that wants to write is its own.
                let blocked = |&&(reader, _): &&(u32, u64)| {
                    reader == id || self.threads[reader as usize].wait != Wait::Nothing
                };
                lock.readers.iter().find(blocked).or(lock.readers.first()).copied()
            }
            Wait::Join(other) => Some((other, self.threads[other as usize].pc)),
            _ => None,
        }
    }

    /// Whether a thread that now waits closes a circle of waiting threads, none of which has
    /// a deadline. Then nobody will ever break it, whatever other threads do.
    pub(super) fn check_circle(&self, me: u32) {
        let mut at = me;
        for _ in 0..self.threads.len() {
            let thread = &self.threads[at as usize];
            if thread.ended
                || thread.deadline != NEVER
                || thread.woken.is_some()
                || thread.cancelled
                || thread.interrupted
            {
                return;
            }
            if self.ready(at, thread.wait) {
                return;
            }
            match self.holder(at, thread.wait) {
                Some((next, _)) if next == me => self.deadlock(Some(me)),
                Some((next, _)) => at = next,
                None => return,
            }
        }
    }

    /// Forgets that a wake-up was missed if the futex has changed since: whoever waits for it
    /// now does so for another reason, even if its word comes to be the same again. To be called
    /// before every operation on it.
    pub(super) fn look_at_futex(&mut self, at: u64) {
        let Some(object) = self.objects.get_mut(&at).filter(|object| object.missed_pc != 0) else {
            return;
        };
        if object.missed.is_some_and(|(word, _)| word != super::peek32(at)) {
            object.missed_pc = 0;
        }
    }

    /// Says who waits for what, and ends the run.
    pub(super) fn deadlock(&self, last: Option<u32>) -> ! {
        let mut ending = Ending::Deadlock;
        for &id in &self.live {
            let thread = &self.threads[id as usize];
            self.publish(id);
            let slot = shared::slot(id);
            let (holder, pc) = self.holder(id, thread.wait).unwrap_or((NOBODY, 0));
            slot.holder.store(holder, Ordering::Relaxed);
            slot.holder_pc.store(pc, Ordering::Relaxed);
            if let Wait::Cond(at) | Wait::Futex(at, _) = thread.wait {
                // A futex that was changed since is waited on for another reason, as a lock is;
                // and so is one whose waiter sent the wake-up itself.
                let current = |object: &&Object| {
                    object.missed.is_none_or(|(word, by)| word == super::peek32(at) && by != id)
                };
                let missed =
                    self.objects.get(&at).filter(current).map_or(0, |object| object.missed_pc);
                slot.missed_pc.store(missed, Ordering::Relaxed);
                if missed != 0 {
                    ending = Ending::LostWakeup;
                }
            }
        }
        let control = shared::control();
        let last = last.unwrap_or(0);
        control.thread.store(last, Ordering::Relaxed);
        control.pc.store(self.threads[last as usize].pc, Ordering::Relaxed);
        control.addr.store(self.threads[last as usize].wait.published().1, Ordering::Relaxed);
        shared::fail(ending, b"");
        sys::exit_group(crate::die::STATUS)
    }
}
