//! The program's own locks, which it annotates.
//!
//! The program does the locking; we learn of it before and after. So these locks are events, and
//! are checked like libc's: a second exclusive holder, a thread that locks again what it holds,
//! release of what is not held, destruction of what is held. A lock that was never created nor
//! acquired under control is not judged when it is released, and a lock that is acquired twice by
//! one thread only if the program created it as one that does not allow that.

use raddle_trace::misuse::{Fault, Operation};
use raddle_trace::record::{Kind, Lock, SHARED};

use crate::export::export;
use crate::hook;
use crate::interpose::misuse::ObjectOp;
use crate::sched::SCHED;
use crate::sched::object::{NOBODY, Object};
use crate::sched::thread::{NEVER, Wait};

export! {
    __tsan_mutex_create => create;
    __tsan_mutex_destroy => destroy;
    __tsan_mutex_pre_lock => pre_lock;
    __tsan_mutex_post_lock => post_lock;
    __tsan_mutex_pre_unlock => pre_unlock;
    AnnotateRWLockCreate => annotate_create;
    AnnotateRWLockCreateStatic => annotate_create_static;
    AnnotateRWLockDestroy => annotate_destroy;
    AnnotateRWLockAcquired => annotate_acquired;
    AnnotateRWLockReleased => annotate_released;
    __tsan_java_mutex_lock => java_lock;
    __tsan_java_mutex_unlock => java_unlock;
    __tsan_java_mutex_read_lock => java_read_lock;
    __tsan_java_mutex_read_unlock => java_read_unlock;
    __tsan_java_mutex_lock_rec => java_lock_again;
    __tsan_java_mutex_unlock_rec => java_unlock_all;
}

/// Flags of `__tsan_mutex_*`. The first three and the last are properties of the lock.
const STATIC: u32 = 1 << 0;
const REENTRANT: u32 = 1 << 1;
const READ_REENTRANT: u32 = 1 << 2;
const READ_LOCK: u32 = 1 << 3;
const TRY_LOCK: u32 = 1 << 4;
const TRY_LOCK_FAILED: u32 = 1 << 5;
const RECURSIVE_LOCK: u32 = 1 << 6;
const RECURSIVE_UNLOCK: u32 = 1 << 7;
const NOT_STATIC: u32 = 1 << 8;
const PROPERTIES: u32 = STATIC | REENTRANT | READ_REENTRANT | NOT_STATIC;
/// Our own: the program has created the lock, and so stated its properties.
const CREATED: u32 = 1 << 31;

fn op(me: u32, pc: u64, at: u64, operation: Operation) -> ObjectOp {
    ObjectOp { me, pc, at, operation, object: Lock::Annotated }
}

fn record(kind: Kind, at: u64, shared: bool, pc: u64) {
    let info = Lock::Annotated as u8 | if shared { SHARED } else { 0 };
    hook::record(kind, info, at, 0, pc, &[]);
}

extern "C" fn create(at: u64, flags: u32) {
    let pc = hook::caller();
    if hook::me().is_some() {
        let object = Object { count: flags & PROPERTIES | CREATED, ..Object::new(Lock::Annotated) };
        SCHED.lock().objects.insert(at, object);
    }
    record(Kind::Init, at, false, pc);
}

extern "C" fn destroy(at: u64, flags: u32) {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        let op = op(me, pc, at, Operation::Destroy);
        op.approach();
        hook::sync(me, pc, Wait::Nothing, NEVER);
        op.check_memory();
        let mut sched = SCHED.lock();
        if let Some(object) = sched.objects.get(&at).filter(|lock| lock.kind == Lock::Annotated) {
            let properties = object.count;
            if flags & STATIC != 0 || properties & STATIC != 0 && flags & NOT_STATIC == 0 {
                return;
            }
            if !object.is_free() {
                drop(sched);
                op.wrong(Fault::Held);
                sched = SCHED.lock();
            }
        }
        sched.objects.remove(&at);
    }
    record(Kind::Destroy, at, false, pc);
}

extern "C" fn pre_lock(at: u64, flags: u32) {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return };
    let shared = flags & READ_LOCK != 0;
    let op = op(me, pc, at, if shared { Operation::ReadLock } else { Operation::Lock });
    op.approach();
    hook::sync(me, pc, Wait::Nothing, NEVER);
    op.check_memory();
    let waits = flags & (TRY_LOCK | RECURSIVE_LOCK) == 0;
    let allows = REENTRANT | if shared { READ_REENTRANT } else { 0 };
    let is_own = SCHED.lock().objects.get(&at).is_some_and(|object| {
        let properties = object.count | flags;
        object.owner == me && properties & CREATED != 0 && properties & allows == 0
    });
    if waits && is_own {
        op.wrong(Fault::Held);
    }
}

extern "C" fn post_lock(at: u64, flags: u32, recursion: i32) {
    if flags & TRY_LOCK != 0 && flags & TRY_LOCK_FAILED != 0 {
        return;
    }
    let n = if flags & RECURSIVE_LOCK != 0 { u32::try_from(recursion).unwrap_or(1) } else { 1 };
    acquired(at, flags & READ_LOCK != 0, n.max(1), hook::caller());
}

extern "C" fn pre_unlock(at: u64, flags: u32) -> i32 {
    released(at, flags & READ_LOCK != 0, flags & RECURSIVE_UNLOCK != 0, hook::caller())
}

/// The thread has acquired a lock `n` times.
fn acquired(at: u64, shared: bool, n: u32, pc: u64) {
    if let Some(me) = hook::me() {
        let mut sched = SCHED.lock();
        let mut object = sched.object(at, Lock::Annotated);
        if object.owner != NOBODY && object.owner != me {
            drop(sched);
            let operation = if shared { Operation::ReadLock } else { Operation::Lock };
            op(me, pc, at, operation).wrong(Fault::HeldByOther);
            sched = SCHED.lock();
            object = sched.object(at, Lock::Annotated);
            // The model has one holder: the last one.
            (object.owner, object.depth) = (NOBODY, 0);
        }
        if shared {
            object.readers.push((me, pc));
        } else {
            if object.owner == NOBODY {
                object.owner_pc = pc;
            }
            object.owner = me;
            object.depth += n;
        }
    }
    (0..n).for_each(|_| record(Kind::Acquire, at, shared, pc));
}

/// The thread is about to release a lock, once or as many times as it holds it; returns how many.
fn released(at: u64, shared: bool, entirely: bool, pc: u64) -> i32 {
    let mut n = 1;
    if let Some(me) = hook::me() {
        let op = op(me, pc, at, Operation::Unlock);
        op.approach();
        hook::sync(me, pc, Wait::Nothing, NEVER);
        op.check_memory();
        let mut sched = SCHED.lock();
        if let Some(object) = sched.objects.get_mut(&at) {
            match release(object, me, shared, entirely) {
                Ok(released) => n = released,
                Err(fault) => {
                    drop(sched);
                    op.wrong(fault);
                    sched = SCHED.lock();
                    if fault == Fault::NotHeld {
                        return n as i32;
                    }
                    let object = sched.object(at, Lock::Annotated);
                    (object.owner, object.depth) = (NOBODY, 0);
                }
            }
        }
        sched.poke(me);
    }
    (0..n).for_each(|_| record(Kind::Release, at, shared, pc));
    n as i32
}

/// Releases a known lock in the model.
fn release(object: &mut Object, me: u32, shared: bool, entirely: bool) -> Result<u32, Fault> {
    let own_read = object.readers.iter().rposition(|&(reader, _)| reader == me);
    if object.owner == me && !(shared && own_read.is_some()) {
        let n = if entirely { object.depth } else { 1 };
        object.depth -= n;
        if object.depth == 0 {
            object.owner = NOBODY;
        }
        Ok(n)
    } else if let Some(index) = own_read {
        object.readers.remove(index);
        Ok(1)
    } else if object.owner != NOBODY {
        Err(Fault::HeldByOther)
    } else if shared && object.readers.pop().is_some() {
        // A reader may hand its share over.
        Ok(1)
    } else {
        Err(Fault::NotHeld)
    }
}

extern "C" fn annotate_create(_: *const u8, _: i32, at: u64) {
    create(at, 0);
}

extern "C" fn annotate_create_static(_: *const u8, _: i32, at: u64) {
    create(at, STATIC);
}

extern "C" fn annotate_destroy(_: *const u8, _: i32, at: u64) {
    destroy(at, 0);
}

extern "C" fn annotate_acquired(_: *const u8, _: i32, at: u64, writing: u64) {
    acquired(at, writing == 0, 1, hook::caller());
}

extern "C" fn annotate_released(_: *const u8, _: i32, at: u64, writing: u64) {
    released(at, writing == 0, false, hook::caller());
}

extern "C" fn java_lock(at: u64) {
    acquired(at, false, 1, hook::caller());
}

extern "C" fn java_unlock(at: u64) {
    released(at, false, false, hook::caller());
}

extern "C" fn java_read_lock(at: u64) {
    acquired(at, true, 1, hook::caller());
}

extern "C" fn java_read_unlock(at: u64) {
    released(at, true, false, hook::caller());
}

/// Acquires a lock as many times as [`java_unlock_all`] released it.
extern "C" fn java_lock_again(at: u64, n: i32) {
    acquired(at, false, u32::try_from(n).unwrap_or(1).max(1), hook::caller());
}

/// Releases a lock entirely, in order to wait; returns how many times it was held.
extern "C" fn java_unlock_all(at: u64) -> i32 {
    released(at, false, true, hook::caller())
}
