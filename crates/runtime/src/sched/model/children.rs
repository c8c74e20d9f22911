//! Child processes: what they do is accepted when they are at rest.
//!
//! We do not control a child. But what it does by the time at which it can go on no further depends
//! on what it was given and not on its speed. So whatever a child may have changed (its own state, a
//! pipe, an object in shared memory) is looked at only while all children are *at rest*: each has
//! ended, or waits for something ([`Rest`]). A thread that looks without waiting, or acquires a lock,
//! lets them come to rest first. One that waits for a child, or for what it writes or posts, is
//! *accepted* when no other thread can run and the children are at rest; if several are accepted,
//! the policy chooses among them. It does not go on at once even if it could: whether it could may
//! be a matter of time.
//!
//! Time stands still while a child is busy. While one waits by the clock (`sleep`, a time-out), time
//! passes as real time does. Otherwise all children wait for us, and time jumps as without them.
//!
//! Limits: what a child does by the clock comes when it comes; so does what a child does that never
//! rests, since we do not wait for it forever. Memory that is shared with a child is read and written
//! at any time. Children that act on each other do so in their own order.

use raddle_trace::record::Wake;

use super::object::NOBODY;
use super::thread::Wait;
use super::{Model, World};

/// What the children of the program do by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing: they have ended, or wait for us.
    #[default]
    Waits,
    /// One of them goes on at a certain time.
    Sleeps,
    /// One of them went on for so long that we do not wait for it.
    Busy,
}

impl Rest {
    /// Whether a child goes on whatever we do.
    pub(super) fn goes_on(self) -> bool {
        match self {
            Self::Waits => false,
            Self::Sleeps | Self::Busy => true,
        }
    }
}

impl Model {
    /// Whether there may be child processes.
    pub(crate) fn has_children(&self, world: &impl World) -> bool {
        self.n_processes > 0 && world.has_children()
    }

    /// Whether a child process may bring about what is waited for.
    pub(crate) fn is_foreign(&self, wait: Wait, world: &impl World) -> bool {
        match wait {
            Wait::Peer(..) | Wait::Child(_) => true,
            wait => self.n_processes > 0 && self.is_shared(wait, world) && world.has_children(),
        }
    }

    /// Whether what a thread waits for has come from a child process.
    pub(crate) fn has_come(&self, id: u32, wait: Wait, world: &impl World) -> bool {
        self.is_foreign(wait, world) && self.is_there(id, wait, world)
    }

    /// Whether a thread that is about to wait in this way, until a point in time, goes on at once
    /// if it can. Children are at rest then.
    pub(crate) fn looks_at_once(&self, wait: Wait, deadline: u64, now: u64) -> bool {
        match wait {
            Wait::Peer(..) | Wait::Child(_) | Wait::Semaphore(_) | Wait::SharedBarrier(..) => {
                deadline <= now
            }
            Wait::Lock(_)
            | Wait::ReadLock(_)
            | Wait::WriteLock(_)
            | Wait::Cond(_)
            | Wait::Nothing
            | Wait::Futex(..)
            | Wait::Barrier(..)
            | Wait::Join(_)
            | Wait::Once(_)
            | Wait::Guard(_)
            | Wait::Unwaited(_)
            | Wait::Loader(_)
            | Wait::Timer
            | Wait::Sleep
            | Wait::Descriptors(..)
            | Wait::Signal
            | Wait::SignalOf(_)
            | Wait::Outside
            | Wait::Back => true,
        }
    }

    /// Number of threads for which a child process may act.
    pub(super) fn n_foreign(&self, world: &impl World) -> usize {
        let waits = |&&id: &&u32| self.is_foreign(self.threads[id as usize].wait, world);
        self.live.iter().filter(waits).count()
    }

    /// Accepts what a thread is about to wait for if it is there. Children are at rest.
    pub(crate) fn accept_at_once(&mut self, id: u32, wait: Wait, world: &impl World) {
        self.settle(wait, world);
        self.threads[id as usize].accepted = self.is_there(id, wait, world);
    }

    /// Accepts what is there for threads that wait. Children are at rest. `have_run` if they have
    /// run since the last time: then one may have signaled a condition variable, and its waiters
    /// wake for no reason, as POSIX allows, to look at their condition.
    pub(crate) fn accept(&mut self, have_run: bool, world: &impl World) {
        for at in 0..self.live.len() {
            let id = self.live[at];
            let wait = self.threads[id as usize].wait;
            if !self.is_foreign(wait, world) {
                continue;
            }
            self.settle(wait, world);
            if matches!(wait, Wait::Cond(_)) {
                let woken = &mut self.threads[id as usize].woken;
                *woken = woken.or(have_run.then_some((Wake::Spurious, NOBODY)));
            }
            self.threads[id as usize].accepted = self.is_there(id, wait, world);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rest;

    #[test]
    fn only_children_that_wait_for_us_stand_still() {
        assert!(!Rest::Waits.goes_on());
        assert!(Rest::Sleeps.goes_on() && Rest::Busy.goes_on());
    }
}
