//! Child processes of the program, and whether they are at rest.
//!
//! Children are known from the calls that start them, and their own children from the kernel. A
//! process is at rest if it has ended, or each of its threads sleeps. All of them are at rest at one
//! time if two looks in a row find them so, and find that none has run in between: then at the time
//! between the looks nobody could wake anybody.
//!
//! A process that sleeps in a call without a time-out waits for somebody else. In any other call it
//! may go on by the clock.
//!
//! Limits: processes that lost their parent are not known, nor are those that the program starts by
//! a system call of its own or by other functions of libc; if there are only such, time passes as
//! real time does. A process that waits for the network or for a terminal counts as one
//! that waits for us.

use alloc::vec::Vec;

use libc::c_int;
use raddle_trace::control::Outside;

use super::model::Rest;
use crate::proc;
use crate::sys::{self, Path};

/// How often we look whether children are at rest: less and less often.
const LOOK_US_MIN: u64 = 20;
const LOOK_US_MAX: u64 = 1_000;
/// Processor time of all children together after which we no longer wait for them to rest.
const PATIENCE_CPU_NS: u64 = 1_000_000_000;
/// The same in real time, since a child may wait for a disk. A child of a busy machine may wait for its
/// processor for long.
const PATIENCE_NS: u64 = 30_000_000_000;
/// After this many times without rest, we only look.
const PATIENCES_MAX: u32 = 3;
/// More processes than this are not looked at.
const PROCESSES_MAX: usize = 512;

/// The child processes that have not been waited for.
pub(crate) struct Kin {
    children: Vec<Child>,
    /// Of all children when they were last at rest, and of those since.
    digest_at_rest: u64,
    digest: u64,
    /// How often they did not come to rest.
    n_restless: u32,
}

/// A child process.
#[derive(Clone, Copy, Debug)]
struct Child {
    id: u32,
    /// The call that started it, and where.
    by: Outside,
    pc: u64,
    /// Whether its end was noticed.
    has_ended: bool,
}

/// What one look at all processes shows.
#[derive(Clone, Copy, Debug, Default)]
struct Glance {
    is_busy: bool,
    sleeps: bool,
    /// Differs if any process has run, started, or ended.
    digest: u64,
    cpu_ns: u64,
}

impl Kin {
    pub(super) const fn new() -> Self {
        Self { children: Vec::new(), digest_at_rest: 0, digest: 0, n_restless: 0 }
    }

    /// The program has started a child.
    pub(crate) fn add(&mut self, id: u32, by: Outside, pc: u64) {
        self.children.push(Child { id, by, pc, has_ended: false });
    }

    /// The call that started the first child, and where.
    pub(super) fn first(&self) -> Option<(Outside, u64)> {
        self.children.first().map(|child| (child.by, child.pc))
    }

    /// Waits in real time until all are at rest, or for as long as is reasonable.
    pub(super) fn rest(&mut self) -> Rest {
        self.forget_reaped();
        if self.children.is_empty() && sys::has_children() {
            // Of this one nothing is known.
            return Rest::Sleeps;
        }
        let (start, mut us) = (sys::monotonic_ns(), LOOK_US_MIN);
        let mut at_first = None;
        let mut before = None;
        loop {
            let seen = self.glance();
            self.digest = seen.digest;
            let is_calm = !seen.is_busy;
            if is_calm && before == Some(seen.digest) {
                return if seen.sleeps { Rest::Sleeps } else { Rest::Waits };
            }
            before = is_calm.then_some(seen.digest);
            if is_calm {
                continue;
            }
            let cpu_ns = seen.cpu_ns.saturating_sub(*at_first.get_or_insert(seen.cpu_ns));
            let is_tired = self.n_restless >= PATIENCES_MAX;
            if is_tired || cpu_ns > PATIENCE_CPU_NS || sys::monotonic_ns() - start > PATIENCE_NS {
                self.n_restless += 1;
                return Rest::Busy;
            }
            sys::sleep_us(us);
            us = (us * 2).min(LOOK_US_MAX);
        }
    }

    /// Whether any child has run since this was last asked, as of the last look.
    pub(super) fn have_run(&mut self) -> bool {
        core::mem::replace(&mut self.digest_at_rest, self.digest) != self.digest
    }

    /// Looks once; returns whether any child has run since they were last at rest.
    pub(super) fn run(&mut self) -> bool {
        self.forget_reaped();
        self.digest = self.glance().digest;
        self.digest != self.digest_at_rest
    }

    /// A child that has ended and not been reported yet, if there are any; all of them are reported
    /// then.
    pub(super) fn take_ended(&mut self) -> Option<u32> {
        let mut first = None;
        for child in self.children.iter_mut().filter(|child| !child.has_ended) {
            child.has_ended = proc::child_changed(libc::P_PID, child.id, libc::WEXITED);
            first = first.or(child.has_ended.then_some(child.id));
        }
        first
    }

    /// Drops children that were waited for.
    fn forget_reaped(&mut self) {
        self.children.retain(|child| proc::is_child(child.id));
    }

    /// One look at all processes.
    fn glance(&self) -> Glance {
        let mut all = Glance::default();
        let mut left: Vec<u32> = self.children.iter().map(|child| child.id).collect();
        let mut at = 0;
        while let Some(&process) = left.get(at) {
            at += 1;
            if at > PROCESSES_MAX {
                all.is_busy = true;
                break;
            }
            let mut n_threads = 0;
            proc::each_entry(&task_path(process), |thread| {
                n_threads += 1;
                all.add(process, thread);
                let children = thread_path(process, thread).text(b"/children");
                proc::each_number(&children, |child| left.push(child as u32));
            });
            all.mix(u64::from(process) << 32 | n_threads);
        }
        all
    }
}

impl Glance {
    fn mix(&mut self, word: u64) {
        self.digest = (self.digest.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Adds a thread of a process.
    fn add(&mut self, process: u32, thread: u32) {
        let path = |name: &[u8]| thread_path(process, thread).text(name);
        let mut ran = [0; 3];
        let mut n = 0;
        proc::each_number(&path(b"/schedstat"), |number| {
            if let Some(place) = ran.get_mut(n) {
                *place = number;
            }
            n += 1;
        });
        let [cpu_ns, _, n_slices] = ran;
        self.cpu_ns += cpu_ns;
        let state = proc::state(&path(b"/stat"));
        self.mix(u64::from(thread) << 8 | u64::from(state));
        self.mix(cpu_ns);
        self.mix(n_slices);
        match state {
            // Ended, or stopped.
            b'Z' | b'X' | b'T' | b't' | b'?' => {}
            b'S' => self.sleeps |= may_go_on(&path(b"/syscall")),
            _ => self.is_busy = true,
        }
    }
}

fn task_path(process: u32) -> Path {
    Path::new(b"/proc/").number(u64::from(process)).text(b"/task")
}

fn thread_path(process: u32, thread: u32) -> Path {
    task_path(process).text(b"/").number(u64::from(thread))
}

/// Whether the call that a sleeping thread is in may end by the clock. The file has the number of
/// the call and its arguments.
fn may_go_on(path: &Path) -> bool {
    let mut words = [0u64; 7];
    let mut n = 0;
    proc::each_number(path, |number| {
        if let Some(place) = words.get_mut(n) {
            *place = number;
        }
        n += 1;
    });
    let [number, arguments @ ..] = words;
    n < words.len() || is_timed(number as i64, arguments)
}

/// Whether a system call may end by the clock.
fn is_timed(number: i64, arguments: [u64; 6]) -> bool {
    let is_span = |at: usize| arguments[at] as c_int >= 0;
    let is_given = |at: usize| arguments[at] != 0;
    match number {
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_open
        | libc::SYS_openat
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_pause
        | libc::SYS_rt_sigsuspend
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_flock
        | libc::SYS_fcntl
        | libc::SYS_msgrcv
        | libc::SYS_msgsnd
        | libc::SYS_semop
        | libc::SYS_splice
        | libc::SYS_tee
        | libc::SYS_sendfile
        | libc::SYS_copy_file_range
        | libc::SYS_clone
        | libc::SYS_clone3
        | libc::SYS_vfork
        | libc::SYS_exit
        | libc::SYS_exit_group => false,
        libc::SYS_futex | libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => is_given(3),
        libc::SYS_poll => is_span(2),
        libc::SYS_ppoll | libc::SYS_rt_sigtimedwait => is_given(2),
        libc::SYS_select | libc::SYS_pselect6 => is_given(4),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => is_span(3),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_time_out_waits_for_somebody() {
        let minus_one = u64::from(u32::MAX);
        assert!(!is_timed(libc::SYS_read, [3, 0, 8, 0, 0, 0]));
        assert!(!is_timed(libc::SYS_wait4, [minus_one, 0, 0, 0, 0, 0]));
        assert!(!is_timed(libc::SYS_futex, [0x1000, 0, 2, 0, 0, 0]));
        assert!(!is_timed(libc::SYS_poll, [0x1000, 1, minus_one, 0, 0, 0]));
        assert!(!is_timed(libc::SYS_epoll_wait, [3, 0x1000, 8, minus_one, 0, 0]));
    }

    #[test]
    fn a_call_with_a_time_out_may_go_on() {
        assert!(is_timed(libc::SYS_clock_nanosleep, [0, 0, 0x1000, 0, 0, 0]));
        assert!(is_timed(libc::SYS_futex, [0x1000, 0, 2, 0x2000, 0, 0]));
        assert!(is_timed(libc::SYS_poll, [0x1000, 1, 100, 0, 0, 0]));
        assert!(is_timed(libc::SYS_select, [1, 0x1000, 0, 0, 0x2000, 0]));
        assert!(is_timed(libc::SYS_restart_syscall, [0; 6]));
    }
}
