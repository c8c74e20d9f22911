// Nothing is wrong: a one-shot signal on park and unpark, with a time limit that wakes the waiter to
// look again; parking may return for no reason.
// Hunt: clean

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

struct Signal {
    is_set: AtomicBool,
    n_looks: AtomicU32,
}

impl Signal {
    fn set(&self, waiter: &thread::Thread) {
        self.is_set.store(true, Ordering::Release);
        waiter.unpark();
    }

    /// Waits for up to `limit`; returns whether it was set.
    fn wait(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            self.n_looks.fetch_add(1, Ordering::Relaxed);
            if self.is_set.load(Ordering::Acquire) {
                return true;
            }
            let now = Instant::now();
            if now >= end {
                return false;
            }
            thread::park_timeout(end - now);
        }
    }
}

fn main() {
    let signal = Arc::new(Signal { is_set: AtomicBool::new(false), n_looks: AtomicU32::new(0) });
    let waiter = {
        let signal = Arc::clone(&signal);
        thread::spawn(move || {
            while !signal.wait(Duration::from_millis(100)) {
                thread::yield_now();
            }
        })
    };
    let setter = {
        let (signal, waiter) = (Arc::clone(&signal), waiter.thread().clone());
        thread::spawn(move || {
            // Unparks that mean nothing.
            for _ in 0..3 {
                waiter.unpark();
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(350));
            signal.set(&waiter);
        })
    };
    setter.join().unwrap();
    waiter.join().unwrap();
    assert!(signal.is_set.load(Ordering::Relaxed));
    assert!(signal.n_looks.load(Ordering::Relaxed) >= 1);
}
