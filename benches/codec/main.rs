//! Measures the trace file: nanoseconds and bytes per record, for streams that look like what
//! programs do. The figures that comments in `codec` name come from here.
//!
//! ```text
//! cargo run --release -p raddle-bench --bin codec [RECORDS [STREAM]]
//! cargo run --release -p raddle-bench --bin codec TRACE
//! ```

use std::hint::black_box;

use raddle_trace::codec::{ColumnCompressor, Packer, RECORDS_MAX, Unpacker};
use raddle_trace::control::Mode;
use raddle_trace::event::is_event;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::record::{Kind, Record, Switch};
use raddle_trace::run::Run;

/// Rounds per measurement; the fastest counts.
const ROUNDS: usize = 15;

fn main() {
    let mut args = std::env::args().skip(1);
    let first = args.next();
    let only = args.next();
    println!("stream          pack ns  unpack ns  events ns   stats ns      bytes  per event");
    let n_records = match first.as_deref().map(str::parse) {
        None => 4_000_000,
        Some(Ok(n)) => n,
        Some(Err(_)) => return measure_file(first.as_deref().unwrap_or_default()),
    };
    type Stream = (&'static str, fn(&mut Log));
    let streams: [Stream; 9] = [
        ("sweep", sweep),
        ("quicksort", quicksort),
        ("hash table", hash_table),
        ("matrix", matrix),
        ("list", list),
        ("large code", large_code),
        ("work queue", work_queue),
        ("random turns", random_turns),
        ("time stamps", time_stamps),
    ];
    for (name, stream) in streams {
        if only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
            let mut log = Log::new(n_records);
            while !log.full() {
                stream(&mut log);
            }
            measure(name, &log.records);
        }
    }
}

/// A real trace, under control.
fn measure_file(path: &str) {
    let trace = Trace::open(path.as_ref()).expect("a trace");
    let records: Vec<_> = trace.records(0).map(|record| record.expect("a record")).collect();
    measure("file", &records);
}

fn measure(name: &str, records: &[Record]) {
    let mut packer = Packer::new();
    let mut compressor = ColumnCompressor::new();
    let mut blocks = Vec::new();
    let pack_ns = best(|| {
        blocks.clear();
        for block in records.chunks(RECORDS_MAX) {
            // As the trial does, which takes a chunk of the ring at a time.
            for chunk in block.chunks(4096) {
                packer.push(chunk);
            }
            let mut body = Vec::new();
            packer.finish(&mut compressor, &mut body);
            blocks.push((body, block.len()));
        }
    });

    let mut unpacker = Unpacker::new();
    let mut chunk = Vec::new();
    let unpack_ns = best(|| {
        for (body, n) in &blocks {
            unpacker.start(body, *n).expect("a block");
            loop {
                chunk.clear();
                unpacker.fill(&mut chunk).expect("records");
                if chunk.is_empty() {
                    break;
                }
                black_box(&chunk);
            }
        }
    });

    let mut n_checked = 0;
    for (body, n) in &blocks {
        unpacker.start(body, *n).expect("a block");
        chunk.clear();
        while chunk.len() < *n {
            unpacker.fill(&mut chunk).expect("records");
        }
        assert_eq!(chunk, records[n_checked..][..*n], "unpacked as packed");
        n_checked += n;
    }

    let trace = trace(records);
    let events_ns = best(|| trace.events().filter(Result::is_ok).count());
    let stats_ns = best(|| trace.stats().expect("stats"));

    let n = records.len() as f64;
    let bytes: usize = blocks.iter().map(|(body, _)| body.len()).sum();
    let n_events = records.iter().filter(|r| r.kind().is_some_and(is_event)).count();
    println!(
        "{name:<12} {:>10.2} {:>10.2} {:>10.2} {:>10.2} {:>10.3} {:>10.3}",
        pack_ns / n,
        unpack_ns / n,
        events_ns / n,
        stats_ns / n,
        bytes as f64 / n,
        bytes as f64 / n_events as f64
    );
}

/// Nanoseconds of the fastest round.
fn best<T>(mut work: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let start = busy_ns();
        black_box(work());
        (busy_ns() - start) as f64
    };
    (0..ROUNDS).map(round).fold(f64::MAX, f64::min)
}

/// How long this thread has had a processor, so that a busy machine does not show.
fn busy_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// The records as a trace file.
fn trace(records: &[Record]) -> Trace {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("bench.trace");
    let mut writer = Writer::create(&path).expect("a writer");
    writer.push(0, records).expect("push");
    let run = Run {
        command: Vec::new(),
        directory: String::new(),
        mode: Mode::Controlled,
        policy: None,
        seed: 0,
        modules: Vec::new(),
        threads: Vec::new(),
        ending: None,
    };
    writer.finish(&run).expect("finish");
    Trace::open(&path).expect("open")
}

/// Where a made-up program leaves its records.
struct Log {
    records: Vec<Record>,
    n_max: usize,
    random: u64,
}

const CODE: u64 = 0x5555_5555_6000;
const HEAP: u64 = 0x5555_5580_0000;
const STACK: u64 = 0x7fff_f7a0_0000;

impl Log {
    fn new(n_max: usize) -> Self {
        Self { records: Vec::with_capacity(n_max + 64), n_max, random: 0x9e37_79b9_7f4a_7c15 }
    }

    fn full(&self) -> bool {
        self.records.len() >= self.n_max
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below
    }

    fn push(&mut self, kind: Kind, info: u8, operand: u64, extra: u16, pc: u64) {
        self.records.push(Record::new(kind, info, operand, extra, CODE + pc));
    }

    fn read(&mut self, pc: u64, bytes: u8, addr: u64) {
        self.push(Kind::Read, bytes, addr, 0, pc);
    }

    fn write(&mut self, pc: u64, bytes: u8, addr: u64) {
        self.push(Kind::Write, bytes, addr, 0, pc);
    }

    fn enter(&mut self, pc: u64, from: u64) {
        self.push(Kind::Enter, 0, CODE + from, 0, pc);
    }

    fn leave(&mut self, pc: u64) {
        self.push(Kind::Leave, 0, 0, 0, pc);
    }

    fn more(&mut self, payload: u64) {
        self.records.push(Record::more(payload));
    }

    fn switch(&mut self, to: u64, why: Switch, pc: u64, steps: u64) {
        self.push(Kind::Switch, why as u8, to, 0, pc);
        self.more(steps);
    }
}

/// Two arrays, from one end to the other.
fn sweep(log: &mut Log) {
    for i in 0..1_000_000 {
        if log.full() {
            return;
        }
        log.read(0x12, 4, HEAP + 4 * i);
        log.write(0x23, 8, HEAP + 0x1000_0000 + 8 * i);
    }
}

/// Sorts numbers in place, with the comparison in a function of its own.
fn quicksort(log: &mut Log) {
    let mut numbers: Vec<u32> = (0..100_000).map(|_| log.random(1 << 32) as u32).collect();
    sort(log, &mut numbers, 0, 0x10);
}

fn less(log: &mut Log, a: u64, b: u64, from: u64) {
    log.enter(0x205, from);
    log.read(0x210, 4, a);
    log.read(0x221, 4, b);
    log.leave(0x230);
}

fn sort(log: &mut Log, numbers: &mut [u32], base: u64, from: u64) {
    if log.full() || numbers.len() < 2 {
        return;
    }
    let at = |i: usize| HEAP + 4 * (base + i as u64);
    log.enter(0x105, from);
    let last = numbers.len() - 1;
    numbers.swap(last / 2, last);
    log.read(0x110, 4, at(last / 2));
    log.read(0x11a, 4, at(last));
    log.write(0x124, 4, at(last / 2));
    log.write(0x12f, 4, at(last));
    let mut end = 0;
    for i in 0..last {
        less(log, at(i), at(last), 0x140);
        if numbers[i] < numbers[last] {
            log.read(0x150, 4, at(i));
            log.read(0x15a, 4, at(end));
            log.write(0x163, 4, at(i));
            log.write(0x16f, 4, at(end));
            numbers.swap(i, end);
            end += 1;
        }
    }
    numbers.swap(end, last);
    log.write(0x180, 4, at(end));
    log.write(0x18b, 4, at(last));
    let (left, right) = numbers.split_at_mut(end);
    sort(log, left, base, 0x190);
    sort(log, &mut right[1..], base + end as u64 + 1, 0x1a0);
    log.leave(0x1b0);
}

/// Random keys in a hash table with chains, of 16 MB.
fn hash_table(log: &mut Log) {
    const BUCKETS: u64 = 1 << 18;
    let key = log.random(1 << 20);
    let bucket = key.wrapping_mul(0x9e37_79b9) % BUCKETS;
    let node = |key: u64| HEAP + 0x100_0000 + 48 * (key.wrapping_mul(0x2545_f491) & 0xf_ffff);
    log.enter(0x305, 0x10);
    log.read(0x310, 8, HEAP + 0x20);
    log.read(0x31c, 8, HEAP + 0x1000 + 8 * bucket);
    for depth in 0..=key % 4 {
        log.read(0x330, 8, node(key + depth * BUCKETS));
        log.read(0x33c, 8, node(key + depth * BUCKETS) + 8);
    }
    log.read(0x350, 4, node(key + key % 4 * BUCKETS) + 16);
    log.write(0x35b, 4, node(key + key % 4 * BUCKETS) + 16);
    log.write(0x366, 8, HEAP + 0x28);
    log.leave(0x370);
}

/// Multiplies matrices of 256 by 256.
fn matrix(log: &mut Log) {
    const N: u64 = 256;
    for row in 0..N {
        for column in 0..N {
            for k in 0..N {
                log.read(0x410, 8, HEAP + 8 * (row * N + k));
                log.read(0x41b, 8, HEAP + 0x10_0000 + 8 * (k * N + column));
            }
            log.write(0x430, 8, HEAP + 0x20_0000 + 8 * (row * N + column));
            if log.full() {
                return;
            }
        }
    }
}

/// The same list of nodes, scattered in memory, again and again.
fn list(log: &mut Log) {
    let mut nodes: Vec<u64> = (0..5000).map(|i| HEAP + 64 * i).collect();
    for i in (1..nodes.len()).rev() {
        let j = log.random(i as u64 + 1) as usize;
        nodes.swap(i, j);
    }
    while !log.full() {
        for &node in &nodes {
            log.read(0x510, 4, node + 8);
            log.read(0x51b, 8, node);
        }
    }
}

/// Six hundred functions of a dozen accesses call each other, each on an object of its
/// choice: as in a large program, no loop is hot.
fn large_code(log: &mut Log) {
    let mut function = 0;
    while !log.full() {
        let object = HEAP + 0x200 * log.random(2000);
        let stack = STACK + 0x40 * (function % 7);
        let pc = 0x1_0000 + 0x100 * function;
        log.enter(pc + 5, 0x1_0000 + 0x100 * (function / 2) + 0x40);
        for access in 0..12 {
            let at = pc + 0x10 + 13 * access;
            match (access + function) % 4 {
                0 => log.read(at, 8, object + 8 * (function + access) % 0x200),
                1 => log.read(at, 4, object + 8 * (function + access) % 0x200),
                2 => log.write(at, 8, stack + 8 * (access % 5)),
                _ => log.write(at, 4, object + 8 * (function + access) % 0x200),
            }
            if access == 5 && log.random(4) == 0 {
                break;
            }
        }
        log.leave(pc + 0xf0);
        function = (function * 3 + log.random(3)) % 600;
    }
}

/// Four threads take items off a queue under a lock, and work on each for a while.
fn work_queue(log: &mut Log) {
    let mut head = 0_u64;
    while !log.full() {
        let thread = head % 4;
        let stack = STACK + thread * 0x80_0000;
        log.push(Kind::Acquire, 1, HEAP + 0x40, 0, 0x610);
        log.read(0x620, 8, HEAP + 0x80);
        log.read(0x62c, 8, HEAP + 0x88);
        log.write(0x638, 8, HEAP + 0x80);
        log.read(0x644, 8, HEAP + 0x1000 + 8 * (head % 1024));
        log.push(Kind::CondSignal, 1, HEAP + 0xc0, 0, 0x650);
        log.push(Kind::Release, 1, HEAP + 0x40, 0, 0x65c);
        let item = HEAP + 0x10_0000 + 256 * (head % 1024);
        let n = 4 + log.random(20);
        log.enter(0x705, 0x665);
        for i in 0..n {
            log.read(0x710, 8, item + 8 * i);
            log.read(0x71c, 8, stack + 8 * (i % 4));
            log.write(0x728, 8, stack + 8 * (i % 4));
        }
        log.push(Kind::AtomicUpdate, 8, HEAP + 0x100, 5, 0x740);
        log.more(head);
        log.more(head + 1);
        log.leave(0x750);
        head += 1;
        log.switch(head % 4, Switch::Preempt, 0x610, 10 + n);
    }
}

/// Four threads do the same on data of their own; the turn passes at random.
fn random_turns(log: &mut Log) {
    let mut at = [0_u64; 4];
    let mut thread = 0_usize;
    while !log.full() {
        let n = log.random(24);
        for _ in 0..n {
            let (i, step) = (at[thread] / 6, at[thread] % 6);
            let own = HEAP + thread as u64 * 0x100_0000;
            let stack = STACK + thread as u64 * 0x80_0000;
            match step {
                0 => log.read(0x810, 4, own + 4 * i),
                1 => log.read(0x81b, 8, stack + 0x10),
                2 => log.write(0x826, 8, stack + 0x18),
                3 => log.write(0x831, 4, own + 0x80_0000 + 4 * i),
                4 => log.read(0x83c, 4, HEAP - 0x100),
                _ => log.write(0x847, 4, HEAP - 0x100),
            }
            at[thread] += 1;
        }
        let next = log.random(4) as usize;
        if next != thread {
            log.switch(next as u64, Switch::Preempt, 0x810 + at[thread] % 6 * 11, n);
            thread = next;
        }
    }
}

/// A free thread: a time stamp before every fourth access.
fn time_stamps(log: &mut Log) {
    let mut time = 1_u64 << 50;
    let mut i = 0;
    while !log.full() {
        time += 60 + log.random(40);
        log.records.push(Record::new(Kind::Time, 0, 0, 0, 0));
        log.more(time);
        for _ in 0..4 {
            log.read(0x910, 4, HEAP + 4 * i);
            log.write(0x91b, 4, HEAP + 0x10_0000 + 4 * (i % 1000));
            i += 1;
        }
    }
}
