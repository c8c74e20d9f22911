//! Which failures are the same.

use raddle_trace::failure::FailureKind;
use raddle_trace::id::Site;
use raddle_trial::Execution;
use raddle_trial::verdict::Failure;

use crate::executor::IsOwn;
use crate::recorded::waiting;

/// What makes two failures the same: the kind, the words, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature {
    kind: FailureKind,
    detail: String,
    sites: Vec<Site>,
}

impl Signature {
    /// The signature of a run's failure.
    #[must_use]
    pub fn of(execution: &Execution, failure: &Failure, is_own: &IsOwn) -> Self {
        let run = &execution.run;
        let outcome = &execution.outcome;
        let mut sites: Vec<Site> = match failure.kind {
            FailureKind::Deadlock => {
                waiting(&outcome.threads).iter().map(|at| run.site(at.pc)).collect()
            }
            FailureKind::Exit | FailureKind::Output | FailureKind::Oracle | FailureKind::Hang => {
                Vec::new()
            }
            FailureKind::Signal
            | FailureKind::Assert
            | FailureKind::Memory
            | FailureKind::Misuse => {
                let place = outcome.own_place(|pc| is_own(run, pc));
                place.map(|place| run.site(place.pc)).into_iter().collect()
            }
        };
        sites.sort_unstable();
        sites.dedup();
        let detail = match failure.kind {
            // Where outputs differ changes from run to run.
            FailureKind::Output => String::new(),
            // So does what a dying program says.
            FailureKind::Signal => outcome.end.to_string(),
            FailureKind::Exit
            | FailureKind::Assert
            | FailureKind::Deadlock
            | FailureKind::Hang
            | FailureKind::Memory
            | FailureKind::Misuse
            | FailureKind::Oracle => failure.detail.clone(),
        };
        Self { kind: failure.kind, detail, sites }
    }

    /// In words, for files.
    #[must_use]
    pub fn key(&self) -> String {
        let sites: Vec<_> = self.sites.iter().map(ToString::to_string).collect();
        format!("{}: {} at {}", self.kind.as_str(), self.detail, sites.join(", "))
    }
}
