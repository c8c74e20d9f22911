//! A runtime with three workers: tasks, channels, locks, time, blocking calls, and a server with
//! clients in the same process.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Mutex, Notify, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .enable_all()
        .build()
        .expect("a runtime");
    let (piped, counted, waited, served) = runtime.block_on(async {
        let (piped, counted) = tokio::join!(pipeline(), count());
        (piped, counted, time().await, serve().await)
    });
    println!("piped {piped}, counted {counted}, waited {waited}, served {served}");
}

/// Three producers, two stages, one sum.
async fn pipeline() -> u64 {
    let (sender, mut numbers) = mpsc::channel(2);
    let (squares, mut results) = mpsc::unbounded_channel();
    for producer in 0..3_u64 {
        let sender = sender.clone();
        tokio::spawn(async move {
            for n in 0..15 {
                sender.send(100 * producer + n).await.expect("a receiver");
            }
        });
    }
    drop(sender);
    tokio::spawn(async move {
        while let Some(n) = numbers.recv().await {
            squares.send(n * n).expect("a receiver");
        }
    });
    let mut sum = 0;
    while let Some(square) = results.recv().await {
        sum += square;
    }
    sum
}

/// Tasks that start together and count under a lock and a semaphore.
async fn count() -> u64 {
    let counter = Arc::new(Mutex::new(0));
    let (permits, barrier) = (Arc::new(Semaphore::new(2)), Arc::new(Barrier::new(4)));
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let (counter, permits, barrier) = (counter.clone(), permits.clone(), barrier.clone());
        tasks.spawn(async move {
            barrier.wait().await;
            for _ in 0..10 {
                let _permit = permits.acquire().await.expect("it is never closed");
                let mut counter = counter.lock().await;
                tokio::task::yield_now().await;
                *counter += 1;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no panic");
    }
    let counter = *counter.lock().await;
    let (ask, asked) = oneshot::channel();
    let doubled = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(5));
        asked.blocking_recv().map(|n: u64| 2 * n)
    });
    ask.send(counter).expect("a thread waits");
    doubled.await.expect("no panic").expect("an answer")
}

/// Sleeps, time-outs, ticks, and select.
async fn time() -> u64 {
    let start = Instant::now();
    let brief = Duration::from_millis(10);
    assert!(timeout(brief, std::future::pending::<()>()).await.is_err());
    let (notify, mut n_ticks) = (Arc::new(Notify::new()), 0);
    let waker = notify.clone();
    let sleeper = tokio::spawn(async move {
        sleep(5 * brief).await;
        waker.notify_one();
    });
    let mut ticks = interval(brief);
    loop {
        tokio::select! {
            _ = ticks.tick() => n_ticks += 1,
            () = notify.notified() => break,
        }
    }
    sleeper.await.expect("no panic");
    assert!(n_ticks >= 1 && start.elapsed() >= 6 * brief);
    6
}

/// A server that numbers the lines of all its clients, until it is told to stop.
async fn serve() -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (stop, mut stopped) = watch::channel(false);
    let (events, mut seen) = broadcast::channel(64);
    let server = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted.expect("a client");
                    connections.spawn(answer(stream, events.clone()));
                }
                _ = stopped.changed() => break,
            }
        }
        connections.join_all().await.into_iter().sum::<u64>()
    });
    let mut clients = JoinSet::new();
    for client in 0..3_u64 {
        clients.spawn(async move {
            let mut stream = BufReader::new(TcpStream::connect(address).await.expect("a server"));
            let mut sum = 0;
            for n in 0..5 {
                let line = format!("{}\n", 10 * client + n);
                stream.write_all(line.as_bytes()).await.expect("it listens");
                let mut answer = String::new();
                stream.read_line(&mut answer).await.expect("it answers");
                sum += answer.trim().parse::<u64>().expect("a number");
            }
            sum
        });
    }
    let received: u64 = clients.join_all().await.into_iter().sum();
    stop.send(true).expect("the server listens");
    let served = server.await.expect("no panic");
    let mut n_seen = 0;
    while seen.recv().await.is_ok() {
        n_seen += 1;
    }
    assert_eq!((n_seen, received), (15, served));
    served
}

/// Answers each line with the square of its number; returns the sum of all answers.
async fn answer(stream: TcpStream, events: broadcast::Sender<u64>) -> u64 {
    let mut stream = BufReader::new(stream);
    let (mut line, mut sum) = (String::new(), 0);
    while stream.read_line(&mut line).await.expect("it writes") > 0 {
        let n: u64 = line.trim().parse().expect("a number");
        stream.write_all(format!("{}\n", n * n).as_bytes()).await.expect("it reads");
        events.send(n).expect("main listens");
        sum += n * n;
        line.clear();
    }
    sum
}
