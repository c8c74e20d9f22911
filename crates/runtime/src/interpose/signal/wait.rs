//! Waiting for signals.
//!
//! A thread that waits for a signal without a handler checks whenever the program has sent one,
//! and periodically if nobody else can run, since one may come from outside.

use libc::{c_int, siginfo_t, sigset_t, timespec};
use raddle_trace::record::Wake;

use super::super::{clock, fail, result};
use super::disposition::mask_changed;
use crate::export::export_cancellable;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::signals::bit;
use crate::{hook, sys};

export_cancellable! {
    pause => pause_inner;
    sigsuspend => suspend;
    sigwait => wait;
    sigwaitinfo => wait_info;
    sigtimedwait => timed_wait;
}

pub(in crate::interpose) extern "C" fn pause_inner() -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return result(sys::syscall!(libc::SYS_pause)) as c_int };
    hook::sync(me, pc, Wait::Signal, NEVER);
    fail(libc::EINTR)
}

extern "C" fn suspend(mask: *const sigset_t) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        return result(sys::syscall!(libc::SYS_rt_sigsuspend, mask, 8)) as c_int;
    };
    let mut before = 0u64;
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, mask, &raw mut before, 8);
    mark_interrupted(me);
    hook::sync(me, pc, Wait::Signal, NEVER);
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const before, 0, 8);
    mask_changed();
    fail(libc::EINTR)
}

/// A signal that was blocked until now may already be deferred.
fn mark_interrupted(me: u32) {
    if crate::tls::get(crate::tls::SIGNALS) != 0 {
        SCHED.lock().threads[me as usize].interrupted = true;
    }
}

/// Waits for a signal of the set: returns its number, or a negative error.
fn wait_for(set: *const sigset_t, info: *mut siginfo_t, time: *const timespec, pc: u64) -> i64 {
    let poll = |time: *const timespec| sys::syscall!(libc::SYS_rt_sigtimedwait, set, info, time, 8);
    let Some(me) = hook::me() else { return poll(time) };
    let deadline = if time.is_null() { NEVER } else { clock::after(clock::nanoseconds(time)) };
    let at_once = timespec { tv_sec: 0, tv_nsec: 0 };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    if sched::cancel_point(me) {
        return i64::from(-libc::EINTR);
    }
    // SAFETY: the program's set, which begins with the kernel's 64 bits.
    let is_child = !set.is_null() && unsafe { *set.cast::<u64>() } & bit(libc::SIGCHLD) != 0;
    loop {
        if is_child {
            sched::rest();
        }
        let n_seen = SCHED.lock().n_signals;
        let number = poll(&raw const at_once);
        if number == i64::from(libc::SIGCHLD) {
            SCHED.lock().ended_child = None;
        }
        if number > 0 {
            return number;
        }
        match hook::sync(me, pc, Wait::SignalOf(n_seen), deadline) {
            Wake::TimedOut => return i64::from(-libc::EAGAIN),
            Wake::Interrupted | Wake::Cancelled => return i64::from(-libc::EINTR),
            _ => {}
        }
    }
}

extern "C" fn wait(set: *const sigset_t, signal: *mut c_int) -> c_int {
    let pc = hook::caller();
    loop {
        let number = wait_for(set, core::ptr::null_mut(), core::ptr::null(), pc);
        if number > 0 {
            // SAFETY: where the program wants it.
            unsafe { *signal = number as c_int };
            return 0;
        }
        if number != i64::from(-libc::EINTR) || crate::tls::get(crate::tls::CANCEL) != 0 {
            return -number as c_int;
        }
    }
}

extern "C" fn wait_info(set: *const sigset_t, info: *mut siginfo_t) -> c_int {
    result(wait_for(set, info, core::ptr::null(), hook::caller())) as c_int
}

extern "C" fn timed_wait(
    set: *const sigset_t,
    info: *mut siginfo_t,
    time: *const timespec,
) -> c_int {
    result(wait_for(set, info, time, hook::caller())) as c_int
}
