//! Pass or fail: an outcome, held against what was expected.

use raddle_trace::failure::FailureKind;
use serde::{Deserialize, Serialize};

use crate::execute::Execution;
use crate::last_words::{self, LastWords, last_words};
use crate::oracle::{Answer, Oracle, OracleError, Silence, ask};
use crate::outcome::{Assertion, End, signal_name};
use crate::wait::Status;

/// What a run must do to pass. By default: exit with status 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Exit with this status.
    pub status: Option<u8>,
    /// Print exactly this; the output must be captured.
    pub stdout: Option<Vec<u8>>,
    /// Be accepted by this command.
    pub oracle: Option<Oracle>,
}

/// Pass or fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As expected.
    Pass,
    /// Otherwise.
    Fail(Failure),
    /// The run says nothing about the target.
    Unjudged,
    /// The oracle gave no answer.
    Unanswered(Silence),
}

/// In which way a run has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// In words.
    pub detail: String,
    /// Where, if the target itself said so: file and line.
    pub place: Option<(String, u32)>,
}

/// Judges an execution, under raddle's control or not. An oracle is asked each time.
pub(crate) fn judge(execution: &Execution, expected: &Expected) -> Result<Verdict, OracleError> {
    let end = &execution.outcome.end;
    let fail = |kind, detail, place| Ok(Verdict::Fail(Failure { kind, detail, place }));
    let said = || end.to_string();
    match end {
        End::Exit { status } => judge_status(*status, execution, expected),
        End::Exec { status: Status::Exited(0) } => judge_status(0, execution, expected),
        End::Exec { status: Status::Exited(_) } => fail(FailureKind::Exit, said(), None),
        End::Exec { status: Status::Killed(_) } => fail(FailureKind::Signal, said(), None),
        End::Signal { number, .. } => {
            let LastWords { text, place } = last_words(execution)
                .unwrap_or_else(|| LastWords { text: signal_name(*number), place: None });
            fail(FailureKind::Signal, text, place)
        }
        End::Assert { assertion: Assertion { text, file, line, .. }, .. } => {
            fail(FailureKind::Assert, text.clone(), Some((file.clone(), *line)))
        }
        End::Deadlock | End::LostWakeup => fail(FailureKind::Deadlock, said(), None),
        End::Livelock { .. } | End::Endless { .. } => fail(FailureKind::Hang, said(), None),
        End::UseAfterFree { .. } | End::DoubleFree { .. } => {
            fail(FailureKind::Memory, said(), None)
        }
        End::Misuse { misuse, .. } => fail(FailureKind::Misuse, misuse.to_string(), None),
        End::TimedOut { .. }
        | End::Diverged(_)
        | End::Internal { .. }
        | End::Unattached { .. }
        | End::Interrupted => Ok(Verdict::Unjudged),
    }
}

/// Judges an execution that exited with a status.
fn judge_status(
    status: u8,
    execution: &Execution,
    expected: &Expected,
) -> Result<Verdict, OracleError> {
    let fail = |kind, detail: String| Verdict::Fail(Failure { kind, detail, place: None });
    // An oracle judges the status too, unless one was asked for.
    if expected.oracle.is_none() || expected.status.is_some() {
        let wanted = expected.status.unwrap_or(0);
        if status != wanted {
            let stderr = execution.stderr.as_ref().map(|stderr| &stderr.bytes[..]);
            return Ok(match stderr.and_then(last_words::panic_in) {
                Some(LastWords { text, place }) => {
                    Verdict::Fail(Failure { kind: FailureKind::Assert, detail: text, place })
                }
                None if wanted == 0 => fail(FailureKind::Exit, format!("exit {status}")),
                None => fail(FailureKind::Exit, format!("exit {status}, expected {wanted}")),
            });
        }
    }
    let printed = execution.stdout.as_ref().map_or(&[][..], |stdout| &stdout.bytes);
    if let Some(wanted) = &expected.stdout
        && let Some(difference) = difference(printed, wanted)
    {
        return Ok(fail(FailureKind::Output, difference));
    }
    let Some(oracle) = &expected.oracle else { return Ok(Verdict::Pass) };
    Ok(match ask(oracle, status, printed)? {
        Answer::Accepted => Verdict::Pass,
        Answer::Rejected => {
            fail(FailureKind::Oracle, format!("oracle `{}` rejected the run", oracle.command))
        }
        Answer::None(silence) => Verdict::Unanswered(silence),
    })
}

/// Where two texts differ first, in words.
fn difference(printed: &[u8], wanted: &[u8]) -> Option<String> {
    if printed == wanted {
        return None;
    }
    let lines = |text: &[u8]| -> Vec<String> {
        text.split(|&byte| byte == b'\n')
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect()
    };
    let (printed, wanted) = (lines(printed), lines(wanted));
    let at = printed.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
    let line = |lines: &[String]| match lines.get(at).map(String::as_str) {
        None | Some("") if at + 1 >= lines.len() => "nothing".to_owned(),
        line => format!("«{}»", line.unwrap_or_default()),
    };
    Some(format!("line {} of the output is {}, expected {}", at + 1, line(&printed), line(&wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_compared_line_by_line() {
        let difference = |a: &str, b: &str| difference(a.as_bytes(), b.as_bytes());
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let expected = "line 2 of the output is «c», expected «b»";
        assert_eq!(difference("a\nc\n", "a\nb\n").as_deref(), Some(expected));
        let expected = "line 2 of the output is nothing, expected «b»";
        assert_eq!(difference("a\n", "a\nb\n").as_deref(), Some(expected));
    }
}
