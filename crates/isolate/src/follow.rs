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

use std::collections::VecDeque;
use std::io;
use std::process::Command;

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use nix::unistd::Pid;
use raddle_trace::id::ThreadId;
use raddle_trace::run::Module;
use raddle_trial::{Status, Tracer};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls;
use crate::code::{ARGUMENTS, FLAGS, Functions, KEPT, RESULTS, bit};
use crate::failure::{self, Death, Failure};
use crate::flow::{self, Fate};
use crate::frame::{self, Frame, RSP};
use crate::image::Images;
use crate::origin::{Location, Origin, Scene};
use crate::shadow::{Bytes, Shadow};
use crate::tracee::{self, Go, Memory, N_DEBUG_REGISTERS, Registers, Stop, Watched};

/// What is to be done in an execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// Whose accesses are noted.
    pub(crate) watches: Vec<Location>,
    /// Also reads.
    pub(crate) with_reads: bool,
    /// What is suppressed.
    pub(crate) points: Vec<Point>,
    /// Loads whose last addresses are wanted.
    pub(crate) probes: Vec<u64>,
}

/// A definition that is suppressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// What it defines.
    pub(crate) location: Location,
    /// Which definition.
    pub(crate) pick: Pick,
}

/// Which of the writes to a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// By their numbers among all writes to it in this execution, from 0 on.
    Numbers(Vec<u64>),
    /// The n-th, from 0 on, of a thread by a callback or call that returns to this address.
    Event { thread: u32, pc: u64, nth: u64 },
}

/// An access to a location that is watched.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) thread: ThreadId,
    /// The instruction.
    pub(crate) pc: u64,
    /// Where the activations around it return to, innermost first, if it is not in the
    /// program's own code.
    pub(crate) callers: Vec<u64>,
    pub(crate) location: Location,
    pub(crate) writes: bool,
    /// What the word that is watched held, before and after.
    pub(crate) word: u64,
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// A call or a push: it made room for something, and did not define it.
    pub(crate) is_save: bool,
}

impl Hit {
    /// Whether it is about this location. One that touches two words is noted for each.
    pub(crate) fn is_of(&self, location: &Location) -> bool {
        location.overlaps(self.word, 8)
            && location.overlaps(self.location.address, self.location.n_bytes)
    }
}

/// A definition that was suppressed.
#[derive(Clone, Debug)]
pub(crate) struct Suppressed {
    /// The number of its point.
    pub(crate) point: usize,
    pub(crate) hit: Hit,
    /// Where what it wrote came from.
    pub(crate) sources: Vec<Origin>,
    /// It was written through a pointer to another block of the heap.
    pub(crate) strays: bool,
    /// How many accesses to what is watched were noted by then.
    pub(crate) n_hits: usize,
    /// Where the activations around it return to, innermost first.
    pub(crate) callers: Vec<u64>,
}

/// What came of an execution.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) failure: Option<Failure>,
    /// How many accesses were noted when it failed: what came then was its end.
    pub(crate) n_hits_failed: Option<usize>,
    /// By thread and load, what it loaded last.
    pub(crate) probed: FxHashMap<(u32, u64), Location>,
    pub(crate) hits: Vec<Hit>,
    pub(crate) suppressed: Vec<Suppressed>,
    pub(crate) modules: Vec<Module>,
    /// Instructions that were executed one by one.
    pub(crate) n_stepped: u64,
    /// Instructions that were passed over.
    pub(crate) n_skipped: u64,
    /// How often a thread had to be stopped.
    pub(crate) n_stops: u64,
    /// What could not be done, in words.
    pub(crate) notes: Vec<String>,
}

/// Follows an execution.
pub(crate) struct Follower {
    job: Job,
    pub(crate) report: Report,
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

#[derive(Debug)]
struct Thread {
    number: u32,
    shadow: Shadow,
    is_stepping: bool,
    /// It was stopped by a protected page, which is open now.
    is_let_through: bool,
    /// Calls that run at full speed, outermost first.
    overs: Vec<Over>,
    armed: Option<[Option<(u64, Watched)>; N_DEBUG_REGISTERS]>,
    /// It has not stopped yet since it was created.
    is_new: bool,
    /// We have told it to stop, and it has not yet done so.
    is_called: bool,
    system_call: SystemCall,
}

/// Where a thread is with a system call, while pages are protected.
#[derive(Clone, Debug)]
enum SystemCall {
    /// It makes none.
    None,
    /// One is put off, since the kernel could not access protected pages: the registers.
    PutOff(Box<Registers>),
    /// Pages are open for it.
    Made,
}

/// A call that runs at full speed.
#[derive(Clone, Debug)]
struct Over {
    return_to: u64,
    /// The stack pointer behind the return.
    rsp: u64,
    /// The caller's registers.
    shadow: Shadow,
    /// What it gives back is suppressed, whatever else happens in it.
    spoils_result: bool,
    /// Nothing in it is looked at.
    is_opaque: bool,
    /// What becomes of memory when it is over.
    after: Option<(Location, bool)>,
}

/// Debug registers for memory; the last one is for code.
const N_DATA: usize = N_DEBUG_REGISTERS - 1;
/// More reads than this are not noted any more: only writes decide.
const READS_MAX: usize = 5_000;
/// Steps after which a suppression is given up; about ten seconds.
const STEPS_MAX: u64 = 300_000;
const PAGE: u64 = 4096;

impl Follower {
    pub(crate) fn new(job: Job) -> Self {
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
            self.images = Images::load(tid)?;
            self.add(tid, false);
            self.panic = self.panic_entry();
            for slot in 0..self.words.len() {
                // Not there yet: it will be zero.
                self.words[slot].1 = self.memory().number(self.words[slot].0, 8).unwrap_or(0);
            }
            return self.go_on(tid, None);
        }
        if self.thread(tid).is_new && number == libc::SIGSTOP {
            self.thread(tid).is_new = false;
            return self.go_on(tid, None);
        }
        if self.thread(tid).is_called && number == libc::SIGSTOP {
            self.thread(tid).is_called = false;
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
            && let Ok(images) = Images::load(self.leader)
            && !images.is_empty()
        {
            self.images = images;
        }
    }

    fn frames(&self, registers: &Registers) -> Vec<Frame> {
        self.images.frames(Frame::innermost(registers), self.memory())
    }

    fn note_failure(&mut self, tid: Pid, death: Death) {
        let Ok(registers) = tracee::registers(tid) else { return };
        // The thread's own, as the first one may be gone already.
        if let Ok(images) = Images::load(tid)
            && !images.is_empty()
        {
            self.images = images;
        }
        let frames = self.frames(&registers);
        let thread = ThreadId(self.thread(tid).number);
        self.report.n_hits_failed = Some(self.report.hits.len());
        let scene = self.scene(&frames);
        self.report.failure = Some(failure::failure(&scene, thread, death));
    }

    fn scene<'a>(&'a self, frames: &'a [Frame]) -> Scene<'a> {
        Scene { images: &self.images, functions: &self.functions, memory: self.memory(), frames }
    }

    /// A step, a debug register, or the program's own doing.
    fn trap(&mut self, tid: Pid) -> io::Result<()> {
        let status = tracee::take_debug_status(tid)?;
        let mut registers = tracee::registers(tid)?;
        self.refresh(registers.rip);
        let armed = self.thread(tid).armed.unwrap_or_default();
        let is_hit = |slot: usize| status >> slot & 1 == 1 && armed[slot].is_some();
        let is_ours = status & 0xf != 0 || self.thread(tid).is_stepping;
        if !is_ours {
            let (address, code) = tracee::fault(tid);
            if code == SI_KERNEL_TRAP {
                let number = libc::SIGTRAP;
                self.note_failure(tid, Death::Signal { number, address, code });
            }
            return tracee::resume(tid, Go::On, Some(libc::SIGTRAP));
        }
        if is_hit(N_DATA) && Some(registers.rip) == self.panic {
            self.note_failure(tid, Death::Own);
        }
        self.returned(tid, &registers);
        for slot in (0..N_DATA).filter(|&slot| is_hit(slot)) {
            if let Some((pc, Watched::Execution)) = armed[slot] {
                self.probe(tid, &registers, pc);
            } else if let Some((word, _)) = armed[slot] {
                self.touched(tid, &mut registers, word)?;
            }
        }
        self.go_on(tid, None)
    }

    /// Notes what a load is about to load.
    fn probe(&mut self, tid: Pid, registers: &Registers, pc: u64) {
        let Some(load) = self.functions.instruction(&self.images, pc) else { return };
        let frame = Frame::innermost(registers);
        let touched = flow::touched(&load, &frame, &mut self.factory);
        if let Some((address, n_bytes, _)) = touched.iter().find(|(_, _, writes)| !writes) {
            let thread = self.thread(tid).number;
            let location = Location { address: *address, n_bytes: *n_bytes };
            self.report.probed.insert((thread, pc), location);
        }
    }

    /// Ends the calls that have returned.
    fn returned(&mut self, tid: Pid, registers: &Registers) {
        loop {
            let thread = self.thread(tid);
            let Some(over) = thread.overs.last() else { return };
            let is_back = registers.rip == over.return_to && registers.rsp == over.rsp;
            // By a jump over many frames, or an exception.
            let is_gone = registers.rsp > over.rsp;
            if !is_back && !is_gone {
                return;
            }
            let over = thread.overs.pop().expect("it was seen");
            let mut shadow = over.shadow;
            shadow.forget(!KEPT);
            if is_back {
                let results = thread.shadow.registers() & RESULTS;
                shadow.mark(if over.spoils_result {
                    bit(Register::RAX) | bit(Register::XMM0)
                } else {
                    results
                });
                if let Some((location, suppressed)) = over.after {
                    self.bytes.fill(location.address, location.n_bytes, suppressed);
                }
            }
            let thread = self.thread(tid);
            thread.is_stepping |= !shadow.is_clean();
            thread.shadow = shadow;
            self.prune(registers.rsp);
        }
    }

    /// Forgets what lies in frames that are gone.
    fn prune(&mut self, rsp: u64) {
        if self.bytes.n_words() > 0 {
            self.bytes.forget(rsp.saturating_sub(1 << 20), rsp.saturating_sub(128));
        }
    }

    /// A debug register tells that a word was touched by the instruction before.
    fn touched(&mut self, tid: Pid, registers: &mut Registers, word: u64) -> io::Result<()> {
        let instruction = self.culprit(registers, word);
        let mut frame = Frame::innermost(registers);
        if let Some(instruction) = &instruction {
            // As it was before.
            let moved = i64::from(instruction.stack_pointer_increment());
            frame.set(RSP, Some(registers.rsp.wrapping_sub(moved as u64)));
        }
        let touched = instruction
            .map(|instruction| flow::touched(&instruction, &frame, &mut self.factory))
            .unwrap_or_default();
        let in_word = |&&(address, n_bytes, _): &&(u64, u64, bool)| {
            address < word + 8 && word < address.saturating_add(n_bytes)
        };
        let exact = touched.iter().find(in_word).copied();
        if let Some(slot) = self.words.iter().position(|(watched, _)| *watched == word) {
            let is_suppressed = self.note_hit(tid, registers, instruction, slot, exact)?;
            if is_suppressed {
                return Ok(());
            }
        }
        let thread = self.thread(tid);
        if thread.is_stepping || thread.overs.last().is_some_and(|over| over.is_opaque) {
            // It was looked at before it was executed.
            return Ok(());
        }
        let mask = self.bytes.get(word, 8);
        if mask == 0 {
            return Ok(());
        }
        if self.images.at(registers.rip).is_some_and(|image| image.is_runtime) {
            return self.pass_runtime(tid, registers);
        }
        let Some(instruction) = instruction else { return Ok(()) };
        match instruction.flow_control() {
            // A return address has its old value back.
            FlowControl::Return => Ok(()),
            FlowControl::Call => {
                self.bytes.fill(registers.rsp, 8, false);
                Ok(())
            }
            FlowControl::IndirectCall if exact.is_none_or(|(_, _, writes)| !writes) => {
                // Through a suppressed pointer: it is not made.
                registers.rip = self.memory().number(registers.rsp, 8).unwrap_or(registers.rip);
                registers.rsp += 8;
                tracee::set_registers(tid, registers)?;
                let thread = self.thread(tid);
                thread.shadow.mark(bit(Register::RAX) | bit(Register::XMM0));
                thread.is_stepping = true;
                self.report.n_skipped += 1;
                Ok(())
            }
            _ => {
                let mut shadow = self.thread(tid).shadow.clone();
                if exact.is_some() {
                    let (bytes, factory) = (&mut self.bytes, &mut self.factory);
                    flow::flow(&instruction, &frame, &mut shadow, bytes, factory);
                } else {
                    // The address is gone with the load, so it is taken for suppressed.
                    for used in self.factory.info(&instruction).used_registers() {
                        use iced_x86::OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
                        if matches!(used.access(), CondWrite | ReadCondWrite | ReadWrite | Write) {
                            shadow.set(used.register(), u64::MAX);
                        }
                    }
                    shadow.flags |= instruction.rflags_modified();
                }
                let thread = self.thread(tid);
                thread.is_stepping = !shadow.is_clean();
                thread.shadow = shadow;
                Ok(())
            }
        }
    }

    /// The instruction that has just touched a word.
    fn culprit(&mut self, registers: &Registers, word: u64) -> Option<Instruction> {
        let rip = registers.rip;
        let near = |address: u64| address & !7 == word;
        let (images, functions, memory) = (&self.images, &self.functions, &self.memory);
        let memory = memory.as_ref()?;
        // A return, or a call that has pushed or read its address.
        if near(registers.rsp.wrapping_sub(8)) && memory.number(registers.rsp - 8, 8) == Some(rip) {
            let mut returned = Instruction::new();
            returned.set_code(Code::Retnq);
            return Some(returned);
        }
        let pushed = memory.number(registers.rsp, 8).unwrap_or(0);
        if let Some(call) = functions.before(images, pushed) {
            let is_direct =
                call.flow_control() == FlowControl::Call && call.near_branch_target() == rip;
            let is_indirect = call.flow_control() == FlowControl::IndirectCall
                && images.function(rip).is_none_or(|bounds| bounds.start == rip);
            if is_indirect || is_direct && near(registers.rsp) {
                return Some(call);
            }
        }
        // One that repeats itself has not come to its end.
        if let Some(here) = functions.instruction(images, rip)
            && here.has_rep_prefix() | here.has_repne_prefix()
            && here.is_string_instruction()
        {
            return Some(here);
        }
        *self.before.entry(rip).or_insert_with(|| functions.before(images, rip))
    }

    /// Notes an access to a word that is watched, and suppresses it if it is to be.
    fn note_hit(
        &mut self,
        tid: Pid,
        registers: &Registers,
        instruction: Option<Instruction>,
        slot: usize,
        exact: Option<(u64, u64, bool)>,
    ) -> io::Result<bool> {
        let (word, before) = self.words[slot];
        let after = self.memory().number(word, 8).unwrap_or(before);
        let writes = match exact {
            Some((_, _, writes)) => writes,
            None => after != before || instruction.is_some_and(|i| failure::is_save(&i)),
        };
        if !writes && (!self.job.with_reads || self.report.hits.len() > READS_MAX) {
            return Ok(false);
        }
        let (address, n_bytes) =
            exact.map_or((word, 8), |(address, n_bytes, _)| (address, n_bytes));
        let pc = instruction.map_or(registers.rip, |instruction| match instruction.ip() {
            0 => registers.rip,
            ip => ip,
        });
        let callers = match self.images.is_own(pc) {
            true => Vec::new(),
            false => self.frames(registers).iter().skip(1).map(Frame::pc).collect(),
        };
        let thread = ThreadId(self.thread(tid).number);
        let location = Location { address, n_bytes };
        let is_save = instruction.is_some_and(|instruction| failure::is_save(&instruction));
        let hit = Hit { thread, pc, callers, location, writes, word, before, after, is_save };
        self.words[slot].1 = after;
        if self.job.watches.iter().any(|watch| watch.overlaps(word, 8)) {
            self.report.hits.push(hit.clone());
        }
        let mut is_suppressed = false;
        if writes {
            for point in 0..self.job.points.len() {
                if self.is_picked(point, &hit) {
                    self.suppress(point, &hit, registers);
                    is_suppressed = true;
                }
            }
        }
        if is_suppressed
            && self.job.with_reads
            && (0..self.job.points.len()).all(|point| self.is_met(point))
        {
            // What comes now is no longer the execution that is asked about.
            self.words.clear();
        }
        Ok(is_suppressed)
    }

    /// Whether a point has been suppressed, with all its parts.
    fn is_met(&self, point: usize) -> bool {
        let count = self.counts[point];
        match &self.job.points[point].pick {
            Pick::Numbers(numbers) => numbers.iter().all(|number| *number < count),
            // A library call may have more parts.
            Pick::Event { nth, .. } => {
                let own = |s: &Suppressed| s.point == point && s.hit.callers.is_empty();
                *nth < count && self.report.suppressed.iter().any(own)
            }
        }
    }

    /// Whether a write is the one that a point means.
    fn is_picked(&mut self, point: usize, hit: &Hit) -> bool {
        let Point { location, pick } = &self.job.points[point];
        if !hit.is_of(location) {
            return false;
        }
        match pick {
            Pick::Numbers(numbers) => {
                let number = self.counts[point];
                self.counts[point] += 1;
                numbers.contains(&number)
            }
            Pick::Event { thread, pc, nth } => {
                let is_behind = (*pc..pc + CALLBACK_BYTES_MAX).contains(&hit.pc);
                let is_within = hit.callers.contains(pc);
                if hit.thread.0 != *thread || !is_behind && !is_within {
                    return false;
                }
                let number = self.counts[point];
                // A library call touches its range in parts, which are one.
                let is_part = is_within
                    && self
                        .report
                        .suppressed
                        .iter()
                        .any(|other| other.point == point && other.hit.callers == hit.callers);
                if !is_part {
                    self.counts[point] += 1;
                }
                is_part || number == *nth
            }
        }
    }

    fn suppress(&mut self, point: usize, hit: &Hit, registers: &Registers) {
        let mut at_store = Frame::innermost(registers);
        at_store.set(frame::RIP, Some(hit.pc));
        let mut frames = self.frames(registers);
        let callers = frames.iter().skip(1).map(Frame::pc).collect();
        frames[0] = at_store;
        let scene = self.scene(&frames);
        let place = scene.place(0).filter(|_| self.images.is_own(hit.pc));
        let sources = place.as_ref().map(|place| scene.of_stored(place)).unwrap_or_default();
        let strays = place.is_some_and(|place| scene.strays(&place, hit.location));
        // What it has written is taken back.
        let location = &hit.location;
        let old = hit.before.to_le_bytes();
        for byte in location.address..location.address + location.n_bytes {
            if (hit.word..hit.word + 8).contains(&byte) {
                self.memory().write(byte, &old[(byte - hit.word) as usize..][..1]);
                self.bytes.fill(byte, 1, true);
            }
        }
        for (word, value) in &mut self.words {
            if *word == hit.word {
                *value = hit.before;
            }
        }
        let n_hits = self.report.hits.len();
        self.report.suppressed.push(Suppressed {
            point,
            hit: hit.clone(),
            sources,
            strays,
            n_hits,
            callers,
        });
    }

    /// A suppressed word was touched in raddle's own library, by an atomic operation most
    /// often: what that gives back is suppressed.
    fn pass_runtime(&mut self, tid: Pid, registers: &Registers) -> io::Result<()> {
        let frames = self.frames(registers);
        let caller = frames.iter().find(|frame| self.images.is_own(frame.pc()));
        if let Some((return_to, rsp)) = caller.and_then(|f| Some((f.pc(), f.get(RSP)?))) {
            let name = self
                .functions
                .before(&self.images, return_to)
                .and_then(|call| self.functions.callee(&self.images, &call).name);
            let stores = name.is_some_and(|name| name.ends_with("_store"));
            let thread = self.thread(tid);
            let shadow =
                thread.overs.last().map_or_else(Shadow::default, |over| over.shadow.clone());
            thread.overs.retain(|over| over.rsp > rsp);
            thread.overs.push(Over {
                return_to,
                rsp,
                shadow,
                spoils_result: !stores,
                is_opaque: true,
                after: None,
            });
        }
        Ok(())
    }

    /// Lets a thread go on: at full speed if it may, else by the next instruction that is to
    /// be executed.
    fn go_on(&mut self, tid: Pid, signal: Option<i32>) -> io::Result<()> {
        if self.thread(tid).is_stepping {
            if self.n_steps_left == 0 {
                let note =
                    "suppressed data is touched all the time; it was given up after so many steps";
                if !self.report.notes.iter().any(|other| other == note) {
                    self.report.notes.push(note.to_owned());
                }
                self.stop_suppression(tid)?;
                return tracee::resume(tid, Go::On, signal);
            }
            let mut registers = tracee::registers(tid)?;
            let before = registers;
            let steps = self.pass_over(tid, &mut registers)?;
            if registers.rip != before.rip || registers.rsp != before.rsp {
                tracee::set_registers(tid, &registers)?;
            }
            if steps {
                self.report.n_stepped += 1;
                self.n_steps_left -= 1;
                self.arm(tid)?;
                return tracee::resume(tid, Go::Step, signal);
            }
        }
        self.thread(tid).is_stepping = false;
        self.protect(tid)?;
        self.arm(tid)?;
        self.arm_others(tid)?;
        let go = match self.protected.is_empty() {
            true => Go::On,
            false => Go::ToSystemCall,
        };
        tracee::resume(tid, go, signal)
    }

    /// Passes over what is suppressed, and stops before an instruction that is to be executed.
    /// Whether it is to be executed alone.
    fn pass_over(&mut self, tid: Pid, registers: &mut Registers) -> io::Result<bool> {
        loop {
            let rip = registers.rip;
            self.refresh(rip);
            let mut shadow = self.thread(tid).shadow.clone();
            // Who is let through a protected page is stepped once, whatever its registers.
            let is_let_through = std::mem::take(&mut self.thread(tid).is_let_through);
            let function = self.functions.at(&self.images, rip);
            let place = function.as_ref().and_then(|function| function.index(rip));
            if let (Some(function), Some(at)) = (&function, place) {
                shadow.forget(!function.live(at) & (FLAGS | (FLAGS - 1)));
                self.thread(tid).shadow = shadow.clone();
            }
            if shadow.is_clean() && !is_let_through {
                return Ok(false);
            }
            if shadow.is_clean()
                && let Some(instruction) = self.functions.instruction(&self.images, rip)
            {
                let frame = Frame::innermost(registers);
                if !self.is_used(tid, &instruction, &frame) {
                    let is_call = matches!(
                        instruction.flow_control(),
                        FlowControl::Call | FlowControl::IndirectCall
                    );
                    if is_call {
                        self.bytes.fill(registers.rsp - 8, 8, false);
                    } else {
                        let thread = self.threads.get_mut(&tid.as_raw()).expect("it is followed");
                        let (bytes, factory) = (&mut self.bytes, &mut self.factory);
                        flow::flow(&instruction, &frame, &mut thread.shadow, bytes, factory);
                    }
                    return Ok(true);
                }
            }
            if self.images.at(rip).is_some_and(|image| image.is_runtime) {
                self.leave_runtime(tid, registers)?;
                return Ok(false);
            }
            let Some(instruction) = self.functions.instruction(&self.images, rip) else {
                self.note_unknown(rip);
                return Ok(true);
            };
            let frame = Frame::innermost(registers);
            match instruction.flow_control() {
                FlowControl::ConditionalBranch => {
                    if !self.is_used(tid, &instruction, &frame) {
                        return Ok(true);
                    }
                    self.report.n_skipped += 1;
                    self.skip_branch(tid, registers, function.as_deref(), place)?;
                }
                FlowControl::IndirectBranch if self.is_used(tid, &instruction, &frame) => {
                    self.report.n_skipped += 1;
                    self.skip_branch(tid, registers, function.as_deref(), place)?;
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    match self.call(tid, registers, &instruction, &frame)? {
                        Called::Skipped => self.report.n_skipped += 1,
                        Called::Entered => return Ok(true),
                        Called::Over => return Ok(false),
                    }
                }
                FlowControl::Return => {
                    self.bytes.fill(registers.rsp, 8, false);
                    self.prune(registers.rsp);
                    return Ok(true);
                }
                _ if instruction.code() == Code::Syscall => {
                    const USED: u64 = 1 | 1 << 7 | 1 << 6 | 1 << 2 | 1 << 10 | 1 << 8 | 1 << 9;
                    let n = calls::n_system_call_arguments(registers.rax);
                    let used = calls::system_call_registers(n) & USED;
                    if shadow.registers() & used == 0 {
                        self.thread(tid).shadow.forget(1 | 1 << 1 | 1 << 11);
                        return Ok(true);
                    }
                    self.thread(tid).shadow.mark(1);
                    registers.rip = instruction.next_ip();
                    self.report.n_skipped += 1;
                }
                _ if instruction.is_string_instruction() => {
                    if self.string(tid, registers, &instruction, &frame)? {
                        return Ok(true);
                    }
                    self.report.n_skipped += 1;
                }
                _ => {
                    let thread = self.threads.get_mut(&tid.as_raw()).expect("it is followed");
                    let (bytes, factory) = (&mut self.bytes, &mut self.factory);
                    let fate = flow::flow(&instruction, &frame, &mut thread.shadow, bytes, factory);
                    if fate != Fate::Skipped {
                        return Ok(true);
                    }
                    registers.rip = instruction.next_ip();
                    self.report.n_skipped += 1;
                }
            }
        }
    }

    fn is_used(&mut self, tid: Pid, instruction: &Instruction, frame: &Frame) -> bool {
        let shadow = self.thread(tid).shadow.clone();
        flow::uses_suppressed(instruction, frame, &shadow, &self.bytes, &mut self.factory)
    }

    fn note_unknown(&mut self, address: u64) {
        let note =
            format!("the instruction at {address:#x} cannot be decoded; it was executed as it is");
        if self.report.notes.len() < 20 && !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }

    /// A branch on something suppressed: goes on where its ways meet; what was to be written on
    /// the way is suppressed.
    fn skip_branch(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        function: Option<&crate::code::Function>,
        place: Option<usize>,
    ) -> io::Result<()> {
        let (Some(function), Some(at)) = (function, place) else {
            return self.leave(tid, registers);
        };
        let frame = Frame::innermost(registers);
        let thread = self.threads.get_mut(&tid.as_raw()).expect("it is followed");
        let (bytes, factory) = (&mut self.bytes, &mut self.factory);
        let meet = flow::pass_branch(function, at, &frame, &mut thread.shadow, bytes, factory);
        match meet {
            Some(address) => {
                registers.rip = address;
                Ok(())
            }
            None => self.leave(tid, registers),
        }
    }

    /// Leaves a function without executing the rest of it.
    fn leave(&mut self, tid: Pid, registers: &mut Registers) -> io::Result<()> {
        let frame = Frame::innermost(registers);
        let Some(caller) = self.images.caller(&frame, self.memory()) else {
            return Err(io::Error::other("a function has no caller to go back to"));
        };
        for number in 0..=16 {
            if let Some(value) = caller.get(number) {
                frame::set(registers, number, value);
            }
        }
        let thread = self.thread(tid);
        thread.shadow.forget(u64::MAX);
        thread.shadow.mark(bit(Register::RAX) | bit(Register::XMM0));
        self.returned(tid, registers);
        let thread = self.thread(tid);
        thread.shadow.mark(bit(Register::RAX) | bit(Register::XMM0));
        thread.is_stepping = true;
        tracee::set_registers(tid, registers)
    }

    /// In raddle's own library nothing is suppressed; what comes out of it may be.
    fn leave_runtime(&mut self, tid: Pid, registers: &mut Registers) -> io::Result<()> {
        let frames = self.frames(registers);
        let spoils_result = self.thread(tid).shadow.registers() & RESULTS != 0;
        let is_program = |frame: &&Frame| {
            let name = self.images.function(frame.pc()).and_then(|bounds| bounds.name);
            self.images.is_own(frame.pc()) && name != Some("_start")
        };
        let caller = frames.iter().find(is_program);
        if caller.is_none() && spoils_result {
            // A thread's first function has returned, with something suppressed.
            registers.rax = 0;
            tracee::set_registers(tid, registers)?;
        }
        let place = caller.and_then(|frame| Some((frame.pc(), frame.get(RSP)?)));
        let thread = self.thread(tid);
        let mut shadow = std::mem::take(&mut thread.shadow);
        if let Some((return_to, rsp)) = place {
            if let Some(over) = thread.overs.last_mut().filter(|over| over.rsp == rsp) {
                over.spoils_result |= spoils_result;
                return Ok(());
            }
            shadow.forget(!KEPT);
            thread.overs.push(Over {
                return_to,
                rsp,
                shadow,
                spoils_result,
                is_opaque: true,
                after: None,
            });
        }
        Ok(())
    }

    /// A call, while registers are suppressed.
    fn call(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        call: &Instruction,
        frame: &Frame,
    ) -> io::Result<Called> {
        let shadow = self.thread(tid).shadow.clone();
        let target_suppressed = call.flow_control() == FlowControl::IndirectCall
            && match call.op0_kind() {
                OpKind::Register => shadow.get(call.op0_register()) != 0,
                _ => self.is_used(tid, call, frame),
            };
        let next = call.next_ip();
        if target_suppressed {
            self.skip_call(tid, registers, next, None);
            return Ok(Called::Skipped);
        }
        let callee = self.functions.callee(&self.images, call);
        let entry = match (callee.entry, call.op0_kind()) {
            (Some(entry), _) => Some(entry),
            (None, OpKind::Register) => frame.value(call.op0_register()),
            (None, OpKind::Memory) => {
                let touched = flow::touched(call, frame, &mut self.factory);
                let read = touched.iter().find(|(_, _, writes)| !writes);
                read.and_then(|(address, ..)| self.memory().number(*address, 8))
            }
            _ => None,
        };
        let name = callee.name.or_else(|| {
            let bounds = self.images.function(entry?)?;
            bounds.name.map(str::to_owned)
        });
        let name = name.as_deref().unwrap_or("");
        let is_own =
            entry.is_some_and(|entry| self.images.is_own(entry)) && !name.starts_with("__tsan_");
        let given = shadow.registers() & ARGUMENTS & !1;
        if calls::is_exit(name) && given & bit(Register::RDI) != 0 {
            // How it ends is suppressed, not that it does.
            registers.rdi = 0;
            tracee::set_registers(tid, registers)?;
            self.thread(tid).shadow.forget(bit(Register::RDI));
            return self.call(tid, registers, call, &Frame::innermost(registers));
        }
        let mut used = match calls::n_arguments(name) {
            Some(n) => given & calls::argument_registers(n),
            // What it reads before it writes it.
            None => match entry.and_then(|entry| self.functions.at(&self.images, entry)) {
                Some(function)
                    if entry.and_then(|entry| function.index(entry)) == Some(function.entry()) =>
                {
                    given & function.arguments()
                }
                _ => given & self.set_for(call),
            },
        };
        let mut over = Over {
            return_to: next,
            rsp: registers.rsp,
            shadow: shadow.clone(),
            spoils_result: false,
            is_opaque: false,
            after: None,
        };
        if let Some(model) = calls::callback(name) {
            // Steps are counted in callbacks, so they are made, with another address.
            over.is_opaque = true;
            let address_suppressed = shadow.get(Register::RDI) != 0;
            let value_suppressed = used & !bit(Register::RDI) != 0;
            if model.is_atomic && (address_suppressed || value_suppressed) {
                over.spoils_result = true;
                if !address_suppressed && model.writes {
                    let location =
                        Location { address: registers.rdi, n_bytes: u64::from(model.n_bytes) };
                    over.after = Some((location, true));
                }
                registers.rdi = registers.rsp - 256;
            } else if model.is_atomic {
                let n_bytes = u64::from(model.n_bytes);
                over.spoils_result = model.reads && self.bytes.any(registers.rdi, n_bytes);
                if model.writes && !model.reads {
                    let location = Location { address: registers.rdi, n_bytes };
                    over.after = Some((location, false));
                }
            } else if address_suppressed {
                registers.rdi = registers.rsp - 256;
            }
            tracee::set_registers(tid, registers)?;
            used = 0;
        }
        if used == 0 {
            let thread = self.thread(tid);
            thread.overs.push(over);
            thread.shadow = Shadow::default();
            return Ok(Called::Over);
        }
        if is_own {
            return Ok(Called::Entered);
        }
        self.skip_call(tid, registers, next, Some((name, used)));
        Ok(Called::Skipped)
    }

    /// Does not make a call. What it would have written is suppressed as far as that is known.
    fn skip_call(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        next: u64,
        callee: Option<(&str, u64)>,
    ) {
        if let Some((name, used)) = callee
            && let Some(n) = calls::written(name, registers)
            && used & bit(Register::RDI) == 0
        {
            let n = if used & bit(Register::RDX) != 0 { 1 } else { n };
            self.bytes.fill(registers.rdi, n.min(1 << 16), true);
        }
        let thread = self.thread(tid);
        thread.shadow.forget(!KEPT);
        thread.shadow.mark(bit(Register::RAX) | bit(Register::XMM0));
        registers.rip = next;
    }

    /// The argument registers that are set for a call: written since the call before.
    fn set_for(&self, call: &Instruction) -> u64 {
        let Some(function) = self.functions.at(&self.images, call.ip()) else { return ARGUMENTS };
        let Some(at) = function.index(call.ip()) else { return ARGUMENTS };
        let mut factory = InstructionInfoFactory::new();
        let mut set = 0;
        for instruction in function.instructions()[..at].iter().rev().take(64) {
            if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
                break;
            }
            for used in factory.info(instruction).used_registers() {
                use iced_x86::OpAccess::{CondRead, Read};
                if !matches!(used.access(), Read | CondRead) {
                    set |= bit(used.register());
                }
            }
        }
        set
    }

    /// A string instruction as a whole, if it uses anything suppressed; whether it does not.
    fn string(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        instruction: &Instruction,
        frame: &Frame,
    ) -> io::Result<bool> {
        let shadow = self.thread(tid).shadow.clone();
        let touched = flow::touched(instruction, frame, &mut self.factory);
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let n = if repeats { registers.rcx } else { 1 };
        let width = touched.first().map_or(1, |(_, n_bytes, _)| *n_bytes);
        let total = n.saturating_mul(width).min(1 << 24);
        let address_suppressed = shadow.registers()
            & (bit(Register::RSI) | bit(Register::RDI) | bit(Register::RCX))
            != 0;
        let source_suppressed =
            touched.iter().any(|(address, _, writes)| !writes && self.bytes.any(*address, total))
                || matches!(
                    instruction.mnemonic(),
                    Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq
                ) && shadow.get(Register::RAX) != 0;
        if !address_suppressed && !source_suppressed {
            for (address, _, writes) in touched {
                if writes {
                    self.bytes.fill(address, total, false);
                }
            }
            return Ok(true);
        }
        registers.rip = instruction.next_ip();
        let is_move = matches!(
            instruction.mnemonic(),
            Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq
        );
        let is_backwards = registers.eflags & 0x400 != 0;
        if is_move && !address_suppressed && !is_backwards {
            // Byte by byte: what is clean is moved.
            for at in 0..total {
                let (from, to) = (registers.rsi + at, registers.rdi + at);
                let suppressed = self.bytes.any(from, 1);
                if !suppressed && let Some(byte) = self.memory().number(from, 1) {
                    self.memory().write(to, &[byte as u8]);
                }
                self.bytes.fill(to, 1, suppressed);
            }
            registers.rsi += total;
            registers.rdi += total;
            registers.rcx = if repeats { 0 } else { registers.rcx };
            tracee::set_registers(tid, registers)?;
            return Ok(false);
        }
        if !address_suppressed {
            for (address, _, writes) in touched {
                if writes {
                    self.bytes.fill(address, total, true);
                }
            }
        }
        let thread = self.thread(tid);
        thread.shadow.mark(bit(Register::RSI) | bit(Register::RDI) | bit(Register::RAX));
        if repeats {
            thread.shadow.mark(bit(Register::RCX));
        }
        thread.shadow.flags |= instruction.rflags_modified();
        Ok(false)
    }

    /// Sets a thread's debug registers to what is to be watched now.
    fn arm(&mut self, tid: Pid) -> io::Result<()> {
        let reads = self.job.with_reads && self.report.hits.len() <= READS_MAX;
        let how = if reads { Watched::All } else { Watched::Writes };
        let mut slots = [None; N_DEBUG_REGISTERS];
        let mut n = 0;
        for &(word, _) in &self.words {
            slots[n] = Some((word, how));
            n += 1;
        }
        for &pc in self.job.probes.iter().take(N_DATA - n) {
            slots[n] = Some((pc, Watched::Execution));
            n += 1;
        }
        for word in self.bytes.words().filter(|word| !self.protected.contains(&(word / PAGE))) {
            if let Some(slot) = slots[..n].iter_mut().flatten().find(|slot| slot.0 == word) {
                slot.1 = Watched::All;
            } else if n < N_DATA {
                slots[n] = Some((word, Watched::All));
                n += 1;
            }
        }
        // Words that are watched for the first time.
        let thread = self.thread(tid);
        slots[N_DATA] = thread.overs.last().map(|over| (over.return_to, Watched::Execution));
        if slots[N_DATA].is_none() {
            slots[N_DATA] = self.panic.map(|entry| (entry, Watched::Execution));
        }
        if self.thread(tid).armed != Some(slots) {
            tracee::set_debug_registers(tid, &slots)?;
            self.thread(tid).armed = Some(slots);
        }
        Ok(())
    }

    /// Lets all other threads watch what this one does. They wait, but not for us, so they
    /// have to be stopped for it.
    fn arm_others(&mut self, tid: Pid) -> io::Result<()> {
        if self.job.points.is_empty() || self.report.suppressed.is_empty() {
            // Nothing has changed since they were started.
            return Ok(());
        }
        let wanted = self.thread(tid).armed.unwrap_or_default();
        let is_behind = |(other, thread): (&i32, &Thread)| {
            let data =
                |slots: &[Option<(u64, Watched)>; N_DEBUG_REGISTERS]| slots[..N_DATA].to_vec();
            *other != tid.as_raw()
                && !thread.is_new
                && !thread.is_called
                && thread.armed.as_ref().map(data) != Some(data(&wanted))
        };
        let behind: Vec<i32> =
            self.threads.iter().filter(|thread| is_behind(*thread)).map(|(tid, _)| *tid).collect();
        for other in behind {
            let other = Pid::from_raw(other);
            if self.queue.iter().any(|(queued, _)| *queued == other) {
                // It has stopped already, and is armed when its turn comes.
                continue;
            }
            if !tracee::call(self.leader, other) {
                continue;
            }
            self.thread(other).is_called = true;
            loop {
                let (stopped, stop) = tracee::wait()?;
                if stopped == other && stop == Stop::Signal(libc::SIGSTOP) {
                    self.thread(other).is_called = false;
                    self.arm(other)?;
                    let go = if self.protected.is_empty() { Go::On } else { Go::ToSystemCall };
                    tracee::resume(other, go, None)?;
                    break;
                }
                self.queue.push_back((stopped, stop));
                if stopped == other {
                    // Something else came first.
                    break;
                }
            }
        }
        Ok(())
    }

    fn is_protection(&self, tid: Pid) -> bool {
        let (address, _) = tracee::fault(tid);
        self.protected.contains(&(address / PAGE))
            || self.protected.contains(&((address + 63) / PAGE))
    }

    fn was_protection(&self, tid: Pid) -> bool {
        let (address, code) = tracee::fault(tid);
        code == SEGV_ACCERR && self.ever_protected.contains(&(address / PAGE))
    }

    /// Protects the pages of suppressed words for which there is no debug register.
    fn protect(&mut self, tid: Pid) -> io::Result<()> {
        let room = N_DATA.saturating_sub(self.words.len());
        let unwatched = |word: &u64| !self.words.iter().any(|(watched, _)| watched == word);
        let words: Vec<u64> = self.bytes.words().filter(unwatched).collect();
        let mut wanted: FxHashSet<u64> = FxHashSet::default();
        if words.len() > room {
            // Pages of the stack are touched all the time, so its words come first.
            let rsp = tracee::registers(tid)?.rsp;
            let is_stack = |word: &&u64| (rsp..rsp + (8 << 20)).contains(*word);
            let mut sorted: Vec<u64> = words.iter().filter(is_stack).copied().collect();
            sorted.extend(words.iter().filter(|word| !is_stack(word)));
            wanted.extend(sorted[room..].iter().map(|word| word / PAGE));
        }
        let gone: Vec<u64> = self.protected.difference(&wanted).copied().collect();
        for page in gone {
            self.set_protection(tid, page, true)?;
            self.protected.remove(&page);
        }
        let new: Vec<u64> = wanted.difference(&self.protected).copied().collect();
        for page in new {
            if self.set_protection(tid, page, false)? {
                self.protected.insert(page);
                self.ever_protected.insert(page);
            }
        }
        Ok(())
    }

    /// Lets everybody at all pages until [`Follower::protect`] is called again.
    fn lift(&mut self, tid: Pid) -> io::Result<()> {
        let pages: Vec<u64> = self.protected.drain().collect();
        for &page in &pages {
            self.set_protection(tid, page, true)?;
        }
        Ok(())
    }

    /// Lets the target change the protection of one of its pages; whether it could.
    fn set_protection(&mut self, tid: Pid, page: u64, open: bool) -> io::Result<bool> {
        let Some(instruction) = self.borrowed_system_call() else { return Ok(false) };
        let saved = tracee::registers(tid)?;
        let protection = if open { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
        let mut registers = saved;
        registers.rip = instruction;
        registers.rax = libc::SYS_mprotect as u64;
        registers.orig_rax = u64::MAX;
        registers.rdi = page * PAGE;
        registers.rsi = PAGE;
        registers.rdx = protection as u64;
        tracee::set_registers(tid, &registers)?;
        tracee::set_debug_registers(tid, &[None; N_DEBUG_REGISTERS])?;
        self.thread(tid).armed = Some([None; N_DEBUG_REGISTERS]);
        tracee::resume(tid, Go::Step, None)?;
        loop {
            let next = tracee::wait()?;
            match next {
                (stopped, Stop::Signal(libc::SIGTRAP)) if stopped == tid => break,
                (stopped, Stop::Signal(libc::SIGSTOP)) if stopped == tid => {
                    self.thread(tid).is_called = false;
                    tracee::resume(tid, Go::Step, None)?;
                }
                (stopped, stop) => {
                    // It has its turn later.
                    self.queue.push_back((stopped, stop));
                    if stopped == tid {
                        // If it is still there, as it was.
                        let _ = tracee::set_registers(tid, &saved);
                        return Ok(false);
                    }
                }
            }
        }
        let result = tracee::registers(tid)?.rax;
        tracee::set_registers(tid, &saved)?;
        Ok(result == 0)
    }

    fn borrowed_system_call(&mut self) -> Option<u64> {
        if self.syscall.is_none() {
            let modules = self.images.modules();
            let libc = modules.iter().find(|module| module.path.contains("libc.so"))?;
            let mut at = libc.low;
            while at < libc.high && self.syscall.is_none() {
                let code = self.images.code(at, 1 << 20).unwrap_or(&[]);
                let is_function = |at: u64| {
                    let function = self.functions.at(&self.images, at);
                    function.is_some_and(|function| function.index(at).is_some())
                };
                self.syscall = code
                    .windows(2)
                    .enumerate()
                    .filter(|(_, bytes)| *bytes == [0x0f, 0x05])
                    .map(|(offset, _)| at + offset as u64)
                    .find(|&at| is_function(at));
                at += if code.is_empty() { PAGE } else { code.len() as u64 };
            }
        }
        self.syscall
    }

    /// The kernel cannot access protected pages for the target, and in the middle of a system
    /// call no other one can be borrowed: it is put off until the pages are open.
    fn system_call(&mut self, tid: Pid) -> io::Result<()> {
        let state = self.thread(tid).system_call.clone();
        match state {
            SystemCall::None if self.protected.is_empty() => {
                self.thread(tid).system_call = SystemCall::Made;
                tracee::resume(tid, Go::ToSystemCall, None)
            }
            SystemCall::None => {
                let saved = tracee::registers(tid)?;
                tracee::set_registers(tid, &Registers { orig_rax: u64::MAX, ..saved })?;
                self.thread(tid).system_call = SystemCall::PutOff(Box::new(saved));
                tracee::resume(tid, Go::ToSystemCall, None)
            }
            SystemCall::PutOff(saved) => {
                self.lift(tid)?;
                let rip = saved.rip - 2;
                let again = Registers { rip, rax: saved.orig_rax, orig_rax: u64::MAX, ..*saved };
                tracee::set_registers(tid, &again)?;
                self.thread(tid).system_call = SystemCall::None;
                tracee::resume(tid, Go::ToSystemCall, None)
            }
            SystemCall::Made => {
                self.thread(tid).system_call = SystemCall::None;
                self.go_on(tid, None)
            }
        }
    }
}

/// What became of a call.
enum Called {
    /// It was not made.
    Skipped,
    /// It is followed.
    Entered,
    /// It runs at full speed.
    Over,
}

/// The kernel's code for a fault by protection.
const SEGV_ACCERR: i32 = 2;
/// How far behind its callback an access may be.
const CALLBACK_BYTES_MAX: u64 = 64;
/// The kernel's code for a trap that the program has made itself.
const SI_KERNEL_TRAP: i32 = 0x80;
