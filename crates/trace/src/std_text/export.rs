//! From a trace to STD text.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::event::{Access, AtomicAction, ChannelOp, Event, LockOp, Op};
use crate::file::{ReadError, Trace};
use crate::id::{Addr, Pc, ThreadId};
use crate::location::Locations;
use crate::record::{Lock, Wake};

/// Why a trace could not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The text cannot be written.
    #[error("cannot write the text: {0}")]
    Write(#[from] io::Error),
}

/// What the numbers in an exported text mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Legend {
    /// Code address by the number in the third field.
    pub sites: Vec<Pc>,
    /// By variable number: the memory, or `None` for the variable that represents a
    /// synchronization object.
    pub variables: Vec<Option<Range<u64>>>,
    /// Address by lock number. A reader-writer lock has several numbers.
    pub locks: Vec<Addr>,
    /// Number of lines.
    pub n_lines: u64,
}

/// Writes `trace` as STD text. Reads it twice, first to find which accesses overlap.
pub fn export(trace: &Trace, out: &mut impl Write) -> Result<Legend, ExportError> {
    let mut exporter = Exporter::new(Survey::new(trace)?, out);
    for event in trace.events() {
        exporter.event(event?)?;
    }
    exporter.out.flush()?;
    Ok(exporter.legend)
}

/// What must be known of the whole trace before its first line.
#[derive(Default)]
struct Survey {
    // In address order.
    ranges: Vec<Range<u64>>,
    // By lock: the threads that ever acquire it for reading.
    readers: FxHashMap<Addr, BTreeSet<ThreadId>>,
}

impl Survey {
    fn new(trace: &Trace) -> Result<Self, ReadError> {
        let mut locations = Locations::new();
        let mut readers: FxHashMap<Addr, BTreeSet<ThreadId>> = FxHashMap::default();
        for event in trace.events() {
            let event = event?;
            match event.op {
                Op::Read(access) | Op::Write(access) => locations.touch(access.addr, access.bytes),
                Op::Atomic(atomic) => locations.touch(atomic.addr, u64::from(atomic.bytes)),
                Op::Acquire(LockOp { lock, shared: true, .. }) => {
                    readers.entry(lock).or_default().insert(event.thread);
                }
                _ => {}
            }
        }
        Ok(Self { ranges: locations.ranges(), readers })
    }
}

struct Exporter<'a, W> {
    out: &'a mut W,
    survey: Survey,
    // From the start of a range to its index in `survey.ranges`.
    places: FxHashMap<u64, usize>,
    // By index: the current variable.
    variables: Vec<Option<u32>>,
    sites: FxHashMap<Pc, u32>,
    locks: FxHashMap<LockName, u32>,
    // Variables that represent synchronization objects.
    objects: FxHashMap<Addr, u32>,
    // How many times a thread has acquired a lock that it holds.
    holds: FxHashMap<(ThreadId, Addr), Hold>,
    legend: Legend,
}

/// A lock in the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum LockName {
    /// A lock of the target; for a reader-writer lock, that of its writers.
    Lock(Addr),
    /// A reader's share of a reader-writer lock.
    Reader(Addr, ThreadId),
    /// The lock around a synchronization object's variable.
    Object(Addr),
    /// The lock around atomic operations at an address.
    Atomic(Addr),
}

#[derive(Clone, Copy)]
struct Hold {
    n: u32,
    shared: bool,
}

/// Thread and code address of an operation.
#[derive(Clone, Copy)]
struct Place {
    thread: ThreadId,
    site: u32,
}

impl<'a, W: Write> Exporter<'a, W> {
    fn new(survey: Survey, out: &'a mut W) -> Self {
        let starts = survey.ranges.iter().enumerate().map(|(place, range)| (range.start, place));
        Self {
            places: starts.collect(),
            variables: vec![None; survey.ranges.len()],
            survey,
            out,
            sites: FxHashMap::default(),
            locks: FxHashMap::default(),
            objects: FxHashMap::default(),
            holds: FxHashMap::default(),
            legend: Legend::default(),
        }
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        let Event { thread, pc, op } = event;
        match op {
            Op::Read(access) => {
                let at = self.place(thread, pc);
                self.access(at, 'r', access)
            }
            Op::Write(access) => {
                let at = self.place(thread, pc);
                self.access(at, 'w', access)
            }
            Op::Atomic(atomic) => {
                let at = self.place(thread, pc);
                let bytes = u64::from(atomic.bytes);
                let access = Access {
                    addr: atomic.addr,
                    bytes,
                    volatile: false,
                    vptr: false,
                    range: false,
                    repeats: 0,
                };
                let lock = self.lock(LockName::Atomic(atomic.addr));
                self.line(at, format_args!("acq(L{lock})"))?;
                if atomic.action != AtomicAction::Store {
                    self.access(at, 'r', access)?;
                }
                if !matches!(atomic.action, AtomicAction::Load | AtomicAction::Miss) {
                    self.access(at, 'w', access)?;
                }
                self.line(at, format_args!("rel(L{lock})"))
            }
            Op::Alloc { block, room: bytes, .. } | Op::Map { addr: block, bytes } => {
                self.forget(block, bytes);
                Ok(())
            }
            Op::Free { block, bytes } | Op::Unmap { addr: block, bytes } => {
                let known = self.known(block, bytes);
                if known.iter().any(Option::is_some) {
                    let at = self.place(thread, pc);
                    for variable in known.into_iter().flatten() {
                        self.line(at, format_args!("w(V{variable})"))?;
                    }
                }
                self.forget(block, bytes);
                Ok(())
            }
            Op::Spawn(child) => {
                let at = self.place(thread, pc);
                self.line(at, format_args!("fork(T{})", child.0))
            }
            Op::Join(child) => {
                let at = self.place(thread, pc);
                self.line(at, format_args!("join(T{})", child.0))
            }
            Op::Acquire(lock) => self.acquire(thread, pc, lock),
            Op::Release(lock) => self.release(thread, pc, lock),
            Op::UnitBegin(_) => {
                let at = self.place(thread, pc);
                self.line(at, format_args!("begin"))
            }
            Op::UnitEnd(_) => {
                let at = self.place(thread, pc);
                self.line(at, format_args!("end"))
            }
            Op::SemPost(object)
            | Op::BarrierEnter(object)
            | Op::Before(object)
            | Op::OnceEnd { control: object, done: true }
            | Op::CondSignal { cond: object, .. }
            | Op::CondBroadcast { cond: object, .. }
            | Op::FutexWake { futex: object, .. } => self.object(thread, pc, object, "w"),
            Op::BarrierLeave(object)
            | Op::SemAsk(object)
            | Op::After(object)
            | Op::OncePass(object)
            | Op::CondWake { cond: object, how: Wake::Woken, .. }
            | Op::FutexWoken { futex: object, how: Wake::Woken, .. } => {
                self.object(thread, pc, object, "r")
            }
            Op::Send(ChannelOp { channel, .. }) => self.object(thread, pc, Addr(channel), "w"),
            Op::Receive(ChannelOp { channel, .. }) => self.object(thread, pc, Addr(channel), "r"),
            Op::SemWait { semaphore, .. } => self.object(thread, pc, semaphore, "rw"),
            Op::Fence { .. }
            | Op::Enter { .. }
            | Op::Leave
            | Op::Switch { .. }
            | Op::Choice { .. }
            | Op::Begin { .. }
            | Op::End
            | Op::Detach(_)
            | Op::Init { .. }
            | Op::Destroy { .. }
            | Op::CondWait { .. }
            | Op::CondWake { .. }
            | Op::OnceBegin(_)
            | Op::OnceEnd { .. }
            | Op::FutexWait { .. }
            | Op::FutexWoken { .. }
            | Op::Sleep { .. }
            | Op::Yield
            | Op::Block { .. }
            | Op::Unblock { .. }
            | Op::Clock { .. }
            | Op::Exit { .. }
            | Op::Fork
            | Op::Signal { .. }
            | Op::Fiber(_)
            | Op::Step
            | Op::Repeats { .. } => Ok(()),
        }
    }

    fn line(&mut self, at: Place, what: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.legend.n_lines += 1;
        writeln!(self.out, "T{}|{what}|{}", at.thread.0, at.site)
    }

    fn access(&mut self, at: Place, letter: char, access: Access) -> io::Result<()> {
        let end = access.addr.0.saturating_add(access.bytes);
        let Some(&first) = self.places.get(&access.addr.0) else { return Ok(()) };
        for place in first..self.survey.ranges.len() {
            if self.survey.ranges[place].start >= end {
                break;
            }
            let variable = self.variable(place);
            self.line(at, format_args!("{letter}(V{variable})"))?;
        }
        Ok(())
    }

    fn acquire(&mut self, thread: ThreadId, pc: Pc, op: LockOp) -> io::Result<()> {
        let hold = self.holds.entry((thread, op.lock)).or_insert(Hold { n: 0, shared: op.shared });
        hold.n += 1;
        if hold.n > 1 {
            return Ok(());
        }
        let at = self.place(thread, pc);
        for name in self.names(thread, op) {
            let lock = self.lock(name);
            self.line(at, format_args!("acq(L{lock})"))?;
        }
        Ok(())
    }

    fn release(&mut self, thread: ThreadId, pc: Pc, op: LockOp) -> io::Result<()> {
        let Some(hold) = self.holds.get_mut(&(thread, op.lock)) else { return Ok(()) };
        hold.n -= 1;
        if hold.n > 0 {
            return Ok(());
        }
        // The release of a reader-writer lock does not say how it was acquired.
        let op = LockOp { shared: hold.shared, ..op };
        self.holds.remove(&(thread, op.lock));
        let at = self.place(thread, pc);
        for name in self.names(thread, op).into_iter().rev() {
            let lock = self.lock(name);
            self.line(at, format_args!("rel(L{lock})"))?;
        }
        Ok(())
    }

    /// The locks in the text that represent a lock operation.
    fn names(&self, thread: ThreadId, op: LockOp) -> Vec<LockName> {
        if op.shared {
            return vec![LockName::Reader(op.lock, thread)];
        }
        let mut names = vec![LockName::Lock(op.lock)];
        if op.kind == Lock::RwLock
            && let Some(readers) = self.survey.readers.get(&op.lock)
        {
            names.extend(readers.iter().map(|&reader| LockName::Reader(op.lock, reader)));
        }
        names
    }

    /// An operation on a synchronization object: accesses its variable under its lock.
    fn object(&mut self, thread: ThreadId, pc: Pc, object: Addr, letters: &str) -> io::Result<()> {
        let at = self.place(thread, pc);
        let lock = self.lock(LockName::Object(object));
        let variables = &mut self.legend.variables;
        let variable = *self.objects.entry(object).or_insert_with(|| {
            variables.push(None);
            (variables.len() - 1) as u32
        });
        self.line(at, format_args!("acq(L{lock})"))?;
        for letter in letters.chars() {
            self.line(at, format_args!("{letter}(V{variable})"))?;
        }
        self.line(at, format_args!("rel(L{lock})"))
    }

    fn place(&mut self, thread: ThreadId, pc: Pc) -> Place {
        let sites = &mut self.legend.sites;
        let site = *self.sites.entry(pc).or_insert_with(|| {
            sites.push(pc);
            (sites.len() - 1) as u32
        });
        Place { thread, site }
    }

    fn lock(&mut self, name: LockName) -> u32 {
        let locks = &mut self.legend.locks;
        *self.locks.entry(name).or_insert_with(|| {
            locks.push(match name {
                LockName::Lock(addr)
                | LockName::Reader(addr, _)
                | LockName::Object(addr)
                | LockName::Atomic(addr) => addr,
            });
            (locks.len() - 1) as u32
        })
    }

    fn variable(&mut self, place: usize) -> u32 {
        let (variables, ranges) = (&mut self.legend.variables, &self.survey.ranges);
        *self.variables[place].get_or_insert_with(|| {
            variables.push(Some(ranges[place].clone()));
            (variables.len() - 1) as u32
        })
    }

    /// The variables in a block of memory.
    fn known(&self, block: Addr, bytes: u64) -> Vec<Option<u32>> {
        self.variables[self.within(block, bytes)].to_vec()
    }

    fn forget(&mut self, block: Addr, bytes: u64) {
        let within = self.within(block, bytes);
        self.variables[within].fill(None);
    }

    /// The indices of the ranges in a block of memory.
    fn within(&self, block: Addr, bytes: u64) -> Range<usize> {
        let ranges = &self.survey.ranges;
        let end = block.0.saturating_add(bytes);
        let first = ranges.partition_point(|range| range.start < block.0);
        first..first + ranges[first..].partition_point(|range| range.start < end)
    }
}
