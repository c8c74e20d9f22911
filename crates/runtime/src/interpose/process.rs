//! Processes: children continue without us; exit, abort and assertions are events.

use core::ffi::{c_char, c_void};
use core::sync::atomic::Ordering;

use libc::{c_int, c_uint, pid_t, siginfo_t};
use raddle_trace::control::{Ending, MESSAGE_BYTES};
use raddle_trace::record::Kind;

use super::{affinity, fail, result};
use crate::export::{export, export_cancellable};
use crate::real::real;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{freed, hook, shared, sys, tls};

export! {
    fork => fork_inner;
    vfork => fork_inner;
    posix_spawn => spawn;
    posix_spawnp => spawn_in_path;
    _exit => exit_now;
    _Exit => exit_now;
    quick_exit => quick_exit_inner;
    __assert_fail => assert_fail;
    atexit => atexit_inner;
}

export! { unsafe OTHER:
    popen => popen_inner;
    exit => exit_inner;
}

export_cancellable! {
    waitpid => waitpid_inner;
    wait => wait_inner;
    wait4 => wait4_inner;
    waitid => waitid_inner;
}

export_cancellable! { unsafe OTHER:
    system => system_inner;
}

fn step(pc: u64) {
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
    }
}

fn one_more() {
    if hook::me().is_some() {
        SCHED.lock().n_processes += 1;
    }
}

extern "C" fn fork_inner() -> pid_t {
    let pc = hook::caller();
    step(pc);
    hook::record(Kind::Fork, 0, 0, 0, pc, &[]);
    one_more();
    real!(fork() -> pid_t)
}

/// From now on children are released before the program's own fork handlers run in them.
pub(crate) fn start() {
    // SAFETY: the handler is of the type that libc wants, and may run in a child.
    unsafe { libc::pthread_atfork(None, None, Some(let_go)) };
}

/// The child has only the calling thread, and all of our locks as they were. We do not control
/// it.
unsafe extern "C" fn let_go() {
    shared::MODE.store(shared::OFF, Ordering::SeqCst);
    tls::set_thread(None);
    tls::set(tls::LANE, 0);
    SCHED.break_lock();
    freed::break_lock();
    affinity::unpin();
}

type Strings = *const *mut c_char;

extern "C" fn spawn(
    id: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attr: *const c_void,
    argv: Strings,
    env: Strings,
) -> c_int {
    step(hook::caller());
    one_more();
    real!(posix_spawn(id => *mut pid_t, path => *const c_char, actions => *const c_void, attr => *const c_void, argv => Strings, env => Strings) -> c_int)
}

extern "C" fn spawn_in_path(
    id: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attr: *const c_void,
    argv: Strings,
    env: Strings,
) -> c_int {
    step(hook::caller());
    one_more();
    real!(posix_spawnp(id => *mut pid_t, path => *const c_char, actions => *const c_void, attr => *const c_void, argv => Strings, env => Strings) -> c_int)
}

extern "C" fn popen_inner(command: *const c_char, kind: *const c_char) -> *mut c_void {
    step(hook::caller());
    one_more();
    real!(popen(command => *const c_char, kind => *const c_char) -> *mut c_void)
}

/// How often a thread looks whether its child has changed: less and less often.
const LOOK_US_MIN: u64 = 20;
const LOOK_US_MAX: u64 = 1_000;

/// Waits for a child without the turn, or with it if the child has already ended. `look` asks the
/// kernel with these options; none if there is nothing to tell yet. The thread never blocks in the
/// kernel, so a signal or a cancellation reaches it.
fn wait_for(look: impl Fn(c_int) -> Option<i64>, options: c_int) -> i64 {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return result(look(options).unwrap_or(0)) };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    loop {
        if sched::cancel_point(me) {
            return i64::from(fail(libc::EINTR));
        }
        let seen = look(options | libc::WNOHANG);
        if seen.is_some() || options & libc::WNOHANG != 0 {
            return result(seen.unwrap_or(0));
        }
        if let Some(status) = sched::outside(me, pc, || look_often(me, &look, options)) {
            return result(status);
        }
        let interrupted = tls::get(tls::SIGNALS) != 0;
        hook::sync(me, pc, Wait::Nothing, NEVER);
        if interrupted && !SCHED.lock().threads[me as usize].restarts {
            return i64::from(fail(libc::EINTR));
        }
    }
}

/// Looks until there is something to tell, or until a signal or a cancellation arrives.
fn look_often(me: u32, look: impl Fn(c_int) -> Option<i64>, options: c_int) -> Option<i64> {
    let mut us = LOOK_US_MIN;
    loop {
        let seen = look(options | libc::WNOHANG);
        // Who waits for input for all keeps the lock; then nobody is there to cancel us.
        let cancelled =
            || SCHED.try_lock().is_some_and(|sched| sched.threads[me as usize].is_cancelled());
        let disturbed = tls::get(tls::SIGNALS) != 0 || cancelled();
        if seen.is_some() || disturbed {
            return seen;
        }
        sys::sleep_us(us);
        us = (us * 2).min(LOOK_US_MAX);
    }
}

extern "C" fn waitpid_inner(child: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    wait4_inner(child, status, options, core::ptr::null_mut())
}

extern "C" fn wait_inner(status: *mut c_int) -> pid_t {
    waitpid_inner(-1, status, 0)
}

extern "C" fn wait4_inner(
    child: pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut c_void,
) -> pid_t {
    let look = |options| {
        let seen = sys::syscall!(libc::SYS_wait4, child, status, options, usage);
        (seen != 0).then_some(seen)
    };
    wait_for(look, options) as pid_t
}

extern "C" fn waitid_inner(
    kind: c_uint,
    id: c_uint,
    info: *mut siginfo_t,
    options: c_int,
) -> c_int {
    // SAFETY: all zeros is a valid siginfo.
    let mut own: siginfo_t = unsafe { core::mem::zeroed() };
    let into = if info.is_null() { &raw mut own } else { info };
    let look = |options| {
        // The kernel stores zeros if no child has changed.
        let error = sys::syscall!(libc::SYS_waitid, kind, id, into, options, 0);
        // SAFETY: where the kernel has put it.
        (error != 0 || unsafe { (*into).si_signo } != 0).then_some(error)
    };
    wait_for(look, options) as c_int
}

extern "C" fn system_inner(command: *const c_char) -> c_int {
    let pc = hook::caller();
    let call = || real!(system(command => *const c_char) -> c_int);
    let Some(me) = hook::me() else { return call() };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    if sched::cancel_point(me) {
        return fail(libc::EINTR);
    }
    sched::outside(me, pc, call)
}

/// Programs take it from the library that they were linked with; libc itself has it only for
/// static linking.
extern "C" fn atexit_inner(routine: usize) -> c_int {
    real!(__cxa_atexit(routine => usize, 0 => usize, 0 => usize) -> c_int)
}

extern "C" fn exit_inner(status: c_int) {
    let pc = hook::caller();
    // If a handler exits, that is its mistake, and not what happens at the exit.
    tls::set(tls::HANDLER, 0);
    step(pc);
    hook::record(Kind::Exit, status as u8, 0, 0, pc, &[]);
    real!(exit(status => c_int));
}

extern "C" fn quick_exit_inner(status: c_int) {
    let pc = hook::caller();
    step(pc);
    hook::record(Kind::Exit, status as u8, 0, 0, pc, &[]);
    real!(quick_exit(status => c_int));
}

extern "C" fn exit_now(status: c_int) {
    let pc = hook::caller();
    step(pc);
    hook::record(Kind::Exit, status as u8, 0, 0, pc, &[]);
    sys::exit_group(status);
}

extern "C" fn assert_fail(
    text: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) {
    let pc = hook::caller();
    if shared::mode() != shared::OFF {
        let mut message = [0; MESSAGE_BYTES];
        let mut n = 0;
        for text in [text, file, function] {
            n += copy(text, &mut message[n..n + MESSAGE_BYTES / 3]);
        }
        let control = shared::control();
        control.thread.store(tls::thread().unwrap_or(0), Ordering::Relaxed);
        control.pc.store(pc, Ordering::Relaxed);
        control.code.store(line as c_int, Ordering::Relaxed);
        shared::fail(Ending::Assert, &message[..n]);
    }
    real!(__assert_fail(text => *const c_char, file => *const c_char, line => c_uint, function => *const c_char));
}

/// Copies a string, truncated to fit, and a terminating zero; returns how many bytes.
fn copy(text: *const c_char, into: &mut [u8]) -> usize {
    let room = into.len() - 1;
    let mut n = 0;
    while n < room && !text.is_null() {
        // SAFETY: a zero-terminated string of the program's, read up to its end.
        let byte = unsafe { *text.add(n) } as u8;
        if byte == 0 {
            break;
        }
        into[n] = byte;
        n += 1;
    }
    into[n] = 0;
    n + 1
}
