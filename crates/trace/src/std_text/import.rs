//! From STD text to a trace.

use std::io::{self, BufRead};

use rustc_hash::FxHashMap;

use crate::control::Mode;
use crate::file::{Summary, WriteError, Writer};
use crate::id::{Addr, ThreadId};
use crate::record::{Kind, Lock, Record, Switch};
use crate::run::{Module, Run, Thread};

/// Why a text could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text cannot be read.
    #[error("cannot read the text: {0}")]
    Read(#[from] io::Error),
    /// The trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A malformed line.
    #[error("line {line}: {what}; a line reads like `T0|r(V12)|34`")]
    #[expect(missing_docs, reason = "a field is named for what it holds")]
    Line { line: u64, what: String },
}

/// Writes the trace that an STD text describes.
///
/// A thread that no line forks is the main thread if it is the first; otherwise its name begins
/// with `other`. Variables become memory of 8 bytes each; locations become code addresses in a
/// module `imported`, with their numbers as offsets. `req` lines, by which some tools announce
/// that a lock is wanted, are skipped, and so are empty ones. If the text is malformed, no trace
/// is left.
pub fn import(text: impl BufRead, writer: Writer) -> Result<Summary, ImportError> {
    let mut importer = Importer::new(writer);
    match importer.all(text) {
        Ok(()) => {
            let run = importer.run();
            Ok(importer.writer.finish(&run)?)
        }
        Err(err) => {
            importer.writer.discard();
            Err(err)
        }
    }
}

/// Name of the program and module, which the text does not contain.
const IMPORTED: &str = "imported";
/// Address of the variables. Any address would do that is neither code nor a lock.
const VARIABLES: u64 = 0x10_0000_0000;
const VARIABLE_BYTES: u8 = 8;
/// Address of the locks, spaced like mutexes.
const LOCKS: u64 = 0x20_0000_0000;
const LOCK_BYTES: u64 = 64;
/// Address of the code.
const CODE: u64 = 0x40_0000;
/// Larger locations are rejected, since they would not fit in a code address.
const SITES_MAX: u64 = 1 << 40;
/// Number of records that are collected before they go to the writer.
const BATCH_RECORDS: usize = 4096;

struct Importer {
    writer: Writer,
    batch: Vec<Record>,
    threads: Vec<Thread>,
    numbers: FxHashMap<String, ThreadId>,
    // By thread: the number of threads that it has forked, and whether it has been forked or has
    // run.
    n_children: Vec<u32>,
    started: Vec<bool>,
    n_others: u32,
    variables: FxHashMap<String, u64>,
    locks: FxHashMap<String, u64>,
    // By lock address: the holder, and how many times it has acquired the lock.
    holders: FxHashMap<u64, (ThreadId, u32)>,
    running: Option<ThreadId>,
    // Number of lines of the running thread since it got the turn.
    n_steps: u64,
    site_max: u64,
}

/// A parsed line.
struct Line<'a> {
    thread: &'a str,
    op: &'a str,
    operand: Option<&'a str>,
    site: u64,
}

impl Importer {
    fn new(writer: Writer) -> Self {
        Self {
            writer,
            batch: Vec::new(),
            threads: Vec::new(),
            numbers: FxHashMap::default(),
            n_children: Vec::new(),
            started: Vec::new(),
            n_others: 0,
            variables: FxHashMap::default(),
            locks: FxHashMap::default(),
            holders: FxHashMap::default(),
            running: None,
            n_steps: 0,
            site_max: 0,
        }
    }

    fn all(&mut self, mut text: impl BufRead) -> Result<(), ImportError> {
        let mut bytes = Vec::new();
        let mut number = 0;
        loop {
            bytes.clear();
            if text.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            number += 1;
            let bad = |what| ImportError::Line { line: number, what };
            let line = std::str::from_utf8(&bytes).map_err(|_| bad("not text".to_owned()))?.trim();
            if !line.is_empty() {
                self.line(line).map_err(bad)?;
            }
            if self.batch.len() >= BATCH_RECORDS {
                self.flush()?;
            }
        }
        self.flush()?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.push(0, &self.batch)?;
        self.batch.clear();
        Ok(())
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        let line = parse(text)?;
        if line.op == "req" {
            return Ok(());
        }
        let thread = match self.numbers.get(line.thread) {
            Some(&thread) => thread,
            None => self.add_root(line.thread),
        };
        self.started[thread.0 as usize] = true;
        let (kind, info, value) = match (line.op, line.operand) {
            ("r", Some(name)) => (Kind::Read, VARIABLE_BYTES, self.variable(name)),
            ("w", Some(name)) => (Kind::Write, VARIABLE_BYTES, self.variable(name)),
            ("acq", Some(name)) => (Kind::Acquire, Lock::Mutex as u8, self.acquire(thread, name)?),
            ("rel", Some(name)) => (Kind::Release, Lock::Mutex as u8, self.release(thread, name)?),
            ("fork", Some(name)) => (Kind::Spawn, 0, self.fork(thread, name)?),
            ("join", Some(name)) => (Kind::Join, 0, self.join(thread, name)?),
            ("begin", None) => (Kind::UnitBegin, 0, 0),
            ("end", None) => (Kind::UnitEnd, 0, 0),
            (op @ ("r" | "w" | "acq" | "rel" | "fork" | "join"), None) => {
                return Err(format!("`{op}` of nothing"));
            }
            (op @ ("begin" | "end"), Some(_)) => return Err(format!("`{op}` takes no operand")),
            (op, _) => return Err(format!("unknown operation `{op}`")),
        };
        self.site_max = self.site_max.max(line.site);
        self.give_turn(thread);
        self.n_steps += 1;
        self.batch.push(Record::new(kind, info, value, 0, CODE + line.site));
        Ok(())
    }

    fn give_turn(&mut self, thread: ThreadId) {
        if self.running == Some(thread) {
            return;
        }
        // A trace begins with thread 0, which is the first in the text.
        if self.running.is_some() {
            let to = u64::from(thread.0);
            self.batch.push(Record::new(Kind::Switch, Switch::Preempt as u8, to, 0, 0));
            self.batch.push(Record::more(self.n_steps));
        }
        self.running = Some(thread);
        self.n_steps = 0;
    }

    fn add_root(&mut self, label: &str) -> ThreadId {
        let name = if self.threads.is_empty() {
            "main".to_owned()
        } else {
            self.n_others += 1;
            format!("other/{}", self.n_others)
        };
        self.add_thread(label, name)
    }

    fn add_thread(&mut self, label: &str, name: String) -> ThreadId {
        let id = ThreadId(self.threads.len() as u32);
        self.threads.push(Thread {
            id,
            name,
            label: Some(label.to_owned()),
            stack: (Addr(0), Addr(0)),
        });
        self.n_children.push(0);
        self.started.push(false);
        self.numbers.insert(label.to_owned(), id);
        id
    }

    fn fork(&mut self, parent: ThreadId, label: &str) -> Result<u64, String> {
        if let Some(&known) = self.numbers.get(label) {
            let why =
                if self.started[known.0 as usize] { "runs already" } else { "is forked already" };
            return Err(format!("thread {label} {why}"));
        }
        let n_children = &mut self.n_children[parent.0 as usize];
        *n_children += 1;
        let name = format!("{}/{n_children}", self.threads[parent.0 as usize].name);
        Ok(u64::from(self.add_thread(label, name).0))
    }

    fn join(&mut self, thread: ThreadId, label: &str) -> Result<u64, String> {
        match self.numbers.get(label) {
            Some(&joined) if joined == thread => Err(format!("thread {label} joins itself")),
            Some(&joined) => Ok(u64::from(joined.0)),
            None => Err(format!("thread {label} is joined and was never there")),
        }
    }

    fn variable(&mut self, name: &str) -> u64 {
        let n = self.variables.len() as u64;
        VARIABLES + u64::from(VARIABLE_BYTES) * number(&mut self.variables, name, n)
    }

    fn lock(&mut self, name: &str) -> u64 {
        let n = self.locks.len() as u64;
        LOCKS + LOCK_BYTES * number(&mut self.locks, name, n)
    }

    fn acquire(&mut self, thread: ThreadId, name: &str) -> Result<u64, String> {
        let lock = self.lock(name);
        let holder = self.holders.entry(lock).or_insert((thread, 0));
        if holder.0 != thread {
            let label = self.threads[holder.0.0 as usize].label.as_deref();
            return Err(format!("lock {name} is held by {}", label.unwrap_or("another thread")));
        }
        holder.1 += 1;
        Ok(lock)
    }

    fn release(&mut self, thread: ThreadId, name: &str) -> Result<u64, String> {
        let lock = self.lock(name);
        match self.holders.get_mut(&lock) {
            Some((holder, n)) if *holder == thread => {
                *n -= 1;
                if *n == 0 {
                    self.holders.remove(&lock);
                }
                Ok(lock)
            }
            _ => Err(format!("lock {name} is released and not held")),
        }
    }

    fn run(&self) -> Run {
        Run {
            command: vec![IMPORTED.to_owned()],
            directory: String::new(),
            mode: Mode::Controlled,
            policy: None,
            seed: 0,
            modules: vec![Module {
                path: IMPORTED.to_owned(),
                build_id: String::new(),
                base: CODE,
                low: CODE,
                high: CODE + self.site_max + 1,
            }],
            threads: self.threads.clone(),
            ending: None,
        }
    }
}

fn parse(text: &str) -> Result<Line<'_>, String> {
    let mut fields = text.split('|').map(str::trim);
    let (Some(thread), Some(op), Some(site), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        let n = text.split('|').count();
        return Err(format!("{n} fields between bars where three belong"));
    };
    if thread.is_empty() {
        return Err("no thread".to_owned());
    }
    let site = match site.parse() {
        Ok(site) if site < SITES_MAX => site,
        _ => return Err(format!("location `{site}` is not a number below {SITES_MAX}")),
    };
    let (op, operand) = match op.split_once('(') {
        None => (op, None),
        Some((op, rest)) => match rest.strip_suffix(')') {
            Some("") => (op, None),
            Some(operand) => (op, Some(operand)),
            None => return Err(format!("`{op}(` without its `)`")),
        },
    };
    Ok(Line { thread, op, operand, site })
}

/// The number of a name; `next` if it is new.
fn number(numbers: &mut FxHashMap<String, u64>, name: &str, next: u64) -> u64 {
    match numbers.get(name) {
        Some(&number) => number,
        None => {
            numbers.insert(name.to_owned(), next);
            next
        }
    }
}
