// About: a panic in a thread that poisons a Mutex which the main thread unwraps, or not, as the order has it.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake
// Outcome: exit 0 | exit 101
// Must: exit 101

use std::sync::Mutex;
use std::thread;

static TOTAL: Mutex<u32> = Mutex::new(0);

fn main() {
    let worker = thread::spawn(|| {
        let mut total = TOTAL.lock().unwrap();
        *total += 1;
        assert!(*total > 1, "the worker came first");
    });
    *TOTAL.lock().unwrap() += 1;
    let _ = worker.join();
}
