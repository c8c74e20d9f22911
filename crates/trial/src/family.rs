//! Nothing that a target or an oracle starts outlives it.
//!
//! raddle is the *subreaper* of what it starts (`prctl(2)`): a process that loses its parent becomes
//! a child of raddle, also if it has a group or session of its own. So what a run leaves behind are
//! children of raddle that raddle did not start itself. They are killed, and so is what they leave
//! behind in turn.
//!
//! Several runs go on at the same time. Whose a process is tells its group, its session, or the
//! environment that it began with. Otherwise it belongs to a run that had begun before it. If
//! another run that still goes on had begun by then too, the process is left to that one.
//!
//! Only children of raddle are ever killed. If raddle had children before it started any (a shell
//! that replaced itself by raddle leaves its own), then only processes that are known to be a run's.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitpid,
};
use rustix::time::{ClockId, clock_gettime};

/// All that was started and goes on. Processes are the whole process's, so this is too.
static HOUSE: Mutex<House> = Mutex::new(House { members: Vec::new(), n_started: 0 });
/// Shared while something is started: it must be known before anybody looks for what is not.
static STARTS: RwLock<()> = RwLock::new(());
/// Children that this process had before; set once it takes in orphans.
static STRANGERS: OnceLock<Vec<Pid>> = OnceLock::new();

/// How long to wait for a process that was killed: one that is stuck in the kernel may take longer.
const REAP_MAX: Duration = Duration::from_millis(500);
/// Generations of what is left behind that are killed; each may have started another.
const GENERATIONS_MAX: usize = 64;

struct House {
    members: Vec<Member>,
    n_started: u64,
}

/// The first process of a family.
#[derive(Clone, Debug)]
struct Member {
    number: u64,
    pid: Pid,
    /// Not later than its start, in ticks since the machine was booted.
    began: u64,
    /// What only its environment has.
    mark: Vec<u8>,
}

/// From now on whatever is left behind by targets and oracles is killed when they end.
pub fn adopt() -> io::Result<()> {
    let strangers = children().unwrap_or_default();
    set_child_subreaper(Some(getpid()))?;
    // Called twice, what was there first counts.
    let _ = STRANGERS.set(strangers);
    Ok(())
}

/// A process that raddle has started, with all that it starts. Ends them when dropped, which is
/// after the first process was reaped.
#[derive(Debug)]
pub(crate) struct Family {
    number: u64,
}

impl Family {
    /// Starts its first process. `mark` is a variable of its environment, such as `NAME=value`,
    /// that no other family has.
    pub(crate) fn start(command: &mut Command, mark: Vec<u8>) -> io::Result<(Child, Self)> {
        let starting = STARTS.read().unwrap_or_else(PoisonError::into_inner);
        let began = ticks();
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let mut house = house();
        house.n_started += 1;
        let number = house.n_started;
        house.members.push(Member { number, pid, began, mark });
        drop((house, starting));
        Ok((child, Self { number }))
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let own = {
            let mut house = house();
            let at = house.members.iter().position(|member| member.number == self.number);
            at.map(|at| house.members.swap_remove(at))
        };
        let (Some(own), Some(strangers)) = (own, STRANGERS.get()) else { return };
        if left_behind(strangers).is_empty() {
            return;
        }
        // While nothing is started, what is not known was left behind.
        let _starts = STARTS.write().unwrap_or_else(PoisonError::into_inner);
        end(&own, strangers);
    }
}

/// Kills all that was started, for a process that is about to exit.
pub fn end_all() {
    let strangers = STRANGERS.get().map_or(&[][..], Vec::as_slice);
    for _ in 0..GENERATIONS_MAX {
        let members = house().members.clone();
        let is_known = |process: &Process| {
            strangers.is_empty() && STRANGERS.get().is_some()
                || members.iter().any(|member| process.is_near(member))
        };
        let all: Vec<_> = children().unwrap_or_default();
        let all = all.into_iter().filter(|pid| !strangers.contains(pid));
        let all = all.filter_map(Process::read);
        let left: Vec<_> =
            all.filter(|process| !process.is_zombie() && is_known(process)).collect();
        if left.is_empty() {
            return;
        }
        for process in left {
            process.kill();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn house() -> MutexGuard<'static, House> {
    HOUSE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Children that raddle did not start, and that were not there before.
fn left_behind(strangers: &[Pid]) -> Vec<Pid> {
    // Orphans go to the first thread.
    let pid = getpid();
    let mut left = children_of_thread(pid, pid).or_else(children).unwrap_or_default();
    if !left.is_empty() {
        let house = house();
        left.retain(|pid| {
            !strangers.contains(pid) && !house.members.iter().any(|member| member.pid == *pid)
        });
    }
    left
}

/// Ends what a family has left behind.
fn end(own: &Member, strangers: &[Pid]) {
    let is_guessed = strangers.is_empty();
    // Descendants of what was killed.
    let mut heirs: Vec<Process> = Vec::new();
    for _ in 0..GENERATIONS_MAX {
        let others = house().members.clone();
        let mut is_any = false;
        for process in left_behind(strangers).into_iter().filter_map(Process::read) {
            if process.is_zombie() {
                reap(process.pid);
                continue;
            }
            let environment = environment(process.pid);
            if heirs.iter().any(|heir| heir.is_same(&process))
                || process.is_of(own, &others, &environment, is_guessed)
            {
                is_any = true;
                heirs.extend(process.descendants());
                process.kill();
                reap(process.pid);
            }
        }
        if !is_any {
            return;
        }
    }
}

/// Waits for a child that was killed.
fn reap(pid: Pid) {
    let start = Instant::now();
    while let Ok(None) = waitpid(Some(pid), WaitOptions::NOHANG) {
        if start.elapsed() > REAP_MAX {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A process, as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    state: u8,
    parent: i32,
    group: i32,
    session: i32,
    /// When it was started, in ticks since the machine was booted.
    start: u64,
}

impl Process {
    fn read(pid: Pid) -> Option<Self> {
        let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Self::parse(pid, &stat)
    }

    /// After `proc_pid_stat(5)`. The name of the program may contain anything.
    fn parse(pid: Pid, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some(Self {
            pid,
            state: *fields.first()?.as_bytes().first()?,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }

    /// Whether it is the first process of a family, or in its group or session.
    fn is_near(&self, member: &Member) -> bool {
        let first = member.pid.as_raw_nonzero().get();
        self.pid == member.pid || self.group == first || self.session == first
    }

    /// Whether it belongs to a family, while others go on.
    fn is_of(&self, own: &Member, others: &[Member], environment: &[u8], is_guessed: bool) -> bool {
        let has_mark = |member: &Member| {
            !member.mark.is_empty()
                && environment.split(|&byte| byte == 0).any(|variable| variable == member.mark)
        };
        if self.is_near(own) || others.iter().any(|other| self.is_near(other)) {
            return self.is_near(own);
        }
        if has_mark(own) || others.iter().any(has_mark) {
            return has_mark(own);
        }
        let had_begun = |member: &Member| member.began <= self.start;
        is_guessed && had_begun(own) && !others.iter().any(had_begun)
    }

    /// Its children, theirs, and so on.
    fn descendants(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut open = vec![self.pid];
        while let Some(pid) = open.pop() {
            for child in children_of(pid).unwrap_or_default() {
                found.extend(Self::read(child));
                open.push(child);
            }
        }
        found
    }

    /// Kills it, if it is a child of this process.
    fn kill(&self) {
        // It may have ended meanwhile. The descriptor stays its own even if its number does not.
        let Ok(descriptor) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        let is_ours =
            |now: Self| now.is_same(self) && now.parent == getpid().as_raw_nonzero().get();
        if Self::read(self.pid).is_some_and(is_ours) {
            // Fails if it may change its user; then nobody here can end it.
            let _ = pidfd_send_signal(&descriptor, Signal::KILL);
        }
    }
}

/// The environment that a process began with; empty if it cannot be read.
fn environment(pid: Pid) -> Vec<u8> {
    std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default()
}

/// The children of this process.
fn children() -> Option<Vec<Pid>> {
    children_of(getpid())
}

/// The children of a process.
fn children_of(pid: Pid) -> Option<Vec<Pid>> {
    let mut all = Vec::new();
    for thread in numbers(&format!("/proc/{}/task", pid.as_raw_nonzero()))? {
        match children_of_thread(pid, thread) {
            Some(children) => all.extend(children),
            // Threads come and go. If this one is still there, the kernel has no such lists.
            None if thread == pid => return children_by_parent(pid),
            None => {}
        }
    }
    Some(all)
}

/// The children that a thread has started, or was given; none if the kernel keeps no lists.
fn children_of_thread(pid: Pid, thread: Pid) -> Option<Vec<Pid>> {
    let [pid, thread] = [pid, thread].map(Pid::as_raw_nonzero);
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok()?;
    let numbers = list.split_ascii_whitespace().filter_map(|number| number.parse().ok());
    Some(numbers.filter_map(Pid::from_raw).collect())
}

/// The same from the parents of all processes.
fn children_by_parent(pid: Pid) -> Option<Vec<Pid>> {
    let parent = pid.as_raw_nonzero().get();
    let all = numbers("/proc")?.into_iter().filter_map(Process::read);
    Some(all.filter(|process| process.parent == parent).map(|process| process.pid).collect())
}

/// Names in a directory that are numbers of processes or threads.
fn numbers(directory: &str) -> Option<Vec<Pid>> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some(numbers.filter_map(Pid::from_raw).collect())
}

/// Ticks since the machine was booted, as `/proc` counts them: a hundred per second.
fn ticks() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 100 + time.tv_nsec as u64 / 10_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).expect("a number")
    }

    fn member(number: i32, began: u64) -> Member {
        let mark = format!("MARK={number}").into_bytes();
        Member { number: number as u64, pid: pid(number), began, mark }
    }

    fn orphan(group: i32, session: i32, start: u64) -> Process {
        Process { pid: pid(9000), state: b'S', parent: 1, group, session, start }
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let zeros = "0 ".repeat(15);
        let stat = format!("12 (a) b) R 4 5 6 {zeros}777 0 0");
        let process = Process::parse(pid(12), stat.as_bytes()).expect("a process");
        let expected =
            Process { pid: pid(12), state: b'R', parent: 4, group: 5, session: 6, start: 777 };
        assert_eq!(process, expected);
        assert_eq!(Process::parse(pid(12), b"12 (a"), None);
        let own = Process::read(getpid()).expect("this process");
        assert!(own.start <= ticks());
    }

    #[test]
    fn whose_a_process_is_tell_group_session_and_environment() {
        let (own, other) = (member(10, 100), member(20, 100));
        let is_own = |process: Process, environment: &[u8]| {
            process.is_of(&own, std::slice::from_ref(&other), environment, true)
        };
        assert!(is_own(orphan(10, 1, 200), b""));
        assert!(is_own(orphan(9, 10, 200), b""));
        assert!(!is_own(orphan(20, 1, 200), b"MARK=10\0"));
        assert!(is_own(orphan(9000, 9000, 200), b"A=b\0MARK=10\0"));
        assert!(!is_own(orphan(9000, 9000, 200), b"MARK=20\0"));
    }

    #[test]
    fn what_two_may_have_started_is_left_to_the_last() {
        let (own, other) = (member(10, 100), member(20, 150));
        let is_own = |start: u64, others: &[Member], is_guessed: bool| {
            orphan(9000, 9000, start).is_of(&own, others, b"", is_guessed)
        };
        let others = std::slice::from_ref(&other);
        assert!(is_own(149, others, true));
        assert!(!is_own(150, others, true));
        assert!(is_own(150, &[], true));
        assert!(!is_own(99, &[], true));
        assert!(!is_own(150, &[], false), "it may be a stranger's");
    }
}
