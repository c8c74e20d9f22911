//! Signals.
//!
//! The program's handlers are called by ours. A signal that reports what the thread itself
//! just did (a fault, an abort) is handled on the spot. Any other may arrive while we hold
//! the scheduler's lock or the thread has not the turn, so it is noted, and the handler is
//! called at the thread's next step, with the turn.
//!
//! For a fault without a handler the place is noted, and the default action taken.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, pid_t, pthread_t, sigaction as Action, sighandler_t, siginfo_t, sigset_t};
use raddle_trace::control::Ending;
use raddle_trace::record::Kind;

use super::{fail, result};
use crate::abi::stub::{export, export_cancellable};
use crate::guarded::Guarded;
use crate::real::real;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{hook, lane, shared, sys, tls};

export! {
    sigaction => sigaction_inner;
    __sigaction => sigaction_inner;
    signal => signal_inner;
    raise => raise_inner;
    pthread_kill => kill_thread;
    kill => kill_process;
}

export_cancellable! {
    pause => pause_inner;
    sigsuspend => sigsuspend_inner;
    sigwait => sigwait_inner;
    sigwaitinfo => sigwaitinfo_inner;
    sigtimedwait => sigtimedwait_inner;
}

const N: usize = 65;

/// What the program wants done.
#[derive(Clone, Copy)]
struct Wish {
    handler: sighandler_t,
    flags: c_int,
    mask: u64,
}

static WISHES: Guarded<[Wish; N]> = Guarded::new([Wish { handler: libc::SIG_DFL, flags: 0, mask: 0 }; N]);

/// Where the program called `abort`, or failed an assertion.
static PLACE: AtomicU64 = AtomicU64::new(0);

const FATAL: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP, libc::SIGSYS];

/// Notes the place of what will raise a signal.
pub(super) fn note_place(pc: u64) {
    PLACE.store(pc, Ordering::Relaxed);
}

/// The kernel's own layout of `sigaction`.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Installs our handlers for what kills a program.
pub(crate) fn start() {
    for signal in FATAL {
        let mut old = KernelAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
        sys::syscall!(libc::SYS_rt_sigaction, signal, 0, &raw mut old, 8);
        if old.handler == libc::SIG_DFL {
            install(signal, libc::SA_ONSTACK | libc::SA_SIGINFO, 0);
        } else {
            WISHES.lock()[signal as usize] = Wish { handler: old.handler, flags: old.flags as c_int, mask: old.mask };
        }
    }
    begin();
}

/// Gives the running thread a stack for its last words, unless it has one.
pub(crate) fn begin() {
    const BYTES: usize = 32 << 10;
    let mut old = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    sys::syscall!(libc::SYS_sigaltstack, 0, &raw mut old);
    if old.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }
    let stack = STACKS.lock().pop().unwrap_or_else(|| sys::map_anonymous(BYTES) as usize);
    if stack != 0 {
        let new = libc::stack_t { ss_sp: stack as *mut c_void, ss_flags: 0, ss_size: BYTES };
        sys::syscall!(libc::SYS_sigaltstack, &raw const new, 0);
        tls::set(tls::ALT_STACK, stack as u64);
    }
}

static STACKS: Guarded<alloc::vec::Vec<usize>> = Guarded::new(alloc::vec::Vec::new());

/// Takes the stack back.
pub(crate) fn end() {
    let stack = tls::get(tls::ALT_STACK) as usize;
    if stack != 0 {
        let none = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        sys::syscall!(libc::SYS_sigaltstack, &raw const none, 0);
        tls::set(tls::ALT_STACK, 0);
        STACKS.lock().push(stack);
    }
}

fn install(signal: c_int, flags: c_int, mask: u64) {
    // SAFETY: all zeros is a valid sigaction.
    let mut action: Action = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = flags | libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: a set begins with the kernel's 64 bits.
    unsafe { *(&raw mut action.sa_mask).cast::<u64>() = mask };
    // libc's, since it adds the code that returns from a handler.
    real!(sigaction(signal => c_int, &raw const action => *const Action, core::ptr::null_mut() => *mut Action) -> c_int);
}

fn uninstall(signal: c_int, handler: usize) {
    // SAFETY: all zeros is a valid sigaction.
    let mut action: Action = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler;
    real!(sigaction(signal => c_int, &raw const action => *const Action, core::ptr::null_mut() => *mut Action) -> c_int);
}

extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a description.
    let sent = unsafe { (*info).si_code } <= 0;
    let own = FATAL.contains(&signal) && (!sent || signal == libc::SIGABRT);
    if !own && shared::controlled() && tls::thread().is_some() {
        put_off(signal);
        return;
    }
    let wish = WISHES.lock()[signal as usize];
    if own && shared::mode() != shared::OFF {
        note_death(signal, info, context, wish.handler);
    }
    match wish.handler {
        libc::SIG_DFL => {
            uninstall(signal, libc::SIG_DFL);
            if sent {
                sys::tgkill(sys::gettid(), signal);
            }
        }
        libc::SIG_IGN => {}
        _ => call(wish, signal, info, context),
    }
}

fn call(wish: Wish, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    if wish.flags & libc::SA_RESETHAND != 0 {
        WISHES.lock()[signal as usize].handler = libc::SIG_DFL;
        uninstall(signal, libc::SIG_DFL);
    }
    if wish.flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the program's handler, of the type that its flags say.
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = unsafe { core::mem::transmute(wish.handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: the program's handler, of the type that its flags say.
        let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(wish.handler) };
        handler(signal);
    }
}

/// The thread did something that kills the program, unless it has a handler.
fn note_death(signal: c_int, info: *mut siginfo_t, context: *mut c_void, handler: usize) {
    // SAFETY: the kernel passes the registers as they were.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let place = PLACE.load(Ordering::Relaxed);
    // A return address points behind its instruction, and so do all places of ours.
    let pc = if signal == libc::SIGABRT && place != 0 { place } else { registers[libc::REG_RIP as usize] as u64 + 1 };
    // SAFETY: a fault's description has its address.
    let address = if signal == libc::SIGABRT { 0 } else { unsafe { (*info).si_addr() as u64 } };
    if tls::get(tls::TURN) == 1 && shared::mode() == shared::TRACE {
        lane::append_all(Kind::Signal, signal as u8, address, 0, pc, &[]);
    }
    if handler != libc::SIG_DFL {
        return;
    }
    let control = shared::control();
    if control.ending.load(Ordering::Relaxed) == Ending::None as u32 {
        control.thread.store(tls::thread().unwrap_or(0), Ordering::Relaxed);
        control.pc.store(pc, Ordering::Relaxed);
        control.addr.store(address, Ordering::Relaxed);
        control.code.store(signal, Ordering::Relaxed);
        shared::fail(Ending::Signal, b"");
    }
}

/// Notes the signal. A second one of the same number, before the first was handled, is
/// merged with it, as POSIX has it; the description is lost.
fn put_off(signal: c_int) {
    tls::set(tls::SIGNALS, tls::get(tls::SIGNALS) | 1 << (signal - 1));
    // The next access takes the slow path.
    if tls::get(tls::TURN) == 1 {
        let left = tls::get(tls::COUNTDOWN);
        tls::set(tls::BUDGET, tls::get(tls::BUDGET).saturating_sub(left));
        tls::set(tls::COUNTDOWN, 0);
    }
}

/// Calls the handlers that are due. The thread has the turn.
pub(crate) fn deliver() {
    loop {
        let due = tls::get(tls::SIGNALS);
        if due == 0 {
            break;
        }
        let signal = due.trailing_zeros() as c_int + 1;
        tls::set(tls::SIGNALS, due & (due - 1));
        if let Some(me) = tls::thread() {
            SCHED.lock().threads[me as usize].interrupted = tls::get(tls::SIGNALS) != 0;
        }
        let wish = WISHES.lock()[signal as usize];
        if wish.handler == libc::SIG_DFL || wish.handler == libc::SIG_IGN {
            continue;
        }
        hook::record(Kind::Signal, signal as u8, 0, 0, 0, &[]);
        // SAFETY: all zeros is a valid siginfo.
        let mut info: siginfo_t = unsafe { core::mem::zeroed() };
        info.si_signo = signal;
        info.si_code = libc::SI_TKILL;
        // SAFETY: all zeros is a valid context.
        let mut context: libc::ucontext_t = unsafe { core::mem::zeroed() };
        call(wish, signal, &raw mut info, (&raw mut context).cast());
    }
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
        libc::SIG_DFL if FATAL.contains(&signal) => install(signal, libc::SA_SIGINFO, 0),
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

extern "C" fn raise_inner(signal: c_int) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
        if FATAL.contains(&signal) {
            note_place(pc);
        }
        let status = result(sys::tgkill(sys::gettid(), signal)) as c_int;
        deliver();
        return status;
    }
    result(sys::tgkill(sys::gettid(), signal)) as c_int
}

extern "C" fn kill_thread(thread: pthread_t, signal: c_int) -> c_int {
    let pc = hook::caller();
    let real_kill = || real!(pthread_kill(thread => pthread_t, signal => c_int) -> c_int);
    let Some(me) = hook::me() else { return real_kill() };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    // SAFETY: asks for the calling thread's own name.
    if thread == unsafe { libc::pthread_self() } {
        let status = real_kill();
        deliver();
        return status;
    }
    let other = SCHED.lock().by_pthread(thread as u64);
    let status = real_kill();
    let handled = signal > 0 && WISHES.lock().get(signal as usize).is_some_and(|wish| wish.handler > 1);
    if let (0, true, Some(other)) = (status, handled, other) {
        await_notice(other, signal);
    }
    status
}

/// Waits until the other thread, which sleeps, has noted the signal: then the order of
/// events does not depend on how fast the kernel is. It may have blocked the signal, so the
/// wait is short.
fn await_notice(other: u32, signal: c_int) {
    for _ in 0..2000 {
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
        if signals.load(Ordering::Acquire) & 1 << (signal - 1) != 0 {
            SCHED.lock().threads[other as usize].interrupted = true;
            return;
        }
        sys::sched_yield();
    }
}

extern "C" fn kill_process(process: pid_t, signal: c_int) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me() else {
        return result(sys::syscall!(libc::SYS_kill, process, signal)) as c_int;
    };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    if process as u32 == sys::getpid() && signal != 0 {
        // Any thread may get it; the same one each time is this one.
        let status = result(sys::tgkill(sys::gettid(), signal)) as c_int;
        deliver();
        return status;
    }
    result(sys::syscall!(libc::SYS_kill, process, signal)) as c_int
}

extern "C" fn pause_inner() -> c_int {
    let pc = hook::caller();
    match hook::me() {
        Some(me) => {
            hook::sync(me, pc, Wait::Signal, NEVER);
            fail(libc::EINTR)
        }
        None => result(sys::syscall!(libc::SYS_pause)) as c_int,
    }
}

/// Calls that take a signal themselves are the kernel's business; others run meanwhile.
fn take(call: impl Fn() -> i64) -> i64 {
    let pc = hook::caller();
    match hook::me() {
        Some(me) => {
            let status = sched::outside(me, pc, call);
            hook::sync(me, pc, Wait::Nothing, NEVER);
            status
        }
        None => call(),
    }
}

extern "C" fn sigsuspend_inner(mask: *const sigset_t) -> c_int {
    result(take(|| sys::syscall!(libc::SYS_rt_sigsuspend, mask, 8))) as c_int
}

extern "C" fn sigwait_inner(set: *const sigset_t, signal: *mut c_int) -> c_int {
    loop {
        let number = take(|| sys::syscall!(libc::SYS_rt_sigtimedwait, set, 0, 0, 8));
        if number > 0 {
            // SAFETY: where the program wants it.
            unsafe { *signal = number as c_int };
            return 0;
        }
        if number != i64::from(-libc::EINTR) {
            return -number as c_int;
        }
    }
}

extern "C" fn sigwaitinfo_inner(set: *const sigset_t, info: *mut siginfo_t) -> c_int {
    result(take(|| sys::syscall!(libc::SYS_rt_sigtimedwait, set, info, 0, 8))) as c_int
}

extern "C" fn sigtimedwait_inner(set: *const sigset_t, info: *mut siginfo_t, time: *const libc::timespec) -> c_int {
    result(take(|| sys::syscall!(libc::SYS_rt_sigtimedwait, set, info, time, 8))) as c_int
}
