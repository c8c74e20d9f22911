//! Executions of the target, followed and judged.
//!
//! Under control by the target's plan, else as it is. A schedule that has to be followed to
//! the letter in the failing execution is followed as far as possible in others: suppression
//! changes where threads stop.

use raddle_trace::file::{Trace, Writer};
use raddle_trace::run::Run;
use raddle_trial::verdict::Verdict;
use raddle_trial::{Delivery, End, Order, Trial};

use super::Session;
use super::isolation::IsolateError;
use crate::follow::{Follower, Job, Report};

/// An execution.
pub(super) struct Ran {
    pub(super) trial: Trial,
    pub(super) report: Report,
    /// What it did, if it was under raddle's control.
    pub(super) trace: Option<Trace>,
}

impl Ran {
    /// How it ended, in words.
    pub(super) fn ending(&self) -> String {
        match &self.trial.verdict {
            Verdict::Fail(failure) => failure.detail.clone(),
            Verdict::Pass | Verdict::Unjudged => self.end().to_string(),
            Verdict::Unanswered(silence) => silence.to_string(),
        }
    }

    pub(super) fn end(&self) -> &End {
        &self.trial.execution.outcome.end
    }

    /// For names.
    pub(super) fn run(&self) -> &Run {
        &self.trial.execution.run
    }
}

impl Session<'_> {
    /// The failing execution.
    pub(super) fn original(&mut self) -> Result<Ran, IsolateError> {
        let ran = self.run(Job::default(), true)?;
        match &ran.trial.verdict {
            Verdict::Fail(_) => Ok(ran),
            Verdict::Pass => Err(IsolateError::Passes { ending: ran.ending() }),
            Verdict::Unjudged if matches!(ran.end(), End::TimedOut { .. }) => {
                Err(IsolateError::TimedOut)
            }
            Verdict::Unanswered(silence) => {
                Err(IsolateError::Unanswered { silence: silence.clone() })
            }
            Verdict::Unjudged => {
                let why = match ran.end() {
                    End::Diverged(_) => "threads stop elsewhere than its schedule says".to_owned(),
                    End::Internal { message } => message.clone(),
                    End::Unattached { status } => {
                        format!("{status}, without ever having met raddle's runtime")
                    }
                    other => other.to_string(),
                };
                Err(IsolateError::Diverged { why })
            }
        }
    }

    /// Executes the target, followed.
    pub(super) fn run(&mut self, job: Job, strict: bool) -> Result<Ran, IsolateError> {
        let target = self.target;
        let mut follower = Follower::new(job, target.files);
        let (trial, trace) = match target.plan {
            None => {
                let mut trial = Trial::plain(target.launch, &mut follower, target.expected)?;
                trial.execution.run.modules.clone_from(&follower.report.modules);
                (trial, None)
            }
            Some(plan) => {
                let mut plan = plan.clone();
                if let Order::Follow { strict: is_strict, .. } = &mut plan.order {
                    *is_strict &= strict;
                }
                // A trace that is too large for memory keeps its file when the next one takes over
                // the name.
                let mut writer = Writer::spool(&self.directory.path().join("trace"))?;
                let delivery = Delivery::EveryRecord(&mut writer);
                let trial =
                    Trial::traced(target.launch, &plan, delivery, &mut follower, target.expected)?;
                let trace = writer.into_trace(&trial.execution.run)?;
                (trial, Some(trace))
            }
        };
        self.count(&follower.report);
        Ok(Ran { trial: uninterrupted(trial)?, report: follower.report, trace })
    }

    fn count(&mut self, report: &Report) {
        self.n_stepped += report.n_stepped;
        self.n_skipped += report.n_skipped;
        for note in &report.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }
}

/// A trial that nobody has interrupted.
pub(super) fn uninterrupted(trial: Trial) -> Result<Trial, IsolateError> {
    if trial.is_stopped() { Err(IsolateError::Interrupted) } else { Ok(trial) }
}
