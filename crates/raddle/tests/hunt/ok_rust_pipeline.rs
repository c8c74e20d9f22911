// Nothing is wrong: a pipeline of channels, a shared total behind a mutex, and a relaxed counter
// that is read once the threads are joined.
// Hunt: clean

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

struct Shared {
    total: Mutex<u64>,
    n_lines: AtomicUsize,
}

fn main() {
    let shared = Arc::new(Shared { total: Mutex::new(0), n_lines: AtomicUsize::new(0) });
    let (to_parse, lines) = mpsc::channel::<&str>();
    let (to_sum, numbers) = mpsc::channel::<u64>();

    let parser = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            for line in lines {
                shared.n_lines.fetch_add(1, Ordering::Relaxed);
                for word in line.split(' ') {
                    to_sum.send(word.parse().unwrap()).unwrap();
                }
            }
        })
    };
    let summer = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            for number in numbers {
                *shared.total.lock().unwrap() += number;
            }
        })
    };
    for line in ["1 2 3", "40 50", "600"] {
        to_parse.send(line).unwrap();
    }
    drop(to_parse);
    parser.join().unwrap();
    summer.join().unwrap();
    assert_eq!(shared.n_lines.load(Ordering::Relaxed), 3);
    assert_eq!(*shared.total.lock().unwrap(), 696);
}
