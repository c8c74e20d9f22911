//! How a run ended: plain data.
//!
//! Two witnesses are heard: the runtime, through the control block, and the kernel,
//! through the wait status. The runtime knows why (which assertion, which circle of
//! waiting threads); what it does not know, such as a SIGKILL, the kernel does.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use raddle_trace::control::{
    Control, EXTERNAL, Ending, LEFT, MESSAGE_BYTES, NONDETERMINISTIC, OVERFLOW, State, ThreadSlot,
};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};

use crate::shm::Block;
use crate::wait::Status;

/// How a run ended, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
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

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
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
        /// Whom it hit, as far as the runtime knows.
        place: Option<Place>,
    },
    /// By a failed assertion.
    Assert {
        /// What it said.
        message: String,
        /// Where.
        place: Place,
    },
    /// Threads wait for each other, or for what nobody can give.
    Deadlock,
    /// As a deadlock, and a wake-up was sent when nobody waited.
    LostWakeup,
    /// More steps than allowed.
    Livelock {
        /// Where.
        place: Place,
    },
    /// It did not end in time.
    Hang {
        /// What it was given.
        after: Duration,
    },
    /// The schedule could not be followed.
    Diverged(Divergence),
    /// Freed memory was used.
    UseAfterFree {
        /// Where.
        place: Place,
    },
    /// A block was freed twice.
    DoubleFree {
        /// Where.
        place: Place,
    },
    /// A synchronization object was misused.
    Misuse {
        /// In which way.
        message: String,
        /// Where.
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
    /// Whoever runs raddle wanted it to stop.
    Interrupted,
}

/// Where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// To whom.
    pub thread: ThreadId,
    /// Where in the program.
    pub pc: Pc,
    /// What it was about: the address of a fault, a lock, a block.
    pub addr: Addr,
}

/// Where a run departed from its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadAt {
    /// Which.
    pub thread: ThreadId,
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
    /// Threads that wait for each other in a circle, each for the next one; none if there is no
    /// such circle.
    #[must_use]
    pub fn circle(&self) -> Vec<&ThreadAt> {
        if self.end != End::Deadlock {
            return Vec::new();
        }
        let at = |thread: ThreadId| {
            let at = self.threads.get(thread.0 as usize)?;
            let waits = !matches!(at.state, State::Ready | State::Ended | State::Unborn);
            waits.then_some(at)
        };
        let circle = self.threads.iter().find_map(|start| {
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
        circle.unwrap_or_default()
    }
}

/// What casts doubt on a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// A thread made no progress and its turn was taken away.
    pub nondeterministic: bool,
    /// It depended on what came from outside while it ran.
    pub external: bool,
    /// A table was too small: the trace has gaps.
    pub overflow: bool,
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
            | Self::Hang { .. }
            | Self::UseAfterFree { .. }
            | Self::DoubleFree { .. }
            | Self::Misuse { .. } => true,
            Self::Diverged(_)
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
            Self::Diverged(_) | Self::Internal { .. } | Self::Unattached { .. } | Self::Interrupted
        )
    }

    /// Where it happened, if it happened to one thread.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Signal { place, .. } => *place,
            Self::Assert { place, .. }
            | Self::Livelock { place }
            | Self::UseAfterFree { place }
            | Self::DoubleFree { place }
            | Self::Misuse { place, .. } => Some(*place),
            _ => None,
        }
    }
}

/// In a few words, the same for two runs that ended alike.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { status } => write!(f, "exit {status}"),
            Self::Signal { number, .. } => write!(f, "signal {}", signal_name(*number)),
            Self::Assert { message, .. } => write!(f, "assertion failed: {message}"),
            Self::Deadlock => f.write_str("deadlock"),
            Self::LostWakeup => f.write_str("lost wake-up"),
            Self::Livelock { .. } => f.write_str("livelock"),
            Self::Hang { .. } => f.write_str("hang"),
            Self::Diverged(_) => f.write_str("diverged"),
            Self::UseAfterFree { .. } => f.write_str("use after free"),
            Self::DoubleFree { .. } => f.write_str("double free"),
            Self::Misuse { message, .. } => write!(f, "misuse: {message}"),
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

/// What the control block and the kernel tell about how a run ended.
pub(crate) fn end(block: &Block, status: Status, stopped: Option<Stopped>) -> End {
    let control = block.control();
    let ending = u8::try_from(control.ending.load(Relaxed)).ok().and_then(Ending::from_u8);
    let place = Place {
        thread: ThreadId(control.thread.load(Relaxed)),
        pc: Pc(control.pc.load(Relaxed)),
        addr: Addr(control.addr.load(Relaxed)),
    };
    let message = || message(control);
    let by_status = match status {
        Status::Exited(status) => End::Exit { status },
        Status::Killed(number) => End::Signal { number, place: None },
    };
    let by_kernel = match stopped {
        Some(Stopped::TimedOut(after)) => End::Hang { after },
        Some(Stopped::Interrupted) => End::Interrupted,
        None if control.claimed.load(Relaxed) == 0 => End::Unattached { status },
        None => by_status,
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
        Some(Ending::Assert) => End::Assert { message: message(), place },
        Some(Ending::Deadlock) => End::Deadlock,
        Some(Ending::LostWakeup) => End::LostWakeup,
        Some(Ending::Livelock) => End::Livelock { place },
        Some(Ending::Diverged) => End::Diverged(divergence(control)),
        Some(Ending::UseAfterFree) => End::UseAfterFree { place },
        Some(Ending::DoubleFree) => End::DoubleFree { place },
        Some(Ending::Misuse) => End::Misuse { message: message(), place },
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

fn message(control: &Control) -> String {
    let len = (control.message_len.load(Relaxed) as usize).min(MESSAGE_BYTES);
    let bytes: Vec<u8> = control.message[..len].iter().map(|byte| byte.load(Relaxed)).collect();
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

pub(crate) fn doubts(control: &Control) -> Doubts {
    let flags = control.flags.load(Relaxed);
    Doubts {
        nondeterministic: flags & NONDETERMINISTIC != 0,
        external: flags & EXTERNAL != 0,
        overflow: flags & OVERFLOW != 0,
    }
}

/// Where a thread was.
pub(crate) fn thread_at(thread: ThreadId, slot: &ThreadSlot) -> ThreadAt {
    let state = u8::try_from(slot.state.load(Relaxed)).ok().and_then(State::from_u8);
    let holder = slot.holder.load(Relaxed);
    let missed = slot.missed_pc.load(Relaxed);
    ThreadAt {
        thread,
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
        end(&block, status, None).to_string()
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
        assert_eq!(judged(Ending::Assert, 0, Status::Killed(6)), "assertion failed: ");
        assert_eq!(judged(Ending::Signal, 11, Status::Killed(11)), "signal SIGSEGV");
    }

    #[test]
    fn a_target_without_the_runtime_is_told_apart() {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        let end = end(&block, Status::Exited(0), None);
        assert_eq!(end, End::Unattached { status: Status::Exited(0) });
        assert!(end.is_unjudged() && !end.is_failure());
    }
}
