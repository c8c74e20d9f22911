//! What is going on, for whoever shows it.

use raddle_trial::{Plan, Trial};

/// Takes progress as it comes. Called by the thread that runs the command.
pub type Sink<'a> = dyn Fn(Progress<'_>) + Sync + 'a;

/// What is going on.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A hunt looks for failures.
    Searching {
        /// Executions so far.
        n_runs: usize,
        /// Anomalies predicted so far.
        n_predicted: usize,
        /// Of those, seen in the run that they were predicted from.
        n_observed: usize,
        /// Of those, failing, benign and infeasible ones.
        n_decided: [usize; 3],
        /// Runs under other schedules so far.
        n_explored: usize,
        /// Runs that were recorded so far.
        n_recorded: usize,
        /// Different orders of accesses so far.
        n_orders: usize,
        /// Explored runs since the last one that showed anything new, and those of them that were
        /// recorded.
        n_since_new: [usize; 2],
        /// Anomalies that are still to be tried.
        n_queued: usize,
        /// Different failures so far.
        n_failures: usize,
    },
    /// A failure was seen for the first time. It is worth keeping at once: the user may stop us.
    Failed {
        /// Its number, from 0.
        number: usize,
        /// The run that failed.
        trial: &'a Trial,
        /// How it was executed.
        plan: &'a Plan,
    },
    /// A hunt explains and minimizes what it has found.
    Explaining {
        /// Which failure, from 0.
        number: usize,
        /// How many there are.
        n_failures: usize,
    },
    /// Runs are made to be compared.
    Collecting {
        /// Runs so far.
        n_runs: usize,
        /// How many there may be.
        n_runs_max: usize,
        /// Runs that have failed.
        n_failed: usize,
    },
    /// A clip is replayed.
    Replaying {
        /// Replays so far.
        n_runs: usize,
        /// How many there will be.
        n_runs_max: usize,
    },
    /// Something that the user should know.
    Note(Note),
}

/// Something that the user should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Runs at the same time disturb each other, so from now on there is one at a time.
    OneByOne,
}
