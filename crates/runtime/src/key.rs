//! Thread keys: libc has 1024, and one of them is ours.
//!
//! The destructor of our key tells us that a thread ends (`interpose::thread`). A program that
//! asks for all keys gets ours as its last one: libc's value of that key stays ours, and the
//! program's value is a thread-local word. The destructor of the program's key then runs before
//! ours, in the same rounds.
//!
//! Limits: keys that libc numbers above ours have their destructors called after ours; the last
//! round of those is not controlled.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use libc::c_int;

use crate::real::real;
use crate::tls;

/// Our key; the largest number if there is none.
static OURS: AtomicU32 = AtomicU32::new(u32::MAX);
/// How often our key was lent, and was given back: odd while the program has it. Values of threads
/// count only for one loan.
static LOAN: AtomicU64 = AtomicU64::new(0);
/// The program's destructor for it; 0 for none.
static DESTRUCTOR: AtomicUsize = AtomicUsize::new(0);

fn real_create(key: *mut u32, destructor: usize) -> c_int {
    real!(pthread_key_create(key => *mut u32, destructor => usize) -> c_int)
}

fn real_delete(key: u32) -> c_int {
    real!(pthread_key_delete(key => u32) -> c_int)
}

fn real_set(key: u32, value: *const c_void) -> c_int {
    real!(pthread_setspecific(key => u32, value => *const c_void) -> c_int)
}

/// Takes a key whose destructor runs after those of the program's keys: libc calls them in order
/// of their numbers, and assigns the lowest free number. `at_end` is that destructor. False if there
/// is no key.
pub(crate) fn start(at_end: usize) -> bool {
    const KEYS: usize = 256;
    let mut keys = [0; KEYS];
    let mut n = 0;
    while n < KEYS && real_create(&raw mut keys[n], at_end) == 0 {
        n += 1;
    }
    let Some(last) = n.checked_sub(1) else { return false };
    for &key in &keys[..last] {
        real_delete(key);
    }
    OURS.store(keys[last], Ordering::Relaxed);
    true
}

/// Makes the destructor of our key run when the running thread ends.
pub(crate) fn call_at_end() {
    // The value only has to be something.
    real_set(OURS.load(Ordering::Relaxed), core::ptr::dangling());
}

fn is_ours(key: u32) -> bool {
    key == OURS.load(Ordering::Relaxed)
}

/// The number of the current loan, if the program has our key.
fn loan() -> Option<u64> {
    let loan = LOAN.load(Ordering::Acquire);
    (loan % 2 == 1).then_some(loan)
}

/// `pthread_key_create`.
pub(crate) extern "C" fn create(key: *mut u32, destructor: usize) -> c_int {
    let status = real_create(key, destructor);
    let ours = OURS.load(Ordering::Relaxed);
    if status != libc::EAGAIN || ours == u32::MAX {
        return status;
    }
    let before = LOAN.load(Ordering::Acquire);
    let taken = before.is_multiple_of(2)
        && LOAN.compare_exchange(before, before + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if !taken {
        return status;
    }
    DESTRUCTOR.store(destructor, Ordering::Release);
    // SAFETY: the program passes where to put its key.
    unsafe { *key = ours };
    0
}

/// `pthread_key_delete`.
pub(crate) extern "C" fn delete(key: u32) -> c_int {
    if !is_ours(key) {
        return real_delete(key);
    }
    let Some(loan) = loan() else { return libc::EINVAL };
    match LOAN.compare_exchange(loan, loan + 1, Ordering::AcqRel, Ordering::Relaxed) {
        Ok(_) => 0,
        Err(_) => libc::EINVAL,
    }
}

/// `pthread_setspecific`.
pub(crate) extern "C" fn set(key: u32, value: *const c_void) -> c_int {
    if !is_ours(key) {
        return real_set(key, value);
    }
    let Some(loan) = loan() else { return libc::EINVAL };
    tls::set(tls::LENT_VALUE, value as u64);
    tls::set(tls::LENT_LOAN, loan);
    // The destructor runs also in threads that we do not know.
    if !value.is_null() {
        call_at_end();
    }
    0
}

/// `pthread_getspecific`.
pub(crate) extern "C" fn get(key: u32) -> *mut c_void {
    if is_ours(key) {
        let is_current = loan().is_some_and(|loan| tls::get(tls::LENT_LOAN) == loan);
        let value = if is_current { tls::get(tls::LENT_VALUE) } else { 0 };
        return value as *mut c_void;
    }
    real!(pthread_getspecific(key => u32) -> *mut c_void)
}

/// The program's destructor and its argument, in two registers; the first is 0 if there is nothing
/// to call.
#[repr(C)]
pub(crate) struct Due {
    destructor: usize,
    value: u64,
}

/// What the destructor of our key has to call first: the value is taken, as libc does.
pub(crate) extern "C" fn take_due() -> Due {
    let is_current = loan().is_some_and(|loan| tls::get(tls::LENT_LOAN) == loan);
    let value = tls::get(tls::LENT_VALUE);
    if !is_current || value == 0 {
        return Due { destructor: 0, value: 0 };
    }
    tls::set(tls::LENT_VALUE, 0);
    Due { destructor: DESTRUCTOR.load(Ordering::Acquire), value }
}
