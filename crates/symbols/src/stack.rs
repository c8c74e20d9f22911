//! Which thread's stack contains an address.
//!
//! A run knows each thread's stack. C libraries reuse the stack of a thread that has ended, so
//! one address may have been on several: the `Begin` events of the trace say which thread had it
//! when. Variables on a stack are not named: that would require the frame's registers at that
//! time.

use raddle_trace::event::{Event, Op};
use raddle_trace::id::{Addr, ThreadId};
use raddle_trace::run::Thread;

/// The stacks of a run's threads.
#[derive(Clone, Debug, Default)]
pub struct StackMap {
    stacks: Vec<Stack>,
}

/// The stack of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Its thread.
    pub thread: ThreadId,
    /// First byte.
    pub low: Addr,
    /// End of the stack.
    pub high: Addr,
    /// Number of the event that started the thread; 0 if not seen.
    since: u64,
}

impl StackMap {
    /// The stacks that are known from the start.
    #[must_use]
    pub fn new(threads: &[Thread]) -> Self {
        let stack = |thread: &Thread| {
            let (low, high) = thread.stack;
            Stack { thread: thread.id, low, high, since: 0 }
        };
        Self { stacks: threads.iter().map(stack).collect() }
    }

    /// Adds event number `seq` of the trace.
    pub fn push(&mut self, seq: u64, event: &Event) {
        if let Op::Begin { stack_low, stack_high, .. } = event.op {
            let thread = event.thread;
            let stack = Stack { thread, low: stack_low, high: stack_high, since: seq };
            match self.stacks.iter_mut().find(|stack| stack.thread == thread) {
                Some(known) => *known = stack,
                None => self.stacks.push(stack),
            }
        }
    }

    /// The stack that contained an address at event `seq`: the last one that had started.
    #[must_use]
    pub fn stack_at(&self, addr: Addr, seq: u64) -> Option<&Stack> {
        let holds = |stack: &&Stack| (stack.low..stack.high).contains(&addr) && stack.since <= seq;
        self.stacks.iter().filter(holds).max_by_key(|stack| (stack.since, stack.thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_trace::id::Pc;

    fn begin(thread: u32, low: u64, high: u64) -> Event {
        let op = Op::Begin { parent: ThreadId(0), stack_low: Addr(low), stack_high: Addr(high) };
        Event { thread: ThreadId(thread), pc: Pc(0), op }
    }

    fn check(addr: u64, seq: u64, expect: Option<u32>) {
        let main = Thread {
            id: ThreadId(0),
            name: "main".to_owned(),
            label: None,
            stack: (Addr(9000), Addr(10_000)),
        };
        let mut stacks = StackMap::new(&[main]);
        stacks.push(10, &begin(1, 1000, 2000));
        stacks.push(20, &begin(2, 1000, 2000));
        assert_eq!(stacks.stack_at(Addr(addr), seq).map(|stack| stack.thread.0), expect);
    }

    #[test]
    fn a_stack_that_is_reused_belongs_to_its_user_at_the_time() {
        check(1500, 5, None);
        check(1500, 15, Some(1));
        check(1500, 25, Some(2));
    }

    #[test]
    fn the_end_is_outside() {
        check(9999, 5, Some(0));
        check(10_000, 5, None);
    }
}
