//! Following a schedule.
//!
//! A step names a thread, the number of steps that it runs, and the site of the operation before
//! which it stops. Only the count decides; the site checks that we are still where the schedule
//! was made. At the first step that does not match, the schedule is abandoned and a policy takes
//! over, or, in strict mode, the run ends.
//!
//! A schedule of an older version of the runtime may count fewer steps ([`Follow::by_sites`]). Then
//! a thread that is elsewhere goes on, step by step, until it is at the site. In a loop that may be
//! an iteration too early; who replays such a schedule has to look at how the run ends.

use raddle_trace::expiry::Awaited;
use raddle_trace::id::Site;
use raddle_trace::record::Switch;

use super::children::Rest;
use super::decision::{Decision, Look, Looked, Question};
use super::schedule::{Departure, Item, Step};
use super::thread::{NEVER, Wait};
use super::{Model, World};

/// How long a schedule lets all threads wait for input, if others could run.
pub(crate) const OUTSIDE_NS: u64 = 3_000_000_000;
/// The same if nothing comes from outside: what threads send each other through the network is
/// sometimes not there at once.
const INSIDE_NS: u64 = 2_000_000;

/// How many steps a thread goes on by itself to get to its site. It is for the steps that are new
/// in one stretch, and a thread that will never get there is noticed soon.
const STEPS_TO_SITE_MAX: u64 = 4096;

/// The position in the schedule.
pub(crate) struct Follow {
    strict: bool,
    /// Whether sites decide where threads stop, since steps are counted in another way.
    by_sites: bool,
    /// Steps that were added to the current step to get to its site.
    n_added: u64,
    /// Index of the next stretch.
    at: u64,
    /// Index of the next choice.
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

impl Follow {
    pub(crate) fn new(strict: bool, world: &impl World) -> Self {
        let mut follow = Self {
            strict,
            by_sites: false,
            n_added: 0,
            at: 0,
            choice_at: 0,
            step: None,
            pending: false,
            marked: false,
            performed_pc: 0,
            used: 0,
        };
        // The main thread already holds the turn.
        follow.begin_next(world);
        follow
    }

    /// Lets sites decide where threads stop.
    pub(crate) fn by_sites(&mut self) {
        self.by_sites = true;
    }

    /// Adds a step to the current one, since its thread is not at its site yet; returns whether
    /// that is still reasonable.
    fn goes_on(&mut self) -> bool {
        let Some(step) = self.step.as_mut().filter(|_| self.by_sites) else { return false };
        step.count = step.count.saturating_add(1);
        self.n_added += 1;
        self.n_added <= STEPS_TO_SITE_MAX
    }

    /// Whether the first step that does not match ends the run.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict
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
    pub(crate) fn choice(&mut self, world: &impl World) -> Option<u32> {
        loop {
            let item = world.schedule_item(self.choice_at)?;
            self.choice_at += 1;
            if let Item::Choice(taken) = item {
                return Some(taken);
            }
        }
    }

    /// Skips a mark that time jumped after the last step; returns whether there was one: a stretch
    /// of no steps of the same thread.
    fn skip_mark(&mut self, world: &impl World) -> bool {
        let mut at = self.at;
        let is_mark = match (self.step, next_stretch(&mut at, world)) {
            (Some(step), Some(next)) => {
                !self.marked && next.count == 0 && next.thread == step.thread
            }
            (None, _) | (_, None) => false,
        };
        if is_mark {
            self.at = at;
        }
        self.marked = is_mark;
        is_mark
    }

    fn begin_next(&mut self, world: &impl World) -> Option<Step> {
        self.step = Some(next_stretch(&mut self.at, world)?);
        self.n_added = 0;
        self.step
    }

    /// The thread that the schedule wants to run, if it cannot yet.
    pub(crate) fn awaited(&self) -> Option<u32> {
        self.step.filter(|_| self.pending).map(|step| step.thread)
    }

    fn departure(&self, thread: u32, pc: u64, step: Step) -> Departure {
        Departure { thread, pc, step, index: self.at.saturating_sub(1) }
    }
}

/// The next stretch.
fn next_stretch(at: &mut u64, world: &impl World) -> Option<Step> {
    loop {
        let item = world.schedule_item(*at)?;
        *at += 1;
        if let Item::Stretch(step) = item {
            return Some(step);
        }
    }
}

impl Model {
    /// What happens next according to the schedule; none if it has ended.
    pub(super) fn decide_followed(
        &mut self,
        question: &mut Question,
        world: &impl World,
    ) -> Option<Decision> {
        let Question { last, reason, pc, .. } = *question;
        let follow = self.follow.as_mut()?;
        if !core::mem::replace(&mut question.is_compared, true) {
            if let (Some(step), Some(last), false) = (follow.step, last, follow.pending) {
                let stretch = self.threads[last as usize].stretch.saturating_sub(follow.used);
                if step.thread != last {
                    return Some(Decision::Depart(follow.departure(last, pc, step)));
                }
                // A thread that yields stops after an operation, and so does one that yielded when
                // the schedule was made but is not found spinning now.
                let stopped_at = |pc: u64| step.site == world.site(pc);
                let is_elsewhere = step.site != Site::UNKNOWN
                    && !stopped_at(pc)
                    && !stopped_at(follow.performed_pc)
                    && reason != Switch::Ended;
                // It has steps left and waits only for time or input, so it continues by itself.
                // Or it yielded without effect.
                follow.pending = stretch < step.count || reason == Switch::Yielded && is_elsewhere;
                if !follow.pending && is_elsewhere {
                    follow.pending = follow.goes_on();
                }
                if !follow.pending && is_elsewhere {
                    return Some(Decision::Depart(follow.departure(last, pc, step)));
                }
            }
            if !follow.pending && follow.skip_mark(world) {
                return self.decide_marked(question, world);
            }
        }
        let follow = self.follow.as_mut()?;
        if !follow.pending {
            let step = follow.begin_next(world)?;
            // Two consecutive steps of one thread are one stretch.
            follow.used = match last {
                Some(last) if last == step.thread => self.threads[last as usize].stretch,
                Some(_) | None => 0,
            };
            follow.pending = true;
        }
        let step = follow.step?;
        self.decide_pending(step, question, world)
    }

    /// Time is to jump here. In another order than that of the run in which it did, the next deadline
    /// may be much farther away.
    fn decide_marked(&mut self, question: &Question, world: &impl World) -> Option<Decision> {
        let ns = self.ns_to_deadline().unwrap_or(0);
        let is_allowed = self.follow.as_ref()?.is_strict() || self.may_be_late_again(ns, world);
        let follow = self.follow.as_ref()?;
        Some(if is_allowed {
            Decision::Jump { ns, marked: true }
        } else {
            let thread = question.last.unwrap_or(0);
            Decision::TooLate(follow.departure(thread, question.pc, follow.step?))
        })
    }

    /// The thread of this step is to run.
    fn decide_pending(
        &mut self,
        step: Step,
        question: &mut Question,
        world: &impl World,
    ) -> Option<Decision> {
        // The last stretch: how it ends is how the run ends.
        let is_last = step.count == u64::MAX;
        let departure = |model: &Self, thread: u32, pc: u64| {
            model.follow.as_ref().map(|follow| Decision::Depart(follow.departure(thread, pc, step)))
        };
        let Some(thread) = self.threads.get_mut(step.thread as usize) else {
            return departure(self, question.last.unwrap_or(0), question.pc);
        };
        if thread.wait == Wait::Back {
            thread.wait = Wait::Nothing;
        }
        let (pc, wait) = (thread.pc, thread.wait);
        if thread.ended {
            return if is_last { None } else { departure(self, step.thread, pc) };
        }
        if self.can_run(step.thread, world) {
            self.follow.as_mut()?.pending = false;
            return Some(Decision::Run(step.thread));
        }
        let has_children = self.has_children(world) || self.is_foreign(wait, world);
        let rest = match question.looked.rest {
            None if has_children => return Some(Decision::Look { what: Look::Rest, ns: 0 }),
            Some(rest) if has_children => rest,
            Some(_) | None => Rest::Waits,
        };
        let own = self.threads[step.thread as usize].awaited();
        let until = match (own, self.timer) {
            (None, None) => None,
            // A deadline that has passed belongs to a thread that the schedule does not want yet.
            (None, Some(timer)) => {
                let ns = self.ns_to_deadline().unwrap_or(timer.saturating_sub(self.now()));
                Some((ns, Awaited::TimeOut))
            }
            (Some((deadline, awaited)), timer) => {
                let first = timer.map_or(deadline, |timer| timer.min(deadline));
                Some((first.saturating_sub(self.now()), awaited))
            }
        };
        if let Some((ns, awaited)) = until {
            if rest.goes_on() && !core::mem::replace(&mut question.looked.peers, true) {
                return Some(Decision::Look { what: Look::Peers { decides: true }, ns });
            }
            question.looked = Looked::default();
            // What is followed strictly has happened already.
            let is_allowed =
                self.follow.as_ref()?.is_strict() || self.may_be_late(ns, awaited, world);
            let follow = self.follow.as_ref()?;
            return Some(if is_allowed {
                Decision::Jump { ns, marked: false }
            } else {
                Decision::TooLate(follow.departure(step.thread, pc, step))
            });
        }
        let may_come = has_children && self.may_come_from_outside(wait, world);
        match wait {
            Wait::Outside => Some(Decision::Idle),
            Wait::Signal | Wait::SignalOf(_) if !may_come => Some(Decision::Idle),
            wait if may_come || self.may_be_made_ready(wait, world) => {
                let others_can_run = self.any_can_run(world);
                if !question.has_looked_for_input() {
                    let ns = match others_can_run {
                        true if self.is_alone && !may_come => INSIDE_NS,
                        true => OUTSIDE_NS,
                        false => NEVER,
                    };
                    let peers = Look::Peers { decides: others_can_run };
                    let what = if may_come { peers } else { Look::Input };
                    return Some(Decision::Look { what, ns });
                }
                // What it waits for may have to come from a thread that the schedule holds back.
                if others_can_run { departure(self, step.thread, pc) } else { Some(Decision::Idle) }
            }
            Wait::Descriptors(..)
            | Wait::Peer(..)
            | Wait::Child(_)
            | Wait::Signal
            | Wait::SignalOf(_)
            | Wait::Nothing
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
            | Wait::Loader(_)
            | Wait::Timer
            | Wait::Unwaited(_)
            | Wait::Sleep
            | Wait::Back => {
                if is_last {
                    None
                } else {
                    departure(self, step.thread, pc)
                }
            }
        }
    }

    /// What the thread that the schedule wants to run waits for, if others could run instead.
    pub(crate) fn awaits_instead(&mut self, world: &impl World) -> Option<Wait> {
        let thread = self.follow.as_ref()?.awaited()?;
        let wait = self.threads.get(thread as usize)?.wait;
        self.any_can_run(world).then_some(wait)
    }

    /// The departure at a thread that does not arrive; none in the last stretch, whose end is how
    /// the run ends.
    pub(crate) fn departure(&self) -> Option<Departure> {
        let follow = self.follow.as_ref()?;
        let step = follow.step.filter(|step| step.count != u64::MAX)?;
        let pc = self.threads.get(step.thread as usize)?.pc;
        Some(follow.departure(step.thread, pc, step))
    }

    /// Notes where the thread is, before it stops at its next operation.
    pub(crate) fn note_performed(&mut self, id: u32) {
        let pc = self.threads[id as usize].pc;
        if let Some(follow) = &mut self.follow {
            follow.performed_pc = pc;
        }
    }
}
