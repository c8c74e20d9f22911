//! CPU affinity: under control all threads share one processor, which is hidden from the program.
//!
//! Passing the turn between two threads takes a tenth of the time if they share a processor. The
//! program still sees the affinity that it was started with, from which it may derive its number
//! of workers.

use libc::{c_int, cpu_set_t, pid_t, pthread_attr_t, pthread_t, size_t};

use super::result;
use crate::export::export;
use crate::guarded::Guarded;
use crate::real::real;
use crate::{hook, sys};

export! {
    sched_getaffinity => get;
    sched_setaffinity => set;
    pthread_getaffinity_np => get_of_thread;
    pthread_setaffinity_np => set_of_thread;
    pthread_getattr_np => attributes;
}

const BYTES: usize = 128;
/// What the program sees.
static BEFORE: Guarded<[u8; BYTES]> = Guarded::new([0; BYTES]);
/// The processor that all threads share.
static PINNED: Guarded<[u8; BYTES]> = Guarded::new([0; BYTES]);

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

fn copy_out(bytes: size_t, mask: *mut cpu_set_t) {
    let before = BEFORE.lock();
    for at in 0..bytes {
        // SAFETY: the program's mask of that size.
        unsafe { *mask.cast::<u8>().add(at) = before.get(at).copied().unwrap_or(0) };
    }
}

/// Sets what the program sees to what the kernel makes of its request, which this thread obeys for
/// a moment. A request by one thread counts for all threads. Returns 0 or a negative error.
fn copy_in(bytes: size_t, mask: *const cpu_set_t) -> i64 {
    let status = sys::syscall!(libc::SYS_sched_setaffinity, 0, bytes, mask);
    if status < 0 {
        return status;
    }
    let mut granted = [0; BYTES];
    sys::syscall!(libc::SYS_sched_getaffinity, 0, BYTES, granted.as_mut_ptr());
    sys::syscall!(libc::SYS_sched_setaffinity, 0, BYTES, PINNED.lock().as_ptr());
    *BEFORE.lock() = granted;
    0
}

/// Whether the kernel id names a thread that shares our processor.
fn is_ours(thread: pid_t) -> bool {
    thread == 0 || sys::thread_exists(thread as u32)
}

extern "C" fn get(process: pid_t, bytes: size_t, mask: *mut cpu_set_t) -> c_int {
    let status = real!(sched_getaffinity(process => pid_t, bytes => size_t, mask => *mut cpu_set_t) -> c_int);
    if status == 0 && hook::me().is_some() && is_ours(process) {
        copy_out(bytes, mask);
    }
    status
}

extern "C" fn set(process: pid_t, bytes: size_t, mask: *const cpu_set_t) -> c_int {
    if hook::me().is_none() || !is_ours(process) {
        return real!(sched_setaffinity(process => pid_t, bytes => size_t, mask => *const cpu_set_t) -> c_int);
    }
    result(copy_in(bytes, mask)) as c_int
}

extern "C" fn get_of_thread(thread: pthread_t, bytes: size_t, mask: *mut cpu_set_t) -> c_int {
    let status = real!(pthread_getaffinity_np(thread => pthread_t, bytes => size_t, mask => *mut cpu_set_t) -> c_int);
    if status == 0 && hook::me().is_some() {
        copy_out(bytes, mask);
    }
    status
}

extern "C" fn set_of_thread(thread: pthread_t, bytes: size_t, mask: *const cpu_set_t) -> c_int {
    if hook::me().is_none() {
        return real!(pthread_setaffinity_np(thread => pthread_t, bytes => size_t, mask => *const cpu_set_t) -> c_int);
    }
    -copy_in(bytes, mask) as c_int
}

/// libc fills in the affinity of a thread that exists.
extern "C" fn attributes(thread: pthread_t, into: *mut pthread_attr_t) -> c_int {
    let status =
        real!(pthread_getattr_np(thread => pthread_t, into => *mut pthread_attr_t) -> c_int);
    if status == 0 && hook::me().is_some() {
        let before = BEFORE.lock();
        real!(pthread_attr_setaffinity_np(into => *mut pthread_attr_t, BYTES => size_t, before.as_ptr() => *const u8) -> c_int);
    }
    status
}
