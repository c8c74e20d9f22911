// About: println from several threads, stdin, files, TcpListener and TcpStream on loopback, Instant, SystemTime.
// Covers: syscall, AtomicSwap, Send, Receive, FutexWait, FutexWoken, FutexWake, Sleep, Block,
// Covers: Unblock, Clock
// Outcome: exit 0
// Stdin: one\ntwo\nthree\n

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

fn main() {
    let lines: Vec<String> = io::stdin().lock().lines().map(Result::unwrap).collect();
    assert_eq!(lines, ["one", "two", "three"]);
    thread::scope(|scope| {
        for line in &lines {
            scope.spawn(move || (0..5).for_each(|n| println!("{line} {n}")));
        }
    });

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            (&stream).write_all(line.to_uppercase().as_bytes()).unwrap();
        }
    });
    thread::scope(|scope| {
        for line in &lines[..2] {
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                writeln!(stream, "{line}").unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert_eq!(answer, line.to_uppercase() + "\n");
            });
        }
    });
    server.join().unwrap();

    let (start, day) = (Instant::now(), SystemTime::now());
    thread::sleep(Duration::from_secs(1));
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert!(day.elapsed().unwrap() >= Duration::from_secs(1));
}
