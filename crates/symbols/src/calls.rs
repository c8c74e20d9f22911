//! Call stacks of threads, from their `Enter` and `Leave` events.
//!
//! Only instrumented functions report that they are entered, so functions of uninstrumented
//! libraries are missing.

use raddle_trace::event::{Event, Op};
use raddle_trace::id::{Pc, ThreadId};
use rustc_hash::FxHashMap;

/// The call stacks of all threads, as of the last event.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    threads: FxHashMap<ThreadId, Vec<Pc>>,
}

impl Calls {
    /// Adds the next event of the trace.
    pub fn push(&mut self, event: &Event) {
        match event.op {
            Op::Enter { return_to } => {
                self.threads.entry(event.thread).or_default().push(return_to)
            }
            Op::Leave => {
                self.threads.entry(event.thread).or_default().pop();
            }
            Op::Begin { .. } => self.threads.entry(event.thread).or_default().clear(),
            _ => {}
        }
    }

    /// Return addresses of the functions that a thread is in, outermost first.
    #[must_use]
    pub fn callers(&self, thread: ThreadId) -> &[Pc] {
        self.threads.get(&thread).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ops: &[(u32, Op)], thread: u32, expect: &[u64]) {
        let mut calls = Calls::default();
        for &(thread, op) in ops {
            calls.push(&Event { thread: ThreadId(thread), pc: Pc(0), op });
        }
        let callers: Vec<u64> = calls.callers(ThreadId(thread)).iter().map(|pc| pc.0).collect();
        assert_eq!(callers, expect);
    }

    fn enter(return_to: u64) -> Op {
        Op::Enter { return_to: Pc(return_to) }
    }

    #[test]
    fn callers_are_listed_from_outside_in() {
        check(&[(1, enter(10)), (1, enter(20)), (1, enter(30)), (1, Op::Leave)], 1, &[10, 20]);
    }

    #[test]
    fn threads_have_stacks_of_their_own() {
        check(&[(1, enter(10)), (2, enter(20)), (1, Op::Leave)], 2, &[20]);
    }

    #[test]
    fn a_leave_too_many_is_no_harm() {
        check(&[(1, Op::Leave), (1, enter(10))], 1, &[10]);
    }
}
