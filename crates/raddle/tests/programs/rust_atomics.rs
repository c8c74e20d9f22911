// About: atomics of all widths, compare_exchange, fetch_update, fences, a spin lock of one's own.
// Covers: __tsan_atomic16_compare_exchange_val, __tsan_atomic8_compare_exchange_val, syscall,
// Covers: AtomicLoad, AtomicStore, AtomicUpdate, AtomicSwap, AtomicMiss, Fence, FutexWait,
// Covers: FutexWoken, FutexWake
// Outcome: exit 0

use std::cell::UnsafeCell;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, Ordering::*, fence};
use std::thread;

struct SpinLock {
    is_taken: AtomicBool,
    value: UnsafeCell<u32>,
}

// SAFETY: `value` is only reached by whoever set `is_taken`.
unsafe impl Sync for SpinLock {}

impl SpinLock {
    fn with(&self, change: impl FnOnce(&mut u32)) {
        while self.is_taken.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            hint::spin_loop();
        }
        // SAFETY: we have just set `is_taken`.
        change(unsafe { &mut *self.value.get() });
        self.is_taken.store(false, Release);
    }
}

static LOCK: SpinLock = SpinLock { is_taken: AtomicBool::new(false), value: UnsafeCell::new(0) };
static BYTE: AtomicU8 = AtomicU8::new(0);
static SHORT: AtomicU16 = AtomicU16::new(1);
static WORD: AtomicU32 = AtomicU32::new(0);
static LONG: AtomicI64 = AtomicI64::new(0);
static SLOT: AtomicPtr<String> = AtomicPtr::new(std::ptr::null_mut());

fn main() {
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for n in 1..=20 {
                    LOCK.with(|value| *value += 1);
                    BYTE.fetch_add(1, Relaxed);
                    SHORT.fetch_update(AcqRel, Acquire, |old| Some(old.wrapping_mul(3))).unwrap();
                    WORD.fetch_max(n, SeqCst);
                    LONG.fetch_sub(1 << 40, Relaxed);
                }
                fence(SeqCst);
                let old = SLOT.swap(Box::into_raw(Box::new("new".to_owned())), AcqRel);
                if !old.is_null() {
                    // SAFETY: it came out of the slot, so nobody else has it.
                    assert_eq!(*unsafe { Box::from_raw(old) }, "new");
                }
            });
        }
    });
    LOCK.with(|value| assert_eq!(*value, 60));
    assert_eq!(BYTE.load(SeqCst), 60);
    assert_eq!(SHORT.load(SeqCst), 3u16.wrapping_pow(60));
    assert_eq!((WORD.load(SeqCst), LONG.load(SeqCst)), (20, -60 << 40));
    // SAFETY: all threads are joined.
    drop(unsafe { Box::from_raw(SLOT.load(SeqCst)) });
}
