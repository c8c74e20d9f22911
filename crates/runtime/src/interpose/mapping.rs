//! Memory that the program maps and unmaps by itself.
//!
//! Memory that is mapped again is another generation: what threads did there before is no race
//! with what they do now, as for blocks of the heap. Unmapping counts as a write of all of it, and
//! a thread can be preempted there. A use of unmapped memory is the kernel's to punish.
//!
//! libc maps for itself without calling us: large blocks, which are the heap's, and stacks.

use core::ffi::c_void;

use libc::{c_int, off_t, size_t};
use raddle_trace::record::Kind;

use super::result;
use crate::export::export;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, modules, sched, sys, tls};

export! {
    mmap => map;
    mmap64 => map;
    munmap => unmap;
    mremap => remap;
}

/// Records that memory was mapped.
fn born(at: u64, bytes: size_t, pc: u64) {
    if bytes > 0 {
        hook::record(Kind::Map, 0, at, 0, pc, &[bytes as u64]);
    }
}

/// Records that memory is about to be unmapped.
fn dies(at: u64, bytes: size_t, pc: u64) {
    if bytes > 0 {
        hook::record(Kind::Unmap, 0, at, 0, pc, &[bytes as u64]);
    }
}

/// Lets others go first, if the program itself calls.
fn step(at: u64, pc: u64) {
    let stops = modules::from_program(pc) && tls::get(tls::TURN) == 1;
    if let Some(me) = hook::me().filter(|_| stops) {
        hook::about_to(me, at, true);
        sched::visible(me, pc, Wait::Nothing, NEVER, true);
    }
}

fn failed(raw: i64) -> bool {
    (-4095..0).contains(&raw)
}

extern "C" fn map(
    wanted: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off_t,
) -> *mut c_void {
    let pc = hook::caller();
    let at = sys::syscall!(libc::SYS_mmap, wanted, bytes, protection, flags, descriptor, offset);
    if !failed(at) {
        born(at as u64, bytes, pc);
    }
    result(at) as *mut c_void
}

extern "C" fn unmap(at: *mut c_void, bytes: size_t) -> c_int {
    let pc = hook::caller();
    step(at as u64, pc);
    dies(at as u64, bytes, pc);
    let status = sys::syscall!(libc::SYS_munmap, at, bytes);
    if failed(status) {
        born(at as u64, bytes, pc);
    }
    result(status) as c_int
}

/// Whatever moves or shrinks is unmapped first; where it arrives, it is new.
extern "C" fn remap(
    at: *mut c_void,
    old_bytes: size_t,
    bytes: size_t,
    flags: c_int,
    wanted: *mut c_void,
) -> *mut c_void {
    let pc = hook::caller();
    let from = at as u64;
    step(from, pc);
    let moves =
        bytes > old_bytes && flags & libc::MREMAP_MAYMOVE != 0 || flags & libc::MREMAP_FIXED != 0;
    let (lost, n_lost) = if moves {
        (from, old_bytes)
    } else {
        (from.saturating_add(bytes as u64), old_bytes.saturating_sub(bytes))
    };
    dies(lost, n_lost, pc);
    let new = sys::syscall!(libc::SYS_mremap, at, old_bytes, bytes, flags, wanted);
    if failed(new) {
        // It stays in place.
        born(lost, n_lost, pc);
    } else if moves {
        born(new as u64, bytes, pc);
    } else {
        born(from.saturating_add(old_bytes as u64), bytes.saturating_sub(old_bytes), pc);
    }
    result(new) as *mut c_void
}
