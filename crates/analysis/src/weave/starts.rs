//! Computes the starting points of schedules, and continues schedules from them.

use raddle_trace::id::ThreadId;

use super::Weaving;
use crate::model::Model;
use crate::starts::{Start, Starts};
use crate::stop::unless_stopped;

/// Number of starting points. A schedule walks half of the distance between two of them on
/// average.
const N_STARTS: usize = 256;

impl Starts {
    pub(super) fn new(model: &Model) -> Self {
        let seen = &model.skeleton.stretches;
        let every = seen.len() / N_STARTS + 1;
        let mut weaving = Weaving::new(model);
        let mut starts = Vec::new();
        for (at, stretch) in unless_stopped(seen.iter().enumerate()) {
            if at % every == 0 {
                starts.push(Start::new(&weaving, at));
            }
            weaving.follow(stretch, stretch.thread, u64::MAX);
        }
        Self { starts, stretches: weaving.stretches }
    }

    /// Advances a new weaving to the last starting point before `thread` has performed `steps`
    /// steps and before any thread reaches its cap. Returns how many of the run's stretches come
    /// before it.
    pub(super) fn advance(&self, weaving: &mut Weaving<'_>, thread: ThreadId, steps: u64) -> usize {
        // Step counts only grow, so the points that are not too far come first.
        let n = self.starts.partition_point(|start| {
            start.done[thread.0 as usize] < steps
                && start.done.iter().zip(&weaving.caps).all(|(done, cap)| done <= cap)
        });
        let Some(start) = n.checked_sub(1).map(|last| &self.starts[last]) else { return 0 };
        weaving.done.clone_from(&start.done);
        weaving.n_syncs.clone_from(&start.n_syncs);
        weaving.owners = start.owners.iter().cloned().collect();
        weaving.stretches.clear();
        weaving.stretches.extend_from_slice(&self.stretches[..start.n_made]);
        if let (Some(last), Some(open)) = (start.last, weaving.stretches.last_mut()) {
            *open = last;
        }
        start.n_seen
    }
}

impl Start {
    fn new(weaving: &Weaving<'_>, n_seen: usize) -> Self {
        let owners = weaving.owners.iter().filter(|(_, owners)| !owners.is_empty());
        Self {
            n_seen,
            n_made: weaving.stretches.len(),
            last: weaving.stretches.last().copied(),
            done: weaving.done.clone(),
            n_syncs: weaving.n_syncs.clone(),
            owners: owners.map(|(lock, owners)| (*lock, owners.clone())).collect(),
        }
    }
}
