//! One run, and what it cost.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};
use nix::sys::personality::{self, Persona};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

/// The raddle to measure.
pub(crate) struct Raddle {
    path: PathBuf,
    // It unpacks its library to there, so that the one which is found there is its own.
    cache: PathBuf,
}

/// A run that went well.
pub(crate) struct Run {
    /// Processor time of all that was started.
    pub(crate) cpu_s: f64,
    pub(crate) stdout: Vec<u8>,
}

/// What a trace holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stats {
    pub(crate) n_events: u64,
    pub(crate) n_bytes: u64,
}

/// Runs a program by itself.
pub(crate) fn plain(program: &Path) -> Result<Run> {
    measured(&mut Command::new(program))
}

/// Turns address randomization off for all that will be started.
pub(crate) fn fix_addresses() {
    let fixed = personality::get()
        .and_then(|persona| personality::set(persona | Persona::ADDR_NO_RANDOMIZE));
    if let Err(error) = fixed {
        eprintln!("cannot turn address randomization off ({error}); ThreadSanitizer may not start");
    }
}

impl Raddle {
    pub(crate) fn new(path: &Path, directory: &Path) -> Self {
        Self { path: path.to_owned(), cache: directory.join("cache") }
    }

    /// A command to which arguments can be added.
    pub(crate) fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.env("XDG_CACHE_HOME", &self.cache).arg(subcommand);
        command
    }

    /// Runs a program under control without a trace.
    pub(crate) fn run(&self, program: &Path) -> Result<Run> {
        measured(self.command("run").args(TIMEOUT).arg("--").arg(program))
    }

    /// Records a program.
    pub(crate) fn record(&self, program: &Path, trace: &Path) -> Result<Run> {
        let mut command = self.command("record");
        measured(command.arg("--output").arg(trace).args(TIMEOUT).arg("--").arg(program))
    }

    /// Collects a run of a program for `localize`: its processor time.
    pub(crate) fn collect(&self, program: &Path) -> Result<f64> {
        let mut command = self.command("localize");
        command.args(["--runs", "1", "--jobs", "1", "--policy", "random", "--quiet"]).args(TIMEOUT);
        command.arg("--output").arg(self.cache.join("collected")).arg("--").arg(program);
        let before = children_cpu_s()?;
        let output = command.output().context("cannot start raddle localize")?;
        // One run that passes is not enough for more.
        let stderr = String::from_utf8_lossy(&output.stderr);
        if !stderr.contains("none of 1 runs failed") {
            bail!("raddle localize {} says: {}", program.display(), stderr.trim());
        }
        Ok(children_cpu_s()? - before)
    }

    /// What a trace holds.
    pub(crate) fn stats(&self, trace: &Path) -> Result<Stats> {
        let output = output(self.command("trace").args(["stats", "--json"]).arg(trace))?;
        let stats: Value = serde_json::from_slice(&output.stdout)?;
        let number = |name: &str| {
            stats[name].as_u64().with_context(|| format!("raddle trace stats has no {name}"))
        };
        Ok(Stats { n_events: number("events")?, n_bytes: number("bytes")? })
    }

    /// The library that a run has unpacked.
    pub(crate) fn library(&self) -> Result<PathBuf> {
        let versions = std::fs::read_dir(self.cache.join("raddle"))
            .context("raddle has not unpacked its library where XDG_CACHE_HOME says")?;
        versions
            .filter_map(|version| Some(version.ok()?.path().join("libtsan.so.2")))
            .find(|library| library.is_file())
            .context("raddle has not unpacked libtsan.so.2")
    }
}

/// A machine with much else to do may need longer than raddle waits by itself.
const TIMEOUT: [&str; 2] = ["--timeout", "600"];

/// Runs a command, alone, and tells what it and all that it waited for have cost.
fn measured(command: &mut Command) -> Result<Run> {
    let before = children_cpu_s()?;
    let stdout = output(command)?.stdout;
    Ok(Run { cpu_s: children_cpu_s()? - before, stdout })
}

fn output(command: &mut Command) -> Result<Output> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed with {}: {}", output.status, stderr.trim());
    }
    Ok(output)
}

fn children_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
