//! How late deadlines made threads that could run: see [`raddle_trace::expiry`].

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use raddle_trace::control::{Control, TOO_LATE};
use raddle_trace::id::ThreadId;

/// How late the deadlines of a run made its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The thread that was latest, and by how much.
    pub longest: Option<(ThreadId, Duration)>,
    /// The schedule was left since a thread would have been later than the plan allows.
    pub is_too_much: bool,
    /// Time has jumped to a deadline.
    pub has_jumped: bool,
}

impl Lateness {
    pub(crate) fn of(control: &Control) -> Self {
        let delay = Duration::from_nanos(control.late_ns.load(Relaxed));
        let thread = ThreadId(control.late_thread.load(Relaxed));
        Self {
            longest: (!delay.is_zero()).then_some((thread, delay)),
            is_too_much: control.flags.load(Relaxed) & TOO_LATE != 0,
            has_jumped: control.clock_ns.load(Relaxed) > 0,
        }
    }
}
