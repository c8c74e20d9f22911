//! Semaphores, named and unnamed: the value is kept by libc.

use libc::{c_int, c_uint, clockid_t, sem_t, timespec};
use raddle_trace::misuse::Operation;
use raddle_trace::record::{Kind, Lock, TRIED, Wake};

use super::clock;
use super::misuse::{self, ObjectOp};
use crate::export::{export, export_cancellable};
use crate::hook;
use crate::real::real;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};

export! {
    sem_init => init;
    sem_destroy => destroy;
    sem_post => post;
    sem_trywait => try_wait;
    sem_getvalue => value;
}

export_cancellable! { unsafe OTHER:
    sem_wait => wait;
    sem_timedwait => timed_wait;
    sem_clockwait => clock_wait;
}

extern "C" fn init(semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int {
    let pc = hook::caller();
    hook::record(Kind::Init, Lock::Semaphore as u8, semaphore as u64, 0, pc, &[]);
    real!(sem_init(semaphore => *mut sem_t, shared => c_int, value => c_uint) -> c_int)
}

extern "C" fn destroy(semaphore: *mut sem_t) -> c_int {
    let pc = hook::caller();
    let me = hook::me();
    if let Some(me) = me
        && !op(me, semaphore, pc, Operation::Destroy).destroy(Wait::Nothing)
    {
        // It goes on as it is: libc's function does nothing.
        return 0;
    }
    hook::record(Kind::Destroy, Lock::Semaphore as u8, semaphore as u64, 0, pc, &[]);
    let status = real!(sem_destroy(semaphore => *mut sem_t) -> c_int);
    if me.is_some() {
        misuse::mark_destroyed(semaphore as u64, Lock::Semaphore);
    }
    status
}

fn op(me: u32, semaphore: *mut sem_t, pc: u64, operation: Operation) -> ObjectOp {
    ObjectOp { me, pc, at: semaphore as u64, operation, object: Lock::Semaphore }
}

extern "C" fn post(semaphore: *mut sem_t) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        op(me, semaphore, pc, Operation::Post).begin(Wait::Nothing, NEVER);
        SCHED.lock().poke(me);
    }
    hook::record(Kind::SemPost, 0, semaphore as u64, 0, pc, &[]);
    real!(sem_post(semaphore => *mut sem_t) -> c_int)
}

fn real_try(semaphore: *mut sem_t) -> c_int {
    real!(sem_trywait(semaphore => *mut sem_t) -> c_int)
}

extern "C" fn try_wait(semaphore: *mut sem_t) -> c_int {
    let pc = hook::caller();
    let me = hook::me();
    if let Some(me) = me {
        op(me, semaphore, pc, Operation::TryWait).attempt();
        rest_if_shared(semaphore);
    }
    let status = real_try(semaphore);
    if status == 0 {
        hook::record(Kind::SemWait, TRIED, semaphore as u64, 0, pc, &[]);
        return 0;
    }
    hook::record(Kind::SemAsk, 0, semaphore as u64, 0, pc, &[]);
    if let Some(me) = me.filter(|&me| hook::spins(me, pc, semaphore as u64, 0)) {
        sched::yield_turn(me, pc);
        return super::fail(libc::EAGAIN);
    }
    status
}

/// Lets child processes that may post it come to rest.
fn rest_if_shared(semaphore: *mut sem_t) {
    let wait = Wait::Semaphore(semaphore as u64);
    let is_shared = SCHED.lock().may_be_shared(wait);
    if is_shared {
        sched::observe();
    }
}

/// Reading the value is an access, since the thread may act on a value that has become stale.
extern "C" fn value(semaphore: *mut sem_t, value: *mut c_int) -> c_int {
    let pc = hook::caller();
    let me = hook::me();
    if let Some(me) = me {
        op(me, semaphore, pc, Operation::Value).attempt();
        rest_if_shared(semaphore);
    }
    let status = real!(sem_getvalue(semaphore => *mut sem_t, value => *mut c_int) -> c_int);
    if status == 0 {
        hook::record(Kind::SemAsk, 0, semaphore as u64, 0, pc, &[]);
        let seen = u64::from(sched::semaphore_value(semaphore as u64));
        if let Some(me) = me.filter(|&me| hook::spins(me, pc, semaphore as u64, seen)) {
            sched::yield_turn(me, pc);
        }
    }
    status
}

fn wait_until(me: u32, semaphore: *mut sem_t, deadline: u64, pc: u64) -> c_int {
    let op = op(me, semaphore, pc, Operation::Wait);
    op.approach();
    let mut check: fn(ObjectOp) = ObjectOp::check;
    loop {
        let wake = hook::sync(me, pc, Wait::Semaphore(semaphore as u64), deadline);
        check(op);
        check = ObjectOp::check_again;
        match wake {
            Wake::TimedOut => return super::fail(libc::ETIMEDOUT),
            Wake::Interrupted if SCHED.lock().threads[me as usize].restarts => {}
            Wake::Interrupted => return super::fail(libc::EINTR),
            Wake::Cancelled => return super::fail(libc::EINTR),
            _ if real_try(semaphore) == 0 => {
                hook::record(Kind::SemWait, 0, semaphore as u64, 0, pc, &[]);
                return 0;
            }
            // Another process was faster.
            _ => {}
        }
    }
}

extern "C" fn wait(semaphore: *mut sem_t) -> c_int {
    let pc = hook::caller();
    match hook::me() {
        Some(me) => wait_until(me, semaphore, NEVER, pc),
        None => {
            let status = real!(sem_wait(semaphore => *mut sem_t) -> c_int);
            if status == 0 {
                hook::record(Kind::SemWait, 0, semaphore as u64, 0, pc, &[]);
            }
            status
        }
    }
}

extern "C" fn timed_wait(semaphore: *mut sem_t, time: *const timespec) -> c_int {
    clock_wait(semaphore, libc::CLOCK_REALTIME, time)
}

extern "C" fn clock_wait(semaphore: *mut sem_t, clock: clockid_t, time: *const timespec) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        let status = real!(sem_clockwait(semaphore => *mut sem_t, clock => clockid_t, time => *const timespec) -> c_int);
        if status == 0 {
            hook::record(Kind::SemWait, 0, semaphore as u64, 0, pc, &[]);
        }
        return status;
    };
    if !clock::is_valid(time) || !clock::can_wait_by(clock) {
        return super::fail(libc::EINVAL);
    }
    wait_until(me, semaphore, clock::deadline(clock, time), pc)
}
