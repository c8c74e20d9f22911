//! One execution, from start to end.

use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use raddle_trace::control::{
    self, Deliver, EVERY, MODULES_MAX, Mode, NO_WATCHDOG, PAPER, THREADS_MAX, ThreadSlot,
};
use raddle_trace::event::Batch;
use raddle_trace::file::{WriteError, Writer};
use raddle_trace::history::Histories;
use raddle_trace::id::{Addr, ThreadId};
use raddle_trace::run::{Module, Run, Thread};
use raddle_trace::schedule::Schedule;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::allowed::{self, Lifted};
use crate::capture::{Capture, Captured};
use crate::draw::{self, Pace, RecordSink};
use crate::histories::{HistoryFile, Settings};
use crate::interrupt;
use crate::lateness::Lateness;
use crate::launch::{self, Launch, LaunchError, Running};
use crate::outcome::{self, Doubts, Outcome, Stopped};
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::remarked::{self, Remarked};
use crate::shm::Block;
use crate::wait::{self, Status, readable};

/// What is wanted of an execution beside its outcome.
pub enum Delivery<'a> {
    /// Nothing.
    Nothing,
    /// The schedule.
    Schedule,
    /// The records, and the schedule too.
    Records(&'a mut dyn Sink),
    /// The same, with each access, also those that only repeat others; of free threads as soon
    /// as they are there, so that they can be merged.
    EveryRecord(&'a mut dyn Sink),
    /// What happened at each place of memory, under control; stays empty if the target cannot
    /// keep that.
    Histories(Settings, &'a mut Option<Histories>),
}

/// Whoever keeps the records of a run.
pub trait Sink: Send {
    /// Takes what is known about the run by now; replaces what was known before.
    fn describe(&mut self, run: &Run) -> Result<(), WriteError>;

    /// Takes the next records of a stream: 0 under control, the thread's number if free.
    fn push(&mut self, stream: u32, batch: &Batch<'_>) -> Result<(), WriteError>;

    /// Every stream was looked at once more since this was said last.
    fn round(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl Sink for Writer {
    fn describe(&mut self, run: &Run) -> Result<(), WriteError> {
        Writer::describe(self, run)
    }

    fn push(&mut self, stream: u32, batch: &Batch<'_>) -> Result<(), WriteError> {
        self.push_batch(stream, batch)
    }
}

/// What an execution has given.
#[derive(Clone, Debug)]
pub struct Execution {
    /// How it ended.
    pub outcome: Outcome,
    /// What is known about it.
    pub run: Run,
    /// Who ran when, if that was wanted and threads were not free.
    pub schedule: Option<Schedule>,
    /// How late its deadlines made threads.
    pub lateness: Lateness,
    /// Judgements that were allowed in it.
    pub allowed: Vec<Lifted>,
    /// Mistakes that it did not fail by.
    pub remarks: Vec<Remarked>,
    /// What it printed, if that was captured.
    pub stdout: Option<Captured>,
    /// What it printed to standard error, if that was captured.
    pub stderr: Option<Captured>,
}

/// Whoever follows a target by ptrace.
pub trait Tracer {
    /// Called before the target is started, so that it can be told to ask for being traced.
    fn prepare(&mut self, command: &mut Command);

    /// Follows the target until it has ended, and reaps it. Called by the thread that has
    /// started it, which is the only one that may trace it. Somebody else kills the target
    /// when its time is over.
    fn follow(&mut self, pid: u32) -> io::Result<Status>;
}

/// Executes a target by a plan.
pub fn execute(
    launch: &Launch,
    plan: &Plan,
    delivery: Delivery<'_>,
) -> Result<Execution, LaunchError> {
    execute_inner(launch, plan, delivery, None)
}

/// Executes a target by a plan, and lets it be followed. It is not told off for being slow.
pub fn execute_traced(
    launch: &Launch,
    plan: &Plan,
    delivery: Delivery<'_>,
    tracer: &mut dyn Tracer,
) -> Result<Execution, LaunchError> {
    execute_inner(launch, plan, delivery, Some(tracer))
}

/// Executes a target without anything of ours in it, and lets it be followed. What is known about
/// it is what the kernel tells, so its run has no modules, and one thread.
pub fn execute_plain(launch: &Launch, tracer: &mut dyn Tracer) -> Result<Execution, LaunchError> {
    let start = Instant::now();
    let mut tracer = Some(tracer);
    let (running, target) = begin(launch, None, &mut tracer)?;
    let (stopped, status) = follow(&target, &running, tracer)?;
    let end = outcome::plain_end(status, stopped);
    let run = Run {
        command: command(launch),
        directory: directory(launch).to_string_lossy().into_owned(),
        mode: Mode::Free,
        policy: None,
        seed: 0,
        modules: Vec::new(),
        threads: vec![Thread {
            id: ThreadId(0),
            name: MAIN.to_owned(),
            label: None,
            stack: (Addr(0), Addr(0)),
        }],
        ending: Some(end.to_string()),
    };
    let outcome = Outcome {
        end,
        stack: Vec::new(),
        threads: Vec::new(),
        doubts: Doubts::default(),
        left: None,
        n_steps: 0,
        n_switches: 0,
        cpu: Duration::ZERO,
        wall: start.elapsed(),
    };
    execution(running, outcome, run, None)
}

/// An execution that is over, with what it printed.
fn execution(
    running: Running,
    outcome: Outcome,
    run: Run,
    schedule: Option<Schedule>,
) -> Result<Execution, LaunchError> {
    let finish = |capture: Option<Capture>| {
        capture.map(|capture| capture.finish().map_err(LaunchError::Wait)).transpose()
    };
    let Running { stdout, stderr, family, .. } = running;
    // What it has left behind must not print any more.
    drop(family);
    let (stdout, stderr) = (finish(stdout)?, finish(stderr)?);
    Ok(Execution {
        outcome,
        run,
        schedule,
        lateness: Lateness::default(),
        allowed: Vec::new(),
        remarks: Vec::new(),
        stdout,
        stderr,
    })
}

/// Starts a target, whose time runs from now on.
fn begin(
    launch: &Launch,
    block: Option<&Block>,
    tracer: &mut Option<&mut dyn Tracer>,
) -> Result<(Running, Target), LaunchError> {
    let deadline = launch.timeout.map(|timeout| (Instant::now() + timeout, timeout));
    let mut running = launch::start(launch, block, |command| {
        if let Some(tracer) = tracer {
            tracer.prepare(command);
        }
    })?;
    let target = Target::new(&running, deadline).inspect_err(|_| {
        // The error is what counts; the child is gone in any case.
        let _ = running.child.kill().and_then(|()| running.child.wait());
    })?;
    Ok((running, target))
}

/// Waits until the target has ended, or ends it, while it is followed if that is wanted.
fn follow(
    target: &Target,
    running: &Running,
    tracer: Option<&mut dyn Tracer>,
) -> Result<(Option<Stopped>, Status), LaunchError> {
    let pid = running.child.id();
    let Some(tracer) = tracer else {
        let stopped = target.wait(running);
        // Who cannot wait for it can still end it, and then reap it. If it has ended, others of
        // its group may not have.
        target.kill();
        let (status, _) = wait::reap(pid).map_err(LaunchError::Wait)?;
        return Ok((stopped.map_err(LaunchError::Wait)?, status));
    };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| target.wait(running));
        let followed = tracer.follow(pid).inspect_err(|_| {
            target.kill();
            // What went wrong is what counts.
            let _ = wait::reap(pid);
        });
        let stopped = waiter.join().expect("no panic").map_err(LaunchError::Wait)?;
        Ok((stopped, followed.map_err(LaunchError::Wait)?))
    })
}

fn execute_inner(
    launch: &Launch,
    plan: &Plan,
    delivery: Delivery<'_>,
    tracer: Option<&mut dyn Tracer>,
) -> Result<Execution, LaunchError> {
    let block = Block::new(plan.layout()).map_err(LaunchError::Block)?;
    let mut histories = None;
    let (deliver, sink, options) = match delivery {
        Delivery::Nothing => (Deliver::Nothing, None, 0),
        Delivery::Schedule => (Deliver::Schedule, None, 0),
        Delivery::Records(sink) => (Deliver::Trace, Some(sink), 0),
        Delivery::EveryRecord(sink) => (Deliver::Trace, Some(sink), EVERY),
        Delivery::Histories(settings, into) => {
            let history_file = HistoryFile::new().map_err(LaunchError::Block)?;
            block.control().plan.histories.store(history_file.descriptor(), Relaxed);
            block.control().plan.window.store(settings.window, Relaxed);
            histories = Some((history_file, into));
            (Deliver::Histories, None, if settings.paper { PAPER } else { 0 })
        }
    };
    let watchdog = if tracer.is_some() { NO_WATCHDOG } else { 0 };
    plan.store(deliver, options | watchdog | launch::held_signals(), &block);
    let start = Instant::now();
    let mut tracer = tracer;
    let (running, target) = begin(launch, Some(&block), &mut tracer)?;

    let known = || run(launch, plan, &block);
    let mut forwarder = Forwarder { recorder: None, sink, run: &known, known: None, block: &block };
    let is_recorded = matches!(deliver, Deliver::Schedule | Deliver::Trace);
    if is_recorded && plan.mode() == Mode::Controlled {
        forwarder.recorder = Some(Recorder::default());
    }
    let pace = match plan.mode() {
        Mode::Free if options & EVERY != 0 => Pace::Records,
        _ => Pace::Chunks,
    };
    let over = AtomicBool::new(false);
    let (ended, drawn) = std::thread::scope(|scope| {
        let drawer = is_recorded.then(|| {
            scope.spawn(|| {
                draw::draw(&block, pace, &over, &mut forwarder).inspect_err(|_| target.kill())
            })
        });
        let ended = match tracer {
            Some(tracer) => follow(&target, &running, Some(tracer))
                .map(|(stopped, status)| (stopped, status, Duration::ZERO)),
            None => {
                let stopped = target.wait(&running);
                // Who cannot wait for it can still end it, and then reap it. If it has ended,
                // others of its group may not have.
                target.kill();
                wait::reap(running.child.id())
                    .and_then(|(status, cpu)| Ok((stopped?, status, cpu)))
                    .map_err(LaunchError::Wait)
            }
        };
        over.store(true, Release);
        draw::rouse(&block);
        let drawn = drawer.map_or(Ok(()), |drawer| drawer.join().expect("no panic"));
        (ended, drawn)
    });
    let (stopped, status, cpu) = ended?;
    drawn?;
    if let Some((history_file, into)) = histories {
        *into = history_file.read().map_err(LaunchError::Block)?;
    }

    let control = block.control();
    let run = run(launch, plan, &block);
    let (end, stack) = outcome::end(&block, &run, &launch.files, status, stopped);
    let run = Run { ending: Some(end.to_string()), ..run };
    let n_threads = run.threads.len();
    let outcome = Outcome {
        end,
        stack,
        threads: (0..)
            .zip(&block.threads()[..n_threads])
            .map(|(number, slot)| outcome::thread_at(ThreadId(number), slot))
            .collect(),
        doubts: outcome::doubts(control),
        left: outcome::left(control),
        n_steps: control.steps.load(Relaxed),
        n_switches: control.switches.load(Relaxed),
        cpu,
        wall: start.elapsed(),
    };
    let schedule = forwarder.recorder.map(|recorder| recorder.finish(&run));
    let (lateness, allowed) = (Lateness::of(control), allowed::lifted(control));
    let remarks = remarked::remarked(&block, &outcome);
    Ok(Execution { lateness, allowed, remarks, ..execution(running, outcome, run, schedule)? })
}

/// The processors that this process may use, and so the targets that it starts.
#[must_use]
pub fn processors() -> Vec<u32> {
    let allowed = rustix::thread::sched_getaffinity(None);
    let processors: Vec<u32> = allowed.map_or_else(
        |_| Vec::new(),
        |set| {
            (0..rustix::thread::CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .map(|cpu| cpu as u32)
                .collect()
        },
    );
    if processors.is_empty() { vec![0] } else { processors }
}

/// Gives the records to all who want them.
struct Forwarder<'s, 'a> {
    recorder: Option<Recorder>,
    sink: Option<&'s mut dyn Sink>,
    /// What is known about the run by now.
    run: &'a (dyn Fn() -> Run + Sync),
    /// How many threads and modules the sink knows about.
    known: Option<Known>,
    block: &'a Block,
}

/// How much of a run has been described.
#[derive(Clone, Copy)]
struct Known {
    n_threads: u32,
    n_modules: u32,
}

impl Known {
    /// Whether enough has been added to describe it again.
    fn is_outdated(self, now: Self) -> bool {
        let n_new = now.n_threads.saturating_sub(self.n_threads);
        now.n_modules != self.n_modules || n_new > self.n_threads / 32
    }
}

impl RecordSink for Forwarder<'_, '_> {
    fn take(&mut self, stream: u32, batch: &Batch<'_>) -> Result<(), WriteError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.push_batch(batch);
        }
        let Some(sink) = &mut self.sink else { return Ok(()) };
        // Said again when there is more to say, so that a trace whose recording is killed can
        // still be read. With many threads not for each, or names would take more space than
        // events.
        let control = self.block.control();
        let now = Known {
            n_threads: control.n_threads.load(Relaxed),
            n_modules: control.n_modules.load(Relaxed),
        };
        if self.known.is_none_or(|known| known.is_outdated(now)) {
            self.known = Some(now);
            sink.describe(&(self.run)())?;
        }
        sink.push(stream, batch)
    }

    fn round(&mut self) -> Result<(), WriteError> {
        self.sink.as_mut().map_or(Ok(()), |sink| sink.round())
    }
}

/// How often the captured output is looked at while nothing else happens.
const LOOK: Duration = Duration::from_millis(100);

/// A target that runs, as something to wait for.
struct Target {
    descriptor: rustix::fd::OwnedFd,
    /// Its process group, if it has one of its own.
    group: Option<Pid>,
    deadline: Option<(Instant, Duration)>,
}

impl Target {
    fn new(running: &Running, deadline: Option<(Instant, Duration)>) -> Result<Self, LaunchError> {
        let pid = Pid::from_child(&running.child);
        let descriptor = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| LaunchError::Wait(error.into()))?;
        Ok(Self { descriptor, group: running.own_group.then_some(pid), deadline })
    }

    /// Ends it, with all that it has started. It has not been reaped, so its number is still its own.
    fn kill(&self) {
        // Either fails only if there is nobody left.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = pidfd_send_signal(&self.descriptor, Signal::KILL);
    }

    /// Waits until it has ended, or ends it.
    fn wait(&self, running: &Running) -> io::Result<Option<Stopped>> {
        let captures = [&running.stdout, &running.stderr];
        let mut watched = vec![self.descriptor.as_fd()];
        watched.extend(interrupt::descriptor());
        let stopped = loop {
            let left = match self.deadline {
                Some((deadline, timeout)) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break Some(Stopped::TimedOut(timeout));
                    }
                    Some(left)
                }
                None => None,
            };
            let look = captures.iter().any(|capture| capture.is_some()).then_some(LOOK);
            let ready = readable(&watched, left.into_iter().chain(look).min())?;
            if ready.first() == Some(&true) {
                break None;
            }
            if ready.get(1) == Some(&true) {
                break Some(Stopped::Interrupted);
            }
            for capture in captures.into_iter().flatten() {
                capture.trim()?;
            }
        };
        if stopped.is_some() {
            self.kill();
            readable(&watched[..1], None)?;
        }
        Ok(stopped)
    }
}

/// What the control block tells about the run beside its events.
fn run(launch: &Launch, plan: &Plan, block: &Block) -> Run {
    let control = block.control();
    let n_modules = (control.n_modules.load(Relaxed) as usize).min(MODULES_MAX);
    let n_threads = (control.n_threads.load(Relaxed) as usize).min(THREADS_MAX);
    let directory = directory(launch);
    let program = directory.join(&launch.program);
    Run {
        command: command(launch),
        directory: directory.to_string_lossy().into_owned(),
        mode: plan.mode(),
        policy: plan.policy(),
        seed: plan.seed,
        modules: block.modules()[..n_modules]
            .iter()
            .map(|slot| module(slot, &program.to_string_lossy()))
            .collect(),
        threads: threads(&block.threads()[..n_threads]),
        ending: None,
    }
}

/// Where a target runs.
fn directory(launch: &Launch) -> PathBuf {
    match &launch.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    }
}

/// What a target is called with.
fn command(launch: &Launch) -> Vec<String> {
    let arguments = launch.arguments.iter();
    arguments.map(|argument| argument.to_string_lossy().into_owned()).collect()
}

fn module(slot: &control::Module, program: &str) -> Module {
    let bytes = |bytes: &[std::sync::atomic::AtomicU8], len: &std::sync::atomic::AtomicU32| {
        let len = (len.load(Relaxed) as usize).min(bytes.len());
        bytes[..len].iter().map(|byte| byte.load(Relaxed)).collect::<Vec<u8>>()
    };
    let path = String::from_utf8_lossy(&bytes(&slot.path, &slot.path_len)).into_owned();
    let build_id = bytes(&slot.build_id, &slot.build_id_len);
    Module {
        path: if path.is_empty() { program.to_owned() } else { path },
        build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        base: slot.base.load(Relaxed),
        low: slot.low.load(Relaxed),
        high: slot.high.load(Relaxed),
    }
}

/// The name of a program's first thread.
const MAIN: &str = "main";

/// The threads, named by who started them.
fn threads(slots: &[ThreadSlot]) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::with_capacity(slots.len());
    for (number, slot) in slots.iter().enumerate() {
        let parent = threads.get(slot.parent.load(Relaxed) as usize);
        let name = match parent {
            _ if number == 0 => MAIN.to_owned(),
            Some(parent) => format!("{}/{}", parent.name, slot.ordinal.load(Relaxed)),
            None => format!("thread {number}"),
        };
        let label: Vec<u8> =
            slot.name.iter().map(|byte| byte.load(Relaxed)).take_while(|&byte| byte != 0).collect();
        let label = String::from_utf8_lossy(&label).into_owned();
        threads.push(Thread {
            id: ThreadId(number as u32),
            name,
            label: (!label.is_empty()).then_some(label),
            stack: (Addr(slot.stack_low.load(Relaxed)), Addr(slot.stack_high.load(Relaxed))),
        });
    }
    threads
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::Layout;

    use super::*;

    #[test]
    fn threads_are_named_by_spawn_path() {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        let slots = &block.threads()[..4];
        for (slot, (parent, ordinal)) in slots.iter().zip([(0, 0), (0, 1), (0, 2), (2, 1)]) {
            slot.parent.store(parent, Relaxed);
            slot.ordinal.store(ordinal, Relaxed);
        }
        let names: Vec<_> = threads(slots).into_iter().map(|thread| thread.name).collect();
        assert_eq!(names, ["main", "main/1", "main/2", "main/2/1"]);
    }
}
