//! Timers: those that send signals run in virtual time. Those that start threads are
//! libc's, and run beside us in real time.

use libc::{c_int, c_uint, clockid_t, itimerspec, itimerval, sigevent, timer_t, timeval};

use super::{clock, fail};
use crate::abi::stub::export;
use crate::hook;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::thread::NEVER;
use crate::sched::timer::Timer;

export! {
    alarm => alarm_inner;
    setitimer => set_interval;
    getitimer => get_interval;
    timer_create => create;
    timer_settime => set;
    timer_gettime => get;
    timer_delete => delete;
    timer_getoverrun => overrun;
}

const SECOND_NS: u64 = 1_000_000_000;
/// `alarm` and `setitimer` share one timer.
const REAL: u64 = 0;
/// Our handles of timers: odd, which no pointer of libc's is.
static CREATED: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);

/// What is left of a timer, and its interval.
fn left(timer: Option<Timer>) -> (u64, u64) {
    match timer {
        Some(Timer { deadline, interval, .. }) if deadline != NEVER => {
            (deadline.saturating_sub(SCHED.lock().now()).max(1), interval)
        }
        _ => (0, 0),
    }
}

fn start(id: u64, first: u64, interval: u64, signal: c_int) -> Option<Timer> {
    let deadline = if first == 0 { NEVER } else { clock::after(first) };
    let mut sched = SCHED.lock();
    let before = sched.timers.set(Timer { id, deadline, interval, signal });
    sched.heed_timers();
    before
}

extern "C" fn alarm_inner(seconds: c_uint) -> c_uint {
    if hook::me().is_none() {
        return real!(alarm(seconds => c_uint) -> c_uint);
    }
    let before = start(REAL, u64::from(seconds) * SECOND_NS, 0, libc::SIGALRM);
    left(before).0.div_ceil(SECOND_NS) as c_uint
}

fn to_timeval(ns: u64) -> timeval {
    timeval { tv_sec: (ns / SECOND_NS) as i64, tv_usec: (ns % SECOND_NS / 1000) as i64 }
}

fn from_timeval(time: timeval) -> u64 {
    time.tv_sec as u64 * SECOND_NS + time.tv_usec as u64 * 1000
}

extern "C" fn set_interval(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int {
    if hook::me().is_none() || which != libc::ITIMER_REAL {
        return real!(setitimer(which => c_int, new => *const itimerval, old => *mut itimerval) -> c_int);
    }
    // SAFETY: the program's description.
    let new = unsafe { &*new };
    let before =
        start(REAL, from_timeval(new.it_value), from_timeval(new.it_interval), libc::SIGALRM);
    put_interval(left(before), old);
    0
}

extern "C" fn get_interval(which: c_int, into: *mut itimerval) -> c_int {
    if hook::me().is_none() || which != libc::ITIMER_REAL {
        return real!(getitimer(which => c_int, into => *mut itimerval) -> c_int);
    }
    let timer = SCHED.lock().timers.get(REAL);
    put_interval(left(timer), into);
    0
}

fn put_interval((first, interval): (u64, u64), into: *mut itimerval) {
    if !into.is_null() {
        // SAFETY: where the program wants it.
        unsafe {
            *into = itimerval { it_value: to_timeval(first), it_interval: to_timeval(interval) }
        };
    }
}

extern "C" fn create(clock: clockid_t, event: *mut sigevent, into: *mut timer_t) -> c_int {
    // SAFETY: the program's description, if it gives one.
    let event_given = (!event.is_null()).then(|| unsafe { &*event });
    let kind = event_given.map_or(libc::SIGEV_SIGNAL, |event| event.sigev_notify);
    if hook::me().is_none() || kind == libc::SIGEV_THREAD {
        if hook::me().is_some() {
            SCHED.lock().n_sources += 1;
        }
        return real!(timer_create(clock => clockid_t, event => *mut sigevent, into => *mut timer_t) -> c_int);
    }
    let signal = match (kind, event_given) {
        (libc::SIGEV_NONE, _) => 0,
        (_, Some(event)) => event.sigev_signo,
        (_, None) => libc::SIGALRM,
    };
    let id = CREATED.fetch_add(2, core::sync::atomic::Ordering::Relaxed);
    SCHED.lock().timers.set(Timer { id, deadline: NEVER, interval: 0, signal });
    // SAFETY: where the program wants it.
    unsafe { *into = id as timer_t };
    0
}

fn ours(timer: timer_t) -> Option<Timer> {
    if hook::me().is_none() || timer as u64 & 1 == 0 {
        return None;
    }
    SCHED.lock().timers.get(timer as u64)
}

extern "C" fn set(
    timer: timer_t,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    let Some(known) = ours(timer) else {
        return real!(timer_settime(timer => timer_t, flags => c_int, new => *const itimerspec, old => *mut itimerspec) -> c_int);
    };
    // SAFETY: the program's description.
    let new = unsafe { &*new };
    let (value, interval) = (
        clock::nanoseconds(&raw const new.it_value),
        clock::nanoseconds(&raw const new.it_interval),
    );
    let before = left(Some(known));
    let deadline = match value {
        0 => NEVER,
        _ if flags & libc::TIMER_ABSTIME != 0 => {
            clock::deadline(libc::CLOCK_MONOTONIC, &raw const new.it_value)
        }
        _ => clock::after(value),
    };
    let mut sched = SCHED.lock();
    sched.timers.set(Timer { deadline, interval, ..known });
    sched.heed_timers();
    drop(sched);
    put(before, old);
    0
}

fn put((first, interval): (u64, u64), into: *mut itimerspec) {
    if !into.is_null() {
        // SAFETY: where the program wants it.
        unsafe {
            *into = itimerspec {
                it_value: clock::to_timespec(first),
                it_interval: clock::to_timespec(interval),
            }
        };
    }
}

extern "C" fn get(timer: timer_t, into: *mut itimerspec) -> c_int {
    let Some(known) = ours(timer) else {
        return real!(timer_gettime(timer => timer_t, into => *mut itimerspec) -> c_int);
    };
    put(left(Some(known)), into);
    0
}

extern "C" fn delete(timer: timer_t) -> c_int {
    if ours(timer).is_some() {
        SCHED.lock().timers.remove(timer as u64);
        return 0;
    }
    if hook::me().is_some() && timer as u64 & 1 == 1 {
        return fail(libc::EINVAL);
    }
    real!(timer_delete(timer => timer_t) -> c_int)
}

extern "C" fn overrun(timer: timer_t) -> c_int {
    if ours(timer).is_some() { 0 } else { real!(timer_getoverrun(timer => timer_t) -> c_int) }
}
