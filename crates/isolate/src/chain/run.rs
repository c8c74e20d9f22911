//! Executions of the target, followed and judged.
//!
//! Under control by the target's plan, else as it is. A schedule that has to be followed to
//! the letter in the failing execution is followed as far as possible in others: suppression
//! changes where threads stop.

use raddle_trace::file::{Trace, Writer};
use raddle_trace::id::{Addr, ThreadId};
use raddle_trace::run::Run;
use raddle_trial::verdict::{Verdict, judge};
use raddle_trial::{Delivery, End, Execution, Order, Plain, Status, execute_plain, execute_traced};

use super::Session;
use super::isolation::IsolateError;
use crate::follow::{Follower, Job, Report};

/// An execution.
pub(super) struct Ran {
    /// In words.
    pub(super) ending: String,
    pub(super) fails: bool,
    pub(super) report: Report,
    /// Under raddle's control.
    pub(super) execution: Option<Execution>,
    pub(super) trace: Option<Trace>,
    pub(super) run: Run,
}

impl Ran {
    pub(super) fn is_unjudged(&self) -> bool {
        self.execution.as_ref().is_some_and(|execution| execution.outcome.end.is_unjudged())
    }
}

impl Session<'_> {
    /// The failing execution.
    pub(super) fn original(&mut self) -> Result<Ran, IsolateError> {
        let ran = self.run(Job::default(), true)?;
        if let Some(execution) = &ran.execution {
            let end = &execution.outcome.end;
            match end {
                End::Diverged(_) => {
                    let why = "threads stop elsewhere than its schedule says";
                    return Err(IsolateError::Diverged { why: why.into() });
                }
                End::Internal { message } => {
                    return Err(IsolateError::Diverged { why: message.clone() });
                }
                End::Unattached { status } => {
                    let why = format!("{status}, without ever having met raddle's runtime");
                    return Err(IsolateError::Diverged { why });
                }
                _ => {}
            }
        }
        if !ran.fails {
            return Err(IsolateError::Passes { ending: ran.ending });
        }
        Ok(ran)
    }

    /// Executes the target, followed.
    pub(super) fn run(&mut self, job: Job, strict: bool) -> Result<Ran, IsolateError> {
        let mut follower = Follower::new(job);
        let Some(plan) = self.target.plan else {
            let plain = execute_plain(self.target.launch, Some(&mut follower))?;
            return self.plain(plain, follower.report);
        };
        let mut plan = plan.clone();
        if let Order::Follow { strict: is_strict, .. } = &mut plan.order {
            *is_strict &= strict;
        }
        let mut writer = Writer::create(&self.path)?;
        let delivery = Delivery::EveryRecord(&mut writer);
        let execution = execute_traced(self.target.launch, &plan, delivery, &mut follower)?;
        writer.finish(&execution.run)?;
        if execution.outcome.end == End::Interrupted {
            return Err(IsolateError::Interrupted);
        }
        let verdict = judge(&execution, self.target.expected)?;
        let trace = Trace::open(&self.path)?;
        self.count(&follower.report);
        Ok(Ran {
            ending: match &verdict {
                Verdict::Fail(failure) => failure.detail.clone(),
                _ => execution.outcome.end.to_string(),
            },
            fails: matches!(verdict, Verdict::Fail(_)),
            run: execution.run.clone(),
            report: follower.report,
            execution: Some(execution),
            trace: Some(trace),
        })
    }

    fn plain(&mut self, plain: Plain, report: Report) -> Result<Ran, IsolateError> {
        if plain.interrupted {
            return Err(IsolateError::Interrupted);
        }
        let expected = self.target.expected;
        let stdout = plain.stdout.as_ref().map(|captured| &captured.bytes[..]);
        let is_status = plain.status == Status::Exited(expected.status.unwrap_or(0));
        let is_output = expected.stdout.as_deref().is_none_or(|wanted| stdout == Some(wanted));
        let launch = self.target.launch;
        let ending = if plain.timed_out { "hang".to_owned() } else { plain.status.to_string() };
        self.count(&report);
        Ok(Ran {
            fails: plain.timed_out || !is_status || !is_output,
            run: Run {
                command: launch
                    .arguments
                    .iter()
                    .map(|argument| argument.to_string_lossy().into_owned())
                    .collect(),
                directory: String::new(),
                mode: raddle_trace::control::Mode::Free,
                policy: None,
                seed: 0,
                modules: report.modules.clone(),
                threads: vec![raddle_trace::run::Thread {
                    id: ThreadId(0),
                    name: "main".to_owned(),
                    label: None,
                    stack: (Addr(0), Addr(0)),
                }],
                ending: Some(ending.clone()),
            },
            ending,
            report,
            execution: None,
            trace: None,
        })
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
