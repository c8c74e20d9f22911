//! Spin locks: a thread waits for one as for a mutex.

use libc::{c_int, pthread_spinlock_t};
use raddle_trace::misuse::Operation;
use raddle_trace::record::{Kind, Lock, TRIED};

use super::misuse::{self, ObjectOp};
use crate::export::export;
use crate::hook;
use crate::real::real;
use crate::sched::object::{NOBODY, Object};
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};

export! {
    pthread_spin_init => init;
    pthread_spin_destroy => destroy;
    pthread_spin_unlock => unlock;
}

export! { unsafe OTHER:
    pthread_spin_lock => lock;
    pthread_spin_trylock => try_lock;
}

type Spin = *mut pthread_spinlock_t;
const INFO: u8 = Lock::Spin as u8;

extern "C" fn init(lock: Spin, shared: c_int) -> c_int {
    let pc = hook::caller();
    if hook::me().is_some() {
        SCHED.lock().objects.insert(lock as u64, Object::new(Lock::Spin));
    }
    hook::record(Kind::Init, INFO, lock as u64, 0, pc, &[]);
    real!(pthread_spin_init(lock => Spin, shared => c_int) -> c_int)
}

extern "C" fn destroy(lock: Spin) -> c_int {
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
    let status = real!(pthread_spin_destroy(lock => Spin) -> c_int);
    if me.is_some() {
        misuse::mark_destroyed(lock as u64, Lock::Spin);
    }
    status
}

fn op(me: u32, lock: Spin, pc: u64, operation: Operation) -> ObjectOp {
    ObjectOp { me, pc, at: lock as u64, operation, object: Lock::Spin }
}

extern "C" fn lock(lock: Spin) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        let op = op(me, lock, pc, Operation::Lock);
        SCHED.lock().settle_shared(Wait::Lock(op.at));
        if SCHED.lock().objects.get(&op.at).is_some_and(|object| object.owner == me) {
            op.relock(NEVER);
        }
        op.begin(Wait::Lock(op.at), NEVER);
        own(me, lock, pc);
    }
    let status = real!(pthread_spin_lock(lock => Spin) -> c_int);
    hook::record(Kind::Acquire, INFO, lock as u64, 0, pc, &[]);
    status
}

fn own(me: u32, lock: Spin, pc: u64) {
    let mut sched = SCHED.lock();
    let object = sched.object(lock as u64, Lock::Spin);
    (object.owner, object.owner_pc) = (me, pc);
}

extern "C" fn try_lock(lock: Spin) -> c_int {
    let pc = hook::caller();
    let me = hook::me();
    if let Some(me) = me {
        op(me, lock, pc, Operation::TryLock).attempt();
    }
    let status = real!(pthread_spin_trylock(lock => Spin) -> c_int);
    if status == 0 {
        if let Some(me) = me {
            hook::works(me);
            own(me, lock, pc);
        }
        hook::record(Kind::Acquire, INFO | TRIED, lock as u64, 0, pc, &[]);
    } else if let Some(me) = me.filter(|&me| hook::spins(me, pc, lock as u64, 1)) {
        sched::yield_turn(me, pc);
    }
    status
}

extern "C" fn unlock(lock: Spin) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        op(me, lock, pc, Operation::Unlock).begin(Wait::Nothing, NEVER);
        let mut sched = SCHED.lock();
        sched.object(lock as u64, Lock::Spin).owner = NOBODY;
        sched.poke(me);
    }
    hook::record(Kind::Release, INFO, lock as u64, 0, pc, &[]);
    real!(pthread_spin_unlock(lock => Spin) -> c_int)
}
