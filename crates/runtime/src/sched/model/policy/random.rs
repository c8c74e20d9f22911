//! Random choices at random steps.
//!
//! Choosing before every access would cost a microsecond for each nanosecond of work, so the
//! distance between two choices is itself random. Its mean differs from seed to seed (1 to 64
//! steps), since some bugs need many switches in a row and others few, and grows with the length
//! of the run: a run of n steps has O(log n) switches beyond the first thousands, which bounds
//! the cost of control in a long run.

use super::{Policy, QUANTUM_MAX, Situation};
use crate::random::Random;

/// The random policy.
pub(crate) struct RandomPolicy {
    random: Random,
    mean: u64,
    n_sync: u64,
}

/// Switches per e-fold of the run's length.
const DENSITY: u64 = 1024;

impl RandomPolicy {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, 1);
        let mean = 1 << random.below(7);
        Self { random, mean, n_sync: 0 }
    }
}

impl Policy for RandomPolicy {
    fn choose(&mut self, situation: &Situation<'_>) -> u32 {
        situation.runnable[self.random.below(situation.runnable.len() as u64) as usize].thread
    }

    fn quantum(&mut self, steps: u64) -> u64 {
        let mean = self.mean.max(steps / DENSITY).min(QUANTUM_MAX / 2);
        1 + self.random.below(2 * mean)
    }

    fn at_sync(&mut self) -> bool {
        self.n_sync += 1;
        self.random.below(4 + self.n_sync / DENSITY) == 0
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::record::Switch;

    use super::super::candidates;
    use super::*;

    #[test]
    fn every_thread_gets_its_chance() {
        let runnable = candidates(&[0, 3, 5]);
        let mut policy = RandomPolicy::new(1);
        let situation =
            Situation { runnable: &runnable, last: Some(0), reason: Switch::Preempt, steps: 0 };
        let mut seen: Vec<u32> = (0..100).map(|_| policy.choose(&situation)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 3, 5]);
    }

    #[test]
    fn long_runs_switch_rarely() {
        let mut policy = RandomPolicy::new(1);
        let (mut steps, mut n) = (0, 0);
        while steps < 100_000_000 {
            steps += policy.quantum(steps);
            n += 1;
        }
        assert!(n < 30_000, "{n} switches");
    }
}
