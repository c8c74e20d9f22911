//! What a hunt has found: plain data, ready to be told.

use std::path::PathBuf;

use raddle_analysis::anomaly::Anomaly;
use raddle_analysis::localize::facts::{Act, Point};
use raddle_analysis::scan::Model;
use raddle_analysis::witness::{Deed, Witness};
use raddle_report::symbols::name::Namer;
use raddle_report::symbols::site::Frame;
use raddle_trace::control::State;
use raddle_trace::event::Event;
use raddle_trace::file::Trace;
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::run::Run;
use raddle_trial::outcome::ThreadAt;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::localize::confirm::Forced;

/// One finding.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) kind: &'static str,
    pub(crate) pattern: String,
    pub(crate) variable: Option<String>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) verdict: &'static str,
    /// Why it is infeasible.
    pub(crate) why: Option<String>,
    /// What came of forcing it on runs that passed.
    pub(crate) forced: Option<Forced>,
    pub(crate) failure: Option<Told>,
    pub(crate) clip: Option<PathBuf>,
    /// Context switches of the run that shows it.
    pub(crate) n_switches: usize,
}

/// A failure in words.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    pub(crate) detail: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// As `raddle run` would say it.
    pub(crate) text: String,
}

/// An access, in names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) role: usize,
    pub(crate) thread: String,
    pub(crate) deed: Deed,
    pub(crate) variable: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) function: Option<String>,
    /// File, line and function in words, or what else is known.
    pub(crate) site: String,
    pub(crate) locks: Vec<String>,
}

/// An event to be named.
#[derive(Clone, Debug)]
pub(crate) struct Unnamed {
    thread: ThreadId,
    pc: Pc,
    deed: Deed,
    addr: Addr,
    bytes: u64,
    seq: u64,
    locks: Vec<Addr>,
}

/// The events of an anomaly.
pub(crate) fn of_anomaly(model: &Model, way: &[Witness]) -> Vec<Unnamed> {
    let unnamed = |event: &Witness| Unnamed {
        thread: event.thread,
        pc: event.pc,
        deed: event.deed,
        addr: event.addr,
        bytes: u64::from(event.bytes),
        seq: event.seq,
        locks: model
            .locks
            .held(event.locks)
            .iter()
            .filter(|held| !model.words.is_other(held.lock))
            .map(|held| held.lock)
            .collect(),
    };
    way.iter().map(unnamed).collect()
}

/// An access at a point of a run.
pub(crate) fn of_point(act: Act, pc: Pc, point: &Point) -> Unnamed {
    Unnamed {
        thread: point.thread,
        pc,
        deed: act.deed,
        addr: point.addr,
        bytes: u64::from(point.bytes),
        seq: point.seq,
        locks: Vec::new(),
    }
}

/// Where threads wait for each other.
pub(crate) fn of_waiting(threads: &[ThreadAt]) -> Vec<Unnamed> {
    let waits = |at: &&ThreadAt| {
        !matches!(at.state, State::Ended | State::Unborn | State::Join | State::Ready)
    };
    let unnamed = |at: &ThreadAt| Unnamed {
        thread: at.thread,
        pc: at.pc,
        deed: match at.state {
            State::Lock | State::ReadLock | State::WriteLock => Deed::Acquire,
            State::Semaphore => Deed::Lower,
            _ => Deed::Wait,
        },
        addr: at.object,
        bytes: 1,
        seq: u64::MAX,
        locks: Vec::new(),
    };
    // Where what they wait for was taken, then where they wait for it.
    let held = |at: &ThreadAt| {
        let (thread, pc) = at.holder.filter(|(_, pc)| *pc != Pc(0))?;
        Some(Unnamed { thread, pc, deed: Deed::Acquire, ..unnamed(at) })
    };
    let waiting: Vec<_> = threads.iter().filter(waits).collect();
    let mut events: Vec<_> = waiting.iter().filter_map(|at| held(at)).collect();
    events.extend(waiting.iter().map(|at| unnamed(at)));
    events
}

/// Names for events, by the trace that they are from.
pub(crate) fn named(trace: &Trace, events: &[Unnamed]) -> Vec<Access> {
    all_named(trace, &[events.to_vec()]).remove(0)
}

/// Names for many groups of events, in one pass over their trace.
pub(crate) fn all_named(trace: &Trace, groups: &[Vec<Unnamed>]) -> Vec<Vec<Access>> {
    // A trace that cannot be read further has named all that it can.
    named_by(trace.run(), trace.events().map_while(Result::ok), groups)
}

/// The same without a trace: what was allocated and called is not known then.
pub(crate) fn named_without(run: &Run, groups: &[Vec<Unnamed>]) -> Vec<Vec<Access>> {
    named_by(run, std::iter::empty(), groups)
}

fn named_by(
    run: &Run,
    events: impl Iterator<Item = Event>,
    groups: &[Vec<Unnamed>],
) -> Vec<Vec<Access>> {
    let mut namer = Namer::new(run);
    let mut by_seq: FxHashMap<u64, Vec<(usize, usize)>> = FxHashMap::default();
    for (group, events) in groups.iter().enumerate() {
        for (at, event) in events.iter().enumerate() {
            by_seq.entry(event.seq).or_default().push((group, at));
        }
    }
    let last = by_seq.keys().copied().max().unwrap_or(0);
    let mut found: FxHashMap<(usize, usize), Access> = FxHashMap::default();
    for (seq, event) in (0..=last).zip(events) {
        namer.push(seq, &event);
        for &(group, at) in by_seq.get(&seq).into_iter().flatten() {
            found.insert((group, at), name(&namer, &groups[group][at]));
        }
    }
    let group = |(group, events): (usize, &Vec<Unnamed>)| {
        let mut threads: Vec<ThreadId> = Vec::new();
        let role = |(at, event): (usize, &Unnamed)| {
            let role = threads.iter().position(|&t| t == event.thread).unwrap_or_else(|| {
                threads.push(event.thread);
                threads.len() - 1
            });
            let access = found.remove(&(group, at)).unwrap_or_else(|| name(&namer, event));
            Access { role: role + 1, ..access }
        };
        events.iter().enumerate().map(role).collect()
    };
    groups.iter().enumerate().map(group).collect()
}

fn name(namer: &Namer, event: &Unnamed) -> Access {
    let frame = own_frame(namer, event.thread, event.pc);
    let place = match event.deed.is_of_object() {
        true => namer.lock_place(event.addr),
        false => namer.place(event.addr, event.bytes),
    };
    let callers = namer.calls().callers(event.thread).iter().rev().copied();
    Access {
        role: 0,
        site: namer.own_site(event.pc, callers),
        thread: namer.thread(event.thread),
        deed: event.deed,
        variable: place.to_string(),
        file: frame.short_file,
        line: frame.line,
        function: frame.function,
        locks: event.locks.iter().map(|&lock| namer.lock_place(lock).to_string()).collect(),
    }
}

/// The innermost frame of the program's own code.
fn own_frame(namer: &Namer, thread: ThreadId, pc: Pc) -> Frame {
    let callers = namer.calls().callers(thread).iter().rev().copied();
    std::iter::once(pc)
        .chain(callers)
        .find_map(|pc| namer.site(pc).own_frame().cloned())
        .unwrap_or_else(|| namer.site(pc).frame.clone())
}

impl Access {
    /// The access as other programs read it.
    pub(crate) fn json(&self) -> Value {
        json!({
            "role": self.role,
            "thread": self.thread,
            "op": self.deed.letter().to_string(),
            "file": self.file,
            "line": self.line,
            "function": self.function,
            "variable": self.variable,
            "locks": self.locks,
        })
    }
}

impl Finding {
    /// What the accesses are about, each variable once.
    pub(crate) fn variables(accesses: &[Access]) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        for access in accesses {
            // A block is the same one before and after it was freed.
            let name = access.variable.split(", freed at ").next().unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        (!names.is_empty()).then(|| names.join(" and "))
    }

    /// The finding as other programs read it.
    pub(crate) fn json(&self, id: &str) -> Value {
        let accesses: Vec<_> = self.accesses.iter().map(Access::json).collect();
        let failure = self.failure.as_ref().map(|failure| {
            json!({
                "kind": failure.kind,
                "detail": failure.detail,
                "file": failure.file,
                "line": failure.line,
            })
        });
        json!({
            "id": id,
            "kind": self.kind,
            "pattern": self.pattern,
            "variable": self.variable,
            "accesses": accesses,
            "verdict": self.verdict,
            "why": self.why,
            "forced": self.forced.map(Forced::json),
            "failure": failure,
            "clip": self.clip,
            "switches": self.n_switches,
        })
    }
}

/// A pattern for accesses, such as `R1-W2`.
pub(crate) fn pattern_of(accesses: &[Access]) -> String {
    let word = |access: &Access| format!("{}{}", access.deed.letter(), access.role);
    accesses.iter().map(word).collect::<Vec<_>>().join("-")
}

/// The sites of an anomaly, as what was observed has them.
pub(crate) fn sites(anomaly: &Anomaly, way: usize) -> Vec<(Deed, Pc)> {
    anomaly.ways[way].iter().map(|event| (event.deed, event.pc)).collect()
}
