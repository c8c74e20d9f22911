// About: Mutex, try_lock, Arc, spawn, join with a result, thread names and builders.
// Covers: __tsan_atomic32_compare_exchange_val, __tsan_atomic64_compare_exchange_val,
// Covers: __tsan_atomic_thread_fence, __tsan_memcpy, __tsan_memmove, __tsan_memset,
// Covers: __tsan_unaligned_read16, __tsan_unaligned_read8, __tsan_unaligned_write4,
// Covers: __tsan_unaligned_write8, syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken,
// Covers: FutexWake
// Outcome: exit 0

use std::collections::HashMap;
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;

fn main() {
    let table = Arc::new(Mutex::new(HashMap::new()));
    let threads: Vec<_> = (0..4)
        .map(|me| {
            let table = Arc::clone(&table);
            thread::Builder::new()
                .name(format!("worker {me}"))
                .stack_size(256 * 1024)
                .spawn(move || {
                    for round in 0..10 {
                        *table.lock().unwrap().entry(round).or_insert(0) += me;
                    }
                    thread::current().name().map(str::len)
                })
                .unwrap()
        })
        .collect();
    for handle in threads {
        assert_eq!(handle.join().unwrap(), Some(8));
    }
    let table = table.lock().unwrap();
    assert_eq!(table.len(), 10);
    assert!(table.values().all(|sum| *sum == 6));

    let held = Mutex::new(5);
    let guard = held.lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| assert!(matches!(held.try_lock(), Err(TryLockError::WouldBlock))));
    });
    drop(guard);
    assert_eq!(held.into_inner().unwrap(), 5);
}
