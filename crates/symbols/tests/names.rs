//! Names for every kind of address, and descriptions of events.

mod build;

use std::sync::LazyLock;

use build::{Program, build_queue, line, source};
use raddle_symbols::events;
use raddle_symbols::name::Namer;
use raddle_symbols::{Cache, Symbols};
use raddle_trace::control::Mode;
use raddle_trace::event::{Access, Atomic, AtomicAction, ChannelOp, Event, LockOp, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::record::{Channel, Lock, Switch, Wake};
use raddle_trace::run::{Run, Thread};

static PROGRAM: LazyLock<Program> =
    LazyLock::new(|| build_queue("gcc", "-g -O1 -fsanitize=thread").expect("gcc"));

const MAIN: ThreadId = ThreadId(0);
const WORKER: ThreadId = ThreadId(1);
const BLOCK: Addr = Addr(0x6000_0000);

fn namer() -> Namer {
    let thread = |id, name: &str, low, high| Thread {
        id,
        name: name.to_owned(),
        label: None,
        stack: (Addr(low), Addr(high)),
    };
    let run = Run {
        command: vec!["program".to_owned()],
        directory: "/".to_owned(),
        mode: Mode::Controlled,
        policy: None,
        seed: 0,
        modules: vec![PROGRAM.module()],
        threads: vec![
            thread(MAIN, "main", 0x7fff_0000, 0x7fff_8000),
            thread(WORKER, "main/1", 0x7ff0_0000, 0x7ff0_8000),
        ],
        ending: None,
    };
    let symbols = Symbols::new(&run.modules, &Cache::default()).shown_from(source(""));
    Namer::with_symbols(&run, symbols)
}

/// A code address in `give_up`, as an example of a site.
fn pc() -> Pc {
    *PROGRAM.calls("give_up").last().expect("a call")
}

fn site() -> String {
    format!("queue.c:{} in give_up", line("queue.c", "give_up"))
}

fn event(op: Op) -> Event {
    Event { thread: WORKER, pc: pc(), op }
}

fn queue(offset: u64) -> Addr {
    PROGRAM.addr("queue", offset)
}

fn access(addr: Addr, bytes: u64) -> Access {
    Access { addr, bytes, volatile: false, vptr: false, range: false, repeats: 0 }
}

fn mutex(lock: Addr) -> LockOp {
    LockOp { lock, kind: Lock::Mutex, shared: false, tried: false }
}

/// Checks the description of an operation, after pushing it.
fn check(op: Op, expect: &str) {
    let mut namer = namer();
    namer.push(0, &event(Op::Alloc { block: BLOCK, bytes: 64, room: 64 }));
    namer.push(1, &event(op));
    assert_eq!(events::words(&namer, &event(op)), expect);
}

#[test]
fn a_line_is_number_thread_words_and_site() {
    let op = Op::Write(access(queue(88), 8));
    let expect =
        format!("     17  main/1    writes 8 bytes of queue.len                       {}", site());
    assert_eq!(events::line(&namer(), 17, &event(op)), expect);
}

#[test]
fn a_long_line_is_not_cut() {
    let op = Op::CondWait { cond: queue(40), mutex: Addr(0x10) };
    let expect = format!(
        "      0  main/1    waits on condition queue.ready, leaving mutex at 0x10  {}",
        site()
    );
    assert_eq!(events::line(&namer(), 0, &event(op)), expect);
}

#[test]
fn a_line_in_a_library_is_at_its_caller() {
    let mut namer = namer();
    let event = Event { pc: Pc(0x10), ..event(Op::Yield) };
    assert_eq!(events::line(&namer, 0, &event).split_whitespace().last(), Some("0x10"));
    namer.push(0, &Event { op: Op::Enter { return_to: pc() }, ..event });
    let line = events::line(&namer, 1, &event);
    assert!(line.ends_with(&site()), "{line}");
}

#[test]
fn what_happens_from_outside_has_no_site() {
    let op = Op::Switch { reason: Switch::Start, stopped_at: Pc(0), steps: 0 };
    assert_eq!(events::line(&namer(), 0, &event(op)), "      0  main/1    gets the first turn");
}

#[test]
fn accesses() {
    check(Op::Read(access(queue(88), 8)), "reads 8 bytes of queue.len");
    check(Op::Write(access(queue(108), 1)), "writes 1 byte of queue.tag");
    check(
        Op::Write(access(Addr(BLOCK.0 + 8), 4)),
        &format!("writes 4 bytes in heap block allocated at {} (+8)", site()),
    );
    check(Op::Read(access(Addr(0x7ff0_7ff0), 4)), "reads 4 bytes on stack of main/1 (-16)");
    check(Op::Read(access(Addr(0x10), 4)), "reads 4 bytes at 0x10");
    let volatile = Access { volatile: true, ..access(queue(88), 8) };
    check(Op::Read(volatile), "reads 8 bytes of queue.len (volatile)");
    let range = Access { range: true, ..access(queue(0), 120) };
    check(Op::Write(range), "writes 120 bytes of queue (library call)");
}

#[test]
fn atomic_operations() {
    let check = |action, order, expect: &str| {
        let atomic = Atomic { addr: queue(88), bytes: 8, action, order, before: 3, after: 4 };
        check(Op::Atomic(atomic), expect);
    };
    check(AtomicAction::Load, 2, "loads 3 from queue.len (acquire)");
    check(AtomicAction::Store, 3, "stores 4 to queue.len (release)");
    check(AtomicAction::Update, 5, "updates queue.len from 3 to 4 (seq_cst)");
    check(AtomicAction::Swap, 4, "swaps queue.len from 3 to 4 (acq_rel)");
    check(AtomicAction::Miss, 0, "fails to swap queue.len to 4, it is 3 (relaxed)");
}

#[test]
fn locks() {
    check(Op::Acquire(mutex(queue(0))), "acquires mutex queue.m");
    check(Op::Release(mutex(queue(0))), "releases mutex queue.m");
    let read = LockOp { kind: Lock::RwLock, shared: true, tried: true, ..mutex(Addr(0x10)) };
    check(Op::Acquire(read), "acquires rwlock at 0x10 for reading without waiting");
    check(
        Op::Acquire(mutex(Addr(BLOCK.0 + 24))),
        &format!("acquires mutex in heap block allocated at {} (+24)", site()),
    );
    check(Op::Init { object: queue(0), kind: Lock::Mutex }, "initializes mutex queue.m");
    check(Op::Destroy { object: queue(40), kind: Lock::Cond }, "destroys condition queue.ready");
}

#[test]
fn waits_and_wakes() {
    let cond = queue(40);
    let how = Wake::Woken;
    check(Op::CondWake { cond, how, by: MAIN }, "wakes on condition queue.ready, woken by main");
    let how = Wake::TimedOut;
    check(Op::CondWake { cond, how, by: MAIN }, "wakes on condition queue.ready, timed out");
    check(Op::CondSignal { cond, n_woken: 0 }, "signals condition queue.ready, nobody waits");
    check(
        Op::CondBroadcast { cond, n_woken: 2 },
        "broadcasts condition queue.ready, waking 2 threads",
    );
    let futex = Addr(0x10);
    check(Op::FutexWait { futex, expected: 1 }, "waits on futex at 0x10 while it is 1");
    check(Op::FutexWake { futex, n_woken: 1 }, "signals futex at 0x10, waking 1 thread");
    let how = Wake::Mismatch;
    check(
        Op::FutexWoken { futex, how, by: MAIN },
        "wakes on futex at 0x10, as the value was another",
    );
    check(Op::SemPost(futex), "raises semaphore at 0x10");
    check(
        Op::SemWait { semaphore: futex, tried: true },
        "lowers semaphore at 0x10 without waiting",
    );
    check(Op::SemAsk(futex), "asks for the value of semaphore at 0x10");
    check(Op::BarrierEnter(futex), "reaches barrier at 0x10");
    check(Op::BarrierLeave(futex), "leaves barrier at 0x10");
}

#[test]
fn threads() {
    check(Op::Spawn(ThreadId(1)), "creates main/1");
    check(Op::Join(ThreadId(7)), "joins thread 7");
    check(Op::Detach(MAIN), "detaches main");
    let (stack_low, stack_high) = (Addr(0), Addr(0));
    check(Op::Begin { parent: MAIN, stack_low, stack_high }, "begins, created by main");
    check(Op::End, "ends");
    let switch = Op::Switch { reason: Switch::Preempt, stopped_at: pc(), steps: 12 };
    let site = site();
    check(
        switch,
        &format!("gets the turn; the last thread was preempted after 12 steps at {site}"),
    );
    check(Op::Choice { taken: 1, of: 3 }, "takes choice 1 of 3");
}

#[test]
fn functions() {
    check(Op::Leave, "leaves give_up");
    let fill = format!("enters give_up from {}", site());
    check(Op::Enter { return_to: pc() }, &fill);
    check(Op::Enter { return_to: Pc(0) }, "enters give_up");
}

#[test]
fn the_heap() {
    check(Op::Alloc { block: Addr(0x100), bytes: 16, room: 16 }, "allocates 16 bytes at 0x100");
    let free = Op::Free { block: BLOCK, bytes: 64 };
    check(free, &format!("frees 64 bytes allocated at {}", site()));
    check(Op::Free { block: Addr(0x100), bytes: 0 }, "frees 0 bytes at 0x100");
    check(Op::Map { addr: Addr(0x1000), bytes: 4096 }, "maps 4096 bytes at 0x1000");
    check(Op::Unmap { addr: Addr(0x1000), bytes: 4096 }, "unmaps 4096 bytes at 0x1000");
}

#[test]
fn channels() {
    let op = |kind, waited| ChannelOp { channel: 3, kind, waited };
    check(Op::Send(op(Channel::Pipe, false)), "sends into pipe 3");
    check(Op::Send(op(Channel::Socket, true)), "sends into socket 3, after waiting for room");
    check(Op::Receive(op(Channel::Event, false)), "receives from event descriptor 3");
    check(Op::Receive(op(Channel::Queue, false)), "receives from message queue 3");
}

#[test]
fn all_else() {
    let at = Addr(0x10);
    check(Op::Fence { order: 5 }, "passes a fence (seq_cst)");
    check(Op::Fence { order: 77 }, "passes a fence (unknown order)");
    check(Op::OnceBegin(at), "begins to initialize once at 0x10");
    check(Op::OnceEnd { control: at, done: true }, "has initialized once at 0x10");
    check(Op::OnceEnd { control: at, done: false }, "gives up initializing once at 0x10");
    check(Op::OncePass(at), "finds once at 0x10 initialized");
    check(Op::Before(at), "releases what came before at 0x10");
    check(Op::After(at), "acquires what came before at 0x10");
    check(Op::Sleep { ns: 1_500_000 }, "sleeps for 1.500 ms");
    check(Op::Clock { ns: 999 }, "sees the clock at 999 ns");
    check(Op::Yield, "yields");
    check(Op::Block { descriptor: 3 }, "may wait for file descriptor 3");
    check(Op::Unblock { descriptor: 3 }, "is done with file descriptor 3");
    check(Op::Exit { status: 1 }, "exits with status 1");
    check(Op::Fork, "forks");
    check(Op::Signal { number: 11, address: at }, "gets SIGSEGV at 0x10");
    check(Op::Signal { number: 31, address: Addr(0) }, "gets SIGSYS");
    check(Op::Signal { number: 0, address: Addr(0) }, "gets signal 0");
    check(Op::Signal { number: 64, address: Addr(0) }, "gets signal 64");
    check(Op::UnitBegin(at), "begins atomic unit 0x10");
    check(Op::UnitEnd(at), "ends atomic unit 0x10");
    check(Op::Fiber(at), "goes on as fiber 0x10");
}

#[test]
fn a_name_is_that_of_its_moment() {
    let mut namer = namer();
    namer.push(1, &event(Op::Alloc { block: BLOCK, bytes: 64, room: 64 }));
    namer.push(2, &event(Op::Free { block: BLOCK, bytes: 64 }));
    let site = site();
    let at = |seq| namer.place_at(Addr(BLOCK.0 + 8), 4, seq).to_string();
    assert_eq!(at(0), "0x60000008");
    assert_eq!(at(1), format!("heap block allocated at {site} (+8)"));
    assert_eq!(at(2), format!("heap block allocated at {site}, freed at {site} (+8)"));
}

#[test]
fn a_stack_where_a_freed_block_was_is_a_stack() {
    let mut namer = namer();
    let block = Addr(0x7ff0_0000);
    namer.push(1, &event(Op::Alloc { block, bytes: 0x8000, room: 0x8000 }));
    namer.push(2, &event(Op::Free { block, bytes: 0x8000 }));
    assert_eq!(namer.location(Addr(0x7ff0_7ff8), 4), "stack of main/1 (-8)");
}

#[test]
fn a_block_that_a_library_allocates_is_its_callers() {
    let mut namer = namer();
    let library = Pc(0x10);
    namer.push(1, &event(Op::Enter { return_to: pc() }));
    namer.push(2, &event(Op::Enter { return_to: Pc(0x20) }));
    let op = Op::Alloc { block: BLOCK, bytes: 64, room: 64 };
    namer.push(3, &Event { thread: WORKER, pc: library, op });
    assert_eq!(namer.location(BLOCK, 4), format!("heap block allocated at {}", site()));
}

#[test]
fn a_place_in_a_module_without_a_name_is_an_offset() {
    assert_eq!(namer().location(Addr(build::BASE + 4), 4), "program+0x4");
    assert_eq!(namer().lock(Addr(build::BASE + 4)), "program+0x4");
}
