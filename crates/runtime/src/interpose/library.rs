//! Memory that other library functions touch: arrays that they sort, bytes that they print, time
//! in its static buffers, descriptions of files.
//!
//! What a function stores in memory of its own is recorded after it has run, when it is known
//! where that is.

use core::ffi::c_void;

use libc::{c_char, c_int, dirent, size_t, sockaddr, socklen_t, time_t, tm};

use super::stdio;
use super::string::real_length;
use crate::export::{export, export_noted};
use crate::hook;
use crate::real::{address, real};

export_noted! {
    qsort => sort;
    qsort_r => sort_with;
    asctime_r => text_into;
}

export_noted! { unsafe OTHER:
    puts => print_line;
    fputs => print_text;
    fputs_unlocked => print_text_unlocked;
    fwrite => print_block;
    fwrite_unlocked => print_block_unlocked;
    localtime_r => local_into;
    gmtime_r => universal_into;
    ctime_r => local_text_into;
    mktime => normalize;
}

export! { unsafe OTHER:
    localtime => local;
    gmtime => universal;
    asctime => text;
    ctime => local_text;
    strftime => format_time;
    readdir => next_entry;
    readdir64 => next_entry;
}

export! {
    __xpg_strerror_r => error_text;
    stat => stat_path;
    stat64 => stat_path;
    lstat => stat_link;
    lstat64 => stat_link;
    fstat => stat_descriptor;
    fstat64 => stat_descriptor;
    fstatat => stat_at;
    fstatat64 => stat_at;
    getsockopt => socket_option;
    getsockname => socket_name;
    getpeername => peer_name;
}

fn reads<T>(at: *const T, bytes: usize, pc: u64) {
    hook::range(at as u64, bytes as u64, false, pc);
}

fn writes<T>(at: *const T, bytes: usize, pc: u64) {
    if !at.is_null() {
        hook::range(at as u64, bytes as u64, true, pc);
    }
}

/// The comparison function is the program's, and seen by itself.
fn sorts(base: *mut c_void, n: usize, bytes: usize, pc: u64) {
    reads(base, n.saturating_mul(bytes), pc);
    writes(base, n.saturating_mul(bytes), pc);
}

extern "C" fn sort(base: *mut c_void, n: size_t, bytes: size_t) -> usize {
    sorts(base, n, bytes, hook::caller());
    address!(qsort)
}

extern "C" fn sort_with(base: *mut c_void, n: size_t, bytes: size_t) -> usize {
    sorts(base, n, bytes, hook::caller());
    address!(qsort_r)
}

extern "C" fn print_line(text: *const c_char) -> usize {
    reads(text, real_length(text) + 1, hook::caller());
    address!(puts)
}

extern "C" fn print_text(text: *const c_char, file: *mut c_void) -> usize {
    stdio::sends(file);
    reads(text, real_length(text) + 1, hook::caller());
    address!(fputs)
}

extern "C" fn print_text_unlocked(text: *const c_char, file: *mut c_void) -> usize {
    stdio::sends(file);
    reads(text, real_length(text) + 1, hook::caller());
    address!(fputs_unlocked)
}

extern "C" fn print_block(
    from: *const c_void,
    bytes: size_t,
    n: size_t,
    file: *mut c_void,
) -> usize {
    stdio::sends(file);
    reads(from, n.saturating_mul(bytes), hook::caller());
    address!(fwrite)
}

extern "C" fn print_block_unlocked(
    from: *const c_void,
    bytes: size_t,
    n: size_t,
    file: *mut c_void,
) -> usize {
    stdio::sends(file);
    reads(from, n.saturating_mul(bytes), hook::caller());
    address!(fwrite_unlocked)
}

/// Bytes of a time as `ctime` writes it.
const TIME_TEXT_BYTES: usize = 26;

fn converts(time: *const time_t, into: *mut tm) {
    let pc = hook::caller();
    reads(time, size_of::<time_t>(), pc);
    writes(into, size_of::<tm>(), pc);
}

extern "C" fn local_into(time: *const time_t, into: *mut tm) -> usize {
    converts(time, into);
    address!(localtime_r)
}

extern "C" fn universal_into(time: *const time_t, into: *mut tm) -> usize {
    converts(time, into);
    address!(gmtime_r)
}

extern "C" fn text_into(time: *const tm, into: *mut c_char) -> usize {
    let pc = hook::caller();
    reads(time, size_of::<tm>(), pc);
    writes(into, TIME_TEXT_BYTES, pc);
    address!(asctime_r)
}

extern "C" fn local_text_into(time: *const time_t, into: *mut c_char) -> usize {
    let pc = hook::caller();
    reads(time, size_of::<time_t>(), pc);
    writes(into, TIME_TEXT_BYTES, pc);
    address!(ctime_r)
}

extern "C" fn normalize(time: *mut tm) -> usize {
    let pc = hook::caller();
    reads(time, size_of::<tm>(), pc);
    writes(time, size_of::<tm>(), pc);
    address!(mktime)
}

extern "C" fn local(time: *const time_t) -> *mut tm {
    let pc = hook::caller();
    reads(time, size_of::<time_t>(), pc);
    let into = real!(localtime(time => *const time_t) -> *mut tm);
    writes(into, size_of::<tm>(), pc);
    into
}

extern "C" fn universal(time: *const time_t) -> *mut tm {
    let pc = hook::caller();
    reads(time, size_of::<time_t>(), pc);
    let into = real!(gmtime(time => *const time_t) -> *mut tm);
    writes(into, size_of::<tm>(), pc);
    into
}

extern "C" fn text(time: *const tm) -> *mut c_char {
    let pc = hook::caller();
    reads(time, size_of::<tm>(), pc);
    let into = real!(asctime(time => *const tm) -> *mut c_char);
    writes(into, TIME_TEXT_BYTES, pc);
    into
}

extern "C" fn local_text(time: *const time_t) -> *mut c_char {
    let pc = hook::caller();
    reads(time, size_of::<time_t>(), pc);
    let into = real!(ctime(time => *const time_t) -> *mut c_char);
    writes(into, TIME_TEXT_BYTES, pc);
    into
}

extern "C" fn format_time(
    into: *mut c_char,
    room: size_t,
    format: *const c_char,
    time: *const tm,
) -> size_t {
    let pc = hook::caller();
    reads(time, size_of::<tm>(), pc);
    let n = real!(strftime(into => *mut c_char, room => size_t, format => *const c_char, time => *const tm) -> size_t);
    if n > 0 {
        writes(into, n + 1, pc);
    }
    n
}

extern "C" fn error_text(error: c_int, into: *mut c_char, room: size_t) -> c_int {
    let pc = hook::caller();
    let status =
        real!(__xpg_strerror_r(error => c_int, into => *mut c_char, room => size_t) -> c_int);
    if status == 0 {
        writes(into, real_length(into) + 1, pc);
    }
    status
}

type Stat = *mut libc::stat;

fn described(status: c_int, into: Stat, pc: u64) -> c_int {
    if status == 0 {
        writes(into, size_of::<libc::stat>(), pc);
    }
    status
}

extern "C" fn stat_path(path: *const c_char, into: Stat) -> c_int {
    let pc = hook::caller();
    described(real!(stat(path => *const c_char, into => Stat) -> c_int), into, pc)
}

extern "C" fn stat_link(path: *const c_char, into: Stat) -> c_int {
    let pc = hook::caller();
    described(real!(lstat(path => *const c_char, into => Stat) -> c_int), into, pc)
}

extern "C" fn stat_descriptor(descriptor: c_int, into: Stat) -> c_int {
    let pc = hook::caller();
    described(real!(fstat(descriptor => c_int, into => Stat) -> c_int), into, pc)
}

extern "C" fn stat_at(directory: c_int, path: *const c_char, into: Stat, flags: c_int) -> c_int {
    let pc = hook::caller();
    let status = real!(fstatat(directory => c_int, path => *const c_char, into => Stat, flags => c_int) -> c_int);
    described(status, into, pc)
}

/// Records what a call has stored, and its length.
fn stored(status: c_int, into: *const c_void, length: *const socklen_t, pc: u64) -> c_int {
    if status == 0 && !length.is_null() {
        writes(length, size_of::<socklen_t>(), pc);
        // SAFETY: the program's length, which the kernel has set.
        writes(into, unsafe { *length } as usize, pc);
    }
    status
}

extern "C" fn socket_option(
    socket: c_int,
    level: c_int,
    option: c_int,
    into: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let pc = hook::caller();
    let status = real!(getsockopt(socket => c_int, level => c_int, option => c_int, into => *mut c_void, length => *mut socklen_t) -> c_int);
    stored(status, into, length, pc)
}

/// A name may be longer than the room that the program has for it.
fn named(
    into: *mut sockaddr,
    length: *mut socklen_t,
    call: impl FnOnce() -> c_int,
    pc: u64,
) -> c_int {
    // SAFETY: the program's length, if it gives one.
    let room = if length.is_null() { 0 } else { unsafe { *length } };
    let status = call();
    if status == 0 {
        writes(length, size_of::<socklen_t>(), pc);
        // SAFETY: as above; the kernel accepted it.
        writes(into, room.min(unsafe { *length }) as usize, pc);
    }
    status
}

extern "C" fn socket_name(socket: c_int, into: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let pc = hook::caller();
    let call = || real!(getsockname(socket => c_int, into => *mut sockaddr, length => *mut socklen_t) -> c_int);
    named(into, length, call, pc)
}

extern "C" fn peer_name(socket: c_int, into: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let pc = hook::caller();
    let call = || real!(getpeername(socket => c_int, into => *mut sockaddr, length => *mut socklen_t) -> c_int);
    named(into, length, call, pc)
}

/// An entry lies in the directory stream, until the next call for the same stream.
extern "C" fn next_entry(stream: *mut c_void) -> *mut dirent {
    let pc = hook::caller();
    let entry = real!(readdir(stream => *mut c_void) -> *mut dirent);
    if !entry.is_null() {
        // SAFETY: libc's entry.
        writes(entry, usize::from(unsafe { (*entry).d_reclen }), pc);
    }
    entry
}
