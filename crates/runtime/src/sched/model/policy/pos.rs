//! Partial order sampling, after Yuan, Yang and Gu (CAV 2018).
//!
//! Every event gets a random priority when it becomes the next one of its thread, and the highest
//! goes first. After an event, those that race with it get new priorities, so that all partial
//! orders have a fair chance and not only all interleavings. The algorithm decides before every
//! event; in long runs we decide less and less often, as [`super::RandomPolicy`] does, and the
//! events in between go with the event decided on.

use alloc::vec::Vec;

use super::{Policy, QUANTUM_MAX, Situation};
use crate::random::Random;

/// The POS policy.
pub(crate) struct Pos {
    random: Random,
    /// By thread, the priority of its next event. 0 means not assigned yet.
    priorities: Vec<u64>,
    last: (u64, bool),
}

/// Choices per e-fold of the run's length.
const DENSITY: u64 = 4096;

impl Pos {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed, 3), priorities: Vec::new(), last: (0, false) }
    }
}

impl Policy for Pos {
    fn choose(&mut self, situation: &Situation<'_>) -> u32 {
        // The last thread has performed its event since.
        let last = situation.last.and_then(|last| self.priorities.get_mut(last as usize));
        if let Some(priority) = last {
            *priority = 0;
        }
        let (addr, write) = self.last;
        let mut best = (0, situation.runnable[0]);
        for candidate in situation.runnable {
            let index = candidate.thread as usize;
            if self.priorities.len() <= index {
                self.priorities.resize(index + 1, 0);
            }
            let races = addr != 0 && candidate.addr == addr && (candidate.write || write);
            if self.priorities[index] == 0 || races {
                self.priorities[index] = 1 + self.random.below(u64::MAX - 1);
            }
            if self.priorities[index] > best.0 {
                best = (self.priorities[index], *candidate);
            }
        }
        self.last = (best.1.addr, best.1.write);
        best.1.thread
    }

    fn quantum(&mut self, steps: u64) -> u64 {
        let mean = (steps / DENSITY).min(QUANTUM_MAX / 2);
        1 + self.random.below(2 * mean + 1)
    }

    fn at_sync(&mut self) -> bool {
        false
    }

    fn eager(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::record::Switch;

    use super::super::candidates;
    use super::*;

    #[test]
    fn a_priority_stays_until_its_event_is_performed() {
        let runnable = candidates(&[0, 1]);
        let mut policy = Pos::new(5);
        let blocked =
            |last| Situation { runnable: &runnable, last, reason: Switch::Preempt, steps: 0 };
        let first = policy.choose(&blocked(None));
        assert_eq!(policy.choose(&blocked(None)), first);
    }
}
