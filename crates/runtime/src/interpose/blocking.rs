//! Other calls that may block: event counters, message queues, file locks, FIFOs, children.
//!
//! What has a descriptor that can be polled is waited for like a pipe, so it is as deterministic
//! as a lock. Everything else is tried without blocking first, with the turn; if that fails, the
//! thread blocks in the kernel without it.

use core::ffi::c_void;

use libc::{c_char, c_int, c_long, c_uint, iovec, off_t, pid_t, size_t, timespec};
use raddle_trace::record::Kind;

use super::descriptor::{IN, OUT, Ready, input, output, until_ready_by, vector};
use super::ends::duplicated;
use super::process::wait4_inner;
use super::{channel, clock, fail, foreign, result};
use crate::export::export_cancellable;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, sched, sys, tls};

export_cancellable! {
    eventfd_read => read_counter;
    eventfd_write => write_counter;
    preadv => read_vector_at;
    preadv64 => read_vector_at;
    pwritev => write_vector_at;
    pwritev64 => write_vector_at;
    mq_send => send_queued;
    mq_timedsend => send_queued_until;
    mq_receive => receive_queued;
    mq_timedreceive => receive_queued_until;
    msgsnd => send_message;
    msgrcv => receive_message;
    flock => lock_file;
    fcntl => control;
    fcntl64 => control;
    lockf => lock_part;
    lockf64 => lock_part;
    open => open_file;
    open64 => open_file;
    openat => open_file_at;
    openat64 => open_file_at;
    wait3 => wait_any;
}

/// Tries a call with the turn, and blocks in it without the turn if it gives one of these errors.
fn try_then_block(
    attempt: impl FnOnce() -> i64,
    busy: &[c_int],
    block: impl FnOnce() -> i64,
) -> i64 {
    let pc = hook::caller();
    let Some(me) = hook::me() else { return block() };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    let status = attempt();
    if status >= 0 || !busy.contains(&(-status as c_int)) {
        return status;
    }
    sched::outside(me, pc, block)
}

/// How often a thread looks whether it gets a file lock: less and less often.
const LOOK_US_MIN: u64 = 20;
const LOOK_US_MAX: u64 = 1_000;

/// Repeats a call until it gives another error than these; `block` is for threads that are not
/// controlled. The thread never blocks in the kernel, so a signal or a cancellation reaches it. Limits: the kernel does not see
/// that two processes wait for each other's locks.
fn try_until(attempt: impl Fn() -> i64, busy: &[c_int], block: impl FnOnce() -> i64) -> i64 {
    let pc = hook::caller();
    let look = || {
        let status = attempt();
        (status >= 0 || !busy.contains(&(-status as c_int))).then_some(status)
    };
    let Some(me) = hook::me() else { return block() };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    loop {
        if sched::cancel_point(me) {
            return i64::from(-libc::EINTR);
        }
        let is_cancelled =
            || SCHED.try_lock().is_some_and(|sched| sched.threads[me as usize].is_cancelled());
        let look_often = || {
            let mut us = LOOK_US_MIN;
            loop {
                let seen = look();
                if seen.is_some() || tls::get(tls::SIGNALS) != 0 || is_cancelled() {
                    return seen;
                }
                sys::sleep_us(us);
                us = (us * 2).min(LOOK_US_MAX);
            }
        };
        let seen = look();
        if let Some(status) = seen.or_else(|| sched::outside(me, pc, look_often)) {
            return status;
        }
        let is_interrupted = tls::get(tls::SIGNALS) != 0;
        hook::sync(me, pc, Wait::Nothing, NEVER);
        if is_interrupted && !SCHED.lock().threads[me as usize].restarts {
            return i64::from(-libc::EINTR);
        }
    }
}

extern "C" fn read_counter(descriptor: c_int, into: *mut u64) -> c_int {
    let n =
        input(descriptor, into.cast(), || sys::syscall!(libc::SYS_read, descriptor, into, 8usize));
    if n == 8 { 0 } else { -1 }
}

extern "C" fn write_counter(descriptor: c_int, value: u64) -> c_int {
    let from = &raw const value;
    // A counter is never written in parts; a second attempt waits for room.
    let n = output(descriptor, core::ptr::null(), 8, |_, _| {
        sys::syscall!(libc::SYS_write, descriptor, from, 8usize)
    });
    if n == 8 { 0 } else { -1 }
}

extern "C" fn read_vector_at(
    descriptor: c_int,
    parts: *const iovec,
    n: c_int,
    offset: off_t,
) -> isize {
    let pc = hook::caller();
    let read = input(descriptor, core::ptr::null(), || {
        sys::syscall!(libc::SYS_preadv, descriptor, parts, n, offset, 0)
    });
    vector(parts, n, u64::try_from(read).unwrap_or(0), true, pc);
    read
}

extern "C" fn write_vector_at(
    descriptor: c_int,
    parts: *const iovec,
    n: c_int,
    offset: off_t,
) -> isize {
    vector(parts, n, u64::MAX, false, hook::caller());
    output(descriptor, core::ptr::null(), 0, |_, _| {
        sys::syscall!(libc::SYS_pwritev, descriptor, parts, n, offset, 0)
    })
}

/// The deadline of a call that may have none, or fails for a time that is none.
fn deadline(time: *const timespec) -> Result<u64, c_int> {
    if time.is_null() {
        Ok(NEVER)
    } else if clock::is_valid(time) {
        Ok(clock::deadline(libc::CLOCK_REALTIME, time))
    } else {
        Err(libc::EINVAL)
    }
}

/// Waits until a message queue, which is a descriptor, is ready, and says whether it had to; gives
/// an error otherwise.
fn queue_ready(queue: c_int, events: i16, time: *const timespec, pc: u64) -> Result<bool, c_int> {
    match until_ready_by(pc, queue, events, Some(deadline(time)?)) {
        Ready::Go => Ok(false),
        Ready::GoOn { waited } => Ok(waited),
        Ready::Failed(libc::EAGAIN) => Err(libc::ETIMEDOUT),
        Ready::Failed(error) => Err(error),
    }
}

extern "C" fn send_queued(queue: c_int, from: *const u8, bytes: size_t, priority: c_uint) -> c_int {
    send_queued_until(queue, from, bytes, priority, core::ptr::null())
}

extern "C" fn send_queued_until(
    queue: c_int,
    from: *const u8,
    bytes: size_t,
    priority: c_uint,
    time: *const timespec,
) -> c_int {
    let pc = hook::caller();
    let is_controlled = hook::me().is_some();
    let waited = match is_controlled.then(|| queue_ready(queue, OUT, time, pc)) {
        Some(Err(error)) => return fail(error),
        Some(Ok(waited)) => waited,
        None => false,
    };
    hook::range(from as u64, bytes as u64, false, pc);
    channel::queue(Kind::Send, queue, waited, pc);
    let time = if is_controlled { core::ptr::null() } else { time };
    result(sys::syscall!(libc::SYS_mq_timedsend, queue, from, bytes, priority, time)) as c_int
}

extern "C" fn receive_queued(
    queue: c_int,
    into: *mut u8,
    bytes: size_t,
    priority: *mut c_uint,
) -> isize {
    receive_queued_until(queue, into, bytes, priority, core::ptr::null())
}

extern "C" fn receive_queued_until(
    queue: c_int,
    into: *mut u8,
    bytes: size_t,
    priority: *mut c_uint,
    time: *const timespec,
) -> isize {
    let pc = hook::caller();
    let is_controlled = hook::me().is_some();
    if is_controlled && let Err(error) = queue_ready(queue, IN, time, pc) {
        return fail(error) as isize;
    }
    let time = if is_controlled { core::ptr::null() } else { time };
    let n = sys::syscall!(libc::SYS_mq_timedreceive, queue, into, bytes, priority, time);
    if n >= 0 {
        channel::queue(Kind::Receive, queue, false, pc);
        hook::range(into as u64, n as u64, true, pc);
    }
    result(n) as isize
}

/// Bytes of the type before a message's text.
const TYPE_BYTES: u64 = 8;

extern "C" fn send_message(
    queue: c_int,
    from: *const c_void,
    bytes: size_t,
    flags: c_int,
) -> c_int {
    let pc = hook::caller();
    hook::range(from as u64, bytes as u64 + TYPE_BYTES, false, pc);
    channel::messages(Kind::Send, queue, pc);
    let call = |flags: c_int| sys::syscall!(libc::SYS_msgsnd, queue, from, bytes, flags);
    let busy: &[c_int] = if flags & libc::IPC_NOWAIT == 0 { &[libc::EAGAIN] } else { &[] };
    let nowait = flags | libc::IPC_NOWAIT;
    result(try_then_block(|| call(nowait), busy, || call(flags))) as c_int
}

extern "C" fn receive_message(
    queue: c_int,
    into: *mut c_void,
    bytes: size_t,
    kind: c_long,
    flags: c_int,
) -> isize {
    let pc = hook::caller();
    let call = |flags: c_int| sys::syscall!(libc::SYS_msgrcv, queue, into, bytes, kind, flags);
    let busy: &[c_int] = if flags & libc::IPC_NOWAIT == 0 { &[libc::ENOMSG] } else { &[] };
    let nowait = flags | libc::IPC_NOWAIT;
    let n = try_then_block(|| call(nowait), busy, || call(flags));
    if n >= 0 {
        channel::messages(Kind::Receive, queue, pc);
        hook::range(into as u64, n as u64 + TYPE_BYTES, true, pc);
    }
    result(n) as isize
}

extern "C" fn lock_file(descriptor: c_int, how: c_int) -> c_int {
    let call = |how: c_int| sys::syscall!(libc::SYS_flock, descriptor, how);
    let busy: &[c_int] = if how & libc::LOCK_NB == 0 { &[libc::EAGAIN] } else { &[] };
    result(try_until(|| call(how | libc::LOCK_NB), busy, || call(how))) as c_int
}

extern "C" fn control(descriptor: c_int, command: c_int, argument: usize) -> c_int {
    let nowait = match command {
        libc::F_SETLKW => libc::F_SETLK,
        libc::F_OFD_SETLKW => libc::F_OFD_SETLK,
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            let new = result(sys::syscall!(libc::SYS_fcntl, descriptor, command, argument));
            return duplicated(descriptor, new as c_int);
        }
        _ => {
            return real!(fcntl(descriptor => c_int, command => c_int, argument => usize) -> c_int);
        }
    };
    let call = |command: c_int| sys::syscall!(libc::SYS_fcntl, descriptor, command, argument);
    let busy = [libc::EAGAIN, libc::EACCES];
    result(try_until(|| call(nowait), &busy, || call(command))) as c_int
}

extern "C" fn lock_part(descriptor: c_int, command: c_int, bytes: off_t) -> c_int {
    if command != libc::F_LOCK {
        return real!(lockf(descriptor => c_int, command => c_int, bytes => off_t) -> c_int);
    }
    let part = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_CUR as i16,
        l_start: 0,
        l_len: bytes,
        l_pid: 0,
    };
    control(descriptor, libc::F_SETLKW, &raw const part as usize)
}

extern "C" fn open_file(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    open_file_at(libc::AT_FDCWD, path, flags, mode)
}

/// A FIFO opens when its other end does.
extern "C" fn open_file_at(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    let pc = hook::caller();
    let call = || sys::syscall!(libc::SYS_openat, directory, path, flags, mode);
    let may_block = flags & (libc::O_NONBLOCK | libc::O_PATH) == 0
        && flags & libc::O_ACCMODE != libc::O_RDWR
        && hook::me().is_some()
        && is_fifo(directory, path);
    match hook::me().filter(|_| may_block) {
        Some(me) => {
            let new = result(sched::outside(me, pc, call)) as c_int;
            foreign::connected(new);
            new
        }
        None => result(call()) as c_int,
    }
}

fn is_fifo(directory: c_int, path: *const c_char) -> bool {
    // SAFETY: zeroes are a valid value of this plain struct.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let status = sys::syscall!(libc::SYS_newfstatat, directory, path, &raw mut about, 0);
    status == 0 && about.st_mode & libc::S_IFMT == libc::S_IFIFO
}

extern "C" fn wait_any(status: *mut c_int, options: c_int, usage: *mut c_void) -> pid_t {
    wait4_inner(-1, status, options, usage)
}
