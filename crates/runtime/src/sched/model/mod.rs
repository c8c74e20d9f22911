//! The decisions of the scheduler.
//!
//! The model holds what threads wait for, who holds what, and what time it is. It decides which
//! thread runs next, whether time jumps, and whether the run can go on ([`Model::decide`]). It
//! makes no system call, takes no lock, and writes to nothing but itself; what it has to know of
//! the program's memory and the kernel it reads through a [`World`]. So it runs in a test as it
//! does in a target. `sched` carries decisions out.
//!
//! **Ready threads.** Only threads that can make progress are chosen ([`Model::can_run`]), so
//! nobody is scheduled to find out that it still has to wait.
//!
//! **Does not go on.** If no thread can run, the model looks in this order for something that may
//! still happen: input, another process that shares what is waited for, a deadline, a thread
//! outside. Input is looked for only if somebody outside may send it ([`World::is_inside`]). If
//! there is nothing, the run is stuck ([`Decision::Stuck`]). A cycle of waiting threads
//! beside threads that can run does not end the run at once, since one of those may end the
//! program: see [`cycle`].
//!
//! **Time** is virtual: it advances with the steps, and jumps to the next deadline when nobody can
//! run. Beside threads that can run it jumps once these have had their [`share`] of steps, or as
//! far as [`Expiry`] allows it to make them [`late`].
//!
//! **The outside world.** What comes from outside (a child's exit, a system call that we do not
//! model) is accepted only when no other thread can run, so its timing does not affect the
//! order. Child processes come to rest first: see [`children`].

mod children;
mod cycle;
mod decide;
mod decision;
pub(crate) mod fairness;
pub(crate) mod follow;
mod late;
mod novelty;
pub(crate) mod object;
#[cfg(test)]
mod play;
pub(crate) mod policy;
pub(crate) mod polling;
mod schedule;
mod share;
mod shared;
#[cfg(test)]
mod tests;
pub(crate) mod thread;
mod wait;
mod world;

use alloc::boxed::Box;
use alloc::vec::Vec;

use raddle_trace::expiry::Expiry;
use raddle_trace::record::{Lock, Wake};

pub(crate) use self::children::Rest;
pub(crate) use self::cycle::Cycle;
pub(crate) use self::decision::{Decision, Look, Question};
use self::fairness::{Cause, Fairness};
use self::follow::Follow;
use self::novelty::Novelty;
use self::object::{Object, Objects};
use self::policy::{Candidate, Policy};
pub(crate) use self::schedule::{Departure, Item, Step};
use self::thread::{Seen, Thread, Wait};
pub(crate) use self::world::World;
use crate::random::Random;

/// Virtual time per step.
pub(crate) const STEP_NS: u64 = 20;
/// This many other steps make up for a yield without progress.
const STEPS_PER_YIELD: u64 = 1_000;
/// After this many yields without any progress, new values are looked for: see [`novelty`].
const BLIND_YIELDS_MAX: u32 = 1_000;

/// The state that decisions depend on.
pub(crate) struct Model {
    pub(crate) policy: Option<Box<dyn Policy>>,
    pub(crate) follow: Option<Follow>,
    pub(crate) threads: Vec<Thread>,
    /// invariant: sorted, and exactly the threads that have begun and not ended.
    pub(crate) live: Vec<u32>,
    pub(crate) objects: Objects,
    /// Virtual time in addition to that of the steps.
    pub(crate) clock: u64,
    /// Steps of all threads, as of the last time that the turn's steps were counted.
    pub(crate) steps: u64,
    /// Steps that a run may take before it gets its second chance; 0 for no limit.
    pub(crate) steps_max: u64,
    /// Steps that threads may spin, taking turns, without any progress.
    pub(crate) idle_max: u64,
    /// When the next timer fires whose time passes while all threads wait.
    pub(crate) timer: Option<u64>,
    /// The same, when it was first seen.
    timer_seen: Seen,
    /// When a deadline may expire although threads can run.
    pub(crate) expiry: Expiry,
    /// The thread that expired deadlines made latest, and by how much.
    pub(crate) latest: Option<(u32, u64)>,
    /// Nothing came from outside in the run that the schedule was made of.
    pub(crate) is_alone: bool,
    /// Child processes, which may write to our descriptors.
    pub(crate) n_processes: u32,
    /// Timers whose threads are due.
    pub(crate) n_expired: u32,
    /// Number of signals that the program has sent to itself.
    pub(crate) n_signals: u32,
    /// Threads take turns, since the run does not seem to end otherwise.
    pub(crate) fairness: Option<Fairness>,
    /// A cycle of waiting threads, while others can run.
    pub(crate) cycle: Option<Cycle>,
    /// Yields without progress.
    idle_yields: u32,
    /// Steps that have not yet made up for a yield.
    credit: u64,
    /// What threads that only yield have seen.
    novelty: Novelty,
    choices: Random,
    /// Rounds of barriers so far.
    n_rounds: u32,
    /// Jumps to a deadline while a thread waited for descriptors, since input last arrived from
    /// outside.
    n_graces: u32,
    runnable: Vec<Candidate>,
}

/// Why a run is over although threads can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Threads only spin, also when they take turns.
    Livelock,
    /// The steps are used up, also those of the second chance.
    Endless,
    /// A cycle of waiting threads still stands.
    Deadlock,
}

impl Model {
    pub(crate) const fn new() -> Self {
        Self {
            policy: None,
            follow: None,
            threads: Vec::new(),
            live: Vec::new(),
            objects: Objects::new(),
            clock: 0,
            steps: 0,
            steps_max: 0,
            idle_max: 0,
            timer: None,
            timer_seen: Seen::NONE,
            expiry: Expiry::FAIR,
            latest: None,
            is_alone: false,
            n_processes: 0,
            n_expired: 0,
            n_signals: 0,
            fairness: None,
            cycle: None,
            idle_yields: 0,
            credit: 0,
            novelty: Novelty::new(),
            choices: Random::new(0, 0),
            n_rounds: 0,
            n_graces: 0,
            runnable: Vec::new(),
        }
    }

    /// Sets the seed of choices that are no thread's turn.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.choices = Random::new(seed, 4);
    }

    /// From now on the thread can be scheduled.
    pub(crate) fn make_live(&mut self, id: u32) {
        let at = self.live.partition_point(|&other| other < id);
        self.live.insert(at, id);
    }

    /// The thread has ended.
    pub(crate) fn end(&mut self, id: u32) {
        let at = self.live.partition_point(|&other| other < id);
        self.live.remove(at);
        self.threads[id as usize].ended = true;
        self.idle_yields = 0;
    }

    /// The thread with this libc id that has not been joined.
    pub(crate) fn by_pthread(&self, pthread: u64) -> Option<u32> {
        self.threads
            .iter()
            .rposition(|thread| thread.pthread == pthread && !thread.gone)
            .map(|id| id as u32)
    }

    /// The model of the object at an address.
    pub(crate) fn object(&mut self, addr: u64, kind: Lock) -> &mut Object {
        self.objects.get_or_new(addr, kind)
    }

    /// A number for a round of a barrier.
    pub(crate) fn new_round(&mut self) -> u32 {
        self.n_rounds = self.n_rounds.wrapping_add(1);
        self.n_rounds
    }

    /// Threads that wait for a wake-up, in order of their numbers.
    pub(crate) fn waiters(&self, mut on: impl FnMut(Wait) -> bool) -> Vec<u32> {
        let waits = |&&id: &&u32| {
            let thread = &self.threads[id as usize];
            thread.woken.is_none() && on(thread.wait)
        };
        self.live.iter().filter(waits).copied().collect()
    }

    /// Wakes a waiting thread.
    pub(crate) fn wake(&mut self, thread: u32, how: Wake, by: u32) {
        self.threads[thread as usize].woken = Some((how, by));
    }

    /// Chooses one of `n` alternatives, by the schedule or at random.
    pub(crate) fn choose(&mut self, n: u32, world: &impl World) -> u32 {
        if n < 2 {
            return 0;
        }
        let followed = self.follow.as_mut().and_then(|follow| follow.choice(world));
        followed.unwrap_or_else(|| self.choices.below(u64::from(n)) as u32).min(n - 1)
    }

    /// Virtual nanoseconds since the start, as of the last count of steps.
    pub(crate) fn now(&self) -> u64 {
        self.clock + self.steps * STEP_NS
    }

    /// Counts steps that a thread has performed.
    pub(crate) fn count(&mut self, id: u32, n_steps: u64) {
        self.steps += n_steps;
        let thread = &mut self.threads[id as usize];
        thread.steps += n_steps;
        thread.stretch += n_steps;
    }

    /// A thread gives up its turn to let others go first.
    pub(crate) fn note_yield(&mut self, id: u32) {
        self.threads[id as usize].yielded = true;
        self.idle_yields += 1;
    }

    /// A thread gives up its turn for another reason, after so many steps: these make up for
    /// yields.
    pub(crate) fn note_work(&mut self, n_steps: u64, is_blocked: bool) {
        self.credit += n_steps;
        let repaid = (self.credit / STEPS_PER_YIELD).min(u64::from(u32::MAX)) as u32;
        self.credit %= STEPS_PER_YIELD;
        self.idle_yields = if is_blocked { 0 } else { self.idle_yields.saturating_sub(repaid) };
    }

    /// A thread finds a value in memory, or stores one. What is new in the last stretch of a schedule
    /// does not count, since others may be held back.
    #[inline]
    pub(crate) fn note_value(&mut self, addr: u64, value: impl FnOnce() -> u64) {
        let is_looking = self.idle_yields > BLIND_YIELDS_MAX && self.follow.is_none();
        if is_looking && self.novelty.is_new(addr, value()) {
            self.idle_yields = 0;
            self.fairness.take_if(|fairness| fairness.cause == Cause::Idle);
        }
    }

    /// Begins and ends the second chance of a run that does not seem to end. Returns why the run
    /// is over, if it is.
    pub(crate) fn check_limits(&mut self, world: &impl World) -> Option<Verdict> {
        if self.cycle_is_over(world) {
            return Some(Verdict::Deadlock);
        }
        let is_limited = self.fairness.is_some_and(|fairness| fairness.cause == Cause::Limit);
        if self.steps_max != 0 && self.steps > self.steps_max && !is_limited {
            self.be_fair(Cause::Limit, self.steps_max);
        }
        let (steps, fairness) = (self.steps, self.fairness.as_mut()?);
        if fairness.goes_on(steps) {
            return None;
        }
        match fairness.cause {
            Cause::Idle => Some(Verdict::Livelock),
            Cause::Limit => Some(Verdict::Endless),
            // The cycle says when.
            Cause::Cycle => None,
        }
    }

    /// From now on threads take turns.
    fn be_fair(&mut self, cause: Cause, n_steps: u64) {
        self.fairness = Some(Fairness::new(cause, self.steps, n_steps / 2));
    }

    /// The earliest deadline of a waiting thread or a timer.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.next_awaited().map(|(deadline, _)| deadline)
    }

    /// Nanoseconds to the next deadline, if there is one ahead.
    fn ns_to_deadline(&self) -> Option<u64> {
        self.next_deadline()?.checked_sub(self.now()).filter(|&ns| ns > 0)
    }

    /// Advances time.
    pub(crate) fn jump(&mut self, ns: u64, world: &impl World) {
        self.note_late(ns, world);
        self.idle_yields = 0;
        self.clock += ns;
        for &id in &self.live {
            self.threads[id as usize].forget_progress();
        }
        self.timer_seen = Seen::NONE;
    }

    /// Ends the thread's stretch; returns how many steps it had.
    pub(crate) fn take_stretch(&mut self, id: u32) -> u64 {
        if let Some(follow) = &mut self.follow {
            follow.begin_stretch();
        }
        core::mem::take(&mut self.threads[id as usize].stretch)
    }

    /// Gives a thread its budget of steps. `to_timer` is the number of steps to the next timer: it
    /// fires at its step, whichever thread runs.
    pub(crate) fn grant(&mut self, id: u32, to_timer: u64) {
        let budget = match (&self.follow, &self.fairness, &mut self.policy) {
            (Some(follow), ..) => follow.budget(self.threads[id as usize].stretch),
            (None, Some(fairness), _) => fairness.budget(self.steps),
            (None, None, Some(policy)) => policy.quantum(self.steps).max(1),
            (None, None, None) => 1,
        };
        let to_verdict =
            self.cycle.map_or(u64::MAX, |cycle| cycle.until - self.steps.min(cycle.until));
        let budget = budget.min(to_timer.max(1)).min(to_verdict.max(1));
        let is_free = self.follow.is_none() && self.fairness.is_none();
        let thread = &mut self.threads[id as usize];
        thread.budget =
            if is_free && thread.spin.suspected() { budget.min(LOOK_STEPS) } else { budget };
        thread.yielded = false;
    }
}

/// Steps granted at a time to a thread that may be spinning.
const LOOK_STEPS: u64 = 16;
