//! Where schedules begin: places of the run that was seen, each with all that a [`Loom`] knows
//! there.
//!
//! A schedule follows the run up to where somebody has to wait, and in a long trace that is most
//! of it. So the run is walked once, and a schedule takes it up at the last place before.

use raddle_trace::id::{Addr, ThreadId};

use super::Loom;
use crate::model::Model;
use crate::skeleton::Stretch;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// In the order of the run.
    starts: Vec<Start>,
    /// The walk as far as the last of them.
    stretches: Vec<Stretch>,
}

/// A place of the run.
#[derive(Debug)]
struct Start {
    /// How many stretches of the run come before it.
    n_seen: usize,
    /// How many stretches the walk has made of them. The last one is open, and kept here.
    n_made: usize,
    last: Option<Stretch>,
    done: Vec<u64>,
    n_syncs: Vec<usize>,
    owners: Vec<(Addr, Vec<(ThreadId, bool)>)>,
}

/// Places of a run: a schedule walks on average half of what is between two of them.
const N_STARTS: usize = 256;

impl Starts {
    pub(super) fn new(model: &Model) -> Self {
        let seen = &model.skeleton.stretches;
        let every = seen.len() / N_STARTS + 1;
        let mut loom = Loom::new(model);
        let mut starts = Vec::new();
        for (at, stretch) in seen.iter().enumerate() {
            if at % every == 0 {
                starts.push(Start::new(&loom, at));
            }
            loom.follow(stretch, stretch.thread, u64::MAX);
        }
        Self { starts, stretches: loom.stretches }
    }

    /// Takes a loom at its beginning to the last place that it would come by before `thread` has
    /// performed so many steps and before anybody is at its cap; how many stretches of the run
    /// come before that.
    pub(super) fn advance(&self, loom: &mut Loom<'_>, thread: ThreadId, steps: u64) -> usize {
        // What a thread has done only grows, so those that are not too far come first.
        let n = self.starts.partition_point(|start| {
            start.done[thread.0 as usize] < steps
                && start.done.iter().zip(&loom.caps).all(|(done, cap)| done <= cap)
        });
        let Some(start) = n.checked_sub(1).map(|last| &self.starts[last]) else { return 0 };
        loom.done.clone_from(&start.done);
        loom.n_syncs.clone_from(&start.n_syncs);
        loom.owners = start.owners.iter().cloned().collect();
        loom.stretches.clear();
        loom.stretches.extend_from_slice(&self.stretches[..start.n_made]);
        if let (Some(last), Some(open)) = (start.last, loom.stretches.last_mut()) {
            *open = last;
        }
        start.n_seen
    }
}

impl Start {
    fn new(loom: &Loom<'_>, n_seen: usize) -> Self {
        let owners = loom.owners.iter().filter(|(_, owners)| !owners.is_empty());
        Self {
            n_seen,
            n_made: loom.stretches.len(),
            last: loom.stretches.last().copied(),
            done: loom.done.clone(),
            n_syncs: loom.n_syncs.clone(),
            owners: owners.map(|(lock, owners)| (*lock, owners.clone())).collect(),
        }
    }
}
