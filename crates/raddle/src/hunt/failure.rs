//! Failures, and which of them are the same.

use raddle_trace::control::State;
use raddle_trace::id::Site;
use raddle_trial::Execution;
use raddle_trial::verdict::{Failure, FailureKind};

/// What makes two failures the same: the kind, the words, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Signature {
    kind: &'static str,
    detail: String,
    sites: Vec<Site>,
}

impl Signature {
    pub(crate) fn of(execution: &Execution, failure: &Failure) -> Self {
        let run = &execution.run;
        let outcome = &execution.outcome;
        let mut sites: Vec<Site> = match failure.kind {
            FailureKind::Deadlock => {
                let waits = |state| {
                    !matches!(state, State::Ended | State::Unborn | State::Join | State::Ready)
                };
                let waiting = outcome.threads.iter().filter(|at| waits(at.state));
                waiting.map(|at| run.site(at.pc)).collect()
            }
            FailureKind::Exit | FailureKind::Output | FailureKind::Oracle | FailureKind::Hang => {
                Vec::new()
            }
            _ => outcome.end.place().map(|place| run.site(place.pc)).into_iter().collect(),
        };
        sites.sort_unstable();
        sites.dedup();
        let detail = match failure.kind {
            // Where outputs differ changes from run to run.
            FailureKind::Output => String::new(),
            _ => failure.detail.clone(),
        };
        Self { kind: failure.kind.as_str(), detail, sites }
    }

    /// In words, for files.
    pub(crate) fn key(&self) -> String {
        let sites: Vec<_> = self.sites.iter().map(ToString::to_string).collect();
        format!("{}: {} at {}", self.kind, self.detail, sites.join(", "))
    }
}
