//! Questions to the model, and its answers.

use raddle_trace::record::Switch;

use super::children::Rest;
use super::schedule::Departure;

/// A thread gave up the turn: who runs next?
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// The thread that held the turn, if any.
    pub(crate) last: Option<u32>,
    /// Why it gave it up.
    pub(crate) reason: Switch,
    /// The code address at which it gave it up.
    pub(crate) pc: u64,
    /// Whether its stretch was compared with the schedule.
    pub(super) is_compared: bool,
    /// Whether its stretch was measured.
    pub(super) is_measured: bool,
    /// What was looked for in real time, and did not come.
    pub(super) looked: Looked,
}

/// What was looked for in real time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looked {
    /// Input from a process that is no child of ours.
    pub(super) input: bool,
    /// The children's rest, and what they did then.
    pub(super) rest: Option<Rest>,
    /// What children do by themselves, or anybody else.
    pub(super) peers: bool,
}

impl Question {
    pub(crate) fn new(last: Option<u32>, reason: Switch, pc: u64) -> Self {
        let looked = Looked::default();
        Self { last, reason, pc, is_compared: false, is_measured: false, looked }
    }

    /// Whether input was looked for, and did not come; it counts as looked for from now on.
    pub(super) fn has_looked_for_input(&mut self) -> bool {
        core::mem::replace(&mut self.looked.input, true)
    }
}

/// What the scheduler is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Grant the turn to this thread.
    Run(u32),
    /// Advance time, then ask again. `marked` if somebody could run, or the schedule says that
    /// time jumped here: who follows the schedule could not know otherwise.
    Jump {
        /// Virtual nanoseconds.
        ns: u64,
        /// Whether the jump is part of the schedule.
        marked: bool,
    },
    /// Look for something in real time, then ask again.
    Look {
        /// What to look for.
        what: Look,
        /// For at most this long.
        ns: u64,
    },
    /// Nobody runs until a thread returns from outside.
    Idle,
    /// Nobody can run, and nothing that could change that is left.
    Stuck,
    /// Abandon the schedule here, then ask again.
    Depart(Departure),
    /// The same, since it would make a thread too late.
    TooLate(Departure),
}

/// What may come from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Input at a descriptor that a thread waits for, or a signal.
    Input,
    /// Until all children are at rest; accept what they did.
    Rest,
    /// Whatever a child or another process may bring about. `decides` if it depends on real time
    /// what happens next, and not only how long it takes.
    Peers {
        /// Whether the run is no longer controlled.
        decides: bool,
    },
}
