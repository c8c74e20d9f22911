// About: thread_local with Drop that locks and sends; const initialization; scoped threads that borrow.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake
// Outcome: exit 0

use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread;

static DROPPED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

struct Record {
    name: u32,
    sender: Option<Sender<u32>>,
}

impl Drop for Record {
    fn drop(&mut self) {
        DROPPED.lock().unwrap().push(self.name);
        if let Some(sender) = self.sender.take() {
            sender.send(self.name).unwrap();
        }
    }
}

thread_local! {
    static RECORD: RefCell<Record> = const { RefCell::new(Record { name: 0, sender: None }) };
    static COUNT: Cell<u32> = const { Cell::new(7) };
}

fn main() {
    let (sender, receiver) = mpsc::channel();
    let names = [1, 2, 3];
    thread::scope(|scope| {
        for name in &names {
            let sender = sender.clone();
            scope.spawn(move || {
                COUNT.set(COUNT.get() + name);
                assert_eq!(COUNT.get(), 7 + name);
                RECORD.with_borrow_mut(|record| *record = Record { name: *name, sender: Some(sender) });
            });
        }
    });
    drop(sender);
    let mut received: Vec<_> = receiver.iter().collect();
    received.sort_unstable();
    assert_eq!(received, names);
    assert_eq!(COUNT.get(), 7);
    let mut dropped = DROPPED.lock().unwrap().clone();
    dropped.sort_unstable();
    // What was replaced goes as well.
    assert_eq!(dropped, [0, 0, 0, 1, 2, 3]);
}
