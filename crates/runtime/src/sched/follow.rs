//! Following a schedule.
//!
//! A step names a thread, the number of steps that it runs, and the site of the operation before
//! which it stops. Only the count decides; the site checks that we are still where the schedule
//! was made. In strict mode the first step that does not match ends the run with
//! [`Ending::Diverged`]; otherwise the schedule is abandoned there and a policy takes over.

use core::sync::atomic::Ordering;

use raddle_trace::control::{Ending, FollowStep, LEFT};
use raddle_trace::id::Site;
use raddle_trace::record::Switch;

use super::thread::{NEVER, Wait};
use super::watchdog::OUTSIDE_NS;
use super::{Next, RETURNING, Sched};
use crate::{die, modules, shared};

/// The position in the schedule.
pub(crate) struct Follow {
    strict: bool,
    /// Index of the next stretch.
    at: u64,
    /// Index of the next choice: choices have an order of their own.
    choice_at: u64,
    /// The current step.
    step: Option<Step>,
    /// Whether the step has begun, but its thread cannot run yet.
    pending: bool,
    /// Whether the previous step was a mark that time jumped.
    marked: bool,
    /// The last operation that the thread with the turn performed.
    performed_pc: u64,
    /// How much of the running thread's stretch belongs to earlier steps.
    used: u64,
}

#[derive(Clone, Copy)]
struct Step {
    thread: u32,
    count: u64,
    site: Site,
}

impl Follow {
    pub(crate) fn new(strict: bool) -> Self {
        let mut follow = Self {
            strict,
            at: 0,
            choice_at: 0,
            step: None,
            pending: false,
            marked: false,
            performed_pc: 0,
            used: 0,
        };
        // The main thread already holds the turn.
        follow.begin_next();
        follow
    }

    /// Whether the thread with the turn is to run to the end.
    pub(crate) fn is_in_last_stretch(&self) -> bool {
        self.step.is_some_and(|step| step.count == u64::MAX)
    }

    /// Remaining steps of a thread that has performed `stretch` of them.
    pub(crate) fn budget(&self, stretch: u64) -> u64 {
        // A countdown is signed.
        let done = stretch.saturating_sub(self.used);
        self.step.map_or(1, |step| step.count.saturating_sub(done)).min(i64::MAX as u64)
    }

    /// A stretch begins: none of it belongs to earlier steps.
    pub(crate) fn begin_stretch(&mut self) {
        self.used = 0;
    }

    /// The alternative that the schedule chooses here, if any.
    pub(crate) fn choice(&mut self) -> Option<u32> {
        next_of(&mut self.choice_at, CHOICE).map(|step| step.thread.load(Ordering::Relaxed))
    }

    /// Skips a mark that time jumped after the last step; returns whether there was one. See
    /// `Sched::mark_jump`.
    fn skip_mark(&mut self) -> bool {
        let mut at = self.at;
        let marked = match (self.step, next_of(&mut at, STRETCH)) {
            (Some(step), Some(next)) => {
                !self.marked
                    && next.count.load(Ordering::Relaxed) == 0
                    && next.thread.load(Ordering::Relaxed) == step.thread
            }
            _ => false,
        };
        if marked {
            self.at = at;
        }
        self.marked = marked;
        marked
    }

    fn begin_next(&mut self) -> Option<Step> {
        let step = next_of(&mut self.at, STRETCH)?;
        self.step = Some(Step {
            thread: step.thread.load(Ordering::Relaxed),
            count: step.count.load(Ordering::Relaxed),
            site: Site(step.site.load(Ordering::Relaxed)),
        });
        self.step
    }
}

/// Kinds of [`FollowStep`].
const STRETCH: u32 = 0;
const CHOICE: u32 = 1;

/// The next step of this kind.
fn next_of(at: &mut u64, kind: u32) -> Option<&'static FollowStep> {
    loop {
        let step = shared::follow(*at)?;
        *at += 1;
        if step.kind.load(Ordering::Relaxed) == kind {
            return Some(step);
        }
    }
}

impl Sched {
    /// The next thread according to the schedule; none if it has ended or was abandoned.
    pub(super) fn next_followed(
        &mut self,
        last: Option<u32>,
        reason: Switch,
        pc: u64,
    ) -> Option<Next> {
        let follow = self.follow.as_mut()?;
        if let (Some(step), Some(last), false) = (follow.step, last, follow.pending) {
            let stretch = self.threads[last as usize].stretch.saturating_sub(follow.used);
            if step.thread != last {
                self.diverge(last, pc, step);
                return None;
            }
            // A thread that yields stops after an operation, and so does one that yielded when
            // the schedule was made but is not found spinning now.
            let stopped_at = |pc: u64| step.site == modules::site(pc);
            let elsewhere = step.site != Site::UNKNOWN
                && !stopped_at(pc)
                && !stopped_at(follow.performed_pc)
                && reason != Switch::Ended;
            // It has steps left and waits only for time or input, so it continues by itself. Or
            // it yielded without effect.
            follow.pending = stretch < step.count || reason == Switch::Yielded && elsewhere;
            if !follow.pending && elsewhere {
                self.diverge(last, pc, step);
                return None;
            }
        }
        if !follow.pending && follow.skip_mark() {
            self.jump_to_next_deadline();
            self.mark_jump(last, reason, pc);
        }
        let follow = self.follow.as_mut()?;
        let step = if follow.pending {
            follow.step?
        } else {
            let step = follow.begin_next()?;
            // Two consecutive steps of one thread are one stretch.
            follow.used = match last {
                Some(last) if last == step.thread => self.threads[last as usize].stretch,
                _ => 0,
            };
            step
        };
        follow.pending = true;
        loop {
            self.fire_timers();
            let Some(thread) = self.threads.get(step.thread as usize) else {
                self.diverge(last.unwrap_or(0), pc, step);
                return None;
            };
            if thread.ended {
                if step.count == u64::MAX {
                    return None;
                }
                self.diverge(step.thread, thread.pc, step);
                return None;
            }
            if self.can_run(step.thread) {
                if let Some(follow) = &mut self.follow {
                    follow.pending = false;
                }
                return Some(Next::Run(step.thread));
            }
            match thread.wait {
                Wait::Back => self.threads[step.thread as usize].wait = Wait::Nothing,
                _ if thread.deadline != NEVER => {
                    let (now, deadline) = (self.now(), thread.deadline);
                    let first =
                        self.timers.next_deadline().map_or(deadline, |timer| timer.min(deadline));
                    self.jump(first.saturating_sub(now));
                }
                _ if self.timers.next_deadline().is_some() => {
                    self.jump_to_next_deadline();
                }
                Wait::Outside | Wait::Signal | Wait::SignalOf(_) => return Some(Next::Idle),
                Wait::Descriptors(..) => {
                    let patience = if self.others_can_run() { OUTSIDE_NS } else { NEVER };
                    if self.wait_for_descriptors(patience) {
                        continue;
                    }
                    if RETURNING.load(Ordering::SeqCst) > 0 || patience == NEVER {
                        return Some(Next::Idle);
                    }
                    // What it waits for may have to come from a thread that the schedule holds
                    // back.
                    let pc = self.threads[step.thread as usize].pc;
                    self.diverge(step.thread, pc, step);
                    return None;
                }
                // The last stretch: how it ends is how the run ends.
                _ if step.count == u64::MAX => return None,
                _ => {
                    let pc = thread.pc;
                    self.diverge(step.thread, pc, step);
                    return None;
                }
            }
        }
    }

    /// What the thread that the schedule wants to run waits for, if others could run instead.
    pub(super) fn waits_idle(&mut self) -> Option<Wait> {
        let step = self.follow.as_ref().filter(|follow| follow.pending)?.step?;
        let wait = self.threads.get(step.thread as usize)?.wait;
        self.others_can_run().then_some(wait)
    }

    /// Whether a thread can run that the schedule holds back.
    fn others_can_run(&mut self) -> bool {
        self.collect_runnable();
        !self.runnable.is_empty()
    }

    /// Abandons the schedule at a thread that does not arrive.
    pub(super) fn leave_idle(&mut self) {
        let step = self.follow.as_ref().and_then(|follow| follow.step);
        // The last stretch: how it ends is how the run ends.
        if let Some(step) = step.filter(|step| step.count != u64::MAX)
            && let Some(thread) = self.threads.get(step.thread as usize)
        {
            self.diverge(step.thread, thread.pc, step);
        }
        self.follow = None;
    }

    /// Records where the thread is, before it stops at its next operation.
    pub(super) fn note_performed(&mut self, me: u32) {
        let pc = self.threads[me as usize].pc;
        if let Some(follow) = &mut self.follow {
            follow.performed_pc = pc;
        }
    }

    /// The schedule does not match the run at this point.
    fn diverge(&self, thread: u32, pc: u64, step: Step) {
        let Some(follow) = &self.follow else { return };
        let control = shared::control();
        control.thread.store(thread, Ordering::Relaxed);
        control.pc.store(pc, Ordering::Relaxed);
        control.event.store(
            self.threads.get(thread as usize).map_or(0, |thread| thread.steps),
            Ordering::Relaxed,
        );
        control.step.store(follow.at.saturating_sub(1), Ordering::Relaxed);
        control.expected_site.store(step.site.0, Ordering::Relaxed);
        control.seen_site.store(modules::site(pc).0, Ordering::Relaxed);
        if follow.strict {
            die::stop(Ending::Diverged, thread, pc, 0);
        }
        shared::flag(LEFT);
    }
}
