// About: two Mutexes in opposite orders: atomics and futexes that have to be seen as locks.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake
// Outcome: exit 0 | deadlock
// Must: deadlock

use std::sync::Mutex;
use std::thread;

static LEFT: Mutex<i32> = Mutex::new(100);
static RIGHT: Mutex<i32> = Mutex::new(100);

fn main() {
    let forth = thread::spawn(|| {
        for _ in 0..5 {
            let mut left = LEFT.lock().unwrap();
            let mut right = RIGHT.lock().unwrap();
            *left -= 1;
            *right += 1;
        }
    });
    let back = thread::spawn(|| {
        for _ in 0..5 {
            let mut right = RIGHT.lock().unwrap();
            let mut left = LEFT.lock().unwrap();
            *right -= 2;
            *left += 2;
        }
    });
    forth.join().unwrap();
    back.join().unwrap();
    assert_eq!((*LEFT.lock().unwrap(), *RIGHT.lock().unwrap()), (105, 95));
}
