//! Scheduling policies: which thread runs next.
//!
//! A policy sees ids and what each thread is about to do, so it runs in a test as it does in a
//! target. It is consulted only where it wants to be: it says for how many steps the chosen
//! thread may run ([`Policy::quantum`]), and those cost next to nothing each.

mod pct;
mod pos;
mod random;
mod rr;

use alloc::boxed::Box;

pub(crate) use pct::Pct;
pub(crate) use pos::Pos;
use raddle_trace::record::Switch;
pub(crate) use random::RandomPolicy;
pub(crate) use rr::RoundRobin;

/// A runnable thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its number.
    pub(crate) thread: u32,
    /// The address that it will access next; 0 if unknown.
    pub(crate) addr: u64,
    /// Whether it will write there.
    pub(crate) write: bool,
}

/// A scheduling decision.
#[derive(Debug)]
pub(crate) struct Situation<'a> {
    /// The runnable threads, sorted, never empty.
    pub(crate) runnable: &'a [Candidate],
    /// The thread that held the turn; it may not be runnable.
    pub(crate) last: Option<u32>,
    /// Why a decision is needed.
    pub(crate) reason: Switch,
    /// Steps performed by all threads.
    pub(crate) steps: u64,
}

/// Chooses threads.
pub(crate) trait Policy: Send {
    /// The thread to run next, one of the runnable ones.
    fn choose(&mut self, situation: &Situation<'_>) -> u32;

    /// Number of steps, at least 1, until the next decision.
    fn quantum(&mut self, steps: u64) -> u64;

    /// Whether to decide at this synchronization operation too.
    fn at_sync(&mut self) -> bool;

    /// Whether to decide as soon as an operation makes another thread runnable.
    fn eager(&self) -> bool {
        false
    }
}

/// The longest quantum: after it the scheduler checks whether the thread spins.
pub(crate) const QUANTUM_MAX: u64 = 50_000;

/// The policy with this code.
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
        Code::Rr => Box::new(RoundRobin),
        // The scheduler itself follows a schedule; after its end it uses a policy.
        Code::Random | Code::Follow => Box::new(RandomPolicy::new(seed)),
    }
}

#[cfg(test)]
pub(crate) fn candidates(threads: &[u32]) -> alloc::vec::Vec<Candidate> {
    threads.iter().map(|&thread| Candidate { thread, addr: 0, write: false }).collect()
}
