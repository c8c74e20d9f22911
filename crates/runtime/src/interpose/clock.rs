//! Clocks: virtual under control.
//!
//! A run starts at a fixed moment, so that what a program makes of the time of day is the
//! same each time.

use libc::{c_int, c_long, clockid_t, timespec, timeval};

use crate::abi::stub::export;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::thread::NEVER;
use crate::{hook, sys};

export! {
    clock_gettime => gettime;
    __clock_gettime => gettime;
    gettimeofday => timeofday;
    time => seconds;
    clock => cpu_clock;
    timespec_get => timespec_get_inner;
}

/// The time of day at which a run starts: 2023-11-14 22:13:20 UTC.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;
/// How long the machine is up when a run starts.
const BOOT_NS: u64 = 1_000_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// What a clock shows at the start of a run.
fn origin(clock: clockid_t) -> u64 {
    match clock {
        libc::CLOCK_REALTIME
        | libc::CLOCK_REALTIME_COARSE
        | libc::CLOCK_REALTIME_ALARM
        | libc::CLOCK_TAI => EPOCH_NS,
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => 0,
        _ => BOOT_NS,
    }
}

/// Virtual time of a point that a program gives on one of its clocks.
pub(super) fn deadline(clock: clockid_t, time: *const timespec) -> u64 {
    nanoseconds(time).saturating_sub(origin(clock)).min(NEVER - 1)
}

/// Virtual time after a span from now.
pub(super) fn after(ns: u64) -> u64 {
    SCHED.lock().now().saturating_add(ns).min(NEVER - 1)
}

/// A time span or point in nanoseconds; 0 if it is not valid.
pub(super) fn nanoseconds(time: *const timespec) -> u64 {
    // SAFETY: the program passes a valid time, by the contract of the interposed function.
    let time = unsafe { &*time };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(SECOND_NS).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Whether a time is well-formed, as libc checks it.
pub(super) fn is_valid(time: *const timespec) -> bool {
    // SAFETY: as above.
    let time = unsafe { &*time };
    (0..SECOND_NS as c_long).contains(&time.tv_nsec)
}

/// Whether a program may wait by this clock.
pub(super) fn can_wait_by(clock: clockid_t) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)
}

/// A span as a program wants it.
pub(super) fn to_timespec(ns: u64) -> timespec {
    timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 }
}

fn read(clock: clockid_t) -> u64 {
    origin(clock) + SCHED.lock().read_clock()
}

extern "C" fn gettime(clock: clockid_t, into: *mut timespec) -> c_int {
    if hook::me().is_none() {
        return super::result(sys::syscall!(libc::SYS_clock_gettime, clock, into)) as c_int;
    }
    if clock > libc::CLOCK_TAI {
        return super::fail(libc::EINVAL);
    }
    let time = to_timespec(read(clock));
    // SAFETY: the program passes where to put it.
    unsafe { *into = time };
    0
}

extern "C" fn timeofday(into: *mut timeval, zone: *mut core::ffi::c_void) -> c_int {
    if hook::me().is_none() {
        return real!(gettimeofday(into => *mut timeval, zone => *mut core::ffi::c_void) -> c_int);
    }
    let ns = read(libc::CLOCK_REALTIME);
    if !into.is_null() {
        // SAFETY: the program passes where to put it.
        unsafe {
            *into =
                timeval { tv_sec: (ns / SECOND_NS) as i64, tv_usec: (ns % SECOND_NS / 1000) as i64 }
        };
    }
    0
}

extern "C" fn seconds(into: *mut i64) -> i64 {
    if hook::me().is_none() {
        return real!(time(into => *mut i64) -> i64);
    }
    let seconds = (read(libc::CLOCK_REALTIME) / SECOND_NS) as i64;
    if !into.is_null() {
        // SAFETY: the program passes where to put it.
        unsafe { *into = seconds };
    }
    seconds
}

extern "C" fn cpu_clock() -> c_long {
    if hook::me().is_none() {
        return real!(clock() -> c_long);
    }
    (read(libc::CLOCK_PROCESS_CPUTIME_ID) / 1000) as c_long
}

extern "C" fn timespec_get_inner(into: *mut timespec, base: c_int) -> c_int {
    if hook::me().is_none() {
        return real!(timespec_get(into => *mut timespec, base => c_int) -> c_int);
    }
    if base != 1 {
        return 0;
    }
    gettime(libc::CLOCK_REALTIME, into);
    base
}
