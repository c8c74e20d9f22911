//! Signals.
//!
//! Our handlers call the program's. A signal caused by the thread itself (a fault, an abort,
//! `raise`) is handled immediately. Any other may arrive while we hold the scheduler's lock or
//! the thread does not hold the turn, so it is deferred, and the handler is called at the
//! thread's next step, with the turn.
//!
//! For a fault without a handler, the location is recorded and the default action taken.

pub(super) mod child;
mod death;
mod send;
mod wait;
mod disposition;

pub(super) use self::disposition::mask_changed;
pub(super) use self::wait::pause_inner;

use core::ffi::c_void;

use libc::{c_int, sigaction as Action, siginfo_t};
use raddle_trace::control::Outside;

use crate::guarded::Guarded;
use crate::handler::Arrival;
use crate::real::real;
use crate::sched::SCHED;
use crate::signals::{self, AREA_BYTES, DISPOSITIONS, STACK_BYTES};
use crate::{shared, sys, tls};

static AREAS: Guarded<alloc::vec::Vec<usize>> = Guarded::new(alloc::vec::Vec::new());

/// Installs our handlers for signals that kill a program.
pub(crate) fn start() {
    death::install_all();
    begin();
}

/// Allocates the running thread's memory for signals.
pub(crate) fn begin() {
    let area = AREAS.lock().pop().unwrap_or_else(|| sys::map_anonymous(AREA_BYTES) as usize);
    if area == 0 {
        return;
    }
    tls::set(tls::SIGNAL_AREA, area as u64);
    let mut old = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    sys::syscall!(libc::SYS_sigaltstack, 0, &raw mut old);
    if old.ss_flags & libc::SS_DISABLE != 0 {
        let new = libc::stack_t { ss_sp: area as *mut c_void, ss_flags: 0, ss_size: STACK_BYTES };
        sys::syscall!(libc::SYS_sigaltstack, &raw const new, 0);
    }
}

/// Frees it.
pub(crate) fn end() {
    let area = tls::get(tls::SIGNAL_AREA) as usize;
    if area == 0 {
        return;
    }
    let mut old = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    sys::syscall!(libc::SYS_sigaltstack, 0, &raw mut old);
    if old.ss_sp as usize == area {
        let none =
            libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        sys::syscall!(libc::SYS_sigaltstack, &raw const none, 0);
    }
    tls::set(tls::SIGNAL_AREA, 0);
    AREAS.lock().push(area);
}

/// Our handler for every signal for which the program has one, and for those that kill.
extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a description.
    let sent = unsafe { (*info).si_code } <= 0;
    let own = death::kills(signal) && (!sent || signal == libc::SIGABRT);
    let is_ended_child = signal == libc::SIGCHLD && shared::controlled();
    if is_ended_child && child::is_withheld(info) {
        return;
    }
    let now = own || tls::get(tls::SIGNALS_NOW) != 0;
    if !now && shared::controlled() && tls::thread().is_some() {
        if is_from_outside(info) {
            shared::blame(Outside::Signal, 0);
        }
        signals::put_off(signal, info);
        return;
    }
    let disposition = DISPOSITIONS.lock()[signal as usize];
    if own && shared::mode() != shared::OFF {
        death::record(signal, info, context, disposition.handler);
    }
    match disposition.handler {
        libc::SIG_DFL => {
            signals::uninstall(signal, libc::SIG_DFL);
            if sent {
                sys::tgkill(sys::gettid(), signal);
            }
        }
        libc::SIG_IGN => {}
        _ => {
            // The handler is the program's code: signals sent to it are deferred again.
            let before = tls::get(tls::SIGNALS_NOW);
            tls::set(tls::SIGNALS_NOW, 0);
            // If the stack has overflowed in the scheduler, nobody will release its lock: what the
            // handler calls must not wait for it.
            let quiet = tls::get(tls::QUIET);
            if own && !sent && SCHED.try_lock().is_none() {
                tls::set(tls::QUIET, 1);
            }
            let arrival = if now { Arrival::Synchronous } else { Arrival::Asynchronous };
            death::while_interrupted(context, || {
                signals::call(disposition, signal, info, context, arrival);
            });
            tls::set(tls::QUIET, quiet);
            tls::set(tls::SIGNALS_NOW, before);
        }
    }
}

/// Whether another process has sent a signal.
fn is_from_outside(info: *const siginfo_t) -> bool {
    // SAFETY: the kernel passes a description.
    let info = unsafe { &*info };
    let has_sender = [libc::SI_USER, libc::SI_QUEUE, libc::SI_TKILL].contains(&info.si_code);
    // SAFETY: the description of such a signal has the sender's id.
    has_sender && unsafe { info.si_pid() } as u32 != sys::getpid()
}

/// Installs our handler for a signal.
fn install(signal: c_int, flags: c_int, mask: u64) {
    // SAFETY: all zeros is a valid sigaction.
    let mut action: Action = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags | libc::SA_SIGINFO;
    // SAFETY: a set begins with the kernel's 64 bits.
    unsafe { *(&raw mut action.sa_mask).cast::<u64>() = mask };
    // libc's function, since it adds the code that returns from a handler.
    real!(sigaction(signal => c_int, &raw const action => *const Action, core::ptr::null_mut() => *mut Action) -> c_int);
}
