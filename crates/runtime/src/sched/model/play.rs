//! Small programs, performed by the model alone.
//!
//! A program is a line of operations per thread. [`Play`] performs them as `sched` and `interpose`
//! do in a target: it asks before each operation, passes the turn, lets time jump, and keeps the
//! schedule.
//!
//! | operation | meaning |
//! |---|---|
//! | `+a`, `-a` | acquires, releases lock a |
//! | `?c` | waits on condition variable c, with lock m |
//! | `!c` | signals condition variable c |
//! | `sleep:N`, `work:N`, `spin:N` | sleeps N ns, performs N steps, yields N times |
//! | `<p`, `>p` | takes from pipe p, puts into it; all of its ends are in the program |
//! | `read`, `write` | the same with a pipe that somebody outside may write to |
//! | `join:N`, `exit` | waits for thread N, ends the program |
//! | `outside` | is in a call that is not modeled, for good |
//! | `busy:N`, `asleep:N`, `told:N` | starts child process N, which ends when it has worked, after a time, or when it is told |
//! | `tell:N`, `await:N`, `hear:N` | tells child N to end, waits for its end, reads what it writes then |
//!
//! A child that works may end at any time: after as many looks at it as [`Play::speed`] says, if it
//! is not waited for before.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::RefCell;

use raddle_trace::id::Site;
use raddle_trace::record::{Lock, Switch, Wake};

use super::follow::Follow;
use super::object::NOBODY;
use super::policy::policy;
use super::thread::{NEVER, Thread, Wait};
use super::{Decision, Item, Look, Model, Question, Rest, Step, Verdict, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Acquire(u64),
    Release(u64),
    Wait(u64),
    Signal(u64),
    Sleep(u64),
    /// Waits for what nobody does, for so many nanoseconds.
    TimedWait(u64),
    Work(u64),
    Spin(u64),
    Read(u64),
    Write(u64),
    Join(u32),
    Exit,
    Outside,
    Start(u64, Work),
    Tell(u64),
    Await(u64),
    Hear(u64),
}

/// What a child process does before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Busy,
    Asleep,
    Told,
}

/// The pipe that somebody outside may write to.
const OUTSIDE: u64 = 0;
/// The lock of all condition variables.
const M: u64 = b'm' as u64;

/// The operations of each thread.
pub(super) fn program(text: &str) -> Vec<Vec<Op>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.split(' ').map(op).collect()).collect()
}

fn op(word: &str) -> Op {
    let name = |text: &str| u64::from(text.as_bytes()[0]);
    let number = |text: &str| text.parse().expect("a number");
    match (word.split_once(':'), word.split_at(1)) {
        (Some(("sleep", n)), _) => Op::Sleep(number(n)),
        (Some(("timed", n)), _) => Op::TimedWait(number(n)),
        (Some(("work", n)), _) => Op::Work(number(n)),
        (Some(("spin", n)), _) => Op::Spin(number(n)),
        (Some(("busy", n)), _) => Op::Start(number(n), Work::Busy),
        (Some(("asleep", n)), _) => Op::Start(number(n), Work::Asleep),
        (Some(("told", n)), _) => Op::Start(number(n), Work::Told),
        (Some(("tell", n)), _) => Op::Tell(number(n)),
        (Some(("await", n)), _) => Op::Await(number(n)),
        (Some(("hear", n)), _) => Op::Hear(number(n)),
        (Some(("join", n)), _) => Op::Join(number(n) as u32),
        (_, ("+", at)) => Op::Acquire(name(at)),
        (_, ("-", at)) => Op::Release(name(at)),
        (_, ("?", at)) => Op::Wait(name(at)),
        (_, ("!", at)) => Op::Signal(name(at)),
        (_, ("<", at)) => Op::Read(name(at)),
        (_, (">", at)) => Op::Write(name(at)),
        _ if word == "read" => Op::Read(OUTSIDE),
        _ if word == "write" => Op::Write(OUTSIDE),
        _ if word == "exit" => Op::Exit,
        _ if word == "outside" => Op::Outside,
        _ => panic!("no operation: {word}"),
    }
}

/// How a play ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// All threads ended, or one ended the program.
    Finished,
    /// Nobody could run any more.
    Stuck,
    /// The model gave up although threads could run.
    Deadlock,
    Livelock,
    Endless,
    /// Nobody runs until something returns from outside.
    Idle,
    /// Input was looked for, for good.
    Waiting,
    /// The schedule could not be followed.
    Departed,
}

/// How threads are chosen.
pub(super) enum By {
    Policy(raddle_trace::control::Policy, u64),
    Schedule(Vec<Item>),
}

/// The surroundings of a play.
#[derive(Default)]
struct Stage {
    schedule: Vec<Item>,
    /// How much is in each pipe.
    pipes: RefCell<BTreeMap<u64, u32>>,
    /// Whether something that is no thread acts on descriptors.
    has_helpers: bool,
    /// By number.
    children: RefCell<BTreeMap<u64, Child>>,
    /// After how many looks a child ends that works.
    speed: u32,
}

/// A child process that has not been waited for.
#[derive(Clone, Copy, Debug)]
struct Child {
    work: Work,
    n_looks: u32,
    has_ended: bool,
}

/// The descriptor of a child is its number and this.
const PIPES: u64 = 1000;

impl Stage {
    /// Looks whether a child has ended.
    fn look_at(&self, number: u64) -> bool {
        let mut children = self.children.borrow_mut();
        let Some(child) = children.get_mut(&number) else { return true };
        child.n_looks += 1;
        child.has_ended |= child.work == Work::Busy && child.n_looks > self.speed;
        child.has_ended
    }

    /// Ends the children that do this.
    fn end(&self, work: Work) -> bool {
        let mut children = self.children.borrow_mut();
        let ending = children.values_mut().filter(|child| child.work == work && !child.has_ended);
        ending.map(|child| child.has_ended = true).count() > 0
    }

    fn rest(&self) -> Rest {
        self.end(Work::Busy);
        let children = self.children.borrow();
        let sleeps = |child: &Child| child.work == Work::Asleep && !child.has_ended;
        if children.values().any(sleeps) { Rest::Sleeps } else { Rest::Waits }
    }
}

impl World for Stage {
    fn word(&self, _: u64) -> u32 {
        0
    }

    fn any_ready(&self, at: u64, _: u32) -> bool {
        match at.checked_sub(PIPES) {
            Some(child) => self.look_at(child),
            None => self.pipes.borrow().get(&at).is_some_and(|&n| n > 0),
        }
    }

    fn is_inside(&self, at: u64, _: u32) -> bool {
        at != OUTSIDE
    }

    fn has_child_changed(&self, at: u64) -> bool {
        self.look_at(at)
    }

    fn has_children(&self) -> bool {
        !self.children.borrow().is_empty()
    }

    fn has_helpers(&self) -> bool {
        self.has_helpers
    }

    fn schedule_item(&self, index: u64) -> Option<Item> {
        self.schedule.get(index as usize).copied()
    }

    fn site(&self, pc: u64) -> Site {
        Site(pc)
    }
}

/// A program under way.
pub(super) struct Play {
    pub(super) model: Model,
    stage: Stage,
    program: Vec<Vec<Op>>,
    /// By thread: the next operation, and how much of it is done.
    at: Vec<(usize, u64)>,
    /// By thread: the operation that it last began.
    asked: Vec<(usize, u64)>,
    /// Operations in the order in which they were performed.
    pub(super) performed: Vec<(u32, Op)>,
    /// Virtual times after jumps.
    pub(super) jumps: Vec<u64>,
    /// What was looked for, and for how long.
    pub(super) looks: Vec<(Look, u64)>,
    /// The stretches so far.
    pub(super) schedule: Vec<Item>,
}

impl Play {
    pub(super) fn new(program: &[Vec<Op>], by: By) -> Self {
        use raddle_trace::control::Policy as Code;
        let (code, seed, stage) = match by {
            By::Policy(code, seed) => (code, seed, Stage::default()),
            By::Schedule(schedule) => (Code::Rr, 0, Stage { schedule, ..Stage::default() }),
        };
        let mut model = Model::new();
        model.seed(seed);
        model.policy = Some(policy(code, seed, 3, 16));
        model.follow = (!stage.schedule.is_empty()).then(|| Follow::new(false, &stage));
        for id in 0..program.len() as u32 {
            model.threads.push(Thread::new((0, 0)));
            model.make_live(id);
        }
        Self {
            model,
            stage,
            at: program.iter().map(|_| (0, 0)).collect(),
            asked: program.iter().map(|_| (usize::MAX, 0)).collect(),
            program: program.to_vec(),
            performed: Vec::new(),
            jumps: Vec::new(),
            looks: Vec::new(),
            schedule: Vec::new(),
        }
    }

    /// Something that is no thread may act on descriptors.
    pub(super) fn with_helpers(mut self) -> Self {
        self.stage.has_helpers = true;
        self
    }

    /// After how many looks a child process ends that works.
    pub(super) fn speed(mut self, n_looks: u32) -> Self {
        self.stage.speed = n_looks;
        self
    }

    /// The next operation of a thread.
    fn next_op(&self, id: u32) -> Option<Op> {
        self.program[id as usize].get(self.at[id as usize].0).copied()
    }

    /// Where a thread is.
    fn pc(&self, id: u32) -> u64 {
        (u64::from(id) << 32) | (self.at[id as usize].0 as u64 + 1)
    }

    /// What a thread needs for its next operation, and until when.
    fn need(&self, id: u32) -> (Wait, u64) {
        let (_, done) = self.at[id as usize];
        match self.next_op(id) {
            Some(Op::Acquire(at)) => (Wait::Lock(at), NEVER),
            // First it lets go of the lock and waits, then it takes the lock again.
            Some(Op::Wait(at)) => match done {
                0 => (Wait::Nothing, NEVER),
                1 => (Wait::Cond(at), NEVER),
                _ => (Wait::Lock(M), NEVER),
            },
            Some(Op::Sleep(_)) if done > 0 => (Wait::Sleep, done),
            Some(Op::TimedWait(_)) if done > 0 => (Wait::Join(id), done),
            Some(Op::Read(pipe)) => (Wait::Descriptors(pipe, 1), NEVER),
            Some(Op::Join(other)) => (Wait::Join(other), NEVER),
            Some(Op::Outside) if done > 0 => (Wait::Outside, NEVER),
            Some(Op::Await(child)) => (Wait::Child(child), NEVER),
            Some(Op::Hear(child)) => (Wait::Peer(PIPES + child, 1), NEVER),
            _ => (Wait::Nothing, NEVER),
        }
    }

    /// Performs the program to its end.
    pub(super) fn perform(&mut self) -> End {
        let mut me = 0;
        self.model.grant(me, u64::MAX);
        loop {
            let Some(op) = self.next_op(me) else {
                self.model.end(me);
                if self.model.live.is_empty() {
                    return End::Finished;
                }
                match self.pass(me, Switch::Ended) {
                    Ok(next) => me = next,
                    Err(end) => return end,
                }
                continue;
            };
            let (wait, deadline) = self.need(me);
            let now = self.model.now();
            if self.at[me as usize] != self.asked[me as usize] {
                self.asked[me as usize] = self.at[me as usize];
                let is_foreign = self.model.is_foreign(wait, &self.stage);
                if is_foreign && self.model.looks_at_once(wait, deadline, now) {
                    self.stage.rest();
                    self.model.accept_at_once(me, wait, &self.stage);
                }
            }
            let reason = match self.model.wake_of(me, wait, deadline, now, &self.stage) {
                Some(_) if self.model.threads[me as usize].budget > 0 => {
                    if self.step(me, op) {
                        return End::Finished;
                    }
                    if !matches!(op, Op::Spin(_)) {
                        continue;
                    }
                    self.model.note_yield(me);
                    Switch::Yielded
                }
                Some(_) => Switch::Preempt,
                None => {
                    self.model.threads[me as usize].accepted = false;
                    Switch::Blocked
                }
            };
            if let Some(verdict) = self.model.check_limits(&self.stage) {
                return match verdict {
                    Verdict::Deadlock => End::Deadlock,
                    Verdict::Livelock => End::Livelock,
                    Verdict::Endless => End::Endless,
                };
            }
            if reason != Switch::Yielded {
                self.model.note_work(1, reason == Switch::Blocked);
            }
            match self.pass(me, reason) {
                Ok(next) => me = next,
                Err(end) => return end,
            }
        }
    }

    /// Performs one step of an operation; true if it ends the program.
    fn step(&mut self, me: u32, op: Op) -> bool {
        let now = self.model.now();
        let (_, done) = self.at[me as usize];
        let is_over = match op {
            Op::Acquire(at) => {
                self.hold(at, me);
                true
            }
            Op::Release(at) => {
                self.release(at, me);
                true
            }
            Op::Wait(_) => match done {
                0 => {
                    self.release(M, me);
                    false
                }
                1 => {
                    self.model.threads[me as usize].woken = None;
                    false
                }
                _ => {
                    self.hold(M, me);
                    true
                }
            },
            Op::Signal(at) => {
                let waiters = self.model.waiters(|wait| wait == Wait::Cond(at));
                if let Some(&first) = waiters.first() {
                    self.model.wake(first, Wake::Woken, me);
                }
                true
            }
            Op::Sleep(ns) | Op::TimedWait(ns) if done == 0 => {
                self.at[me as usize].1 = now + ns;
                return false;
            }
            Op::Outside => {
                self.at[me as usize].1 = 1;
                return false;
            }
            Op::Start(number, work) => {
                let child = Child { work, n_looks: 0, has_ended: false };
                self.stage.children.borrow_mut().insert(number, child);
                self.model.n_processes += 1;
                true
            }
            Op::Tell(number) => {
                if let Some(child) = self.stage.children.borrow_mut().get_mut(&number) {
                    child.has_ended |= child.work == Work::Told;
                }
                true
            }
            Op::Await(number) => {
                self.stage.children.borrow_mut().remove(&number);
                self.model.threads[me as usize].accepted = false;
                true
            }
            Op::Hear(_) => {
                self.model.threads[me as usize].accepted = false;
                true
            }
            Op::Sleep(_) | Op::TimedWait(_) | Op::Join(_) | Op::Exit => true,
            Op::Work(n) | Op::Spin(n) => done + 1 == n,
            Op::Read(pipe) => {
                *self.stage.pipes.borrow_mut().entry(pipe).or_default() -= 1;
                true
            }
            Op::Write(pipe) => {
                *self.stage.pipes.borrow_mut().entry(pipe).or_default() += 1;
                true
            }
        };
        self.model.count(me, 1);
        self.model.threads[me as usize].budget -= 1;
        let at = &mut self.at[me as usize];
        *at = if is_over { (at.0 + 1, 0) } else { (at.0, done + 1) };
        if is_over {
            self.performed.push((me, op));
        }
        op == Op::Exit
    }

    fn hold(&mut self, at: u64, me: u32) {
        let lock = self.model.object(at, Lock::Mutex);
        assert!(lock.is_free(), "two threads hold {at}");
        lock.owner = me;
    }

    fn release(&mut self, at: u64, me: u32) {
        let lock = self.model.object(at, Lock::Mutex);
        assert!(lock.owner == me, "{at} is released by a thread that does not hold it");
        lock.owner = NOBODY;
    }

    /// Passes the turn; returns who has it then.
    fn pass(&mut self, me: u32, reason: Switch) -> Result<u32, End> {
        let (pc, (wait, deadline)) = (self.pc(me), self.need(me));
        let thread = &mut self.model.threads[me as usize];
        (thread.wait, thread.deadline, thread.pc) = (wait, deadline, pc);
        if reason == Switch::Blocked && self.model.closes_cycle(me, &self.stage) {
            self.model.note_cycle(me);
        }
        let mut question = Question::new(Some(me), reason, pc);
        let next = loop {
            match self.model.decide(&mut question, &self.stage) {
                Decision::Run(id) => break id,
                Decision::Jump { ns, .. } => {
                    self.model.jump(ns, &self.stage);
                    self.jumps.push(self.model.now());
                }
                Decision::Look { what: Look::Rest, .. } => {
                    let rest = self.stage.rest();
                    self.model.rested(&mut question, rest, true, &self.stage);
                }
                Decision::Look { what, ns } => {
                    self.looks.push((what, ns));
                    let has_come =
                        matches!(what, Look::Peers { .. }) && self.stage.end(Work::Asleep);
                    if has_come {
                        self.model.found(&mut question, what);
                    } else if ns == NEVER {
                        return Err(End::Waiting);
                    }
                }
                Decision::Idle => return Err(End::Idle),
                Decision::Stuck => return Err(End::Stuck),
                Decision::Depart(_) | Decision::TooLate(_) => return Err(End::Departed),
            }
        };
        assert!(self.model.can_run(next, &self.stage), "the turn is of no use to {next}");
        if next != me {
            let count = self.model.take_stretch(me);
            self.schedule.push(Item::Stretch(Step { thread: me, count, site: Site(pc) }));
        }
        self.model.grant(next, u64::MAX);
        let thread = &mut self.model.threads[next as usize];
        (thread.wait, thread.deadline) = (Wait::Nothing, NEVER);
        Ok(next)
    }
}

/// Every end that some order of the program's operations leads to, by trying all orders without
/// the model. For locks, condition variables, and pipes only.
pub(super) fn ends(program: &[Vec<Op>]) -> BTreeSet<End> {
    let mut ends = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let n = program.len();
    // By thread: the next operation, and its phase. Owners of locks by letter. Threads that were
    // signaled. What is in pipes.
    type State = (Vec<(usize, u8)>, Vec<(u64, u32)>, Vec<bool>, Vec<u64>);
    let mut left: Vec<State> =
        alloc::vec![(alloc::vec![(0, 0); n], Vec::new(), alloc::vec![false; n], Vec::new())];
    while let Some(state) = left.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        let (at, owners, signaled, pipes) = &state;
        let is_free = |lock: u64| owners.iter().all(|&(held, _)| held != lock);
        let mut can_any = false;
        for me in 0..n {
            let Some(&op) = program[me].get(at[me].0) else { continue };
            let (mut at, mut owners, mut signaled) = (at.clone(), owners.clone(), signaled.clone());
            let mut pipes = pipes.clone();
            let take = |owners: &mut Vec<(u64, u32)>, lock| {
                owners.push((lock, me as u32));
                owners.sort_unstable();
            };
            match (op, at[me].1) {
                (Op::Acquire(lock), _) if is_free(lock) => take(&mut owners, lock),
                (Op::Release(lock), _) => owners.retain(|&(held, _)| held != lock),
                (Op::Wait(_), 0) => {
                    owners.retain(|&(held, _)| held != M);
                    at[me].1 = 1;
                    can_any = true;
                    left.push((at, owners, signaled, pipes));
                    continue;
                }
                (Op::Wait(_), 1) if signaled[me] => {
                    signaled[me] = false;
                    at[me].1 = 2;
                    can_any = true;
                    left.push((at, owners, signaled, pipes));
                    continue;
                }
                (Op::Wait(_), 2) if is_free(M) => take(&mut owners, M),
                (Op::Signal(cond), _) => {
                    let waits = |other: &usize| {
                        let is_here = program[*other].get(at[*other].0) == Some(&Op::Wait(cond));
                        is_here && at[*other].1 == 1 && !signaled[*other]
                    };
                    if let Some(first) = (0..n).find(waits) {
                        signaled[first] = true;
                    }
                }
                (Op::Write(pipe), _) => {
                    pipes.push(pipe);
                    pipes.sort_unstable();
                }
                (Op::Read(pipe), _) if pipes.contains(&pipe) => {
                    pipes.remove(pipes.partition_point(|&other| other < pipe));
                }
                (Op::Work(1), _) => {}
                _ => continue,
            }
            can_any = true;
            at[me] = (at[me].0 + 1, 0);
            left.push((at, owners, signaled, pipes));
        }
        if !can_any {
            let is_over = (0..n).all(|me| at[me].0 == program[me].len());
            ends.insert(if is_over { End::Finished } else { End::Stuck });
        }
    }
    ends
}
