//! What we replace of libc.
//!
//! Under control an operation is modelled, and libc's own is called when it will succeed at
//! once. In free mode libc's is called and the event recorded. Otherwise libc's is called.

pub(crate) mod affinity;
mod barrier;
mod c11;
mod clock;
mod cond;
mod descriptor;
mod futex;
mod loader;
mod memory;
mod misuse;
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
pub(crate) mod thread;
mod timer;
mod stdio;

use libc::c_int;

/// Sets `errno` and gives what a failing call returns.
fn fail(error: c_int) -> c_int {
    unsafe extern "C" {
        fn __errno_location() -> *mut c_int;
    }
    // SAFETY: libc's thread-local variable.
    unsafe { *__errno_location() = error };
    -1
}

/// A raw result as a libc function gives it.
fn result(raw: i64) -> i64 {
    if (-4095..0).contains(&raw) { i64::from(fail(-raw as c_int)) } else { raw }
}
