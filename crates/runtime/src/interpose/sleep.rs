//! Sleeping and yielding: no real time passes under control.

use libc::{c_int, c_uint, clockid_t, timespec};
use raddle_trace::record::{Kind, Wake};

use super::clock;
use crate::export::export_cancellable;
use crate::real::real;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{hook, sys};

export_cancellable! {
    nanosleep => nanosleep_inner;
    clock_nanosleep => clock_nanosleep_inner;
    usleep => usleep_inner;
    sleep => sleep_inner;
    sched_yield => yield_inner;
    pthread_yield => yield_inner;
}

/// Sleeps until a point in virtual time; returns the remaining time if a signal came first.
pub(super) fn sleep_until(me: u32, pc: u64, deadline: u64) -> Result<(), u64> {
    let left = deadline.saturating_sub(SCHED.lock().now());
    hook::record(Kind::Sleep, 0, 0, 0, pc, &[left]);
    match hook::sync(me, pc, Wait::Sleep, deadline) {
        Wake::Interrupted => Err(deadline.saturating_sub(SCHED.lock().now())),
        _ => Ok(()),
    }
}

extern "C" fn nanosleep_inner(span: *const timespec, left: *mut timespec) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        return super::result(sys::syscall!(libc::SYS_nanosleep, span, left)) as c_int;
    };
    if !clock::is_duration(span) {
        return super::fail(libc::EINVAL);
    }
    match sleep_until(me, pc, clock::after(clock::nanoseconds(span))) {
        Ok(()) => 0,
        Err(ns) => {
            if !left.is_null() {
                // SAFETY: the program passes where to put what is left.
                unsafe { *left = clock::to_timespec(ns) };
            }
            super::fail(libc::EINTR)
        }
    }
}

/// Unlike the others, it returns its error.
pub(super) extern "C" fn clock_nanosleep_inner(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        return -sys::syscall!(libc::SYS_clock_nanosleep, clock, flags, time, left) as c_int;
    };
    match clock::sleep_error(clock) {
        0 if clock::is_duration(time) => {}
        0 => return libc::EINVAL,
        error => return error,
    }
    let absolute = flags & libc::TIMER_ABSTIME != 0;
    let deadline = if absolute {
        clock::deadline(clock, time)
    } else {
        clock::after(clock::nanoseconds(time))
    };
    match sleep_until(me, pc, deadline) {
        Ok(()) => 0,
        Err(ns) => {
            if !left.is_null() && !absolute {
                // SAFETY: the program passes where to put what is left.
                unsafe { *left = clock::to_timespec(ns) };
            }
            libc::EINTR
        }
    }
}

extern "C" fn usleep_inner(us: c_uint) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        sys::sleep_us(u64::from(us));
        return 0;
    };
    match sleep_until(me, pc, clock::after(u64::from(us) * 1000)) {
        Ok(()) => 0,
        Err(_) => super::fail(libc::EINTR),
    }
}

extern "C" fn sleep_inner(seconds: c_uint) -> c_uint {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        return real!(sleep(seconds => c_uint) -> c_uint);
    };
    match sleep_until(me, pc, clock::after(u64::from(seconds) * 1_000_000_000)) {
        Ok(()) => 0,
        Err(ns) => ns.div_ceil(1_000_000_000) as c_uint,
    }
}

pub(super) extern "C" fn yield_inner() -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        sched::visible(me, pc, Wait::Nothing, NEVER, true);
        hook::record(Kind::Yield, 0, 0, 0, pc, &[]);
        sched::yield_turn(me, pc);
    } else {
        sys::sched_yield();
    }
    0
}
