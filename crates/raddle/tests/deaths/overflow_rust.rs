// Says: fatal runtime error: stack overflow
// The standard library's handler prints and aborts on a stack of its own.
use std::hint::black_box;
use std::thread;

#[rustfmt::skip]
fn descend(n: u64) -> u64 { let frame = black_box([n; 64]); if n == u64::MAX { 0 } else { descend(n + 1) + frame[n as usize % 64] } } // died

fn main() {
    thread::spawn(|| println!("{}", descend(0))).join().unwrap();
}
