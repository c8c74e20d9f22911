//! Locks that are a byte, and one table of parked threads for all of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{
    Condvar, Mutex, MutexGuard, Once, ReentrantMutex, RwLock, RwLockUpgradableReadGuard,
};

fn main() {
    let counted = count();
    let moved = bounded_buffer();
    let (reads, writes) = readers_and_writers();
    timeouts();
    once_and_reentrant();
    println!("counted {counted}, moved {moved}, reads {reads}, writes {writes}");
}

/// Four threads that count, some of which pass the lock on fairly.
fn count() -> u64 {
    let counter = Mutex::new(0);
    thread::scope(|scope| {
        for id in 0..4 {
            let counter = &counter;
            scope.spawn(move || {
                for n in 0..100 {
                    let mut guard = counter.lock();
                    *guard += 1;
                    match (id + n) % 4 {
                        0 => MutexGuard::unlock_fair(guard),
                        1 => MutexGuard::bump(&mut guard),
                        _ => drop(guard),
                    }
                }
            });
        }
    });
    counter.into_inner()
}

/// Two producers, two consumers, room for three.
fn bounded_buffer() -> u64 {
    let (buffer, filled, emptied) = (Mutex::new(VecDeque::new()), Condvar::new(), Condvar::new());
    let total = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 1..=60 {
                    let mut buffer = buffer.lock();
                    emptied.wait_while(&mut buffer, |buffer| buffer.len() == 3);
                    buffer.push_back(n);
                    filled.notify_one();
                }
            });
            scope.spawn(|| {
                for _ in 1..=60 {
                    let mut buffer = buffer.lock();
                    filled.wait_while(&mut buffer, |buffer| buffer.is_empty());
                    let n: u64 = buffer.pop_front().expect("it is not empty");
                    emptied.notify_one();
                    drop(buffer);
                    total.fetch_add(n, Ordering::Relaxed);
                }
            });
        }
    });
    total.into_inner()
}

/// Two numbers that are equal whenever somebody looks.
fn readers_and_writers() -> (u64, u64) {
    let pair = RwLock::new((0_u64, 0_u64));
    let reads = AtomicU64::new(0);
    thread::scope(|scope| {
        for id in 0..2 {
            let (pair, reads) = (&pair, &reads);
            scope.spawn(move || {
                for n in 0..40 {
                    let mut both = if (id + n) % 2 == 0 {
                        pair.write()
                    } else {
                        let seen = pair.upgradable_read();
                        let before = seen.0;
                        let both = RwLockUpgradableReadGuard::upgrade(seen);
                        assert_eq!(both.0, before, "nobody writes before an upgrade");
                        both
                    };
                    both.0 += 1;
                    both.1 += 1;
                    let both = parking_lot::RwLockWriteGuard::downgrade(both);
                    assert_eq!(both.0, both.1);
                }
            });
            scope.spawn(move || {
                for _ in 0..60 {
                    let both = pair.read();
                    assert_eq!(both.0, both.1);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (reads.into_inner(), pair.into_inner().0)
}

/// What is not to be had does not keep anybody forever.
fn timeouts() {
    let (lock, signal, ready) = (Mutex::new(false), Condvar::new(), AtomicBool::new(false));
    let brief = Duration::from_millis(30);
    thread::scope(|scope| {
        let held = lock.lock();
        let tries = scope.spawn(|| lock.try_lock_for(brief).is_none());
        assert!(tries.join().expect("no panic"), "the lock is held");
        drop(held);
        let mut guard = lock.lock();
        assert!(signal.wait_for(&mut guard, brief).timed_out(), "nobody signals");
        scope.spawn(|| {
            thread::sleep(brief);
            *lock.lock() = true;
            ready.store(true, Ordering::Relaxed);
            assert!(signal.notify_all() <= 1);
        });
        while !*guard {
            signal.wait_for(&mut guard, Duration::from_secs(60));
        }
        assert!(ready.load(Ordering::Relaxed) || *guard);
    });
}

fn once_and_reentrant() {
    static ONCE: Once = Once::new();
    let (n_calls, nested) = (AtomicU64::new(0), ReentrantMutex::new(()));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                ONCE.call_once(|| {
                    n_calls.fetch_add(1, Ordering::Relaxed);
                });
                assert_eq!(n_calls.load(Ordering::Relaxed), 1);
                let _outer = nested.lock();
                let _inner = nested.lock();
            });
        }
    });
}
