//! From the events of a trace to what they imply: the only way to read a run.
//!
//! Two passes over the events: one to find what threads share, one for everything else.

use raddle_trace::event::Event;

use crate::model::Model;
use crate::observed::Observed;
use crate::scan::Scan;
use crate::sharing::Sharing;
use crate::stop::unless_stopped;

/// What a trace tells about its run.
#[derive(Debug)]
pub struct Reading {
    /// What could have happened.
    pub model: Model,
    /// What did happen.
    pub observed: Observed,
    /// Number of granules that more than one thread touched and at least one wrote.
    pub n_shared: u64,
}

impl Reading {
    /// Reads a trace, as far as it comes before it is stopped. `events` returns an iterator from the
    /// first event each time it is called; `also` sees each event of the second pass.
    pub fn from_events<E, I: Iterator<Item = Result<Event, E>>>(
        events: impl Fn() -> I,
        mut also: impl FnMut(&Event),
    ) -> Result<Self, E> {
        let sharing = sharing(events())?;
        let mut scan = Scan::new(&sharing);
        let mut observed = Observed::default();
        for event in unless_stopped(events()) {
            let event = event?;
            scan.push(&event);
            observed.push(&event, &sharing);
            also(&event);
        }
        Ok(Self { model: scan.finish(), observed, n_shared: sharing.n_shared() })
    }
}

/// Reads a trace only for what could have happened.
pub fn model<E, I: Iterator<Item = Result<Event, E>>>(events: impl Fn() -> I) -> Result<Model, E> {
    let sharing = sharing(events())?;
    let mut scan = Scan::new(&sharing);
    for event in unless_stopped(events()) {
        scan.push(&event?);
    }
    Ok(scan.finish())
}

fn sharing<E>(events: impl Iterator<Item = Result<Event, E>>) -> Result<Sharing, E> {
    let mut sharing = Sharing::default();
    for event in unless_stopped(events) {
        sharing.push(&event?);
    }
    Ok(sharing)
}
