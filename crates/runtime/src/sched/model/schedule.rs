//! What a schedule says.

use raddle_trace::id::Site;

/// An item of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A thread runs.
    Stretch(Step),
    /// The alternative that is taken. Choices have an order of their own.
    Choice(u32),
}

/// A thread runs for so many steps, and stops before an operation at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) thread: u32,
    /// `u64::MAX` for a thread that runs to the end.
    pub(crate) count: u64,
    pub(crate) site: Site,
}

/// Where a run departs from its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// The thread that does not do what the schedule says.
    pub(crate) thread: u32,
    /// Where it is.
    pub(crate) pc: u64,
    /// The step, and its index in the schedule.
    pub(crate) step: Step,
    pub(crate) index: u64,
}
