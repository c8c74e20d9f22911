//! Clocks: virtual under control.
//!
//! A run starts at a fixed time, so that whatever a program derives from the time of day is the
//! same in every run.

use libc::{c_int, c_long, clockid_t, timespec, timeval};

use crate::export::export;
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
/// How long the machine has been up when a run starts.
const BOOT_NS: u64 = 1_000_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// The value of a clock at the start of a run.
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

/// Converts an absolute time on one of the program's clocks to virtual time.
pub(super) fn deadline(clock: clockid_t, time: *const timespec) -> u64 {
    nanoseconds(time).saturating_sub(origin(clock)).min(NEVER - 1)
}

/// The virtual time `ns` nanoseconds from now.
pub(super) fn after(ns: u64) -> u64 {
    SCHED.lock().now().saturating_add(ns).min(NEVER - 1)
}

/// A duration or point in time in nanoseconds; 0 if it is invalid.
pub(super) fn nanoseconds(time: *const timespec) -> u64 {
    // SAFETY: the program passes a valid time, by the contract of the interposed function.
    let time = unsafe { &*time };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(SECOND_NS).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Whether a time is well-formed by libc's rules.
pub(super) fn is_valid(time: *const timespec) -> bool {
    // SAFETY: as above.
    let time = unsafe { &*time };
    (0..SECOND_NS as c_long).contains(&time.tv_nsec)
}

/// Whether a time is well-formed by the kernel's rules, which are stricter.
pub(super) fn is_duration(time: *const timespec) -> bool {
    // SAFETY: as above.
    is_valid(time) && unsafe { &*time }.tv_sec >= 0
}

/// Whether a time is well-formed by the kernel's rules.
pub(super) fn is_duration_us(time: &timeval) -> bool {
    time.tv_sec >= 0 && (0..1_000_000).contains(&time.tv_usec)
}

/// What libc and the kernel say about sleeping on this clock: 0 or an error.
pub(super) fn sleep_error(clock: clockid_t) -> c_int {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME => 0,
        libc::CLOCK_THREAD_CPUTIME_ID => libc::EINVAL,
        _ => {
            let nothing = timespec { tv_sec: 0, tv_nsec: 0 };
            -sys::syscall!(libc::SYS_clock_nanosleep, clock, 0, &raw const nothing, 0) as c_int
        }
    }
}

/// Whether a program may wait on this clock.
pub(super) fn can_wait_by(clock: clockid_t) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)
}

/// Converts nanoseconds for the program.
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
