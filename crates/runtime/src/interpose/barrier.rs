//! Barriers: fully modeled; libc's implementation never waits.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_uint, pthread_barrier_t, pthread_barrierattr_t};
use raddle_trace::misuse::Operation;
use raddle_trace::record::{Kind, Lock};

use super::misuse::{self, ObjectOp};
use crate::export::export;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::object::Object;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, sys};

export! {
    pthread_barrier_init => init;
    pthread_barrier_destroy => destroy;
}

export! { unsafe OTHER:
    pthread_barrier_wait => wait;
}

type Barrier = *mut pthread_barrier_t;

extern "C" fn init(barrier: Barrier, attr: *const pthread_barrierattr_t, count: c_uint) -> c_int {
    let pc = hook::caller();
    let status = real!(pthread_barrier_init(barrier => Barrier, attr => *const pthread_barrierattr_t, count => c_uint) -> c_int);
    if status == 0 && hook::me().is_some() {
        let mut sched = SCHED.lock();
        let object = Object { count, round: sched.new_round(), ..Object::new(Lock::Barrier) };
        sched.objects.insert(barrier as u64, object);
    }
    hook::record(Kind::Init, Lock::Barrier as u8, barrier as u64, 0, pc, &[]);
    status
}

extern "C" fn destroy(barrier: Barrier) -> c_int {
    let pc = hook::caller();
    let me = hook::me();
    if let Some(me) = me {
        if !op(me, barrier, pc, Operation::Destroy).destroy(Wait::Nothing) {
            // libc waits for the threads that have arrived to leave.
            let round = SCHED.lock().object(barrier as u64, Lock::Barrier).round;
            hook::sync(me, pc, Wait::Barrier(barrier as u64, round), NEVER);
        }
        SCHED.lock().objects.remove(&(barrier as u64));
    }
    hook::record(Kind::Destroy, Lock::Barrier as u8, barrier as u64, 0, pc, &[]);
    let status = real!(pthread_barrier_destroy(barrier => Barrier) -> c_int);
    if me.is_some() {
        misuse::mark_destroyed(barrier as u64, Lock::Barrier);
    }
    status
}

fn op(me: u32, barrier: Barrier, pc: u64, operation: Operation) -> ObjectOp {
    ObjectOp { me, pc, at: barrier as u64, operation, object: Lock::Barrier }
}

/// Whether it is shared between processes: glibc keeps that in its fourth word.
fn is_shared(barrier: Barrier) -> bool {
    // SAFETY: within the barrier that the program passes, which has been initialized.
    unsafe { *barrier.cast::<u32>().add(3) != 0 }
}

/// Arrives as libc does, so that other processes notice, and waits in our model. The words of a
/// barrier: arrivals, arrivals in completed rounds, threads per round, whether it is shared,
/// departures. Limits: libc's counters are reset after 2^31 arrivals, which is not supported here.
fn wait_shared(me: u32, barrier: Barrier, pc: u64) -> c_int {
    // SAFETY: within the barrier that the program passes; other processes use it in the same way.
    let word = |index: usize| unsafe { &*barrier.cast::<AtomicU32>().add(index) };
    let n_round = word(2).load(Ordering::Relaxed);
    let mine = word(0).fetch_add(1, Ordering::AcqRel) + 1;
    let mut completed = word(1).load(Ordering::Acquire);
    while completed + n_round <= mine {
        let now = mine - mine % n_round;
        match word(1).compare_exchange(completed, now, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                sys::futex_wake_all(word(1));
                break;
            }
            Err(other) => completed = other,
        }
    }
    hook::sync(me, pc, Wait::SharedBarrier(barrier as u64, mine), NEVER);
    word(4).fetch_add(1, Ordering::AcqRel);
    if mine.is_multiple_of(n_round) { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
}

extern "C" fn wait(barrier: Barrier) -> c_int {
    let pc = hook::caller();
    let at = barrier as u64;
    let is_known = || SCHED.lock().objects.get(&at).is_some_and(|object| object.count > 0);
    if let Some(me) = hook::me().filter(|_| !is_known()) {
        // One that was destroyed is known again, if it may be used.
        op(me, barrier, pc, Operation::Wait).check();
    }
    let Some(me) = hook::me().filter(|_| is_known()) else {
        hook::record(Kind::BarrierEnter, 0, at, 0, pc, &[]);
        let status = real!(pthread_barrier_wait(barrier => Barrier) -> c_int);
        hook::record(Kind::BarrierLeave, u8::from(status != 0), at, 0, pc, &[]);
        return status;
    };
    op(me, barrier, pc, Operation::Wait).begin(Wait::Nothing, NEVER);
    hook::record(Kind::BarrierEnter, 0, at, 0, pc, &[]);
    if SCHED.lock().n_processes > 0 && is_shared(barrier) {
        // Child processes arrive at it, too.
        let status = wait_shared(me, barrier, pc);
        hook::record(Kind::BarrierLeave, u8::from(status != 0), at, 0, pc, &[]);
        return status;
    }
    let mut sched = SCHED.lock();
    let next_round = sched.new_round();
    let object = sched.object(at, Lock::Barrier);
    object.arrived += 1;
    let round = object.round;
    let last = object.arrived == object.count;
    if last {
        object.arrived = 0;
        object.round = next_round;
        sched.poke(me);
    }
    drop(sched);
    if !last {
        hook::sync(me, pc, Wait::Barrier(at, round), NEVER);
    }
    hook::record(Kind::BarrierLeave, u8::from(last), at, 0, pc, &[]);
    if last { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
}
