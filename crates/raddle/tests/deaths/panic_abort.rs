// Says: panic: index out of bounds: the len is 3 but the index is 5
// Flags: -Cpanic=abort
use std::thread;

fn look_up(numbers: &[i32], at: usize) -> i32 {
    numbers[at] // died
}

fn main() {
    let numbers = vec![1, 2, 3];
    let reader = thread::spawn(move || look_up(&numbers, 5));
    println!("{}", reader.join().unwrap());
}
