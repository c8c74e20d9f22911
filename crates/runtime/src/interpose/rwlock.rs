//! Reader-writer locks.

use libc::{c_int, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};
use raddle_trace::misuse::Operation;
use raddle_trace::record::{Kind, Lock, SHARED, TRIED, Wake};

use super::clock;
use super::misuse::{self, ObjectOp};
use crate::export::export;
use crate::hook;
use crate::real::real;
use crate::sched::object::{NOBODY, Object};
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};

export! {
    pthread_rwlock_init => init;
    pthread_rwlock_destroy => destroy;
    pthread_rwlock_unlock => unlock;
}

export! { unsafe OTHER:
    pthread_rwlock_rdlock => read_lock;
    pthread_rwlock_tryrdlock => try_read_lock;
    pthread_rwlock_timedrdlock => timed_read_lock;
    pthread_rwlock_clockrdlock => clock_read_lock;
    pthread_rwlock_wrlock => write_lock;
    pthread_rwlock_trywrlock => try_write_lock;
    pthread_rwlock_timedwrlock => timed_write_lock;
    pthread_rwlock_clockwrlock => clock_write_lock;
}

const INFO: u8 = Lock::RwLock as u8;

extern "C" fn init(lock: *mut pthread_rwlock_t, attr: *const pthread_rwlockattr_t) -> c_int {
    let pc = hook::caller();
    let status = real!(pthread_rwlock_init(lock => *mut pthread_rwlock_t, attr => *const pthread_rwlockattr_t) -> c_int);
    if hook::me().is_some() {
        SCHED.lock().objects.insert(lock as u64, Object::new(Lock::RwLock));
    }
    hook::record(Kind::Init, INFO, lock as u64, 0, pc, &[]);
    status
}

extern "C" fn destroy(lock: *mut pthread_rwlock_t) -> c_int {
    let pc = hook::caller();
    let me = hook::me();
    if let Some(me) = me {
        if !op(me, lock, pc, Operation::Destroy).destroy(Wait::Nothing) {
            // It goes on as it is: libc's function does nothing.
            return 0;
        }
        SCHED.lock().objects.remove(&(lock as u64));
    }
    hook::record(Kind::Destroy, INFO, lock as u64, 0, pc, &[]);
    let status = real!(pthread_rwlock_destroy(lock => *mut pthread_rwlock_t) -> c_int);
    if me.is_some() {
        misuse::mark_destroyed(lock as u64, Lock::RwLock);
    }
    status
}

fn op(me: u32, lock: *mut pthread_rwlock_t, pc: u64, operation: Operation) -> ObjectOp {
    ObjectOp { me, pc, at: lock as u64, operation, object: Lock::RwLock }
}

fn real_try(lock: *mut pthread_rwlock_t, shared: bool) -> c_int {
    if shared {
        real!(pthread_rwlock_tryrdlock(lock => *mut pthread_rwlock_t) -> c_int)
    } else {
        real!(pthread_rwlock_trywrlock(lock => *mut pthread_rwlock_t) -> c_int)
    }
}

fn real_wait(lock: *mut pthread_rwlock_t, shared: bool) -> c_int {
    if shared {
        real!(pthread_rwlock_rdlock(lock => *mut pthread_rwlock_t) -> c_int)
    } else {
        real!(pthread_rwlock_wrlock(lock => *mut pthread_rwlock_t) -> c_int)
    }
}

fn info(shared: bool, tried: bool) -> u8 {
    INFO | if shared { SHARED } else { 0 } | if tried { TRIED } else { 0 }
}

fn lock_until(lock: *mut pthread_rwlock_t, shared: bool, deadline: u64, pc: u64) -> c_int {
    let Some(me) = hook::me() else {
        let status = real_wait(lock, shared);
        if status == 0 {
            hook::record(Kind::Acquire, info(shared, false), lock as u64, 0, pc, &[]);
        }
        return status;
    };
    let operation = if shared { Operation::ReadLock } else { Operation::Lock };
    let op = op(me, lock, pc, operation);
    op.approach();
    let wait = if shared { Wait::ReadLock(op.at) } else { Wait::WriteLock(op.at) };
    SCHED.lock().settle_shared(wait);
    if note_preference(lock) == me {
        hook::sync(me, pc, Wait::Nothing, NEVER);
        return libc::EDEADLK;
    }
    if !shared && reads(lock, me) {
        op.relock(deadline);
    }
    if hook::sync(me, pc, wait, deadline) == Wake::TimedOut {
        return libc::ETIMEDOUT;
    }
    op.check();
    acquire(me, lock, shared, false, pc)
}

/// Reads from the word at byte 48, as glibc defines it, whether readers wait for waiting writers.
/// Returns who holds the lock exclusively.
fn note_preference(lock: *mut pthread_rwlock_t) -> u32 {
    const WRITERS_FIRST: u32 = 2;
    // SAFETY: within the lock that the program passes.
    let preference = unsafe { *lock.cast::<u32>().add(12) };
    let mut sched = SCHED.lock();
    let object = sched.object(lock as u64, Lock::RwLock);
    object.writers_first = preference == WRITERS_FIRST;
    object.owner
}

/// Whether readers have to let a waiting writer go first, who waits in our model only.
fn is_wanted_by_writer(lock: *mut pthread_rwlock_t) -> bool {
    let mut sched = SCHED.lock();
    let is_waited_for = !sched.waiters(|wait| wait == Wait::WriteLock(lock as u64)).is_empty();
    sched.object(lock as u64, Lock::RwLock).writers_first && is_waited_for
}

/// Whether the thread holds the lock for reading.
fn reads(lock: *mut pthread_rwlock_t, me: u32) -> bool {
    let sched = SCHED.lock();
    let object = sched.objects.get(&(lock as u64));
    object.is_some_and(|object| object.readers.iter().any(|&(reader, _)| reader == me))
}

/// Acquires a valid lock.
fn acquire(me: u32, lock: *mut pthread_rwlock_t, shared: bool, tried: bool, pc: u64) -> c_int {
    let mut status = real_try(lock, shared);
    if status == libc::EBUSY {
        if tried {
            return status;
        }
        status = sched::outside(me, pc, || real_wait(lock, shared));
    }
    if status != 0 {
        return status;
    }
    hook::works(me);
    let mut sched = SCHED.lock();
    let object = sched.object(lock as u64, Lock::RwLock);
    if shared {
        object.readers.push((me, pc));
    } else {
        object.owner = me;
        object.owner_pc = pc;
    }
    drop(sched);
    hook::record(Kind::Acquire, info(shared, tried), lock as u64, 0, pc, &[]);
    0
}

fn try_lock(lock: *mut pthread_rwlock_t, shared: bool) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        let status = real_try(lock, shared);
        if status == 0 {
            hook::record(Kind::Acquire, info(shared, true), lock as u64, 0, pc, &[]);
        }
        return status;
    };
    let operation = if shared { Operation::TryReadLock } else { Operation::TryLock };
    op(me, lock, pc, operation).attempt();
    note_preference(lock);
    let status = if shared && is_wanted_by_writer(lock) {
        libc::EBUSY
    } else {
        acquire(me, lock, shared, true, pc)
    };
    if status == libc::EBUSY && hook::spins(me, pc, lock as u64, 1) {
        sched::yield_turn(me, pc);
    }
    status
}

extern "C" fn read_lock(lock: *mut pthread_rwlock_t) -> c_int {
    lock_until(lock, true, NEVER, hook::caller())
}

extern "C" fn write_lock(lock: *mut pthread_rwlock_t) -> c_int {
    lock_until(lock, false, NEVER, hook::caller())
}

extern "C" fn try_read_lock(lock: *mut pthread_rwlock_t) -> c_int {
    try_lock(lock, true)
}

extern "C" fn try_write_lock(lock: *mut pthread_rwlock_t) -> c_int {
    try_lock(lock, false)
}

extern "C" fn timed_read_lock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int {
    clock_read_lock(lock, libc::CLOCK_REALTIME, time)
}

extern "C" fn timed_write_lock(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int {
    clock_write_lock(lock, libc::CLOCK_REALTIME, time)
}

extern "C" fn clock_read_lock(
    lock: *mut pthread_rwlock_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    clock_lock(lock, true, clock, time)
}

extern "C" fn clock_write_lock(
    lock: *mut pthread_rwlock_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    clock_lock(lock, false, clock, time)
}

fn clock_lock(
    lock: *mut pthread_rwlock_t,
    shared: bool,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    let pc = hook::caller();
    if hook::me().is_none() {
        let status = if shared {
            real!(pthread_rwlock_clockrdlock(lock => *mut pthread_rwlock_t, clock => clockid_t, time => *const timespec) -> c_int)
        } else {
            real!(pthread_rwlock_clockwrlock(lock => *mut pthread_rwlock_t, clock => clockid_t, time => *const timespec) -> c_int)
        };
        if status == 0 {
            hook::record(Kind::Acquire, info(shared, false), lock as u64, 0, pc, &[]);
        }
        return status;
    }
    if !clock::is_valid(time) || !clock::can_wait_by(clock) {
        return libc::EINVAL;
    }
    lock_until(lock, shared, clock::deadline(clock, time), pc)
}

extern "C" fn unlock(lock: *mut pthread_rwlock_t) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        hook::record(Kind::Release, INFO, lock as u64, 0, pc, &[]);
        return real!(pthread_rwlock_unlock(lock => *mut pthread_rwlock_t) -> c_int);
    };
    let op = op(me, lock, pc, Operation::Unlock);
    op.begin(Wait::Nothing, NEVER);
    if !misuse::check_held(op) {
        return release_for_other(op);
    }
    let mut sched = SCHED.lock();
    let object = sched.object(lock as u64, Lock::RwLock);
    let shared = object.owner == NOBODY;
    if shared {
        // Any holder may release it; a thread releases its own hold first.
        let at = object.readers.iter().rposition(|&(reader, _)| reader == me);
        if let Some(at) = at.or(object.readers.len().checked_sub(1)) {
            object.readers.remove(at);
        }
    } else {
        object.owner = NOBODY;
    }
    sched.poke(me);
    drop(sched);
    hook::record(Kind::Release, info(shared, false), lock as u64, 0, pc, &[]);
    real!(pthread_rwlock_unlock(lock => *mut pthread_rwlock_t) -> c_int)
}

/// Releases a lock that the thread does not hold, and libc's data no longer say that it is held.
fn release_for_other(op: ObjectOp) -> c_int {
    let mut sched = SCHED.lock();
    let object = sched.object(op.at, Lock::RwLock);
    let is_held = object.owner != NOBODY;
    (object.owner, object.depth) = (NOBODY, 0);
    sched.poke(op.me);
    drop(sched);
    if is_held {
        hook::record(Kind::Release, info(false, false), op.at, 0, op.pc, &[]);
    }
    0
}
