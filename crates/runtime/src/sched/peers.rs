//! Other processes that act on what a thread waits for: a child that ends, writes to a pipe, or posts
//! or unlocks an object in shared memory.
//!
//! Objects that are shared between processes are modeled like others as long as we have no
//! children. From then on a child may act on them, and we see neither when nor what. Their values are
//! read again when all children are at rest (`sched::model::children`).
//!
//! Limits: processes that are not our children are not known. A mutex that a child holds is
//! waited for in the kernel.

use core::sync::atomic::Ordering;

use raddle_trace::control::Outside;

use super::model::{Rest, World as _};
use super::target::Target;
use super::thread::{NEVER, Wait};
use super::{RETURNING, SCHED, Sched};
use crate::{proc, shared, signals, sys};

/// How often we look.
const LOOK_US: u64 = 500;

/// Waits until all child processes are at rest, before the running thread looks at something that
/// they may have changed.
pub(crate) fn rest() {
    let mut sched = SCHED.lock();
    if sched.n_processes > 0 {
        sched.come_to_rest();
    }
}

/// The same for a thread that does not wait: what it sees depends on the clock if a child does.
pub(crate) fn observe() {
    let mut sched = SCHED.lock();
    if sched.n_processes > 0 && sched.come_to_rest() == Rest::Sleeps {
        sched.blame_child();
    }
}

impl Sched {
    /// Follows what a child process has done to a lock that a thread is about to acquire.
    pub(crate) fn settle_shared(&mut self, wait: Wait) {
        self.model.settle(wait, &Target);
    }

    /// Whether a child process may act on what is waited for.
    pub(crate) fn may_be_shared(&self, wait: Wait) -> bool {
        self.n_processes > 0 && self.model.is_shared(wait, &Target)
    }

    /// Waits in real time until all children are at rest, for as long as is reasonable. Those that
    /// have ended are signaled.
    pub(super) fn come_to_rest(&mut self) -> Rest {
        let rest = self.kin.rest();
        if rest == Rest::Busy {
            self.blame_child();
        }
        self.tell_ended();
        rest
    }

    /// The program has started a child.
    pub(crate) fn add_child(&mut self, id: u32, by: Outside, pc: u64) {
        self.n_processes += 1;
        self.kin.add(id, by, pc);
        let control = shared::control();
        if control.child.load(Ordering::Relaxed) == 0 {
            control.child_pc.store(pc, Ordering::Relaxed);
            control.child.store(by as u32, Ordering::Relaxed);
        }
    }

    /// Sends SIGCHLD for children that have ended: to the first thread that does not block it. If
    /// all do, it waits for one of them, as in the kernel.
    fn tell_ended(&mut self) {
        if let Some(child) = self.kin.take_ended() {
            self.ended_child = Some(child);
            self.n_signals += 1;
        }
        let Some(child) = self.ended_child else { return };
        let is_handled = signals::is_handled(libc::SIGCHLD);
        let receiver = self.receiver(libc::SIGCHLD).filter(|_| is_handled);
        if receiver.is_some() {
            self.interrupt(receiver, &proc::child_info(child));
        }
        if receiver.is_some() || !is_handled {
            self.ended_child = None;
        }
    }

    /// The run depends on when a child does something.
    fn blame_child(&self) {
        let (by, pc) = self.kin.first().unwrap_or((Outside::Input, 0));
        shared::blame(by, pc);
    }

    /// Waits in real time until something has come that a thread waits for, for at most so long.
    /// Virtual time passes meanwhile if it `decides`.
    pub(super) fn wait_for_peers(&mut self, ns: u64, decides: bool) -> bool {
        if decides && self.follow.is_none() {
            self.blame_child();
        }
        let had_children = Target.has_children();
        let start = sys::monotonic_ns();
        let mut is_first = true;
        loop {
            // A child that never rests has always run, so first it gets a moment.
            let has_run = !core::mem::replace(&mut is_first, false) && self.kin.run();
            let has_come = has_run || self.has_come() || had_children && !Target.has_children();
            let elapsed = sys::monotonic_ns() - start;
            if has_come && decides {
                self.jump(elapsed.min(ns));
            }
            if has_come {
                return true;
            }
            if RETURNING.load(Ordering::SeqCst) > 0 || ns != NEVER && elapsed >= ns {
                return false;
            }
            sys::sleep_us(LOOK_US);
        }
    }

    /// Whether something has come that a thread waits for.
    fn has_come(&mut self) -> bool {
        for at in 0..self.live.len() {
            let id = self.live[at];
            let wait = self.threads[id as usize].wait;
            self.model.settle(wait, &Target);
            let is_there = match wait {
                Wait::Descriptors(..) => self.model.can_run(id, &Target),
                wait => self.model.has_come(id, wait, &Target),
            };
            if is_there {
                return true;
            }
        }
        self.notice_signals()
    }
}
