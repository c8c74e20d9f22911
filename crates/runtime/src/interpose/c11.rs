//! C11 threads: in glibc the same objects as POSIX threads, with different result codes.

use core::ffi::c_void;

use libc::{c_int, pthread_cond_t, pthread_mutex_t, pthread_t, timespec};

use super::{cond, mutex, sleep, thread};
use crate::export::{export, export_cancellable};
use crate::hook;
use crate::sched::thread::NEVER;

export! {
    thrd_detach => detach;
    thrd_yield => thread_yield;
    mtx_destroy => mutex::destroy;
    mtx_unlock => unlock;
    cnd_destroy => cond::destroy;
}

export! { unsafe OTHER:
    thrd_create => create;
    mtx_trylock => try_lock;
    cnd_signal => signal;
    cnd_broadcast => broadcast;
}

export_cancellable! {
    thrd_sleep => thread_sleep;
}

export_cancellable! { unsafe OTHER:
    thrd_join => join;
    cnd_wait => wait, left by cond::left_wait;
    cnd_timedwait => timed_wait, left by cond::left_wait;
    mtx_lock => lock;
    mtx_timedlock => timed_lock;
}

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

fn code(status: c_int) -> c_int {
    match status {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

extern "C" fn create(new: *mut pthread_t, routine: usize, arg: usize) -> c_int {
    code(thread::create(new, core::ptr::null(), routine, arg, hook::caller()))
}

extern "C" fn detach(thread: pthread_t) -> c_int {
    code(thread::detach(thread))
}

extern "C" fn join(other: pthread_t, result: *mut c_int) -> c_int {
    let mut value: *mut c_void = core::ptr::null_mut();
    let status = thread::join_until(other, &raw mut value, NEVER, hook::caller());
    if status == 0 && !result.is_null() {
        // SAFETY: the program passes where to put it.
        unsafe { *result = value as usize as c_int };
    }
    code(status)
}

extern "C" fn thread_yield() {
    sleep::yield_inner();
}

extern "C" fn thread_sleep(span: *const timespec, left: *mut timespec) -> c_int {
    match sleep::clock_nanosleep_inner(libc::CLOCK_REALTIME, 0, span, left) {
        0 => 0,
        libc::EINTR => -1,
        _ => -2,
    }
}

extern "C" fn lock(mutex: *mut pthread_mutex_t) -> c_int {
    code(mutex::lock(mutex))
}

extern "C" fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    code(mutex::unlock(mutex))
}

extern "C" fn try_lock(mutex: *mut pthread_mutex_t) -> c_int {
    code(mutex::try_lock(mutex))
}

extern "C" fn timed_lock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int {
    code(mutex::timed_lock(mutex, time))
}

extern "C" fn timed_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    code(cond::timed_wait(cond, mutex, time))
}

extern "C" fn wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    code(cond::wait(cond, mutex))
}

extern "C" fn signal(cond: *mut pthread_cond_t) -> c_int {
    code(cond::signal(cond))
}

extern "C" fn broadcast(cond: *mut pthread_cond_t) -> c_int {
    code(cond::broadcast(cond))
}
