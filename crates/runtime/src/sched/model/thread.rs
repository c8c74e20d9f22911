//! A thread, as the scheduler models it.

use alloc::vec::Vec;

use raddle_trace::control::State;
use raddle_trace::record::Wake;

use super::polling::Polling;

/// What a thread needs before it can perform its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it can run.
    Nothing,
    /// The lock at this address, exclusively.
    Lock(u64),
    /// The reader-writer lock at this address, for reading.
    ReadLock(u64),
    /// The reader-writer lock at this address, for writing.
    WriteLock(u64),
    /// A wake-up from this condition variable.
    Cond(u64),
    /// A wake-up from this futex whose mask shares a bit.
    Futex(u64, u32),
    /// The semaphore at this address to be above zero.
    Semaphore(u64),
    /// The barrier at this address to complete this round.
    Barrier(u64, u32),
    /// This many arrivals in completed rounds of the barrier at this address, which other processes
    /// share.
    SharedBarrier(u64, u32),
    /// The end of this thread.
    Join(u32),
    /// No other thread in this one-time initialization (`pthread_once_t`).
    Once(u64),
    /// No other thread in this one-time initialization (a C++ guard).
    Guard(u64),
    /// The loader's lock whose mutex is at this address.
    Loader(u64),
    /// A timer whose thread is due.
    Timer,
    /// No waiter left on this condition variable.
    Unwaited(u64),
    /// Its deadline.
    Sleep,
    /// One of these descriptors ready: address and number of `pollfd`s.
    Descriptors(u64, u32),
    /// The same, and a child process may have the other end of one of them.
    Peer(u64, u32),
    /// A child process to end or to stop: the address of which.
    Child(u64),
    /// A signal handler.
    Signal,
    /// A signal sent after this many were, which it will then look for.
    SignalOf(u32),
    /// To return from a call that we do not control.
    Outside,
    /// No other thread to be runnable: it has returned from outside at a time that depends on the
    /// machine, and goes last so that the run does not.
    Back,
}

impl Wait {
    /// The state shown to the parent, with the address of what it waits for.
    pub(crate) fn published(self) -> (State, u64) {
        match self {
            Self::Nothing => (State::Ready, 0),
            Self::Lock(at) => (State::Lock, at),
            Self::ReadLock(at) => (State::ReadLock, at),
            Self::WriteLock(at) => (State::WriteLock, at),
            Self::Cond(at) | Self::Unwaited(at) => (State::Cond, at),
            Self::Futex(at, _) => (State::Futex, at),
            Self::Semaphore(at) => (State::Semaphore, at),
            Self::Barrier(at, _) | Self::SharedBarrier(at, _) => (State::Barrier, at),
            Self::Join(thread) => (State::Join, u64::from(thread)),
            Self::Once(at) | Self::Guard(at) => (State::Once, at),
            Self::Loader(at) => (State::Loader, at),
            Self::Timer => (State::Timer, 0),
            Self::Sleep => (State::Sleep, 0),
            Self::Descriptors(at, _) | Self::Peer(at, _) => (State::Descriptor, at),
            Self::Child(_) => (State::Child, 0),
            Self::Signal | Self::SignalOf(_) => (State::SignalWait, 0),
            Self::Outside => (State::Outside, 0),
            Self::Back => (State::Ready, 0),
        }
    }

    /// Whether a signal handler interrupts the wait.
    pub(crate) fn interruptible(self) -> bool {
        matches!(
            self,
            Self::Futex(..)
                | Self::Semaphore(_)
                | Self::Sleep
                | Self::Descriptors(..)
                | Self::Peer(..)
                | Self::Child(_)
                | Self::Signal
                | Self::SignalOf(_)
        )
    }

    /// Whether it is a cancellation point by POSIX.
    pub(crate) fn cancellable(self) -> bool {
        matches!(
            self,
            Self::Cond(_)
                | Self::Semaphore(_)
                | Self::Join(_)
                | Self::Sleep
                | Self::Descriptors(..)
                | Self::Peer(..)
                | Self::Child(_)
                | Self::Signal
                | Self::SignalOf(_)
        )
    }
}

/// A wait on a condition variable that has begun and not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CondWait {
    /// The condition variable.
    pub(crate) cond: u64,
    /// The mutex that goes with it.
    pub(crate) mutex: u64,
    /// Where it was called.
    pub(crate) pc: u64,
    /// An address in its frame.
    pub(crate) frame: u64,
    /// Whether the mutex is released meanwhile.
    pub(crate) is_released: bool,
}

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// A deadline, when it was first seen by the rule that decides whether it may expire beside busy
/// threads: see [`super::share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(super) deadline: u64,
    /// Progress since the last jump of the thread that was ahead.
    pub(super) ahead: u64,
    /// Progress beyond that which each thread that can run has to make.
    pub(super) share: u64,
}

impl Seen {
    /// No deadline.
    pub(crate) const NONE: Self = Self { deadline: NEVER, ahead: 0, share: 0 };
}

/// A thread of the target. Its number is its index.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// What it waits for while it does not hold the turn.
    pub(crate) wait: Wait,
    /// Virtual time at which it stops waiting.
    pub(crate) deadline: u64,
    /// Code address of its current operation.
    pub(crate) pc: u64,
    /// Address and kind of its next access.
    pub(crate) access: (u64, bool),
    /// A wake-up that it received, and from whom.
    pub(crate) woken: Option<(Wake, u32)>,
    /// Whether what it waits for has come from a child process, and is accepted: see
    /// [`super::children`].
    pub(crate) accepted: bool,
    /// Whether it yielded, so that others go first.
    pub(crate) yielded: bool,
    /// Steps performed since it got the turn.
    pub(crate) stretch: u64,
    /// Total number of steps performed.
    pub(crate) steps: u64,
    /// What its operations count beyond one step each: see [`super::share`].
    pub(crate) effort: u64,
    /// Both together when time last jumped to a deadline.
    pub(crate) done_at_jump: u64,
    /// Its deadline, when it was first seen.
    pub(super) seen: Seen,
    /// How late jumps have made it since it was last in time.
    pub(crate) late_ns: u64,
    /// What it had done when the first of these jumps came.
    pub(crate) done_at_late: u64,
    /// Steps granted with the turn.
    pub(crate) budget: u64,
    /// The kernel's id.
    pub(crate) kernel_id: u32,
    /// libc's id.
    pub(crate) pthread: u64,
    /// Address of its thread-local words.
    pub(crate) tls: u64,
    /// Whether it has ended.
    pub(crate) ended: bool,
    /// Whether it can no longer be joined.
    pub(crate) gone: bool,
    /// Whether a signal handler is due.
    pub(crate) interrupted: bool,
    /// Signals that it blocks.
    pub(crate) mask: u64,
    /// Whether all handlers that interrupted its last wait asked for a restart.
    pub(crate) restarts: bool,
    /// Whether `pthread_cancel` was called for it, and it has not acted on that.
    pub(crate) cancelled: bool,
    /// Whether it disabled cancellation.
    pub(crate) uncancellable: bool,
    /// Whether it asked for asynchronous cancellation.
    pub(crate) cancel_anywhere: bool,
    /// Whether asynchronous cancellation ends its wait, which is for a lock.
    pub(crate) leaves_lock: bool,
    /// The clock that it reads again and again.
    pub(crate) polling: Polling,
    /// Its waits on condition variables: more than one if a signal handler waits.
    pub(crate) cond_waits: Vec<CondWait>,
    /// The reads that it repeats.
    pub(crate) spin: Spin,
    /// Its start routine and argument, until it begins.
    pub(crate) start: (usize, usize),
}

impl Thread {
    /// A thread that has not begun.
    pub(crate) fn new(start: (usize, usize)) -> Self {
        Self {
            wait: Wait::Nothing,
            deadline: NEVER,
            pc: 0,
            access: (0, false),
            woken: None,
            accepted: false,
            yielded: false,
            stretch: 0,
            steps: 0,
            effort: 0,
            done_at_jump: 0,
            seen: Seen::NONE,
            late_ns: 0,
            done_at_late: 0,
            budget: 0,
            kernel_id: 0,
            pthread: 0,
            tls: 0,
            ended: false,
            gone: false,
            interrupted: false,
            mask: 0,
            restarts: false,
            cancelled: false,
            uncancellable: false,
            cancel_anywhere: false,
            leaves_lock: false,
            polling: Polling::default(),
            cond_waits: Vec::new(),
            spin: Spin::default(),
            start,
        }
    }
}

impl Thread {
    /// Begins a wait on a condition variable. Those that are deeper in the stack were left by a
    /// jump.
    pub(crate) fn begin_cond_wait(&mut self, wait: CondWait) {
        self.cond_waits.retain(|before| before.frame > wait.frame);
        self.cond_waits.push(wait);
    }

    /// The current wait has released its mutex, or acquired it again.
    pub(crate) fn note_released(&mut self, is_released: bool) {
        if let Some(wait) = self.cond_waits.last_mut() {
            wait.is_released = is_released;
        }
    }

    /// Whether it acts on a cancellation at its next cancellation point.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled && !self.uncancellable
    }

    /// Whether it acts on a cancellation at its next step.
    pub(crate) fn is_cancelled_anywhere(&self) -> bool {
        self.is_cancelled() && self.cancel_anywhere
    }
}

/// Detects spin loops: only the same reads of the same values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spin {
    seen: [u64; Self::DISTINCT],
    n_seen: usize,
    n_reads: u32,
}

impl Spin {
    /// A loop with more distinct reads than this counts as work.
    const DISTINCT: usize = 8;
    /// This many reads without anything new are a spin loop.
    const READS: u32 = 64;

    /// Adds a read; true if the thread spins.
    pub(crate) fn read(&mut self, pc: u64, addr: u64, value: u64) -> bool {
        let key = (pc.rotate_left(32) ^ addr).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ value;
        if !self.seen[..self.n_seen].contains(&key) {
            if self.n_seen == Self::DISTINCT {
                *self = Self::default();
            }
            self.seen[self.n_seen] = key;
            self.n_seen += 1;
            self.n_reads = 0;
        }
        self.n_reads += 1;
        if self.n_reads < Self::READS {
            return false;
        }
        // The next time, it is detected sooner.
        self.n_reads = Self::READS * 3 / 4;
        true
    }

    /// Whether the last reads brought nothing new, which is worth a closer look.
    pub(crate) fn suspected(&self) -> bool {
        self.n_reads > 2
    }

    /// The thread did something else.
    pub(crate) fn work(&mut self) {
        self.n_seen = 0;
        self.n_reads = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Spin;

    #[test]
    fn the_same_read_again_and_again_is_a_spin() {
        let mut spin = Spin::default();
        assert!((0..100).any(|_| spin.read(1, 2, 3)));
    }

    #[test]
    fn reads_of_an_array_are_work() {
        let mut spin = Spin::default();
        assert!(!(0..1000).any(|at| spin.read(1, 8 * (at % 16), 0)));
    }

    #[test]
    fn a_changing_value_is_work() {
        let mut spin = Spin::default();
        assert!(!(0..1000).any(|value| spin.read(1, 2, value)));
    }
}
