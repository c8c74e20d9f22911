//! Oracles: shell commands that decide whether a run passes.
//!
//! An oracle has a process group of its own, so that a Ctrl-C for raddle is not for it, and a time
//! limit. One that is killed, by whomever, or takes too long has not answered: that says nothing
//! about the run. Whatever it has started ends with it.

use std::fmt;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::family::Family;
use crate::interrupt;
use crate::outcome::signal_name;
use crate::wait::{self, Status, readable, unblocked};

/// A command that accepts a run with status 0. `RADDLE_STATUS` holds the run's exit status,
/// `RADDLE_STDOUT` names a file with its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oracle {
    /// The command, for a shell.
    pub command: String,
    /// When to give up; never if there is none.
    pub timeout: Option<Duration>,
}

impl Oracle {
    /// The time limit of an oracle that has been given none.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
}

/// What an oracle says of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It passes.
    Accepted,
    /// It fails.
    Rejected,
    /// Nothing.
    None(Silence),
}

/// Why an oracle has not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The oracle.
    pub command: String,
    /// What happened to it.
    pub reason: Reason,
}

/// What happened to an oracle that has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It took longer than this.
    TimedOut(Duration),
    /// A signal killed it.
    Killed(i32),
    /// raddle was told to stop.
    Stopped,
}

/// In a sentence.
impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, reason } = self;
        match reason {
            Reason::TimedOut(after) => write!(
                f,
                "oracle `{command}` did not answer within {} seconds; if it is slow, raise --oracle-timeout",
                after.as_secs_f64()
            ),
            Reason::Killed(number) => {
                write!(f, "oracle `{command}` was killed by {}", signal_name(*number))
            }
            Reason::Stopped => write!(f, "oracle `{command}` was stopped"),
        }
    }
}

/// Why the oracle could not be run.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The operating system refused.
    #[error("cannot run oracle `{command}`: {source}")]
    Io {
        /// The oracle.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The shell found no such command, or none that it may execute.
    #[error("oracle `{command}` {}", if *.status == NO_COMMAND { "not found; check its path" } else { "is not executable; check its permissions" })]
    Command {
        /// The oracle.
        command: String,
        /// The shell's status.
        status: u8,
    },
}

/// The status of a shell that finds no such command (POSIX, shell command language 2.8.2).
const NO_COMMAND: u8 = 127;
/// The same, if it may not execute it.
const NOT_EXECUTABLE: u8 = 126;

/// Asks an oracle about a run that exited with `status` and printed this.
pub(crate) fn ask(oracle: &Oracle, status: u8, printed: &[u8]) -> Result<Answer, OracleError> {
    let Oracle { command, timeout } = oracle;
    let refused = |source| OracleError::Io { command: command.clone(), source };
    let file = TemporaryFile::new(printed).map_err(refused)?;
    let none = |reason| Answer::None(Silence { command: command.clone(), reason });
    Ok(match run(command, *timeout, status, &file).map_err(refused)? {
        Ended::Stopped => none(Reason::Stopped),
        Ended::TimedOut(after) => none(Reason::TimedOut(after)),
        Ended::Alone(Status::Killed(number)) => none(Reason::Killed(number)),
        Ended::Alone(Status::Exited(0)) => Answer::Accepted,
        Ended::Alone(Status::Exited(status @ (NO_COMMAND | NOT_EXECUTABLE))) => {
            return Err(OracleError::Command { command: command.clone(), status });
        }
        // A shell says so when the command that it ran was killed (POSIX, as above).
        Ended::Alone(Status::Exited(status @ 129..=159)) => {
            none(Reason::Killed(i32::from(status) - 128))
        }
        Ended::Alone(Status::Exited(_)) => Answer::Rejected,
    })
}

/// How a command ended.
enum Ended {
    /// By itself, or by somebody else.
    Alone(Status),
    /// After so long.
    TimedOut(Duration),
    /// Since raddle was told to stop.
    Stopped,
}

fn run(
    command: &str,
    timeout: Option<Duration>,
    status: u8,
    file: &TemporaryFile,
) -> io::Result<Ended> {
    const OUTPUT: &str = "RADDLE_STDOUT";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("RADDLE_STATUS", status.to_string())
        .env(OUTPUT, &file.path)
        .stdin(Stdio::null())
        // Standard output is for what raddle has to say.
        .stdout(Stdio::null())
        .process_group(0);
    unblocked(&mut shell, interrupt::held());
    let start = Instant::now();
    let mark = format!("{OUTPUT}={}", file.path.display()).into_bytes();
    let (child, family) = Family::start(&mut shell, mark)?;
    let pid = Pid::from_child(&child);
    let waited = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from).and_then(|shell| {
        let mut watched = vec![shell.as_fd()];
        watched.extend(interrupt::descriptor());
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
            if let (Some(Duration::ZERO), Some(timeout)) = (left, timeout) {
                return Ok(Some(Ended::TimedOut(timeout)));
            }
            let ready = readable(&watched, left)?;
            if ready.first() == Some(&true) {
                return Ok(None);
            }
            if ready.get(1) == Some(&true) {
                return Ok(Some(Ended::Stopped));
            }
        }
    });
    // It has not been reaped, so its number is still its own. Fails only if nobody is left.
    let _ = kill_process_group(pid, Signal::KILL);
    let (status, _) = wait::reap(child.id())?;
    drop(family);
    Ok(waited?.unwrap_or(Ended::Alone(status)))
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

    fn asked(command: &str, status: u8, printed: &[u8]) -> Result<Answer, OracleError> {
        let timeout = Some(Duration::from_millis(300));
        let timeout = if command.contains("sleep") { timeout } else { None };
        ask(&Oracle { command: command.to_owned(), timeout }, status, printed)
    }

    #[test]
    fn an_oracle_sees_status_and_output() {
        let oracle = r#"test "$RADDLE_STATUS" = 3 && grep -q yes "$RADDLE_STDOUT""#;
        let answer = |status, printed| asked(oracle, status, printed).expect("a shell");
        assert_eq!(answer(3, b"oh yes\n"), Answer::Accepted);
        assert_eq!(answer(0, b"oh yes\n"), Answer::Rejected);
        assert_eq!(answer(3, b"no\n"), Answer::Rejected);
    }

    #[test]
    fn an_oracle_that_is_no_command_is_not_asked() {
        let error = asked("/nonexistent/command", 0, b"").expect_err("no command");
        let expected = "oracle `/nonexistent/command` not found; check its path";
        assert_eq!(error.to_string(), expected);
        let error = asked("/etc", 0, b"").expect_err("a directory");
        assert_eq!(error.to_string(), "oracle `/etc` is not executable; check its permissions");
    }

    #[test]
    fn an_oracle_that_is_killed_or_slow_has_not_answered() {
        let reason = |command: &str| match asked(command, 0, b"").expect("a shell") {
            Answer::None(silence) => Some(silence.reason),
            Answer::Accepted | Answer::Rejected => None,
        };
        assert_eq!(reason("kill -TERM $$"), Some(Reason::Killed(15)));
        assert_eq!(reason("sh -c 'kill -9 $$'"), Some(Reason::Killed(9)));
        let limit = Duration::from_millis(300);
        assert_eq!(reason("trap '' TERM INT; sleep 100"), Some(Reason::TimedOut(limit)));
    }
}
