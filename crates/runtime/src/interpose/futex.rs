//! `syscall`: mainly futexes, on which Rust's locks and `std::atomic::wait` are built.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_long, timespec};
use raddle_trace::record::{Kind, Lock, Wake};

use super::{clock, randomness, signal, sleep};
use crate::export::export_cancellable;
use crate::sched::SCHED;
use crate::sched::object::NOBODY;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, inside, sys};

export_cancellable! {
    syscall => call;
}

extern "C" fn call(number: c_long, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> c_long {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        match number {
            libc::SYS_futex => {
                return super::result(futex(me, pc, a, b as c_int, c as u32, d, e, f as u32));
            }
            libc::SYS_getrandom => return randomness::fill(a as *mut u8, b as usize),
            libc::SYS_sched_yield => return sleep::yield_inner().into(),
            libc::SYS_pause => return only_asynchronously(me, || signal::pause_inner()).into(),
            libc::SYS_nanosleep => {
                let error = sleep::clock_nanosleep_inner(
                    libc::CLOCK_MONOTONIC,
                    0,
                    a as *const timespec,
                    b as *mut timespec,
                );
                return super::result(i64::from(-error));
            }
            libc::SYS_clock_nanosleep => {
                let error = sleep::clock_nanosleep_inner(
                    a as c_int,
                    b as c_int,
                    c as *const timespec,
                    d as *mut timespec,
                );
                return super::result(i64::from(-error));
            }
            _ => {}
        }
    }
    inside::note_call(number);
    // SAFETY: what the program passes for this same system call.
    super::result(unsafe { sys::call(number, [a, b, c, d, e, f]) })
}

/// Waits as a system call does, which is no cancellation point: only a thread that asked for
/// asynchronous cancellation is canceled.
fn only_asynchronously<R>(me: u32, wait: impl FnOnce() -> R) -> R {
    let set = |is_uncancellable: bool| {
        let mut sched = SCHED.lock();
        let thread = &mut sched.threads[me as usize];
        core::mem::replace(&mut thread.uncancellable, is_uncancellable)
    };
    let is_anywhere = SCHED.lock().threads[me as usize].cancel_anywhere;
    let before = set(true);
    set(before || !is_anywhere);
    let result = wait();
    set(before);
    result
}

const COMMAND: c_int = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
const ANY: u32 = u32::MAX;

#[expect(clippy::too_many_arguments, reason = "the system call's own")]
fn futex(
    me: u32,
    pc: u64,
    at: u64,
    op: c_int,
    value: u32,
    time: u64,
    second: u64,
    bits: u32,
) -> i64 {
    let timed = matches!(op & COMMAND, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) && time != 0;
    let no_bits =
        matches!(op & COMMAND, libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAKE_BITSET) && bits == 0;
    if no_bits || timed && !clock::is_valid(time as *const timespec) {
        return i64::from(-libc::EINVAL);
    }
    let realtime = op & libc::FUTEX_CLOCK_REALTIME != 0;
    match op & COMMAND {
        libc::FUTEX_WAIT => {
            let time = time as *const timespec;
            let deadline =
                if time.is_null() { NEVER } else { clock::after(clock::nanoseconds(time)) };
            wait(me, pc, at, value, deadline, ANY)
        }
        libc::FUTEX_WAIT_BITSET => {
            let time = time as *const timespec;
            let which = if realtime { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
            let deadline = if time.is_null() { NEVER } else { clock::deadline(which, time) };
            wait(me, pc, at, value, deadline, bits)
        }
        libc::FUTEX_WAKE => wake(me, pc, at, value, ANY),
        libc::FUTEX_WAKE_BITSET => wake(me, pc, at, value, bits),
        libc::FUTEX_REQUEUE => requeue(me, pc, at, value, time as u32, second),
        libc::FUTEX_CMP_REQUEUE => {
            if load(at) != bits {
                return i64::from(-libc::EAGAIN);
            }
            requeue(me, pc, at, value, time as u32, second)
        }
        // Priority inheritance and the rest are between libc and the kernel.
        // SAFETY: what the program passes for this same system call.
        _ => crate::sched::outside(me, pc, || unsafe {
            sys::call(
                libc::SYS_futex,
                [at, op as u64, u64::from(value), time, second, u64::from(bits)],
            )
        }),
    }
}

fn load(at: u64) -> u32 {
    // SAFETY: the program's futex word.
    unsafe { &*(at as *const AtomicU32) }.load(Ordering::SeqCst)
}

fn wait(me: u32, pc: u64, at: u64, expected: u32, deadline: u64, bits: u32) -> i64 {
    hook::about_to(me, at, false);
    hook::sync(me, pc, Wait::Nothing, NEVER);
    if load(at) != expected {
        hook::record(Kind::FutexWait, 0, at, 0, pc, &[u64::from(expected)]);
        hook::record(Kind::FutexWoken, Wake::Mismatch as u8, at, 0, pc, &[]);
        return i64::from(-libc::EAGAIN);
    }
    hook::record(Kind::FutexWait, 0, at, 0, pc, &[u64::from(expected)]);
    SCHED.lock().threads[me as usize].woken = None;
    let wake = loop {
        let wake = hook::sync(me, pc, Wait::Futex(at, bits), deadline);
        if wake != Wake::Interrupted || !SCHED.lock().threads[me as usize].restarts {
            break wake;
        }
    };
    let woken = SCHED.lock().threads[me as usize].woken.take();
    let by = woken.map_or(NOBODY, |(_, by)| by) as u16;
    hook::record(Kind::FutexWoken, wake as u8, at, by, pc, &[]);
    match wake {
        Wake::TimedOut => i64::from(-libc::ETIMEDOUT),
        Wake::Interrupted => i64::from(-libc::EINTR),
        _ => 0,
    }
}

fn wake(me: u32, pc: u64, at: u64, n: u32, bits: u32) -> i64 {
    hook::about_to(me, at, true);
    hook::sync(me, pc, Wait::Nothing, NEVER);
    let mut sched = SCHED.lock();
    let waits = |wait| matches!(wait, Wait::Futex(other, mask) if other == at && mask & bits != 0);
    let mut waiters = sched.waiters(waits);
    let object = sched.object(at, Lock::Cond);
    object.missed_pc = if waiters.is_empty() { pc } else { 0 };
    object.missed = Some((load(at), me));
    let n = (n as usize).min(waiters.len());
    for _ in 0..n {
        let left = waiters.len();
        let taken = if n == left { 0 } else { sched.choose(left as u32) };
        let waiter = waiters.remove(taken as usize);
        sched.wake(waiter, Wake::Woken, me);
    }
    sched.poke(me);
    drop(sched);
    hook::record(Kind::FutexWake, 0, at, n as u16, pc, &[]);
    n as i64
}

fn requeue(me: u32, pc: u64, at: u64, n_wake: u32, n_move: u32, to: u64) -> i64 {
    let woken = wake(me, pc, at, n_wake, ANY);
    let mut sched = SCHED.lock();
    let waiters = sched.waiters(|wait| matches!(wait, Wait::Futex(other, _) if other == at));
    let mut moved = 0;
    for waiter in waiters.into_iter().take(n_move as usize) {
        if let Wait::Futex(futex, _) = &mut sched.threads[waiter as usize].wait {
            *futex = to;
            moved += 1;
        }
    }
    woken + moved
}
