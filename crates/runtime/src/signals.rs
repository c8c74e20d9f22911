//! Deferred signals, and the program's signal dispositions.
//!
//! [`crate::interpose`] decides when a signal is deferred until its thread's next step; the
//! thread that holds the turn then calls its handlers.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, sigaction as Action, sighandler_t, siginfo_t};

use crate::guarded::Guarded;
use crate::handler::Arrival;
use crate::real::real;
use crate::{handler, sys, tls};

/// Signals have numbers below this.
pub(crate) const N: usize = 65;

/// A thread's memory for signals: a stack for fatal signals, followed by the descriptions of
/// deferred signals, and the stack pointer of the code that a handler interrupted.
pub(crate) const STACK_BYTES: usize = 32 << 10;
const INFO_BYTES: usize = 128;
pub(crate) const INTERRUPTED_AT: usize = STACK_BYTES + N * INFO_BYTES;
pub(crate) const AREA_BYTES: usize = INTERRUPTED_AT + 8;

/// What the program wants to happen on a signal, as in `sigaction`.
#[derive(Clone, Copy)]
pub(crate) struct Disposition {
    pub(crate) handler: sighandler_t,
    pub(crate) flags: c_int,
    pub(crate) mask: u64,
}

pub(crate) static DISPOSITIONS: Guarded<[Disposition; N]> =
    Guarded::new([Disposition { handler: libc::SIG_DFL, flags: 0, mask: 0 }; N]);

/// Whether a signal from outside may call a handler of the program's. Faults do not count: nobody
/// sends them.
pub(crate) fn may_be_handled() -> bool {
    const FAULTS: [c_int; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];
    let Some(dispositions) = DISPOSITIONS.try_lock() else { return true };
    (1..).zip(&dispositions[1..]).any(|(signal, disposition)| {
        !matches!(disposition.handler, libc::SIG_DFL | libc::SIG_IGN) && !FAULTS.contains(&signal)
    })
}

/// Restores the default action of a signal, or ignores it.
pub(crate) fn uninstall(signal: c_int, handler: usize) {
    // SAFETY: all zeros is a valid sigaction.
    let mut action: Action = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler;
    real!(sigaction(signal => c_int, &raw const action => *const Action, core::ptr::null_mut() => *mut Action) -> c_int);
}

/// Where the description of a deferred signal is kept.
fn info_in(area: u64, signal: c_int) -> *mut siginfo_t {
    (area + STACK_BYTES as u64 + signal as u64 * INFO_BYTES as u64) as *mut siginfo_t
}

const _: () = assert!(size_of::<siginfo_t>() <= INFO_BYTES);

/// The bit of a signal in a set.
pub(crate) fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Calls the program's handler of a signal.
pub(crate) fn call(
    disposition: Disposition,
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
    arrival: Arrival,
) {
    if disposition.flags & libc::SA_RESETHAND != 0 {
        DISPOSITIONS.lock()[signal as usize].handler = libc::SIG_DFL;
        uninstall(signal, libc::SIG_DFL);
    }
    // SAFETY: the kernel's description, or a copy of it.
    let code = unsafe { (*info).si_code };
    handler::run(disposition.handler, signal, code, arrival, || {
        call_as_declared(disposition, signal, info, context);
    });
}

fn call_as_declared(
    disposition: Disposition,
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    if disposition.flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the program's handler, of the type that its flags say.
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
            unsafe { core::mem::transmute(disposition.handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: the program's handler, of the type that its flags say.
        let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(disposition.handler) };
        handler(signal);
    }
}

/// Real-time signals that arrived while another with the same number was deferred: those are not
/// merged but queued, as in POSIX. A handler may add to it, so it never allocates.
static QUEUE: Guarded<Queue> = Guarded::new(Queue { entries: [const { None }; QUEUED_MAX], n: 0 });

/// More than this many are merged.
const QUEUED_MAX: usize = 256;
/// The kernel's first real-time signal.
const FIRST_QUEUED: c_int = 32;

/// What a handler is told about a signal.
#[derive(Clone, Copy)]
struct Info(siginfo_t);

// SAFETY: its pointers are values that the sender or the kernel chose; nobody follows them here.
unsafe impl Send for Info {}

struct Queue {
    /// The thread's words and the signal, in the order of arrival; none from `n` on.
    entries: [Option<(u64, Info)>; QUEUED_MAX],
    n: usize,
}

impl Queue {
    fn push(&mut self, thread_words: u64, info: siginfo_t) {
        if let Some(entry) = self.entries.get_mut(self.n) {
            *entry = Some((thread_words, Info(info)));
            self.n += 1;
        }
    }

    /// Removes the thread's first signal with this number.
    fn take(&mut self, thread_words: u64, signal: c_int) -> Option<siginfo_t> {
        let is_it = |entry: &Option<(u64, Info)>| {
            entry.is_some_and(|(words, info)| words == thread_words && info.0.si_signo == signal)
        };
        let at = self.entries[..self.n].iter().position(is_it)?;
        let (_, info) = self.entries[at].take()?;
        self.entries[at..self.n].rotate_left(1);
        self.n -= 1;
        Some(info.0)
    }
}

/// Defers a signal to the thread's next step. A second one with the same number, before the first
/// was handled, is merged with it, as in POSIX.
pub(crate) fn put_off(signal: c_int, info: *mut siginfo_t) {
    let is_second = tls::get(tls::SIGNALS) & bit(signal) != 0;
    if is_second && signal >= FIRST_QUEUED {
        // If the thread is just looking into the queue, the two are merged.
        if let Some(mut queue) = QUEUE.try_lock() {
            // SAFETY: the kernel's description.
            queue.push(tls::address(), unsafe { *info });
        }
        return;
    }
    let area = tls::get(tls::SIGNAL_AREA);
    if area != 0 {
        // SAFETY: the kernel's description, and a place that is this thread's own.
        unsafe { *info_in(area, signal) = *info };
    }
    signals_due().fetch_or(bit(signal), Ordering::Relaxed);
    // The next access takes the slow path.
    if tls::get(tls::TURN) == 1 {
        let left = tls::get(tls::COUNTDOWN);
        tls::set(tls::BUDGET, tls::get(tls::BUDGET).saturating_sub(left));
        tls::set(tls::COUNTDOWN, 0);
    }
}

/// Defers a signal for a thread that does not hold the turn, or is deciding who gets it. Returns
/// false if there is no handler; then the kernel handles it.
pub(crate) fn note_for(thread_words: Option<u64>, info: &siginfo_t) -> bool {
    let signal = info.si_signo;
    let handled = DISPOSITIONS.lock()[signal as usize].handler > libc::SIG_IGN;
    let Some(words) = thread_words.filter(|&words| words != 0 && handled) else {
        sys::syscall!(libc::SYS_kill, sys::getpid(), signal);
        return false;
    };
    // SAFETY: the thread lives, and so does its thread-local block.
    let word = |word: usize| unsafe { &*((words + word as u64) as *const AtomicU64) };
    let is_second = word(tls::SIGNALS).load(Ordering::Relaxed) & bit(signal) != 0;
    if is_second && signal >= FIRST_QUEUED {
        QUEUE.lock().push(words, *info);
        return true;
    }
    let area = word(tls::SIGNAL_AREA).load(Ordering::Relaxed);
    if area != 0 {
        // SAFETY: a place that is that thread's own; it sleeps.
        unsafe { *info_in(area, signal) = *info };
    }
    word(tls::SIGNALS).fetch_or(bit(signal), Ordering::Release);
    true
}

/// Whether the program has a handler for a signal.
pub(crate) fn is_handled(signal: c_int) -> bool {
    let dispositions = DISPOSITIONS.lock();
    let disposition = usize::try_from(signal).ok().and_then(|signal| dispositions.get(signal));
    disposition.is_some_and(|disposition| disposition.handler > libc::SIG_IGN)
}

/// Whether handlers are due for the thread with these thread-local words.
pub(crate) fn are_due(thread_words: u64) -> bool {
    // SAFETY: the thread lives, and so does its thread-local block.
    let word = || unsafe { &*((thread_words + tls::SIGNALS as u64) as *const AtomicU64) };
    thread_words != 0 && word().load(Ordering::Acquire) != 0
}

/// What a handler is told about a signal that has no sender.
pub(crate) fn info_of(signal: c_int, code: c_int) -> siginfo_t {
    // SAFETY: all zeros is a valid siginfo.
    let mut info: siginfo_t = unsafe { core::mem::zeroed() };
    (info.si_signo, info.si_code) = (signal, code);
    info
}

/// A signal whose handler is to be called.
pub(crate) struct Due {
    pub(crate) signal: c_int,
    disposition: Disposition,
    info: siginfo_t,
}

/// Removes the next signal that is due for the running thread.
pub(crate) fn take_due() -> Option<Due> {
    loop {
        let due = tls::get(tls::SIGNALS);
        if due == 0 {
            return None;
        }
        let signal = due.trailing_zeros() as c_int + 1;
        signals_due().fetch_and(!bit(signal), Ordering::Relaxed);
        let disposition = DISPOSITIONS.lock()[signal as usize];
        if disposition.handler <= libc::SIG_IGN {
            continue;
        }
        // SAFETY: all zeros is a valid siginfo.
        let mut info: siginfo_t = unsafe { core::mem::zeroed() };
        let area = tls::get(tls::SIGNAL_AREA);
        if area != 0 {
            // SAFETY: written when the signal was put off.
            info = unsafe { *info_in(area, signal) };
        }
        let queued = QUEUE.lock().take(tls::address(), signal);
        if let Some(next) = queued {
            if area != 0 {
                // SAFETY: a place that is this thread's own.
                unsafe { *info_in(area, signal) = next };
            }
            signals_due().fetch_or(bit(signal), Ordering::Relaxed);
        }
        return Some(Due { signal, disposition, info });
    }
}

impl Due {
    /// Whether the interrupted call is to be restarted.
    pub(crate) fn restarts(&self) -> bool {
        self.disposition.flags & libc::SA_RESTART != 0
    }

    /// Blocks what the handler must not be interrupted by, also signals that are due already.
    pub(crate) fn block(&self) -> Blocked {
        let is_deferred = self.disposition.flags & libc::SA_NODEFER == 0;
        let own = if is_deferred { bit(self.signal) } else { 0 };
        let (new, mut before) = (self.disposition.mask | own, 0u64);
        let (new_at, before_at) = (&raw const new, &raw mut before);
        sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, new_at, before_at, 8);
        let during = before | new;
        let withheld = signals_due().fetch_and(!during, Ordering::Relaxed) & during;
        Blocked { before, during, withheld }
    }

    /// Calls the handler.
    pub(crate) fn handle(mut self) {
        // SAFETY: all zeros is a valid context; there is no interrupted place to describe.
        let mut context: libc::ucontext_t = unsafe { core::mem::zeroed() };
        let context = (&raw mut context).cast();
        let arrival = Arrival::Asynchronous;
        call(self.disposition, self.signal, &raw mut self.info, context, arrival);
    }
}

/// What a thread blocks while it runs a handler.
pub(crate) struct Blocked {
    /// What it blocked before.
    pub(crate) before: u64,
    /// What it blocks now.
    pub(crate) during: u64,
    /// Signals that were due.
    withheld: u64,
}

impl Blocked {
    /// The handler has returned.
    pub(crate) fn unblock(self) {
        // First, or one of those that now arrive would take the place of one that was due.
        signals_due().fetch_or(self.withheld, Ordering::Relaxed);
        let before = &raw const self.before;
        sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, before, 0, 8);
    }
}

/// The running thread's deferred signals, which its own handlers change at any time.
fn signals_due() -> &'static AtomicU64 {
    // SAFETY: the thread's own word, which lives as long as the thread, and nobody else keeps this
    // reference.
    unsafe { &*((tls::address() + tls::SIGNALS as u64) as *const AtomicU64) }
}
