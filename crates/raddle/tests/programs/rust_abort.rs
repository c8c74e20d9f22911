// About: process::abort in a thread; nothing is dropped or flushed.
// Covers: AtomicUpdate, Signal
// Outcome: signal SIGABRT

use std::{process, thread};

struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        process::exit(9);
    }
}

fn main() {
    let _loud = Loud;
    let _ = thread::spawn(|| {
        let _loud = Loud;
        process::abort();
    })
    .join();
}
