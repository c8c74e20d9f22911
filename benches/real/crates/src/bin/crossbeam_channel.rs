//! Every flavor of channel: bounded, unbounded, rendezvous, timers, select, and disconnection.

use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{
    RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError, after, bounded, never, select,
    tick, unbounded,
};

fn main() {
    let spsc: u64 = [1, 3].into_iter().map(one_to_one).sum();
    let mpmc = many_to_many();
    let rendezvous = rendezvous();
    let selected = select_two();
    timeouts();
    println!("spsc {spsc}, mpmc {mpmc}, rendezvous {rendezvous}, selected {selected}");
}

/// Messages of one sender arrive in order.
fn one_to_one(capacity: usize) -> u64 {
    const N: u64 = 200;
    let (sender, receiver) = bounded(capacity);
    thread::scope(|scope| {
        scope.spawn(move || (0..N).for_each(|n| sender.send(n).expect("a receiver")));
        let received: Vec<u64> = receiver.iter().collect();
        assert_eq!(received, (0..N).collect::<Vec<_>>());
        received.iter().sum()
    })
}

/// Three senders and two workers; a worker sees the messages of each sender in order.
fn many_to_many() -> u64 {
    const N: u64 = 60;
    let (jobs, todo) = bounded(4);
    let (results, done) = unbounded();
    thread::scope(|scope| {
        for sender in 0..3 {
            let jobs = jobs.clone();
            scope.spawn(move || (0..N).for_each(|n| jobs.send((sender, n)).expect("a worker")));
        }
        drop(jobs);
        for _ in 0..2 {
            let (todo, results) = (todo.clone(), results.clone());
            scope.spawn(move || {
                let mut last = [None; 3];
                for (sender, n) in todo {
                    assert!(last[sender] < Some(n), "out of order");
                    last[sender] = Some(n);
                    results.send(n * n).expect("main waits");
                }
            });
        }
        drop(results);
        done.iter().sum()
    })
}

/// A channel without a buffer: who sends meets who receives.
fn rendezvous() -> u64 {
    let (ask, asked) = bounded::<(u64, crossbeam_channel::Sender<u64>)>(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            for (n, answer) in asked {
                answer.send(n + 1).expect("who asks waits");
            }
        });
        let clients: Vec<_> = (0..2)
            .map(|client| {
                let ask = ask.clone();
                scope.spawn(move || {
                    let (answer, answers) = bounded(1);
                    let mut sum = 0;
                    for n in 0..20 {
                        ask.send((100 * client + n, answer.clone())).expect("a server");
                        sum += answers.recv().expect("an answer");
                    }
                    sum
                })
            })
            .collect();
        drop(ask);
        clients.into_iter().map(|client| client.join().expect("no panic")).sum()
    })
}

/// Takes from two channels as they come, until both are disconnected.
fn select_two() -> u64 {
    let (left, lefts) = bounded(0);
    let (right, rights) = bounded(2);
    thread::scope(|scope| {
        scope.spawn(move || (0..40_u64).for_each(|n| left.send(n).expect("main receives")));
        scope.spawn(move || (0..40_u64).for_each(|n| right.send(1000 * n).expect("as above")));
        let (mut lefts, mut rights, mut sum, mut open) = (lefts, rights, 0, 2);
        while open > 0 {
            select! {
                recv(lefts) -> n => match n {
                    Ok(n) => sum += n,
                    Err(_) => { lefts = never(); open -= 1 }
                },
                recv(rights) -> n => match n {
                    Ok(n) => sum += n,
                    Err(_) => { rights = never(); open -= 1 }
                },
                default(Duration::from_secs(60)) => panic!("two senders that send nothing"),
            }
        }
        sum
    })
}

fn timeouts() {
    let (sender, receiver) = bounded(1);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(sender.try_send(1), Ok(()));
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    let brief = Duration::from_millis(20);
    assert_eq!(sender.send_timeout(2, brief), Err(SendTimeoutError::Timeout(2)));
    assert_eq!(receiver.recv_timeout(brief), Ok(1));
    assert_eq!(receiver.recv_timeout(brief), Err(RecvTimeoutError::Timeout));
    let start = Instant::now();
    assert!(after(brief).recv().expect("a timer") >= start + brief);
    let ticks: Vec<Instant> = tick(brief).iter().take(3).collect();
    assert!(ticks.is_sorted() && ticks[2] >= start + 3 * brief);
    drop(sender);
    assert_eq!(receiver.recv_timeout(brief), Err(RecvTimeoutError::Disconnected));
}
