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

use super::model::is_shared;
use super::target::Target;
use super::thread::{NEVER, Wait};
use super::{RETURNING, Sched};
use crate::sys;

/// How often we look.
const LOOK_US: u64 = 500;

impl Sched {
    /// Waits in real time until a child has acted, for at most so long. A condition variable may
    /// have been signaled at any time.
    pub(super) fn wait_for_help(&mut self, ns: u64) -> bool {
        let start = sys::monotonic_ns();
        loop {
            sys::sleep_us(LOOK_US);
            let model = &mut self.model;
            for &id in &model.live {
                let thread = &mut model.threads[id as usize];
                if matches!(thread.wait, Wait::Cond(_)) && is_shared(thread.wait, &Target) {
                    thread.woken = Some((Wake::Spurious, super::NOBODY));
                }
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
