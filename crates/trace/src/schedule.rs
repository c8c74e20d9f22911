//! Who ran when: a schedule, as a small printable value.

use serde::{Deserialize, Serialize};

use crate::id::{Site, ThreadId};

/// An order of execution. Applied to the same program with the same inputs it gives the
/// same run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Stretches and choices, in the order in which they happened.
    pub steps: Vec<Step>,
}

/// One part of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// A thread runs for a while.
    Run {
        /// Who.
        thread: ThreadId,
        /// For how many steps; `u64::MAX` for as long as it can.
        count: u64,
        /// Where it stops: the site of the operation that it would perform next.
        site: Site,
    },
    /// Something other than a thread is chosen, such as whom a signal wakes.
    Choose {
        /// The number of the alternative.
        choose: u32,
    },
}

impl Schedule {
    /// How often a thread that could have gone on had to wait for another one.
    #[must_use]
    pub fn n_runs(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Run { .. })).count()
    }
}
