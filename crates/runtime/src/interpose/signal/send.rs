//! Signals that the program sends, mostly to itself.

use core::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, pid_t, pthread_t, siginfo_t, sigval};

use super::super::result;
use super::disposition::blocked;
use crate::export::export;
use crate::hook;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::thread::{NEVER, Wait};
use crate::signals::{self, N, bit, is_handled};
use crate::{sys, tls};

export! {
    raise => raise_inner;
    pthread_kill => kill_thread;
    kill => kill_process;
    sigqueue => queue;
}

/// Sends a signal to the running thread; its handler has run when this returns, unless the thread
/// blocks the signal.
fn to_myself(signal: c_int) -> i64 {
    handled_now(|| sys::tgkill(sys::gettid(), signal))
}

/// While it sends, an arriving signal is handled immediately.
fn handled_now(send: impl FnOnce() -> i64) -> i64 {
    tls::set(tls::SIGNALS_NOW, 1);
    let status = send();
    tls::set(tls::SIGNALS_NOW, 0);
    status
}

/// One more signal was sent: threads that wait for one look again.
fn one_more(me: u32) {
    let mut sched = SCHED.lock();
    sched.n_signals += 1;
    sched.poke(me);
}

extern "C" fn raise_inner(signal: c_int) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return result(sys::tgkill(sys::gettid(), signal)) as c_int };
    hook::sync(me, pc, Wait::Nothing, NEVER);
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
    if let (0, true, Some(other)) = (status, is_handled(signal), other) {
        await_notice(other, signal);
    }
    status
}

/// Waits until the other thread, which sleeps, has registered the signal, so that the order of
/// events does not depend on the kernel's speed.
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

/// What a handler is told about a signal of this process.
fn info_of(signal: c_int, code: c_int, value: u64) -> siginfo_t {
    let mut info = signals::info_of(signal, code);
    let (process, user) = (sys::getpid(), sys::syscall!(libc::SYS_getuid) as u32);
    // The kernel keeps sender, user and value after the three numbers that all have.
    let words = (&raw mut info).cast::<u32>();
    // SAFETY: bytes 16 to 32 of 128.
    unsafe {
        *words.add(4) = process;
        *words.add(5) = user;
        *words.add(6).cast::<u64>() = value;
    }
    info
}

/// Sends a signal to this process. Any thread may get it that does not block it: we choose this
/// one, or else the first. Without one it remains pending for threads that wait for it.
fn to_ourselves(me: u32, info: &siginfo_t, send_to_process: impl Fn() -> i64) -> i64 {
    let signal = info.si_signo;
    if !(1..N as c_int).contains(&signal) {
        return send_to_process();
    }
    if blocked() & bit(signal) == 0 {
        let (process, thread) = (sys::getpid(), sys::gettid());
        let info = core::ptr::from_ref(info);
        return handled_now(|| {
            sys::syscall!(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info)
        });
    }
    let handled = is_handled(signal);
    let mut sched = SCHED.lock();
    let receiver = sched.receiver(signal).filter(|&id| id != me && handled);
    if receiver.is_none() {
        drop(sched);
        return send_to_process();
    }
    sched.interrupt(receiver, info);
    0
}

extern "C" fn kill_process(process: pid_t, signal: c_int) -> c_int {
    let pc = hook::caller();
    let send = || sys::syscall!(libc::SYS_kill, process, signal);
    let Some(me) = hook::me() else { return result(send()) as c_int };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    one_more(me);
    let own = process as u32 == sys::getpid();
    let info = info_of(signal, libc::SI_USER, 0);
    result(if own { to_ourselves(me, &info, send) } else { send() }) as c_int
}

extern "C" fn queue(process: pid_t, signal: c_int, value: sigval) -> c_int {
    let pc = hook::caller();
    let info = info_of(signal, libc::SI_QUEUE, value.sival_ptr as u64);
    let send =
        || sys::syscall!(libc::SYS_rt_sigqueueinfo, process, signal, core::ptr::from_ref(&info));
    let Some(me) = hook::me() else { return result(send()) as c_int };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    one_more(me);
    let own = process as u32 == sys::getpid();
    result(if own { to_ourselves(me, &info, send) } else { send() }) as c_int
}
