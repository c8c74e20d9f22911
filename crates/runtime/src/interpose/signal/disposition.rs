//! Signal dispositions and masks.

use libc::{c_int, sigaction as Action, sighandler_t, sigset_t};

use super::super::{fail, result};
use super::{death, install};
use crate::export::export;
use crate::real::real;
use crate::sched::{self, SCHED};
use crate::signals::{DISPOSITIONS, Disposition, N, bit, uninstall};
use crate::{hook, shared, sys, tls};

export! {
    sigaction => sigaction_inner;
    __sigaction => sigaction_inner;
    signal => signal_inner;
    pthread_sigmask => sigmask;
    sigprocmask => procmask;
}

extern "C" fn sigaction_inner(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    if shared::mode() == shared::OFF || !(1..N as c_int).contains(&signal) {
        return real!(sigaction(signal => c_int, new => *const Action, old => *mut Action) -> c_int);
    }
    let before = DISPOSITIONS.lock()[signal as usize];
    if !new.is_null() {
        // SAFETY: the program's action.
        let new = unsafe { &*new };
        if signal == libc::SIGKILL || signal == libc::SIGSTOP {
            return fail(libc::EINVAL);
        }
        // SAFETY: a set begins with the kernel's 64 bits.
        let mask = unsafe { *(&raw const new.sa_mask).cast::<u64>() };
        let disposition = Disposition { handler: new.sa_sigaction, flags: new.sa_flags, mask };
        DISPOSITIONS.lock()[signal as usize] = disposition;
        apply(signal, disposition);
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

fn apply(signal: c_int, disposition: Disposition) {
    match disposition.handler {
        libc::SIG_DFL if death::kills(signal) => install(signal, libc::SA_ONSTACK, 0),
        libc::SIG_DFL | libc::SIG_IGN => uninstall(signal, disposition.handler),
        _ => install(signal, disposition.flags & !libc::SA_RESETHAND, disposition.mask),
    }
}

extern "C" fn signal_inner(signal: c_int, handler: sighandler_t) -> sighandler_t {
    if shared::mode() == shared::OFF || !(1..N as c_int).contains(&signal) {
        return real!(signal(signal => c_int, handler => sighandler_t) -> sighandler_t);
    }
    let disposition = Disposition { handler, flags: libc::SA_RESTART, mask: 0 };
    let before = core::mem::replace(&mut DISPOSITIONS.lock()[signal as usize], disposition);
    apply(signal, disposition);
    before.handler
}

/// The signals that the running thread blocks, according to the kernel.
pub(super) fn blocked() -> u64 {
    let mut mask = 0u64;
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, &raw mut mask, 8);
    mask
}

/// Updates the scheduler's copy of the mask, and delivers signals that were waiting for the
/// change.
pub(in crate::interpose) fn mask_changed() {
    if let Some(me) = hook::me() {
        let mut sched = SCHED.lock();
        let before = core::mem::replace(&mut sched.threads[me as usize].mask, blocked());
        let is_unblocked = before & !sched.threads[me as usize].mask & bit(libc::SIGCHLD) != 0;
        drop(sched);
        if is_unblocked {
            sched::rest();
        }
        if tls::get(tls::SIGNALS) != 0 {
            sched::deliver();
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
