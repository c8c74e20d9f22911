//! How a run ended, in words, with names from the program.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use raddle_symbols::name::{self, Namer};
use raddle_trace::control::State;
use raddle_trace::event::{Event, Op};
use raddle_trace::failure::FailureKind as Kind;
use raddle_trace::file::Trace;
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::misuse::Misuse;
use raddle_trace::run::Run;
use raddle_trial::last_words::last_words;
use raddle_trial::outcome::{
    Divergence, Doubts, End, Outcome, Place, ThreadAt, cycle, signal_name,
};
use raddle_trial::verdict;
use raddle_trial::{Execution, Status};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Names, outside};
use crate::model::{Failure, FailureKind};

impl Names<'_> {
    /// How a run ended, in words; empty if there is nothing to say. With the run's trace, callers
    /// and heap blocks have names too.
    #[must_use]
    pub fn ending(&self, execution: &Execution, trace: Option<&Trace>) -> String {
        let words = last_words(execution).map(|words| words.text);
        self.explain(&execution.run, &execution.outcome, words.as_deref(), trace)
    }

    /// How a run fails.
    #[must_use]
    pub fn failure(
        &self,
        run: &Run,
        outcome: &Outcome,
        failure: &verdict::Failure,
        trace: Option<&Trace>,
    ) -> Failure {
        let (file, line) = self.place(run, outcome, failure);
        Failure {
            kind: FailureKind::from(failure.kind),
            detail: failure.detail.clone(),
            file,
            line,
            text: match (&outcome.end, &failure.place) {
                // Only a panic leaves a place with an exit status.
                (End::Exit { status }, Some((file, line))) => format!(
                    "panicked at {file}:{line}: {} (exit status {status})\n",
                    failure.detail
                ),
                (end, _) if end.is_failure() => {
                    self.explain(run, outcome, words(outcome, failure), trace)
                }
                _ => failure.detail.clone(),
            },
        }
    }

    /// File and line where a run fails.
    #[must_use]
    pub fn place(
        &self,
        run: &Run,
        outcome: &Outcome,
        failure: &verdict::Failure,
    ) -> (Option<String>, Option<u32>) {
        if let Some((file, line)) = &failure.place {
            return (Some(file.clone()), Some(*line));
        }
        let namer = Namer::new(run, self.cache);
        let is_own = |pc: Pc| run.is_own(pc) && namer.site(pc).own_frame().is_some();
        outcome.own_place(is_own).map_or((None, None), |place| {
            let site = namer.site(place.pc);
            let frame = site.own_frame().unwrap_or(&site.frame);
            (frame.short_file.clone(), frame.line)
        })
    }

    fn explain(
        &self,
        run: &Run,
        outcome: &Outcome,
        words: Option<&str>,
        trace: Option<&Trace>,
    ) -> String {
        let namer = Namer::new(run, self.cache);
        let mut explainer = Explainer::new(namer, run, outcome, words);
        if let Some(trace) = trace {
            explainer.look_back(trace);
        }
        let (end, doubts) = (explainer.end(), explainer.doubts());
        if end.is_empty() { doubts.trim_start().to_owned() } else { end + &doubts }
    }
}

/// What a program that a signal killed said before.
fn words<'f>(outcome: &Outcome, failure: &'f verdict::Failure) -> Option<&'f str> {
    match outcome.end {
        End::Signal { number, .. } if failure.detail != signal_name(number) => {
            Some(&failure.detail)
        }
        _ => None,
    }
}

impl From<Kind> for FailureKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Exit => Self::Exit,
            Kind::Signal => Self::Signal,
            Kind::Assert => Self::Assert,
            Kind::Deadlock => Self::Deadlock,
            Kind::Hang => Self::Hang,
            Kind::Memory => Self::Memory,
            Kind::Misuse => Self::Misuse,
            Kind::Output => Self::Output,
            Kind::Oracle => Self::Oracle,
        }
    }
}

/// A time limit, as it was typed.
fn seconds(limit: Duration) -> String {
    match limit.as_millis() {
        1000 => "1 second".to_owned(),
        ms => format!("{} seconds", ms as f64 / 1000.0),
    }
}

/// A code address by name, for a run whose modules are known.
fn site_name(namer: &Namer, run: &Run, site: Site) -> String {
    match run.pc(site) {
        Some(pc) => namer.site(pc).to_string(),
        None if site == Site::UNKNOWN => "an unknown place".to_owned(),
        None => format!("offset {:#x} of a library that is not loaded", site.offset()),
    }
}

struct Explainer<'a> {
    namer: Namer,
    run: &'a Run,
    outcome: &'a Outcome,
    /// What a program that a signal killed said before.
    words: Option<&'a str>,
    /// Where a lock was acquired or a wake-up was sent, as it looked then.
    past: FxHashMap<(Pc, Addr), String>,
    /// Where each thread was last, the latest last, and how many calls deep.
    recent: FxHashMap<ThreadId, VecDeque<(Pc, usize)>>,
}

/// How far to look back for a line of the program's own: a lock of Rust's standard library
/// is a handful of atomic operations in code that came with the compiler.
const N_RECENT: usize = 32;

impl<'a> Explainer<'a> {
    fn new(namer: Namer, run: &'a Run, outcome: &'a Outcome, words: Option<&'a str>) -> Self {
        let (past, recent) = (FxHashMap::default(), FxHashMap::default());
        Self { namer, run, outcome, words, past, recent }
    }

    /// Takes in all that led to the end.
    fn look_back(&mut self, trace: &Trace) {
        let threads = &self.outcome.threads;
        let asked: FxHashSet<(Pc, Addr)> = threads
            .iter()
            .flat_map(|at| {
                let holder_pc = at.holder.map(|(_, pc)| pc);
                holder_pc.into_iter().chain(at.missed).map(|pc| (pc, at.object))
            })
            .collect();
        // A trace that cannot be read further has named all that it can.
        for (seq, event) in
            (0..).zip(trace.events()).map_while(|(seq, event)| Some((seq, event.ok()?)))
        {
            self.namer.push(seq, &event);
            self.note(&event);
            let object = match event.op {
                Op::Acquire(lock) => lock.lock,
                Op::CondSignal { cond, .. } | Op::CondBroadcast { cond, .. } => cond,
                Op::FutexWake { futex, .. } => futex,
                _ => continue,
            };
            if asked.contains(&(event.pc, object)) {
                let site = self.site(event.thread, event.pc);
                self.past.insert((event.pc, object), site);
            }
        }
    }

    /// Keeps where a thread was, where it says so itself.
    fn note(&mut self, event: &Event) {
        if matches!(event.op, Op::Switch { .. } | Op::Enter { .. } | Op::Leave) {
            return;
        }
        let depth = self.namer.calls().callers(event.thread).len();
        let recent = self.recent.entry(event.thread).or_default();
        if recent.len() == N_RECENT {
            recent.pop_front();
        }
        recent.push_back((event.pc, depth));
    }

    /// Where a thread is, in the program's own code if that is known.
    fn site(&self, thread: ThreadId, pc: Pc) -> String {
        let is_own = |pc: Pc| self.run.is_own(pc) && self.namer.site(pc).own_frame().is_some();
        let callers = self.namer.calls().callers(thread);
        if !is_own(pc) {
            // Code without instrumentation does not tell who called it. But what the thread
            // did last in the same function is close.
            let recent = self.recent.get(&thread).into_iter().flatten().rev();
            let mut same_call = recent
                .take_while(|(_, depth)| *depth >= callers.len())
                .filter(|(_, depth)| *depth == callers.len());
            if let Some((near, _)) = same_call.find(|(near, _)| is_own(*near)) {
                return self.namer.own_site(*near, []);
            }
        }
        self.namer.own_site(pc, callers.iter().rev().copied())
    }

    /// A synchronization object by name, or by where it is.
    fn object(&self, word: &str, addr: Addr) -> String {
        let place = self.namer.lock_place(addr);
        let preposition = match place {
            name::Place::Global(_) => return format!("{word} {place}"),
            name::Place::Heap { .. } => "in",
            name::Place::Stack { .. } => "on",
            name::Place::Image { .. } | name::Place::Unknown(_) => "at",
        };
        format!("{word} {preposition} {place}")
    }

    /// Where somebody did something to an object.
    fn past_site(&self, pc: Pc, object: Addr) -> String {
        let known = self.past.get(&(pc, object)).cloned();
        known.unwrap_or_else(|| self.namer.own_site(pc, []))
    }

    fn end(&self) -> String {
        match &self.outcome.end {
            End::Exit { status: 0 } | End::Interrupted => String::new(),
            End::Exec { status: Status::Exited(0) } => String::new(),
            End::Exit { status } => format!("exited with status {status}\n"),
            End::Exec { status } => {
                format!("replaced itself by another program, which ended with {status}\n")
            }
            End::Signal { number, place: None } => {
                format!("killed by {}\n", signal_name(*number))
            }
            End::Signal { number, place: Some(place) } => self.signal(*number, place),
            End::Assert { assertion, place } => {
                format!("assertion `{}' failed {}\n", assertion.text, self.at(place))
            }
            End::Deadlock => format!("deadlock\n{}", self.waiting()),
            End::LostWakeup => format!("lost wake-up\n{}", self.waiting()),
            End::Livelock { place } => format!(
                "livelock: after {} steps the program still spins {}, although its threads take turns (--max-idle allows more)\n{}",
                self.outcome.n_steps,
                self.at(place),
                self.waiting()
            ),
            End::Endless { place } => format!(
                "hang: after {} steps the program is still busy {}, although its threads take turns (--max-steps allows more)\n{}",
                self.outcome.n_steps,
                self.at(place),
                self.waiting()
            ),
            End::TimedOut { after } => format!(
                "not judged: the program did not end within {} (--timeout allows more)\n{}",
                seconds(*after),
                self.waiting()
            ),
            End::Diverged(divergence) => self.divergence(divergence),
            End::UseAfterFree { place } => {
                format!("use after free {}\n{}", self.at(place), self.block(place.addr))
            }
            End::DoubleFree { place } => {
                format!("double free {}\n{}", self.at(place), self.block(place.addr))
            }
            End::Misuse { misuse, place } => self.misuse(*misuse, place),
            End::Internal { message } => {
                format!("raddle's runtime gave up: {message}\n")
            }
            End::Unattached { status } => format!(
                "the program ended with {status} before its first instrumented function, so nothing of it was under control\n"
            ),
        }
    }

    fn at(&self, place: &Place) -> String {
        let thread = self.namer.thread(place.thread);
        let is_own = |pc: Pc| self.run.is_own(pc) && self.namer.site(pc).own_frame().is_some();
        let pc = self.outcome.own_place(is_own).map_or(place.pc, |own| own.pc);
        format!("in {thread} at {}", self.site(place.thread, pc))
    }

    /// The block that a freed byte belonged to.
    fn block(&self, addr: Addr) -> String {
        match self.namer.freed_place(addr) {
            Some(place) => format!("  it was part of a {place}\n"),
            None => format!("  the memory at {addr} was freed before\n"),
        }
    }

    fn misuse(&self, misuse: Misuse, place: &Place) -> String {
        let thread = self.namer.thread(place.thread);
        let site = self.site(place.thread, place.pc);
        let mut text = format!("misuse: {thread} {misuse} ({site})\n");
        if let Some(block) = self.namer.freed_place(place.addr) {
            let _ = writeln!(text, "  it was part of a {block}");
        } else if place.addr.0 >= 4096 {
            let _ = writeln!(text, "  it is {}", self.namer.lock(place.addr));
        }
        text
    }

    fn signal(&self, number: i32, place: &Place) -> String {
        let name = signal_name(number);
        let at = self.at(place);
        let is_fault = matches!(name.as_str(), "SIGSEGV" | "SIGBUS");
        match self.words {
            Some(words) => format!("{name} {at}: {words}\n"),
            None if is_fault => format!("{name} {at}, accessing {}\n", place.addr),
            None => format!("{name} {at}\n"),
        }
    }

    /// All threads that have not ended: those that wait for each other in a cycle first.
    fn waiting(&self) -> String {
        let threads = &self.outcome.threads;
        let cycle = cycle(threads);
        let alive = |thread: &&ThreadAt| !matches!(thread.state, State::Ended | State::Unborn);
        let is_in_cycle = |thread: &ThreadAt| cycle.iter().any(|at| at.thread == thread.thread);
        let others = threads.iter().filter(|thread| !is_in_cycle(thread));
        let mut text = String::new();
        for thread in cycle.iter().copied().chain(others).filter(alive) {
            let _ = writeln!(text, "  {}", self.thread(thread));
        }
        text
    }

    fn thread(&self, at: &ThreadAt) -> String {
        let site = self.site(at.thread, at.pc);
        let object = |word: &str| self.object(word, at.object);
        let what = match at.state {
            State::Unborn => "has not started".to_owned(),
            State::Ready => "is running".to_owned(),
            State::Lock => format!("waits for {}", object("mutex")),
            State::ReadLock => format!("waits to read under {}", object("rwlock")),
            State::WriteLock => format!("waits to write under {}", object("rwlock")),
            State::Cond => format!("waits on {}", object("condition variable")),
            State::Semaphore => format!("waits for {}", object("semaphore")),
            State::Barrier => format!("waits at {}", object("barrier")),
            State::Join => match at.holder {
                Some((thread, _)) => format!("waits for {} to end", self.namer.thread(thread)),
                None => "waits for a thread to end".to_owned(),
            },
            State::Once => format!("waits for the initialization of {}", object("once")),
            State::Futex => format!("waits on {}", object("futex")),
            State::Sleep => "sleeps".to_owned(),
            State::Descriptor => format!("waits for file descriptor {}", at.object.0 as i32),
            State::Outside => "is in a call that raddle does not control".to_owned(),
            State::Ended => "has ended".to_owned(),
            State::SignalWait => "waits for a signal".to_owned(),
            State::Loader => "waits for the loader's lock".to_owned(),
            State::Timer => "waits for timers".to_owned(),
            State::Child => "waits for a child process".to_owned(),
        };
        let mut text = format!("{} {what} ({site})", self.namer.thread(at.thread));
        if let (Some((holder, pc)), true) = (at.holder, at.state != State::Join) {
            let _ = write!(text, ", held by {}", self.namer.thread(holder));
            if pc != Pc(0) {
                let _ = write!(text, " since {}", self.past_site(pc, at.object));
            }
        }
        if let Some(pc) = at.missed {
            let _ =
                write!(text, "; a wake-up was sent at {} when nobody waited", self.namer.site(pc));
        }
        text
    }

    fn divergence(&self, divergence: &Divergence) -> String {
        let Divergence { thread, event, step, expected, seen, pc } = divergence;
        let seen = match pc {
            Pc(0) => site_name(&self.namer, self.run, *seen),
            pc => self.namer.site(*pc).to_string(),
        };
        format!(
            "the run departed from its schedule at step {step}: {}, at its event {event}, was expected at {} and seen at {seen}\n",
            self.namer.thread(*thread),
            site_name(&self.namer, self.run, *expected),
        )
    }

    fn doubts(&self) -> String {
        let outcome = self.outcome;
        let Doubts { nondeterministic, external, overflow, outside, child: _ } = outcome.doubts;
        let mut text = String::new();
        if nondeterministic {
            text += "  note: a thread spun or blocked in code that is not instrumented and lost its turn, so this run may not repeat\n";
        }
        let decided = outside.filter(|outside| outside::is_child(outside.what));
        if external && (outcome.end.is_failure() || decided.is_some()) {
            let what = outside.map(|outside| outside::words(&self.namer, outside));
            let what = what.map_or(String::new(), |what| format!(": {what}"));
            let _ = writeln!(text, "  note: this run depended on input from outside{what}");
        }
        if overflow {
            text += "  note: too many threads or libraries; this report is incomplete\n";
        }
        let cycle = cycle(&outcome.threads);
        let is_told = matches!(outcome.end, End::Deadlock | End::LostWakeup);
        if !cycle.is_empty() && !is_told && !outcome.end.is_unjudged() {
            text += "  note: a lock cycle formed, but the program ended before it was a deadlock\n";
            for thread in cycle {
                let _ = writeln!(text, "    {}", self.thread(thread));
            }
        }
        text
    }
}
