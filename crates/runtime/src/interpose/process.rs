//! Processes: children continue without us; exit, abort and assertions are events.

use core::ffi::{c_char, c_void};
use core::sync::atomic::Ordering;

use libc::{c_int, c_uint, pid_t, siginfo_t};
use raddle_trace::control::{Ending, MESSAGE_BYTES, Outside};
use raddle_trace::record::{Kind, Wake};

use super::signal::child as child_signal;
use super::{affinity, fail, foreign, result};
use crate::export::{export, export_cancellable};
use crate::real::real;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED, Which};
use crate::{freed, hook, shared, sys, tls};

export! {
    fork => fork_inner;
    vfork => vfork_inner;
    posix_spawn => spawn;
    posix_spawnp => spawn_in_path;
    _exit => exit_now;
    _Exit => exit_now;
    quick_exit => quick_exit_inner;
    __assert_fail => assert_fail;
    atexit => atexit_inner;
}

export! { unsafe OTHER:
    exit => exit_inner;
}

export_cancellable! {
    waitpid => waitpid_inner;
    wait => wait_inner;
    wait4 => wait4_inner;
    waitid => waitid_inner;
}

fn step(pc: u64) {
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
    }
}

/// Starts a child by a call at `pc` that returns its id, or none. `only_kept` if it runs another
/// program at once, with the descriptors that survive that.
pub(super) fn start_child<R>(
    by: Outside,
    pc: u64,
    only_kept: bool,
    call: impl FnOnce() -> R,
    id_of: impl FnOnce(&R) -> Option<pid_t>,
) -> R {
    step(pc);
    foreign::inherit(only_kept);
    child_signal::begin_start();
    let result = call();
    let id = id_of(&result).and_then(|id| u32::try_from(id).ok()).filter(|&id| id > 0);
    if let (Some(id), Some(_)) = (id, hook::me()) {
        child_signal::started(id);
        SCHED.lock().add_child(id, by, pc);
        foreign::reconsider();
    }
    child_signal::end_start();
    result
}

extern "C" fn fork_inner() -> pid_t {
    fork_by(Outside::Fork)
}

extern "C" fn vfork_inner() -> pid_t {
    fork_by(Outside::Vfork)
}

fn fork_by(by: Outside) -> pid_t {
    let pc = hook::caller();
    let call = || {
        hook::record(Kind::Fork, 0, 0, 0, pc, &[]);
        real!(fork() -> pid_t)
    };
    start_child(by, pc, false, call, |&id| Some(id))
}

/// From now on children are released before the program's own fork handlers run in them.
pub(crate) fn start() {
    // SAFETY: the handlers are of the type that libc wants, and may run in parent and child.
    unsafe { libc::pthread_atfork(None, Some(note_other), Some(let_go)) };
}

/// A function of libc that we do not replace, such as `forkpty`, has started a child.
unsafe extern "C" fn note_other() {
    if !child_signal::is_starting() && hook::me().is_some() {
        SCHED.lock().n_processes += 1;
    }
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

pub(super) type Strings = *const *mut c_char;

/// What was started, if it was.
fn spawned(status: c_int, id: *const pid_t) -> Option<pid_t> {
    // SAFETY: libc has stored the child's id there.
    (status == 0 && !id.is_null()).then(|| unsafe { *id })
}

extern "C" fn spawn(
    id: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attr: *const c_void,
    argv: Strings,
    env: Strings,
) -> c_int {
    let mut own = 0;
    let id = if id.is_null() { &raw mut own } else { id };
    let call = || real!(posix_spawn(id => *mut pid_t, path => *const c_char, actions => *const c_void, attr => *const c_void, argv => Strings, env => Strings) -> c_int);
    start_child(Outside::Spawn, hook::caller(), false, call, |&status| spawned(status, id))
}

extern "C" fn spawn_in_path(
    id: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attr: *const c_void,
    argv: Strings,
    env: Strings,
) -> c_int {
    let mut own = 0;
    let id = if id.is_null() { &raw mut own } else { id };
    let call = || real!(posix_spawnp(id => *mut pid_t, path => *const c_char, actions => *const c_void, attr => *const c_void, argv => Strings, env => Strings) -> c_int);
    start_child(Outside::Spawn, hook::caller(), false, call, |&status| spawned(status, id))
}

/// Waits for a child as `which` says. `look` asks the kernel with these options; none if there is
/// nothing to tell yet. The thread never blocks in the kernel, so a signal or a cancellation reaches
/// it.
fn wait_for(look: impl Fn(c_int) -> Option<i64>, which: Which, options: c_int) -> i64 {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return result(look(options).unwrap_or(0)) };
    let is_patient = options & libc::WNOHANG == 0;
    let wait = if is_patient { Wait::Child(&raw const which as u64) } else { Wait::Nothing };
    loop {
        let wake = hook::sync(me, pc, wait, NEVER);
        if sched::cancel_point(me) {
            return i64::from(fail(libc::EINTR));
        }
        if !is_patient {
            sched::observe();
        }
        let seen = if wake == Wake::Interrupted { None } else { look(options | libc::WNOHANG) };
        if tls::get(tls::SIGNALS) != 0 {
            sched::deliver();
        }
        if seen.is_some() || !is_patient {
            return result(seen.unwrap_or(0));
        }
        if wake == Wake::Interrupted && !SCHED.lock().threads[me as usize].restarts {
            return i64::from(fail(libc::EINTR));
        }
    }
}

extern "C" fn waitpid_inner(child: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    wait4_inner(child, status, options, core::ptr::null_mut())
}

extern "C" fn wait_inner(status: *mut c_int) -> pid_t {
    waitpid_inner(-1, status, 0)
}

pub(super) extern "C" fn wait4_inner(
    child: pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut c_void,
) -> pid_t {
    let look = |options| {
        let seen = sys::syscall!(libc::SYS_wait4, child, status, options, usage);
        (seen != 0).then_some(seen)
    };
    let (kind, id) = match child {
        -1 => (libc::P_ALL, 0),
        0 => (libc::P_PGID, 0),
        group if group < 0 => (libc::P_PGID, group.unsigned_abs()),
        child => (libc::P_PID, child as u32),
    };
    let which = Which { kind, id, options: options | libc::WEXITED };
    wait_for(look, which, options) as pid_t
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
    wait_for(look, Which { kind, id, options }, options) as c_int
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
