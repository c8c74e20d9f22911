//! Being told to stop: by the user, or because the time of the command is up.
//!
//! One thread of a command owns SIGINT, SIGTERM and SIGHUP. They are blocked in all threads, and
//! that thread takes them from a descriptor ([`next`]). It also knows when the command's time is
//! up. In either case it calls [`stop`]. From then on [`stopped`] tells why, and whoever waits for
//! a target or an oracle, on any thread, ends it and stops waiting.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::wait::readable;

// Signals are the whole process's, so this is too.
static SIGNALS: OnceLock<SignalFd> = OnceLock::new();
static HELD: OnceLock<SigSet> = OnceLock::new();
/// Readable for ever once the command is to stop.
static STOP: OnceLock<OwnedFd> = OnceLock::new();
/// Why, as a number: none, time, or the signal's.
static CAUSE: AtomicI32 = AtomicI32::new(NONE);

const NONE: i32 = 0;
const TIME: i32 = -1;

/// Why a command stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its time is up.
    Time,
    /// The user sent a signal.
    Signal(i32),
}

/// Holds the signals back from now on, in this thread and those that it starts. Some thread then
/// has to take them by [`next`].
pub fn install() -> io::Result<()> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let held = signals.iter().filter(|&signal| !before.contains(signal)).collect();
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let descriptor = SignalFd::with_flags(&signals, flags)?;
    let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    // Installed twice, the first ones stay; they are for the same signals.
    let _ = SIGNALS.set(descriptor);
    let _ = STOP.set(stop);
    let _ = HELD.set(held);
    Ok(())
}

/// Waits for the next signal; none if none came in this time.
pub fn next(timeout: Duration) -> io::Result<Option<i32>> {
    let Some(signals) = SIGNALS.get() else {
        std::thread::sleep(timeout);
        return Ok(None);
    };
    readable(&[signals.as_fd()], Some(timeout))?;
    Ok(signals.read_signal()?.map(|signal| signal.ssi_signo as i32))
}

/// Stops all executions and oracles, now and from now on. The first signal remains the cause.
pub fn stop(cause: Cause) {
    let (from, to): (&[i32], i32) = match cause {
        Cause::Time => (&[NONE], TIME),
        Cause::Signal(number) => (&[NONE, TIME], number),
    };
    for &from in from {
        // Fails if there is another cause, which then counts.
        let _ = CAUSE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }
    if let Some(stop) = STOP.get() {
        // Fails only if it is readable already.
        let _ = rustix::io::write(stop, &1_u64.to_ne_bytes());
    }
}

/// Why the command is to stop, if it is.
#[must_use]
pub fn stopped() -> Option<Cause> {
    match CAUSE.load(Ordering::Acquire) {
        NONE => None,
        TIME => Some(Cause::Time),
        number => Some(Cause::Signal(number)),
    }
}

/// The signal by which the user has stopped the command.
#[must_use]
pub fn signal() -> Option<i32> {
    match stopped() {
        Some(Cause::Signal(number)) => Some(number),
        Some(Cause::Time) | None => None,
    }
}

/// The signals that are blocked here, and in what this process starts, only for our own sake.
pub(crate) fn held() -> SigSet {
    HELD.get().copied().unwrap_or_else(SigSet::empty)
}

/// Readable once the command is to stop.
pub(crate) fn descriptor() -> Option<BorrowedFd<'static>> {
    STOP.get().map(|stop| stop.as_fd())
}
