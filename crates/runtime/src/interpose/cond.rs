//! Condition variables: the queue of waiters is ours.
//!
//! Under control, libc's wait and signal are never called, so which waiter wakes is a scheduling
//! choice, and a wake-up that nobody waited for is remembered.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use libc::{c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use raddle_trace::control::SPURIOUS;
use raddle_trace::misuse::Operation;
use raddle_trace::record::{Kind, Lock, Wake};

use super::misuse::{self, ObjectOp};
use super::{clock, mutex};
use crate::export::{export, export_cancellable};
use crate::real::real;
use crate::sched::object::{NOBODY, Object};
use crate::sched::thread::{CondWait, NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{hook, shared};

export! {
    pthread_cond_init => init;
    pthread_cond_destroy => destroy;
}

export! { unsafe OTHER:
    pthread_cond_signal => signal;
    pthread_cond_broadcast => broadcast;
}

export_cancellable! { unsafe OTHER:
    pthread_cond_wait => wait, left by left_wait;
    pthread_cond_timedwait => timed_wait, left by left_wait;
    pthread_cond_clockwait => clock_wait, left by left_wait;
}

extern "C" fn init(cond: *mut pthread_cond_t, attr: *const pthread_condattr_t) -> c_int {
    let pc = hook::caller();
    let status = real!(pthread_cond_init @ c"GLIBC_2.3.2" (cond => *mut pthread_cond_t, attr => *const pthread_condattr_t) -> c_int);
    if hook::me().is_some() {
        SCHED.lock().objects.insert(cond as u64, Object::new(Lock::Cond));
    }
    hook::record(Kind::Init, Lock::Cond as u8, cond as u64, 0, pc, &[]);
    status
}

fn op(me: u32, cond: *mut pthread_cond_t, pc: u64, operation: Operation) -> ObjectOp {
    ObjectOp { me, pc, at: cond as u64, operation, object: Lock::Cond }
}

pub(super) extern "C" fn destroy(cond: *mut pthread_cond_t) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        // libc waits for the waiters to leave; a waiter that was never woken never does.
        if !op(me, cond, pc, Operation::Destroy).destroy(Wait::Unwaited(cond as u64)) {
            return 0;
        }
        SCHED.lock().objects.remove(&(cond as u64));
    }
    hook::record(Kind::Destroy, Lock::Cond as u8, cond as u64, 0, pc, &[]);
    if hook::me().is_some() {
        misuse::mark_destroyed(cond as u64, Lock::Cond);
        return 0;
    }
    real!(pthread_cond_destroy @ c"GLIBC_2.3.2" (cond => *mut pthread_cond_t) -> c_int)
}

pub(super) extern "C" fn wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        note_release(cond, mutex, pc);
        let status = real!(pthread_cond_wait @ c"GLIBC_2.3.2" (cond => *mut pthread_cond_t, mutex => *mut pthread_mutex_t) -> c_int);
        note_acquire(cond, mutex, pc, status);
        return status;
    };
    wait_until(me, cond, mutex, NEVER, pc)
}

/// The clock of the condition variable: glibc keeps it in a bit of the word at byte 36.
fn clock_of(cond: *mut pthread_cond_t) -> clockid_t {
    // SAFETY: within the condition variable that the program passes.
    if unsafe { *cond.cast::<u32>().add(9) } & 2 != 0 {
        libc::CLOCK_MONOTONIC
    } else {
        libc::CLOCK_REALTIME
    }
}

pub(super) extern "C" fn timed_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        note_release(cond, mutex, pc);
        let status = real!(pthread_cond_timedwait @ c"GLIBC_2.3.2" (cond => *mut pthread_cond_t, mutex => *mut pthread_mutex_t, time => *const timespec) -> c_int);
        note_acquire(cond, mutex, pc, status);
        return status;
    };
    if !clock::is_valid(time) {
        return libc::EINVAL;
    }
    op(me, cond, pc, Operation::Wait).foresee_memory();
    wait_until(me, cond, mutex, clock::deadline(clock_of(cond), time), pc)
}

pub(super) extern "C" fn clock_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        note_release(cond, mutex, pc);
        let status = real!(pthread_cond_clockwait(cond => *mut pthread_cond_t, mutex => *mut pthread_mutex_t, clock => clockid_t, time => *const timespec) -> c_int);
        note_acquire(cond, mutex, pc, status);
        return status;
    };
    if !clock::is_valid(time) || !clock::can_wait_by(clock) {
        return libc::EINVAL;
    }
    wait_until(me, cond, mutex, clock::deadline(clock, time), pc)
}

fn note_release(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, pc: u64) {
    hook::record(Kind::Release, Lock::Mutex as u8, mutex as u64, 0, pc, &[]);
    hook::record(Kind::CondWait, 0, cond as u64, 0, pc, &[mutex as u64]);
}

fn note_acquire(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, pc: u64, status: c_int) {
    let how = if status == libc::ETIMEDOUT { Wake::TimedOut } else { Wake::Woken };
    hook::record(Kind::CondWake, how as u8, cond as u64, 0, pc, &[]);
    hook::record(Kind::Acquire, Lock::Mutex as u8, mutex as u64, 0, pc, &[]);
}

/// What a personality routine is told: that the frame is being left.
const CLEANS_UP: c_int = 2;
/// What it answers: the unwinder goes on.
const GO_ON: c_int = 8;

/// A signal handler leaves a wait for good. As in libc, the mutex is acquired first, so that the
/// program's cleanup handlers find it as they expect.
pub(super) extern "C" fn left_wait(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    _context: *mut c_void,
) -> c_int {
    if let Some(me) = hook::me().filter(|_| actions & CLEANS_UP != 0) {
        let left = SCHED.lock().threads[me as usize].cond_waits.pop();
        if let Some(CondWait { cond, mutex, pc, .. }) = left.filter(|wait| wait.is_released) {
            hook::record(Kind::CondWake, Wake::Cancelled as u8, cond, NOBODY as u16, pc, &[]);
            acquire_again(mutex as *mut pthread_mutex_t, pc);
        }
    }
    GO_ON
}

/// Acquires the mutex that a wait has released.
fn acquire_again(mutex: *mut pthread_mutex_t, pc: u64) -> c_int {
    let status = mutex::lock_surely_until(mutex, NEVER, pc);
    if status == 0 || status == libc::EOWNERDEAD {
        mutex::end_use(mutex);
    }
    status
}

/// Waits, and keeps a note of it for [`left_wait`] meanwhile.
fn wait_until(
    me: u32,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: u64,
    pc: u64,
) -> c_int {
    let frame = (&raw const deadline) as u64;
    let note = CondWait { cond: cond as u64, mutex: mutex as u64, pc, frame, is_released: false };
    SCHED.lock().threads[me as usize].begin_cond_wait(note);
    let status = release_and_wait(me, cond, mutex, deadline, pc);
    SCHED.lock().threads[me as usize].cond_waits.pop();
    status
}

/// Releases the mutex, waits, and acquires the mutex again: three steps.
fn release_and_wait(
    me: u32,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: u64,
    pc: u64,
) -> c_int {
    let on = op(me, cond, pc, Operation::Wait);
    let with = mutex::op(me, mutex, pc, Operation::WaitWith);
    on.foresee_memory();
    with.foresee_memory();
    hook::sync(me, pc, Wait::Nothing, NEVER);
    on.check();
    with.check();
    let status = mutex::release(with, mutex);
    if status != 0 {
        return status;
    }
    mutex::keep_in_use(mutex);
    hook::record(Kind::CondWait, 0, cond as u64, 0, pc, &[mutex as u64]);
    let spurious = {
        let options = shared::control().plan.options.load(Ordering::Relaxed);
        let mut sched = SCHED.lock();
        sched.object(cond as u64, Lock::Cond);
        let thread = &mut sched.threads[me as usize];
        thread.woken = None;
        thread.note_released(true);
        options & SPURIOUS != 0 && sched.choose(8) == 0
    };
    let mut wake = if spurious {
        sched::yield_turn(me, pc);
        hook::sync(me, pc, Wait::Nothing, NEVER);
        Wake::Spurious
    } else {
        hook::sync(me, pc, Wait::Cond(cond as u64), deadline)
    };
    let woken = SCHED.lock().threads[me as usize].woken.take();
    if let Some((how, _)) = woken {
        wake = how;
    }
    let by = woken.map_or(NOBODY, |(_, by)| by) as u16;
    hook::record(Kind::CondWake, wake as u8, cond as u64, by, pc, &[]);
    let status = acquire_again(mutex, pc);
    SCHED.lock().threads[me as usize].note_released(false);
    match wake {
        Wake::TimedOut if status == 0 => libc::ETIMEDOUT,
        _ => status,
    }
}

pub(super) extern "C" fn signal(cond: *mut pthread_cond_t) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        hook::record(Kind::CondSignal, 0, cond as u64, 0, pc, &[]);
        return real!(pthread_cond_signal @ c"GLIBC_2.3.2" (cond => *mut pthread_cond_t) -> c_int);
    };
    let n = wake(op(me, cond, pc, Operation::Signal), 1);
    hook::record(Kind::CondSignal, n as u8, cond as u64, 0, pc, &[]);
    if has_peers(cond) {
        return real!(pthread_cond_signal @ c"GLIBC_2.3.2" (cond => *mut pthread_cond_t) -> c_int);
    }
    0
}

pub(super) extern "C" fn broadcast(cond: *mut pthread_cond_t) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        hook::record(Kind::CondBroadcast, 0, cond as u64, 0, pc, &[]);
        return real!(pthread_cond_broadcast @ c"GLIBC_2.3.2" (cond => *mut pthread_cond_t) -> c_int);
    };
    let n = wake(op(me, cond, pc, Operation::Broadcast), usize::MAX);
    hook::record(Kind::CondBroadcast, 0, cond as u64, n as u16, pc, &[]);
    if has_peers(cond) {
        return real!(pthread_cond_broadcast @ c"GLIBC_2.3.2" (cond => *mut pthread_cond_t) -> c_int);
    }
    0
}

/// Whether child processes may wait on it, in libc.
fn has_peers(cond: *mut pthread_cond_t) -> bool {
    // SAFETY: within the condition variable that the program passes.
    let is_shared = unsafe { *cond.cast::<u32>().add(9) } & 1 != 0;
    is_shared && SCHED.lock().n_processes > 0
}

/// Wakes up to `n` waiters, chosen by the schedule; returns how many threads were waiting.
fn wake(op: ObjectOp, n: usize) -> usize {
    op.begin(Wait::Nothing, NEVER);
    let ObjectOp { me, pc, at, .. } = op;
    let mut sched = SCHED.lock();
    let mut waiters = sched.waiters(|wait| wait == Wait::Cond(at));
    sched.object(at, Lock::Cond).missed_pc = if waiters.is_empty() { pc } else { 0 };
    let n = n.min(waiters.len());
    for _ in 0..n {
        let left = waiters.len();
        let taken = if n == left { 0 } else { sched.choose(left as u32) };
        let waiter = waiters.remove(taken as usize);
        sched.wake(waiter, Wake::Woken, me);
    }
    sched.poke(me);
    n
}
