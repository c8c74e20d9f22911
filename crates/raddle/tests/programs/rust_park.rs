// About: park, unpark, park_timeout, an unpark that comes first; yield_now, sleep.
// Covers: syscall, AtomicSwap, FutexWait, FutexWoken, FutexWake, Sleep, Yield, Clock
// Outcome: exit 0

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

static TURN: AtomicU32 = AtomicU32::new(0);
static STOP: AtomicBool = AtomicBool::new(false);

fn main() {
    let main = thread::current();
    let partner = thread::spawn(move || {
        for round in 0..10 {
            while TURN.load(Ordering::Acquire) != 2 * round + 1 {
                thread::park();
            }
            TURN.fetch_add(1, Ordering::Release);
            main.unpark();
        }
    });
    for round in 0..10 {
        TURN.fetch_add(1, Ordering::Release);
        partner.thread().unpark();
        while TURN.load(Ordering::Acquire) != 2 * round + 2 {
            thread::park();
        }
    }
    partner.join().unwrap();

    thread::current().unpark();
    thread::park(); // The token was there already, so this does not wait.
    let start = Instant::now();
    let patience = Duration::from_millis(300);
    while start.elapsed() < patience {
        thread::park_timeout(patience);
    }
    thread::sleep(patience);
    assert!(start.elapsed() >= 2 * patience);

    let spinner = thread::spawn(|| {
        while !STOP.load(Ordering::Relaxed) {
            thread::yield_now();
            std::hint::spin_loop();
        }
    });
    thread::sleep(Duration::from_millis(5));
    STOP.store(true, Ordering::Relaxed);
    spinner.join().unwrap();
}
