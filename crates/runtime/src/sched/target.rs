//! What the model reads of the target: memory, the kernel, and the plan.

use core::sync::atomic::{AtomicU32, Ordering};

use raddle_trace::id::Site;

use super::model::{Item, Step, World};
use crate::{inside, modules, proc, shared, sys};

/// Which child processes a thread waits for, as in `waitid`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which {
    pub(crate) kind: u32,
    pub(crate) id: u32,
    pub(crate) options: i32,
}

/// The target itself.
pub(super) struct Target;

impl World for Target {
    fn word(&self, at: u64) -> u32 {
        peek32(at)
    }

    fn any_ready(&self, at: u64, n: u32) -> bool {
        any_ready(at, n, 0)
    }

    fn is_inside(&self, at: u64, n: u32) -> bool {
        // SAFETY: a thread of ours waits with these on its stack and does not touch them.
        inside::is_inside(unsafe { core::slice::from_raw_parts(at as *const _, n as usize) })
    }

    fn has_child_changed(&self, at: u64) -> bool {
        // SAFETY: a thread of ours waits with this on its stack and does not touch it.
        let which = unsafe { &*(at as *const Which) };
        proc::child_changed(which.kind, which.id, which.options)
    }

    fn has_children(&self) -> bool {
        sys::has_children()
    }

    fn has_helpers(&self) -> bool {
        sys::has_children() || inside::has_asynchronous_io()
    }

    fn schedule_item(&self, index: u64) -> Option<Item> {
        let item = shared::follow(index)?;
        let thread = item.thread.load(Ordering::Relaxed);
        Some(match item.kind.load(Ordering::Relaxed) {
            CHOICE => Item::Choice(thread),
            _ => {
                let site = Site(item.site.load(Ordering::Relaxed));
                Item::Stretch(Step { thread, count: item.count.load(Ordering::Relaxed), site })
            }
        })
    }

    fn site(&self, pc: u64) -> Site {
        modules::site(pc)
    }
}

/// The kind of a [`raddle_trace::control::FollowStep`] that is no stretch.
const CHOICE: u32 = 1;

pub(super) fn peek32(at: u64) -> u32 {
    // SAFETY: the address of an object that the program passed to us as such; read as the
    // program's own threads would.
    unsafe { (*(at as *const AtomicU32)).load(Ordering::Relaxed) }
}

/// The value of a semaphore: glibc keeps it in the lower half of the first word.
pub(crate) fn semaphore_value(at: u64) -> u32 {
    peek32(at)
}

/// Whether one of these descriptors is ready, or gets so within so many milliseconds.
pub(super) fn any_ready(at: u64, n: u32, ms: i32) -> bool {
    // SAFETY: a thread of ours waits with these on its stack and does not touch them.
    let descriptors =
        unsafe { core::slice::from_raw_parts_mut(at as *mut libc::pollfd, n as usize) };
    sys::poll(descriptors, ms) > 0
}
