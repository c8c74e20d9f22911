//! One thread at a time.
//!
//! A thread that reaches a visible operation states what it needs for it ([`Wait`]). It continues
//! if it holds the turn, has steps left, and the operation can be performed; otherwise it passes
//! the turn to a thread that the policy chooses among the runnable ones, and sleeps on its own
//! futex until the turn comes back. Only threads that can make progress are scheduled, so an
//! empty runnable set is a deadlock.
//!
//! Plain accesses are steps too, but cost only a countdown: a turn comes with a budget of steps,
//! and the policy decides again only when it is used up.
//!
//! Time is virtual: it advances with the steps, and jumps to the next deadline when nobody can
//! run.
//!
//! **Deadlocks.** Since only threads that can make progress are chosen, an empty runnable set
//! is a deadlock and is reported at once. A cycle of waiting threads is found when it closes,
//! even if other threads could go on forever.
//!
//! **One processor.** All threads run on one processor. Passing the turn by futex takes 1.2 µs
//! between two threads of one processor, and took 15 µs between two processors of the machine
//! on which this was measured. `interpose::affinity` shows the program the processors that it
//! would have otherwise.
//!
//! **Exiting threads.** After a thread exits, nobody runs until the kernel confirms that it is
//! gone. Otherwise stacks and malloc arenas would be reused in a different order each time.
//!
//! **The outside world.** What comes from outside (a child's exit, a system call that we do not
//! model) is accepted only when no other thread can run, so its timing does not affect the
//! order.

mod deadlock;
mod fairness;
mod follow;
pub(crate) mod object;
mod peers;
pub(crate) mod policy;
pub(crate) mod thread;
pub(crate) mod timer;
mod turn;
mod watchdog;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use raddle_trace::control::{Deliver, EXTERNAL, Ending, Policy as Code, State};
use raddle_trace::record::{Kind, Lock, Switch, Wake};

use self::fairness::{Cause, Fairness};
use self::follow::Follow;
use self::object::{NOBODY, Object, Objects};
use self::policy::{Candidate, Policy, Situation};
use self::thread::{NEVER, Thread, Wait};
use self::timer::Timers;
pub(crate) use self::turn::{
    adopt, begin, begin_cancellation, cancel_point, deliver, end, first, outside, visible,
    yield_turn,
};
use crate::guarded::Guarded;
use crate::random::Random;
use crate::{die, lane, shared, signals, sys, tls};

/// The scheduler. The holder of its lock may change it, and only the thread with the turn may
/// decide.
pub(crate) static SCHED: Guarded<Sched> = Guarded::new(Sched::new());

/// Threads that returned from outside and wait for the scheduler's lock.
static RETURNING: AtomicU32 = AtomicU32::new(0);

/// Virtual time per step.
const STEP_NS: u64 = 20;
/// Each thread that can run performs this many steps before time jumps to a deadline of another.
/// Few enough that a second of sleep beside busy threads is cheap, where steps alone would take
/// 50 million, and many more than what a thread does natively while another wakes up.
const EXPIRY_STEPS: u64 = 100_000;
/// Virtual time per clock reading, so that a loop that polls the clock ends.
const READING_NS: u64 = 1_000;
/// After this many consecutive steps, the other threads go first once, whatever the policy says.
const STRETCH_MAX: u64 = 500_000;
/// Steps granted at a time to a thread that may be spinning.
const LOOK_STEPS: u64 = 16;
/// After this many yields without any progress, threads take turns: see [`fairness`].
const IDLE_YIELDS_MAX: u32 = 10_000;
/// This many other steps make up for one such yield.
const STEPS_PER_YIELD: u64 = 1_000;

/// Real time for a process outside to write what a thread waits for, before virtual time jumps to
/// a deadline.
const GRACE_NS: u64 = 2_000_000;
/// After this many unsuccessful grace periods, only one jump in as many grants another.
const GRACES: u32 = 16;

/// The state of the scheduler.
pub(crate) struct Sched {
    policy: Option<Box<dyn Policy>>,
    follow: Option<Follow>,
    pub(crate) threads: Vec<Thread>,
    /// invariant: sorted, and exactly the threads that have begun and not ended.
    live: Vec<u32>,
    current: Option<u32>,
    /// The thread that gave up the turn last, and why, until the next grant records it.
    leaving: Option<Leaving>,
    /// Kernel id of a thread that is exiting; nobody runs until it is gone.
    exiting: u32,
    /// Time was advanced although somebody could run, and its mark is not yet closed.
    marked: bool,
    /// Virtual time in addition to that of the steps.
    clock: u64,
    steps: u64,
    steps_max: u64,
    /// Steps that threads may spin, taking turns, without any progress.
    idle_max: u64,
    /// Threads take turns, since the run does not seem to end otherwise.
    fairness: Option<Fairness>,
    pub(crate) objects: Objects,
    idle_yields: u32,
    /// Steps that have not yet made up for a yield.
    credit: u64,
    choices: Random,
    recorded: bool,
    early_sleepers: bool,
    /// Child processes, which may write to our descriptors.
    pub(crate) n_processes: u32,
    /// Jumps to a deadline while a thread waited for descriptors, since input last arrived from
    /// outside.
    n_graces: u32,
    /// libc's timers that create threads: they run in real time.
    pub(crate) n_sources: u32,
    /// Number of signals that the program has sent to itself.
    pub(crate) n_signals: u32,
    /// Rounds of barriers so far.
    n_rounds: u32,
    /// Signals that were pending when we last looked for one from outside.
    pending: u64,
    pub(crate) timers: Timers,
    runnable: Vec<Candidate>,
    watch: watchdog::Watch,
}

struct Leaving {
    reason: Switch,
    pc: u64,
    stretch: u64,
}

/// The next holder of the turn.
enum Next {
    Run(u32),
    /// Nobody, until a thread returns from outside.
    Idle,
}

impl Sched {
    const fn new() -> Self {
        Self {
            policy: None,
            follow: None,
            threads: Vec::new(),
            live: Vec::new(),
            current: None,
            leaving: None,
            exiting: 0,
            marked: false,
            clock: 0,
            steps: 0,
            steps_max: 0,
            idle_max: 0,
            fairness: None,
            objects: Objects::new(),
            idle_yields: 0,
            credit: 0,
            choices: Random::new(0, 0),
            recorded: false,
            early_sleepers: false,
            n_processes: 0,
            n_graces: 0,
            n_sources: 0,
            n_signals: 0,
            n_rounds: 0,
            pending: 0,
            timers: Timers::new(),
            runnable: Vec::new(),
            watch: watchdog::Watch::new(),
        }
    }

    /// Applies the plan; the calling thread is the main thread and holds the turn.
    pub(crate) fn start(&mut self) {
        let plan = &shared::control().plan;
        let seed = plan.seed.load(Ordering::Relaxed);
        let code = |word: &AtomicU32| Code::from_u8(word.load(Ordering::Relaxed) as u8);
        let chosen = code(&plan.policy).unwrap_or(Code::Random);
        let depth = plan.depth.load(Ordering::Relaxed);
        let steps_expected = plan.steps_expected.load(Ordering::Relaxed);
        let options = plan.options.load(Ordering::Relaxed);
        if chosen == Code::Follow {
            self.follow = Some(Follow::new(options & raddle_trace::control::STRICT != 0));
        }
        let after_schedule = if chosen == Code::Follow { code(&plan.policy_after) } else { None };
        self.policy =
            Some(policy::policy(after_schedule.unwrap_or(chosen), seed, depth, steps_expected));
        self.steps_max = plan.steps_max.load(Ordering::Relaxed);
        self.idle_max = plan.idle_max.load(Ordering::Relaxed);
        self.choices = Random::new(seed, 4);
        self.early_sleepers = options & raddle_trace::control::EARLY_SLEEPERS != 0;
        let deliver = Deliver::from_u8(plan.deliver.load(Ordering::Relaxed) as u8);
        self.recorded = matches!(deliver, Some(Deliver::Schedule | Deliver::Trace));
        let main = self.add_thread(NOBODY, (0, 0));
        self.live.push(main);
        self.threads[main as usize].kernel_id = sys::gettid();
        self.threads[main as usize].tls = tls::address();
        // SAFETY: asks for the calling thread's own name.
        self.threads[main as usize].pthread = unsafe { libc::pthread_self() } as u64;
        shared::slot(main).kernel_id.store(sys::gettid(), Ordering::Relaxed);
        shared::slot(main).state.store(State::Ready as u32, Ordering::Relaxed);
        self.leaving = Some(Leaving { reason: Switch::Start, pc: 0, stretch: 0 });
    }

    /// Adds a new thread, which is not live yet.
    pub(crate) fn add_thread(&mut self, parent: u32, start: (usize, usize)) -> u32 {
        let id = self.threads.len() as u32;
        if id as usize >= raddle_trace::control::THREADS_MAX {
            die!("more than {} threads", raddle_trace::control::THREADS_MAX);
        }
        let slot = shared::slot(id);
        slot.parent.store(parent, Ordering::Relaxed);
        slot.holder.store(NOBODY, Ordering::Relaxed);
        if parent != NOBODY {
            let n_before = shared::slot(parent).n_children.fetch_add(1, Ordering::Relaxed);
            slot.ordinal.store(n_before + 1, Ordering::Relaxed);
        }
        self.threads.push(Thread::new(start));
        shared::control().n_threads.store(id + 1, Ordering::Release);
        id
    }

    /// Undoes [`Sched::add_thread`] if the thread could not be created.
    pub(crate) fn drop_thread(&mut self, id: u32) {
        assert!(id as usize + 1 == self.threads.len(), "internal bug: thread {id} is not the last");
        self.threads.pop();
        shared::control().n_threads.store(id, Ordering::Release);
    }

    /// From now on the thread can be scheduled.
    pub(crate) fn make_live(&mut self, id: u32) {
        let at = self.live.partition_point(|&other| other < id);
        self.live.insert(at, id);
    }

    /// The thread with this libc id that has not been joined.
    pub(crate) fn by_pthread(&self, pthread: u64) -> Option<u32> {
        self.threads
            .iter()
            .rposition(|thread| thread.pthread == pthread && !thread.gone)
            .map(|id| id as u32)
    }

    /// Virtual nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        let here = if tls::get(tls::TURN) == 1 { tls::performed() } else { 0 };
        self.clock + (self.steps + here) * STEP_NS
    }

    /// The same for a program that reads the clock, which takes time.
    pub(crate) fn read_clock(&mut self) -> u64 {
        self.clock += READING_NS;
        self.heed_timers();
        self.now()
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

    /// Chooses one of `n` alternatives, by the schedule or at random; deterministic in a replay.
    pub(crate) fn choose(&mut self, n: u32) -> u32 {
        if n < 2 {
            return 0;
        }
        let followed = self.follow.as_mut().and_then(Follow::choice);
        let taken = followed.unwrap_or_else(|| self.choices.below(u64::from(n)) as u32).min(n - 1);
        if self.recorded {
            lane::append_all(Kind::Choice, n.min(255) as u8, u64::from(taken), 0, 0, &[]);
        }
        taken
    }

    /// Makes the policy decide again at the running thread's next operation, if it wants to know
    /// when others become runnable.
    pub(crate) fn poke(&mut self, me: u32) {
        if self.follow.is_none() && self.policy.as_ref().is_some_and(|policy| policy.eager()) {
            self.fold(me);
        }
    }

    /// Accounts for the steps that the running thread has performed and revokes the rest. Returns
    /// how many there were.
    fn fold(&mut self, me: u32) -> u64 {
        let done = tls::performed();
        tls::set(tls::BUDGET, 0);
        tls::set(tls::COUNTDOWN, 0);
        self.steps += done;
        let thread = &mut self.threads[me as usize];
        thread.steps += done;
        thread.stretch += done;
        shared::slot(me).steps.store(thread.steps, Ordering::Relaxed);
        shared::control().steps.store(self.steps, Ordering::Relaxed);
        self.check_limits(me);
        done
    }

    /// Begins and ends the second chance of a run that does not seem to end.
    fn check_limits(&mut self, me: u32) {
        let is_limited = self.fairness.is_some_and(|fairness| fairness.cause == Cause::Limit);
        if self.steps_max != 0 && self.steps > self.steps_max && !is_limited {
            self.be_fair(Cause::Limit, self.steps_max);
        }
        let steps = self.steps;
        if self.fairness.as_mut().is_some_and(|fairness| !fairness.goes_on(steps)) {
            self.livelock(me);
        }
    }

    /// From now on threads take turns.
    fn be_fair(&mut self, cause: Cause, n_steps: u64) {
        self.fairness = Some(Fairness::new(cause, self.steps, n_steps / 2));
    }

    /// How the thread's wait would end now; none if it continues.
    fn wake_of(&self, id: u32, wait: Wait, deadline: u64) -> Option<Wake> {
        let thread = &self.threads[id as usize];
        // A pending cancellation comes first even if the operation could be performed. But a
        // wake-up that was received would be lost, and libc joins a thread that has ended.
        let comes_too_late = thread.woken.is_some()
            || matches!(wait, Wait::Join(other) if self.threads[other as usize].ended);
        if thread.is_cancelled() && wait.cancellable() && !comes_too_late {
            Some(Wake::Cancelled)
        } else if self.ready(id, wait) {
            Some(thread.woken.map_or(Wake::Woken, |(how, _)| how))
        } else if thread.interrupted && wait.interruptible() {
            Some(Wake::Interrupted)
        } else if deadline <= self.now() {
            Some(Wake::TimedOut)
        } else {
            None
        }
    }

    /// Whether the thread can perform its operation or a signal handler.
    fn can_run(&self, id: u32) -> bool {
        let thread = &self.threads[id as usize];
        thread.interrupted || self.wake_of(id, thread.wait, thread.deadline).is_some()
    }

    fn ready(&self, id: u32, wait: Wait) -> bool {
        let object = |at: u64| self.objects.get(&at);
        match wait {
            Wait::Nothing => true,
            Wait::Lock(at) | Wait::WriteLock(at) => object(at).is_none_or(Object::is_free),
            Wait::ReadLock(at) => object(at).is_none_or(|lock| {
                let waiting_writer =
                    |&other: &u32| self.threads[other as usize].wait == Wait::WriteLock(at);
                lock.is_readable() && !(lock.writers_first && self.live.iter().any(waiting_writer))
            }),
            Wait::Cond(_) | Wait::Futex(..) => self.threads[id as usize].woken.is_some(),
            Wait::Semaphore(at) => semaphore_value(at) > 0,
            Wait::Barrier(at, round) => object(at).is_none_or(|barrier| barrier.round != round),
            Wait::Join(other) => self.threads[other as usize].ended,
            // glibc: bit 0 of the control word means «in progress».
            Wait::Once(at) => peek32(at) & 1 == 0,
            // Itanium C++ ABI as in libstdc++: the second byte means «in progress».
            Wait::Guard(at) => peek32(at) & 0xff00 == 0,
            Wait::Unwaited(at) => self.waiters(|wait| wait == Wait::Cond(at)).is_empty(),
            Wait::Descriptors(at, n) => any_ready(at, n, 0),
            Wait::SignalOf(n_seen) => self.n_signals != n_seen,
            Wait::Sleep | Wait::Signal | Wait::Outside | Wait::Back => false,
        }
    }

    fn collect_runnable(&mut self) {
        let mut runnable = core::mem::take(&mut self.runnable);
        runnable.clear();
        for &id in &self.live {
            let thread = &self.threads[id as usize];
            if self.can_run(id) {
                let (addr, write) = thread.access;
                runnable.push(Candidate { thread: id, addr, write });
            }
        }
        self.runnable = runnable;
    }

    /// Decides which thread runs next after `last` gave up the turn for `reason`.
    fn next(&mut self, last: Option<u32>, mut reason: Switch, pc: u64) -> Next {
        // A thread that spins to the end of the run is given up by the same rule as without a
        // schedule.
        let is_idle = self.idle_yields > IDLE_YIELDS_MAX;
        self.follow.take_if(|follow| is_idle && follow.is_in_last_stretch());
        if self.follow.is_some() {
            if let Some(next) = self.next_followed(last, reason, pc) {
                return next;
            }
            self.follow = None;
        }
        // A thread that only works, for a long time, may still be waiting for others.
        if let (Switch::Preempt, Some(last)) = (reason, last) {
            let thread = &mut self.threads[last as usize];
            if thread.stretch >= STRETCH_MAX {
                thread.yielded = true;
                reason = Switch::Yielded;
            }
        }
        loop {
            self.fire_timers();
            self.collect_runnable();
            if self.early_sleepers && self.choices.below(16) == 0 {
                self.wake_a_sleeper(last, reason, pc);
            }
            if self.idle_yields == 0 && self.fairness.is_some_and(|it| it.cause == Cause::Idle) {
                self.fairness = None;
            }
            let yielded = |thread: u32, threads: &[Thread]| threads[thread as usize].yielded;
            if self.runnable.iter().all(|candidate| yielded(candidate.thread, &self.threads))
                && self.call_back()
            {
                continue;
            }
            if self.runnable.is_empty() {
                if let Some(next) = self.wait_for_something(last) {
                    return next;
                }
                continue;
            }
            if self.may_expire() && self.jump_to_next_deadline() {
                self.mark_jump(last, reason, pc);
                continue;
            }
            if self.fairness.is_some() {
                return Next::Run(Fairness::choose(&self.runnable, last));
            }
            if self.runnable.iter().all(|candidate| yielded(candidate.thread, &self.threads)) {
                if self.idle_yields > 200 && self.jump_to_next_deadline() {
                    self.mark_jump(last, reason, pc);
                    self.idle_yields = 0;
                    continue;
                }
                if self.idle_yields > IDLE_YIELDS_MAX && self.fairness.is_none() {
                    match self.idle_max {
                        0 => self.idle_yields = 1,
                        most => self.be_fair(Cause::Idle, most),
                    }
                }
                for candidate in &self.runnable {
                    self.threads[candidate.thread as usize].yielded = false;
                }
                // A thread that has just yielded goes after the others.
                if reason == Switch::Yielded && self.runnable.len() > 1 {
                    self.runnable.retain(|candidate| Some(candidate.thread) != last);
                }
            } else {
                self.runnable.retain(|candidate| !yielded(candidate.thread, &self.threads));
            }
            let situation = Situation { runnable: &self.runnable, last, reason, steps: self.steps };
            let Some(policy) = self.policy.as_mut() else { die!("internal bug: no policy") };
            return Next::Run(policy.choose(&situation));
        }
    }

    /// Whether a deadline may expire although threads can run: each of them has had its share of
    /// time since the last one did.
    fn may_expire(&self) -> bool {
        let had_its_share = |candidate: &Candidate| {
            let thread = &self.threads[candidate.thread as usize];
            thread.steps.saturating_sub(thread.steps_at_jump) >= EXPIRY_STEPS
        };
        self.runnable.iter().all(had_its_share)
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

    /// Nobody can run: lets time pass, waits for input, or finds that there is nothing to wait
    /// for. None means try again.
    fn wait_for_something(&mut self, last: Option<u32>) -> Option<Next> {
        let waits = |wait: fn(Wait) -> bool| {
            self.live.iter().any(|&id| wait(self.threads[id as usize].wait))
        };
        let on_descriptors = waits(|wait| matches!(wait, Wait::Descriptors(..)));
        let on_outside = self.n_sources > 0
            || waits(|wait| matches!(wait, Wait::Outside | Wait::Signal | Wait::SignalOf(_)));
        let deadline = self.next_deadline();
        if on_descriptors {
            // A process outside may still write. A deadline grants it real time only if there is
            // one: a child process.
            let leaves = |id: u32| self.threads[id as usize].wait == Wait::Outside;
            let real_ns = match deadline {
                // Who decides has yet to make its own call. Others look for input meanwhile.
                None if last.is_some_and(leaves) => return Some(Next::Idle),
                None => NEVER,
                Some(_) if self.n_processes == 0 => self.grace_ns(),
                Some(deadline) => deadline.saturating_sub(self.now()),
            };
            if real_ns > 0 && self.wait_for_descriptors(real_ns) {
                self.n_graces = 0;
                shared::flag(EXTERNAL);
                return None;
            }
            if RETURNING.load(Ordering::SeqCst) > 0 {
                return Some(Next::Idle);
            }
        }
        if self.may_be_helped() {
            let real_ns = deadline.map_or(NEVER, |deadline| deadline.saturating_sub(self.now()));
            if self.wait_for_help(real_ns) {
                shared::flag(EXTERNAL);
                return None;
            }
            if RETURNING.load(Ordering::SeqCst) > 0 {
                return Some(Next::Idle);
            }
        }
        if deadline.is_some() {
            self.jump_to_next_deadline();
            return None;
        }
        if on_outside {
            return Some(Next::Idle);
        }
        self.deadlock(last)
    }

    /// Real time that this jump grants.
    fn grace_ns(&mut self) -> u64 {
        self.n_graces += 1;
        let given = self.n_graces <= GRACES || self.n_graces.is_multiple_of(GRACES);
        if given { GRACE_NS } else { 0 }
    }

    /// Waits in real time until a descriptor that a thread waits for is ready, or a signal from
    /// outside arrives.
    fn wait_for_descriptors(&mut self, ns: u64) -> bool {
        let start = sys::monotonic_ns();
        loop {
            for &id in &self.live {
                let wait = self.threads[id as usize].wait;
                if matches!(wait, Wait::Descriptors(at, n) if any_ready(at, n, 1)) {
                    return true;
                }
            }
            if self.notice_signals() {
                return true;
            }
            if RETURNING.load(Ordering::SeqCst) > 0 || sys::monotonic_ns() - start >= ns {
                return false;
            }
        }
    }

    /// Registers signals that have arrived from outside; true if one may concern a thread.
    fn notice_signals(&mut self) -> bool {
        let mut any = false;
        for &id in &self.live {
            let thread = &mut self.threads[id as usize];
            let is_new = !thread.interrupted && thread.wait != Wait::Outside;
            if is_new && signals::are_due(thread.tls) {
                thread.interrupted = true;
                any = true;
            }
        }
        // A thread that waits for a blocked signal looks by itself which one it is.
        let pending = sys::pending_signals();
        if pending & !self.pending != 0 {
            self.n_signals += 1;
            any = true;
        }
        self.pending = pending;
        any
    }

    fn next_deadline(&self) -> Option<u64> {
        let deadlines = self.live.iter().map(|&id| &self.threads[id as usize]);
        let waiting =
            deadlines.filter(|thread| thread.wait != Wait::Nothing).map(|thread| thread.deadline);
        waiting.chain(self.timers.next_deadline()).min().filter(|&deadline| deadline != NEVER)
    }

    /// Advances time to the next deadline; false if there is none.
    fn jump_to_next_deadline(&mut self) -> bool {
        let now = self.now();
        let Some(deadline) = self.next_deadline().filter(|&deadline| deadline > now) else {
            return false;
        };
        self.jump(deadline - now);
        true
    }

    fn jump(&mut self, by: u64) {
        self.clock += by;
        for &id in &self.live {
            let thread = &mut self.threads[id as usize];
            thread.steps_at_jump = thread.steps;
        }
        let now = self.now();
        shared::control().clock_ns.store(now, Ordering::Relaxed);
        if shared::mode() == shared::TRACE {
            lane::append_all(Kind::Clock, 0, 0, 0, 0, &[now]);
        }
    }

    fn wake_a_sleeper(&mut self, last: Option<u32>, reason: Switch, pc: u64) {
        let sleeper =
            self.live.iter().copied().find(|&id| self.threads[id as usize].wait == Wait::Sleep);
        if sleeper.is_some() && self.jump_to_next_deadline() {
            self.mark_jump(last, reason, pc);
            self.collect_runnable();
        }
    }

    /// Records that time jumped although somebody could run, which a follower of the schedule
    /// could not know otherwise: the stretch ends here, followed by a stretch of no steps of the
    /// same thread.
    fn mark_jump(&mut self, last: Option<u32>, reason: Switch, pc: u64) {
        let Some(last) = last else { return };
        self.close_mark(last, reason, pc);
        let stretch = self.take_stretch(last);
        if self.recorded {
            lane::append_all(Kind::Switch, reason as u8, u64::from(last), 0, pc, &[stretch]);
        }
        self.marked = true;
    }

    /// Ends the thread's stretch; returns how many steps it had.
    fn take_stretch(&mut self, thread: u32) -> u64 {
        if let Some(follow) = &mut self.follow {
            follow.begin_stretch();
        }
        core::mem::take(&mut self.threads[thread as usize].stretch)
    }

    /// Ends the stretch of no steps, if one has begun.
    fn close_mark(&mut self, thread: u32, reason: Switch, pc: u64) {
        if core::mem::take(&mut self.marked) && self.recorded {
            lane::append_all(Kind::Switch, reason as u8, u64::from(thread), 0, pc, &[0]);
        }
    }

    /// Grants the turn to a thread, with a budget of steps, and records it.
    fn grant(&mut self, id: u32) {
        if let Some(Leaving { reason, pc, stretch }) = self.leaving.take() {
            if self.recorded {
                lane::append_all(Kind::Switch, reason as u8, u64::from(id), 0, pc, &[stretch]);
            }
            let control = shared::control();
            control.switches.fetch_add(1, Ordering::Relaxed);
            self.marked = false;
        } else {
            self.close_mark(id, Switch::Preempt, self.threads[id as usize].pc);
        }
        let budget = match (&self.follow, &self.fairness, &mut self.policy) {
            (Some(follow), ..) => follow.budget(self.threads[id as usize].stretch),
            (None, Some(fairness), _) => fairness.budget(self.steps),
            (None, None, Some(policy)) => policy.quantum(self.steps).max(1),
            (None, None, None) => 1,
        };
        // A timer fires at its step, whichever thread runs.
        let budget = budget.min(self.steps_to_timer().max(1));
        let thread = &mut self.threads[id as usize];
        let looked_at = self.follow.is_none() && self.fairness.is_none() && thread.spin.suspected();
        thread.budget = if looked_at { budget.min(LOOK_STEPS) } else { budget };
        thread.yielded = false;
        self.current = Some(id);
    }

    /// Steps until the next timer is due.
    fn steps_to_timer(&self) -> u64 {
        self.ns_to_timer().div_ceil(STEP_NS)
    }

    /// Shortens the running thread's budget to the next timer, after one was set or the clock
    /// advanced by itself: a timer fires at its step, wherever a budget would have ended.
    pub(crate) fn heed_timers(&mut self) {
        let left = (tls::get(tls::COUNTDOWN) as i64).max(0) as u64;
        let heeded = left.min(self.steps_to_timer());
        if tls::get(tls::TURN) == 1 && heeded < left {
            tls::set(tls::BUDGET, tls::get(tls::BUDGET) - (left - heeded));
            tls::set(tls::COUNTDOWN, heeded);
        }
    }

    fn publish(&self, id: u32) {
        let thread = &self.threads[id as usize];
        let slot = shared::slot(id);
        let (state, mut object) = thread.wait.published();
        if let Wait::Descriptors(at, 1..) = thread.wait {
            object = u64::from(peek32(at));
        }
        slot.pc.store(thread.pc, Ordering::Relaxed);
        slot.object.store(object, Ordering::Relaxed);
        slot.state.store(state as u32, Ordering::Relaxed);
    }

    /// The run had its second chance.
    fn livelock(&self, me: u32) -> ! {
        let ending = match self.fairness.map(|fairness| fairness.cause) {
            Some(Cause::Idle) => Ending::Livelock,
            Some(Cause::Limit) | None => Ending::Endless,
        };
        die::stop(ending, me, self.threads[me as usize].pc, 0)
    }
}

/// Wakes the thread that was granted the turn.
fn hand_to(id: u32) {
    let slot = shared::slot(id);
    slot.turn.store(1, Ordering::Release);
    sys::futex_wake(&slot.turn, false);
}

fn peek32(at: u64) -> u32 {
    // SAFETY: the address of an object that the program passed to us as such; read as the
    // program's own threads would.
    unsafe { (*(at as *const AtomicU32)).load(Ordering::Relaxed) }
}

/// The value of a semaphore: glibc keeps it in the lower half of the first word.
pub(crate) fn semaphore_value(at: u64) -> u32 {
    peek32(at)
}

fn any_ready(at: u64, n: u32, ms: i32) -> bool {
    // SAFETY: a thread of ours waits with these on its stack and does not touch them.
    let descriptors =
        unsafe { core::slice::from_raw_parts_mut(at as *mut libc::pollfd, n as usize) };
    sys::poll(descriptors, ms) > 0
}
