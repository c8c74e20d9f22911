//! Threads that wait for each other.
//!
//! Nothing that other threads do resolves a cycle of threads that wait for locks and for each
//! other's end, but one of them may end the program, and then nobody would have noticed. So a
//! cycle does not end the run as long as other threads can run: they take turns for
//! [`CYCLE_STEPS`]. If the cycle still stands then, or if nobody can run before, it is a deadlock.
//!
//! A schedule that is followed strictly repeats a run in which threads took turns already. One
//! that was computed may hold back a thread that would end the program, so the count begins after
//! it, or where its last stretch begins, which has no end.

use super::fairness::Cause;
use super::object::NOBODY;
use super::thread::{NEVER, Wait};
use super::{Model, World};
use crate::loader;

/// Steps that other threads get to end the program.
pub(crate) const CYCLE_STEPS: u64 = 100_000;

/// A cycle of waiting threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// The thread that closed it.
    pub(crate) closed_by: u32,
    /// Steps of all threads at which it is a deadlock; `u64::MAX` if they are not counted yet.
    pub(crate) until: u64,
}

impl Model {
    /// The thread that holds what this thread waits for, and where it acquired it.
    pub(crate) fn holder(&self, id: u32, wait: Wait, world: &impl World) -> Option<(u32, u64)> {
        match wait {
            Wait::Lock(at) | Wait::WriteLock(at) | Wait::ReadLock(at) => {
                let lock = self.objects.get(&at)?;
                if lock.owner != NOBODY {
                    return Some((lock.owner, lock.owner_pc));
                }
                // A writer waits for all readers; the one that is blocked too is the culprit, and
                // a reader that wants to write is its own.
                let blocked = |&&(reader, _): &&(u32, u64)| {
                    reader == id || self.threads[reader as usize].wait != Wait::Nothing
                };
                lock.readers.iter().find(blocked).or(lock.readers.first()).copied()
            }
            Wait::Join(other) => Some((other, self.threads[other as usize].pc)),
            Wait::Loader(at) => {
                let owner = world.word(at + loader::OWNER);
                let is_it = |&&other: &&u32| self.threads[other as usize].kernel_id == owner;
                // Where it called the loader is not known.
                self.live.iter().find(is_it).map(|&other| (other, 0))
            }
            Wait::Nothing
            | Wait::Cond(_)
            | Wait::Futex(..)
            | Wait::Semaphore(_)
            | Wait::Barrier(..)
            | Wait::SharedBarrier(..)
            | Wait::Once(_)
            | Wait::Guard(_)
            | Wait::Timer
            | Wait::Unwaited(_)
            | Wait::Sleep
            | Wait::Descriptors(..)
            | Wait::Peer(..)
            | Wait::Child(_)
            | Wait::Signal
            | Wait::SignalOf(_)
            | Wait::Outside
            | Wait::Back => None,
        }
    }

    /// Whether the thread is part of a cycle of waiting threads without a deadline.
    fn is_in_cycle(&self, id: u32, world: &impl World) -> bool {
        let mut at = id;
        for _ in 0..self.threads.len() {
            let thread = &self.threads[at as usize];
            if thread.ended
                || thread.deadline != NEVER
                || thread.woken.is_some()
                || thread.cancelled
                || thread.interrupted
                || self.ready(at, thread.wait, world)
            {
                return false;
            }
            match self.holder(at, thread.wait, world) {
                Some((next, _)) if next == id => return true,
                Some((next, _)) => at = next,
                None => return false,
            }
        }
        false
    }

    /// Whether a thread that now waits closes a cycle, and there is none yet.
    pub(crate) fn closes_cycle(&self, id: u32, world: &impl World) -> bool {
        self.cycle.is_none() && self.is_in_cycle(id, world)
    }

    /// Notes the cycle that a thread closes.
    pub(crate) fn note_cycle(&mut self, id: u32) {
        let is_counted = self.follow.as_ref().is_none_or(|follow| follow.is_strict());
        let until = if is_counted { self.steps + CYCLE_STEPS } else { u64::MAX };
        self.cycle = Some(Cycle { closed_by: id, until });
    }

    /// Whether a schedule has come to its last stretch, and the time of a cycle has not begun.
    pub(super) fn is_open_beside_cycle(&self) -> bool {
        self.cycle.is_some_and(|cycle| cycle.until == u64::MAX)
            && self.follow.as_ref().is_some_and(|follow| follow.is_in_last_stretch())
    }

    /// No schedule is followed any more: threads take turns beside a cycle.
    pub(super) fn be_fair_beside_cycle(&mut self) {
        let Some(cycle) = &mut self.cycle else { return };
        if cycle.until == u64::MAX {
            cycle.until = self.steps + CYCLE_STEPS;
        }
        match self.fairness.map(|fairness| fairness.cause) {
            None | Some(Cause::Idle) => self.be_fair(Cause::Cycle, CYCLE_STEPS),
            Some(Cause::Cycle | Cause::Limit) => {}
        }
    }

    /// Whether the time of a cycle is over and it still stands. One that was resolved, as by a
    /// signal handler that jumped away, is forgotten.
    pub(super) fn cycle_is_over(&mut self, world: &impl World) -> bool {
        let Some(cycle) = self.cycle.filter(|cycle| cycle.until <= self.steps) else {
            return false;
        };
        if self.is_in_cycle(cycle.closed_by, world) {
            return true;
        }
        self.cycle = None;
        self.fairness.take_if(|fairness| fairness.cause == Cause::Cycle);
        false
    }
}
