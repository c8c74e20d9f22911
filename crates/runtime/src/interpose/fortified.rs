//! What `-D_FORTIFY_SOURCE` makes of other functions: they also get the size of the buffer.
//!
//! Each is modeled like the plain function. An overflow ends the process in libc's `__chk_fail`,
//! before anything is read or written.

use core::ffi::c_void;

use libc::{c_int, nfds_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, timespec};

use super::descriptor;
use super::string::{
    Bytes, BytesMut, export_string, pc, reads, real_length, real_length_max, writes,
};
use crate::export::export_cancellable;
use crate::real::real;

export_cancellable! {
    __read_chk => read;
    __pread_chk => read_at;
    __pread64_chk => read_at;
    __recv_chk => receive;
    __recvfrom_chk => receive_from;
    __poll_chk => poll;
    __ppoll_chk => poll_precisely;
}

export_string! {
    __memcpy_chk => copy;
    __memmove_chk => move_inner;
    __mempcpy_chk => copy_end;
    __memset_chk => set;
    __explicit_bzero_chk => zero;
    __strcpy_chk => string_copy;
    __stpcpy_chk => string_copy_end;
    __strncpy_chk => string_copy_max;
    __stpncpy_chk => string_copy_max_end;
    __strcat_chk => string_append;
    __strncat_chk => string_append_max;
}

/// Ends the process if a buffer of `room` bytes is too small.
pub(super) fn check(bytes: usize, room: usize) {
    if bytes > room {
        real!(__chk_fail());
    }
}

extern "C" fn read(descriptor: c_int, into: *mut u8, bytes: size_t, room: size_t) -> isize {
    check(bytes, room);
    descriptor::read_inner(descriptor, into, bytes)
}

extern "C" fn read_at(
    descriptor: c_int,
    into: *mut u8,
    bytes: size_t,
    offset: i64,
    room: size_t,
) -> isize {
    check(bytes, room);
    descriptor::pread_inner(descriptor, into, bytes, offset)
}

extern "C" fn receive(
    descriptor: c_int,
    into: *mut u8,
    bytes: size_t,
    room: size_t,
    flags: c_int,
) -> isize {
    check(bytes, room);
    descriptor::recv_inner(descriptor, into, bytes, flags)
}

extern "C" fn receive_from(
    descriptor: c_int,
    into: *mut u8,
    bytes: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> isize {
    check(bytes, room);
    descriptor::recvfrom_inner(descriptor, into, bytes, flags, address, length)
}

extern "C" fn poll(descriptors: *mut pollfd, n: nfds_t, ms: c_int, room: size_t) -> c_int {
    check(n as usize, room / size_of::<pollfd>());
    descriptor::poll_inner(descriptors, n, ms)
}

extern "C" fn poll_precisely(
    descriptors: *mut pollfd,
    n: nfds_t,
    time: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    check(n as usize, room / size_of::<pollfd>());
    descriptor::ppoll_inner(descriptors, n, time, mask)
}

extern "C" fn copy(to: BytesMut, from: Bytes, bytes: size_t, room: size_t) -> *mut c_void {
    let pc = pc();
    check(bytes, room);
    reads(from, bytes, pc);
    writes(to, bytes, pc);
    real!(__memcpy_chk(to => BytesMut, from => Bytes, bytes => size_t, room => size_t) -> *mut c_void)
}

extern "C" fn move_inner(to: BytesMut, from: Bytes, bytes: size_t, room: size_t) -> *mut c_void {
    let pc = pc();
    check(bytes, room);
    reads(from, bytes, pc);
    writes(to, bytes, pc);
    real!(__memmove_chk(to => BytesMut, from => Bytes, bytes => size_t, room => size_t) -> *mut c_void)
}

extern "C" fn copy_end(to: BytesMut, from: Bytes, bytes: size_t, room: size_t) -> *mut c_void {
    let pc = pc();
    check(bytes, room);
    reads(from, bytes, pc);
    writes(to, bytes, pc);
    real!(__mempcpy_chk(to => BytesMut, from => Bytes, bytes => size_t, room => size_t) -> *mut c_void)
}

extern "C" fn set(to: BytesMut, byte: c_int, bytes: size_t, room: size_t) -> *mut c_void {
    let pc = pc();
    check(bytes, room);
    writes(to, bytes, pc);
    real!(__memset_chk(to => BytesMut, byte => c_int, bytes => size_t, room => size_t) -> *mut c_void)
}

extern "C" fn zero(to: BytesMut, bytes: size_t, room: size_t) {
    let pc = pc();
    check(bytes, room);
    writes(to, bytes, pc);
    real!(__explicit_bzero_chk(to => BytesMut, bytes => size_t, room => size_t));
}

extern "C" fn string_copy(to: BytesMut, from: Bytes, room: size_t) -> BytesMut {
    let pc = pc();
    let bytes = real_length(from) + 1;
    check(bytes, room);
    reads(from, bytes, pc);
    writes(to, bytes, pc);
    real!(__strcpy_chk(to => BytesMut, from => Bytes, room => size_t) -> BytesMut)
}

extern "C" fn string_copy_end(to: BytesMut, from: Bytes, room: size_t) -> BytesMut {
    let pc = pc();
    let bytes = real_length(from) + 1;
    check(bytes, room);
    reads(from, bytes, pc);
    writes(to, bytes, pc);
    real!(__stpcpy_chk(to => BytesMut, from => Bytes, room => size_t) -> BytesMut)
}

extern "C" fn string_copy_max(to: BytesMut, from: Bytes, max: size_t, room: size_t) -> BytesMut {
    let pc = pc();
    check(max, room);
    reads(from, (real_length_max(from, max) + 1).min(max), pc);
    writes(to, max, pc);
    real!(__strncpy_chk(to => BytesMut, from => Bytes, max => size_t, room => size_t) -> BytesMut)
}

extern "C" fn string_copy_max_end(
    to: BytesMut,
    from: Bytes,
    max: size_t,
    room: size_t,
) -> BytesMut {
    let pc = pc();
    check(max, room);
    reads(from, (real_length_max(from, max) + 1).min(max), pc);
    writes(to, max, pc);
    real!(__stpncpy_chk(to => BytesMut, from => Bytes, max => size_t, room => size_t) -> BytesMut)
}

extern "C" fn string_append(to: BytesMut, from: Bytes, room: size_t) -> BytesMut {
    let pc = pc();
    let tail = real_length(from);
    appends(to, from, tail, tail + 1, room, pc);
    real!(__strcat_chk(to => BytesMut, from => Bytes, room => size_t) -> BytesMut)
}

extern "C" fn string_append_max(to: BytesMut, from: Bytes, max: size_t, room: size_t) -> BytesMut {
    let pc = pc();
    let tail = real_length_max(from, max);
    appends(to, from, tail, (tail + 1).min(max), room, pc);
    real!(__strncat_chk(to => BytesMut, from => Bytes, max => size_t, room => size_t) -> BytesMut)
}

/// Checks and records that `tail` characters are appended, of which and of what follows them
/// `read` are read.
fn appends(to: BytesMut, from: Bytes, tail: usize, read: usize, room: usize, pc: u64) {
    let head = real_length_max(to, room);
    check(head + tail + 1, room);
    reads(from, read, pc);
    reads(to, head + 1, pc);
    // SAFETY: the end of the program's own string.
    writes(unsafe { to.add(head) }, tail + 1, pc);
}
