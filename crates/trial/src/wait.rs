//! Waiting for a child, with what it cost.
//!
//! Neither the standard library nor the safe wrappers offer `wait4`, and the usage of all
//! children together would mix up trials that run at the same time.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;

/// How a process ended, as the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Status {
    /// By exit, with a status.
    Exited(u8),
    /// By a signal.
    Killed(i32),
}

/// Reaps a child that has ended, or waits until it has, and tells how much processor time
/// it has used.
pub fn reap(pid: u32) -> io::Result<(Status, Duration)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to locals of the types that the call fills in.
        let result =
            unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, usage.as_mut_ptr()) };
        if result >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: zeroed bytes are a valid `rusage`, and the call has succeeded.
    let usage = unsafe { usage.assume_init() };
    let status = if libc::WIFSIGNALED(status) {
        Status::Killed(libc::WTERMSIG(status))
    } else {
        Status::Exited(libc::WEXITSTATUS(status) as u8)
    };
    Ok((status, duration(usage.ru_utime) + duration(usage.ru_stime)))
}

/// Lets a program that is started find these signals unblocked, although they are blocked here.
pub(crate) fn unblocked(command: &mut Command, signals: SigSet) {
    // SAFETY: the closure makes one system call, which is safe after a fork, and allocates nothing.
    unsafe { command.pre_exec(move || Ok(signals.thread_unblock()?)) };
}

/// Which descriptors are readable once one of them is, or the time is over.
pub(crate) fn readable(
    descriptors: &[BorrowedFd<'_>],
    timeout: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut polled: Vec<_> =
        descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; descriptors.len()]),
        Err(error) => Err(error.into()),
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::zombie_processes, reason = "`reap` is what is tested here")]
    fn status(script: &str) -> Status {
        let child = Command::new("sh").args(["-c", script]).spawn().expect("a shell");
        reap(child.id()).expect("a child").0
    }

    #[test]
    fn statuses_and_signals_are_told_apart() {
        assert_eq!(status("exit 7"), Status::Exited(7));
        assert_eq!(status("kill -9 $$"), Status::Killed(9));
    }
}
