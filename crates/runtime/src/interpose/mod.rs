//! The libc functions that we replace.
//!
//! Under control an operation is modeled, and libc's function is called when it will succeed at
//! once. In free mode libc's function is called and the event recorded. Otherwise libc's function
//! is called.

pub(crate) mod affinity;
mod aliases;
mod barrier;
mod blocking;
mod c11;
mod channel;
mod clock;
mod command;
mod cond;
mod descriptor;
mod ends;
mod foreign;
mod format;
mod fortified;
mod futex;
mod key;
mod library;
mod loader;
mod mapping;
mod memory;
pub(crate) mod misuse;
mod mutex;
mod new;
pub(crate) mod once;
pub(crate) mod process;
mod randomness;
mod rwlock;
mod semaphore;
pub(crate) mod signal;
mod sleep;
mod spin;
mod string;
mod text;
pub(crate) mod thread;
mod timer;
mod timer_descriptor;
mod timer_thread;
mod stdio;

use libc::c_int;

/// Sets `errno` and returns what a failing call returns.
fn fail(error: c_int) -> c_int {
    unsafe extern "C" {
        fn __errno_location() -> *mut c_int;
    }
    // SAFETY: libc's thread-local variable.
    unsafe { *__errno_location() = error };
    -1
}

/// Converts a raw result to that of a libc function.
fn result(raw: i64) -> i64 {
    if (-4095..0).contains(&raw) { i64::from(fail(-raw as c_int)) } else { raw }
}
