// About: a reader that reads again while a writer waits: std's RwLock prefers writers.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake
// Outcome: exit 0 | deadlock
// Must: deadlock

use std::sync::RwLock;
use std::thread;

static CONFIG: RwLock<u32> = RwLock::new(1);

fn doubled() -> u32 {
    *CONFIG.read().unwrap() * 2
}

fn main() {
    let writer = thread::spawn(|| *CONFIG.write().unwrap() += 1);
    let config = CONFIG.read().unwrap();
    assert_eq!(doubled(), *config * 2);
    drop(config);
    writer.join().unwrap();
}
