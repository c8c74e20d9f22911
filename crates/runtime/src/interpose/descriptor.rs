//! Calls that may block on a file descriptor.
//!
//! Under control a thread does not block in the kernel: it waits, as for a lock, until its
//! descriptor is ready, and makes the call when that will not block. So pipes and sockets between
//! threads of the program are as deterministic as locks. System calls are made directly, since
//! libc's functions would act on cancellation under our frames.
//!
//! A write counts as a release and a read as an acquire of what the descriptor leads to: see
//! [`channel`].

use alloc::vec::Vec;

use libc::{
    c_int, fd_set, iovec, mmsghdr, msghdr, nfds_t, pollfd, sigset_t, size_t, sockaddr, socklen_t,
    timespec, timeval,
};
use raddle_trace::record::{Kind, Wake};

use super::{channel, clock, foreign, randomness, result};
use crate::export::{export, export_cancellable};
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{hook, inside, sys};

export_cancellable! {
    read => read_inner;
    write => write_inner;
    pread => pread_inner;
    pread64 => pread_inner;
    pwrite => pwrite_inner;
    pwrite64 => pwrite_inner;
    readv => readv_inner;
    writev => writev_inner;
    recv => recv_inner;
    recvfrom => recvfrom_inner;
    recvmsg => recvmsg_inner;
    recvmmsg => recvmmsg_inner;
    send => send_inner;
    sendto => sendto_inner;
    sendmsg => sendmsg_inner;
    sendmmsg => sendmmsg_inner;
    accept => accept_inner;
    accept4 => accept4_inner;
    connect => connect_inner;
    poll => poll_inner;
    ppoll => ppoll_inner;
    select => select_inner;
    pselect => pselect_inner;
    epoll_wait => epoll_wait_inner;
    epoll_pwait => epoll_pwait_inner;
}

export! {
    epoll_ctl => epoll_ctl_inner;
}

pub(super) const IN: i16 = libc::POLLIN;
pub(super) const OUT: i16 = libc::POLLOUT;

/// How to continue with a call.
pub(super) enum Ready {
    /// Make it: it will not block, or is not meant to.
    Go,
    /// Make it; it may block halfway.
    GoOn {
        /// Whether it would have blocked at first.
        waited: bool,
    },
    /// It has failed.
    Failed(c_int),
}

/// Waits until the descriptor is ready, if the call would block.
pub(super) fn until_ready(pc: u64, descriptor: c_int, events: i16) -> Ready {
    until_ready_by(pc, descriptor, events, None)
}

/// The same, until a point in virtual time. Without one, the descriptor's own patience counts.
pub(super) fn until_ready_by(
    pc: u64,
    descriptor: c_int,
    events: i16,
    deadline: Option<u64>,
) -> Ready {
    let Some(me) = hook::me() else { return Ready::Go };
    let mut wanted = [pollfd { fd: descriptor, events, revents: 0 }];
    let flags = sys::syscall!(libc::SYS_fcntl, descriptor, libc::F_GETFL);
    let patient = flags >= 0 && flags & i64::from(libc::O_NONBLOCK) == 0;
    let is_foreign = foreign::is_any(&wanted);
    let blocks = patient && sys::poll(&mut wanted, 0) == 0;
    let wait = match wanted.as_mut_ptr() as u64 {
        at if patient && is_foreign => Wait::Peer(at, 1),
        at if blocks => Wait::Descriptors(at, 1),
        _ => Wait::Nothing,
    };
    let deadline = match deadline {
        Some(deadline) => deadline,
        None if blocks || is_foreign => patience(descriptor, events),
        None => NEVER,
    };
    hook::record(Kind::Block, 0, descriptor as u32 as u64, 0, pc, &[]);
    let wake = loop {
        let wake = hook::sync(me, pc, wait, deadline);
        if wake != Wake::Interrupted || !SCHED.lock().threads[me as usize].restarts {
            break wake;
        }
    };
    if is_foreign && !patient {
        sched::observe();
    }
    hook::record(Kind::Unblock, 0, descriptor as u32 as u64, 0, pc, &[]);
    match wake {
        Wake::Interrupted | Wake::Cancelled => Ready::Failed(libc::EINTR),
        Wake::TimedOut => Ready::Failed(libc::EAGAIN),
        _ if sched::cancel_point(me) => Ready::Failed(libc::EINTR),
        // Whether it had to wait for a child is a matter of time.
        _ if patient => Ready::GoOn { waited: blocks && !is_foreign },
        _ => Ready::Go,
    }
}

/// The time until which a socket waits, as the program has configured it.
fn patience(descriptor: c_int, events: i16) -> u64 {
    let option = if events == IN { libc::SO_RCVTIMEO } else { libc::SO_SNDTIMEO };
    let mut time = timeval { tv_sec: 0, tv_usec: 0 };
    let mut bytes = size_of::<timeval>() as socklen_t;
    let status = sys::syscall!(
        libc::SYS_getsockopt,
        descriptor,
        libc::SOL_SOCKET,
        option,
        &raw mut time,
        &raw mut bytes
    );
    let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    if status < 0 || ns == 0 { NEVER } else { clock::after(ns) }
}

/// Records what a call has received, by its result. Of errors, only those count that others may
/// have caused.
fn received(descriptor: c_int, n: i64, pc: u64) {
    if n >= 0 || ![libc::EAGAIN, libc::EINTR, libc::EBADF].contains(&(-n as c_int)) {
        channel::receive(descriptor, pc);
    }
}

/// An input call: waits until ready, makes the call, records it.
pub(super) fn input(descriptor: c_int, at: *const u8, call: impl FnOnce() -> i64) -> isize {
    let pc = hook::caller();
    if let Ready::Failed(error) = until_ready(pc, descriptor, IN) {
        return super::fail(error) as isize;
    }
    input_now(descriptor, at, call, pc)
}

/// An input call that is not meant to wait.
fn input_at_once(descriptor: c_int, at: *const u8, call: impl FnOnce() -> i64) -> isize {
    if hook::me().is_some() {
        let wanted = [pollfd { fd: descriptor, events: IN, revents: 0 }];
        if foreign::is_any(&wanted) {
            sched::observe();
        }
    }
    input_now(descriptor, at, call, hook::caller())
}

/// An input call that will not block.
fn input_now(descriptor: c_int, at: *const u8, call: impl FnOnce() -> i64, pc: u64) -> isize {
    let n = call();
    received(descriptor, n, pc);
    if n > 0 && !at.is_null() {
        hook::range(at as u64, n as u64, true, pc);
    }
    result(n) as isize
}

/// An output call: waits until ready, records it, makes the call. `attempt` sends from the given
/// offset, without blocking if asked to; whatever would block halfway waits for room again.
pub(super) fn output(
    descriptor: c_int,
    at: *const u8,
    bytes: usize,
    attempt: impl Fn(usize, bool) -> i64,
) -> isize {
    let pc = hook::caller();
    let ready = until_ready(pc, descriptor, OUT);
    if let Ready::Failed(error) = ready {
        return super::fail(error) as isize;
    }
    if !at.is_null() {
        hook::range(at as u64, bytes as u64, false, pc);
    }
    let n = match ready {
        Ready::GoOn { waited } => {
            channel::send(descriptor, waited, pc);
            output_all(descriptor, bytes, attempt, pc)
        }
        Ready::Go | Ready::Failed(_) => {
            channel::send(descriptor, false, pc);
            attempt(0, false)
        }
    };
    if n < 0 {
        // That nobody receives any more.
        received(descriptor, n, pc);
    }
    result(n) as isize
}

/// Makes an output call until all is sent.
fn output_all(
    descriptor: c_int,
    bytes: usize,
    attempt: impl Fn(usize, bool) -> i64,
    pc: u64,
) -> i64 {
    let mut done = 0;
    let sent = |done: usize, error: i64| if done > 0 { done as i64 } else { error };
    loop {
        let n = attempt(done, true);
        match -n as c_int {
            libc::EOPNOTSUPP if n < 0 => return attempt(done, false),
            libc::EAGAIN if n < 0 => {
                if let Some(me) = hook::me() {
                    // Another queue may be full, which the descriptor does not show: its
                    // reader's.
                    sched::yield_turn(me, pc);
                }
                if let Ready::Failed(error) = until_ready(pc, descriptor, OUT) {
                    return sent(done, -i64::from(error));
                }
                channel::send(descriptor, true, pc);
            }
            _ if n < 0 => return sent(done, n),
            _ => {
                done += n as usize;
                if done >= bytes {
                    return done as i64;
                }
            }
        }
    }
}

/// Writes, without blocking if `nowait`.
fn write_part(descriptor: c_int, from: *const u8, bytes: usize, nowait: bool) -> i64 {
    if !nowait {
        return sys::syscall!(libc::SYS_write, descriptor, from, bytes);
    }
    let part = iovec { iov_base: from as *mut _, iov_len: bytes };
    sys::syscall!(
        libc::SYS_pwritev2,
        descriptor,
        &raw const part,
        1,
        -1i64,
        -1i64,
        libc::RWF_NOWAIT
    )
}

/// A message is never sent in parts.
fn message_flags(flags: c_int, nowait: bool) -> c_int {
    flags | if nowait { libc::MSG_DONTWAIT } else { 0 }
}

/// Notes what else than bytes was in a message, if the call succeeded; returns its result.
fn noted(result: i64, message: *const msghdr) -> i64 {
    if result >= 0 {
        // SAFETY: the kernel has read it.
        inside::note_message(unsafe { &*message });
    }
    result
}

/// The same for as many messages as the result says.
fn noted_all(result: i64, messages: *const mmsghdr) -> i64 {
    for index in 0..usize::try_from(result).unwrap_or(0) {
        // SAFETY: the kernel has read that many.
        inside::note_message(unsafe { &(*messages.add(index)).msg_hdr });
    }
    result
}

pub(super) extern "C" fn read_inner(descriptor: c_int, into: *mut u8, bytes: size_t) -> isize {
    input(descriptor, into, || {
        let read = sys::syscall!(libc::SYS_read, descriptor, into, bytes);
        randomness::seeded(descriptor, into, read)
    })
}

extern "C" fn write_inner(descriptor: c_int, from: *const u8, bytes: size_t) -> isize {
    output(descriptor, from, bytes, |done, nowait| {
        // SAFETY: within the program's buffer.
        let rest = unsafe { from.add(done) };
        write_part(descriptor, rest, bytes - done, nowait)
    })
}

pub(super) extern "C" fn pread_inner(
    descriptor: c_int,
    into: *mut u8,
    bytes: size_t,
    offset: i64,
) -> isize {
    input(descriptor, into, || sys::syscall!(libc::SYS_pread64, descriptor, into, bytes, offset))
}

extern "C" fn pwrite_inner(
    descriptor: c_int,
    from: *const u8,
    bytes: size_t,
    offset: i64,
) -> isize {
    output(descriptor, from, 0, |_, _| {
        sys::syscall!(libc::SYS_pwrite64, descriptor, from, bytes, offset)
    })
}

/// Records the ranges of a vector, up to `bytes` in total.
pub(super) fn vector(parts: *const iovec, n: c_int, mut bytes: u64, write: bool, pc: u64) {
    for index in 0..usize::try_from(n).unwrap_or(0) {
        // SAFETY: the program's vector of n parts.
        let part = unsafe { &*parts.add(index) };
        let length = (part.iov_len as u64).min(bytes);
        hook::range(part.iov_base as u64, length, write, pc);
        bytes -= length;
    }
}

extern "C" fn readv_inner(descriptor: c_int, parts: *const iovec, n: c_int) -> isize {
    let pc = hook::caller();
    let read = input(descriptor, core::ptr::null(), || {
        sys::syscall!(libc::SYS_readv, descriptor, parts, n)
    });
    vector(parts, n, u64::try_from(read).unwrap_or(0), true, pc);
    read
}

extern "C" fn writev_inner(descriptor: c_int, parts: *const iovec, n: c_int) -> isize {
    vector(parts, n, u64::MAX, false, hook::caller());
    output(descriptor, core::ptr::null(), 0, |_, _| {
        sys::syscall!(libc::SYS_writev, descriptor, parts, n)
    })
}

pub(super) extern "C" fn recv_inner(
    descriptor: c_int,
    into: *mut u8,
    bytes: size_t,
    flags: c_int,
) -> isize {
    let call = || sys::syscall!(libc::SYS_recvfrom, descriptor, into, bytes, flags, 0, 0);
    if flags & libc::MSG_DONTWAIT != 0 {
        input_at_once(descriptor, into, call)
    } else {
        input(descriptor, into, call)
    }
}

pub(super) extern "C" fn recvfrom_inner(
    descriptor: c_int,
    into: *mut u8,
    bytes: size_t,
    flags: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> isize {
    let call =
        || sys::syscall!(libc::SYS_recvfrom, descriptor, into, bytes, flags, address, length);
    if flags & libc::MSG_DONTWAIT != 0 {
        input_at_once(descriptor, into, call)
    } else {
        input(descriptor, into, call)
    }
}

extern "C" fn recvmsg_inner(descriptor: c_int, message: *mut msghdr, flags: c_int) -> isize {
    let call = || noted(sys::syscall!(libc::SYS_recvmsg, descriptor, message, flags), message);
    if flags & libc::MSG_DONTWAIT != 0 {
        input_at_once(descriptor, core::ptr::null(), call)
    } else {
        input(descriptor, core::ptr::null(), call)
    }
}

extern "C" fn recvmmsg_inner(
    descriptor: c_int,
    messages: *mut mmsghdr,
    n: u32,
    flags: c_int,
    time: *mut timespec,
) -> c_int {
    let call = || {
        let status = sys::syscall!(libc::SYS_recvmmsg, descriptor, messages, n, flags, time);
        noted_all(status, messages)
    };
    input(descriptor, core::ptr::null(), call) as c_int
}

extern "C" fn send_inner(descriptor: c_int, from: *const u8, bytes: size_t, flags: c_int) -> isize {
    sendto_inner(descriptor, from, bytes, flags, core::ptr::null(), 0)
}

extern "C" fn sendto_inner(
    descriptor: c_int,
    from: *const u8,
    bytes: size_t,
    flags: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> isize {
    output(descriptor, from, bytes, |done, nowait| {
        // SAFETY: within the program's buffer.
        let rest = unsafe { from.add(done) };
        let flags = message_flags(flags, nowait);
        sys::syscall!(libc::SYS_sendto, descriptor, rest, bytes - done, flags, address, length)
    })
}

extern "C" fn sendmsg_inner(descriptor: c_int, message: *const msghdr, flags: c_int) -> isize {
    output(descriptor, core::ptr::null(), 0, |_, nowait| {
        let flags = message_flags(flags, nowait);
        noted(sys::syscall!(libc::SYS_sendmsg, descriptor, message, flags), message)
    })
}

extern "C" fn sendmmsg_inner(
    descriptor: c_int,
    messages: *mut mmsghdr,
    n: u32,
    flags: c_int,
) -> c_int {
    output(descriptor, core::ptr::null(), 0, |_, nowait| {
        let flags = message_flags(flags, nowait);
        let status = sys::syscall!(libc::SYS_sendmmsg, descriptor, messages, n, flags);
        noted_all(status, messages)
    }) as c_int
}

extern "C" fn accept_inner(
    descriptor: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    accept4_inner(descriptor, address, length, 0)
}

extern "C" fn accept4_inner(
    descriptor: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let call = || sys::syscall!(libc::SYS_accept4, descriptor, address, length, flags);
    let new = input(descriptor, core::ptr::null(), call) as c_int;
    if new >= 0 {
        channel::connected(new);
        foreign::connected(new);
    }
    new
}

/// Connecting to a listener in this program succeeds at once: its queue accepts it.
extern "C" fn connect_inner(
    descriptor: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
        if sched::cancel_point(me) {
            return super::fail(libc::EINTR);
        }
    }
    channel::connect(descriptor, address, length, pc);
    let status = sys::syscall!(libc::SYS_connect, descriptor, address, length);
    if status == 0 {
        channel::has_connected(descriptor, address, length, pc);
        foreign::connected(descriptor);
    }
    result(status) as c_int
}

/// Waits for any of the descriptors; returns how many are ready.
fn poll_until(descriptors: &mut [pollfd], deadline: u64, pc: u64) -> i64 {
    let Some(me) = hook::me() else { return i64::from(-libc::EINVAL) };
    let is_foreign = foreign::is_any(descriptors);
    let (at, n) = (descriptors.as_mut_ptr() as u64, descriptors.len() as u32);
    let wait = if is_foreign { Wait::Peer(at, n) } else { Wait::Descriptors(at, n) };
    let first = descriptors.first().map_or(u64::MAX, |first| first.fd as u32 as u64);
    hook::record(Kind::Block, 0, first, 0, pc, &[]);
    let wake = hook::sync(me, pc, wait, deadline);
    hook::record(Kind::Unblock, 0, first, 0, pc, &[]);
    match wake {
        Wake::Interrupted | Wake::Cancelled => i64::from(-libc::EINTR),
        _ => {
            let n = sys::poll(descriptors, 0);
            see_ready(descriptors, pc);
            n
        }
    }
}

/// What the other end of a descriptor makes happen.
const INPUT: i16 = IN | libc::POLLPRI | libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;

/// Records what the thread sees of descriptors that are ready.
fn see_ready(descriptors: &[pollfd], pc: u64) {
    for ready in descriptors.iter().filter(|ready| ready.revents & INPUT != 0) {
        channel::receive(ready.fd, pc);
    }
}

fn milliseconds(ms: c_int) -> u64 {
    u64::try_from(ms).map_or(NEVER, |ms| clock::after(ms * 1_000_000))
}

fn span(time: *const timespec) -> u64 {
    if time.is_null() { NEVER } else { clock::after(clock::nanoseconds(time)) }
}

/// Copies a time, since the kernel stores the remaining time in it, which libc hides from its
/// callers.
fn copied(time: *const timespec) -> Option<timespec> {
    // SAFETY: the program's time, if it gives one.
    (!time.is_null()).then(|| unsafe { *time })
}

fn pointer(time: &mut Option<timespec>) -> *mut timespec {
    time.as_mut().map_or(core::ptr::null_mut(), core::ptr::from_mut)
}

/// The program's array of n descriptors; the pointer is ignored if n is 0.
fn array<'a>(descriptors: *mut pollfd, n: nfds_t) -> &'a mut [pollfd] {
    if n == 0 {
        return &mut [];
    }
    // SAFETY: the contract of `poll`.
    unsafe { core::slice::from_raw_parts_mut(descriptors, n as usize) }
}

pub(super) extern "C" fn poll_inner(descriptors: *mut pollfd, n: nfds_t, ms: c_int) -> c_int {
    let pc = hook::caller();
    if hook::me().is_none() {
        let status = sys::syscall!(libc::SYS_poll, descriptors, n, ms);
        if status > 0 {
            see_ready(array(descriptors, n), pc);
        }
        return result(status) as c_int;
    }
    let descriptors = array(descriptors, n);
    result(poll_until(descriptors, milliseconds(ms), pc)) as c_int
}

pub(super) extern "C" fn ppoll_inner(
    descriptors: *mut pollfd,
    n: nfds_t,
    time: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let pc = hook::caller();
    if hook::me().is_none() {
        let mut time = copied(time);
        let time = pointer(&mut time);
        let status = sys::syscall!(libc::SYS_ppoll, descriptors, n, time, mask, 8);
        if status > 0 {
            see_ready(array(descriptors, n), pc);
        }
        return result(status) as c_int;
    }
    if !time.is_null() && !clock::is_duration(time) {
        return super::fail(libc::EINVAL);
    }
    let descriptors = array(descriptors, n);
    result(poll_until(descriptors, span(time), pc)) as c_int
}

extern "C" fn select_inner(
    n: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    excepts: *mut fd_set,
    time: *mut timeval,
) -> c_int {
    let pc = hook::caller();
    if hook::me().is_none() {
        let status = sys::syscall!(libc::SYS_select, n, reads, writes, excepts, time);
        see_selected(n, reads, status, pc);
        return result(status) as c_int;
    }
    let deadline = if time.is_null() {
        NEVER
    } else {
        // SAFETY: the program's time.
        let time = unsafe { &*time };
        // Unlike elsewhere, a second or more of microseconds is fine.
        let (Ok(seconds), Ok(us)) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec))
        else {
            return super::fail(libc::EINVAL);
        };
        clock::after(seconds.saturating_mul(1_000_000_000).saturating_add(us.saturating_mul(1000)))
    };
    select_until(n, [reads, writes, excepts], deadline, pc)
}

extern "C" fn pselect_inner(
    n: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    excepts: *mut fd_set,
    time: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let pc = hook::caller();
    if hook::me().is_none() {
        let (pair, mut time) = ([mask as u64, 8], copied(time));
        let status = sys::syscall!(
            libc::SYS_pselect6,
            n,
            reads,
            writes,
            excepts,
            pointer(&mut time),
            pair.as_ptr()
        );
        see_selected(n, reads, status, pc);
        return result(status) as c_int;
    }
    if !time.is_null() && !clock::is_duration(time) {
        return super::fail(libc::EINVAL);
    }
    select_until(n, [reads, writes, excepts], span(time), pc)
}

/// Records what the thread sees of descriptors that can be read.
fn see_selected(n: c_int, reads: *const fd_set, status: i64, pc: u64) {
    if status <= 0 || reads.is_null() || !hook::tracing() {
        return;
    }
    for descriptor in 0..n {
        // SAFETY: the program's set, with room for n descriptors.
        if unsafe { libc::FD_ISSET(descriptor, reads) } {
            channel::receive(descriptor, pc);
        }
    }
}

/// `select` in terms of `poll`.
fn select_until(n: c_int, sets: [*mut fd_set; 3], deadline: u64, pc: u64) -> c_int {
    const EVENTS: [i16; 3] =
        [IN | libc::POLLHUP | libc::POLLERR, OUT | libc::POLLERR, libc::POLLPRI];
    if n < 0 {
        return super::fail(libc::EINVAL);
    }
    let mut descriptors = Vec::new();
    for descriptor in 0..n {
        let mut events = 0;
        for (set, event) in sets.iter().zip([IN, OUT, libc::POLLPRI]) {
            // SAFETY: the program's set, with room for n descriptors.
            if !set.is_null() && unsafe { libc::FD_ISSET(descriptor, *set) } {
                events |= event;
            }
        }
        if events != 0 {
            descriptors.push(pollfd { fd: descriptor, events, revents: 0 });
        }
    }
    let status = poll_until(&mut descriptors, deadline, pc);
    if status < 0 {
        return result(status) as c_int;
    }
    if descriptors.iter().any(|descriptor| descriptor.revents & libc::POLLNVAL != 0) {
        return super::fail(libc::EBADF);
    }
    let mut ready = 0;
    for (set, event) in sets.iter().zip(EVENTS) {
        if set.is_null() {
            continue;
        }
        for descriptor in &descriptors {
            // SAFETY: as above.
            if unsafe { libc::FD_ISSET(descriptor.fd, *set) } {
                if descriptor.revents & event == 0 {
                    // SAFETY: as above.
                    unsafe { libc::FD_CLR(descriptor.fd, *set) };
                } else {
                    ready += 1;
                }
            }
        }
    }
    ready
}

extern "C" fn epoll_wait_inner(
    epoll: c_int,
    events: *mut libc::epoll_event,
    n: c_int,
    ms: c_int,
) -> c_int {
    let pc = hook::caller();
    if hook::me().is_some() {
        let status = epoll_until(epoll, n, ms, pc);
        if status < 0 {
            return result(status) as c_int;
        }
    }
    let ms = if hook::me().is_some() { 0 } else { ms };
    let status = sys::syscall!(libc::SYS_epoll_wait, epoll, events, n, ms);
    see_events(epoll, events, status, pc);
    result(status) as c_int
}

extern "C" fn epoll_pwait_inner(
    epoll: c_int,
    events: *mut libc::epoll_event,
    n: c_int,
    ms: c_int,
    mask: *const sigset_t,
) -> c_int {
    let pc = hook::caller();
    if hook::me().is_some() {
        let status = epoll_until(epoll, n, ms, pc);
        if status < 0 {
            return result(status) as c_int;
        }
    }
    let ms = if hook::me().is_some() { 0 } else { ms };
    let status = sys::syscall!(libc::SYS_epoll_pwait, epoll, events, n, ms, mask, 8);
    see_events(epoll, events, status, pc);
    result(status) as c_int
}

/// Records what the thread sees of an epoll set and its members.
fn see_events(epoll: c_int, events: *const libc::epoll_event, n: i64, pc: u64) {
    if n > 0 && hook::me().is_none() {
        channel::receive(epoll, pc);
    }
    for index in 0..usize::try_from(n).unwrap_or(0) {
        // SAFETY: the kernel has stored n events there. They are not aligned.
        let event = unsafe { events.add(index).read_unaligned() };
        if event.events as i16 & INPUT != 0 {
            channel::receive_from_member(epoll, event.u64, pc);
        }
    }
}

/// What came before a descriptor is added to a set comes before its events.
extern "C" fn epoll_ctl_inner(
    epoll: c_int,
    command: c_int,
    descriptor: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    channel::send(epoll, false, hook::caller());
    let status = sys::syscall!(libc::SYS_epoll_ctl, epoll, command, descriptor, event);
    if status == 0 && command == libc::EPOLL_CTL_DEL {
        channel::remove(epoll, descriptor);
    } else if status == 0 && !event.is_null() {
        // SAFETY: the kernel has read an event from there. It is not aligned.
        channel::add(epoll, descriptor, unsafe { event.read_unaligned() }.u64);
    }
    result(status) as c_int
}

/// An epoll set is itself a descriptor, which is readable when one of its members is ready.
fn epoll_until(epoll: c_int, n: c_int, ms: c_int, pc: u64) -> i64 {
    if n <= 0 {
        return i64::from(-libc::EINVAL);
    }
    let mut set = [pollfd { fd: epoll, events: IN, revents: 0 }];
    poll_until(&mut set, milliseconds(ms), pc)
}
