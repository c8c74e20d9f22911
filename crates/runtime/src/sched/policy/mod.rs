//! Who goes next.
//!
//! A policy sees ids and what each thread is about to do, so it runs in a test as it runs
//! in a target. It is asked only where it wants to be: it says for how many steps the
//! chosen thread may go on ([`Policy::quantum`]), and these cost next to nothing each.

mod pct;
mod pos;
mod random;
mod rr;

use alloc::boxed::Box;

pub(crate) use pct::Pct;
pub(crate) use pos::Pos;
use raddle_trace::record::Switch;
pub(crate) use random::Any;
pub(crate) use rr::Rr;

/// A thread that can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Who.
    pub(crate) thread: u32,
    /// The address that it will touch next, 0 if unknown.
    pub(crate) addr: u64,
    /// Whether it will write there.
    pub(crate) write: bool,
}

/// A moment of choice.
#[derive(Debug)]
pub(crate) struct Moment<'a> {
    /// Who can run: sorted by thread, never empty.
    pub(crate) runnable: &'a [Candidate],
    /// Who had the turn; it may not be among the runnable.
    pub(crate) last: Option<u32>,
    /// Why it is asked.
    pub(crate) reason: Switch,
    /// Steps performed by all threads.
    pub(crate) steps: u64,
}

/// See the module.
pub(crate) trait Policy: Send {
    /// Which of the runnable threads goes next.
    fn choose(&mut self, moment: &Moment<'_>) -> u32;

    /// For how many steps, at least 1, before it is asked again.
    fn quantum(&mut self, steps: u64) -> u64;

    /// Whether it wants to choose at this synchronization operation too.
    fn at_sync(&mut self) -> bool;

    /// Whether it wants to choose as soon as an operation made another thread runnable.
    fn eager(&self) -> bool {
        false
    }
}

/// The longest quantum: then the scheduler looks whether the thread spins.
pub(crate) const QUANTUM_MAX: u64 = 50_000;

/// The policy of this name.
pub(crate) fn policy(
    code: raddle_trace::control::Policy,
    seed: u64,
    depth: u32,
    steps_expected: u64,
) -> Box<dyn Policy> {
    use raddle_trace::control::Policy as Code;
    match code {
        Code::Pct => Box::new(Pct::new(seed, depth, steps_expected)),
        Code::Pos => Box::new(Pos::new(seed)),
        Code::Rr => Box::new(Rr),
        // A schedule is followed by the scheduler itself; behind its end it asks a policy.
        Code::Random | Code::Follow => Box::new(Any::new(seed)),
    }
}

#[cfg(test)]
pub(crate) fn candidates(threads: &[u32]) -> alloc::vec::Vec<Candidate> {
    threads.iter().map(|&thread| Candidate { thread, addr: 0, write: false }).collect()
}
