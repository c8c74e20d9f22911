//! The share of steps that threads get before a deadline expires beside them.
//!
//! How long threads take for their steps natively is unknown, so virtual time is a guess as long
//! as threads are busy, and a wrong guess lets a time-out expire that natively never does. A
//! deadline therefore expires beside threads that can run only after each of them has made
//! progress in proportion to how far away it is ([`Expiry::share`]), counted from when the deadline
//! was first seen and from the last jump.
//!
//! **Progress** is counted in steps. A synchronization operation takes longer than an access, and a
//! wait much longer, so they count as several ([`SYNC_STEPS`], [`BLOCK_STEPS`], [`SPAWN_STEPS`]). A
//! new thread starts with the progress of its creator, since time has passed for both, but for the
//! smallest share, so that it gets to run.
//!
//! **Since it was seen.** Nobody keeps what each thread had done when each deadline was set. A
//! deadline keeps the progress of the thread that was ahead of all others when it was first seen; a
//! thread that has made its share beyond that has made it since. Deadlines are seen only when
//! nobody is held any more, so this is no work beside busy threads.
//!
//! **Starving threads.** A policy with priorities may never let a thread run that can. So that this
//! does not stop the clock, such threads go first when others are far ahead.
//!
//! **Renewed deadlines.** Threads that wait with a time-out in a loop, and are always woken in
//! time, set new deadlines before one of them could expire. So that they do not stop the clock for
//! a thread that just sleeps, time jumps as well when any deadline has waited for
//! [`SHARES_MAX`] times its share.
//!
//! [`Expiry::share`]: raddle_trace::expiry::Expiry::share

use raddle_trace::expiry::Awaited;

use super::Model;
use super::thread::{NEVER, Seen, Thread, Wait};

/// Steps that a synchronization operation counts for. An uncontended lock takes some 20 ns, an
/// access less than one.
pub(crate) const SYNC_STEPS: u64 = 50;
/// Steps that a wait counts for: the kernel takes microseconds to pass a processor on.
pub(crate) const BLOCK_STEPS: u64 = 1_000;
/// Steps that creating a thread counts for.
pub(crate) const SPAWN_STEPS: u64 = 1_000;
/// A thread that is ahead by this many shares lets others go first.
const SHARES_AHEAD: u64 = 3;
/// After this many shares a deadline expires even if others before it were set anew.
const SHARES_MAX: u64 = 8;

impl Seen {
    /// The progress of threads that have had their share.
    fn due(self) -> u64 {
        self.ahead.saturating_add(self.share)
    }

    /// Whether threads that have all made this much progress have had their share several times.
    fn is_overdue(self, least: u64) -> bool {
        least >= self.ahead.saturating_add(self.share.saturating_mul(SHARES_MAX))
    }
}

/// Whether the next deadline may expire beside threads that can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// These have not had their share, or there is no deadline.
    Waits,
    /// Some have had it several times, and others not, by the policy's choice: who has made less
    /// progress than this goes first.
    Helps(u64),
    /// All have had their share.
    Ends,
}

impl Patience {
    /// Somebody has made less progress than `due`, and somebody has made `most`.
    fn until(due: u64, share: u64, most: u64) -> Self {
        let lead = share.saturating_mul(SHARES_AHEAD);
        if most >= due.saturating_add(lead) { Self::Helps(due) } else { Self::Waits }
    }
}

impl Thread {
    /// All its steps, with what operations count beyond one.
    pub(super) fn done(&self) -> u64 {
        self.steps + self.effort
    }

    /// The same since the last jump.
    pub(super) fn progress(&self) -> u64 {
        self.done().saturating_sub(self.done_at_jump)
    }

    /// The progress of a thread starts anew.
    pub(super) fn forget_progress(&mut self) {
        self.done_at_jump = self.done();
        self.seen = Seen::NONE;
    }

    /// Its deadline, and what that ends; none if it waits for none.
    pub(super) fn awaited(&self) -> Option<(u64, Awaited)> {
        let awaited = match self.wait {
            Wait::Nothing => return None,
            Wait::Sleep | Wait::Descriptors(_, 0) => Awaited::Sleep,
            Wait::Lock(_)
            | Wait::ReadLock(_)
            | Wait::WriteLock(_)
            | Wait::Cond(_)
            | Wait::Futex(..)
            | Wait::Semaphore(_)
            | Wait::Barrier(..)
            | Wait::SharedBarrier(..)
            | Wait::Join(_)
            | Wait::Once(_)
            | Wait::Guard(_)
            | Wait::Loader(_)
            | Wait::Unwaited(_)
            | Wait::Descriptors(..)
            | Wait::Peer(..)
            | Wait::Child(_)
            | Wait::Signal
            | Wait::SignalOf(_)
            | Wait::Timer
            | Wait::Outside
            | Wait::Back => Awaited::TimeOut,
        };
        (self.deadline != NEVER).then_some((self.deadline, awaited))
    }
}

impl Model {
    /// A thread performs a synchronization operation.
    pub(crate) fn note_sync(&mut self, id: u32) {
        self.threads[id as usize].effort += SYNC_STEPS;
    }

    /// A thread blocks.
    pub(crate) fn note_block(&mut self, id: u32) {
        self.threads[id as usize].effort += BLOCK_STEPS;
    }

    /// A thread creates another.
    pub(crate) fn note_spawn(&mut self, id: u32, new: u32) {
        let creator = &mut self.threads[id as usize];
        creator.effort += SPAWN_STEPS;
        let start = creator.progress().saturating_sub(self.expiry.least_share());
        self.threads[new as usize].effort = start;
    }

    /// Whether the next deadline may expire beside the threads that can run, which were collected.
    pub(super) fn patience(&mut self) -> Patience {
        let progress = |id: u32| self.threads[id as usize].progress();
        let runnable = || self.runnable.iter().map(|candidate| progress(candidate.thread));
        let (Some(least), Some(most)) = (runnable().min(), runnable().max()) else {
            return Patience::Waits;
        };
        let least_share = self.expiry.least_share();
        if least < least_share {
            let patience = Patience::until(least_share, least_share, most);
            // Without a deadline, who starves is the policy's business.
            let is_needed = patience == Patience::Waits || self.next_awaited().is_some();
            return if is_needed { patience } else { Patience::Waits };
        }
        let ahead = self.live.iter().map(|&id| progress(id)).max().unwrap_or(most);
        let (now, expiry) = (self.now(), self.expiry);
        let see = |seen: &mut Seen, (deadline, awaited): (u64, Awaited)| {
            if seen.deadline != deadline {
                let share = expiry.share(deadline.saturating_sub(now), awaited);
                *seen = Seen { deadline, ahead, share };
            }
            *seen
        };
        let (mut first, mut any_overdue) = (Seen::NONE, false);
        let mut weigh = |seen: Seen| {
            any_overdue |= seen.is_overdue(least);
            if seen.deadline < first.deadline {
                first = seen;
            }
        };
        for &id in &self.live {
            let thread = &mut self.threads[id as usize];
            if let Some(awaited) = thread.awaited() {
                weigh(see(&mut thread.seen, awaited));
            }
        }
        if let Some(timer) = self.timer {
            weigh(see(&mut self.timer_seen, (timer, Awaited::TimeOut)));
        }
        if first.deadline == NEVER {
            Patience::Waits
        } else if any_overdue || least >= first.due() {
            Patience::Ends
        } else {
            Patience::until(first.due(), first.share, most)
        }
    }

    /// Takes threads out of those that were collected that have made this much progress, unless no
    /// others are left.
    pub(super) fn let_others_catch_up(&mut self, due: u64) {
        let threads = &self.threads;
        let is_behind = |id: u32| threads[id as usize].progress() < due;
        if self.runnable.iter().any(|candidate| is_behind(candidate.thread)) {
            self.runnable.retain(|candidate| is_behind(candidate.thread));
        }
    }

    /// What the next deadline ends.
    pub(super) fn next_awaited(&self) -> Option<(u64, Awaited)> {
        let threads = self.live.iter().filter_map(|&id| self.threads[id as usize].awaited());
        threads.chain(self.timer.map(|timer| (timer, Awaited::TimeOut))).min_by_key(|&(at, _)| at)
    }
}
