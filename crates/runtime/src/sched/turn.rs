//! Passing the turn.

use core::sync::atomic::Ordering;

use raddle_trace::control::{Outside, State};
use raddle_trace::record::{Kind, Switch, Wake};

use super::model::World as _;
use super::object::NOBODY;
use super::target::Target;
use super::thread::{NEVER, Wait};
use super::{Leaving, Next, RETURNING, SCHED, Sched, any_ready, hand_to, watchdog};
use crate::guarded::Guard;
use crate::{history, lane, loader, proc, shared, signals, sys, tls};

/// Returns when the running thread may perform a visible operation at `pc`, which needs `wait`:
/// it holds the turn, the step is counted, and the result is how the wait ended. `sync`
/// distinguishes a synchronization operation from an access.
pub(crate) fn visible(me: u32, pc: u64, wait: Wait, deadline: u64, sync: bool) -> Wake {
    take_turn(me);
    let mut sched = SCHED.lock();
    let mut asked = !sync || sched.follow.is_some();
    // What a child may have changed is looked at while all children are at rest.
    let is_foreign = sched.n_processes > 0 && sched.is_foreign(wait, &Target);
    if is_foreign && sched.looks_at_once(wait, deadline, sched.now()) {
        sched.come_to_rest();
        sched.accept_at_once(me, wait, &Target);
    }
    let mut has_waited = false;
    loop {
        match sched.wake_of(me, wait, deadline, sched.now(), &Target) {
            Some(wake) => {
                let countdown = tls::get(tls::COUNTDOWN) as i64;
                if !asked && !keeps_turn() {
                    asked = true;
                    if sched.policy.as_mut().is_some_and(|policy| policy.at_sync()) {
                        has_waited = true;
                        sched = step_aside(sched, me, pc, wait, deadline, Switch::Preempt);
                        continue;
                    }
                }
                if countdown > 0 {
                    tls::set(tls::COUNTDOWN, countdown as u64 - 1);
                    if sync {
                        sched.note_sync(me);
                    }
                    if wake == Wake::Cancelled {
                        tls::set(tls::CANCEL, 1);
                    }
                    if is_foreign && has_waited {
                        sched.come_to_rest();
                    }
                    let thread = &mut sched.threads[me as usize];
                    thread.pc = pc;
                    thread.accepted = false;
                    if thread.is_cancelled_anywhere() {
                        tls::set(tls::CANCEL, 1);
                    }
                    let (addr, _) = core::mem::take(&mut thread.access);
                    if sync && addr != 0 {
                        sched.forget_stale_wake_up(addr);
                    }
                    drop(sched);
                    if sync && shared::mode() == shared::TRACE {
                        lane::append_all(Kind::Step, 0, 0, 0, pc, &[]);
                    }
                    // Who waits for a child takes it before a handler can.
                    if tls::get(tls::SIGNALS) != 0 && !matches!(wait, Wait::Child(_)) {
                        deliver();
                    }
                    return wake;
                }
                has_waited = true;
                sched = step_aside(sched, me, pc, wait, deadline, Switch::Preempt);
            }
            None if tls::get(tls::SIGNALS) != 0 => {
                drop(sched);
                deliver();
                sched = SCHED.lock();
            }
            None => {
                has_waited = true;
                let thread = &mut sched.threads[me as usize];
                thread.accepted = false;
                (thread.wait, thread.deadline, thread.pc) = (wait, deadline, pc);
                sched.check_cycle(me);
                sched.note_block(me);
                sched = step_aside(sched, me, pc, wait, deadline, Switch::Blocked);
            }
        }
    }
}

/// Calls the handlers of signals that are due. The thread holds the turn.
pub(crate) fn deliver() {
    let (mut restarts, mut leaves_lock) = (true, false);
    while let Some(due) = signals::take_due() {
        restarts &= due.restarts();
        let blocked = due.block();
        if let Some(me) = tls::thread() {
            let mut sched = SCHED.lock();
            let thread = &mut sched.threads[me as usize];
            thread.mask = blocked.during;
            thread.interrupted = tls::get(tls::SIGNALS) != 0;
            thread.restarts = restarts;
            // The handler may lock, and may never return.
            leaves_lock |= core::mem::take(&mut thread.leaves_lock);
        }
        if shared::mode() == shared::TRACE && tls::get(tls::TURN) == 1 {
            lane::append_all(Kind::Signal, due.signal as u8, 0, 0, 0, &[]);
        }
        due.handle();
        if let Some(me) = tls::thread() {
            SCHED.lock().threads[me as usize].mask = blocked.before;
        }
        blocked.unblock();
    }
    if let Some(me) = tls::thread() {
        let mut sched = SCHED.lock();
        let thread = &mut sched.threads[me as usize];
        thread.interrupted = false;
        thread.leaves_lock |= leaves_lock;
    }
}

/// Lets others go first, after an operation that yields.
pub(crate) fn yield_turn(me: u32, pc: u64) {
    take_turn(me);
    if holds_file() {
        return;
    }
    let mut sched = SCHED.lock();
    sched.note_yield(me);
    drop(step_aside(sched, me, pc, Wait::Nothing, NEVER, Switch::Yielded));
}

/// Whether the running thread is cancelled here, which happens on the way out of the current call.
/// For cancellation points that did not wait.
pub(crate) fn cancel_point(me: u32) -> bool {
    let cancelled = SCHED.lock().threads[me as usize].is_cancelled();
    if cancelled {
        tls::set(tls::CANCEL, 1);
    }
    cancelled
}

/// The running thread is about to ask libc to cancel it. What its cleanup handlers call is not
/// cancelled again.
pub(crate) extern "C" fn begin_cancellation() {
    tls::set(tls::CANCEL, 0);
    if let Some(me) = tls::thread().filter(|_| shared::controlled()) {
        let mut sched = SCHED.lock();
        let thread = &mut sched.threads[me as usize];
        if thread.is_cancelled() {
            (thread.cancelled, thread.uncancellable) = (false, true);
        }
    }
}

/// Gives up the turn if the policy decides so, and returns with a new budget.
fn step_aside<'a>(
    mut sched: Guard<'a, Sched>,
    me: u32,
    pc: u64,
    wait: Wait,
    deadline: u64,
    reason: Switch,
) -> Guard<'a, Sched> {
    let done = sched.fold(me);
    sched.note_performed(me);
    let thread = &mut sched.threads[me as usize];
    (thread.wait, thread.deadline, thread.pc) = (wait, deadline, pc);
    sched.publish(me);
    let sticky = reason == Switch::Preempt && keeps_turn();
    if reason != Switch::Yielded {
        sched.note_work(done, reason == Switch::Blocked);
    }
    let next = if sticky { Next::Run(me) } else { sched.next(Some(me), reason, pc) };
    if matches!(next, Next::Run(next) if next == me) {
        sched.grant(me);
        if sticky {
            // It cannot stop here, whatever the schedule says.
            let budget = &mut sched.threads[me as usize].budget;
            *budget = (*budget).max(1);
        }
        arm(&mut sched, me);
        return sched;
    }
    let stretch = sched.take_stretch(me);
    sched.leaving = Some(Leaving { reason, pc, stretch });
    pass(sched, next);
    wait_turn(me);
    SCHED.lock()
}

/// Whether the running thread holds a lock of libc's that others would wait for in the kernel.
fn keeps_turn() -> bool {
    holds_file() || loader::is_inside()
}

/// Whether it holds the lock of a file of libc's.
fn holds_file() -> bool {
    tls::get(tls::FILES) != 0
}

/// Passes the turn to the next thread. The caller no longer holds it.
fn pass(mut sched: Guard<'_, Sched>, next: Next) {
    tls::set(tls::TURN, 0);
    tls::set(tls::COUNTDOWN, 0);
    tls::set(tls::BUDGET, 0);
    match next {
        Next::Run(id) => {
            sched.grant(id);
            drop(sched);
            hand_to(id);
        }
        Next::Idle => sched.current = None,
    }
}

/// Applies the budget that came with the turn.
fn arm(sched: &mut Sched, me: u32) {
    let thread = &mut sched.threads[me as usize];
    (thread.wait, thread.deadline) = (Wait::Nothing, NEVER);
    let slot = shared::slot(me);
    slot.state.store(State::Ready as u32, Ordering::Relaxed);
    slot.holder.store(NOBODY, Ordering::Relaxed);
    tls::set(tls::BUDGET, thread.budget);
    tls::set(tls::COUNTDOWN, thread.budget);
    tls::set(tls::TURN, 1);
}

/// Sleeps until the turn comes.
fn wait_turn(me: u32) {
    let slot = shared::slot(me);
    while slot.turn.swap(0, Ordering::Acquire) == 0 {
        sys::futex_wait(&slot.turn, 0, Some(watchdog::LOOK_NS), false);
        if slot.turn.load(Ordering::Relaxed) == 0 {
            notice_signals(me);
            watchdog::check();
        }
    }
    let mut sched = SCHED.lock();
    let exiting = core::mem::take(&mut sched.exiting);
    arm(&mut sched, me);
    drop(sched);
    // What an exiting thread still does in libc and in the kernel must not overlap with us:
    // stacks and arenas would be reused in a different order each time.
    await_exit(exiting);
}

/// Waits until a thread that has ended is gone.
fn await_exit(exiting: u32) {
    let gone = || {
        // The main thread remains as a zombie as long as the process lives.
        if exiting == sys::getpid() {
            proc::thread_state(exiting) == b'Z'
        } else {
            !sys::thread_exists(exiting)
        }
    };
    while exiting != 0 && !gone() {
        sys::sched_yield();
    }
}

/// A sleeping thread was sent a signal, or waits for one, or for input that has arrived: that may be
/// what all others wait for.
fn notice_signals(me: u32) {
    let Some(mut sched) = SCHED.try_lock() else { return };
    let idle = sched.current.is_none();
    let thread = &mut sched.threads[me as usize];
    if tls::get(tls::SIGNALS) != 0 {
        thread.interrupted = true;
    } else {
        match thread.wait {
            Wait::SignalOf(_) if idle => sched.n_signals += 1,
            Wait::Descriptors(at, n) | Wait::Peer(at, n) if idle && any_ready(at, n, 0) => {}
            Wait::Child(at) if idle && Target.has_child_changed(at) => {}
            _ => return,
        }
    }
    if sched.current.is_none() {
        let pc = sched.threads[me as usize].pc;
        shared::blame(Outside::Input, pc);
        let pc = sched.leaving.as_ref().map_or(0, |leaving| leaving.pc);
        if let Next::Run(id) = sched.next(None, Switch::Blocked, pc) {
            sched.grant(id);
            drop(sched);
            hand_to(id);
        }
    }
}

/// A thread that we did not create comes under control.
pub(crate) fn adopt() -> u32 {
    let me = {
        let mut sched = SCHED.lock();
        let me = sched.add_thread(0, (0, 0));
        let thread = &mut sched.threads[me as usize];
        (thread.wait, thread.kernel_id, thread.tls) =
            (Wait::Outside, sys::gettid(), tls::address());
        // SAFETY: asks for the calling thread's own name.
        thread.pthread = unsafe { libc::pthread_self() } as u64;
        sched.make_live(me);
        me
    };
    shared::slot(me).kernel_id.store(sys::gettid(), Ordering::Relaxed);
    shared::blame(Outside::Thread, 0);
    tls::set_thread(Some(me));
    tls::set(tls::KERNEL_ID, u64::from(sys::gettid()));
    tls::set(tls::LANE, lane::address(0));
    come_back(me);
    me
}

/// Makes sure that the running thread holds the turn: it may have returned from outside, or the
/// watchdog may have revoked the turn.
fn take_turn(me: u32) {
    if tls::get(tls::TURN) != 1 {
        come_back(me);
    }
    // Its operation may be in code that has just been loaded.
    loader::scan_loaded();
}

/// Lets others run while `body` blocks in the kernel.
pub(crate) fn outside<R>(me: u32, pc: u64, body: impl FnOnce() -> R) -> R {
    take_turn(me);
    let mut sched = SCHED.lock();
    sched.fold(me);
    let thread = &mut sched.threads[me as usize];
    (thread.wait, thread.deadline, thread.pc) = (Wait::Outside, NEVER, pc);
    sched.publish(me);
    let next = sched.next(Some(me), Switch::Blocked, pc);
    let stretch = sched.take_stretch(me);
    sched.leaving = Some(Leaving { reason: Switch::Blocked, pc, stretch });
    shared::blame(Outside::Call, pc);
    pass(sched, next);
    let result = body();
    come_back(me);
    result
}

fn come_back(me: u32) {
    RETURNING.fetch_add(1, Ordering::SeqCst);
    let mut sched = SCHED.lock();
    RETURNING.fetch_sub(1, Ordering::SeqCst);
    let thread = &mut sched.threads[me as usize];
    (thread.wait, thread.deadline) = (Wait::Back, NEVER);
    sched.publish(me);
    if sched.current.is_none() {
        let pc = sched.leaving.as_ref().map_or(0, |leaving| leaving.pc);
        if let Next::Run(id) = sched.next(None, Switch::Blocked, pc) {
            sched.grant(id);
            if id == me {
                let exiting = core::mem::take(&mut sched.exiting);
                arm(&mut sched, me);
                drop(sched);
                await_exit(exiting);
                return;
            }
            drop(sched);
            hand_to(id);
        } else {
            drop(sched);
        }
    } else {
        drop(sched);
    }
    wait_turn(me);
}

/// Grants the first turn to the main thread.
pub(crate) fn first(me: u32) {
    let mut sched = SCHED.lock();
    sched.grant(me);
    arm(&mut sched, me);
}

/// A new thread waits for its first turn. Returns its start routine and argument.
pub(crate) fn begin(me: u32, stack: (u64, u64)) -> (usize, usize) {
    tls::set_thread(Some(me));
    tls::set(tls::KERNEL_ID, u64::from(sys::gettid()));
    tls::set(tls::LANE, lane::address(0));
    let slot = shared::slot(me);
    slot.stack_low.store(stack.0, Ordering::Relaxed);
    slot.stack_high.store(stack.1, Ordering::Relaxed);
    {
        let mut sched = SCHED.lock();
        let thread = &mut sched.threads[me as usize];
        thread.kernel_id = sys::gettid();
        thread.tls = tls::address();
    }
    slot.state.store(State::Ready as u32, Ordering::Relaxed);
    slot.kernel_id.store(sys::gettid(), Ordering::Release);
    sys::futex_wake(&slot.kernel_id, false);
    wait_turn(me);
    if shared::mode() == shared::TRACE {
        let parent = u64::from(slot.parent.load(Ordering::Relaxed));
        lane::append_all(Kind::Begin, 0, u64::from(me), 0, 0, &[parent, stack.0, stack.1]);
    }
    history::forget(stack.0, stack.1.saturating_sub(stack.0));
    SCHED.lock().threads[me as usize].start
}

/// The running thread ends: only libc's last steps remain.
pub(crate) fn end(me: u32) {
    take_turn(me);
    let mut sched = SCHED.lock();
    if shared::mode() == shared::TRACE {
        lane::append_all(Kind::End, 0, 0, 0, 0, &[]);
    }
    sched.fold(me);
    let kernel_id = sys::gettid();
    sched.model.end(me);
    let thread = &mut sched.threads[me as usize];
    thread.tls = 0;
    let pc = thread.pc;
    let slot = shared::slot(me);
    slot.state.store(State::Ended as u32, Ordering::Relaxed);
    // After the last thread, libc ends the process.
    let next =
        if sched.live.is_empty() { Next::Idle } else { sched.next(Some(me), Switch::Ended, pc) };
    let stretch = sched.take_stretch(me);
    sched.leaving = Some(Leaving { reason: Switch::Ended, pc, stretch });
    sched.exiting = kernel_id;
    tls::set_thread(None);
    pass(sched, next);
    // Whatever still runs, such as the destructors of other thread keys, is not controlled.
    tls::set(tls::LANE, 0);
    tls::set(tls::FOREIGN, 1);
}
