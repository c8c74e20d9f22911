//! Statics and functions of Rust, for the lookups of tests/rust.rs.
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, RwLock};

#[repr(C)]
pub struct Queue {
    pub len: u64,
    pub slots: [Slot; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slot {
    pub key: u32,
    pub value: u32,
}

#[repr(C)]
pub struct Pair(pub u32, pub AtomicU32);

pub struct Shared(UnsafeCell<Queue>);

unsafe impl Sync for Shared {}

const EMPTY: Queue = Queue { len: 0, slots: [Slot { key: 0, value: 0 }; 3] };

#[used]
pub static STATE: Mutex<Queue> = Mutex::new(EMPTY);
#[used]
pub static READERS: RwLock<u64> = RwLock::new(0);
#[used]
pub static READY: Condvar = Condvar::new();
#[used]
pub static COUNT: AtomicUsize = AtomicUsize::new(0);
#[used]
pub static BARE: Shared = Shared(UnsafeCell::new(EMPTY));
#[used]
pub static CHOICE: Mutex<Option<u64>> = Mutex::new(None);

mod inner {
    #[used]
    pub static PAIR: super::Pair = super::Pair(1, super::AtomicU32::new(3));
}

#[inline(never)]
fn ticket() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[inline(never)]
fn withdraw(amount: u64) {
    std::hint::black_box(ticket()); // line: withdraw
    STATE.lock().unwrap().len -= amount;
}

fn main() {
    STATE.lock().unwrap().len += 5;
    withdraw(1);
    COUNT.fetch_add(ticket(), Ordering::SeqCst);
    inner::PAIR.1.store(inner::PAIR.0, Ordering::Relaxed);
    *CHOICE.lock().unwrap() = Some(2);
    *READERS.write().unwrap() += 1;
    READY.notify_one();
    // SAFETY: there is no other thread.
    unsafe { (*BARE.0.get()).len = 7 };
}
