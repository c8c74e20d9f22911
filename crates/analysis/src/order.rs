//! The order in which events must happen.
//!
//! The partial order of PECAN: program order, fork and join, wake-ups (condition variables,
//! semaphores, barriers, futexes), channels (pipes, sockets), one-time initialization, annotations,
//! and a spinning thread with the store that it waited for. Not mutexes: two critical sections can swap.
//!
//! Only communication is kept. A thread's clock counts the communications in which it published
//! something. A [`Moment`] is a vector of such clocks, created only when a thread communicates
//! and shared by all events in between. A query is one lookup.
//!
//! An atomic store that is merely loaded orders nothing. A prediction against such an order is
//! tried last and is usually infeasible. Words of memory that behave like locks (Rust's
//! mutexes, spin locks) are treated as locks ([`crate::lock_words`]).

use raddle_trace::id::ThreadId;

use crate::vector_clock::VectorClock;

/// What a thread knows about the others at some point. Numbered in order of creation; 0 is the
/// start, when nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u32);

/// The vector clocks of all threads while a trace is read.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// Current clock by thread.
    threads: Vec<Clock>,
    moments: Vec<Known>,
}

#[derive(Clone, Debug)]
struct Clock {
    known: VectorClock,
    moment: Moment,
}

/// What a thread knows at a moment.
#[derive(Clone, Debug)]
struct Known {
    thread: u32,
    /// The thread's own time.
    own: u32,
    clock: VectorClock,
}

impl Clocks {
    /// The thread's current moment.
    #[inline]
    pub fn now(&mut self, thread: ThreadId) -> Moment {
        match self.threads.get(thread.0 as usize) {
            Some(clock) => clock.moment,
            None => self.clock(thread).moment,
        }
    }

    /// Publishes everything that the thread knows. What it does from now on is not included.
    pub fn publish(&mut self, thread: ThreadId) -> VectorClock {
        let clock = self.clock(thread);
        let published = clock.known.clone();
        let index = thread.0 as usize;
        clock.known.set(index, published.get(index) + 1);
        self.stamp(thread);
        published
    }

    /// The thread learns what another thread published.
    pub fn receive(&mut self, thread: ThreadId, published: &VectorClock) {
        if self.clock(thread).known.join(published) {
            self.stamp(thread);
        }
    }

    /// Whether events at `a` must come before events at `b`; the two belong to different threads.
    #[must_use]
    pub fn before(&self, a: Moment, b: Moment) -> bool {
        let Known { thread, own, .. } = self.moments[a.0 as usize];
        self.moments[b.0 as usize].clock.get(thread as usize) >= own
    }

    fn clock(&mut self, thread: ThreadId) -> &mut Clock {
        let index = thread.0 as usize;
        while self.threads.len() <= index {
            let new = self.threads.len();
            let mut known = VectorClock::default();
            // From 1, so that a thread knows of it only after a communication.
            known.set(new, 1);
            self.threads.push(Clock { known, moment: Moment(0) });
            self.stamp(ThreadId(new as u32));
        }
        &mut self.threads[index]
    }

    fn stamp(&mut self, thread: ThreadId) {
        let clock = &mut self.threads[thread.0 as usize];
        clock.moment = Moment(self.moments.len() as u32);
        let own = clock.known.get(thread.0 as usize);
        self.moments.push(Known { thread: thread.0, own, clock: clock.known.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ThreadId = ThreadId(0);
    const B: ThreadId = ThreadId(1);
    const C: ThreadId = ThreadId(2);

    #[test]
    fn threads_that_never_spoke_are_not_ordered() {
        let mut clocks = Clocks::default();
        let (a, b) = (clocks.now(A), clocks.now(B));
        assert!(!clocks.before(a, b) && !clocks.before(b, a));
    }

    #[test]
    fn a_gift_orders_what_came_before_it_and_nothing_else() {
        let mut clocks = Clocks::default();
        let a1 = clocks.now(A);
        let b1 = clocks.now(B);
        let published = clocks.publish(A);
        let a2 = clocks.now(A);
        clocks.receive(B, &published);
        let b2 = clocks.now(B);
        assert!(clocks.before(a1, b2));
        assert!(!clocks.before(a1, b1) && !clocks.before(a2, b2) && !clocks.before(b1, a2));
    }

    #[test]
    fn what_was_learned_is_passed_on() {
        let mut clocks = Clocks::default();
        let a = clocks.now(A);
        let published = clocks.publish(A);
        clocks.receive(B, &published);
        let published = clocks.publish(B);
        clocks.receive(C, &published);
        let c = clocks.now(C);
        assert!(clocks.before(a, c) && !clocks.before(c, a));
    }
}
