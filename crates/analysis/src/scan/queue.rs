//! Events on their way: some are collected before they are taken in, so that what they will
//! look at can be had at hand all at once.

use raddle_trace::event::Event;
use raddle_trace::id::ThreadId;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) events: Vec<Queued>,
    /// Accesses to shared memory: the granule's number, and who.
    pub(super) shared: Vec<(u32, ThreadId)>,
}

/// Events that are collected: some forty accesses to shared memory, each with a dozen lines
/// of the cache.
pub(super) const LENGTH: usize = 128;

/// An event that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) event: Event,
    pub(super) granule: Granule,
}

/// What a plain access touches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Granule {
    /// One that is not shared.
    Own,
    /// One that is shared, by its number.
    Shared(u32),
    /// More than one, or it is no plain access.
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
