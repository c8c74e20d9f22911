//! Barriers: modelled whole, libc's own is never waited at.

use libc::{c_int, c_uint, pthread_barrier_t, pthread_barrierattr_t};
use raddle_trace::record::{Kind, Lock};

use super::misuse::{self, Act};
use crate::abi::stub::export;
use crate::hook;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::object::Object;
use crate::sched::thread::{NEVER, Wait};

export! {
    pthread_barrier_init => init;
    pthread_barrier_destroy => destroy;
    pthread_barrier_wait => wait;
}

type Barrier = *mut pthread_barrier_t;

extern "C" fn init(barrier: Barrier, attr: *const pthread_barrierattr_t, count: c_uint) -> c_int {
    let pc = hook::caller();
    let status = real!(pthread_barrier_init(barrier => Barrier, attr => *const pthread_barrierattr_t, count => c_uint) -> c_int);
    if status == 0 && hook::me().is_some() {
        let object = Object { count, ..Object::new(Lock::Barrier) };
        SCHED.lock().objects.insert(barrier as u64, object);
    }
    hook::record(Kind::Init, Lock::Barrier as u8, barrier as u64, 0, pc, &[]);
    status
}

extern "C" fn destroy(barrier: Barrier) -> c_int {
    let pc = hook::caller();
    let me = hook::me();
    if let Some(me) = me {
        let act = Act { me, pc, at: barrier as u64, verb: "destroys", kind: Lock::Barrier };
        act.check_memory();
        misuse::check_unused(act);
        SCHED.lock().objects.remove(&(barrier as u64));
    }
    hook::record(Kind::Destroy, Lock::Barrier as u8, barrier as u64, 0, pc, &[]);
    let status = real!(pthread_barrier_destroy(barrier => Barrier) -> c_int);
    if me.is_some() {
        misuse::mark_destroyed(barrier as u64, Lock::Barrier);
    }
    status
}

extern "C" fn wait(barrier: Barrier) -> c_int {
    let pc = hook::caller();
    let at = barrier as u64;
    let act = hook::me().map(|me| Act { me, pc, at, verb: "waits at", kind: Lock::Barrier });
    if let Some(act) = act {
        act.check();
    }
    let known = SCHED.lock().objects.get(&at).is_some_and(|object| object.count > 0);
    let Some(me) = hook::me().filter(|_| known) else {
        hook::record(Kind::BarrierEnter, 0, at, 0, pc, &[]);
        let status = real!(pthread_barrier_wait(barrier => Barrier) -> c_int);
        hook::record(Kind::BarrierLeave, u8::from(status != 0), at, 0, pc, &[]);
        return status;
    };
    hook::about_to(me, at, true);
    hook::sync(me, pc, Wait::Nothing, NEVER);
    if let Some(act) = act {
        act.check();
    }
    hook::record(Kind::BarrierEnter, 0, at, 0, pc, &[]);
    let mut sched = SCHED.lock();
    let object = sched.object(at, Lock::Barrier);
    object.arrived += 1;
    let round = object.round;
    let last = object.arrived == object.count;
    if last {
        object.arrived = 0;
        object.round += 1;
        sched.poke(me);
    }
    drop(sched);
    if !last {
        hook::sync(me, pc, Wait::Barrier(at, round), NEVER);
    }
    hook::record(Kind::BarrierLeave, u8::from(last), at, 0, pc, &[]);
    if last { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
}
