//! Other processes that may post or unlock what a thread waits for.
//!
//! Objects that are shared between processes are modeled like others as long as we have no
//! children. From then on a child may act on them, and we see neither when nor what: threads that
//! wait for one are looked after in real time. A semaphore's value is read again; a wait on a
//! condition variable ends for no reason now and then, as POSIX allows, so that the program looks
//! at its condition.
//!
//! Limits: processes that are not our children are not known. A mutex that a child holds is
//! waited for in the kernel.

use core::sync::atomic::Ordering;

use raddle_trace::record::Wake;

use super::thread::{NEVER, Wait};
use super::{RETURNING, Sched, peek32};
use crate::sys;

/// How often we look.
const LOOK_US: u64 = 500;

impl Sched {
    /// Whether a child process may act on what a thread waits for.
    pub(super) fn may_be_helped(&self) -> bool {
        let waits = |&id: &u32| is_shared(self.threads[id as usize].wait);
        self.n_processes > 0 && self.live.iter().any(waits) && sys::has_children()
    }

    /// Waits in real time until a child has acted, for at most so long. A condition variable may
    /// have been signaled at any time.
    pub(super) fn wait_for_help(&mut self, ns: u64) -> bool {
        let start = sys::monotonic_ns();
        loop {
            sys::sleep_us(LOOK_US);
            for index in 0..self.live.len() {
                let thread = &mut self.threads[self.live[index] as usize];
                if matches!(thread.wait, Wait::Cond(_)) && is_shared(thread.wait) {
                    thread.woken = Some((Wake::Spurious, super::NOBODY));
                }
            }
            self.collect_runnable();
            if !self.runnable.is_empty() {
                return true;
            }
            let is_over = ns != NEVER && sys::monotonic_ns() - start >= ns;
            if is_over || RETURNING.load(Ordering::SeqCst) > 0 || !self.may_be_helped() {
                return false;
            }
        }
    }
}

/// Whether what is waited for is shared between processes, as glibc marks it.
fn is_shared(wait: Wait) -> bool {
    let word = |at: u64, index: u64| peek32(at + 4 * index);
    match wait {
        // `__kind`, and in it PTHREAD_MUTEX_PSHARED_BIT.
        Wait::Lock(at) => word(at, 4) & 128 != 0,
        // `__shared`.
        Wait::ReadLock(at) | Wait::WriteLock(at) => word(at, 7) != 0,
        // `__wrefs`.
        Wait::Cond(at) => word(at, 9) & 1 != 0,
        // `private`, which is 0 if it is.
        Wait::Semaphore(at) => word(at, 2) != 0,
        Wait::Nothing
        | Wait::Futex(..)
        | Wait::Barrier(..)
        | Wait::Join(_)
        | Wait::Once(_)
        | Wait::Guard(_)
        | Wait::Unwaited(_)
        | Wait::Sleep
        | Wait::Descriptors(..)
        | Wait::Signal
        | Wait::SignalOf(_)
        | Wait::Outside
        | Wait::Back => false,
    }
}
