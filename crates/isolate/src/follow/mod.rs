//! One execution, followed: accesses to a few locations are noted, definitions are suppressed
//! with all that depends on them, and whoever dies is asked why.
//!
//! Demand-driven: a thread none of whose registers is suppressed runs at full speed. Debug
//! registers, and beyond those the protection of pages, stop it at its next touch of suppressed
//! memory; from there it goes on instruction by instruction until its registers are clean
//! again. Registers that nobody reads before they are written count as clean, and calls that
//! are given nothing suppressed run at full speed too.
//!
//! A debug register stops a thread behind the instruction, a protected page before it. Neither
//! sees what the kernel reads or writes.

mod call;
mod job;
mod pages;
mod point;
mod runtime;
mod step;
mod string;
mod thread;
mod watch;

use std::collections::VecDeque;
use std::io;
use std::process::Command;

use iced_x86::{Instruction, InstructionInfoFactory};
use nix::unistd::Pid;
use raddle_code::elf::Files;
use raddle_trace::id::ThreadId;
use raddle_trial::{Status, Tracer};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::Functions;
use crate::failure::{self, Death};
use crate::frame::{self, Frame};
use crate::image::Images;
use crate::origin::{Location, StoppedThread};
use crate::shadow::{Bytes, Shadow};
use crate::tracee::{self, Go, Memory, N_DEBUG_REGISTERS, Registers, Stop};
pub(crate) use job::{Hit, Job, Pick, Point, Report, Suppressed};
use thread::{SystemCall, Thread};

/// Follows an execution.
pub(crate) struct Follower {
    job: Job,
    pub(crate) report: Report,
    files: Files,
    images: Images,
    functions: Functions,
    memory: Option<Memory>,
    threads: FxHashMap<i32, Thread>,
    n_threads: u32,
    leader: Pid,
    /// What the words that are watched hold.
    words: Vec<(u64, u64)>,
    /// How often each point's location was written, or its place was passed.
    counts: Vec<u64>,
    bytes: Bytes,
    /// Pages that are protected now.
    protected: FxHashSet<u64>,
    /// Pages that were protected at some time.
    ever_protected: FxHashSet<u64>,
    factory: InstructionInfoFactory,
    before: FxHashMap<u64, Option<Instruction>>,
    /// Where a Rust program panics.
    panic: Option<u64>,
    /// A system call instruction to borrow.
    syscall: Option<u64>,
    n_steps_left: u64,
    /// Stops that came while another one was waited for.
    queue: VecDeque<(Pid, Stop)>,
}

/// Debug registers for memory; the last one is for code.
const N_DATA: usize = N_DEBUG_REGISTERS - 1;
/// More reads than this are not noted any more: only writes decide.
const READS_MAX: usize = 5_000;
/// Steps after which a suppression is given up; about ten seconds.
const STEPS_MAX: u64 = 300_000;
const PAGE: u64 = 4096;

impl Follower {
    pub(crate) fn new(job: Job, files: &Files) -> Self {
        let mut words: Vec<u64> = Vec::new();
        let locations = job.watches.iter().chain(job.points.iter().map(|point| &point.location));
        for location in locations {
            words.extend(words_of(location));
        }
        words.sort_unstable();
        words.dedup();
        let mut report = Report::default();
        if words.len() > N_DATA {
            report.notes.push(format!(
                "{} words of memory would have to be watched, and the processor can watch {N_DATA}; the rest is not seen",
                words.len()
            ));
            words.truncate(N_DATA);
        }
        Self {
            counts: vec![0; job.points.len()],
            job,
            report,
            files: files.clone(),
            images: Images::default(),
            functions: Functions::default(),
            memory: None,
            threads: FxHashMap::default(),
            n_threads: 0,
            leader: Pid::from_raw(0),
            words: words.into_iter().map(|word| (word, 0)).collect(),
            bytes: Bytes::default(),
            protected: FxHashSet::default(),
            ever_protected: FxHashSet::default(),
            factory: InstructionInfoFactory::new(),
            before: FxHashMap::default(),
            panic: None,
            syscall: None,
            n_steps_left: STEPS_MAX,
            queue: VecDeque::new(),
        }
    }
}

/// The words of eight bytes that a location lies in; at most two are watched.
fn words_of(location: &Location) -> impl Iterator<Item = u64> + use<> {
    let first = location.address >> 3;
    let last = (location.address + location.n_bytes.max(1) - 1) >> 3;
    (first..=last.min(first + 1)).map(|word| word << 3)
}

impl Tracer for Follower {
    fn prepare(&mut self, command: &mut Command) {
        tracee::ask_to_be_traced(command);
    }

    fn follow(&mut self, pid: u32) -> io::Result<Status> {
        self.leader = Pid::from_raw(pid as i32);
        // Whoever waits for it to end waits for us to let it.
        self.follow_on().inspect_err(|_| tracee::end(self.leader))
    }
}

impl Follower {
    fn follow_on(&mut self) -> io::Result<Status> {
        let status = loop {
            let (tid, stop) = match self.queue.pop_front() {
                Some(queued) => queued,
                None => tracee::wait()?,
            };
            self.report.n_stops += 1;
            match stop {
                Stop::Ended(status) if tid == self.leader => break status,
                Stop::Ended(_) => {
                    self.threads.remove(&tid.as_raw());
                }
                Stop::Executed => {
                    tracee::resume(tid, Go::On, None)?;
                }
                Stop::Cloned(child) => {
                    self.add(child, true);
                    self.go_on(tid, None)?;
                }
                Stop::Exiting => {
                    // Whoever ends the process, not only itself, may have a reason.
                    let ends_all = tracee::registers(tid)
                        .is_ok_and(|r| r.orig_rax == libc::SYS_exit_group as u64);
                    if self.report.failure.is_none() && ends_all {
                        self.note_failure(tid, Death::Own);
                    }
                    tracee::resume(tid, Go::On, None)?;
                }
                Stop::SystemCall => self.system_call(tid)?,
                Stop::Signal(number) => self.signal(tid, number)?,
            }
        };
        self.report.modules = self.images.modules();
        Ok(status)
    }

    fn add(&mut self, tid: Pid, is_new: bool) {
        if self.threads.contains_key(&tid.as_raw()) {
            return;
        }
        let number = self.n_threads;
        self.n_threads += 1;
        let thread = Thread {
            number,
            shadow: Shadow::default(),
            is_stepping: false,
            is_let_through: false,
            overs: Vec::new(),
            armed: None,
            is_new,
            is_called: false,
            system_call: SystemCall::None,
        };
        self.threads.insert(tid.as_raw(), thread);
    }

    fn thread(&mut self, tid: Pid) -> &mut Thread {
        self.add(tid, false);
        self.threads.get_mut(&tid.as_raw()).expect("it was added")
    }

    fn signal(&mut self, tid: Pid, number: i32) -> io::Result<()> {
        if self.memory.is_none() {
            // The first stop, right behind exec.
            tracee::take_over(tid)?;
            self.memory = Some(Memory::open(tid)?);
            self.images = Images::load(tid, &self.files)?;
            self.add(tid, false);
            self.panic = self.panic_entry();
            for slot in 0..self.words.len() {
                // Not there yet: it will be zero.
                self.words[slot].1 = self.memory().number(self.words[slot].0, 8).unwrap_or(0);
            }
            return self.go_on(tid, None);
        }
        let thread = self.thread(tid);
        if number == libc::SIGSTOP && (thread.is_new || thread.is_called) {
            // Of the two stops that a thread may owe us, the first.
            match thread.is_new {
                true => thread.is_new = false,
                false => thread.is_called = false,
            }
            return self.go_on(tid, None);
        }
        match number {
            libc::SIGTRAP => self.trap(tid),
            libc::SIGSEGV if self.is_protection(tid) => {
                self.lift(tid)?;
                let thread = self.thread(tid);
                thread.is_stepping = true;
                thread.is_let_through = true;
                self.go_on(tid, None)
            }
            // Another thread has opened it before we heard of this one.
            libc::SIGSEGV if self.was_protection(tid) => self.go_on(tid, None),
            libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGABRT => {
                let (address, code) = tracee::fault(tid);
                self.note_failure(tid, Death::Signal { number, address, code });
                self.stop_suppression(tid)?;
                tracee::resume(tid, Go::On, Some(number))
            }
            _ => self.go_on(tid, Some(number)),
        }
    }

    /// A failing program is left to itself: whoever looks at its memory is to see it.
    fn stop_suppression(&mut self, tid: Pid) -> io::Result<()> {
        self.lift(tid)?;
        self.bytes = Bytes::default();
        self.job.points.clear();
        self.words.clear();
        let thread = self.thread(tid);
        thread.shadow = Shadow::default();
        thread.is_stepping = false;
        thread.overs.clear();
        thread.armed = Some([None; N_DEBUG_REGISTERS]);
        tracee::set_debug_registers(tid, &[None; N_DEBUG_REGISTERS])
    }

    fn panic_entry(&self) -> Option<u64> {
        let first = self.images.modules().first().map(|module| module.low)?;
        // Mangled by newer compilers.
        let is_it = |name: &str| name == "rust_panic" || name.ends_with("10rust_panic");
        self.images.named_like(first, is_it)
    }

    fn memory(&self) -> &Memory {
        self.memory.as_ref().expect("opened at the first stop")
    }

    /// Loads what was loaded meanwhile.
    fn refresh(&mut self, address: u64) {
        if self.images.at(address).is_none()
            && let Ok(images) = Images::load(self.leader, &self.files)
            && !images.is_empty()
        {
            self.images = images;
        }
    }

    fn frames(&self, registers: &Registers) -> Vec<Frame> {
        self.images.frames(frame::innermost(registers), self.memory())
    }

    fn note_failure(&mut self, tid: Pid, death: Death) {
        let Ok(registers) = tracee::registers(tid) else { return };
        // The thread's own, as the first one may be gone already.
        if let Ok(images) = Images::load(tid, &self.files)
            && !images.is_empty()
        {
            self.images = images;
        }
        let frames = self.frames(&registers);
        let thread = ThreadId(self.thread(tid).number);
        self.report.n_hits_failed = Some(self.report.hits.len());
        let stopped = self.stopped(&frames);
        self.report.failure = Some(failure::failure(&stopped, thread, death));
    }

    fn stopped<'a>(&'a self, frames: &'a [Frame]) -> StoppedThread<'a> {
        StoppedThread {
            images: &self.images,
            functions: &self.functions,
            memory: self.memory(),
            frames,
        }
    }
}
