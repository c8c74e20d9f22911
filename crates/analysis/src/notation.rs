//! Traces as text, for tests.
//!
//! ```text
//!    T0 spawn T1
//! a: T0 write x
//!    T1 acquire m
//! b: T1 read x
//! ```
//! One line per event. Steps (`Step`) and turns (`Switch`) are inserted as the runtime would
//! record them under control: plain accesses are steps by themselves; the start and the end of a
//! thread are none. A name is an object of eight bytes. Each line is a site of its own, unless it
//! has the label of an earlier one.

use raddle_trace::event::{Access, Atomic, AtomicAction, ChannelOp, Event, LockOp, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::record::{Channel, Lock, Switch, Wake};

/// A trace parsed from text.
pub(crate) struct Notation {
    pub(crate) events: Vec<Event>,
    names: Vec<String>,
    /// By site: its label, or its line.
    labels: Vec<String>,
    begun: Vec<ThreadId>,
    running: Option<ThreadId>,
}

const SITES: u64 = 0x40_0000;
const OBJECTS: u64 = 0x1000;

/// Parses a trace.
pub(crate) fn parse(text: &str) -> Notation {
    let mut notation = Notation {
        events: Vec::new(),
        names: Vec::new(),
        labels: Vec::new(),
        begun: Vec::new(),
        running: None,
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        notation.line(line);
    }
    notation
}

impl Notation {
    /// The label of a site, or its line.
    pub(crate) fn label(&self, pc: Pc) -> &str {
        &self.labels[(pc.0 - SITES) as usize]
    }

    fn line(&mut self, line: &str) {
        let (label, rest) = line.split_once(':').unwrap_or((line, line));
        let words: Vec<_> = rest.split_whitespace().collect();
        let thread = thread(words[0]);
        let site = self.labels.iter().position(|known| known == label).unwrap_or_else(|| {
            self.labels.push(label.to_owned());
            self.labels.len() - 1
        });
        let pc = Pc(SITES + site as u64);
        let op = self.op(&words[1..]);
        if self.running != Some(thread) {
            let reason = Switch::Preempt;
            let op = Op::Switch { reason, stopped_at: Pc(0), steps: 0 };
            self.events.push(Event { thread, pc: Pc(0), op });
            self.running = Some(thread);
        }
        if !self.begun.contains(&thread) {
            self.begun.push(thread);
            let none = Addr(0);
            let op = Op::Begin { parent: ThreadId(0), stack_low: none, stack_high: none };
            self.events.push(Event { thread, pc: Pc(0), op });
        }
        if !matches!(op, Op::Read(_) | Op::Write(_) | Op::End) {
            self.events.push(Event { thread, pc, op: Op::Step });
        }
        self.events.push(Event { thread, pc, op });
    }

    fn op(&mut self, words: &[&str]) -> Op {
        let object = words.get(1).map_or(Addr(0), |name| self.address(name));
        let access = Access {
            addr: object,
            bytes: 8,
            volatile: false,
            vptr: false,
            range: false,
            repeats: 0,
        };
        let shared = words.get(2) == Some(&"shared");
        let lock = LockOp { lock: object, kind: Lock::Mutex, shared, tried: false };
        let by = || ThreadId(thread(words[3]).0);
        let value = |at: usize| words[at].parse().expect("a number");
        let atomic = |action, before, after| {
            Op::Atomic(Atomic { addr: object, bytes: 8, action, order: 5, before, after })
        };
        let channel = |waited| ChannelOp { channel: object.0, kind: Channel::Pipe, waited };
        match words[0] {
            "read" => Op::Read(access),
            "write" => Op::Write(access),
            "acquire" => Op::Acquire(lock),
            "release" => Op::Release(lock),
            "spawn" => Op::Spawn(thread(words[1])),
            "join" => Op::Join(thread(words[1])),
            "end" => Op::End,
            "load" => atomic(AtomicAction::Load, value(2), value(2)),
            "store" => atomic(AtomicAction::Store, value(2), value(3)),
            "update" => atomic(AtomicAction::Update, value(2), value(3)),
            "wait" => Op::CondWait { cond: object, mutex: Addr(0) },
            "woken" => Op::CondWake { cond: object, how: Wake::Woken, by: by() },
            "signal" => Op::CondSignal { cond: object, n_woken: 1 },
            "post" => Op::SemPost(object),
            "lower" => Op::SemWait { semaphore: object, tried: false },
            "enter" => Op::BarrierEnter(object),
            "leave" => Op::BarrierLeave(object),
            "before" => Op::Before(object),
            "after" => Op::After(object),
            "send" => Op::Send(channel(false)),
            "waits-and-sends" => Op::Send(channel(true)),
            "receive" => Op::Receive(channel(false)),
            "map" => Op::Map { addr: object, bytes: 8 },
            "unmap" => Op::Unmap { addr: object, bytes: 8 },
            "alloc" => Op::Alloc { block: object, bytes: 8, room: 8 },
            "free" => Op::Free { block: object, bytes: 8 },
            "init" => Op::Init { object, kind: Lock::Mutex },
            "destroy" => Op::Destroy { object, kind: Lock::Mutex },
            other => panic!("no such event: {other}"),
        }
    }

    fn address(&mut self, name: &str) -> Addr {
        let at = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Addr(OBJECTS + 8 * at as u64)
    }
}

fn thread(word: &str) -> ThreadId {
    ThreadId(word.strip_prefix('T').and_then(|number| number.parse().ok()).expect("a thread"))
}
