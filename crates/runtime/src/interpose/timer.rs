//! Timers that send signals or start threads, in virtual time.

use libc::{c_int, c_uint, clockid_t, itimerspec, itimerval, sigevent, timer_t, timeval};

use super::{clock, fail, timer_thread};
use crate::export::export;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::thread::NEVER;
use crate::sched::timer::{Action, Timer};
use crate::{hook, sys};

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
/// The timers of processor time, of which we do not tell the program's from the kernel's.
const VIRTUAL: u64 = 2;
const PROFILING: u64 = 4;
/// Our handles of timers: odd, unlike any pointer of libc's.
static CREATED: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);

/// The remaining time of a timer, and its interval.
pub(super) fn left(timer: Option<Timer>) -> (u64, u64) {
    match timer {
        Some(Timer { deadline, interval, by_steps, .. }) if deadline != NEVER => {
            let sched = SCHED.lock();
            let now = if by_steps { sched.stepped() } else { sched.now() };
            (deadline.saturating_sub(now).max(1), interval)
        }
        _ => (0, 0),
    }
}

fn start(id: u64, first: u64, interval: u64, signal: c_int) -> Option<Timer> {
    let mut sched = SCHED.lock();
    let by_steps = id != REAL;
    let now = if by_steps { sched.stepped() } else { sched.now() };
    let deadline = if first == 0 { NEVER } else { now.saturating_add(first).min(NEVER - 1) };
    let timer = Timer::new(id, libc::CLOCK_REALTIME, Action::Signal(signal));
    let before = sched.timers.set(Timer { deadline, interval, by_steps, ..timer });
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

/// Our timer for one of the process's three, and its signal.
fn of_process(which: c_int) -> Option<(u64, c_int)> {
    match which {
        libc::ITIMER_REAL => Some((REAL, libc::SIGALRM)),
        libc::ITIMER_VIRTUAL => Some((VIRTUAL, libc::SIGVTALRM)),
        libc::ITIMER_PROF => Some((PROFILING, libc::SIGPROF)),
        _ => None,
    }
}

extern "C" fn set_interval(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int {
    let known = of_process(which).filter(|_| hook::me().is_some());
    let Some((id, signal)) = known else {
        return real!(setitimer(which => c_int, new => *const itimerval, old => *mut itimerval) -> c_int);
    };
    // SAFETY: the program's description.
    let new = unsafe { &*new };
    if !clock::is_duration_us(&new.it_value) || !clock::is_duration_us(&new.it_interval) {
        return fail(libc::EINVAL);
    }
    let before = start(id, from_timeval(new.it_value), from_timeval(new.it_interval), signal);
    put_interval(left(before), old);
    0
}

extern "C" fn get_interval(which: c_int, into: *mut itimerval) -> c_int {
    let known = of_process(which).filter(|_| hook::me().is_some());
    let Some((id, _)) = known else {
        return real!(getitimer(which => c_int, into => *mut itimerval) -> c_int);
    };
    let timer = SCHED.lock().timers.get(id);
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
    let pc = hook::caller();
    // SAFETY: the program's description, if it gives one.
    let event_given = (!event.is_null()).then(|| unsafe { &*event });
    let kind = event_given.map_or(libc::SIGEV_SIGNAL, |event| event.sigev_notify);
    let Some(me) = hook::me() else {
        return real!(timer_create(clock => clockid_t, event => *mut sigevent, into => *mut timer_t) -> c_int);
    };
    // The kernel knows nothing of threads.
    let asked = if kind == libc::SIGEV_THREAD { core::ptr::null_mut() } else { event };
    let error = create_error(clock, asked);
    if error != 0 {
        return fail(error);
    }
    let action = match (kind, event_given) {
        (libc::SIGEV_NONE, _) => Action::Nothing,
        (libc::SIGEV_THREAD, _) => Action::Thread,
        (_, Some(event)) => Action::Signal(event.sigev_signo),
        (_, None) => Action::Signal(libc::SIGALRM),
    };
    let id = CREATED.fetch_add(2, core::sync::atomic::Ordering::Relaxed);
    if action == Action::Thread {
        let error = timer_thread::add(me, id, event, pc);
        if error != 0 {
            return fail(error);
        }
    }
    SCHED.lock().timers.set(Timer::new(id, clock, action));
    // SAFETY: where the program wants it.
    unsafe { *into = id as timer_t };
    0
}

/// What the kernel says about such a timer: 0 or an error.
fn create_error(clock: clockid_t, event: *mut sigevent) -> c_int {
    let mut id: c_int = 0;
    let status = sys::syscall!(libc::SYS_timer_create, clock, event, &raw mut id);
    if status == 0 {
        sys::syscall!(libc::SYS_timer_delete, id);
    }
    -status as c_int
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
    if !is_valid(new) {
        return fail(libc::EINVAL);
    }
    if known.action == Action::Thread {
        timer_thread::note_set(known.id, hook::caller());
    }
    let before = left(Some(known));
    set_to(known, flags & libc::TIMER_ABSTIME != 0, new);
    put(before, old);
    0
}

/// Whether the kernel would take both times.
pub(super) fn is_valid(new: &itimerspec) -> bool {
    clock::is_duration(&raw const new.it_value) && clock::is_duration(&raw const new.it_interval)
}

/// Sets a timer to valid times.
pub(super) fn set_to(known: Timer, absolute: bool, new: &itimerspec) {
    let (value, interval) = (
        clock::nanoseconds(&raw const new.it_value),
        clock::nanoseconds(&raw const new.it_interval),
    );
    let deadline = match value {
        0 => NEVER,
        _ if absolute => clock::deadline(known.clock, &raw const new.it_value),
        _ => clock::after(value),
    };
    let mut sched = SCHED.lock();
    // A thread that is due is started all the same.
    let unread = if known.action == Action::Thread { known.unread } else { 0 };
    sched.timers.set(Timer { deadline, interval, unread, ..known });
    sched.heed_timers();
}

pub(super) fn put((first, interval): (u64, u64), into: *mut itimerspec) {
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
        SCHED.lock().remove_timer(timer as u64);
        timer_thread::remove(timer as u64);
        return 0;
    }
    if hook::me().is_some() && timer as u64 & 1 == 1 {
        return fail(libc::EINVAL);
    }
    real!(timer_delete(timer => timer_t) -> c_int)
}

extern "C" fn overrun(timer: timer_t) -> c_int {
    match ours(timer) {
        Some(known) => known.overrun.min(i32::MAX as u64) as c_int,
        None => real!(timer_getoverrun(timer => timer_t) -> c_int),
    }
}
