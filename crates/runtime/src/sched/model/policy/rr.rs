//! Round robin: run until blocked, then the next thread in line.

use raddle_trace::record::Switch;

use super::{Policy, QUANTUM_MAX, Situation};

/// The round-robin policy.
pub(crate) struct RoundRobin;

impl Policy for RoundRobin {
    fn choose(&mut self, situation: &Situation<'_>) -> u32 {
        let last = situation.last.unwrap_or(0);
        let goes_on = situation.reason != Switch::Yielded;
        if goes_on && situation.runnable.iter().any(|candidate| candidate.thread == last) {
            return last;
        }
        let next = situation.runnable.iter().find(|candidate| candidate.thread > last);
        next.unwrap_or(&situation.runnable[0]).thread
    }

    fn quantum(&mut self, _: u64) -> u64 {
        QUANTUM_MAX
    }

    fn at_sync(&mut self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidates;
    use super::*;

    fn next(last: u32, reason: Switch) -> u32 {
        RoundRobin.choose(&Situation {
            runnable: &candidates(&[0, 2, 4]),
            last: Some(last),
            reason,
            steps: 0,
        })
    }

    #[test]
    fn who_can_go_on_does() {
        assert_eq!(next(2, Switch::Preempt), 2);
    }

    #[test]
    fn then_the_next_in_line_around_the_end() {
        assert_eq!((next(3, Switch::Blocked), next(4, Switch::Yielded)), (4, 0));
    }
}
