//! What the program wants done with a signal, and which it blocks.

use libc::{c_int, sigaction as Action, sighandler_t, sigset_t};

use super::super::{fail, result};
use super::{N, death, deliver, handler};
use crate::abi::stub::export;
use crate::guarded::Guarded;
use crate::real::real;
use crate::sched::SCHED;
use crate::{hook, shared, sys, tls};

export! {
    sigaction => sigaction_inner;
    __sigaction => sigaction_inner;
    signal => signal_inner;
    pthread_sigmask => sigmask;
    sigprocmask => procmask;
}

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    pub(super) handler: sighandler_t,
    pub(super) flags: c_int,
    pub(super) mask: u64,
}

pub(super) static WISHES: Guarded<[Wish; N]> =
    Guarded::new([Wish { handler: libc::SIG_DFL, flags: 0, mask: 0 }; N]);

pub(super) fn install(signal: c_int, flags: c_int, mask: u64) {
    // SAFETY: all zeros is a valid sigaction.
    let mut action: Action = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags | libc::SA_SIGINFO;
    // SAFETY: a set begins with the kernel's 64 bits.
    unsafe { *(&raw mut action.sa_mask).cast::<u64>() = mask };
    // libc's, since it adds the code that returns from a handler.
    real!(sigaction(signal => c_int, &raw const action => *const Action, core::ptr::null_mut() => *mut Action) -> c_int);
}

pub(super) fn uninstall(signal: c_int, handler: usize) {
    // SAFETY: all zeros is a valid sigaction.
    let mut action: Action = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler;
    real!(sigaction(signal => c_int, &raw const action => *const Action, core::ptr::null_mut() => *mut Action) -> c_int);
}

extern "C" fn sigaction_inner(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    if shared::mode() == shared::OFF || !(1..N as c_int).contains(&signal) {
        return real!(sigaction(signal => c_int, new => *const Action, old => *mut Action) -> c_int);
    }
    let before = WISHES.lock()[signal as usize];
    if !new.is_null() {
        // SAFETY: the program's action.
        let new = unsafe { &*new };
        if signal == libc::SIGKILL || signal == libc::SIGSTOP {
            return fail(libc::EINVAL);
        }
        // SAFETY: a set begins with the kernel's 64 bits.
        let mask = unsafe { *(&raw const new.sa_mask).cast::<u64>() };
        let wish = Wish { handler: new.sa_sigaction, flags: new.sa_flags, mask };
        WISHES.lock()[signal as usize] = wish;
        apply(signal, wish);
    }
    if !old.is_null() {
        // SAFETY: where the program wants the action that was.
        unsafe {
            *old = core::mem::zeroed();
            (*old).sa_sigaction = before.handler;
            (*old).sa_flags = before.flags;
            *(&raw mut (*old).sa_mask).cast::<u64>() = before.mask;
        }
    }
    0
}

fn apply(signal: c_int, wish: Wish) {
    match wish.handler {
        libc::SIG_DFL if death::kills(signal) => install(signal, libc::SA_ONSTACK, 0),
        libc::SIG_DFL | libc::SIG_IGN => uninstall(signal, wish.handler),
        _ => install(signal, wish.flags & !libc::SA_RESETHAND, wish.mask),
    }
}

extern "C" fn signal_inner(signal: c_int, handler: sighandler_t) -> sighandler_t {
    if shared::mode() == shared::OFF || !(1..N as c_int).contains(&signal) {
        return real!(signal(signal => c_int, handler => sighandler_t) -> sighandler_t);
    }
    let wish = Wish { handler, flags: libc::SA_RESTART, mask: 0 };
    let before = core::mem::replace(&mut WISHES.lock()[signal as usize], wish);
    apply(signal, wish);
    before.handler
}

/// Signals that the running thread has blocked, by the kernel's word.
pub(super) fn blocked() -> u64 {
    let mut mask = 0u64;
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, &raw mut mask, 8);
    mask
}

/// Keeps the scheduler's copy of the mask, and delivers what was waiting for it to change.
pub(super) fn mask_changed() {
    if let Some(me) = hook::me() {
        SCHED.lock().threads[me as usize].mask = blocked();
        if tls::get(tls::SIGNALS) != 0 {
            deliver();
        }
    }
}

extern "C" fn sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    let status =
        real!(pthread_sigmask(how => c_int, new => *const sigset_t, old => *mut sigset_t) -> c_int);
    mask_changed();
    status
}

extern "C" fn procmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    let status =
        real!(sigprocmask(how => c_int, new => *const sigset_t, old => *mut sigset_t) -> c_int);
    mask_changed();
    result(i64::from(status)) as c_int
}
