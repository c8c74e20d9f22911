//! Being told to stop.
//!
//! SIGINT, SIGTERM and SIGHUP are held back and seen through a descriptor, so that whoever
//! waits for a target can kill its whole process group first. The descriptor is read only
//! at the end: all who wait, on any thread, see it.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::OnceLock;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

// Signals are the whole process's, so this is too.
static DESCRIPTOR: OnceLock<SignalFd> = OnceLock::new();
static HELD: OnceLock<SigSet> = OnceLock::new();

/// Holds the signals back from now on, in this thread and those that it starts. From then
/// on every [`crate::execute()`] ends early when one comes.
pub fn install() -> io::Result<()> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let held = signals.iter().filter(|&signal| !before.contains(signal)).collect();
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let descriptor = SignalFd::with_flags(&signals, flags)?;
    // Installed twice, the first one stays; it is for the same signals.
    let _ = DESCRIPTOR.set(descriptor);
    let _ = HELD.set(held);
    Ok(())
}

/// The signal that has come, if one has. Clears it.
pub fn take() -> Option<i32> {
    let signal = DESCRIPTOR.get()?.read_signal().ok().flatten()?;
    Some(signal.ssi_signo as i32)
}

/// The signals that are blocked here, and in what this process starts, only for our own sake.
pub(crate) fn held() -> SigSet {
    HELD.get().copied().unwrap_or_else(SigSet::empty)
}

/// Readable once a signal has come.
pub(crate) fn descriptor() -> Option<BorrowedFd<'static>> {
    DESCRIPTOR.get().map(|descriptor| descriptor.as_fd())
}
