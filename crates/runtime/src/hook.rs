//! What happens at an event.
//!
//! The ABI and the interposed functions are tables and one-liners; the work is done here.

use core::sync::atomic::{AtomicU32, Ordering};

use raddle_trace::control::{Deliver, LANES_MAX, OVERFLOW};
use raddle_trace::record::{Kind, LOW, Record, SIZE, Wake};

use crate::random::Random;
use crate::sched::object::NOBODY;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{freed, history, key, lane, modules, shared, sys, tls};

/// The running thread, if it is under control and not inside the runtime.
#[inline]
pub(crate) fn me() -> Option<u32> {
    if shared::controlled() && tls::get(tls::QUIET) == 0 {
        tls::thread().or_else(adopted)
    } else {
        None
    }
}

/// A thread that libc created without us, such as a timer's, comes under control at its first
/// operation that counts.
#[cold]
fn adopted() -> Option<u32> {
    if tls::get(tls::FOREIGN) != 0 {
        return None;
    }
    let id = sched::adopt();
    key::call_at_end();
    Some(id)
}

/// Whether threads run free and are recorded or collected.
#[inline]
pub(crate) fn free() -> bool {
    shared::free() && tls::get(tls::QUIET) == 0
}

/// Where the program called the current interposed function.
#[inline]
pub(crate) fn caller() -> u64 {
    tls::get(tls::CALLER)
}

/// The slow path of an access. `head` is the record's first word without the address.
pub(crate) extern "C" fn slow_access(addr: u64, head: u64, pc: u64) {
    if let Some(me) = me() {
        let record = Record { head: head | addr & LOW, tail: pc };
        let write = record.kind() == Some(Kind::Write);
        let bytes = u64::from(record.info() & SIZE);
        spin_or_work(me, addr, bytes, write, pc);
        about_to(me, addr, write);
        sched::visible(me, pc, Wait::Nothing, NEVER, false);
        match shared::mode() {
            shared::TRACE => lane::access(record),
            shared::COLLECT => history::access(addr, head, pc),
            _ => {}
        }
        freed::check(me, addr, bytes, pc);
    } else if free() {
        free_access(addr, head, pc);
    }
}

fn free_access(addr: u64, head: u64, pc: u64) {
    if shared::mode() == shared::COLLECT_FREE {
        if (tls::get(tls::COUNTDOWN) as i64) < 0 {
            free_countdown();
        }
        history::access(addr, head, pc);
    } else {
        free_delay();
        free_append(Record { head: head | addr & LOW, tail: pc }, &[]);
    }
}

/// Whether anybody wants to know what a library function touches.
pub(crate) fn watches() -> bool {
    me().is_some() || free()
}

/// A library function is about to read or write a range.
pub(crate) fn range(addr: u64, bytes: u64, write: bool, pc: u64) {
    if bytes == 0 || modules::in_runtime(pc) {
        return;
    }
    let kind = if write { Kind::WriteRange } else { Kind::ReadRange };
    if let Some(me) = me() {
        // A step like any other, except inside libc, where a thread cannot stop.
        let countdown = tls::get(tls::COUNTDOWN) as i64;
        if modules::from_program(pc) {
            if tls::get(tls::TURN) == 1 && countdown > 0 {
                tls::set(tls::COUNTDOWN, countdown as u64 - 1);
            } else {
                about_to(me, addr, write);
                sched::visible(me, pc, Wait::Nothing, NEVER, false);
            }
            record(Kind::Step, 0, 0, 0, pc, &[]);
        }
        record(kind, 0, addr, 0, pc, &[bytes]);
        if modules::from_program(pc) {
            freed::check(me, addr, bytes, pc);
        }
    } else if free() {
        free_delay();
        record(kind, 0, addr, 0, pc, &[bytes]);
    }
}

/// A thread without steps left reads again: if it does nothing else it spins, and others go
/// first.
fn spin_or_work(me: u32, addr: u64, bytes: u64, write: bool, pc: u64) {
    let mut sched = SCHED.lock();
    sched.note_value(addr, || peek(addr, bytes));
    let spin = &mut sched.threads[me as usize].spin;
    if write {
        spin.work();
        return;
    }
    let value = peek(addr, bytes);
    if spin.read(pc, addr, value) {
        drop(sched);
        sched::yield_turn(me, pc);
    }
}

/// Registers a read of an atomic; true if the thread spins on it.
pub(crate) fn spins(me: u32, pc: u64, addr: u64, value: u64) -> bool {
    let mut sched = SCHED.lock();
    sched.note_value(addr, || value);
    sched.threads[me as usize].spin.read(pc, addr, value)
}

/// Registers that the thread does not only read.
pub(crate) fn works(me: u32) {
    SCHED.lock().threads[me as usize].spin.work();
}

/// Registers that the thread changes an atomic.
pub(crate) fn changes(me: u32, addr: u64, value: u64) {
    let mut sched = SCHED.lock();
    sched.threads[me as usize].spin.work();
    sched.note_value(addr, || value);
}

/// The memory's contents, up to 8 bytes; 0 where it cannot be read.
fn peek(addr: u64, bytes: u64) -> u64 {
    let mut value = [0u8; 8];
    // Through the kernel, since the program's pointer may be wild.
    sys::read_own_memory(addr, &mut value[..bytes.min(8) as usize]);
    u64::from_le_bytes(value)
}

/// Announces to the policy what the thread will touch.
pub(crate) fn about_to(me: u32, addr: u64, write: bool) {
    SCHED.lock().threads[me as usize].access = (addr, write);
}

/// A visible synchronization operation: returns when it may be performed.
pub(crate) fn sync(me: u32, pc: u64, wait: Wait, deadline: u64) -> Wake {
    works(me);
    sched::visible(me, pc, wait, deadline, true)
}

/// Whether events are recorded at all.
pub(crate) fn recording() -> bool {
    use shared::{COLLECT, COLLECT_FREE, FREE, TRACE};
    matches!(shared::mode(), TRACE | FREE | COLLECT | COLLECT_FREE)
}

/// Whether events are recorded one by one, as a trace.
pub(crate) fn tracing() -> bool {
    matches!(shared::mode(), shared::TRACE | shared::FREE) && tls::get(tls::QUIET) == 0
}

/// Records an event of the running thread, if events are recorded.
pub(crate) fn record(kind: Kind, info: u8, operand: u64, extra: u16, pc: u64, more: &[u64]) {
    match shared::mode() {
        shared::TRACE if tls::get(tls::QUIET) == 0 && tls::get(tls::TURN) == 1 => {
            lane::append_all(kind, info, operand, extra, pc, more);
        }
        shared::COLLECT | shared::COLLECT_FREE => {
            history::event(kind, info, operand, extra, pc, more)
        }
        shared::FREE if tls::get(tls::QUIET) == 0 => {
            free_append(Record::new(kind, info, operand, extra, pc), more)
        }
        _ => {}
    }
}

fn free_append(record: Record, more: &[u64]) {
    if tls::get(tls::LANE) == 0 {
        return;
    }
    lane::append_all(Kind::Time, 0, 0, 0, 0, &[sys::time_stamp()]);
    lane::append(record);
    for &payload in more {
        lane::append(Record::more(payload));
    }
}

/// In free mode: sometimes waits briefly, so that other threads get ahead.
pub(crate) fn free_delay() {
    let plan = &shared::control().plan;
    let probability = plan.delay_probability.load(Ordering::Relaxed);
    if probability == 0 {
        return;
    }
    let mut random = Random::from_state(tls::get(tls::RANDOM));
    let strikes = (random.next() as u32) < probability;
    let us = 1 + random.below(u64::from(plan.delay_us_max.load(Ordering::Relaxed).max(1)));
    tls::set(tls::RANDOM, random.state());
    if strikes {
        sys::sleep_us(us);
    }
}

/// How many accesses ahead delays are decided.
const AHEAD: u64 = 1 << 10;

/// While free threads are collected: delays this access if it is due, and decides how many
/// accesses follow without a delay.
#[cold]
fn free_countdown() {
    let plan = &shared::control().plan;
    let probability = plan.delay_probability.load(Ordering::Relaxed);
    if probability == 0 {
        tls::set(tls::COUNTDOWN, i64::MAX as u64);
        return;
    }
    let mut random = Random::from_state(tls::get(tls::RANDOM));
    if tls::get(tls::DELAYED) != 0 {
        let us_max = u64::from(plan.delay_us_max.load(Ordering::Relaxed).max(1));
        sys::sleep_us(1 + random.below(us_max));
    }
    let n = (0..AHEAD).take_while(|_| random.next() as u32 >= probability).count() as u64;
    tls::set(tls::RANDOM, random.state());
    tls::set(tls::COUNTDOWN, n);
    tls::set(tls::DELAYED, u64::from(n < AHEAD));
}

static FREE_THREADS: AtomicU32 = AtomicU32::new(0);

/// In free mode: registers the running thread and opens its lane.
pub(crate) fn free_begin(parent: u32, ordinal: u32, stack: (u64, u64)) -> u32 {
    let id = FREE_THREADS.fetch_add(1, Ordering::Relaxed);
    free_begin_as(id, parent, ordinal, stack);
    id
}

/// Reserves the number of the next thread, for its creator.
pub(crate) fn free_reserve() -> u32 {
    FREE_THREADS.fetch_add(1, Ordering::Relaxed)
}

/// Like [`free_begin`], with a reserved number.
pub(crate) fn free_begin_as(id: u32, parent: u32, ordinal: u32, stack: (u64, u64)) {
    tls::set_thread(Some(id));
    let seed = shared::control().plan.seed.load(Ordering::Relaxed);
    tls::set(tls::RANDOM, Random::new(seed, 100 + u64::from(id)).state());
    if (id as usize) < raddle_trace::control::THREADS_MAX {
        let slot = shared::slot(id);
        slot.parent.store(parent, Ordering::Relaxed);
        slot.ordinal.store(ordinal, Ordering::Relaxed);
        slot.holder.store(NOBODY, Ordering::Relaxed);
        slot.kernel_id.store(sys::gettid(), Ordering::Relaxed);
        slot.stack_low.store(stack.0, Ordering::Relaxed);
        slot.stack_high.store(stack.1, Ordering::Relaxed);
        slot.state.store(raddle_trace::control::State::Ready as u32, Ordering::Relaxed);
        shared::control().n_threads.fetch_max(id + 1, Ordering::AcqRel);
    }
    history::forget(stack.0, stack.1.saturating_sub(stack.0));
    let recorded = shared::control().plan.deliver.load(Ordering::Relaxed) == Deliver::Trace as u32;
    if !recorded {
        return;
    }
    if (id as usize) < LANES_MAX && lane::open(id as usize, id) {
        tls::set(tls::LANE, lane::address(id as usize));
    } else {
        shared::flag(OVERFLOW);
    }
    record(Kind::Begin, 0, u64::from(id), 0, 0, &[u64::from(parent), stack.0, stack.1]);
}
