//! An outcome in words, with names from the program.

use std::collections::VecDeque;
use std::fmt::Write as _;

use raddle_report::symbols::name::{self, Namer};
use raddle_trace::control::State;
use raddle_trace::event::{Event, Op};
use raddle_trace::file::Trace;
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::run::Run;
use raddle_trial::outcome::{Divergence, Doubts, End, Place, ThreadAt, signal_name};
use raddle_trial::{Execution, Status};
use rustc_hash::{FxHashMap, FxHashSet};

/// What the user is told about how a run ended; empty if there is nothing to tell. With the
/// run's trace, callers and heap blocks have names too.
pub(crate) fn explain(execution: &Execution, trace: Option<&Trace>) -> String {
    let explainer = Explainer::new(execution, trace);
    let mut text = explainer.end();
    text += &explainer.doubts();
    text
}

/// A code address by name, for a run whose modules are known.
pub(crate) fn site_name(namer: &Namer, run: &Run, site: Site) -> String {
    match pc_of(run, site) {
        Some(pc) => namer.site(pc).to_string(),
        None if site == Site::UNKNOWN => "a place that is not known".to_owned(),
        None => format!("offset {:#x} of a library that is not loaded", site.offset()),
    }
}

/// The address of a site in a run.
fn pc_of(run: &Run, site: Site) -> Option<Pc> {
    let is_in = |path: &str| Site::new(path.as_bytes(), site.offset()) == site;
    let module = run.modules.iter().find(|module| is_in(&module.path))?;
    Some(Pc(module.base + site.offset()))
}

struct Explainer<'a> {
    namer: Namer,
    execution: &'a Execution,
    /// Where a lock was taken or a wake-up was sent, as it looked then.
    past: FxHashMap<(Pc, Addr), String>,
    /// Where each thread was last, the latest last, and how many calls deep.
    recent: FxHashMap<ThreadId, VecDeque<(Pc, usize)>>,
}

/// How far to look back for a line of the program's own: a lock of Rust's standard library
/// is a handful of atomic operations in code that came with the compiler.
const N_RECENT: usize = 32;

impl<'a> Explainer<'a> {
    fn new(execution: &'a Execution, trace: Option<&Trace>) -> Self {
        let namer = Namer::new(&execution.run);
        let (past, recent) = (FxHashMap::default(), FxHashMap::default());
        let mut explainer = Self { namer, execution, past, recent };
        if let Some(trace) = trace {
            explainer.look_back(trace);
        }
        explainer
    }

    /// Takes in all that led to the end.
    fn look_back(&mut self, trace: &Trace) {
        let threads = &self.execution.outcome.threads;
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
        let is_own = |pc: Pc| self.namer.site(pc).own_frame().is_some();
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
        match &self.execution.outcome.end {
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
            End::Assert { message, place } => match message.split_once(": Assertion `") {
                // The place is told by us, and better.
                Some((_, rest)) => {
                    format!("assertion `{} {}\n", rest.trim_end_matches('.'), self.at(place))
                }
                None => format!("assertion failed {}: {message}\n", self.at(place)),
            },
            End::Deadlock => format!("deadlock\n{}", self.waiting()),
            End::LostWakeup => format!("lost wake-up\n{}", self.waiting()),
            End::Livelock { place } => format!(
                "livelock: after {} steps the program was still busy {} (--max-steps allows for more)\n{}",
                self.execution.outcome.n_steps,
                self.at(place),
                self.waiting()
            ),
            End::Hang { after } => {
                format!("hang: not done after {} seconds\n{}", after.as_secs_f64(), self.waiting())
            }
            End::Diverged(divergence) => self.divergence(divergence),
            End::UseAfterFree { place } => {
                format!("use after free {}\n{}", self.at(place), self.block(place.addr))
            }
            End::DoubleFree { place } => {
                format!("double free {}\n{}", self.at(place), self.block(place.addr))
            }
            End::Misuse { message, place } => self.misuse(message, place),
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
        format!("in {thread} at {}", self.site(place.thread, place.pc))
    }

    /// The block that a freed byte belonged to.
    fn block(&self, addr: Addr) -> String {
        match self.namer.freed_place(addr) {
            Some(place) => format!("  it was part of a {place}\n"),
            None => format!("  the memory at {addr} was freed before\n"),
        }
    }

    fn misuse(&self, message: &str, place: &Place) -> String {
        let thread = self.namer.thread(place.thread);
        let site = self.site(place.thread, place.pc);
        let mut text = format!("misuse: {thread} {message} ({site})\n");
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
        if is_fault {
            format!("{name} {at}, accessing {}\n", place.addr)
        } else {
            format!("{name} {at}\n")
        }
    }

    /// All threads that have not ended: those that wait in a circle first.
    fn waiting(&self) -> String {
        let threads = &self.execution.outcome.threads;
        let circle = circle(threads);
        let alive = |thread: &&ThreadAt| !matches!(thread.state, State::Ended | State::Unborn);
        let in_circle = circle.iter().map(|&ThreadId(number)| &threads[number as usize]);
        let others = threads.iter().filter(|thread| !circle.contains(&thread.thread));
        let mut text = String::new();
        for thread in in_circle.chain(others).filter(alive) {
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
            Pc(0) => site_name(&self.namer, &self.execution.run, *seen),
            pc => self.namer.site(*pc).to_string(),
        };
        format!(
            "the run departed from its schedule at step {step}: {}, at its event {event}, was expected at {} and seen at {seen}\n",
            self.namer.thread(*thread),
            site_name(&self.namer, &self.execution.run, *expected),
        )
    }

    fn doubts(&self) -> String {
        let outcome = &self.execution.outcome;
        let Doubts { nondeterministic, external, overflow } = outcome.doubts;
        let mut text = String::new();
        if nondeterministic {
            text += "  note: a thread spun or blocked where raddle cannot see it and lost its turn, so this run may not repeat\n";
        }
        if external && outcome.end.is_failure() {
            text += "  note: this run depended on what came from outside while it ran\n";
        }
        if overflow {
            text += "  note: more threads or libraries than raddle keeps count of; what is shown has gaps\n";
        }
        text
    }
}

/// Threads each of which waits for the next, and the last for the first; empty if there are none.
fn circle(threads: &[ThreadAt]) -> Vec<ThreadId> {
    let waits_for = |thread: ThreadId| {
        let at = threads.get(thread.0 as usize)?;
        let waits = !matches!(at.state, State::Ready | State::Ended | State::Unborn);
        at.holder.filter(|_| waits).map(|(holder, _)| holder)
    };
    for start in threads.iter().map(|at| at.thread) {
        let mut path = vec![start];
        while let Some(next) = waits_for(path[path.len() - 1]) {
            if next == start {
                return path;
            }
            if path.contains(&next) {
                break;
            }
            path.push(next);
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circle among threads of which number n waits for the n-th of `holders`.
    fn found(holders: &[Option<u32>]) -> Vec<u32> {
        let threads: Vec<_> = (0..)
            .zip(holders)
            .map(|(number, holder)| ThreadAt {
                thread: ThreadId(number),
                state: State::Lock,
                object: Addr(0),
                pc: Pc(0),
                holder: holder.map(|holder| (ThreadId(holder), Pc(0))),
                missed: None,
                n_steps: 0,
            })
            .collect();
        circle(&threads).into_iter().map(|thread| thread.0).collect()
    }

    #[test]
    fn a_circle_leaves_out_who_only_waits_for_it() {
        assert_eq!(found(&[Some(1), Some(2), Some(1)]), [1, 2]);
        assert_eq!(found(&[Some(0)]), [0]);
        assert_eq!(found(&[Some(1), Some(2), None]), [0; 0]);
    }
}
