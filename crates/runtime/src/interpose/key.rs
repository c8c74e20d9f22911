//! Thread keys, of POSIX and C11: libc's, and the one that we lend ([`crate::key`]).

use core::ffi::c_void;

use libc::c_int;

use crate::export::export;
use crate::key;

export! {
    pthread_key_create => key::create;
    pthread_key_delete => key::delete;
    pthread_setspecific => key::set;
    pthread_getspecific => key::get;
    tss_create => create;
    tss_delete => delete;
    tss_set => set;
    tss_get => key::get;
}

/// C11's result codes.
const SUCCESS: c_int = 0;
const ERROR: c_int = 2;

fn code(status: c_int) -> c_int {
    if status == 0 { SUCCESS } else { ERROR }
}

extern "C" fn create(id: *mut u32, destructor: usize) -> c_int {
    code(key::create(id, destructor))
}

extern "C" fn delete(id: u32) {
    key::delete(id);
}

extern "C" fn set(id: u32, value: *const c_void) -> c_int {
    code(key::set(id, value))
}
