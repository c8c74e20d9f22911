//! Revokes the turn of a thread that does not use it.
//!
//! Some code blocks or spins where we have no callback: a library built without instrumentation,
//! a lock inside libc, an unknown system call. Every waiting thread wakes periodically and checks
//! whether the holder of the turn makes progress. If the kernel says that it sleeps, it loses its
//! turn soon; if it runs, much later. Such a run is marked as not strictly deterministic. A
//! loaded machine does not cause this: a thread that waits for a processor counts as running.
//!
//! A schedule must not wait forever either for a thread that waits for something from outside: in
//! an order other than that of its original run, another thread may have to send it first. After
//! a while the schedule is abandoned, if others could run.

use core::sync::atomic::{AtomicU64, Ordering};

use raddle_trace::control::{NO_WATCHDOG, NONDETERMINISTIC};
use raddle_trace::record::Switch;

use super::model::follow::OUTSIDE_NS;
use super::target::Target;
use super::thread::Wait;
use super::{Leaving, Next, SCHED, Sched, hand_to};
use crate::guarded::Guard;
use crate::{proc, shared, sys, tls};

/// How often a waiting thread checks.
pub(super) const LOOK_NS: u64 = 50_000_000;
/// How long a sleeping thread keeps the turn.
const ASLEEP_NS: u64 = 100_000_000;
/// How long a running thread that performs no step keeps the turn.
const BUSY_NS: u64 = 2_000_000_000;
/// How long a schedule lets all threads wait for a signal from the program itself that is on its
/// way; for anything else from outside it is [`OUTSIDE_NS`].
const SIGNAL_NS: u64 = 500_000_000;

/// The state at the last check.
pub(super) struct Watch {
    current: Option<u32>,
    countdown: u64,
    steps: u64,
    asleep_since: u64,
    stuck_since: u64,
}

impl Watch {
    pub(super) const fn new() -> Self {
        Self { current: None, countdown: 0, steps: 0, asleep_since: 0, stuck_since: 0 }
    }
}

/// Checks whether the thread with the turn makes progress, and passes the turn to another if not.
pub(super) fn check() {
    if shared::control().plan.options.load(Ordering::Relaxed) & NO_WATCHDOG != 0 {
        return;
    }
    let Some(mut sched) = SCHED.try_lock() else { return };
    let Some(current) = sched.current else { return check_idle(sched) };
    let holder = &sched.threads[current as usize];
    if holder.tls == 0 || sched.exiting != 0 {
        return;
    }
    let (holder_tls, kernel_id) = (holder.tls, holder.kernel_id);
    let now = sys::monotonic_ns();
    // SAFETY: the thread lives, since it has the turn, and so does its thread-local block.
    let word = |word: usize| unsafe { &*((holder_tls + word as u64) as *const AtomicU64) };
    let countdown = word(tls::COUNTDOWN).load(Ordering::Relaxed);
    let steps = sched.steps + shared::control().switches.load(Ordering::Relaxed);
    let watch = &mut sched.watch;
    if watch.current != Some(current) || watch.countdown != countdown || watch.steps != steps {
        *watch =
            Watch { current: Some(current), countdown, steps, asleep_since: now, stuck_since: now };
        return;
    }
    if proc::thread_state(kernel_id) != b'S' {
        watch.asleep_since = now;
    }
    let taken = now - watch.asleep_since >= ASLEEP_NS || now - watch.stuck_since >= BUSY_NS;
    // It may be waiting for the parent to take a chunk of the trace.
    if !taken || crate::lane::is_full(word(tls::LANE).load(Ordering::Relaxed)) {
        return;
    }
    crate::history::stop();
    word(tls::TURN).store(0, Ordering::Relaxed);
    word(tls::COUNTDOWN).store(0, Ordering::Relaxed);
    let done = word(tls::BUDGET).swap(0, Ordering::Relaxed).saturating_sub(countdown);
    sched.steps += done;
    let thread = &mut sched.threads[current as usize];
    thread.steps += done;
    let stretch = core::mem::take(&mut thread.stretch) + done;
    thread.wait = Wait::Outside;
    let pc = thread.pc;
    sched.publish(current);
    sched.leaving = Some(Leaving { reason: Switch::Taken, pc, stretch });
    sched.current = None;
    shared::flag(NONDETERMINISTIC);
    if let Next::Run(id) = sched.next(None, Switch::Taken, pc) {
        sched.grant(id);
        drop(sched);
        hand_to(id);
    }
}

/// Checks whether a schedule waits without progress, and abandons it if so.
fn check_idle(mut sched: Guard<'_, Sched>) {
    let now = sys::monotonic_ns();
    let steps = sched.steps + shared::control().switches.load(Ordering::Relaxed);
    if sched.watch.current.is_some() || sched.watch.steps != steps {
        let (current, countdown) = (None, 0);
        sched.watch = Watch { current, countdown, steps, asleep_since: now, stuck_since: now };
        return;
    }
    let Some(wait) = sched.awaits_instead(&Target) else { return };
    let is_alone = sched.n_processes == 0;
    let patience = match wait {
        Wait::Signal | Wait::SignalOf(_) if is_alone => SIGNAL_NS,
        _ => OUTSIDE_NS,
    };
    if now - sched.watch.stuck_since < patience {
        return;
    }
    // The last stretch: how it ends is how the run ends.
    match sched.departure() {
        Some(departure) => sched.depart(departure),
        None => sched.follow = None,
    }
    let pc = sched.leaving.as_ref().map_or(0, |leaving| leaving.pc);
    if let Next::Run(id) = sched.next(None, Switch::Blocked, pc) {
        sched.grant(id);
        drop(sched);
        hand_to(id);
    }
}
