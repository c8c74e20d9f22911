// About: Condvar: wait, wait_while, wait_timeout, notify_one, notify_all.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake, Clock
// Outcome: exit 0

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

static QUEUE: Mutex<VecDeque<u32>> = Mutex::new(VecDeque::new());
static FILLED: Condvar = Condvar::new();
static EMPTIED: Condvar = Condvar::new();

fn main() {
    let sum = thread::scope(|scope| {
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut sum = 0;
                    for _ in 0..10 {
                        let mut queue = QUEUE.lock().unwrap();
                        while queue.is_empty() {
                            queue = FILLED.wait(queue).unwrap();
                        }
                        sum += queue.pop_front().unwrap();
                        EMPTIED.notify_all();
                    }
                    sum
                })
            })
            .collect();
        for number in 1..=20 {
            let mut queue = EMPTIED.wait_while(QUEUE.lock().unwrap(), |queue| queue.len() > 1).unwrap();
            queue.push_back(number);
            FILLED.notify_one();
        }
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum::<u32>()
    });
    assert_eq!(sum, 210);

    let start = Instant::now();
    let patience = Duration::from_millis(500);
    let (queue, result) = FILLED
        .wait_timeout_while(QUEUE.lock().unwrap(), patience, |queue| queue.is_empty())
        .unwrap();
    assert!(result.timed_out() && queue.is_empty() && start.elapsed() >= patience);
}
