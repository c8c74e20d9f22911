//! Descriptors that are duplicated, paired, put to listen, shut down, and closed.
//!
//! Whoever uses the other end of a pipe or socket sees that this one is closed, so that is an
//! operation like a write: a thread can be preempted there, and what it did before is released.

use libc::c_int;

use super::{channel, fail, result};
use crate::export::{export, export_cancellable};
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, sched, sys};

export! {
    dup => duplicate;
    dup2 => duplicate_as;
    dup3 => duplicate_with;
    socketpair => create_pair;
    listen => start_listening;
    shutdown => shut_down;
}

export_cancellable! {
    close => close_one;
}

/// Records that a descriptor is about to be closed, as a step if it has another end.
pub(super) fn closes(descriptor: c_int, pc: u64) {
    if hook::watches() && channel::has_other_end(descriptor) {
        if let Some(me) = hook::me() {
            hook::sync(me, pc, Wait::Nothing, NEVER);
        }
        channel::send(descriptor, false, pc);
    }
    channel::forget(descriptor);
}

extern "C" fn close_one(descriptor: c_int) -> c_int {
    if hook::me().is_some_and(sched::cancel_point) {
        return fail(libc::EINTR);
    }
    closes(descriptor, hook::caller());
    result(sys::syscall!(libc::SYS_close, descriptor)) as c_int
}

extern "C" fn duplicate(descriptor: c_int) -> c_int {
    let new = result(sys::syscall!(libc::SYS_dup, descriptor)) as c_int;
    duplicated(descriptor, new)
}

extern "C" fn duplicate_as(descriptor: c_int, new: c_int) -> c_int {
    if descriptor != new {
        channel::send(new, false, hook::caller());
    }
    let new = result(sys::syscall!(libc::SYS_dup2, descriptor, new)) as c_int;
    duplicated(descriptor, new)
}

extern "C" fn duplicate_with(descriptor: c_int, new: c_int, flags: c_int) -> c_int {
    channel::send(new, false, hook::caller());
    let new = result(sys::syscall!(libc::SYS_dup3, descriptor, new, flags)) as c_int;
    duplicated(descriptor, new)
}

/// Notes a new descriptor, if there is one, and returns it.
pub(super) fn duplicated(old: c_int, new: c_int) -> c_int {
    if new >= 0 && new != old {
        channel::duplicate(old, new);
    }
    new
}

extern "C" fn create_pair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    into: *mut [c_int; 2],
) -> c_int {
    let status = result(sys::syscall!(libc::SYS_socketpair, domain, kind, protocol, into)) as c_int;
    if status == 0 {
        // SAFETY: the kernel has stored two descriptors there.
        channel::pair(unsafe { *into });
    }
    status
}

extern "C" fn start_listening(descriptor: c_int, backlog: c_int) -> c_int {
    channel::listen(descriptor, hook::caller());
    result(sys::syscall!(libc::SYS_listen, descriptor, backlog)) as c_int
}

extern "C" fn shut_down(descriptor: c_int, how: c_int) -> c_int {
    channel::shut(descriptor, hook::caller());
    result(sys::syscall!(libc::SYS_shutdown, descriptor, how)) as c_int
}
