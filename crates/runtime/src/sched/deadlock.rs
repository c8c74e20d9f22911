//! Threads that wait for each other, or for something that nobody can provide.

use core::sync::atomic::Ordering;

use raddle_trace::allow::Judgement;
use raddle_trace::control::Ending;

use super::Sched;
use super::object::{NOBODY, Object};
use super::target::{Target, peek32};
use super::thread::Wait;
use crate::{allow, die, shared};

impl Sched {
    /// Notes whether a thread that now waits closes a cycle of waiting threads. If the program ends
    /// all the same, who waits for whom is still to be told.
    pub(super) fn check_cycle(&mut self, me: u32) {
        let is_helped = self.n_processes > 0 && {
            let wait = self.threads[me as usize].wait;
            self.is_shared(wait, &Target)
        };
        if is_helped || !self.closes_cycle(me, &Target) || self.may_be_resolved(me) {
            return;
        }
        self.model.note_cycle(me);
        let mut at = me;
        while let Some((holder, _)) = self.publish_holder(at).filter(|&(holder, _)| holder != me) {
            at = holder;
        }
    }

    /// Whether the plan allows what the cycle of a thread consists of: that it waits for itself, or
    /// that others release locks that they do not hold, and so may resolve it.
    fn may_be_resolved(&self, me: u32) -> bool {
        let thread = &self.threads[me as usize];
        let holder = self.holder(me, thread.wait, &Target);
        let waits_for_itself = holder.is_some_and(|(holder, _)| holder == me);
        waits_for_itself && allow::is_allowed(Judgement::SelfDeadlock, thread.pc)
            || allow::anywhere(Judgement::ForeignUnlock)
    }

    /// Forgets a missed wake-up if the futex has changed since: a thread that waits for it now
    /// has another reason, even if the word has the same value again. Call it before every
    /// operation on the futex.
    pub(super) fn forget_stale_wake_up(&mut self, at: u64) {
        let Some(object) = self.objects.get_mut(&at).filter(|object| object.missed_pc != 0) else {
            return;
        };
        if object.missed.is_some_and(|(word, _)| word != peek32(at)) {
            object.missed_pc = 0;
        }
    }

    /// Publishes what a thread waits for, and who holds that.
    fn publish_holder(&self, id: u32) -> Option<(u32, u64)> {
        self.publish(id);
        let holder = self.holder(id, self.threads[id as usize].wait, &Target);
        let (thread, pc) = holder.unwrap_or((NOBODY, 0));
        let slot = shared::slot(id);
        slot.holder.store(thread, Ordering::Relaxed);
        slot.holder_pc.store(pc, Ordering::Relaxed);
        holder
    }

    /// Publishes what each thread waits for; returns whether one missed its wake-up.
    fn publish_waits(&self) -> bool {
        let mut any_missed = false;
        for &id in &self.live {
            let thread = &self.threads[id as usize];
            self.publish_holder(id);
            if let Wait::Cond(at) | Wait::Futex(at, _) = thread.wait {
                // A futex that has changed since is waited on for another reason, like a lock;
                // and so is one whose waiter sent the wake-up itself.
                let current = |object: &&Object| {
                    object.missed.is_none_or(|(word, by)| word == peek32(at) && by != id)
                };
                let missed =
                    self.objects.get(&at).filter(current).map_or(0, |object| object.missed_pc);
                shared::slot(id).missed_pc.store(missed, Ordering::Relaxed);
                any_missed |= missed != 0;
            }
        }
        any_missed
    }

    /// Reports what each thread waits for and ends the run.
    pub(super) fn deadlock(&self, last: Option<u32>) -> ! {
        let ending = if self.publish_waits() { Ending::LostWakeup } else { Ending::Deadlock };
        let last = last.unwrap_or(0);
        let thread = &self.threads[last as usize];
        die::stop(ending, last, thread.pc, thread.wait.published().1)
    }
}
