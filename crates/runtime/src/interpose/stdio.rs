//! Files of libc's: a thread that holds one's lock keeps the turn, since others would wait
//! for it inside libc, where we cannot see them.

use core::ffi::c_void;

use crate::abi::stub::export;
use crate::real::real;
use crate::{shared, tls};

export! {
    flockfile => lock;
    funlockfile => unlock;
}

extern "C" fn lock(file: *mut c_void) {
    real!(flockfile(file => *mut c_void));
    if shared::controlled() {
        tls::set(tls::FILES, tls::get(tls::FILES) + 1);
    }
}

extern "C" fn unlock(file: *mut c_void) {
    real!(funlockfile(file => *mut c_void));
    tls::set(tls::FILES, tls::get(tls::FILES).saturating_sub(1));
}
