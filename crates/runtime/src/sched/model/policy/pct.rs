//! Probabilistic concurrency testing, after Burckhardt, Kothari, Musuvathi and Nagarakatte
//! (ASPLOS 2010).
//!
//! Every thread has a random priority, and the runnable thread with the highest runs. At `depth -
//! 1` random steps the running thread's priority drops below all others. A bug that needs d
//! ordering constraints is found with probability at least 1/(n·k^(d-1)), for n threads and k
//! steps. We differ in one point: a thread that yields or spins also drops below all others,
//! since otherwise it would keep the threads that it waits for from running.

use alloc::vec::Vec;

use raddle_trace::record::Switch;

use super::{Policy, QUANTUM_MAX, Situation};
use crate::random::Random;

/// The PCT policy.
pub(crate) struct Pct {
    random: Random,
    /// By thread; higher goes first. 0 means not assigned yet.
    priorities: Vec<u64>,
    /// Steps at which the priority drops, the next one last.
    changes: Vec<u64>,
    /// The priority after the next drop; all initial priorities are higher.
    lowest: u64,
    steps: u64,
}

/// Initial priorities are above, those after a drop below.
const MIDDLE: u64 = 1 << 32;
/// Assumed length of a run if none was measured: by the seed, one of sixteen magnitudes from
/// eight steps on. Most are wrong, and some are right.
const MAGNITUDES: u64 = 16;

impl Pct {
    pub(crate) fn new(seed: u64, depth: u32, steps_expected: u64) -> Self {
        let mut random = Random::new(seed, 2);
        let steps =
            if steps_expected == 0 { 8 << random.below(MAGNITUDES) } else { steps_expected };
        let n = depth.saturating_sub(1);
        let mut changes: Vec<u64> = (0..n).map(|_| 1 + random.below(steps)).collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        Self { random, priorities: Vec::new(), changes, lowest: MIDDLE - 1, steps: 0 }
    }

    fn priority(&mut self, thread: u32) -> u64 {
        let index = thread as usize;
        while self.priorities.len() <= index {
            self.priorities.push(MIDDLE + 1 + self.random.below(MIDDLE));
        }
        self.priorities[index]
    }

    fn drop_below_all(&mut self, thread: u32) {
        self.priority(thread);
        self.priorities[thread as usize] = self.lowest;
        self.lowest -= 1;
    }
}

impl Policy for Pct {
    fn choose(&mut self, situation: &Situation<'_>) -> u32 {
        self.steps = situation.steps;
        if let Some(last) = situation.last {
            if self.changes.last().is_some_and(|&change| change <= situation.steps) {
                while self.changes.pop_if(|change| *change <= situation.steps).is_some() {}
                self.drop_below_all(last);
            } else if situation.reason == Switch::Yielded {
                self.drop_below_all(last);
            }
        }
        let mut best = (0, situation.runnable[0].thread);
        for candidate in situation.runnable {
            let priority = self.priority(candidate.thread);
            if priority > best.0 {
                best = (priority, candidate.thread);
            }
        }
        best.1
    }

    fn quantum(&mut self, steps: u64) -> u64 {
        let to_change = self.changes.last().map_or(u64::MAX, |change| change.saturating_sub(steps));
        to_change.clamp(1, QUANTUM_MAX)
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
    use super::super::candidates;
    use super::*;

    fn situation(
        runnable: &[super::super::Candidate],
        reason: Switch,
        steps: u64,
    ) -> Situation<'_> {
        Situation { runnable, last: Some(0), reason, steps }
    }

    #[test]
    fn the_same_thread_goes_on_without_a_change() {
        let runnable = candidates(&[0, 1, 2]);
        let mut policy = Pct::new(3, 1, 100);
        let first = policy.choose(&situation(&runnable, Switch::Preempt, 0));
        assert!(
            (0..50)
                .all(|step| policy.choose(&situation(&runnable, Switch::Preempt, step)) == first)
        );
    }

    #[test]
    fn a_yielding_thread_goes_last() {
        let runnable = candidates(&[0, 1]);
        let mut policy = Pct::new(3, 1, 100);
        assert_eq!(policy.choose(&situation(&runnable, Switch::Yielded, 0)), 1);
    }

    #[test]
    fn depth_gives_that_many_changes() {
        let mut policy = Pct::new(9, 4, 1000);
        let (mut steps, mut n) = (0, 0);
        while !policy.changes.is_empty() {
            steps += policy.quantum(steps);
            let before = policy.changes.len();
            policy.choose(&situation(&candidates(&[0, 1]), Switch::Preempt, steps));
            n += before - policy.changes.len();
        }
        assert_eq!(n, 3);
    }
}
