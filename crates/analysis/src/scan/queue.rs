//! Queued events: several are collected before they are processed, so that the data that they
//! need can be prefetched together.

use raddle_trace::event::Event;
use raddle_trace::id::ThreadId;

/// Events that wait to be processed.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) events: Vec<Queued>,
    /// Accesses to shared memory: granule number and thread.
    pub(super) shared: Vec<(u32, ThreadId)>,
}

/// Queue length: about forty accesses to shared memory, each touching a dozen cache lines.
pub(super) const LENGTH: usize = 128;

/// A queued event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) event: Event,
    pub(super) granule: Granule,
}

/// The granule of a plain access.
#[derive(Clone, Copy, Debug)]
pub(super) enum Granule {
    /// A granule that is not shared.
    Own,
    /// A shared granule, by number.
    Shared(u32),
    /// More than one granule, or not a plain access.
    Several,
}

impl Queue {
    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, event: &Event, granule: Granule) {
        if let Granule::Shared(number) = granule {
            self.shared.push((number, event.thread));
        }
        self.events.push(Queued { event: *event, granule });
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.events.len() >= LENGTH
    }
}
