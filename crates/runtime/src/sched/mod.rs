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
//! [`model`] decides who that is, when time jumps, and when the run cannot go on. This module and
//! its other children carry that out: they hold the turn's futexes, count steps, record switches,
//! and wait in real time.
//!
//! **One processor.** All threads run on one processor. Passing the turn by futex takes 1.2 µs
//! between two threads of one processor, and took 15 µs between two processors of the machine
//! on which this was measured. `interpose::affinity` shows the program the processors that it
//! would have otherwise.
//!
//! **Exiting threads.** After a thread exits, nobody runs until the kernel confirms that it is
//! gone. Otherwise stacks and malloc arenas would be reused in a different order each time.

mod deadlock;
mod kin;
mod model;
mod peers;
mod target;
pub(crate) mod timer;
mod turn;
mod watchdog;

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

use raddle_trace::control::{Deliver, Ending, LEFT, Outside, Policy as Code, State, TOO_LATE};
use raddle_trace::expiry::Expiry;
use raddle_trace::record::{Kind, Switch};

use self::kin::Kin;
use self::model::follow::Follow;
use self::model::object::NOBODY;
use self::model::policy;
use self::model::polling::READING_NS;
use self::model::thread::{Thread, Wait};
use self::model::{Decision, Departure, Look, Model, Question, STEP_NS, Verdict};
pub(crate) use self::model::{object, thread};
pub(crate) use self::peers::{observe, rest};
use self::target::{Target, any_ready, peek32};
pub(crate) use self::target::{Which, semaphore_value};
use self::timer::Timers;
pub(crate) use self::turn::{
    adopt, begin, begin_cancellation, cancel_point, deliver, end, first, outside, visible,
    yield_turn,
};
use crate::guarded::Guarded;
use crate::{die, lane, modules, shared, signals, sys, tls};

/// The scheduler. The holder of its lock may change it, and only the thread with the turn may
/// decide.
pub(crate) static SCHED: Guarded<Sched> = Guarded::new(Sched::new());

/// Threads that returned from outside and wait for the scheduler's lock.
static RETURNING: AtomicU32 = AtomicU32::new(0);

/// The scheduler: its model, and what it takes to carry out decisions.
pub(crate) struct Sched {
    model: Model,
    current: Option<u32>,
    /// The thread that gave up the turn last, and why, until the next grant records it.
    leaving: Option<Leaving>,
    /// Kernel id of a thread that is exiting; nobody runs until it is gone.
    exiting: u32,
    /// Time was advanced although somebody could run, and its mark is not yet closed.
    marked: bool,
    recorded: bool,
    /// Signals that were pending when we last looked for one from outside.
    pending: u64,
    pub(crate) timers: Timers,
    pub(crate) kin: Kin,
    /// A child that has ended, until a thread can be told by SIGCHLD.
    pub(crate) ended_child: Option<u32>,
    watch: watchdog::Watch,
}

/// Those who model an operation read and change the model.
impl Deref for Sched {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}

impl DerefMut for Sched {
    fn deref_mut(&mut self) -> &mut Model {
        &mut self.model
    }
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
            model: Model::new(),
            current: None,
            leaving: None,
            exiting: 0,
            marked: false,
            recorded: false,
            pending: 0,
            timers: Timers::new(),
            kin: Kin::new(),
            ended_child: None,
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
            let is_strict = options & raddle_trace::control::STRICT != 0;
            let follow = self.follow.insert(Follow::new(is_strict, &Target));
            if options & raddle_trace::control::BY_SITES != 0 {
                follow.by_sites();
            }
        }
        self.is_alone = options & raddle_trace::control::ALONE != 0;
        let after_schedule = if chosen == Code::Follow { code(&plan.policy_after) } else { None };
        self.policy =
            Some(policy::policy(after_schedule.unwrap_or(chosen), seed, depth, steps_expected));
        self.steps_max = plan.steps_max.load(Ordering::Relaxed);
        self.idle_max = plan.idle_max.load(Ordering::Relaxed);
        self.seed(seed);
        self.expiry = Expiry {
            n_steps: plan.expiry_steps.load(Ordering::Relaxed),
            delay_ns_max: plan.delay_ns_max.load(Ordering::Relaxed),
        };
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
        let parent = shared::slot(id).parent.load(Ordering::Relaxed);
        shared::slot(parent).n_children.fetch_sub(1, Ordering::Relaxed);
        shared::control().n_threads.store(id, Ordering::Release);
    }

    /// Virtual nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        let here = if tls::get(tls::TURN) == 1 { tls::performed() } else { 0 };
        self.model.now() + here * STEP_NS
    }

    /// The same for a program that reads the clock, which takes time.
    pub(crate) fn read_clock(&mut self) -> u64 {
        let here = tls::performed();
        self.clock += match tls::thread() {
            Some(me) => {
                let thread = &mut self.threads[me as usize];
                thread.polling.reading_ns(thread.steps + here)
            }
            None => READING_NS,
        };
        self.heed_timers();
        self.now()
    }

    /// Chooses one of `n` alternatives, by the schedule or at random; deterministic in a replay.
    pub(crate) fn choose(&mut self, n: u32) -> u32 {
        let taken = self.model.choose(n, &Target);
        if self.recorded && n > 1 {
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
        self.count(me, done);
        shared::slot(me).steps.store(self.threads[me as usize].steps, Ordering::Relaxed);
        shared::control().steps.store(self.steps, Ordering::Relaxed);
        if let Some(verdict) = self.check_limits(&Target) {
            self.over(verdict, me);
        }
        done
    }

    /// Decides which thread runs next after `last` gave up the turn for `reason`.
    fn next(&mut self, last: Option<u32>, reason: Switch, pc: u64) -> Next {
        let mut question = Question::new(last, reason, pc);
        loop {
            self.fire_timers();
            match self.model.decide(&mut question, &Target) {
                Decision::Run(id) => return Next::Run(id),
                Decision::Idle => return Next::Idle,
                Decision::Jump { ns, marked } => {
                    if ns > 0 {
                        self.jump(ns);
                    }
                    if marked {
                        self.mark_jump(last, question.reason, pc);
                    }
                }
                Decision::Look { what: Look::Rest, .. } => {
                    let rest = self.come_to_rest();
                    let have_run = self.kin.have_run();
                    self.model.rested(&mut question, rest, have_run, &Target);
                }
                Decision::Look { what, ns } => {
                    if ns > 0 && self.look(what, ns) {
                        self.model.found(&mut question, what);
                    } else if RETURNING.load(Ordering::SeqCst) > 0 {
                        return Next::Idle;
                    }
                }
                Decision::Stuck => self.deadlock(last),
                Decision::Depart(departure) => self.depart(departure),
                Decision::TooLate(departure) => {
                    shared::flag(TOO_LATE);
                    self.depart(departure);
                }
            }
        }
    }

    /// Looks for something in real time; returns whether it came.
    fn look(&mut self, what: Look, ns: u64) -> bool {
        match what {
            Look::Input => {
                let has_come = self.wait_for_descriptors(ns);
                if has_come && self.follow.is_none() {
                    let input = |wait| matches!(wait, Wait::Descriptors(..));
                    let pc = self.pc_of_waiter(input);
                    shared::blame(Outside::Input, pc);
                }
                has_come
            }
            Look::Peers { decides } => self.wait_for_peers(ns, decides),
            Look::Rest => true,
        }
    }

    /// Where a thread waits in such a way.
    fn pc_of_waiter(&self, in_this_way: impl Fn(Wait) -> bool) -> u64 {
        let threads = self.live.iter().map(|&id| &self.threads[id as usize]);
        threads
            .filter(|thread| in_this_way(thread.wait))
            .map(|thread| thread.pc)
            .next()
            .unwrap_or(0)
    }

    /// Abandons the schedule, which does not match the run at this point.
    fn depart(&mut self, departure: Departure) {
        let Departure { thread, pc, step, index } = departure;
        let control = shared::control();
        control.thread.store(thread, Ordering::Relaxed);
        control.pc.store(pc, Ordering::Relaxed);
        let n_steps = self.threads.get(thread as usize).map_or(0, |thread| thread.steps);
        control.event.store(n_steps, Ordering::Relaxed);
        control.step.store(index, Ordering::Relaxed);
        control.expected_site.store(step.site.0, Ordering::Relaxed);
        control.seen_site.store(modules::site(pc).0, Ordering::Relaxed);
        if self.follow.take().is_some_and(|follow| follow.is_strict()) {
            die::stop(Ending::Diverged, thread, pc, 0);
        }
        shared::flag(LEFT);
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
        let model = &mut self.model;
        for &id in &model.live {
            let thread = &mut model.threads[id as usize];
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

    fn jump(&mut self, ns: u64) {
        self.model.jump(ns, &Target);
        let now = self.now();
        let control = shared::control();
        control.clock_ns.store(now, Ordering::Relaxed);
        if let Some((thread, late_ns)) = self.latest {
            control.late_thread.store(thread, Ordering::Relaxed);
            control.late_ns.store(late_ns, Ordering::Relaxed);
        }
        if shared::mode() == shared::TRACE {
            lane::append_all(Kind::Clock, 0, 0, 0, 0, &[now]);
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
        let to_timer = self.steps_to_timer();
        self.model.grant(id, to_timer);
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
        if let Wait::Descriptors(at, 1..) | Wait::Peer(at, 1..) = thread.wait {
            object = u64::from(peek32(at));
        }
        slot.pc.store(thread.pc, Ordering::Relaxed);
        slot.object.store(object, Ordering::Relaxed);
        slot.state.store(state as u32, Ordering::Relaxed);
    }

    /// Ends a run that does not go on although threads can run.
    fn over(&self, verdict: Verdict, me: u32) -> ! {
        let pc = self.threads[me as usize].pc;
        match verdict {
            Verdict::Livelock => die::stop(Ending::Livelock, me, pc, 0),
            Verdict::Endless => die::stop(Ending::Endless, me, pc, 0),
            Verdict::Deadlock => self.deadlock(self.cycle.map(|cycle| cycle.closed_by)),
        }
    }
}

/// Wakes the thread that was granted the turn.
fn hand_to(id: u32) {
    let slot = shared::slot(id);
    slot.turn.store(1, Ordering::Release);
    sys::futex_wake(&slot.turn, false);
}
