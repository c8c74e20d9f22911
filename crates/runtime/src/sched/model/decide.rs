//! Who runs next, and what happens if nobody can.

use raddle_trace::record::Switch;

use super::children::Rest;
use super::decision::{Decision, Look, Looked, Question};
use super::fairness::{Cause, Fairness};
use super::policy::Situation;
use super::share::Patience;
use super::thread::{NEVER, Wait};
use super::{Model, World};

/// After this many consecutive steps, the other threads go first once, whatever the policy says.
const STRETCH_MAX: u64 = 500_000;
/// After this many yields without any progress, time jumps.
const PATIENT_YIELDS_MAX: u32 = 200;
/// After this many yields without any progress, threads take turns: see [`super::fairness`].
const IDLE_YIELDS_MAX: u32 = 10_000;
/// Real time for a child process that goes on, beside threads that only spin.
const SPIN_NS: u64 = 1_000_000;
/// Real time for a process outside to write what a thread waits for, before virtual time jumps to
/// a deadline.
const GRACE_NS: u64 = 2_000_000;
/// After this many unsuccessful grace periods, only one jump in as many grants another.
const GRACES: u32 = 16;

impl Model {
    /// Decides what happens next. Timers that are due have fired.
    pub(crate) fn decide(&mut self, question: &mut Question, world: &impl World) -> Decision {
        // A thread that spins to the end of the run is given up by the same rule as without a
        // schedule.
        let is_idle = self.idle_yields > IDLE_YIELDS_MAX && !question.is_compared;
        self.follow.take_if(|follow| is_idle && follow.is_in_last_stretch());
        if self.follow.is_some() {
            let decision = self.decide_followed(question, world);
            if let Some(decision) = decision.filter(|_| !self.is_open_beside_cycle()) {
                return decision;
            }
            self.follow = None;
        }
        self.measure_stretch(question);
        self.be_fair_beside_cycle();
        loop {
            self.collect_runnable(world);
            if let Some(ns) = self.expires_early() {
                return Decision::Jump { ns, marked: true };
            }
            if self.idle_yields == 0 {
                self.fairness.take_if(|fairness| fairness.cause == Cause::Idle);
            }
            if self.all_yielded() && self.call_back() {
                continue;
            }
            if self.all_yielded()
                && let Some(decision) = self.decide_beside_children(question, world)
            {
                return decision;
            }
            if self.runnable.is_empty() {
                return self.decide_without_runnable(question, world);
            }
            return self.decide_among_runnable(question);
        }
    }

    /// A thread that only works, for a long time, may still be waiting for others.
    fn measure_stretch(&mut self, question: &mut Question) {
        let is_measured = core::mem::replace(&mut question.is_measured, true);
        if let (Switch::Preempt, Some(last), false) = (question.reason, question.last, is_measured)
        {
            let thread = &mut self.threads[last as usize];
            if thread.stretch >= STRETCH_MAX {
                thread.yielded = true;
                question.reason = Switch::Yielded;
            }
        }
    }

    /// Whether threads have yielded for so long without any progress that time jumps.
    pub(super) fn only_yields(&self) -> bool {
        self.idle_yields > PATIENT_YIELDS_MAX
    }

    fn all_yielded(&self) -> bool {
        self.runnable.iter().all(|candidate| self.threads[candidate.thread as usize].yielded)
    }

    /// Readmits threads that returned from outside; returns whether there were any.
    fn call_back(&mut self) -> bool {
        let mut any = false;
        for &id in &self.live {
            let wait = &mut self.threads[id as usize].wait;
            if *wait == Wait::Back {
                *wait = Wait::Nothing;
                any = true;
            }
        }
        any
    }

    /// Some threads can run.
    fn decide_among_runnable(&mut self, question: &Question) -> Decision {
        let patience = self.patience();
        if patience == Patience::Ends
            && let Some(ns) = self.ns_to_deadline()
        {
            return Decision::Jump { ns, marked: true };
        }
        if self.fairness.is_some() {
            return Decision::Run(Fairness::choose(&self.runnable, question.last));
        }
        if self.all_yielded() {
            if self.only_yields()
                && let Some(ns) = self.ns_to_deadline()
            {
                return Decision::Jump { ns, marked: true };
            }
            if self.idle_yields > IDLE_YIELDS_MAX {
                match self.idle_max {
                    0 => self.idle_yields = 1,
                    most => self.be_fair(Cause::Idle, most),
                }
            }
            for candidate in &self.runnable {
                self.threads[candidate.thread as usize].yielded = false;
            }
            // A thread that has just yielded goes after the others.
            if question.reason == Switch::Yielded && self.runnable.len() > 1 {
                self.runnable.retain(|candidate| Some(candidate.thread) != question.last);
            }
        } else {
            let threads = &self.threads;
            self.runnable.retain(|candidate| !threads[candidate.thread as usize].yielded);
        }
        if let Patience::Helps(due) = patience {
            self.let_others_catch_up(due);
        }
        let situation = Situation {
            runnable: &self.runnable,
            last: question.last,
            reason: question.reason,
            steps: self.steps,
        };
        let Some(policy) = self.policy.as_mut() else { die!("internal bug: no policy") };
        Decision::Run(policy.choose(&situation))
    }

    /// Nobody can run: lets time pass, looks outside, or finds that there is nothing to wait for.
    fn decide_without_runnable(&mut self, question: &mut Question, world: &impl World) -> Decision {
        let on_outside =
            self.any_waits(|wait| matches!(wait, Wait::Outside | Wait::Signal | Wait::SignalOf(_)));
        let deadline = self.next_deadline();
        let to_deadline = deadline.map_or(NEVER, |deadline| deadline.saturating_sub(self.now()));
        let is_last_word = deadline.is_none() && !on_outside;
        let has_looked = question.looked.input || question.looked.peers;
        if !has_looked && self.awaits_input(is_last_word, world) {
            // A process outside may still write. A deadline grants it a moment.
            let leaves = |id: u32| self.threads[id as usize].wait == Wait::Outside;
            // Who decides has yet to make its own call. Others look for input meanwhile.
            if deadline.is_none() && question.last.is_some_and(leaves) {
                return Decision::Idle;
            }
            let ns = if deadline.is_some() { self.grace_ns() } else { NEVER };
            question.looked.input = true;
            return Decision::Look { what: Look::Input, ns };
        }
        if deadline.is_some() {
            // What was looked for until now may come until the next deadline.
            question.looked = Looked::default();
            return Decision::Jump { ns: to_deadline, marked: false };
        }
        if on_outside { Decision::Idle } else { Decision::Stuck }
    }

    /// Whether somebody outside may make a descriptor ready that a thread waits for. It costs more
    /// to be sure, which a verdict needs.
    fn awaits_input(&self, is_last_word: bool, world: &impl World) -> bool {
        self.any_waits(|wait| self.may_be_made_ready(wait, world))
            || is_last_word
                && self.any_waits(|wait| matches!(wait, Wait::Descriptors(..)))
                && world.has_helpers()
    }

    /// Whether a wait is for descriptors that somebody outside may make ready.
    pub(super) fn may_be_made_ready(&self, wait: Wait, world: &impl World) -> bool {
        match wait {
            Wait::Descriptors(at, n) => self.n_processes > 0 || !world.is_inside(at, n),
            Wait::Nothing
            | Wait::Lock(_)
            | Wait::ReadLock(_)
            | Wait::WriteLock(_)
            | Wait::Cond(_)
            | Wait::Futex(..)
            | Wait::Semaphore(_)
            | Wait::Barrier(..)
            | Wait::SharedBarrier(..)
            | Wait::Join(_)
            | Wait::Once(_)
            | Wait::Guard(_)
            | Wait::Unwaited(_)
            | Wait::Loader(_)
            | Wait::Timer
            | Wait::Peer(..)
            | Wait::Child(_)
            | Wait::Sleep
            | Wait::Signal
            | Wait::SignalOf(_)
            | Wait::Outside
            | Wait::Back => false,
        }
    }

    /// Real time that this jump grants.
    fn grace_ns(&mut self) -> u64 {
        self.n_graces += 1;
        let given = self.n_graces <= GRACES || self.n_graces.is_multiple_of(GRACES);
        if given { GRACE_NS } else { 0 }
    }

    /// What was looked for has come.
    pub(crate) fn found(&mut self, question: &mut Question, what: Look) {
        question.looked = Looked::default();
        match what {
            Look::Input | Look::Peers { .. } => self.n_graces = 0,
            Look::Rest => {}
        }
    }

    /// Children are at rest, as far as we waited for it: what they did is accepted. `have_run` if
    /// they have run since the last time.
    pub(crate) fn rested(
        &mut self,
        question: &mut Question,
        rest: Rest,
        have_run: bool,
        world: &impl World,
    ) {
        question.looked.rest = Some(rest);
        self.accept(have_run, world);
    }

    /// Whether what is waited for may come from another process.
    pub(super) fn may_come_from_outside(&self, wait: Wait, world: &impl World) -> bool {
        match wait {
            Wait::Descriptors(..) | Wait::Signal | Wait::SignalOf(_) => true,
            wait => self.is_foreign(wait, world),
        }
    }

    /// Nobody can run, or all who can only spin: waits for child processes, if there are any. They
    /// come to rest first. Those that go on by themselves are granted the real time to the next
    /// deadline, or a moment beside threads that spin.
    fn decide_beside_children(
        &mut self,
        question: &mut Question,
        world: &impl World,
    ) -> Option<Decision> {
        let on_child = || self.any_waits(|wait| matches!(wait, Wait::Peer(..) | Wait::Child(_)));
        if !self.has_children(world) && !on_child() {
            return None;
        }
        let Some(rest) = question.looked.rest else {
            return Some(Decision::Look { what: Look::Rest, ns: 0 });
        };
        let ns_to_deadline =
            self.next_deadline().map(|deadline| deadline.saturating_sub(self.now()));
        let is_spinning = !self.runnable.is_empty();
        let may_come = || self.any_waits(|wait| self.may_come_from_outside(wait, world));
        // Who decides has yet to make its own call, for which a child may wait.
        let leaves = |id: u32| self.threads[id as usize].wait == Wait::Outside;
        let is_leaving = question.last.is_some_and(leaves);
        let ns = match (ns_to_deadline, rest.goes_on()) {
            _ if question.looked.peers || is_leaving => return None,
            (_, true) if is_spinning => SPIN_NS,
            (Some(ns), true) => ns,
            (None, _) if !is_spinning && may_come() => NEVER,
            (Some(_) | None, _) => return None,
        };
        question.looked.peers = true;
        // If only one thread waits, for as long as it takes, then how long does not matter.
        let decides = is_spinning || ns_to_deadline.is_some() || self.n_foreign(world) > 1;
        Some(Decision::Look { what: Look::Peers { decides }, ns })
    }
}
