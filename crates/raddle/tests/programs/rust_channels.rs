// About: mpsc::channel, sync_channel with and without room, recv_timeout, try_recv, disconnection.
// Covers: syscall, AtomicSwap, AtomicMiss, FutexWait, FutexWoken, FutexWake, Yield, Clock
// Outcome: exit 0

use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let (sender, receiver) = mpsc::channel();
    let workers: Vec<_> = (0..3)
        .map(|me| {
            let sender = sender.clone();
            thread::spawn(move || (0..20).for_each(|n| sender.send((me, n)).unwrap()))
        })
        .collect();
    drop(sender);
    let mut next = [0; 3];
    for (worker, n) in &receiver {
        assert_eq!(next[worker], n);
        next[worker] += 1;
    }
    assert_eq!(next, [20; 3]);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    workers.into_iter().for_each(|worker| worker.join().unwrap());

    for capacity in [0, 1, 3] {
        let (sender, receiver) = mpsc::sync_channel(capacity);
        let producer = thread::spawn(move || (1..=10).for_each(|n| sender.send(n).unwrap()));
        assert_eq!(receiver.iter().sum::<i32>(), 55);
        producer.join().unwrap();
    }

    let (sender, receiver) = mpsc::sync_channel(1);
    let start = Instant::now();
    let patience = Duration::from_millis(300);
    assert_eq!(receiver.recv_timeout(patience), Err(RecvTimeoutError::Timeout));
    assert!(start.elapsed() >= patience);
    sender.send(1).unwrap();
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    drop(receiver);
    assert!(sender.send(3).is_err());
}
