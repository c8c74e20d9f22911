//! Randomness: seeded under control.
//!
//! Reads of `/dev/urandom` and `/dev/random` are seeded too, by `read` and by libc's files.

use core::sync::atomic::Ordering;

use libc::{c_int, c_long, c_uint, size_t, ssize_t};

use crate::export::export;
use crate::guarded::Guarded;
use crate::random::Random;
use crate::real::real;
use crate::{hook, shared, sys};

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
    overwrite(into, bytes);
    bytes as c_long
}

fn overwrite(into: *mut u8, bytes: usize) {
    for at in 0..bytes {
        // SAFETY: the program's buffer of that size.
        unsafe { *into.add(at) = byte() };
    }
}

/// One random byte.
pub(super) fn byte() -> u8 {
    next() as u8
}

/// Devices that give random bytes, by number: `/dev/random` and `/dev/urandom`.
const DEVICES: [u64; 2] = [libc::makedev(1, 8), libc::makedev(1, 9)];

/// Whether what this descriptor gives is to be seeded.
pub(super) fn is_device(descriptor: c_int) -> bool {
    if hook::me().is_none() {
        return false;
    }
    // SAFETY: zeroes are a valid value of this plain struct.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    let status = sys::syscall!(libc::SYS_fstat, descriptor, &raw mut about);
    let is_character_device = about.st_mode & libc::S_IFMT == libc::S_IFCHR;
    status == 0 && is_character_device && DEVICES.contains(&about.st_rdev)
}

/// The kernel has read so many bytes, or failed. What came from a random device is replaced.
pub(super) fn seeded(descriptor: c_int, into: *mut u8, read: c_long) -> c_long {
    if read > 0 && is_device(descriptor) {
        overwrite(into, read as usize);
    }
    read
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
