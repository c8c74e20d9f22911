//! Processors: under control all threads share one, which the program need not know.
//!
//! Passing the turn between two threads of one processor takes a tenth of the time that it
//! takes between two. What the program sees, and counts its workers by, is what it was
//! started with.

use libc::{c_int, cpu_set_t, pid_t, pthread_t, size_t};

use crate::abi::stub::export;
use crate::guarded::Guarded;
use crate::real::real;
use crate::{hook, sys};

export! {
    sched_getaffinity => get;
    sched_setaffinity => set;
    pthread_getaffinity_np => get_of_thread;
    pthread_setaffinity_np => set_of_thread;
}

const BYTES: usize = 128;
static BEFORE: Guarded<[u8; BYTES]> = Guarded::new([0; BYTES]);

/// Moves the running thread, and with it those that it creates, to one processor.
pub(crate) fn pin(cpu: i32) {
    let mut before = BEFORE.lock();
    if sys::syscall!(libc::SYS_sched_getaffinity, 0, BYTES, before.as_mut_ptr()) < 0 {
        return;
    }
    let mut here = 0u32;
    sys::syscall!(libc::SYS_getcpu, &raw mut here, 0, 0);
    let cpu = u32::try_from(cpu).unwrap_or(here) as usize;
    let mut mask = [0u8; BYTES];
    if cpu / 8 < BYTES {
        mask[cpu / 8] = 1 << (cpu % 8);
        sys::syscall!(libc::SYS_sched_setaffinity, 0, BYTES, mask.as_ptr());
    }
}

/// Undoes [`pin`], in a child process.
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

/// What a thread asks for is taken as asked for by all.
fn copy_in(bytes: size_t, mask: *const cpu_set_t) {
    let mut before = BEFORE.lock();
    for at in 0..BYTES {
        // SAFETY: the program's mask of that size.
        before[at] = if at < bytes { unsafe { *mask.cast::<u8>().add(at) } } else { 0 };
    }
}

extern "C" fn get(process: pid_t, bytes: size_t, mask: *mut cpu_set_t) -> c_int {
    if hook::me().is_none() {
        return real!(sched_getaffinity(process => pid_t, bytes => size_t, mask => *mut cpu_set_t) -> c_int);
    }
    copy_out(bytes, mask);
    0
}

extern "C" fn set(process: pid_t, bytes: size_t, mask: *const cpu_set_t) -> c_int {
    if hook::me().is_none() {
        return real!(sched_setaffinity(process => pid_t, bytes => size_t, mask => *const cpu_set_t) -> c_int);
    }
    copy_in(bytes, mask);
    0
}

extern "C" fn get_of_thread(thread: pthread_t, bytes: size_t, mask: *mut cpu_set_t) -> c_int {
    if hook::me().is_none() {
        return real!(pthread_getaffinity_np(thread => pthread_t, bytes => size_t, mask => *mut cpu_set_t) -> c_int);
    }
    copy_out(bytes, mask);
    0
}

extern "C" fn set_of_thread(thread: pthread_t, bytes: size_t, mask: *const cpu_set_t) -> c_int {
    if hook::me().is_none() {
        return real!(pthread_setaffinity_np(thread => pthread_t, bytes => size_t, mask => *const cpu_set_t) -> c_int);
    }
    copy_in(bytes, mask);
    0
}
