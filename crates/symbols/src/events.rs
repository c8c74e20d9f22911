//! Descriptions of events, one line each.
//!
//! ```text
//!      17  main/1    writes 8 bytes of queue.len                     queue.c:41 in push
//!      18  main/1    releases mutex queue.m                          queue.c:42 in push
//! ```
//! Number, thread, operation, site. Text that is longer than its column pushes the site to the
//! right; nothing is truncated. Events in a library, such as the standard library's part of an
//! atomic operation, are shown at the line of the program's own code that called it.
//!
//! A line describes an event as of the last event that the [`Namer`] received, so to show a
//! trace, push and describe its events in turn.

use raddle_trace::event::{Access, Atomic, AtomicAction, ChannelOp, Event, LockOp, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::record::{Channel, Lock, Switch, Wake};

use crate::name::{Namer, Place};

/// A trace of ten million events stays aligned.
const SEQ_CHARS: usize = 7;
/// `main/1/1` and two more characters; longer names get what they need, up to a limit.
const THREAD_CHARS_MIN: usize = 8;
/// Beyond this, thread names would leave no room for the operation.
const THREAD_CHARS_MAX: usize = 24;
/// So that a site of 30 characters ends before column 100.
const WORDS_CHARS: usize = 48;

/// An event in one line, without the newline.
#[must_use]
pub fn line(namer: &Namer, seq: u64, event: &Event) -> String {
    let thread = namer.thread(event.thread);
    let words = words(namer, event);
    let site = site(namer, event);
    let thread_chars = namer.thread_name_chars_max().clamp(THREAD_CHARS_MIN, THREAD_CHARS_MAX);
    let line = format!("{seq:>SEQ_CHARS$}  {thread:<thread_chars$}  {words:<WORDS_CHARS$}  {site}");
    line.trim_end().to_owned()
}

/// What a thread did, as a predicate that follows its name.
#[must_use]
pub fn words(namer: &Namer, event: &Event) -> String {
    let object = |word: &str, addr: Addr| object(word, &namer.lock_place(addr));
    let thread = |id: ThreadId| namer.thread(id);
    match event.op {
        Op::Read(access) => access_words(namer, "reads", access),
        Op::Write(access) => access_words(namer, "writes", access),
        Op::Atomic(atomic) => atomic_words(namer, atomic),
        Op::Fence { order } => format!("passes a fence ({})", order_name(order)),
        Op::Enter { return_to } => enter_words(namer, event.pc, return_to),
        Op::Leave => format!("leaves {}", function_name(namer, event.pc)),
        Op::Switch { reason, stopped_at, steps } => switch_words(namer, reason, stopped_at, steps),
        Op::Choice { taken, of } => format!("takes choice {taken} of {of}"),
        Op::Spawn(child) => format!("creates {}", thread(child)),
        Op::Begin { parent, .. } if parent == event.thread => "begins".to_owned(),
        Op::Begin { parent, .. } => format!("begins, created by {}", thread(parent)),
        Op::End => "ends".to_owned(),
        Op::Join(child) => format!("joins {}", thread(child)),
        Op::Detach(child) => format!("detaches {}", thread(child)),
        Op::Acquire(lock) => lock_words(namer, "acquires", lock),
        Op::Release(lock) => lock_words(namer, "releases", lock),
        Op::Init { object: addr, kind } => format!("initializes {}", object(lock_name(kind), addr)),
        Op::Destroy { object: addr, kind } => format!("destroys {}", object(lock_name(kind), addr)),
        Op::CondWait { cond, mutex } => {
            let (cond, mutex) = (object("condition", cond), object("mutex", mutex));
            format!("waits on {cond}, leaving {mutex}")
        }
        Op::CondWake { cond, how, by } => {
            format!("wakes on {}, {}", object("condition", cond), wake_words(namer, how, by))
        }
        Op::CondSignal { cond, n_woken } => {
            format!("signals {}, {}", object("condition", cond), woken_words(n_woken))
        }
        Op::CondBroadcast { cond, n_woken } => {
            format!("broadcasts {}, {}", object("condition", cond), woken_words(n_woken))
        }
        Op::SemPost(semaphore) => format!("raises {}", object("semaphore", semaphore)),
        Op::SemWait { semaphore, tried } => {
            format!("lowers {}{}", object("semaphore", semaphore), tried_words(tried))
        }
        Op::SemAsk(semaphore) => {
            format!("asks for the value of {}", object("semaphore", semaphore))
        }
        Op::BarrierEnter(barrier) => format!("reaches {}", object("barrier", barrier)),
        Op::BarrierLeave(barrier) => format!("leaves {}", object("barrier", barrier)),
        Op::OnceBegin(control) => format!("begins to initialize {}", object("once", control)),
        Op::OnceEnd { control, done: true } => {
            format!("has initialized {}", object("once", control))
        }
        Op::OnceEnd { control, done: false } => {
            format!("gives up initializing {}", object("once", control))
        }
        Op::OncePass(control) => format!("finds {} initialized", object("once", control)),
        Op::Before(addr) => format!("releases what came before at {}", namer.lock(addr)),
        Op::After(addr) => format!("acquires what came before at {}", namer.lock(addr)),
        Op::FutexWait { futex, expected } => {
            format!("waits on {} while it is {expected}", object("futex", futex))
        }
        Op::FutexWoken { futex, how, by } => {
            format!("wakes on {}, {}", object("futex", futex), wake_words(namer, how, by))
        }
        Op::FutexWake { futex, n_woken } => {
            format!("signals {}, {}", object("futex", futex), woken_words(n_woken))
        }
        Op::Send(op) => {
            let waited = if op.waited { ", after waiting for room" } else { "" };
            format!("sends into {}{waited}", channel_name(op))
        }
        Op::Receive(op) => format!("receives from {}", channel_name(op)),
        Op::Map { addr, bytes } => format!("maps {} at {addr}", bytes_words(bytes)),
        Op::Unmap { addr, bytes } => format!("unmaps {} at {addr}", bytes_words(bytes)),
        Op::Alloc { block, bytes, .. } => format!("allocates {} at {block}", bytes_words(bytes)),
        Op::Free { block, bytes } => free_words(namer, block, bytes),
        Op::Sleep { ns } => format!("sleeps for {}", duration(ns)),
        Op::Yield => "yields".to_owned(),
        Op::Block { descriptor } => format!("may wait for file descriptor {descriptor}"),
        Op::Unblock { descriptor } => format!("is done with file descriptor {descriptor}"),
        Op::Clock { ns } => format!("sees the clock at {}", duration(ns)),
        Op::Exit { status } => format!("exits with status {status}"),
        Op::Fork => "forks".to_owned(),
        Op::Signal { number, address: Addr(0) } => format!("gets {}", signal_name(number)),
        Op::Signal { number, address } => format!("gets {} at {address}", signal_name(number)),
        Op::UnitBegin(mark) => format!("begins atomic unit {mark}"),
        Op::UnitEnd(mark) => format!("ends atomic unit {mark}"),
        Op::Fiber(fiber) => format!("goes on as fiber {fiber}"),
        Op::Step => "performs a step".into(),
        Op::Repeats { n: 1 } => "repeats an access".into(),
        Op::Repeats { n } => format!("repeats {n} accesses"),
    }
}

/// Where it did it; empty for what happens to a thread from outside.
fn site(namer: &Namer, event: &Event) -> String {
    let is_from_outside = matches!(
        event.op,
        Op::Switch { .. } | Op::Choice { .. } | Op::Begin { .. } | Op::Clock { .. }
    );
    if is_from_outside || event.pc == Pc(0) {
        return String::new();
    }
    if event.op == Op::Leave {
        // Its caller is no longer known.
        return namer.site(event.pc).to_string();
    }
    let callers = namer.calls().callers(event.thread);
    namer.own_site(event.pc, callers.iter().rev().copied())
}

fn access_words(namer: &Namer, verb: &str, access: Access) -> String {
    let place = namer.place(access.addr, access.bytes);
    let kind = match access {
        Access { vptr: true, .. } => " (vptr)",
        Access { volatile: true, .. } => " (volatile)",
        Access { range: true, .. } => " (library call)",
        _ => "",
    };
    let repeats = match access.repeats {
        0 => String::new(),
        1 => " (after repeating an access)".to_owned(),
        n => format!(" (after repeating {n} accesses)"),
    };
    format!("{verb} {}{kind}{repeats}", part(&bytes_words(access.bytes), &place))
}

fn atomic_words(namer: &Namer, atomic: Atomic) -> String {
    let Atomic { before, after, .. } = atomic;
    let place = namer.place(atomic.addr, u64::from(atomic.bytes));
    let order = order_name(atomic.order);
    match atomic.action {
        AtomicAction::Load => format!("loads {before} from {place} ({order})"),
        AtomicAction::Store => format!("stores {after} to {place} ({order})"),
        AtomicAction::Update => format!("updates {place} from {before} to {after} ({order})"),
        AtomicAction::Swap => format!("swaps {place} from {before} to {after} ({order})"),
        AtomicAction::Miss => format!("fails to swap {place} to {after}, it is {before} ({order})"),
    }
}

fn lock_words(namer: &Namer, verb: &str, lock: LockOp) -> String {
    let object = object(lock_name(lock.kind), &namer.lock_place(lock.lock));
    let shared = if lock.shared { " for reading" } else { "" };
    format!("{verb} {object}{shared}{}", tried_words(lock.tried))
}

fn enter_words(namer: &Namer, pc: Pc, return_to: Pc) -> String {
    let function = function_name(namer, pc);
    if return_to == Pc(0) {
        return format!("enters {function}");
    }
    format!("enters {function} from {}", namer.site(return_to))
}

fn function_name(namer: &Namer, pc: Pc) -> String {
    let site = namer.site(pc);
    // Whatever is inlined at this address, the call was to the outermost function.
    let function = site.frames().last().and_then(|frame| frame.function.clone());
    function.unwrap_or_else(|| "a function".to_owned())
}

fn switch_words(namer: &Namer, reason: Switch, stopped_at: Pc, steps: u64) -> String {
    let why = match reason {
        Switch::Start => return "gets the first turn".to_owned(),
        Switch::Preempt => "was preempted",
        Switch::Blocked => "is blocked",
        Switch::Ended => "has ended",
        Switch::Yielded => "yielded",
        Switch::Taken => "made no progress",
    };
    let s = if steps == 1 { "" } else { "s" };
    let at = match stopped_at {
        Pc(0) => String::new(),
        pc => format!(" at {}", namer.site(pc)),
    };
    format!("gets the turn; the last thread {why} after {steps} step{s}{at}")
}

fn free_words(namer: &Namer, addr: Addr, bytes: u64) -> String {
    let made = namer.heap().block(addr).filter(|block| block.addr == addr).map(|block| {
        let made = &block.allocated;
        format!("allocated at {}", namer.own_site(made.pc, made.callers.iter().copied()))
    });
    format!("frees {} {}", bytes_words(bytes), made.unwrap_or_else(|| format!("at {addr}")))
}

/// A synchronization object: `mutex queue.m`, `mutex in heap block …`.
fn object(word: &str, place: &Place) -> String {
    match place {
        Place::Global(variable) => format!("{word} {}", variable.name),
        _ => part(word, place),
    }
}

/// A memory access: `8 bytes of queue.len`, `8 bytes in heap block …`.
fn part(what: &str, place: &Place) -> String {
    let preposition = match place {
        Place::Global(_) => "of",
        Place::Heap { .. } => "in",
        Place::Stack { .. } => "on",
        Place::Image { .. } | Place::Unknown(_) => "at",
    };
    format!("{what} {preposition} {place}")
}

fn bytes_words(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

fn tried_words(tried: bool) -> &'static str {
    if tried { " without waiting" } else { "" }
}

fn woken_words(n_woken: u16) -> String {
    match n_woken {
        0 => "nobody waits".to_owned(),
        1 => "waking 1 thread".to_owned(),
        n => format!("waking {n} threads"),
    }
}

fn wake_words(namer: &Namer, how: Wake, by: ThreadId) -> String {
    match how {
        Wake::Woken => format!("woken by {}", namer.thread(by)),
        Wake::TimedOut => "timed out".to_owned(),
        Wake::Spurious => "for no reason".to_owned(),
        Wake::Interrupted => "interrupted by a signal".to_owned(),
        Wake::Mismatch => "as the value was another".to_owned(),
        Wake::Cancelled => "cancelled".to_owned(),
    }
}

fn lock_name(kind: Lock) -> &'static str {
    match kind {
        Lock::Mutex => "mutex",
        Lock::RwLock => "rwlock",
        Lock::Spin => "spin lock",
        Lock::Cond => "condition",
        Lock::Semaphore => "semaphore",
        Lock::Barrier => "barrier",
        Lock::Annotated => "lock",
    }
}

/// A channel with its number: `pipe 3`.
fn channel_name(op: ChannelOp) -> String {
    let kind = match op.kind {
        Channel::Pipe => "pipe",
        Channel::Socket => "socket",
        Channel::Event => "event descriptor",
        Channel::Queue => "message queue",
        Channel::Terminal => "terminal",
        Channel::File => "file",
    };
    format!("{kind} {}", op.channel)
}

fn order_name(order: u8) -> &'static str {
    const NAMES: [&str; 6] = ["relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"];
    NAMES.get(usize::from(order)).copied().unwrap_or("unknown order")
}

/// A duration in the largest unit that does not exceed it: `1.500 ms`.
fn duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match UNITS.iter().find(|(unit, _)| ns >= *unit) {
        Some((unit, name)) => format!("{}.{:03} {name}", ns / unit, ns % unit / (unit / 1_000)),
        None => format!("{ns} ns"),
    }
}

/// A signal's name on x86-64 Linux; see signal(7).
fn signal_name(number: u8) -> String {
    const NAMES: &str = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM \
        STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS";
    let name = usize::from(number).checked_sub(1).and_then(|n| NAMES.split(' ').nth(n));
    name.map_or_else(|| format!("signal {number}"), |name| format!("SIG{name}"))
}
