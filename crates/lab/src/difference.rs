//! Where two runs of the same plan first differ.

use raddle_analysis::stop::unless_stopped;
use raddle_trace::event::Event;
use raddle_trace::file::Trace;
use raddle_trace::id::ThreadId;
use raddle_trial::{End, Execution};
use rustc_hash::FxHashMap;

use crate::error::LabError;

/// A run, as far as it is compared.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// How it ended.
    pub execution: &'a Execution,
    /// What it did.
    pub trace: &'a Trace,
}

/// Where two runs first differ.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// In an event.
    Event {
        /// Its number.
        seq: u64,
        /// The event of each run, with how many events its thread had performed before; none if
        /// that run had ended.
        events: [Option<(Event, u64)>; 2],
    },
    /// In how they ended.
    End([End; 2]),
    /// In what they printed.
    Output,
}

/// Compares two runs event by event, as far as it comes before it is stopped.
pub fn difference(sides: [Side<'_>; 2]) -> Result<Option<Difference>, LabError> {
    let [mut left, mut right] = sides.map(|side| side.trace.events());
    let mut n_events: FxHashMap<ThreadId, u64> = FxHashMap::default();
    for seq in unless_stopped(0..) {
        let pair = [left.next().transpose()?, right.next().transpose()?];
        if pair[0] != pair[1] {
            let number = |event: Event| (event, n_events.get(&event.thread).copied().unwrap_or(0));
            let events = pair.map(|event| event.map(number));
            return Ok(Some(Difference::Event { seq, events }));
        }
        let [Some(event), _] = pair else { break };
        *n_events.entry(event.thread).or_insert(0) += 1;
    }
    let ends = sides.map(|side| &side.execution.outcome.end);
    if ends[0].to_string() != ends[1].to_string() {
        return Ok(Some(Difference::End(ends.map(Clone::clone))));
    }
    let [first, second] = sides.map(|side| &side.execution.stdout);
    Ok((first != second).then_some(Difference::Output))
}
