// Nothing is wrong: a batcher collects what comes until a batch is full or nothing has come for 50
// milliseconds, then hands it on; it ends when all senders are gone.
// Hunt: clean

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::Duration;

const BATCH: usize = 3;
const QUIET: Duration = Duration::from_millis(50);

fn batch(records: Receiver<u32>, batches: SyncSender<Vec<u32>>) {
    let mut batch = Vec::new();
    let flush = |batch: &mut Vec<u32>| {
        if !batch.is_empty() {
            batches.send(std::mem::take(batch)).unwrap();
        }
    };
    loop {
        match records.recv_timeout(QUIET) {
            Ok(record) => {
                batch.push(record);
                if batch.len() == BATCH {
                    flush(&mut batch);
                }
            }
            Err(RecvTimeoutError::Timeout) => flush(&mut batch),
            Err(RecvTimeoutError::Disconnected) => {
                flush(&mut batch);
                return;
            }
        }
    }
}

fn produce(records: Sender<u32>, first: u32, pause: Duration) {
    for i in 0..4 {
        records.send(first + i).unwrap();
        thread::sleep(pause);
    }
}

fn main() {
    let (to_batcher, records) = mpsc::channel();
    let (to_writer, batches) = mpsc::sync_channel(1);
    let batcher = thread::spawn(move || batch(records, to_writer));
    let slow = to_batcher.clone();
    let producers = [
        thread::spawn(move || produce(to_batcher, 0, Duration::from_millis(10))),
        thread::spawn(move || produce(slow, 100, Duration::from_millis(120))),
    ];
    let mut all = Vec::new();
    for batch in batches {
        assert!(!batch.is_empty() && batch.len() <= BATCH);
        all.extend(batch);
    }
    for producer in producers {
        producer.join().unwrap();
    }
    batcher.join().unwrap();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 100, 101, 102, 103]);
}
