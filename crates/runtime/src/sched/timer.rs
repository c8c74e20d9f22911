//! Timers that send signals, start threads, or make a descriptor readable, in virtual time.
//!
//! Threads are started by one that waits for it (`interpose::timer_thread`). Until it looks, a
//! timer does not expire again; expirations that it missed meanwhile are counted. The kernel does the
//! same with a signal that is pending.
//!
//! A timer descriptor is the kernel's, so that `poll`, `epoll` and `read` see it, but it is never
//! set: when it is due, we store the number of expirations in it. A process that was forked shares
//! the descriptor but has no such timers.

use alloc::vec::Vec;

use super::Sched;
use super::thread::{NEVER, Wait};
use crate::{signals, sys};

/// The timers of the program.
pub(crate) struct Timers {
    list: Vec<Timer>,
}

/// A timer that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    /// The program's id for it.
    pub(crate) id: u64,
    /// The program's clock that an absolute time refers to.
    pub(crate) clock: libc::clockid_t,
    /// When it fires next; [`NEVER`] if it is not set.
    pub(crate) deadline: u64,
    /// The interval after that; 0 for a single shot.
    pub(crate) interval: u64,
    /// What it does then.
    pub(crate) action: Action,
    /// Whether its time passes only with steps, as that of a processor does, and not while all
    /// threads wait.
    pub(crate) by_steps: bool,
    /// For a descriptor: expirations since it was last read, if it is still readable. For a thread:
    /// 1 if it is due.
    pub(crate) unread: u64,
    /// For a thread: expirations that were merged with the last one.
    pub(crate) overrun: u64,
}

/// What a timer does when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing; the program asks for the remaining time.
    Nothing,
    /// Sends a signal.
    Signal(i32),
    /// Makes a descriptor readable.
    Descriptor(i32),
    /// Starts a thread.
    Thread,
}

impl Timer {
    /// A timer that is not set.
    pub(crate) const fn new(id: u64, clock: libc::clockid_t, action: Action) -> Self {
        Self {
            id,
            clock,
            deadline: NEVER,
            interval: 0,
            action,
            by_steps: false,
            unread: 0,
            overrun: 0,
        }
    }

    /// Whether it has nothing to do until its descriptor is read or its thread is started: like
    /// the kernel, we then stop counting time for it.
    fn rests(&self) -> bool {
        match self.action {
            Action::Nothing | Action::Signal(_) => false,
            Action::Descriptor(descriptor) => self.unread > 0 && is_readable(descriptor),
            Action::Thread => self.unread > 0,
        }
    }

    /// Sets the next deadline; returns how many expirations there were.
    fn expire(&mut self, now: u64) -> u64 {
        match self.action {
            Action::Descriptor(_) | Action::Thread if self.interval > 0 => self.skip(now),
            _ => {
                // Expirations that could not have been handled one by one are merged.
                self.deadline = if self.interval == 0 { NEVER } else { now + self.interval };
                1
            }
        }
    }

    /// Moves the deadline of a timer with an interval after `now`; returns how many expirations that
    /// takes.
    fn skip(&mut self, now: u64) -> u64 {
        let n = if self.deadline > now { 0 } else { 1 + (now - self.deadline) / self.interval };
        self.deadline += n * self.interval;
        n
    }
}

fn is_readable(descriptor: i32) -> bool {
    let mut wanted = [libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }];
    sys::poll(&mut wanted, 0) > 0
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Sets a timer; returns its previous setting.
    pub(crate) fn set(&mut self, new: Timer) -> Option<Timer> {
        match self.list.iter_mut().find(|timer| timer.id == new.id) {
            Some(old) => Some(core::mem::replace(old, new)),
            None => {
                self.list.push(new);
                None
            }
        }
    }

    /// The timer with this id.
    pub(crate) fn get(&self, id: u64) -> Option<Timer> {
        self.list.iter().copied().find(|timer| timer.id == id)
    }

    /// Removes a timer; returns whether there was one.
    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let before = self.list.len();
        self.list.retain(|timer| timer.id != id);
        self.list.len() < before
    }

    /// When the next timer fires whose time passes while all threads wait.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.next_of(false)
    }

    fn next_of(&self, by_steps: bool) -> Option<u64> {
        let such = self.list.iter().filter(|timer| timer.by_steps == by_steps && !timer.rests());
        such.map(|timer| timer.deadline).min().filter(|&deadline| deadline != NEVER)
    }

    /// What is due, in the order of the timers. `stepped` is the time of all steps.
    fn due(&mut self, now: u64, stepped: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        for timer in &mut self.list {
            let now = if timer.by_steps { stepped } else { now };
            let waits_for_thread = timer.action == Action::Thread && timer.rests();
            if timer.deadline <= now && !waits_for_thread {
                let before = if timer.rests() { timer.unread } else { 0 };
                timer.unread = before + timer.expire(now);
                if timer.action == Action::Thread {
                    timer.overrun = timer.unread - 1;
                    timer.unread = 1;
                }
                actions.push(timer.action);
            }
        }
        actions
    }

    /// How many timers have a thread that is due.
    fn n_expired(&self) -> u32 {
        let is_due = |timer: &&Timer| timer.action == Action::Thread && timer.unread > 0;
        self.list.iter().filter(is_due).count() as u32
    }

    /// The timers whose threads are due, in the order of the timers. They go on from `now`.
    fn take_expired(&mut self, now: u64) -> Vec<u64> {
        let mut expired = Vec::new();
        for timer in &mut self.list {
            if timer.action == Action::Thread && core::mem::take(&mut timer.unread) > 0 {
                if timer.interval > 0 && timer.deadline != NEVER {
                    timer.overrun += timer.skip(now);
                }
                expired.push(timer.id);
            }
        }
        expired
    }

    /// Shows the expirations of a descriptor. One that was closed since has no timer any more.
    fn show(&mut self, descriptor: i32) {
        let of_this = |timer: &Timer| timer.action == Action::Descriptor(descriptor);
        self.list.retain(|timer| !of_this(timer) || sys::set_expirations(descriptor, timer.unread));
    }
}

impl Sched {
    /// Virtual nanoseconds of all steps.
    pub(crate) fn stepped(&self) -> u64 {
        self.now() - self.clock
    }

    /// Virtual nanoseconds of steps until the next timer is due.
    pub(super) fn ns_to_timer(&self) -> u64 {
        let left = |deadline: Option<u64>, now: u64| {
            deadline.map_or(u64::MAX, |deadline| deadline.saturating_sub(now))
        };
        left(self.timers.next_of(false), self.now())
            .min(left(self.timers.next_of(true), self.stepped()))
    }

    /// The thread that gets a signal to the process: the first that does not block it. A thread
    /// outside is left to the kernel.
    pub(crate) fn receiver(&self, signal: i32) -> Option<u32> {
        let able = |&&id: &&u32| {
            let thread = &self.threads[id as usize];
            thread.mask & signals::bit(signal) == 0 && thread.wait != Wait::Outside
        };
        self.live.iter().find(able).copied()
    }

    /// Sends a signal to a thread that does not run; the kernel finds one if there is none.
    pub(crate) fn interrupt(&mut self, receiver: Option<u32>, info: &libc::siginfo_t) {
        let tls = receiver.map(|id| self.threads[id as usize].tls);
        let noted = signals::note_for(tls, info);
        if let Some(id) = receiver.filter(|_| noted) {
            self.threads[id as usize].interrupted = true;
        }
    }

    /// The timers whose threads are to be started now.
    pub(crate) fn take_expired(&mut self) -> Vec<u64> {
        let now = self.now();
        let expired = self.timers.take_expired(now);
        self.model.n_expired = 0;
        self.heed_timers();
        expired
    }

    /// Removes a timer, and its thread if that is due.
    pub(crate) fn remove_timer(&mut self, id: u64) {
        self.timers.remove(id);
        self.model.n_expired = self.timers.n_expired();
    }

    /// Does what is due, and tells the model when the next timer is.
    pub(super) fn fire_timers(&mut self) {
        for action in self.timers.due(self.now(), self.stepped()) {
            match action {
                Action::Nothing => {}
                Action::Signal(signal) => {
                    self.n_signals += 1;
                    let info = signals::info_of(signal, libc::SI_TIMER);
                    self.interrupt(self.receiver(signal), &info);
                }
                Action::Descriptor(descriptor) => self.timers.show(descriptor),
                // The thread that waits for it can run.
                Action::Thread => {}
            }
        }
        self.model.n_expired = self.timers.n_expired();
        self.model.timer = self.timers.next_deadline();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRIKE: Action = Action::Signal(14);
    const SINGLE_SHOT: Timer = Timer { deadline: 10, ..Timer::new(1, 0, STRIKE) };

    #[test]
    fn a_timer_with_an_interval_strikes_again() {
        let mut timers = Timers::new();
        timers.set(Timer { interval: 5, ..SINGLE_SHOT });
        assert!(timers.due(9, 9).is_empty());
        assert_eq!(timers.due(12, 12), [STRIKE]);
        assert_eq!(timers.next_deadline(), Some(17));
    }

    #[test]
    fn a_timer_without_strikes_once() {
        let mut timers = Timers::new();
        timers.set(SINGLE_SHOT);
        assert_eq!(timers.due(10, 10), [STRIKE]);
        assert_eq!((timers.due(1000, 1000), timers.next_deadline()), (Vec::new(), None));
    }

    #[test]
    fn a_timer_waits_for_its_thread_and_counts_what_it_missed() {
        let mut timers = Timers::new();
        timers.set(Timer {
            interval: 5,
            ..Timer { deadline: 10, ..Timer::new(1, 0, Action::Thread) }
        });
        assert_eq!(timers.due(21, 21), [Action::Thread]);
        assert_eq!((timers.n_expired(), timers.next_deadline()), (1, None));
        assert!(timers.due(30, 30).is_empty());
        assert_eq!(timers.take_expired(31), [1]);
        assert_eq!((timers.n_expired(), timers.next_deadline()), (0, Some(35)));
        // Those at 15 and 20, then those at 25 and 30.
        assert_eq!(timers.get(1).map(|timer| timer.overrun), Some(4));
        assert_eq!(timers.due(35, 35), [Action::Thread]);
        assert_eq!(timers.take_expired(35), [1]);
        assert_eq!(timers.get(1).map(|timer| timer.overrun), Some(0));
    }

    #[test]
    fn a_timer_of_steps_waits_for_steps() {
        let mut timers = Timers::new();
        timers.set(Timer { by_steps: true, ..SINGLE_SHOT });
        assert_eq!((timers.due(1000, 9), timers.next_deadline()), (Vec::new(), None));
        assert_eq!(timers.due(1001, 10), [STRIKE]);
    }
}
