//! Run until blocked, then the next in line.

use raddle_trace::record::Switch;

use super::{Moment, Policy, QUANTUM_MAX};

/// See the module.
pub(crate) struct Rr;

impl Policy for Rr {
    fn choose(&mut self, moment: &Moment<'_>) -> u32 {
        let last = moment.last.unwrap_or(0);
        let goes_on = moment.reason != Switch::Yielded;
        if goes_on && moment.runnable.iter().any(|candidate| candidate.thread == last) {
            return last;
        }
        let next = moment.runnable.iter().find(|candidate| candidate.thread > last);
        next.unwrap_or(&moment.runnable[0]).thread
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
        Rr.choose(&Moment { runnable: &candidates(&[0, 2, 4]), last: Some(last), reason, steps: 0 })
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
