//! Signals that the program sends, to itself most of all.

use core::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, pid_t, pthread_t, sigval};

use super::super::result;
use super::wish::{WISHES, blocked};
use super::{bit, death, note_place};
use crate::abi::stub::export;
use crate::hook;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::thread::{NEVER, Wait};
use crate::{sys, tls};

export! {
    raise => raise_inner;
    pthread_kill => kill_thread;
    kill => kill_process;
    sigqueue => queue;
}

/// Sends a signal to the running thread; its handler has run when this returns, unless the
/// thread has blocked it.
fn to_myself(signal: c_int) -> i64 {
    tls::set(tls::SIGNALS_NOW, 1);
    let status = sys::tgkill(sys::gettid(), signal);
    tls::set(tls::SIGNALS_NOW, 0);
    status
}

/// One more signal was sent: whoever looks for one looks again.
fn one_more(me: u32) {
    let mut sched = SCHED.lock();
    sched.n_signals += 1;
    sched.poke(me);
}

extern "C" fn raise_inner(signal: c_int) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return result(sys::tgkill(sys::gettid(), signal)) as c_int };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    if death::kills(signal) {
        note_place(pc);
    }
    one_more(me);
    result(to_myself(signal)) as c_int
}

extern "C" fn kill_thread(thread: pthread_t, signal: c_int) -> c_int {
    let pc = hook::caller();
    let real_kill = || real!(pthread_kill(thread => pthread_t, signal => c_int) -> c_int);
    let Some(me) = hook::me() else { return real_kill() };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    one_more(me);
    // SAFETY: asks for the calling thread's own name.
    if thread == unsafe { libc::pthread_self() } {
        return -to_myself(signal) as c_int;
    }
    let other = SCHED.lock().by_pthread(thread);
    let status = real_kill();
    let handled = signal > 0
        && WISHES.lock().get(signal as usize).is_some_and(|wish| wish.handler > libc::SIG_IGN);
    if let (0, true, Some(other)) = (status, handled, other) {
        await_notice(other, signal);
    }
    status
}

/// Waits until the other thread, which sleeps, has noted the signal: then the order of
/// events does not depend on how fast the kernel is.
fn await_notice(other: u32, signal: c_int) {
    if SCHED.lock().threads[other as usize].mask & bit(signal) != 0 {
        return;
    }
    loop {
        let (address, outside) = {
            let sched = SCHED.lock();
            let thread = &sched.threads[other as usize];
            (thread.tls, matches!(thread.wait, Wait::Outside))
        };
        if address == 0 || outside {
            return;
        }
        // SAFETY: the thread lives, since it has not ended, and so does its thread-local block.
        let signals = unsafe { &*((address + tls::SIGNALS as u64) as *const AtomicU64) };
        if signals.load(Ordering::Acquire) & bit(signal) != 0 {
            SCHED.lock().threads[other as usize].interrupted = true;
            return;
        }
        sys::sched_yield();
    }
}

extern "C" fn kill_process(process: pid_t, signal: c_int) -> c_int {
    let pc = hook::caller();
    let send = || sys::syscall!(libc::SYS_kill, process, signal);
    let Some(me) = hook::me() else { return result(send()) as c_int };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    one_more(me);
    // Any thread may get it; the same one each time is this one, unless it does not want it.
    let own = process as u32 == sys::getpid() && signal > 0 && blocked() & bit(signal) == 0;
    result(if own { to_myself(signal) } else { send() }) as c_int
}

extern "C" fn queue(process: pid_t, signal: c_int, value: sigval) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
        one_more(me);
    }
    tls::set(tls::SIGNALS_NOW, 1);
    let status = real!(sigqueue(process => pid_t, signal => c_int, value => sigval) -> c_int);
    tls::set(tls::SIGNALS_NOW, 0);
    status
}
