//! Starting points of schedules: positions of the recorded run, each with the complete state
//! there.
//!
//! A schedule follows the run up to the first thread that has to wait, which in a long trace is
//! most of it. So the run is walked once, and a schedule continues from the last point before
//! ([`crate::weave`] does both).

use raddle_trace::id::{Addr, ThreadId};

use crate::skeleton::Stretch;

/// Positions of a run from which a schedule can continue.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// The starting points, in run order.
    pub(crate) starts: Vec<Start>,
    /// The stretches woven up to the last starting point.
    pub(crate) stretches: Vec<Stretch>,
}

/// A starting point.
#[derive(Debug)]
pub(crate) struct Start {
    /// Number of the run's stretches before it.
    pub(crate) n_seen: usize,
    /// Number of stretches woven from them. The last one is open, and kept here.
    pub(crate) n_made: usize,
    pub(crate) last: Option<Stretch>,
    pub(crate) done: Vec<u64>,
    pub(crate) n_syncs: Vec<usize>,
    pub(crate) owners: Vec<(Addr, Vec<(ThreadId, bool)>)>,
}
