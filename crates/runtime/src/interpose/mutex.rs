//! Mutexes of all types.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use raddle_trace::misuse::Operation;
use raddle_trace::record::{Kind, Lock, TRIED, Wake};

use super::clock;
use super::misuse::{self, ObjectOp};
use crate::export::{export, export_cancellable};
use crate::hook;
use crate::real::real;
use crate::sched::object::{NOBODY, Object};
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};

export! {
    pthread_mutex_init => init;
    pthread_mutex_destroy => destroy;
    pthread_mutex_unlock => unlock;
    __pthread_mutex_unlock => unlock;
}

export! { unsafe OTHER:
    pthread_mutex_trylock => try_lock;
}

// No cancellation points, but a thread with asynchronous cancellation can be cancelled here.
export_cancellable! { unsafe OTHER:
    pthread_mutex_lock => lock;
    __pthread_mutex_lock => lock;
    pthread_mutex_timedlock => timed_lock;
    pthread_mutex_clocklock => clock_lock;
}

const INFO: u8 = Lock::Mutex as u8;

/// glibc's type and flags of a mutex.
fn kind_of(mutex: *mut pthread_mutex_t) -> i32 {
    // SAFETY: glibc keeps it at byte 16 of a mutex, and the program passes one.
    unsafe { *mutex.cast::<i32>().add(4) }
}

/// glibc's lock word: 0 if the mutex is free.
fn word_of(mutex: *mut pthread_mutex_t) -> i32 {
    // SAFETY: glibc keeps it at the start of a mutex, and the program passes one.
    unsafe { *mutex.cast::<i32>() }
}

/// glibc's number of threads that use a mutex, at byte 12: its holder, and those that wait on a
/// condition variable with it. libc does not destroy a mutex with users.
fn n_users(mutex: *mut pthread_mutex_t) -> &'static AtomicU32 {
    // SAFETY: within the mutex that the program passes; libc changes it in the same way.
    unsafe { &*mutex.cast::<AtomicU32>().add(3) }
}

/// From now on a thread waits on a condition variable with this mutex, which it has just released.
pub(super) fn keep_in_use(mutex: *mut pthread_mutex_t) {
    n_users(mutex).fetch_add(1, Ordering::Relaxed);
}

/// The thread has acquired the mutex again.
pub(super) fn end_use(mutex: *mut pthread_mutex_t) {
    n_users(mutex).fetch_sub(1, Ordering::Relaxed);
}

const RECURSIVE: i32 = 1;
const ERRORCHECK: i32 = 2;
/// libc refuses every operation on it.
const DESTROYED: i32 = -1;

extern "C" fn init(mutex: *mut pthread_mutex_t, attr: *const pthread_mutexattr_t) -> c_int {
    let pc = hook::caller();
    let status = real!(pthread_mutex_init(mutex => *mut pthread_mutex_t, attr => *const pthread_mutexattr_t) -> c_int);
    if hook::me().is_some() {
        SCHED.lock().objects.insert(mutex as u64, Object::new(Lock::Mutex));
    }
    hook::record(Kind::Init, INFO, mutex as u64, 0, pc, &[]);
    status
}

pub(super) fn op(me: u32, mutex: *mut pthread_mutex_t, pc: u64, operation: Operation) -> ObjectOp {
    ObjectOp { me, pc, at: mutex as u64, operation, object: Lock::Mutex }
}

pub(super) extern "C" fn destroy(mutex: *mut pthread_mutex_t) -> c_int {
    let pc = hook::caller();
    let real_destroy = || real!(pthread_mutex_destroy(mutex => *mut pthread_mutex_t) -> c_int);
    if let Some(me) = hook::me() {
        if !op(me, mutex, pc, Operation::Destroy).destroy(Wait::Nothing) {
            // libc leaves a mutex alone that is held.
            let status = real_destroy();
            if status == 0 {
                SCHED.lock().objects.remove(&(mutex as u64));
            }
            return status;
        }
        hook::record(Kind::Destroy, INFO, mutex as u64, 0, pc, &[]);
        let mut sched = SCHED.lock();
        if sched.objects.get(&(mutex as u64)).is_none_or(|object| object.owner == NOBODY) {
            sched.objects.remove(&(mutex as u64));
        }
    } else {
        hook::record(Kind::Destroy, INFO, mutex as u64, 0, pc, &[]);
    }
    real_destroy()
}

pub(super) extern "C" fn lock(mutex: *mut pthread_mutex_t) -> c_int {
    lock_until(mutex, NEVER, hook::caller())
}

pub(super) extern "C" fn timed_lock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int {
    clock_lock(mutex, libc::CLOCK_REALTIME, time)
}

pub(super) extern "C" fn clock_lock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    let pc = hook::caller();
    if hook::me().is_none() {
        let status = real!(pthread_mutex_clocklock(mutex => *mut pthread_mutex_t, clock => clockid_t, time => *const timespec) -> c_int);
        note_free(status, mutex, pc, 0);
        return status;
    }
    if !clock::can_wait_by(clock) {
        return libc::EINVAL;
    }
    if clock::is_valid(time) {
        return lock_until(mutex, clock::deadline(clock, time), pc);
    }
    // libc looks at the time only when it has to wait.
    match lock_until(mutex, 0, pc) {
        libc::ETIMEDOUT => libc::EINVAL,
        status => status,
    }
}

/// In free mode: records a lock that libc acquired.
fn note_free(status: c_int, mutex: *mut pthread_mutex_t, pc: u64, info: u8) {
    if status == 0 || status == libc::EOWNERDEAD {
        hook::record(Kind::Acquire, INFO | info, mutex as u64, 0, pc, &[]);
    }
}

fn real_lock(mutex: *mut pthread_mutex_t) -> c_int {
    real!(pthread_mutex_lock(mutex => *mut pthread_mutex_t) -> c_int)
}

fn real_try_lock(mutex: *mut pthread_mutex_t) -> c_int {
    real!(pthread_mutex_trylock(mutex => *mut pthread_mutex_t) -> c_int)
}

/// Acquires a mutex, waiting until a point in virtual time, or until an asynchronous cancellation.
fn lock_until(mutex: *mut pthread_mutex_t, deadline: u64, pc: u64) -> c_int {
    if let Some(me) = hook::me() {
        SCHED.lock().threads[me as usize].leaves_lock = true;
    }
    let status = lock_surely_until(mutex, deadline, pc);
    if let Some(me) = hook::me() {
        SCHED.lock().threads[me as usize].leaves_lock = false;
    }
    status
}

/// The same without cancellation.
pub(super) fn lock_surely_until(mutex: *mut pthread_mutex_t, deadline: u64, pc: u64) -> c_int {
    let Some(me) = hook::me() else {
        if hook::free() {
            hook::free_delay();
        }
        let status = real_lock(mutex);
        note_free(status, mutex, pc, 0);
        return status;
    };
    let op = op(me, mutex, pc, Operation::Lock);
    op.approach();
    if owned(mutex, me) {
        match kind_of(mutex) & 3 {
            RECURSIVE => {
                hook::sync(me, pc, Wait::Nothing, NEVER);
                op.check();
                return acquire(me, mutex, pc, 0);
            }
            ERRORCHECK => {
                hook::sync(me, pc, Wait::Nothing, NEVER);
                return libc::EDEADLK;
            }
            // A thread that waits for itself is found at once, as a cycle.
            _ => op.relock(deadline),
        }
    }
    match hook::sync(me, pc, Wait::Lock(op.at), deadline) {
        Wake::TimedOut => return libc::ETIMEDOUT,
        // Asynchronous cancellation: the thread does not return from this call.
        Wake::Cancelled => return 0,
        Wake::Woken | Wake::Interrupted | Wake::Spurious | Wake::Mismatch => {}
    }
    op.check();
    acquire(me, mutex, pc, 0)
}

pub(super) extern "C" fn try_lock(mutex: *mut pthread_mutex_t) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        let status = real_try_lock(mutex);
        note_free(status, mutex, pc, TRIED);
        return status;
    };
    let op = op(me, mutex, pc, Operation::TryLock);
    op.attempt();
    let free = !owned_by_other(mutex, me);
    if !free && hook::spins(me, pc, mutex as u64, 1) {
        sched::yield_turn(me, pc);
    }
    if !free && owned_by_other(mutex, me) {
        return libc::EBUSY;
    }
    op.check_again();
    acquire(me, mutex, pc, TRIED)
}

/// Whether the thread already owns the mutex.
fn owned(mutex: *mut pthread_mutex_t, me: u32) -> bool {
    settle(mutex);
    SCHED.lock().objects.get(&(mutex as u64)).is_some_and(|object| object.owner == me)
}

fn owned_by_other(mutex: *mut pthread_mutex_t, me: u32) -> bool {
    settle(mutex);
    SCHED
        .lock()
        .objects
        .get(&(mutex as u64))
        .is_some_and(|object| object.owner != NOBODY && object.owner != me)
}

/// Resets the model if memory that held a locked mutex has become a new one without our noticing:
/// then libc's word says that it is free.
fn settle(mutex: *mut pthread_mutex_t) {
    let mut sched = SCHED.lock();
    let object = sched.objects.get_mut(&(mutex as u64));
    if let Some(object) = object.filter(|object| object.owner != NOBODY && word_of(mutex) == 0) {
        *object = Object::new(Lock::Mutex);
    }
}

/// Acquires a valid mutex that is free according to the model.
fn acquire(me: u32, mutex: *mut pthread_mutex_t, pc: u64, info: u8) -> c_int {
    // For a robust mutex whose owner died, glibc's trylock reports that and keeps the mutex; its
    // lock does not.
    let robust = kind_of(mutex) & ROBUST != 0 && info & TRIED == 0;
    let mut status = if robust { real_lock(mutex) } else { real_try_lock(mutex) };
    if status == libc::EBUSY {
        if info & TRIED != 0 {
            return status;
        }
        // Held outside our view: by another process, or by code from before the start.
        status = sched::outside(me, pc, || real_lock(mutex));
    }
    if status != 0 && status != libc::EOWNERDEAD {
        return status;
    }
    hook::works(me);
    let mut sched = SCHED.lock();
    let object = sched.object(mutex as u64, Lock::Mutex);
    object.depth += 1;
    object.owner = me;
    if object.depth == 1 {
        object.owner_pc = pc;
    }
    drop(sched);
    hook::record(Kind::Acquire, INFO | info, mutex as u64, 0, pc, &[]);
    status
}

pub(super) extern "C" fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        let op = op(me, mutex, pc, Operation::Unlock);
        op.begin(Wait::Nothing, NEVER);
        return release(op, mutex);
    }
    hook::record(Kind::Release, INFO, mutex as u64, 0, pc, &[]);
    real!(pthread_mutex_unlock(mutex => *mut pthread_mutex_t) -> c_int)
}

/// Releases a valid mutex, as a step that is already counted.
pub(super) fn release(op: ObjectOp, mutex: *mut pthread_mutex_t) -> c_int {
    let ObjectOp { me, pc, .. } = op;
    let is_held = misuse::check_owner(op);
    let may =
        kind_of(mutex) & 3 != ERRORCHECK && kind_of(mutex) & 3 != RECURSIVE || owned(mutex, me);
    if may && is_held && kind_of(mutex) != DESTROYED {
        hook::record(Kind::Release, INFO, mutex as u64, 0, pc, &[]);
    }
    let status = real!(pthread_mutex_unlock(mutex => *mut pthread_mutex_t) -> c_int);
    if status == 0 {
        let mut sched = SCHED.lock();
        let object = sched.object(mutex as u64, Lock::Mutex);
        object.depth = object.depth.saturating_sub(1);
        if object.depth == 0 {
            object.owner = NOBODY;
        }
        sched.poke(me);
    }
    status
}

/// Releases the robust mutexes of a thread that has ended, for the next owner.
pub(super) fn owner_died(thread: u32) {
    let mut sched = SCHED.lock();
    for (&at, object) in sched.objects.iter_mut() {
        if object.owner == thread
            && object.kind == Lock::Mutex
            && kind_of(at as *mut pthread_mutex_t) & ROBUST != 0
        {
            object.owner = NOBODY;
            object.depth = 0;
        }
    }
}

const ROBUST: i32 = 16;
