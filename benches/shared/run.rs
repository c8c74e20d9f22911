//! One run of a program, with a time limit and without leftovers.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::personality::{self, Persona};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Exited(i32),
    /// By the signal of this number.
    Killed(i32),
    /// By us, since its time was up.
    TimedOut,
}

/// A run that is over.
pub struct Run {
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub duration: Duration,
    /// What it printed to its log.
    pub text: String,
}

/// A run to be.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// The program and its arguments.
    pub words: &'a [&'a str],
    /// Environment variables.
    pub variables: &'a [(&'a str, &'a Path)],
    /// Where it runs.
    pub directory: &'a Path,
    /// The file for what it prints to standard error, and to standard output unless that goes
    /// elsewhere.
    pub log: &'a Path,
    /// The file for standard output, if it has one of its own.
    pub output: Option<&'a Path>,
    /// How long it may take.
    pub limit: Duration,
}

/// Runs a program in a session of its own, and kills whatever is left of that session at the end.
///
/// # Errors
/// If it cannot be started, or its files cannot be written.
pub fn run(launch: &Launch<'_>) -> Result<Run> {
    let Launch { words, variables, directory, log, output, limit } = *launch;
    let create =
        |path: &Path| File::create(path).with_context(|| format!("cannot make {}", path.display()));
    let file = create(log)?;
    let output = match output {
        Some(path) => create(path)?,
        None => file.try_clone()?,
    };
    // A shell that starts us in the background makes us ignore SIGINT, which a test would inherit.
    let mut command = Command::new("env");
    command
        .args(["--default-signal", "setsid"])
        .args(words)
        .envs(variables.iter().copied())
        .current_dir(directory);
    command.stdin(Stdio::null()).stdout(output).stderr(file);
    let start = Instant::now();
    let mut child = command.spawn().context("cannot start env")?;
    let status = wait(&mut child, start + limit)?;
    let duration = start.elapsed();
    kill_session(child.id());
    let ending = match status {
        Some(status) => ending(status),
        None => {
            child.wait().context("cannot wait for a program")?;
            Ending::TimedOut
        }
    };
    let bytes = fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(Run { ending, duration, text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Turns address randomization off for all that will be started: ThreadSanitizer of gcc does not
/// start with as much of it as newer kernels give.
pub fn fix_addresses() {
    let fixed = personality::get()
        .and_then(|persona| personality::set(persona | Persona::ADDR_NO_RANDOMIZE));
    if let Err(error) = fixed {
        eprintln!("cannot turn address randomization off ({error}); ThreadSanitizer may not start");
    }
}

/// Waits for the end of a program, up to a deadline.
fn wait(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>> {
    loop {
        let status = child.try_wait().context("cannot wait for a program")?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        sleep(Duration::from_millis(5));
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Killed(signal.unwrap_or_default()),
    }
}

/// Kills every process of a session. A process may fork meanwhile, so we look several times.
fn kill_session(session: u32) {
    for _ in 0..10 {
        let members = members(session);
        if members.is_empty() {
            return;
        }
        for pid in members {
            // It may be gone by now.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        sleep(Duration::from_millis(5));
    }
}

/// The processes of a session that have not ended.
fn members(session: u32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_member = |pid: &i32| {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        is_alive_in(session, &stat)
    };
    pids.filter(is_member).collect()
}

/// Whether `/proc/PID/stat` is that of a process of the session that has not ended.
fn is_alive_in(session: u32, stat: &str) -> bool {
    // The command's name, in parentheses, may contain anything.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let fields: Vec<_> = rest.split(' ').collect();
    let [state, _parent, _group, own_session, ..] = fields[..] else { return false };
    state != "Z" && own_session.parse() == Ok(session)
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Killed(number) => match Signal::try_from(number) {
                Ok(signal) => f.write_str(signal.as_str()),
                Err(_) => write!(f, "signal {number}"),
            },
            Self::TimedOut => f.write_str("hang"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_session_are_recognized() {
        assert!(is_alive_in(7, "12 (a b) c) S 1 9 7 0 -1"));
        assert!(!is_alive_in(8, "12 (a b) c) S 1 9 7 0 -1"));
        assert!(!is_alive_in(7, "12 (a) Z 1 9 7 0 -1"));
    }

    #[test]
    fn a_run_is_stopped_with_all_that_it_started() -> Result<()> {
        let directory = tempfile::tempdir()?;
        let log = directory.path().join("log");
        let words = ["sh", "-c", "echo started; sleep 100 & sleep 100"];
        let launch = Launch {
            words: &words,
            variables: &[],
            directory: directory.path(),
            log: &log,
            output: None,
            limit: Duration::from_millis(200),
        };
        let run = run(&launch)?;
        assert_eq!((run.ending, run.text.as_str()), (Ending::TimedOut, "started\n"));
        assert!(run.duration < Duration::from_secs(50));
        Ok(())
    }
}
