//! Threads that wait for each other, or for something that nobody can provide.

use core::sync::atomic::Ordering;

use raddle_trace::allow::Judgement;
use raddle_trace::control::Ending;

use super::Sched;
use super::object::{NOBODY, Object};
use super::thread::{NEVER, Wait};
use crate::{allow, die, shared};

impl Sched {
    /// The thread that holds what this thread waits for, and where it acquired it.
    fn holder(&self, id: u32, wait: Wait) -> Option<(u32, u64)> {
        match wait {
            Wait::Lock(at) | Wait::WriteLock(at) | Wait::ReadLock(at) => {
                let lock = self.objects.get(&at)?;
                if lock.owner != NOBODY {
                    return Some((lock.owner, lock.owner_pc));
                }
                // A writer waits for all readers; the one that is blocked too is the culprit, and
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

    /// Ends the run if a thread that now waits closes a cycle of waiting threads without a
    /// deadline: nothing that other threads do can break it, unless they may release locks that
    /// they do not hold.
    pub(super) fn check_cycle(&self, me: u32) {
        let mut at = me;
        let mut has_lock = false;
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
            let is_lock =
                matches!(thread.wait, Wait::Lock(_) | Wait::WriteLock(_) | Wait::ReadLock(_));
            has_lock |= is_lock;
            match self.holder(at, thread.wait) {
                Some((next, _)) if next == me => {
                    let is_self = is_lock && at == me;
                    if is_self && allow::is_allowed(Judgement::SelfDeadlock, thread.pc)
                        || has_lock && allow::anywhere(Judgement::ForeignUnlock)
                    {
                        return;
                    }
                    self.deadlock(Some(me))
                }
                Some((next, _)) => at = next,
                None => return,
            }
        }
    }

    /// Forgets a missed wake-up if the futex has changed since: a thread that waits for it now
    /// has another reason, even if the word has the same value again. Call it before every
    /// operation on the futex.
    pub(super) fn forget_stale_wake_up(&mut self, at: u64) {
        let Some(object) = self.objects.get_mut(&at).filter(|object| object.missed_pc != 0) else {
            return;
        };
        if object.missed.is_some_and(|(word, _)| word != super::peek32(at)) {
            object.missed_pc = 0;
        }
    }

    /// Reports what each thread waits for and ends the run.
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
                // A futex that has changed since is waited on for another reason, like a lock;
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
        let last = last.unwrap_or(0);
        let thread = &self.threads[last as usize];
        die::stop(ending, last, thread.pc, thread.wait.published().1)
    }
}
