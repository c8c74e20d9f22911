//! Threads that poll the clock.
//!
//! A loop that reads the clock until a time has come waits for nothing but time. A reading takes
//! some virtual time, so that the loop ends, and more of it the longer a thread has done little
//! else: otherwise a minute would take 60 million readings. How much depends on that thread's own
//! steps alone, so it is the same in a replay.
//!
//! Other threads that can run make progress meanwhile; the first [`STAGES`] give them time for it.

/// Virtual time per clock reading.
pub(crate) const READING_NS: u64 = 1_000;

/// Steps after the last reading within which the next one belongs to the same loop.
const LOOP_STEPS: u64 = 256;

/// So many readings in a row take so long each; those after the last stage take [`LONGEST_NS`].
const STAGES: [(u64, u64); 3] = [(1_000, READING_NS), (100_000, 20_000), (1_000_000, 1_000_000)];
const LONGEST_NS: u64 = 100_000_000;

/// The readings of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Polling {
    n_in_row: u64,
    /// Steps of the thread at the last one.
    steps: u64,
}

impl Polling {
    /// How long a reading takes that follows after so many steps of the thread.
    pub(crate) fn reading_ns(&mut self, steps: u64) -> u64 {
        let in_row = steps.saturating_sub(self.steps) <= LOOP_STEPS;
        self.n_in_row = if in_row { self.n_in_row + 1 } else { 1 };
        self.steps = steps;
        let stage = STAGES.iter().find(|&&(n, _)| self.n_in_row <= n);
        stage.map_or(LONGEST_NS, |&(_, ns)| ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings until so many seconds have passed, with so many steps between them.
    fn n_readings(seconds: u64, n_steps: u64) -> u64 {
        let (mut polling, mut ns, mut n) = (Polling::default(), 0, 0);
        while ns < seconds * 1_000_000_000 {
            n += 1;
            ns += polling.reading_ns(n * n_steps);
        }
        n
    }

    #[test]
    fn a_minute_takes_few_readings() {
        assert!(n_readings(1, 10) < 60_000);
        assert!(n_readings(60, 10) < 200_000);
        assert!(n_readings(86_400, 10) < 2_000_000);
    }

    #[test]
    fn a_thread_that_works_between_readings_does_not_poll() {
        assert_eq!(n_readings(1, LOOP_STEPS + 1), 1_000_000);
    }
}
