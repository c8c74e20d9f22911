//! Timers that send signals, in virtual time.

use alloc::vec::Vec;

use super::Sched;
use super::thread::NEVER;

/// The timers of the program.
pub(crate) struct Timers {
    list: Vec<Timer>,
}

/// One that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    /// The program's name for it.
    pub(crate) id: u64,
    /// When it strikes next; [`NEVER`] if it is not set.
    pub(crate) deadline: u64,
    /// How often from then on; 0 for once.
    pub(crate) interval: u64,
    /// What it sends; 0 for nothing.
    pub(crate) signal: i32,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Sets a timer; gives what it was.
    pub(crate) fn set(&mut self, new: Timer) -> Option<Timer> {
        match self.list.iter_mut().find(|timer| timer.id == new.id) {
            Some(old) => Some(core::mem::replace(old, new)),
            None => {
                self.list.push(new);
                None
            }
        }
    }

    /// The timer of this name.
    pub(crate) fn get(&self, id: u64) -> Option<Timer> {
        self.list.iter().copied().find(|timer| timer.id == id)
    }

    /// Forgets a timer; whether there was one.
    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let before = self.list.len();
        self.list.retain(|timer| timer.id != id);
        self.list.len() < before
    }

    /// When the next one strikes.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.list.iter().map(|timer| timer.deadline).min().filter(|&deadline| deadline != NEVER)
    }

    /// The signals that are due, in the order of their timers.
    fn due(&mut self, now: u64) -> Vec<i32> {
        let mut signals = Vec::new();
        for timer in &mut self.list {
            if timer.deadline <= now {
                signals.push(timer.signal);
                // Strikes that nobody could have handled one by one are merged.
                timer.deadline = if timer.interval == 0 { NEVER } else { now + timer.interval };
            }
        }
        signals
    }
}

impl Sched {
    /// Sends the signals that are due.
    pub(super) fn fire_timers(&mut self) {
        let now = self.now();
        if self.timers.next_deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        for signal in self.timers.due(now) {
            self.n_signals += 1;
            if signal != 0 {
                let able = |&&id: &&u32| self.threads[id as usize].mask & 1 << (signal - 1) == 0;
                let receiver = self.live.iter().find(able).copied();
                let tls = receiver.map(|id| self.threads[id as usize].tls);
                let noted = crate::interpose::signal::note_for(tls, signal);
                if let Some(id) = receiver.filter(|_| noted) {
                    self.threads[id as usize].interrupted = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_with_an_interval_strikes_again() {
        let mut timers = Timers::new();
        timers.set(Timer { id: 1, deadline: 10, interval: 5, signal: 14 });
        assert!(timers.due(9).is_empty());
        assert_eq!(timers.due(12), [14]);
        assert_eq!(timers.next_deadline(), Some(17));
    }

    #[test]
    fn a_timer_without_strikes_once() {
        let mut timers = Timers::new();
        timers.set(Timer { id: 1, deadline: 10, interval: 0, signal: 14 });
        assert_eq!(timers.due(10), [14]);
        assert_eq!((timers.due(1000), timers.next_deadline()), (Vec::new(), None));
    }
}
