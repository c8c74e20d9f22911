// About: a Condvar that is notified before anybody waits, and no condition that remembers it.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake
// Outcome: exit 0 | lost wake-up | deadlock
//
// Its futex is not told apart from others for sure, so the plain word is fair as well.

use std::sync::{Condvar, Mutex};
use std::thread;

static LOCK: Mutex<u32> = Mutex::new(0);
static DONE: Condvar = Condvar::new();

fn main() {
    let worker = thread::spawn(|| {
        *LOCK.lock().unwrap() = 42;
        DONE.notify_one();
    });
    let result = DONE.wait(LOCK.lock().unwrap()).unwrap();
    drop(result);
    worker.join().unwrap();
}
