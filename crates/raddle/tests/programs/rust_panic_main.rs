// About: a panic in the main thread while others run and wait: exit code 101.
// Covers: syscall, FutexWait, Sleep
// Outcome: exit 101

use std::thread;
use std::time::Duration;

struct Noisy;

impl Drop for Noisy {
    fn drop(&mut self) {
        assert!(thread::panicking());
    }
}

fn main() {
    let _noisy = Noisy;
    thread::spawn(|| thread::sleep(Duration::from_secs(100_000)));
    thread::spawn(thread::park);
    let numbers = vec![1, 2, 3];
    let index = numbers.iter().sum::<usize>();
    println!("{}", numbers[index]);
}
