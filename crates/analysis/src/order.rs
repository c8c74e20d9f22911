//! Which events must come in the order in which they were seen.
//!
//! The partial order of PECAN: program order, fork and join, wake-ups (condition variables,
//! semaphores, barriers, futexes), one-time initialization, annotations, and what a thread
//! span on until another one stored it. Not mutexes: two critical sections can change places.
//!
//! Only communication is kept. A thread's time is the number of communications in which it
//! gave something away; a [`Moment`] is a vector of such times, made anew only when a thread
//! communicates, and shared by all events in between. A query is one look at a vector.

use raddle_trace::id::ThreadId;

/// What a thread knows of the others at some time. Numbered in the order of creation;
/// 0 is the beginning, which knows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u32);

/// A thread's clocks while a trace is read.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// By thread.
    threads: Vec<Clock>,
    /// By moment: whose, and what it knows. A missing entry is 0.
    moments: Vec<(u32, Box<[u32]>)>,
}

#[derive(Clone, Debug)]
struct Clock {
    known: Vec<u32>,
    moment: Moment,
}

/// What a communication gives away: all that its thread knew.
pub type Gift = Box<[u32]>;

impl Clocks {
    /// The thread's present moment.
    #[inline]
    pub fn now(&mut self, thread: ThreadId) -> Moment {
        match self.threads.get(thread.0 as usize) {
            Some(clock) => clock.moment,
            None => self.clock(thread).moment,
        }
    }

    /// The thread gives away what it knows; what it does from now on is not part of it.
    pub fn give(&mut self, thread: ThreadId) -> Gift {
        let clock = self.clock(thread);
        let gift = clock.known.clone().into_boxed_slice();
        clock.known[thread.0 as usize] += 1;
        self.stamp(thread);
        gift
    }

    /// The thread learns what another gave away.
    pub fn take(&mut self, thread: ThreadId, gift: &[u32]) {
        let clock = self.clock(thread);
        if clock.known.len() < gift.len() {
            clock.known.resize(gift.len(), 0);
        }
        let mut news = false;
        for (known, &given) in clock.known.iter_mut().zip(gift) {
            news |= given > *known;
            *known = given.max(*known);
        }
        if news {
            self.stamp(thread);
        }
    }

    /// Whether what happened at `a` must come before what happened at `b`, for two
    /// different threads.
    #[must_use]
    pub fn before(&self, a: Moment, b: Moment) -> bool {
        let (thread, known) = &self.moments[a.0 as usize];
        let own = known[*thread as usize];
        self.moments[b.0 as usize].1.get(*thread as usize).is_some_and(|&time| time >= own)
    }

    fn clock(&mut self, thread: ThreadId) -> &mut Clock {
        let index = thread.0 as usize;
        while self.threads.len() <= index {
            let new = self.threads.len();
            let mut known = vec![0; new + 1];
            // From 1 on, so that nobody knows of it who was not told.
            known[new] = 1;
            self.threads.push(Clock { known, moment: Moment(0) });
            self.stamp(ThreadId(new as u32));
        }
        &mut self.threads[index]
    }

    fn stamp(&mut self, thread: ThreadId) {
        let clock = &mut self.threads[thread.0 as usize];
        clock.moment = Moment(self.moments.len() as u32);
        self.moments.push((thread.0, clock.known.clone().into_boxed_slice()));
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
        let gift = clocks.give(A);
        let a2 = clocks.now(A);
        clocks.take(B, &gift);
        let b2 = clocks.now(B);
        assert!(clocks.before(a1, b2));
        assert!(!clocks.before(a1, b1) && !clocks.before(a2, b2) && !clocks.before(b1, a2));
    }

    #[test]
    fn what_was_learned_is_passed_on() {
        let mut clocks = Clocks::default();
        let a = clocks.now(A);
        let gift = clocks.give(A);
        clocks.take(B, &gift);
        let gift = clocks.give(B);
        clocks.take(C, &gift);
        let c = clocks.now(C);
        assert!(clocks.before(a, c) && !clocks.before(c, a));
    }
}
