//! A trial: one execution with its verdict.
//!
//! This is the only place that judges, so an oracle is asked exactly once per run.

use crate::execute::{Delivery, Execution, Tracer, execute, execute_plain, execute_traced};
use crate::launch::{Launch, LaunchError};
use crate::oracle::{OracleError, Reason};
use crate::outcome::End;
use crate::plan::Plan;
use crate::verdict::{Expected, Failure, Verdict, judge};

/// One execution with its verdict.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What was executed, and how it ended.
    pub execution: Execution,
    /// Pass or fail.
    pub verdict: Verdict,
}

/// Why there is no trial.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The target could not be executed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The oracle could not be asked.
    #[error(transparent)]
    Oracle(#[from] OracleError),
}

impl Trial {
    /// Executes a target by a plan and judges it.
    pub fn run(
        launch: &Launch,
        plan: &Plan,
        delivery: Delivery<'_>,
        expected: &Expected,
    ) -> Result<Self, TrialError> {
        Self::judged(execute(launch, plan, delivery)?, expected)
    }

    /// The same, followed by a tracer.
    pub fn traced(
        launch: &Launch,
        plan: &Plan,
        delivery: Delivery<'_>,
        tracer: &mut dyn Tracer,
        expected: &Expected,
    ) -> Result<Self, TrialError> {
        Self::judged(execute_traced(launch, plan, delivery, tracer)?, expected)
    }

    /// Executes a target without anything of ours in it, followed by a tracer, and judges it.
    pub fn plain(
        launch: &Launch,
        tracer: &mut dyn Tracer,
        expected: &Expected,
    ) -> Result<Self, TrialError> {
        Self::judged(execute_plain(launch, tracer)?, expected)
    }

    /// Judges an execution. If there is an oracle, it is asked, so judge an execution only once.
    pub fn judged(execution: Execution, expected: &Expected) -> Result<Self, TrialError> {
        let verdict = judge(&execution, expected)?;
        Ok(Self { execution, verdict })
    }

    /// How it failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match &self.verdict {
            Verdict::Fail(failure) => Some(failure),
            Verdict::Pass | Verdict::Unjudged | Verdict::Unanswered(_) => None,
        }
    }

    /// Why it says nothing about the target, in words; none if it was judged.
    #[must_use]
    pub fn unjudged(&self) -> Option<String> {
        match &self.verdict {
            Verdict::Pass | Verdict::Fail(_) => None,
            Verdict::Unjudged => Some(self.execution.outcome.end.to_string()),
            Verdict::Unanswered(silence) => Some(silence.to_string()),
        }
    }

    /// Whether raddle was told to stop before it could be judged.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        match &self.verdict {
            Verdict::Pass | Verdict::Fail(_) => false,
            Verdict::Unjudged => self.execution.outcome.end == End::Interrupted,
            Verdict::Unanswered(silence) => silence.reason == Reason::Stopped,
        }
    }

    /// Whether it followed its schedule to the end, if it had one to follow.
    #[must_use]
    pub fn followed(&self) -> bool {
        self.execution.outcome.left.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::process::Command;

    use super::*;
    use crate::launch::{Input, Output};
    use crate::oracle::Oracle;
    use crate::wait::{self, Status};
    use raddle_trace::failure::FailureKind;

    /// Follows a target by letting it run.
    struct Waits;

    impl Tracer for Waits {
        fn prepare(&mut self, _command: &mut Command) {}

        fn follow(&mut self, pid: u32) -> io::Result<Status> {
            wait::reap(pid).map(|(status, _)| status)
        }
    }

    /// How a script fails that has nothing of ours in it: what kind, and in words.
    fn check(script: &str, expected: &Expected, fails: Option<(FailureKind, &str)>) {
        let launch = Launch {
            program: "/bin/sh".into(),
            arguments: ["sh", "-c", script].map(Into::into).to_vec(),
            directory: None,
            environment: Vec::new(),
            stdin: Input::Null,
            stdout: Output::Capture,
            stderr: Output::Capture,
            timeout: None,
            runtime: "".into(),
            files: raddle_code::elf::Files::default(),
        };
        let trial = Trial::plain(&launch, &mut Waits, expected).expect("a shell");
        let failure = trial.failure().map(|failure| (failure.kind, &failure.detail[..]));
        assert_eq!(failure, fails, "{script}");
        assert_ne!(trial.verdict, Verdict::Unjudged);
    }

    #[test]
    fn a_plain_run_is_judged_as_any_other() {
        let any = Expected::default();
        check("exit 0", &any, None);
        check("exit 3", &any, Some((FailureKind::Exit, "exit 3")));
        check("kill -SEGV $$", &any, Some((FailureKind::Signal, "SIGSEGV")));
        let panic = "thread 'main' panicked at src/main.rs:2:5:\nno bread";
        let script = format!("printf \"{panic}\n\" >&2; exit 101");
        check(&script, &any, Some((FailureKind::Assert, "no bread")));

        let status = Expected { status: Some(3), ..Expected::default() };
        check("exit 3", &status, None);
        check("exit 0", &status, Some((FailureKind::Exit, "exit 0, expected 3")));

        let output = Expected { stdout: Some(b"yes\n".to_vec()), ..Expected::default() };
        check("echo yes", &output, None);
        let differs = "line 1 of the output is «no», expected «yes»";
        check("echo no", &output, Some((FailureKind::Output, differs)));
    }

    #[test]
    fn a_plain_run_is_judged_by_the_oracle() {
        let oracle = r#"test "$RADDLE_STATUS" = 3 && grep -q yes "$RADDLE_STDOUT""#;
        let asked = Oracle { command: oracle.to_owned(), timeout: None };
        let expected = Expected { oracle: Some(asked), ..Expected::default() };
        check("echo yes; exit 3", &expected, None);
        let rejected = format!("oracle `{oracle}` rejected the run");
        check("echo no; exit 3", &expected, Some((FailureKind::Oracle, &rejected)));
        check("echo yes", &expected, Some((FailureKind::Oracle, &rejected)));
    }
}
