//! Processes: children go on without us; exit, abort and assertions are events.

use core::ffi::{c_char, c_void};
use core::fmt::Write;
use core::sync::atomic::Ordering;

use libc::{c_int, c_uint, pid_t};
use raddle_trace::control::Ending;
use raddle_trace::record::Kind;

use super::{affinity, result};
use crate::abi::stub::{export, export_cancellable};
use crate::die::Line;
use crate::real::real;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{freed, hook, shared, sys, tls};

export! {
    fork => fork_inner;
    vfork => fork_inner;
    posix_spawn => spawn;
    posix_spawnp => spawn_in_path;
    popen => popen_inner;
    exit => exit_inner;
    _exit => exit_now;
    _Exit => exit_now;
    quick_exit => quick_exit_inner;
    abort => abort_inner;
    __assert_fail => assert_fail;
    atexit => atexit_inner;
}

export_cancellable! {
    waitpid => waitpid_inner;
    wait => wait_inner;
    wait4 => wait4_inner;
    waitid => waitid_inner;
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

/// From now on children are let go, before the program's own handlers run in them.
pub(crate) fn start() {
    // SAFETY: the handler is of the type that libc wants, and may run in a child.
    unsafe { libc::pthread_atfork(None, None, Some(let_go)) };
}

/// The child has the calling thread only, and all of our locks as they were. It is not ours.
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

/// Waits for a child without the turn; if it is over already, with it.
fn wait_for(call: impl Fn(c_int) -> i64, options: c_int) -> i64 {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return result(call(options)) };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    let status = call(options | libc::WNOHANG);
    if status != 0 || options & libc::WNOHANG != 0 {
        return result(status);
    }
    result(sched::outside(me, pc, || call(options)))
}

extern "C" fn waitpid_inner(child: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    wait_for(|options| sys::syscall!(libc::SYS_wait4, child, status, options, 0), options) as pid_t
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
    wait_for(|options| sys::syscall!(libc::SYS_wait4, child, status, options, usage), options)
        as pid_t
}

extern "C" fn waitid_inner(kind: c_uint, id: c_uint, info: *mut c_void, options: c_int) -> c_int {
    let pc = hook::caller();
    let call = || sys::syscall!(libc::SYS_waitid, kind, id, info, options, 0);
    match hook::me() {
        Some(me) => result(sched::outside(me, pc, call)) as c_int,
        None => result(call()) as c_int,
    }
}

extern "C" fn system_inner(command: *const c_char) -> c_int {
    let pc = hook::caller();
    let call = || real!(system(command => *const c_char) -> c_int);
    match hook::me() {
        Some(me) => sched::outside(me, pc, call),
        None => call(),
    }
}

/// Programs take it from the library that they were linked with, which libc itself has only
/// for static linking.
extern "C" fn atexit_inner(routine: usize) -> c_int {
    real!(__cxa_atexit(routine => usize, 0 => usize, 0 => usize) -> c_int)
}

extern "C" fn exit_inner(status: c_int) {
    let pc = hook::caller();
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

/// Notes where, for the report of the signal that follows.
extern "C" fn abort_inner() {
    super::signal::note_place(hook::caller());
    real!(abort());
}

extern "C" fn assert_fail(
    text: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) {
    let pc = hook::caller();
    if shared::mode() != shared::OFF {
        let mut message = Line { bytes: [0; 512], len: 0 };
        push(&mut message, file);
        let _ = write!(message, ":{line}: ");
        push(&mut message, function);
        let _ = write!(message, ": Assertion `");
        push(&mut message, text);
        let _ = write!(message, "' failed.");
        super::signal::note_place(pc);
        let control = shared::control();
        control.thread.store(tls::thread().unwrap_or(0), Ordering::Relaxed);
        control.pc.store(pc, Ordering::Relaxed);
        shared::fail(Ending::Assert, &message.bytes[..message.len]);
    }
    real!(__assert_fail(text => *const c_char, file => *const c_char, line => c_uint, function => *const c_char));
}

fn push(line: &mut Line, text: *const c_char) {
    let mut at = 0;
    while !text.is_null() && line.len < line.bytes.len() {
        // SAFETY: a zero-terminated string of the program's, read up to its end.
        let byte = unsafe { *text.add(at) } as u8;
        if byte == 0 {
            break;
        }
        line.bytes[line.len] = byte;
        line.len += 1;
        at += 1;
    }
}
