//! Other processes that may post or unlock what a thread waits for.
//!
//! Objects that are shared between processes are modeled like others as long as we have no
//! children. From then on a child may act on them, and we see neither when nor what: threads that
//! wait for one are looked after in real time. The values of semaphores, barriers, and locks are read
//! again; a wait on a condition variable ends for no reason now and then, as POSIX allows, so that
//! the program looks at its condition.
//!
//! Limits: processes that are not our children are not known. A mutex that a child holds is
//! waited for in the kernel.

use core::sync::atomic::Ordering;

use raddle_trace::record::Wake;

use super::target::Target;
use super::thread::{NEVER, Wait};
use super::{RETURNING, Sched};
use crate::sys;

/// How often we look.
const LOOK_US: u64 = 500;

impl Sched {
    /// Follows what a child process has done to a lock that a thread is about to acquire.
    pub(crate) fn settle_shared(&mut self, wait: Wait) {
        self.model.settle(wait, &Target);
    }

    /// Waits in real time until a child has acted, for at most so long. A condition variable may
    /// have been signaled at any time.
    pub(super) fn wait_for_help(&mut self, ns: u64) -> bool {
        let start = sys::monotonic_ns();
        loop {
            sys::sleep_us(LOOK_US);
            let model = &mut self.model;
            for at in 0..model.live.len() {
                let id = model.live[at] as usize;
                let wait = model.threads[id].wait;
                if matches!(wait, Wait::Cond(_)) && model.is_shared(wait, &Target) {
                    model.threads[id].woken = Some((Wake::Spurious, super::NOBODY));
                }
                model.settle(wait, &Target);
            }
            if self.any_can_run(&Target) {
                return true;
            }
            let is_over = ns != NEVER && sys::monotonic_ns() - start >= ns;
            if is_over || RETURNING.load(Ordering::SeqCst) > 0 || !self.may_be_helped(&Target) {
                return false;
            }
        }
    }
}
