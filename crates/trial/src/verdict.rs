//! Pass or fail: an outcome, held against what was expected.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::execute::Execution;
use crate::outcome::{End, signal_name};

/// What a run has to do to pass. Without any of these: exit with status 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// To exit with this status.
    pub status: Option<u8>,
    /// To print exactly this; needs the output to be captured.
    pub stdout: Option<Vec<u8>>,
    /// To please this command of the shell, whose status 0 means a pass. It finds the status
    /// in `RADDLE_STATUS` and the output in the file `RADDLE_STDOUT`.
    pub oracle: Option<String>,
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
}

/// In which way a run has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// In words.
    pub detail: String,
    /// Where, if the target itself said so: file and line.
    pub place: Option<(String, u32)>,
}

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A wrong exit status.
    Exit,
    /// A signal.
    Signal,
    /// An assertion, or a panic.
    Assert,
    /// Threads that wait for ever.
    Deadlock,
    /// It goes on for ever.
    Hang,
    /// Freed memory used, or freed again.
    Memory,
    /// A synchronization object misused.
    Misuse,
    /// Wrong output.
    Output,
    /// The oracle was not pleased.
    Oracle,
}

impl FailureKind {
    /// As other programs know it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Assert => "assert",
            Self::Deadlock => "deadlock",
            Self::Hang => "hang",
            Self::Memory => "memory",
            Self::Misuse => "misuse",
            Self::Output => "output",
            Self::Oracle => "oracle",
        }
    }
}

/// Why the oracle could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The operating system refused.
    #[error("cannot ask the oracle `{command}`: {source}")]
    Io {
        /// The oracle.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The shell found no such command, or none that it may execute.
    #[error("the oracle `{command}` {}", if *.status == NO_COMMAND { "is no command that the shell can find" } else { "cannot be executed" })]
    Command {
        /// The oracle.
        command: String,
        /// The shell's status.
        status: i32,
    },
}

/// The status of a shell that finds no such command (POSIX, shell command language 2.8.2).
const NO_COMMAND: i32 = 127;
/// The same, if it may not execute it.
const NOT_EXECUTABLE: i32 = 126;

/// Judges an execution.
pub fn judge(execution: &Execution, expected: &Expected) -> Result<Verdict, OracleError> {
    let end = &execution.outcome.end;
    if end.is_unjudged() {
        return Ok(Verdict::Unjudged);
    }
    let fail = |kind, detail: String| Verdict::Fail(Failure { kind, detail, place: None });
    let status = match end {
        End::Exit { status } => *status,
        _ if !end.is_failure() => 0,
        _ => return Ok(Verdict::Fail(failure(end))),
    };
    // An oracle judges the status too, unless one was asked for.
    if expected.oracle.is_none() || expected.status.is_some() {
        let wanted = expected.status.unwrap_or(0);
        if status != wanted {
            let stderr = execution.stderr.as_ref().map(|stderr| &stderr.bytes[..]);
            return Ok(match stderr.and_then(panic_in) {
                Some(panic) => Verdict::Fail(panic),
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
    if let Some(oracle) = &expected.oracle
        && !ask(oracle, status, printed)?
    {
        return Ok(fail(FailureKind::Oracle, format!("`{oracle}` says no")));
    }
    Ok(Verdict::Pass)
}

/// The failure that an end is by itself.
fn failure(end: &End) -> Failure {
    let kind = match end {
        End::Assert { .. } => FailureKind::Assert,
        End::Signal { .. } => FailureKind::Signal,
        End::Deadlock | End::LostWakeup => FailureKind::Deadlock,
        End::Livelock { .. } | End::Hang { .. } => FailureKind::Hang,
        End::UseAfterFree { .. } | End::DoubleFree { .. } => FailureKind::Memory,
        End::Misuse { .. } => FailureKind::Misuse,
        _ => FailureKind::Exit,
    };
    let (detail, place) = match end {
        End::Assert { message, .. } => (asserted(message).to_owned(), place_in_assertion(message)),
        End::Signal { number, .. } => (signal_name(*number), None),
        _ => (end.to_string(), None),
    };
    Failure { kind, detail, place }
}

/// What was asserted, of glibc's `file.c:12: function: Assertion `x' failed.`
fn asserted(message: &str) -> &str {
    let after = message.split_once(": Assertion `").map(|(_, after)| after);
    after.and_then(|after| after.strip_suffix("' failed.")).unwrap_or(message)
}

/// File and line of glibc's `program: file.c:12: function: Assertion `x' failed.`
fn place_in_assertion(message: &str) -> Option<(String, u32)> {
    let (before, _) = message.split_once(": Assertion `")?;
    let mut parts = before.split(':').map(str::trim);
    let parts: Vec<_> = parts.by_ref().collect();
    let at = parts.iter().position(|part| part.parse::<u32>().is_ok())?;
    Some(((*parts.get(at.checked_sub(1)?)?).to_owned(), parts[at].parse().ok()?))
}

/// The first panic that a Rust program has reported.
fn panic_in(stderr: &[u8]) -> Option<Failure> {
    let text = String::from_utf8_lossy(stderr);
    let (_, after) = text.split_once(" panicked at ")?;
    let (place, rest) = after.split_once('\n')?;
    let mut parts = place.trim_end_matches(':').rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    let detail = rest.lines().next().unwrap_or_default().to_owned();
    let place = Some((file.to_owned(), line.parse().ok()?));
    Some(Failure { kind: FailureKind::Assert, detail, place })
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

fn ask(oracle: &str, status: u8, printed: &[u8]) -> Result<bool, OracleError> {
    let refused = |source| OracleError::Io { command: oracle.to_owned(), source };
    let file = TemporaryFile::new(printed).map_err(refused)?;
    let status = Command::new("sh")
        .args(["-c", oracle])
        .env("RADDLE_STATUS", status.to_string())
        .env("RADDLE_STDOUT", &file.path)
        .stdin(Stdio::null())
        // Standard output is for what raddle has to say.
        .stdout(Stdio::null())
        .status()
        .map_err(refused)?;
    match status.code() {
        Some(status @ (NO_COMMAND | NOT_EXECUTABLE)) => {
            Err(OracleError::Command { command: oracle.to_owned(), status })
        }
        _ => Ok(status.success()),
    }
}

/// A file that goes when this does.
struct TemporaryFile {
    path: PathBuf,
}

impl TemporaryFile {
    fn new(bytes: &[u8]) -> io::Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("raddle-{}-{number}.stdout", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut file = std::fs::File::create_new(&path)?;
        let file_exists = Self { path };
        file.write_all(bytes)?;
        Ok(file_exists)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // At worst a file stays in the temporary directory.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assertion_tells_its_place() {
        let message = "bank: src/bank.c:31: main: Assertion `balance == 20' failed.";
        assert_eq!(place_in_assertion(message), Some(("src/bank.c".into(), 31)));
        assert_eq!(asserted(message), "balance == 20");
        assert_eq!(place_in_assertion("no place"), None);
    }

    #[test]
    fn a_panic_tells_its_place() {
        let stderr =
            b"\nthread 'main' (12) panicked at src/main.rs:7:5:\nassertion failed: x\nnote: run";
        let panic = panic_in(stderr).expect("a panic");
        assert_eq!(panic.place, Some(("src/main.rs".into(), 7)));
        assert_eq!(panic.detail, "assertion failed: x");
    }

    #[test]
    fn outputs_are_compared_line_by_line() {
        let difference = |a: &str, b: &str| difference(a.as_bytes(), b.as_bytes());
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let expected = "line 2 of the output is «c», expected «b»";
        assert_eq!(difference("a\nc\n", "a\nb\n").as_deref(), Some(expected));
        let expected = "line 2 of the output is nothing, expected «b»";
        assert_eq!(difference("a\n", "a\nb\n").as_deref(), Some(expected));
    }

    #[test]
    fn an_oracle_sees_status_and_output() {
        let oracle = r#"test "$RADDLE_STATUS" = 3 && grep -q yes "$RADDLE_STDOUT""#;
        assert!(ask(oracle, 3, b"oh yes\n").expect("a shell"));
        assert!(!ask(oracle, 0, b"oh yes\n").expect("a shell"));
        assert!(!ask(oracle, 3, b"no\n").expect("a shell"));
    }

    #[test]
    fn an_oracle_that_is_no_command_is_not_asked() {
        let error = ask("/nonexistent/command", 0, b"").expect_err("no command");
        let expected = "the oracle `/nonexistent/command` is no command that the shell can find";
        assert_eq!(error.to_string(), expected);
        let error = ask("/etc", 0, b"").expect_err("a directory");
        assert_eq!(error.to_string(), "the oracle `/etc` cannot be executed");
    }
}
