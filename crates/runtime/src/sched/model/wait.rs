//! When a wait is over.

use raddle_trace::record::Wake;

use super::object::Object;
use super::policy::Candidate;
use super::thread::Wait;
use super::{Model, World};
use crate::loader;

impl Model {
    /// How the thread's wait would end at virtual time `now`; none if it continues.
    pub(crate) fn wake_of(
        &self,
        id: u32,
        wait: Wait,
        deadline: u64,
        now: u64,
        world: &impl World,
    ) -> Option<Wake> {
        let thread = &self.threads[id as usize];
        // A pending cancellation comes first even if the operation could be performed. But a
        // wake-up that was received would be lost, and libc joins a thread that has ended.
        let comes_too_late = thread.woken.is_some()
            || matches!(wait, Wait::Join(other) if self.threads[other as usize].ended);
        let is_point = wait.cancellable() || thread.leaves_lock && thread.is_cancelled_anywhere();
        if thread.is_cancelled() && is_point && !comes_too_late {
            Some(Wake::Cancelled)
        } else if self.ready(id, wait, world) {
            Some(thread.woken.map_or(Wake::Woken, |(how, _)| how))
        } else if thread.interrupted && wait.interruptible() {
            Some(Wake::Interrupted)
        } else if deadline <= now {
            Some(Wake::TimedOut)
        } else {
            None
        }
    }

    /// Whether the thread can perform its operation or a signal handler.
    pub(crate) fn can_run(&self, id: u32, world: &impl World) -> bool {
        let thread = &self.threads[id as usize];
        thread.interrupted
            || self.wake_of(id, thread.wait, thread.deadline, self.now(), world).is_some()
    }

    /// Whether the thread can perform its operation. What a child process may bring about has to be
    /// accepted first; a wake-up from a thread of ours counts at once.
    pub(super) fn ready(&self, id: u32, wait: Wait, world: &impl World) -> bool {
        let thread = &self.threads[id as usize];
        let may = thread.accepted || thread.woken.is_some() || !self.is_foreign(wait, world);
        may && self.is_there(id, wait, world)
    }

    /// Whether what the thread waits for is there.
    pub(super) fn is_there(&self, id: u32, wait: Wait, world: &impl World) -> bool {
        let object = |at: u64| self.objects.get(&at);
        match wait {
            Wait::Nothing => true,
            Wait::Lock(at) | Wait::WriteLock(at) => object(at).is_none_or(Object::is_free),
            Wait::ReadLock(at) => object(at).is_none_or(|lock| {
                let waiting_writer =
                    |&other: &u32| self.threads[other as usize].wait == Wait::WriteLock(at);
                lock.is_readable() && !(lock.writers_first && self.live.iter().any(waiting_writer))
            }),
            Wait::Cond(_) | Wait::Futex(..) => self.threads[id as usize].woken.is_some(),
            // glibc keeps the value in the lower half of the first word.
            Wait::Semaphore(at) => world.word(at) > 0,
            Wait::Barrier(at, round) => object(at).is_none_or(|barrier| barrier.round != round),
            // glibc: the second word counts arrivals.
            Wait::SharedBarrier(at, n) => world.word(at + 4) >= n,
            Wait::Join(other) => self.threads[other as usize].ended,
            // glibc: bit 0 of the control word means «in progress».
            Wait::Once(at) => world.word(at) & 1 == 0,
            // Itanium C++ ABI as in libstdc++: the second byte means «in progress».
            Wait::Guard(at) => world.word(at) & 0xff00 == 0,
            Wait::Loader(at) => {
                let owner = world.word(at + loader::OWNER);
                owner == 0 || owner == self.threads[id as usize].kernel_id
            }
            Wait::Timer => self.n_expired > 0,
            Wait::Unwaited(at) => self.waiters(|wait| wait == Wait::Cond(at)).is_empty(),
            Wait::Descriptors(at, n) | Wait::Peer(at, n) => world.any_ready(at, n),
            Wait::Child(at) => world.has_child_changed(at),
            Wait::SignalOf(n_seen) => self.n_signals != n_seen,
            Wait::Sleep | Wait::Signal | Wait::Outside | Wait::Back => false,
        }
    }

    /// Finds the threads that can run.
    pub(super) fn collect_runnable(&mut self, world: &impl World) {
        let mut runnable = core::mem::take(&mut self.runnable);
        runnable.clear();
        for &id in &self.live {
            if self.can_run(id, world) {
                let (addr, write) = self.threads[id as usize].access;
                runnable.push(Candidate { thread: id, addr, write });
            }
        }
        self.runnable = runnable;
    }

    /// Whether any thread can run.
    pub(crate) fn any_can_run(&mut self, world: &impl World) -> bool {
        self.collect_runnable(world);
        !self.runnable.is_empty()
    }

    /// Whether a live thread waits in such a way.
    pub(crate) fn any_waits(&self, in_this_way: impl Fn(Wait) -> bool) -> bool {
        self.live.iter().any(|&id| in_this_way(self.threads[id as usize].wait))
    }
}
