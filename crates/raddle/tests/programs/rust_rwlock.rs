// About: RwLock: readers share, writers do not; try_read, try_write; a Barrier proves the sharing.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake
// Outcome: exit 0

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, RwLock};
use std::thread;

static LOCK: RwLock<(u64, u64)> = RwLock::new((0, 0));
static N_LEADERS: AtomicUsize = AtomicUsize::new(0);

fn main() {
    let barrier = Barrier::new(3);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let pair = LOCK.read().unwrap();
                if barrier.wait().is_leader() {
                    N_LEADERS.fetch_add(1, Ordering::Relaxed);
                }
                assert!(LOCK.try_write().is_err());
                assert_eq!(pair.0, pair.1);
            });
        }
    });
    assert_eq!(N_LEADERS.load(Ordering::Relaxed), 1);

    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..15 {
                    let mut pair = LOCK.write().unwrap();
                    pair.0 += 1;
                    pair.1 += 1;
                }
            });
            scope.spawn(|| {
                for _ in 0..15 {
                    let pair = LOCK.read().unwrap();
                    assert_eq!(pair.0, pair.1);
                }
            });
        }
    });
    let pair = LOCK.write().unwrap();
    assert!(LOCK.try_read().is_err());
    assert_eq!(*pair, (30, 30));
}
