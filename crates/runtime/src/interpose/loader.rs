//! The loader: constructors, destructors, and the callbacks of `dl_iterate_phdr` run under locks of
//! the loader ([`crate::loader`]).
//!
//! A thread that needs a lock of another thread waits for it in the model. Many of these functions
//! inspect their caller to choose a search path or a namespace, so we are never in between: libc's
//! function is jumped to, and acquires the lock, which is free.
//!
//! Limits: `dlvsym`, and what libc loads by itself (`iconv`, `getaddrinfo`, the first
//! `pthread_cancel`), wait in the kernel.

use raddle_trace::record::Wake;

use crate::export::export_noted;
use crate::loader::{self, Lock};
use crate::real::{self, address};
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, shared};

export_noted! {
    dlopen => open;
    dlmopen => open_in;
    dlclose => close;
    dlsym => symbol;
    dladdr => describe;
    dladdr1 => describe_more;
    dl_iterate_phdr => iterate;
    __cxa_thread_atexit_impl => at_thread_exit;
}

/// Waits until no other thread holds the lock.
fn await_free(me: u32, lock: Lock) {
    let pc = hook::caller();
    while let Some(at) = lock.held_by_other() {
        match hook::sync(me, pc, Wait::Loader(at), NEVER) {
            Wake::Woken
            | Wake::TimedOut
            | Wake::Interrupted
            | Wake::Spurious
            | Wake::Mismatch
            | Wake::Cancelled => {}
        }
    }
}

/// Before a call that loads or unloads libraries, and runs code of theirs.
fn before_code() {
    if shared::mode() == shared::OFF {
        return;
    }
    // A lookup needs the lock too.
    real::look_up_all();
    before(Lock::Load);
    before(Lock::List);
    loader::will_load();
}

/// Before a call that needs a lock: waits until no other thread holds it.
fn before(lock: Lock) {
    if let (Some(_), Some(me)) = (lock.held_by_other(), hook::me()) {
        await_free(me, lock);
    }
}

extern "C" fn open() -> usize {
    before_code();
    address!(dlopen)
}

extern "C" fn open_in() -> usize {
    before_code();
    address!(dlmopen)
}

extern "C" fn close() -> usize {
    before_code();
    address!(dlclose)
}

extern "C" fn symbol() -> usize {
    before(Lock::Load);
    // Lookups are made by `dlsym` itself, so it is looked up by version.
    address!(dlsym @ c"GLIBC_2.2.5")
}

extern "C" fn describe() -> usize {
    before(Lock::Load);
    address!(dladdr)
}

extern "C" fn describe_more() -> usize {
    before(Lock::Load);
    address!(dladdr1)
}

extern "C" fn iterate() -> usize {
    before(Lock::List);
    address!(dl_iterate_phdr)
}

extern "C" fn at_thread_exit() -> usize {
    before(Lock::Load);
    address!(__cxa_thread_atexit_impl)
}
