//! Accesses of a run, by ids: what is later given names.

use raddle_analysis::localize::facts::{Point, SiteAccess};
use raddle_analysis::model::Model;
use raddle_analysis::witness::{AccessKind, Witness};
use raddle_trace::control::State;
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trial::outcome::ThreadAt;

use crate::recorded::waiting;

/// An access in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessAt {
    /// Who performed it.
    pub thread: ThreadId,
    /// Where in the program.
    pub pc: Pc,
    /// What it did.
    pub kind: AccessKind,
    /// First byte, or the object.
    pub addr: Addr,
    /// How many bytes.
    pub bytes: u64,
    /// Its number in the trace; `u64::MAX` for what had not happened when the run ended.
    pub seq: u64,
    /// Locks that the thread held.
    pub locks: Vec<Addr>,
}

/// The role of each access: threads are numbered as they come, from 1.
#[must_use]
pub fn roles(accesses: &[AccessAt]) -> Vec<usize> {
    let mut threads: Vec<ThreadId> = Vec::new();
    let role = |access: &AccessAt| {
        let known = threads.iter().position(|&thread| thread == access.thread);
        known.unwrap_or_else(|| {
            threads.push(access.thread);
            threads.len() - 1
        }) + 1
    };
    accesses.iter().map(role).collect()
}

/// A pattern for accesses, such as `R1-W2`.
#[must_use]
pub fn pattern(accesses: &[AccessAt]) -> String {
    let word = |(access, role): (&AccessAt, usize)| format!("{}{role}", access.kind.letter());
    accesses.iter().zip(roles(accesses)).map(word).collect::<Vec<_>>().join("-")
}

/// The accesses of an anomaly.
#[must_use]
pub fn of_anomaly(model: &Model, order: &[Witness]) -> Vec<AccessAt> {
    let access = |event: &Witness| AccessAt {
        thread: event.thread,
        pc: event.pc,
        kind: event.kind,
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
    order.iter().map(access).collect()
}

/// An access at a point of a run.
#[must_use]
pub fn of_point(access: SiteAccess, pc: Pc, point: &Point) -> AccessAt {
    AccessAt {
        thread: point.thread,
        pc,
        kind: access.kind,
        addr: point.addr,
        bytes: u64::from(point.bytes),
        seq: point.seq,
        locks: Vec::new(),
    }
}

/// The threads of a deadlock: where what they wait for was acquired, then where they wait for it.
#[must_use]
pub fn of_waiting(threads: &[ThreadAt]) -> Vec<AccessAt> {
    let waits = |at: &ThreadAt| AccessAt {
        thread: at.thread,
        pc: at.pc,
        kind: match at.state {
            State::Lock | State::ReadLock | State::WriteLock => AccessKind::Acquire,
            State::Semaphore => AccessKind::Lower,
            _ => AccessKind::Wait,
        },
        addr: at.object,
        bytes: 1,
        seq: u64::MAX,
        locks: Vec::new(),
    };
    let held = |at: &ThreadAt| {
        let (thread, pc) = at.holder.filter(|(_, pc)| *pc != Pc(0))?;
        Some(AccessAt { thread, pc, kind: AccessKind::Acquire, ..waits(at) })
    };
    let waiting = waiting(threads);
    let mut accesses: Vec<_> = waiting.iter().copied().filter_map(held).collect();
    accesses.extend(waiting.into_iter().map(waits));
    accesses
}
