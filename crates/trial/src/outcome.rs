//! How a run ended: plain data.
//!
//! Two witnesses are heard: the runtime, through the control block, and the kernel,
//! through the wait status. The runtime knows why (which assertion, which cycle of
//! waiting threads); what it does not know, such as a SIGKILL, the kernel does.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use raddle_code::elf::Files;
use raddle_trace::control::{
    Control, EXTERNAL, Ending, LEFT, MESSAGE_BYTES, NONDETERMINISTIC, OVERFLOW, Outside, State,
    ThreadSlot,
};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::misuse::Misuse;
use raddle_trace::run::Run;
use serde::{Deserialize, Serialize};

use crate::shm::Block;
use crate::stack;
use crate::wait::Status;

/// How a run ended, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The calls that the thread of its place was in when a signal killed it, innermost first;
    /// empty if no signal did, or nothing is known.
    pub stack: Vec<Pc>,
    /// Where every thread was then, by number.
    pub threads: Vec<ThreadAt>,
    /// What casts doubt on it.
    pub doubts: Doubts,
    /// Where the schedule was left, if it was and the run went on.
    pub left: Option<Divergence>,
    /// Steps performed by all threads, as of the last switch.
    pub n_steps: u64,
    /// Switches made.
    pub n_switches: u64,
    /// Processor time of the target.
    pub cpu: Duration,
    /// Time on the wall.
    pub wall: Duration,
}

/// How a run ended. Saved runs store its number, so new variants come last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum End {
    /// By exit.
    Exit {
        /// The status.
        status: u8,
    },
    /// By a signal.
    Signal {
        /// Its number.
        number: i32,
        /// Where it struck, if the runtime knows.
        place: Option<Place>,
    },
    /// By a failed assertion.
    Assert {
        /// The assertion.
        assertion: Assertion,
        /// Where it failed.
        place: Place,
    },
    /// Threads wait for each other, or for something that no thread can provide.
    Deadlock,
    /// As a deadlock, and a wake-up was sent when nobody waited.
    LostWakeup,
    /// Threads spin without progress.
    Livelock {
        /// Where a thread was spinning.
        place: Place,
    },
    /// The time limit ended it, which says nothing about the target.
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// The schedule could not be followed.
    Diverged(Divergence),
    /// Freed memory was used.
    UseAfterFree {
        /// Where the memory was used.
        place: Place,
    },
    /// A block was freed twice.
    DoubleFree {
        /// Where the block was freed again.
        place: Place,
    },
    /// A synchronization object was misused.
    Misuse {
        /// In which way.
        misuse: Misuse,
        /// Where the object was misused.
        place: Place,
    },
    /// The runtime gave up.
    Internal {
        /// Why.
        message: String,
    },
    /// It replaced itself by another program, which ended like this.
    Exec {
        /// How that one ended.
        status: Status,
    },
    /// It ended without ever having met the runtime.
    Unattached {
        /// How it ended.
        status: Status,
    },
    /// The user stopped raddle.
    Interrupted,
    /// More steps than allowed.
    Endless {
        /// Where a thread was still busy.
        place: Place,
    },
}

/// A failed assertion, as C's `assert` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assertion {
    /// What should have been true.
    pub text: String,
    /// The source file, as the compiler was given it.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// The function that it is in.
    pub function: String,
}

/// As glibc says it.
impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, file, line, function } = self;
        write!(f, "{file}:{line}: {function}: Assertion `{text}' failed.")
    }
}

/// Where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// To whom.
    pub thread: ThreadId,
    /// Where in the program.
    pub pc: Pc,
    /// What it was about: the address of a fault, a lock, a block.
    pub addr: Addr,
}

/// Where a run departed from its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    /// Who was to run.
    pub thread: ThreadId,
    /// How many events it had performed.
    pub event: u64,
    /// The number of the schedule's step.
    pub step: u64,
    /// Where the schedule expected it.
    pub expected: Site,
    /// Where it was.
    pub seen: Site,
    /// Where it was, as an address of that run.
    pub pc: Pc,
}

/// A thread at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadAt {
    /// The thread.
    pub thread: ThreadId,
    /// Which thread created it; none for the first one.
    pub parent: Option<ThreadId>,
    /// What it was at.
    pub state: State,
    /// What it waited for.
    pub object: Addr,
    /// Where it was.
    pub pc: Pc,
    /// Who held what it waited for, and where it had got it.
    pub holder: Option<(ThreadId, Pc)>,
    /// Where the wake-up was sent that came too early for it.
    pub missed: Option<Pc>,
    /// Steps that it had performed.
    pub n_steps: u64,
}

impl Outcome {
    /// Where it happened, if it happened to one thread: of the calls that the thread was in, the
    /// innermost that `is_own`, or else as [`End::place`] says.
    #[must_use]
    pub fn own_place(&self, is_own: impl Fn(Pc) -> bool) -> Option<Place> {
        let place = self.end.place()?;
        let own = self.stack.iter().copied().find(|&pc| is_own(pc));
        Some(Place { pc: own.unwrap_or(place.pc), ..place })
    }

    /// In a deadlock: the threads that wait for each other in a cycle, each for the next one.
    #[must_use]
    pub fn cycle(&self) -> Vec<&ThreadAt> {
        if self.end == End::Deadlock { cycle(&self.threads) } else { Vec::new() }
    }
}

/// Threads that wait for each other in a cycle, each for the next one; empty if none do.
#[must_use]
pub fn cycle(threads: &[ThreadAt]) -> Vec<&ThreadAt> {
    let at = |thread: ThreadId| {
        let at = threads.get(thread.0 as usize)?;
        let waits = !matches!(at.state, State::Ready | State::Ended | State::Unborn);
        waits.then_some(at)
    };
    let cycle = threads.iter().find_map(|start| {
        let mut path = vec![at(start.thread)?];
        while let Some(next) = path[path.len() - 1].holder.and_then(|(holder, _)| at(holder)) {
            if next.thread == start.thread {
                return Some(path);
            }
            if path.iter().any(|one| one.thread == next.thread) {
                return None;
            }
            path.push(next);
        }
        None
    });
    cycle.unwrap_or_default()
}

/// What casts doubt on a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubts {
    /// A thread made no progress and its turn was taken away.
    pub nondeterministic: bool,
    /// It depended on what came from outside while it ran.
    pub external: bool,
    /// A table was too small: the trace has gaps.
    pub overflow: bool,
    /// What came first of that which came from outside. Saved runs do not keep it.
    #[serde(skip)]
    pub outside: Option<Uncontrolled>,
    /// The first child process. Saved runs do not keep it.
    #[serde(skip)]
    pub child: Option<Uncontrolled>,
}

/// Something that is not controlled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncontrolled {
    /// What it is.
    pub what: Outside,
    /// Where the program started it, or waited for it; 0 if it did neither.
    pub pc: Pc,
}

impl End {
    /// Whether the target has failed: a verdict on the target, not on raddle.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Exit { status } => *status != 0,
            Self::Exec { status } => *status != Status::Exited(0),
            Self::Signal { .. }
            | Self::Assert { .. }
            | Self::Deadlock
            | Self::LostWakeup
            | Self::Livelock { .. }
            | Self::Endless { .. }
            | Self::UseAfterFree { .. }
            | Self::DoubleFree { .. }
            | Self::Misuse { .. } => true,
            Self::TimedOut { .. }
            | Self::Diverged(_)
            | Self::Internal { .. }
            | Self::Unattached { .. }
            | Self::Interrupted => false,
        }
    }

    /// Whether the run says nothing about the target.
    #[must_use]
    pub fn is_unjudged(&self) -> bool {
        matches!(
            self,
            Self::TimedOut { .. }
                | Self::Diverged(_)
                | Self::Internal { .. }
                | Self::Unattached { .. }
                | Self::Interrupted
        )
    }

    /// Where it happened, if it happened to one thread.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Signal { place, .. } => *place,
            Self::Assert { place, .. }
            | Self::Livelock { place }
            | Self::Endless { place }
            | Self::UseAfterFree { place }
            | Self::DoubleFree { place }
            | Self::Misuse { place, .. } => Some(*place),
            Self::Exit { .. }
            | Self::Deadlock
            | Self::LostWakeup
            | Self::TimedOut { .. }
            | Self::Diverged(_)
            | Self::Internal { .. }
            | Self::Exec { .. }
            | Self::Unattached { .. }
            | Self::Interrupted => None,
        }
    }
}

/// In a few words, the same for two runs that ended alike.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { status } => write!(f, "exit {status}"),
            Self::Signal { number, .. } => write!(f, "signal {}", signal_name(*number)),
            Self::Assert { assertion, .. } => write!(f, "assertion failed: {assertion}"),
            Self::Deadlock => f.write_str("deadlock"),
            Self::LostWakeup => f.write_str("lost wake-up"),
            Self::Livelock { .. } => f.write_str("livelock"),
            Self::Endless { .. } => f.write_str("does not end"),
            Self::TimedOut { .. } => f.write_str("timed out"),
            Self::Diverged(_) => f.write_str("diverged"),
            Self::UseAfterFree { .. } => f.write_str("use after free"),
            Self::DoubleFree { .. } => f.write_str("double free"),
            Self::Misuse { misuse, .. } => write!(f, "misuse: {misuse}"),
            Self::Internal { message } => write!(f, "internal error: {message}"),
            Self::Exec { status } => write!(f, "another program, {status}"),
            Self::Unattached { status } => write!(f, "out of control, {status}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exit {status}"),
            Self::Killed(number) => write!(f, "signal {}", signal_name(*number)),
        }
    }
}

/// The name of a signal, such as `SIGSEGV`.
#[must_use]
pub fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| number.to_string(), |signal| signal.as_str().to_owned())
}

/// Why the parent put an end to a run itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Its time was over.
    TimedOut(Duration),
    /// Whoever runs raddle wanted it.
    Interrupted,
}

/// What the control block and the kernel tell about how a run ended, with the calls that a
/// thread was in when a signal killed it.
pub(crate) fn end(
    block: &Block,
    run: &Run,
    files: &Files,
    status: Status,
    stopped: Option<Stopped>,
) -> (End, Vec<Pc>) {
    let control = block.control();
    let thread = ThreadId(control.thread.load(Relaxed));
    let addr = Addr(control.addr.load(Relaxed));
    let stack = stack::stack(block.death(), run, files)
        .filter(|(died, _)| *died == thread)
        .map_or_else(Vec::new, |(_, stack)| stack);
    // In a library, its caller.
    let own = stack.iter().copied().find(|&pc| run.is_own(pc));
    let place = Place { thread, pc: own.unwrap_or(Pc(control.pc.load(Relaxed))), addr };
    let end = end_at(control, place, status, stopped);
    let has_place = end.place().is_some();
    (end, if has_place { stack } else { Vec::new() })
}

/// The same of a run with nothing of ours in it: what the kernel tells.
pub(crate) fn plain_end(status: Status, stopped: Option<Stopped>) -> End {
    match (stopped, status) {
        (Some(Stopped::TimedOut(after)), _) => End::TimedOut { after },
        (Some(Stopped::Interrupted), _) => End::Interrupted,
        (None, Status::Exited(status)) => End::Exit { status },
        (None, Status::Killed(number)) => End::Signal { number, place: None },
    }
}

fn end_at(control: &Control, place: Place, status: Status, stopped: Option<Stopped>) -> End {
    let ending = u8::try_from(control.ending.load(Relaxed)).ok().and_then(Ending::from_u8);
    let message = || message(control);
    let by_kernel = match plain_end(status, stopped) {
        End::Exit { .. } | End::Signal { .. } if control.claimed.load(Relaxed) == 0 => {
            End::Unattached { status }
        }
        end => end,
    };
    match ending {
        None | Some(Ending::None | Ending::Exit) => by_kernel,
        Some(Ending::Signal) => match by_kernel {
            End::Signal { number, .. } if number == control.code.load(Relaxed) => {
                End::Signal { number, place: Some(place) }
            }
            // The program's own handler went on from there.
            other => other,
        },
        Some(Ending::Assert) => End::Assert { assertion: assertion(control), place },
        Some(Ending::Deadlock) => End::Deadlock,
        Some(Ending::LostWakeup) => End::LostWakeup,
        Some(Ending::Livelock) => End::Livelock { place },
        Some(Ending::Endless) => End::Endless { place },
        Some(Ending::Diverged) => End::Diverged(divergence(control)),
        Some(Ending::UseAfterFree) => End::UseAfterFree { place },
        Some(Ending::DoubleFree) => End::DoubleFree { place },
        Some(Ending::Misuse) => {
            match Misuse::from_codes(control.misuse.each_ref().map(|code| code.load(Relaxed))) {
                Some(misuse) => End::Misuse { misuse, place },
                None => End::Internal { message: "the codes of a misuse are damaged".to_owned() },
            }
        }
        Some(Ending::Internal) => End::Internal { message: message() },
        Some(Ending::Exec) => match by_kernel {
            End::Exit { .. } | End::Signal { .. } => End::Exec { status },
            other => other,
        },
    }
}

fn divergence(control: &Control) -> Divergence {
    Divergence {
        thread: ThreadId(control.thread.load(Relaxed)),
        event: control.event.load(Relaxed),
        step: control.step.load(Relaxed),
        expected: Site(control.expected_site.load(Relaxed)),
        seen: Site(control.seen_site.load(Relaxed)),
        pc: Pc(control.pc.load(Relaxed)),
    }
}

/// Where the schedule was left, if it was and the run went on.
pub(crate) fn left(control: &Control) -> Option<Divergence> {
    (control.flags.load(Relaxed) & LEFT != 0).then(|| divergence(control))
}

fn message_bytes(control: &Control) -> Vec<u8> {
    let len = (control.message_len.load(Relaxed) as usize).min(MESSAGE_BYTES);
    control.message[..len].iter().map(|byte| byte.load(Relaxed)).collect()
}

fn message(control: &Control) -> String {
    String::from_utf8_lossy(&message_bytes(control)).trim_end().to_owned()
}

fn assertion(control: &Control) -> Assertion {
    let bytes = message_bytes(control);
    let mut texts = bytes.split(|&byte| byte == 0);
    let mut next = || String::from_utf8_lossy(texts.next().unwrap_or_default()).into_owned();
    let (text, file, function) = (next(), next(), next());
    Assertion { text, file, line: control.code.load(Relaxed).unsigned_abs(), function }
}

pub(crate) fn doubts(control: &Control) -> Doubts {
    let flags = control.flags.load(Relaxed);
    Doubts {
        nondeterministic: flags & NONDETERMINISTIC != 0,
        external: flags & EXTERNAL != 0,
        overflow: flags & OVERFLOW != 0,
        outside: uncontrolled(&control.outside, &control.outside_pc),
        child: uncontrolled(&control.child, &control.child_pc),
    }
}

fn uncontrolled(code: &AtomicU32, pc: &AtomicU64) -> Option<Uncontrolled> {
    let what = u8::try_from(code.load(Relaxed)).ok().and_then(Outside::from_u8)?;
    Some(Uncontrolled { what, pc: Pc(pc.load(Relaxed)) })
}

/// Where a thread was.
pub(crate) fn thread_at(thread: ThreadId, slot: &ThreadSlot) -> ThreadAt {
    let state = u8::try_from(slot.state.load(Relaxed)).ok().and_then(State::from_u8);
    let holder = slot.holder.load(Relaxed);
    let missed = slot.missed_pc.load(Relaxed);
    ThreadAt {
        thread,
        parent: (thread != ThreadId(0)).then(|| ThreadId(slot.parent.load(Relaxed))),
        state: state.unwrap_or(State::Outside),
        object: Addr(slot.object.load(Relaxed)),
        pc: Pc(slot.pc.load(Relaxed)),
        holder: (holder != u32::MAX).then(|| (ThreadId(holder), Pc(slot.holder_pc.load(Relaxed)))),
        missed: (missed != 0).then_some(Pc(missed)),
        n_steps: slot.steps.load(Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::Layout;

    use super::*;

    /// The end of a run whose runtime stored `ending`, as the kernel saw it.
    fn judged(ending: Ending, code: i32, status: Status) -> String {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        block.control().claimed.store(1, Relaxed);
        block.control().ending.store(ending as u32, Relaxed);
        block.control().code.store(code, Relaxed);
        let place = Place { thread: ThreadId(0), pc: Pc(0), addr: Addr(0) };
        end_at(block.control(), place, status, None).to_string()
    }

    #[test]
    fn the_kernel_is_believed_about_what_the_runtime_cannot_know() {
        assert_eq!(judged(Ending::None, 0, Status::Killed(9)), "signal SIGKILL");
        assert_eq!(judged(Ending::Exit, 0, Status::Exited(3)), "exit 3");
        assert_eq!(judged(Ending::Signal, 11, Status::Exited(3)), "exit 3");
    }

    #[test]
    fn the_runtime_is_believed_about_why() {
        assert_eq!(judged(Ending::Deadlock, 0, Status::Exited(1)), "deadlock");
        assert_eq!(judged(Ending::Signal, 11, Status::Killed(11)), "signal SIGSEGV");
    }

    #[test]
    fn an_assertion_is_put_together() {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        let texts = b"n == 2\0src/bank.c\0main\0";
        for (to, from) in block.control().message.iter().zip(texts) {
            to.store(*from, Relaxed);
        }
        block.control().message_len.store(texts.len() as u32, Relaxed);
        block.control().code.store(31, Relaxed);
        let assertion = assertion(block.control());
        assert_eq!((&*assertion.file, assertion.line), ("src/bank.c", 31));
        assert_eq!(assertion.to_string(), "src/bank.c:31: main: Assertion `n == 2' failed.");
    }

    #[test]
    fn a_target_without_the_runtime_is_told_apart() {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        let place = Place { thread: ThreadId(0), pc: Pc(0), addr: Addr(0) };
        let end = end_at(block.control(), place, Status::Exited(0), None);
        assert_eq!(end, End::Unattached { status: Status::Exited(0) });
        assert!(end.is_unjudged() && !end.is_failure());
    }

    /// The cycle among threads of which number n waits for the n-th of `holders`.
    fn found(holders: &[Option<u32>]) -> Vec<u32> {
        let threads: Vec<_> = (0..)
            .zip(holders)
            .map(|(number, holder)| ThreadAt {
                thread: ThreadId(number),
                parent: None,
                state: State::Lock,
                object: Addr(0),
                pc: Pc(0),
                holder: holder.map(|holder| (ThreadId(holder), Pc(0))),
                missed: None,
                n_steps: 0,
            })
            .collect();
        cycle(&threads).into_iter().map(|at| at.thread.0).collect()
    }

    #[test]
    fn a_cycle_leaves_out_threads_that_only_wait_for_it() {
        assert_eq!(found(&[Some(1), Some(2), Some(1)]), [1, 2]);
        assert_eq!(found(&[Some(0)]), [0]);
        assert_eq!(found(&[Some(1), Some(2), None]), [0; 0]);
    }
}
