//! Randomness: seeded under control.

use core::sync::atomic::Ordering;

use libc::{c_int, c_long, c_uint, size_t, ssize_t};

use crate::export::export;
use crate::guarded::Guarded;
use crate::random::Random;
use crate::real::real;
use crate::{hook, shared};

export! {
    getrandom => getrandom_inner;
    getentropy => getentropy_inner;
    arc4random => arc4random_inner;
    arc4random_buf => arc4random_buf_inner;
    arc4random_uniform => arc4random_uniform_inner;
    _ZNSt13random_device9_M_getvalEv => random_device;
}

static STATE: Guarded<Option<Random>> = Guarded::new(None);

fn next() -> u64 {
    let seed = shared::control().plan.seed.load(Ordering::Relaxed);
    STATE.lock().get_or_insert_with(|| Random::new(seed, 5)).next()
}

/// Fills memory as `getrandom` does.
pub(super) fn fill(into: *mut u8, bytes: usize) -> c_long {
    hook::range(into as u64, bytes as u64, true, hook::caller());
    for at in 0..bytes {
        // SAFETY: the program's buffer of that size.
        unsafe { *into.add(at) = next() as u8 };
    }
    bytes as c_long
}

extern "C" fn getrandom_inner(into: *mut u8, bytes: size_t, flags: c_uint) -> ssize_t {
    if hook::me().is_none() {
        return real!(getrandom(into => *mut u8, bytes => size_t, flags => c_uint) -> ssize_t);
    }
    fill(into, bytes) as ssize_t
}

extern "C" fn getentropy_inner(into: *mut u8, bytes: size_t) -> c_int {
    if hook::me().is_none() {
        return real!(getentropy(into => *mut u8, bytes => size_t) -> c_int);
    }
    if bytes > 256 {
        return super::fail(libc::EIO);
    }
    fill(into, bytes);
    0
}

extern "C" fn arc4random_inner() -> u32 {
    if hook::me().is_none() {
        return real!(arc4random() -> u32);
    }
    next() as u32
}

extern "C" fn arc4random_buf_inner(into: *mut u8, bytes: size_t) {
    if hook::me().is_none() {
        return real!(arc4random_buf(into => *mut u8, bytes => size_t));
    }
    fill(into, bytes);
}

extern "C" fn arc4random_uniform_inner(below: u32) -> u32 {
    if hook::me().is_none() {
        return real!(arc4random_uniform(below => u32) -> u32);
    }
    ((u64::from(next() as u32) * u64::from(below)) >> 32) as u32
}

/// libstdc++ asks the processor, which cannot be seeded.
extern "C" fn random_device(this: usize) -> u32 {
    if hook::me().is_none() {
        return real!(_ZNSt13random_device9_M_getvalEv(this => usize) -> u32);
    }
    next() as u32
}
