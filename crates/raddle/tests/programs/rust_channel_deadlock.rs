// About: a receiver that waits while it holds a sender itself, so that the channel never closes.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake
// Outcome: deadlock | lost wake-up

use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel();
    let worker = {
        let sender = sender.clone();
        thread::spawn(move || (0..3).for_each(|n| sender.send(n).unwrap()))
    };
    println!("{}", receiver.iter().count());
    worker.join().unwrap();
    drop(sender);
}
