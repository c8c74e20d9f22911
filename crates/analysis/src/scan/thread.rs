//! A thread while its events are read.

use raddle_trace::id::{Addr, Pc};

use crate::accesses::{ThreadPast, Unit};
use crate::locks::{Held, LockSet, LockSets};
use crate::recent::Mark;
use crate::witness::Witness;

/// The state of a thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) steps: u64,
    /// Locks in the order in which they were acquired.
    held: Vec<Holding>,
    section: u32,
    n_sections: u32,
    marks: u32,
    /// Function activations, numbered as they begin.
    /// invariant: sorted.
    stack: Vec<u32>,
    n_activations: u32,
    /// The last atomic load: code address, location, and value.
    pub(super) load: Option<(Pc, Addr, u64)>,
    pub(super) begun: bool,
}

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    pub(super) held: Held,
    depth: u32,
    pub(super) taken: Witness,
    /// This lock and those acquired before it that are still held.
    upto: LockSet,
}

/// How many callers are compared.
const DEPTH_MAX: usize = 64;

impl Thread {
    /// Number of steps before the current event, if that is not a plain access: its step is
    /// already counted.
    #[inline]
    pub(super) fn at(&self) -> u64 {
        self.steps.saturating_sub(1)
    }

    #[inline]
    pub(super) fn locks(&self) -> LockSet {
        self.held.last().map_or(LockSet::NONE, |last| last.upto)
    }

    #[inline]
    pub(super) fn section(&self) -> u32 {
        self.section
    }

    /// The current function activation and its caller's.
    #[inline]
    pub(super) fn activations(&self) -> [u32; 2] {
        match self.stack[..] {
            [.., caller, last] => [last, caller],
            [last] => [last, 0],
            [] => [0, 0],
        }
    }

    #[inline]
    pub(super) fn enter(&mut self) {
        self.n_activations += 1;
        self.stack.push(self.n_activations);
    }

    #[inline]
    pub(super) fn leave(&mut self) {
        self.stack.pop();
    }

    pub(super) fn mark(&mut self) {
        self.marks += 1;
        self.begin_section();
    }

    pub(super) fn unmark(&mut self) {
        self.marks = self.marks.saturating_sub(1);
        self.end_section();
    }

    fn begin_section(&mut self) {
        if self.section == 0 {
            self.n_sections += 1;
            self.section = self.n_sections;
        }
    }

    fn end_section(&mut self) {
        if self.held.is_empty() && self.marks == 0 {
            self.section = 0;
        }
    }

    /// Acquires a lock and returns those held before; none if the thread already held it.
    pub(super) fn acquire(
        &mut self,
        lock: Held,
        taken: Witness,
        locks: &mut LockSets,
    ) -> Option<&[Holding]> {
        if let Some(holding) = self.held.iter_mut().find(|holding| holding.held == lock) {
            holding.depth += 1;
            return None;
        }
        let upto = locks.with(self.locks(), lock);
        self.held.push(Holding { held: lock, depth: 1, taken, upto });
        self.begin_section();
        self.held.split_last().map(|(_, before)| before)
    }

    /// Whether it holds a lock, for reading or not.
    pub(super) fn holds(&self, lock: Addr) -> bool {
        self.held.iter().any(|holding| holding.held.lock == lock)
    }

    /// Releases a lock and returns it as it was held; none if the thread still holds it or never
    /// did.
    pub(super) fn release(&mut self, lock: Held, locks: &mut LockSets) -> Option<Held> {
        let exact = self.held.iter().position(|holding| holding.held == lock);
        let index = exact
            .or_else(|| self.held.iter().position(|holding| holding.held.lock == lock.lock))?;
        self.held[index].depth -= 1;
        if self.held[index].depth > 0 {
            return None;
        }
        let released = self.held.remove(index).held;
        let mut upto = index.checked_sub(1).map_or(LockSet::NONE, |last| self.held[last].upto);
        for holding in &mut self.held[index..] {
            upto = locks.with(upto, holding.held);
            holding.upto = upto;
        }
        self.end_section();
        Some(released)
    }

    fn is_active(&self, activation: u32) -> bool {
        let mut up = self.stack.iter().rev().take(DEPTH_MAX);
        activation != 0 && up.find(|&&active| active <= activation) == Some(&activation)
    }
}

impl ThreadPast for Thread {
    #[inline]
    fn unit(&self, before: &Mark) -> Unit {
        let [own, caller] = before.activations;
        if before.section != 0 && before.section == self.section {
            Unit::Section
        } else if own == 0 && self.stack.is_empty() || self.is_active(own) {
            Unit::Activation
        } else if self.is_active(caller) {
            Unit::Caller
        } else {
            Unit::Thread
        }
    }

    /// A lock that was acquired before and is still held was held throughout, or it would have
    /// been acquired again.
    #[inline]
    fn kept(&self, before: &Mark) -> LockSet {
        let kept = self.held.iter().rev().find(|held| held.taken.seq <= before.occurrence.seq);
        kept.map_or(LockSet::NONE, |held| held.upto)
    }
}
