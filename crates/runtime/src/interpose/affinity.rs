//! CPU affinity: under control all threads share one processor, which is hidden from the program.
//!
//! Passing the turn between two threads takes a tenth of the time if they share a processor. The
//! program still sees the affinity that it was started with, from which it may derive its number
//! of workers, or the one that it chose for a thread, and each thread runs on one processor of its
//! own set as far as it can see.

use alloc::vec::Vec;

use libc::{c_int, c_uint, cpu_set_t, pid_t, pthread_attr_t, pthread_t, size_t};

use super::result;
use crate::export::export;
use crate::guarded::Guarded;
use crate::real::real;
use crate::sched::SCHED;
use crate::{hook, sys};

export! {
    sched_getaffinity => get;
    sched_setaffinity => set;
    pthread_getaffinity_np => get_of_thread;
    pthread_setaffinity_np => set_of_thread;
    pthread_getattr_np => attributes;
    sched_getcpu => processor;
    getcpu => processor_and_node;
}

const BYTES: usize = 128;
/// A set of processors.
type Set = [u8; BYTES];
/// What the program sees of threads that have no set of their own.
static BEFORE: Guarded<Set> = Guarded::new([0; BYTES]);
/// The processor that all threads share.
static PINNED: Guarded<Set> = Guarded::new([0; BYTES]);
/// The sets of threads for which the program chose one.
static OWN: Guarded<Vec<(u32, Set)>> = Guarded::new(Vec::new());

/// Moves the running thread, and the threads that it creates, to one processor.
pub(crate) fn pin(cpu: i32) {
    let mut before = BEFORE.lock();
    if sys::syscall!(libc::SYS_sched_getaffinity, 0, BYTES, before.as_mut_ptr()) < 0 {
        return;
    }
    let mut here = 0u32;
    sys::syscall!(libc::SYS_getcpu, &raw mut here, 0, 0);
    let cpu = u32::try_from(cpu).unwrap_or(here) as usize;
    let mut mask = PINNED.lock();
    if cpu / 8 < BYTES {
        mask[cpu / 8] = 1 << (cpu % 8);
        sys::syscall!(libc::SYS_sched_setaffinity, 0, BYTES, mask.as_ptr());
    }
}

/// Undoes [`pin`] in a child process.
pub(crate) fn unpin() {
    let before = BEFORE.lock();
    if before.iter().any(|&byte| byte != 0) {
        sys::syscall!(libc::SYS_sched_setaffinity, 0, BYTES, before.as_ptr());
    }
}

/// A new thread gets the set of its attributes, or else that of the thread that creates it.
pub(crate) fn create(thread: u32, parent: u32, attr: *const pthread_attr_t) {
    let mut set = [u8::MAX; BYTES];
    if !attr.is_null() {
        real!(pthread_attr_getaffinity_np(attr => *const pthread_attr_t, BYTES => size_t, set.as_mut_ptr() => *mut u8) -> c_int);
    }
    // Attributes without a set name all processors that there could be.
    if set.iter().all(|&byte| byte == u8::MAX) {
        if let Some(set) = own(parent) {
            choose(thread, set);
        }
        return;
    }
    let before = BEFORE.lock();
    set.iter_mut().zip(before.iter()).for_each(|(byte, before)| *byte &= before);
    choose(thread, set);
}

/// A new thread runs: on the processor that all share, whatever its attributes say.
pub(crate) fn begin() {
    let mut set = [0; BYTES];
    sys::syscall!(libc::SYS_sched_getaffinity, 0, BYTES, set.as_mut_ptr());
    let pinned = PINNED.lock();
    if set != *pinned && pinned.iter().any(|&byte| byte != 0) {
        sys::syscall!(libc::SYS_sched_setaffinity, 0, BYTES, pinned.as_ptr());
    }
}

/// A thread ends.
pub(crate) fn end(me: u32) {
    OWN.lock().retain(|&(thread, _)| thread != me);
}

fn own(thread: u32) -> Option<Set> {
    OWN.lock().iter().find(|&&(other, _)| other == thread).map(|&(_, set)| set)
}

/// The set of a thread, as the program sees it.
fn set_of(thread: u32) -> Set {
    own(thread).unwrap_or_else(|| *BEFORE.lock())
}

fn choose(thread: u32, set: Set) {
    let mut own = OWN.lock();
    match own.iter_mut().find(|(other, _)| *other == thread) {
        Some((_, known)) => *known = set,
        None => own.push((thread, set)),
    }
}

fn copy_out(set: &Set, bytes: size_t, mask: *mut cpu_set_t) {
    for at in 0..bytes {
        // SAFETY: the program's mask of that size.
        unsafe { *mask.cast::<u8>().add(at) = set.get(at).copied().unwrap_or(0) };
    }
}

/// Sets what the program sees of a thread to what the kernel makes of its request, which this thread
/// obeys for a moment. Returns 0 or a negative error.
fn copy_in(thread: u32, bytes: size_t, mask: *const cpu_set_t) -> i64 {
    let status = sys::syscall!(libc::SYS_sched_setaffinity, 0, bytes, mask);
    if status < 0 {
        return status;
    }
    let mut granted = [0; BYTES];
    sys::syscall!(libc::SYS_sched_getaffinity, 0, BYTES, granted.as_mut_ptr());
    sys::syscall!(libc::SYS_sched_setaffinity, 0, BYTES, PINNED.lock().as_ptr());
    choose(thread, granted);
    0
}

/// The thread that a kernel id names, if it is one that shares our processor.
fn named(thread: pid_t) -> Option<u32> {
    let me = hook::me()?;
    if thread == 0 {
        return Some(me);
    }
    let sched = SCHED.lock();
    sched.live.iter().copied().find(|&id| sched.threads[id as usize].kernel_id == thread as u32)
}

/// The same for libc's id.
fn named_by_libc(thread: pthread_t) -> Option<u32> {
    hook::me()?;
    SCHED.lock().by_pthread(thread)
}

extern "C" fn get(thread: pid_t, bytes: size_t, mask: *mut cpu_set_t) -> c_int {
    let status =
        real!(sched_getaffinity(thread => pid_t, bytes => size_t, mask => *mut cpu_set_t) -> c_int);
    if let Some(thread) = named(thread).filter(|_| status == 0) {
        copy_out(&set_of(thread), bytes, mask);
    }
    status
}

extern "C" fn set(thread: pid_t, bytes: size_t, mask: *const cpu_set_t) -> c_int {
    match named(thread) {
        Some(thread) => result(copy_in(thread, bytes, mask)) as c_int,
        None => {
            real!(sched_setaffinity(thread => pid_t, bytes => size_t, mask => *const cpu_set_t) -> c_int)
        }
    }
}

extern "C" fn get_of_thread(thread: pthread_t, bytes: size_t, mask: *mut cpu_set_t) -> c_int {
    let status = real!(pthread_getaffinity_np(thread => pthread_t, bytes => size_t, mask => *mut cpu_set_t) -> c_int);
    if let Some(thread) = named_by_libc(thread).filter(|_| status == 0) {
        copy_out(&set_of(thread), bytes, mask);
    }
    status
}

extern "C" fn set_of_thread(thread: pthread_t, bytes: size_t, mask: *const cpu_set_t) -> c_int {
    match named_by_libc(thread) {
        Some(thread) => -copy_in(thread, bytes, mask) as c_int,
        None => {
            real!(pthread_setaffinity_np(thread => pthread_t, bytes => size_t, mask => *const cpu_set_t) -> c_int)
        }
    }
}

/// libc fills in the affinity of a thread that exists.
extern "C" fn attributes(thread: pthread_t, into: *mut pthread_attr_t) -> c_int {
    let status =
        real!(pthread_getattr_np(thread => pthread_t, into => *mut pthread_attr_t) -> c_int);
    if let Some(thread) = named_by_libc(thread).filter(|_| status == 0) {
        let set = set_of(thread);
        real!(pthread_attr_setaffinity_np(into => *mut pthread_attr_t, BYTES => size_t, set.as_ptr() => *const u8) -> c_int);
    }
    status
}

/// The processor that a thread runs on as far as the program can see: always the same one, and
/// another one than its neighbors if there are several.
fn processor_of(thread: u32) -> u32 {
    let set = set_of(thread);
    let is_in = |cpu: &u32| set[*cpu as usize / 8] & (1 << (cpu % 8)) != 0;
    let all = || (0..8 * BYTES as u32).filter(is_in);
    let n = all().count().max(1);
    all().nth(thread as usize % n).unwrap_or(0)
}

extern "C" fn processor() -> c_int {
    match hook::me() {
        Some(me) => processor_of(me) as c_int,
        None => real!(sched_getcpu() -> c_int),
    }
}

extern "C" fn processor_and_node(cpu: *mut c_uint, node: *mut c_uint) -> c_int {
    let status = real!(getcpu(cpu => *mut c_uint, node => *mut c_uint) -> c_int);
    if let Some(me) = hook::me().filter(|_| status == 0 && !cpu.is_null()) {
        // SAFETY: the program passes where to put it.
        unsafe { *cpu = processor_of(me) };
    }
    status
}
