//! The second chance of a run that does not seem to end.
//!
//! A policy may keep a run from ending: under `rr` a thread that yields only while it holds a
//! lock never lets another thread have it. So before the verdict is a livelock, the run continues
//! under a fair scheduler, in which each ready thread gets a bounded number of steps in turn, for
//! two different quanta. A run that makes progress then was held up by raddle and goes on under
//! its policy. One that does not is a livelock of the program. Progress is that a thread blocks, or
//! that memory holds what it did not hold before: see [`super::novelty`].
//!
//! **Quanta** end at multiples of a prime in the count of all steps, whether or not a thread
//! yielded in between. A loop whose length is not a multiple of that prime is thus preempted at
//! each of its steps sooner or later, so no lock can be held at every preemption.

use super::policy::Candidate;

/// The two quanta, in steps: about what a loop that waits takes, and much longer.
const QUANTA: [u64; 2] = [1999, 307];

/// Why a run gets its second chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its threads only spin and yield.
    Idle,
    /// It has used up the steps that it was granted.
    Limit,
    /// Some of its threads wait for each other, and others can run: see [`super::cycle`].
    Cycle,
}

/// A run under the fair scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fairness {
    pub(crate) cause: Cause,
    /// Which of [`QUANTA`].
    phase: usize,
    /// Steps of all threads at which the phase ends.
    until: u64,
    /// Steps in a phase.
    length: u64,
}

impl Fairness {
    /// Begins at a count of steps; each phase has so many.
    pub(crate) fn new(cause: Cause, steps: u64, length: u64) -> Self {
        Self { cause, phase: 0, until: steps.saturating_add(length), length }
    }

    /// Goes on at a count of steps; false if the last phase is over.
    pub(crate) fn goes_on(&mut self, steps: u64) -> bool {
        if steps < self.until {
            return true;
        }
        self.phase += 1;
        self.until = steps.saturating_add(self.length);
        self.phase < QUANTA.len()
    }

    /// Steps until the running thread is to be preempted.
    pub(crate) fn budget(&self, steps: u64) -> u64 {
        let quantum = QUANTA[self.phase.min(QUANTA.len() - 1)];
        quantum - steps % quantum
    }

    /// The next thread in turn; `runnable` is sorted and not empty.
    pub(crate) fn choose(runnable: &[Candidate], last: Option<u32>) -> u32 {
        let last = last.unwrap_or(0);
        let next = runnable.iter().find(|candidate| candidate.thread > last);
        next.unwrap_or(&runnable[0]).thread
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::candidates;
    use super::*;

    #[test]
    fn threads_take_turns() {
        let runnable = candidates(&[0, 2, 5]);
        let next = |last| Fairness::choose(&runnable, Some(last));
        assert_eq!([next(0), next(2), next(5), next(9)], [2, 5, 0, 0]);
    }

    #[test]
    fn it_ends_after_two_phases() {
        let mut fairness = Fairness::new(Cause::Idle, 1_000, 100);
        assert!(fairness.goes_on(1_099) && fairness.goes_on(1_100) && fairness.goes_on(1_199));
        assert!(!fairness.goes_on(1_200));
    }

    /// A loop of `period` steps, of which all but one hold a lock, yields at its first step.
    #[test]
    fn a_loop_is_preempted_at_each_of_its_steps() {
        for period in 2..40 {
            let fairness = Fairness::new(Cause::Idle, 0, u64::MAX);
            let (mut steps, mut seen) = (0, [false; 40]);
            for _ in 0..period * 4 {
                steps += fairness.budget(steps);
                seen[(steps % period) as usize] = true;
            }
            assert!(seen[..period as usize].iter().all(|&seen| seen), "{period}");
        }
    }
}
