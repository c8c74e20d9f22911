//! Threads that wait for each other in a cycle: a deadlock needs no suppression, since who waits
//! for whom is known when it happens.

use raddle_analysis::witness::AccessKind;
use raddle_trace::control::State;
use raddle_trace::id::{Pc, ThreadId};

use super::isolation::AccessAt;
use super::run::Ran;
use crate::origin::Location;

/// Threads that wait for each other in a cycle: where each got what the next one waits for, and
/// where it waits itself.
pub(super) fn cycle(ran: &Ran) -> Option<Vec<AccessAt>> {
    let outcome = &ran.trial.execution.outcome;
    let cycle = outcome.cycle();
    let mut accesses = Vec::new();
    for waiting in &cycle {
        let location = Some(Location { address: waiting.object.0, n_bytes: 1 });
        let at = |thread: ThreadId, pc: Pc, kind: AccessKind| AccessAt {
            thread,
            kind,
            pcs: vec![pc],
            location: location.filter(|_| waiting.state != State::Join),
            value: None,
        };
        let held = waiting.holder.filter(|(_, pc)| *pc != Pc(0) && waiting.state != State::Join);
        if let Some((holder, pc)) = held {
            accesses.push(at(holder, pc, AccessKind::Acquire));
        }
        accesses.push(at(waiting.thread, waiting.pc, AccessKind::Wait));
    }
    (!cycle.is_empty()).then_some(accesses)
}
