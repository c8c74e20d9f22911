//! What a run was allowed to do.

use std::sync::atomic::Ordering::Relaxed;

use raddle_trace::allow::Judgement;
use raddle_trace::control::Control;
use raddle_trace::id::Pc;

/// A judgement that would have ended a run, had it not been allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifted {
    /// The judgement.
    pub judgement: Judgement,
    /// How often.
    pub n: u64,
    /// Where the first time.
    pub pc: Pc,
}

/// The judgements that the control block counts, by number.
pub(crate) fn lifted(control: &Control) -> Vec<Lifted> {
    let lifted = Judgement::ALL.into_iter().zip(&control.allowed).map(|(judgement, count)| {
        Lifted { judgement, n: count.n.load(Relaxed), pc: Pc(count.pc.load(Relaxed)) }
    });
    lifted.filter(|lifted| lifted.n > 0).collect()
}
