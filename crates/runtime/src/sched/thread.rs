//! A thread, as the scheduler sees it.

use raddle_trace::control::State;
use raddle_trace::record::Wake;

/// What a thread needs before it can perform its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it can run.
    Nothing,
    /// The lock at this address, for itself.
    Lock(u64),
    /// The reader-writer lock at this address, with other readers.
    ReadLock(u64),
    /// The reader-writer lock at this address, for itself.
    WriteLock(u64),
    /// A wake-up from this condition variable.
    Cond(u64),
    /// A wake-up from this futex, by a wake that shares a bit.
    Futex(u64, u32),
    /// The semaphore at this address above zero.
    Semaphore(u64),
    /// The barrier at this address beyond this round.
    Barrier(u64, u32),
    /// The end of this thread.
    Join(u32),
    /// Nobody else in this one-time initialization (`pthread_once_t`).
    Once(u64),
    /// Nobody else in this one-time initialization (a C++ guard).
    Guard(u64),
    /// No waiter left on this condition variable.
    Unwaited(u64),
    /// Its deadline.
    Sleep,
    /// One of these descriptors ready: address and number of `pollfd`s.
    Descriptors(u64, u32),
    /// A signal handler.
    Signal,
    /// A signal sent since so many were, which it will then look for.
    SignalOf(u32),
    /// To come back from a call that we do not control.
    Outside,
    /// Nobody else to be able to run: it is back from outside, when is up to the machine, and
    /// so that the run is not, it goes last.
    Back,
}

impl Wait {
    /// As the parent sees it, with the address of what is waited for.
    pub(crate) fn published(self) -> (State, u64) {
        match self {
            Self::Nothing => (State::Ready, 0),
            Self::Lock(at) => (State::Lock, at),
            Self::ReadLock(at) => (State::ReadLock, at),
            Self::WriteLock(at) => (State::WriteLock, at),
            Self::Cond(at) | Self::Unwaited(at) => (State::Cond, at),
            Self::Futex(at, _) => (State::Futex, at),
            Self::Semaphore(at) => (State::Semaphore, at),
            Self::Barrier(at, _) => (State::Barrier, at),
            Self::Join(thread) => (State::Join, u64::from(thread)),
            Self::Once(at) | Self::Guard(at) => (State::Once, at),
            Self::Sleep => (State::Sleep, 0),
            Self::Descriptors(at, _) => (State::Descriptor, at),
            Self::Signal | Self::SignalOf(_) => (State::SignalWait, 0),
            Self::Outside => (State::Outside, 0),
            Self::Back => (State::Ready, 0),
        }
    }

    /// Whether a signal handler ends the wait.
    pub(crate) fn interruptible(self) -> bool {
        matches!(
            self,
            Self::Futex(..)
                | Self::Semaphore(_)
                | Self::Sleep
                | Self::Descriptors(..)
                | Self::Signal
                | Self::SignalOf(_)
        )
    }

    /// Whether POSIX makes it a cancellation point.
    pub(crate) fn cancellable(self) -> bool {
        matches!(
            self,
            Self::Cond(_)
                | Self::Semaphore(_)
                | Self::Join(_)
                | Self::Sleep
                | Self::Descriptors(..)
                | Self::Signal
                | Self::SignalOf(_)
        )
    }
}

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// A thread of the target. Its number is its index.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// What it waits for while it has not the turn.
    pub(crate) wait: Wait,
    /// Virtual time at which it stops waiting.
    pub(crate) deadline: u64,
    /// Where it is.
    pub(crate) pc: u64,
    /// Address and kind of its next access.
    pub(crate) access: (u64, bool),
    /// A wake-up that it was given, and by whom.
    pub(crate) woken: Option<(Wake, u32)>,
    /// It yielded, and others go first.
    pub(crate) yielded: bool,
    /// Steps performed since it got the turn.
    pub(crate) stretch: u64,
    /// Steps performed in all.
    pub(crate) steps: u64,
    /// Steps granted with the turn.
    pub(crate) budget: u64,
    /// Threads that it created.
    pub(crate) n_children: u32,
    /// The kernel's name for it.
    pub(crate) kernel_id: u32,
    /// libc's name for it.
    pub(crate) pthread: u64,
    /// Address of its thread-local words.
    pub(crate) tls: u64,
    /// It has ended.
    pub(crate) ended: bool,
    /// Nobody may join it any more.
    pub(crate) gone: bool,
    /// A signal handler is due.
    pub(crate) interrupted: bool,
    /// Signals that it has blocked.
    pub(crate) mask: u64,
    /// The handlers that interrupted its last wait all asked for it to go on.
    pub(crate) restarts: bool,
    /// `pthread_cancel` was called for it.
    pub(crate) cancelled: bool,
    /// It disabled cancellation.
    pub(crate) uncancellable: bool,
    /// It asked for asynchronous cancellation.
    pub(crate) cancel_anywhere: bool,
    /// What it read again and again.
    pub(crate) spin: Spin,
    /// Where its start routine and argument are kept until it begins.
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
            yielded: false,
            stretch: 0,
            steps: 0,
            budget: 0,
            n_children: 0,
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
            spin: Spin::default(),
            start,
        }
    }
}

/// Recognizes a spin loop: nothing but the same reads of the same values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spin {
    seen: [u64; Self::DISTINCT],
    n_seen: usize,
    n_reads: u32,
}

impl Spin {
    /// A loop with more different reads than this is taken for work.
    const DISTINCT: usize = 8;
    /// So many reads without anything new are a spin.
    const READS: u32 = 64;

    /// Notes a read; true if the thread spins.
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
        // The next time around it is known sooner.
        self.n_reads = Self::READS * 3 / 4;
        true
    }

    /// Whether the last reads brought nothing new: worth a closer look.
    pub(crate) fn suspected(&self) -> bool {
        self.n_reads > 2
    }

    /// Notes that the thread did something else.
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
