// About: a `static mut` that two threads change: a lost update, found by an assertion.
// Covers: syscall, AtomicSwap, FutexWait, FutexWoken, FutexWake
// Outcome: exit 0 | exit 101
// Must: exit 101

use std::thread;

static mut TOTAL: u32 = 0;

// Not inlined, or the compiler makes one addition of ten.
#[inline(never)]
fn add_one() {
    // SAFETY: none: that is the bug.
    unsafe { TOTAL += 1 };
}

fn add() {
    for _ in 0..10 {
        add_one();
    }
}

fn main() {
    let threads = [thread::spawn(add), thread::spawn(add)];
    for handle in threads {
        handle.join().unwrap();
    }
    // SAFETY: the threads are joined.
    assert_eq!(unsafe { TOTAL }, 20);
}
