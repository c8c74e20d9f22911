// What is wrong: a ring of one writer and one reader announces a new element by moving the tail,
// and only then writes the element. A reader that is quick takes what was in the slot before.
// Hunt: fails
// Kind: order, race, multi-variable
// Guilty: 4 lines
// Shows: assert

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const CAPACITY: usize = 8;

struct Ring {
    head: AtomicUsize,
    tail: AtomicUsize,
    slots: [UnsafeCell<u32>; CAPACITY],
}

// SAFETY: none: a slot may be read before it is written.
unsafe impl Sync for Ring {}

impl Ring {
    const fn new() -> Self {
        Self {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            slots: [const { UnsafeCell::new(0) }; CAPACITY],
        }
    }

    fn push(&self, value: u32) -> bool {
        let tail = self.tail.load(Ordering::Relaxed);
        if tail - self.head.load(Ordering::Acquire) == CAPACITY {
            return false;
        }
        self.tail.store(tail + 1, Ordering::Release); // guilty
        // SAFETY: none: the reader has been told already.
        unsafe { *self.slots[tail % CAPACITY].get() = value }; // guilty
        true
    }

    fn pop(&self) -> Option<u32> {
        let head = self.head.load(Ordering::Relaxed);
        if head == self.tail.load(Ordering::Acquire) { // guilty
            return None;
        }
        // SAFETY: as in `push`.
        let value = unsafe { *self.slots[head % CAPACITY].get() }; // guilty
        self.head.store(head + 1, Ordering::Release);
        Some(value)
    }
}

static RING: Ring = Ring::new();

fn main() {
    let writer = thread::spawn(|| {
        for value in 1..=5 {
            assert!(RING.push(value));
        }
    });
    let reader = thread::spawn(|| {
        let mut expected = 1;
        for _ in 0..8 {
            if let Some(value) = RING.pop() {
                assert_eq!(value, expected);
                expected += 1;
            }
        }
    });
    writer.join().unwrap();
    reader.join().unwrap();
}
