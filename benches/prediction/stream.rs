//! Events of a program that there is none of: eight threads that use fifty locks and ten
//! thousand shared locations, from a seed. It is like a server:
//!
//! A thread has the turn for some requests, of eighty kinds. A request is about one of the
//! objects of each lock that it needs, a few of them used far more often than others, and
//! calls some of three hundred functions one behind the other, those of its kind. A function
//! uses memory of its own, and then does one of these:
//!
//! - most often it takes its lock and reads and writes fields of the object;
//! - it takes a second lock inside, always in the same order;
//! - it looks at an object without a lock, or, now and then, writes it.
//!
//! Now and then it takes another way: does less, or more. So there are some thousand sites,
//! and most of what happens has happened before, but at each location all eight threads come by
//! at half a dozen sites, in any order: some fifty kinds of accesses at each, and twice as many
//! of two behind each other. Real programs have fewer; what is hard on memory and caches here is
//! that no location is at rest for long.

use raddle_trace::event::{Access, Event, LockOp, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::record::{Kind, Lock, Record, Switch};

const N_THREADS: u64 = 8;
const N_LOCKS: u64 = 50;
const OBJECTS_PER_LOCK: u64 = 25;
const FIELDS: u64 = 8;
const N_FUNCTIONS: u64 = 300;
const N_REQUESTS: u64 = 80;

/// See the module.
pub(crate) struct Stream {
    random: u64,
    thread: ThreadId,
    /// What comes next, last first.
    next: Vec<Event>,
    n_left: u64,
}

impl Stream {
    /// So many events, as they are counted elsewhere: without who runs and what was counted.
    pub(crate) fn new(n: u64) -> Self {
        Self { random: 0x9e37_79b9_7f4a_7c15, thread: ThreadId(0), next: Vec::new(), n_left: n }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below
    }

    fn push(&mut self, pc: u64, op: Op) {
        if !matches!(
            op,
            Op::Read(_) | Op::Write(_) | Op::Enter { .. } | Op::Leave | Op::Switch { .. }
        ) {
            self.next.push(Event { thread: self.thread, pc: Pc(pc), op: Op::Step });
        }
        self.next.push(Event { thread: self.thread, pc: Pc(pc), op });
    }

    fn access(&mut self, pc: u64, addr: u64, writes: bool) {
        let access = Access {
            addr: Addr(addr),
            bytes: 8,
            volatile: false,
            vptr: false,
            range: false,
            repeats: 0,
        };
        self.push(pc, if writes { Op::Write(access) } else { Op::Read(access) });
    }

    /// An object, one of as many as each lock protects: half of the time one of the first few.
    fn object(&mut self) -> u64 {
        let n = if self.draw(2) == 0 { 4 } else { OBJECTS_PER_LOCK };
        self.draw(n)
    }

    /// So many as usual, and now and then not.
    fn about(&mut self, usual: u64, below: u64) -> u64 {
        if self.draw(8) == 0 { self.draw(below) } else { usual % below }
    }

    /// Where a field of an object is.
    fn place(object: u64, field: u64) -> u64 {
        0x7f00_0000_0000 + 8 * (object * FIELDS + field % FIELDS)
    }

    fn lock(&mut self, pc: u64, lock: u64, takes: bool) {
        let addr = Addr(0x6000_0000 + 64 * lock);
        let lock = LockOp { lock: addr, kind: Lock::Mutex, shared: false, tried: false };
        self.push(pc, if takes { Op::Acquire(lock) } else { Op::Release(lock) });
    }

    fn request(&mut self) {
        let (kind, object) = (self.draw(N_REQUESTS), self.object());
        for call in 0..3 + kind % 6 {
            self.call((kind * 7 + call * 41) % N_FUNCTIONS, object);
        }
    }

    fn call(&mut self, function: u64, object: u64) {
        let pc = 0x40_0000 + 256 * function;
        self.push(pc, Op::Enter { return_to: Pc(pc) });
        // Each function has its lock, and the next one is taken inside of it.
        let lock = function % (N_LOCKS - 1);
        let own = 0x7ff0_0000_0000 + (u64::from(self.thread.0) << 20);
        for at in 0..self.about(function, 12) {
            self.access(pc + 1 + at, own + 8 * (function % 64 + at), at % 3 == 0);
        }
        let (object, inner) =
            (lock * OBJECTS_PER_LOCK + object, (lock + 1) * OBJECTS_PER_LOCK + object);
        match function % 10 {
            0..7 => {
                self.lock(pc + 32, lock, true);
                for at in 0..2 + self.about(function, 6) {
                    let place = Self::place(object, function / N_LOCKS + at);
                    self.access(pc + 33 + at, place, at % 3 == 2);
                }
                self.lock(pc + 48, lock, false);
            }
            7 => {
                self.lock(pc + 64, lock, true);
                self.access(pc + 65, Self::place(object, function), false);
                self.lock(pc + 66, lock + 1, true);
                self.access(pc + 67, Self::place(inner, function), true);
                self.lock(pc + 68, lock + 1, false);
                self.lock(pc + 69, lock, false);
            }
            _ => {
                for at in 0..4 {
                    let place = Self::place(object, function / N_LOCKS + 2 * at);
                    let writes = function % 20 == 19 && at == 3;
                    self.access(pc + 96 + at, place, writes);
                }
            }
        }
        self.push(pc + 128, Op::Leave);
    }

    fn turn(&mut self) {
        self.thread = ThreadId(self.draw(N_THREADS) as u32);
        let op = Op::Switch { reason: Switch::Preempt, stopped_at: Pc(0x40_0000), steps: 0 };
        self.push(0, op);
        for _ in 0..1 + self.draw(8) {
            self.request();
        }
        self.next.reverse();
    }
}

impl Iterator for Stream {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if self.n_left == 0 {
            return None;
        }
        if self.next.is_empty() {
            self.turn();
        }
        let event = self.next.pop()?;
        self.n_left -= u64::from(!matches!(event.op, Op::Step | Op::Switch { .. }));
        Some(event)
    }
}

/// The records that an event of ours is made of.
pub(crate) fn records(event: &Event, into: &mut Vec<Record>) {
    let pc = event.pc.0;
    let record = match event.op {
        Op::Read(access) => Record::new(Kind::Read, access.bytes as u8, access.addr.0, 0, pc),
        Op::Write(access) => Record::new(Kind::Write, access.bytes as u8, access.addr.0, 0, pc),
        Op::Enter { return_to } => Record::new(Kind::Enter, 0, return_to.0, 0, pc),
        Op::Leave => Record::new(Kind::Leave, 0, 0, 0, pc),
        Op::Acquire(lock) => Record::new(Kind::Acquire, lock.kind as u8, lock.lock.0, 0, pc),
        Op::Release(lock) => Record::new(Kind::Release, lock.kind as u8, lock.lock.0, 0, pc),
        Op::Switch { reason, stopped_at, steps } => {
            let thread = u64::from(event.thread.0);
            into.push(Record::new(Kind::Switch, reason as u8, thread, 0, stopped_at.0));
            Record::more(steps)
        }
        Op::Step => Record::new(Kind::Step, 0, 0, 0, pc),
        other => unreachable!("the stream has no {other:?}"),
    };
    into.push(record);
}
