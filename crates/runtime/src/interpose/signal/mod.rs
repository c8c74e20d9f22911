//! Signals.
//!
//! The program's handlers are called by ours. A signal that reports what the thread itself
//! just did (a fault, an abort, `raise`) is handled on the spot. Any other may arrive while
//! we hold the scheduler's lock or the thread has not the turn, so it is noted, and the
//! handler is called at the thread's next step, with the turn.
//!
//! For a fault without a handler the place is noted, and the default action taken.

mod death;
mod send;
mod wait;
mod wish;

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, siginfo_t};
use raddle_trace::record::Kind;

pub(super) use self::death::note_place;
use self::wish::{WISHES, Wish};
use crate::guarded::Guarded;
use crate::sched::SCHED;
use crate::{hook, shared, sys, tls};

/// Signals have numbers below this.
const N: usize = 65;

/// Memory of a thread for its signals: a stack for its last words, and behind it the
/// descriptions of signals that were put off.
const STACK_BYTES: usize = 32 << 10;
const INFO_BYTES: usize = 128;
const AREA_BYTES: usize = STACK_BYTES + N * INFO_BYTES;

static AREAS: Guarded<alloc::vec::Vec<usize>> = Guarded::new(alloc::vec::Vec::new());

/// Installs our handlers for what kills a program.
pub(crate) fn start() {
    death::install_all();
    begin();
}

/// Gives the running thread its memory for signals.
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

/// Takes it back.
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

/// Where the description of a signal that is put off is kept.
fn info_in(area: u64, signal: c_int) -> *mut siginfo_t {
    (area + STACK_BYTES as u64 + signal as u64 * INFO_BYTES as u64) as *mut siginfo_t
}

const _: () = assert!(size_of::<siginfo_t>() <= INFO_BYTES);

fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Our handler of every signal for which the program has one, and of those that kill.
extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a description.
    let sent = unsafe { (*info).si_code } <= 0;
    let own = death::kills(signal) && (!sent || signal == libc::SIGABRT);
    let now = own || tls::get(tls::SIGNALS_NOW) != 0;
    if !now && shared::controlled() && tls::thread().is_some() {
        put_off(signal, info);
        return;
    }
    let wish = WISHES.lock()[signal as usize];
    if own && shared::mode() != shared::OFF {
        death::note(signal, info, context, wish.handler);
    }
    match wish.handler {
        libc::SIG_DFL => {
            wish::uninstall(signal, libc::SIG_DFL);
            if sent {
                sys::tgkill(sys::gettid(), signal);
            }
        }
        libc::SIG_IGN => {}
        _ => {
            // The handler is the program's code: what it is sent is put off again.
            let before = tls::get(tls::SIGNALS_NOW);
            tls::set(tls::SIGNALS_NOW, 0);
            call(wish, signal, info, context);
            tls::set(tls::SIGNALS_NOW, before);
        }
    }
}

fn call(wish: Wish, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    if wish.flags & libc::SA_RESETHAND != 0 {
        WISHES.lock()[signal as usize].handler = libc::SIG_DFL;
        wish::uninstall(signal, libc::SIG_DFL);
    }
    if wish.flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the program's handler, of the type that its flags say.
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
            unsafe { core::mem::transmute(wish.handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: the program's handler, of the type that its flags say.
        let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(wish.handler) };
        handler(signal);
    }
}

/// Notes a signal for the thread's next step. A second one of the same number, before the
/// first was handled, is merged with it, as POSIX has it.
fn put_off(signal: c_int, info: *mut siginfo_t) {
    let area = tls::get(tls::SIGNAL_AREA);
    if area != 0 {
        // SAFETY: the kernel's description, and a place that is this thread's own.
        unsafe { *info_in(area, signal) = *info };
    }
    tls::set(tls::SIGNALS, tls::get(tls::SIGNALS) | bit(signal));
    // The next access takes the slow path.
    if tls::get(tls::TURN) == 1 {
        let left = tls::get(tls::COUNTDOWN);
        tls::set(tls::BUDGET, tls::get(tls::BUDGET).saturating_sub(left));
        tls::set(tls::COUNTDOWN, 0);
    }
}

/// Notes a signal of a timer for a thread that has not the turn, or is deciding who gets it.
/// If it has no handler, the kernel is to deal with it, and the answer is no.
pub(crate) fn note_for(thread_words: Option<u64>, signal: c_int) -> bool {
    let handled = WISHES.lock()[signal as usize].handler > libc::SIG_IGN;
    let Some(words) = thread_words.filter(|&words| words != 0 && handled) else {
        sys::syscall!(libc::SYS_kill, sys::getpid(), signal);
        return false;
    };
    // SAFETY: the thread lives, and so does its thread-local block.
    let word = |word: usize| unsafe { &*((words + word as u64) as *const AtomicU64) };
    let area = word(tls::SIGNAL_AREA).load(Ordering::Relaxed);
    if area != 0 {
        // SAFETY: all zeros is a valid siginfo.
        let mut info: siginfo_t = unsafe { core::mem::zeroed() };
        (info.si_signo, info.si_code) = (signal, libc::SI_TIMER);
        // SAFETY: a place that is that thread's own; it sleeps.
        unsafe { *info_in(area, signal) = info };
    }
    word(tls::SIGNALS).fetch_or(bit(signal), Ordering::Release);
    true
}

/// Calls the handlers that are due. The thread has the turn.
pub(crate) fn deliver() {
    let mut restarts = true;
    loop {
        let due = tls::get(tls::SIGNALS);
        if due == 0 {
            break;
        }
        let signal = due.trailing_zeros() as c_int + 1;
        tls::set(tls::SIGNALS, due & (due - 1));
        let wish = WISHES.lock()[signal as usize];
        if wish.handler > libc::SIG_IGN {
            restarts &= wish.flags & libc::SA_RESTART != 0;
            if let Some(me) = tls::thread() {
                let mut sched = SCHED.lock();
                let thread = &mut sched.threads[me as usize];
                thread.interrupted = tls::get(tls::SIGNALS) != 0;
                thread.restarts = restarts;
            }
            hook::record(Kind::Signal, signal as u8, 0, 0, 0, &[]);
            // SAFETY: all zeros is a valid siginfo.
            let mut info: siginfo_t = unsafe { core::mem::zeroed() };
            let area = tls::get(tls::SIGNAL_AREA);
            if area != 0 {
                // SAFETY: written when the signal was put off.
                info = unsafe { *info_in(area, signal) };
            }
            // SAFETY: all zeros is a valid context; there is no interrupted place to describe.
            let mut context: libc::ucontext_t = unsafe { core::mem::zeroed() };
            call(wish, signal, &raw mut info, (&raw mut context).cast());
        }
    }
    if let Some(me) = tls::thread() {
        SCHED.lock().threads[me as usize].interrupted = false;
    }
}
