//! Threads that wait for each other in a circle: a deadlock needs no suppression, since who waits
//! for whom is known when it happens.

use raddle_analysis::witness::Deed;
use raddle_trace::control::State;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trial::End;

use super::isolation::AccessAt;
use super::run::Ran;
use crate::origin::Location;

/// Threads that wait for each other in a circle: where each got what the next one waits for, and
/// where it waits itself.
pub(super) fn circle(ran: &Ran) -> Option<Vec<AccessAt>> {
    let outcome = &ran.execution.as_ref()?.outcome;
    if outcome.end != End::Deadlock {
        return None;
    }
    let waits_for = |thread: ThreadId| {
        let at = outcome.threads.get(thread.0 as usize)?;
        let waits = !matches!(at.state, State::Ready | State::Ended | State::Unborn);
        at.holder.filter(|_| waits).map(|(holder, _)| holder)
    };
    let path = outcome.threads.iter().find_map(|start| {
        let mut path = vec![start.thread];
        while let Some(next) = waits_for(path[path.len() - 1]) {
            if next == start.thread {
                return Some(path);
            }
            if path.contains(&next) {
                return None;
            }
            path.push(next);
        }
        None
    })?;
    let mut accesses = Vec::new();
    for thread in path {
        let waiting = &outcome.threads[thread.0 as usize];
        let location = Some(Location { address: waiting.object.0, n_bytes: 1 });
        let at = |thread: ThreadId, pc: Pc, deed: Deed| AccessAt {
            thread,
            deed,
            pcs: vec![pc],
            location: location.filter(|_| waiting.state != State::Join),
            value: None,
        };
        let held = waiting.holder.filter(|(_, pc)| *pc != Pc(0) && waiting.state != State::Join);
        if let Some((holder, pc)) = held {
            accesses.push(at(holder, pc, Deed::Acquire));
        }
        accesses.push(at(thread, waiting.pc, Deed::Wait));
    }
    Some(accesses)
}
