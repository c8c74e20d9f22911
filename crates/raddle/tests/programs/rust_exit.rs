// About: process::exit from a thread while the main thread waits for a lock; Command; available_parallelism.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait
// Outcome: exit 12

use std::process::{self, Command};
use std::sync::Mutex;
use std::thread;

static LOCK: Mutex<()> = Mutex::new(());

fn main() {
    assert!(thread::available_parallelism().unwrap().get() >= 1);
    let status = Command::new("/bin/sh").args(["-c", "exit 6"]).status().unwrap();
    assert_eq!(status.code(), Some(6));
    let output = Command::new("/bin/echo").arg("hello").output().unwrap();
    assert_eq!(output.stdout, b"hello\n");

    thread::scope(|scope| {
        let guard = LOCK.lock().unwrap();
        scope.spawn(move || {
            let _waits = LOCK.lock().unwrap();
        });
        scope.spawn(|| process::exit(12));
        let _forever = LOCK.lock();
        drop(guard);
    });
}
