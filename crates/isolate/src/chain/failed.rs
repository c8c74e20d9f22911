//! What a failing execution failed on.
//!
//! Of an end that raddle finds itself (freed memory, misuse, a deadlock) the memory is known; who
//! loops for ever waits for what it read last. Otherwise it is what the thread that died has
//! used, as [`crate::origin`] found it. Loads of which that does not know the address are
//! looked up in the trace, or asked for in one more execution.

use raddle_analysis::witness::AccessKind;
use raddle_trace::control::State;
use raddle_trace::file::{ReadError, Trace};
use raddle_trace::id::{Pc, ThreadId};
use raddle_trial::End;

use super::isolation::{AccessAt, IsolateError, pcs};
use super::run::Ran;
use super::{Session, VALUES_MAX};
use crate::failure::{Failure, Use};
use crate::follow::{Job, Point};
use crate::origin::Location;

/// A failure, with the memory that it used.
pub(super) struct Failed {
    pub(super) at: AccessAt,
    pub(super) uses: Vec<Use>,
}

impl Session<'_> {
    /// What a failing execution failed on; loads whose addresses the end of the execution does
    /// not tell are looked up in its trace, or in an execution more.
    pub(super) fn failed(
        &mut self,
        failing: &Ran,
        points: &[Point],
    ) -> Result<Option<Failed>, IsolateError> {
        if let Some(failed) = failed(failing) {
            return Ok(Some(failed));
        }
        let Some(failure) = &failing.report.failure else { return Ok(None) };
        let found = match &failing.trace {
            Some(trace) => loaded(trace, failure)?,
            None => Vec::new(),
        };
        let found = if found.is_empty() && !failure.lost.is_empty() {
            let probes = failure.lost.iter().take(VALUES_MAX).copied().collect();
            let job = Job { probes, points: points.to_vec(), ..Job::default() };
            let ran = self.run(job, false)?;
            self.executions.watch += 1;
            let thread = failure.thread.0;
            let probed = |pc: &u64| Some((*pc, *ran.report.probed.get(&(thread, *pc))?));
            failure.lost.iter().filter_map(probed).collect()
        } else {
            found
        };
        let uses: Vec<Use> =
            found.into_iter().map(|(pc, location)| Use::new(pc, location, None)).collect();
        let Some(first) = uses.first() else { return Ok(None) };
        Ok(Some(Failed { at: at_failure(failure, Some(first)), uses }))
    }
}

/// What a failing execution failed on.
pub(super) fn failed(ran: &Ran) -> Option<Failed> {
    let of_memory = |thread: ThreadId, pc: Pc, address: u64, n_bytes: u64, kind: AccessKind| {
        let location = Location { address, n_bytes };
        let used = Use::new(0, location, None);
        let at = AccessAt { thread, kind, pcs: vec![pc], location: Some(location), value: None };
        Failed { at, uses: vec![used] }
    };
    let outcome = &ran.trial.execution.outcome;
    match &outcome.end {
        End::UseAfterFree { place } => {
            return Some(of_memory(place.thread, place.pc, place.addr.0, 1, AccessKind::Read));
        }
        End::DoubleFree { place } => {
            return Some(of_memory(place.thread, place.pc, place.addr.0, 1, AccessKind::Free));
        }
        // Through a null pointer: then that pointer is what was wrong.
        End::Misuse { place, .. } if place.addr.0 >= 4096 => {
            return Some(of_memory(place.thread, place.pc, place.addr.0, 1, AccessKind::Acquire));
        }
        End::Deadlock | End::LostWakeup => {
            let missed = outcome.threads.iter().find(|at| at.missed.is_some());
            let waits = outcome.threads.iter().find(|at| {
                matches!(at.state, State::Cond | State::Semaphore | State::Lock | State::Futex)
            });
            let at = missed.or(waits)?;
            return Some(of_memory(at.thread, at.pc, at.object.0, 1, AccessKind::Wait));
        }
        End::Livelock { .. } | End::Endless { .. } => {
            // A thread that still runs waits for what it reads.
            let running = outcome.threads.iter().find(|at| at.state == State::Ready);
            let place = outcome.end.place().map(|place| (place.thread, place.pc));
            if let Some((thread, pc)) = place.or(running.map(|at| (at.thread, at.pc))) {
                let Location { address, n_bytes } = last_read(ran.trace.as_ref()?, thread)?;
                return Some(of_memory(thread, pc, address, n_bytes, AccessKind::Read));
            }
        }
        End::Misuse { .. }
        | End::Exit { .. }
        | End::Signal { .. }
        | End::Assert { .. }
        | End::Exec { .. }
        | End::TimedOut { .. }
        | End::Diverged(_)
        | End::Internal { .. }
        | End::Unattached { .. }
        | End::Interrupted => {}
    }
    let failure: &Failure = ran.report.failure.as_ref()?;
    let first = failure.uses.first()?;
    Some(Failed { at: at_failure(failure, Some(first)), uses: failure.uses.clone() })
}

/// Where a thread failed.
pub(super) fn at_failure(failure: &Failure, used: Option<&Use>) -> AccessAt {
    AccessAt {
        thread: failure.thread,
        kind: AccessKind::Read,
        pcs: pcs(failure.pc, &failure.callers),
        location: used.map(|used| used.location),
        value: used.and_then(|used| used.value),
    }
}

/// What loads of unknown addresses have loaded last, as the trace tells.
fn loaded(trace: &Trace, failure: &Failure) -> Result<Vec<(u64, Location)>, ReadError> {
    use raddle_trace::event::Op;
    let mut last = rustc_hash::FxHashMap::default();
    for event in trace.events() {
        let event = event?;
        if event.thread == failure.thread
            && let Op::Read(access) = event.op
        {
            last.insert(event.pc.0, Location { address: access.addr.0, n_bytes: access.bytes });
        }
    }
    // A callback comes right before its load.
    let near = |pc: &u64| (0..48).find_map(|before| Some((*pc, *last.get(&(pc - before))?)));
    Ok(failure.lost.iter().filter_map(near).collect())
}

/// What a thread read last.
fn last_read(trace: &Trace, thread: ThreadId) -> Option<Location> {
    use raddle_trace::event::Op;
    let mut last = None;
    for event in trace.events().map_while(Result::ok).filter(|event| event.thread == thread) {
        match event.op {
            Op::Read(access) => {
                last = Some(Location { address: access.addr.0, n_bytes: access.bytes });
            }
            Op::Atomic(atomic) => {
                last = Some(Location { address: atomic.addr.0, n_bytes: u64::from(atomic.bytes) });
            }
            _ => {}
        }
    }
    last
}
