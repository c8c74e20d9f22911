//! SIGCHLD, at a time that does not depend on the kernel.
//!
//! The kernel sends it when a child ends. We withhold that, and send our own when the scheduler
//! notices the end: while all children are at rest ([`crate::sched::rest`]). Children that end until
//! then share one signal, as in POSIX.
//!
//! Limits: a child that stops or continues is told when it happens.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::siginfo_t;

use crate::proc;

/// Children whose signals are withheld; 0 for none. Others, if there are more, are told when they
/// end.
static KNOWN: [AtomicU32; 256] = [const { AtomicU32::new(0) }; 256];
/// Children that are being started, whose ids are not known yet.
static N_STARTING: AtomicU32 = AtomicU32::new(0);

/// A child is about to be started.
pub(in crate::interpose) fn begin_start() {
    N_STARTING.fetch_add(1, Ordering::SeqCst);
}

/// It was started.
pub(in crate::interpose) fn started(id: u32) {
    let is_free = |slot: &&AtomicU32| match slot.load(Ordering::Relaxed) {
        0 => true,
        old => !proc::is_child(old),
    };
    if let Some(slot) = KNOWN.iter().find(is_free) {
        slot.store(id, Ordering::SeqCst);
    }
}

/// It was started, or could not be.
pub(in crate::interpose) fn end_start() {
    N_STARTING.fetch_sub(1, Ordering::SeqCst);
}

/// Whether a child is being started by a function that says so.
pub(in crate::interpose) fn is_starting() -> bool {
    N_STARTING.load(Ordering::SeqCst) > 0
}

/// Whether the kernel's signal is withheld.
pub(super) fn is_withheld(info: *const siginfo_t) -> bool {
    // SAFETY: the kernel passes a description.
    let info = unsafe { &*info };
    let has_ended = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED].contains(&info.si_code);
    // SAFETY: the description of a child that has ended has its id.
    let id = unsafe { info.si_pid() } as u32;
    let is_known = || KNOWN.iter().any(|known| known.load(Ordering::SeqCst) == id);
    has_ended && (is_known() || is_starting())
}
