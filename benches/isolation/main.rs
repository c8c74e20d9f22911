//! What isolating a failure takes, next to one native run of the program.
//!
//! `cargo run --release -p raddle-bench --bin isolation` prints a table in Markdown; `raddle` has to
//! be built in the same profile before. Each program corrupts a pointer, executes a billion
//! instructions that touch it now and then, and fails on it. Allowed are twenty native runs for
//! each execution, and half a second; and thirty seconds in all.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use raddle_corpus::place;
use serde_json::Value;
use tempfile::TempDir;

/// Native runs that an execution may take.
const RUNS_MAX: f64 = 20.0;
/// Seconds that may be spent around executions.
const SECONDS_AROUND: f64 = 0.5;
/// Seconds in all, with a billion instructions behind the first suppression.
const SECONDS_MAX: f64 = 30.0;
/// Instructions that each program executes, about.
const N_INSTRUCTIONS: f64 = 1e9;

const PROGRAMS: [(&str, &str, bool); 3] = [
    ("one thread, not built for raddle", include_str!("plain.c"), false),
    ("two threads", include_str!("threads.c"), true),
    ("many suppressed words", include_str!("words.c"), false),
];

fn main() -> ExitCode {
    match bench() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn bench() -> Result<bool> {
    println!(
        "| program | native s | isolation s | executions | s per execution / native s | stepped | share of instructions |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let mut is_fast = true;
    for (name, source, is_controlled) in PROGRAMS {
        is_fast &= row(name, source, is_controlled)?;
    }
    Ok(is_fast)
}

fn row(name: &str, source: &str, is_controlled: bool) -> Result<bool> {
    let directory = TempDir::new()?;
    let path = directory.path();
    std::fs::write(path.join("program.c"), source)?;
    let mut compiler = Command::new("gcc");
    compiler.current_dir(path).args(["-g", "-O1", "-pthread", "-o", "program", "program.c"]);
    ensure!(compiler.status().context("gcc")?.success(), "{name} cannot be compiled");

    let start = Instant::now();
    quiet(Command::new("./program").current_dir(path)).status().context("the program")?;
    let native = start.elapsed().as_secs_f64();

    let mut isolate = raddle(path);
    isolate.args(["isolate", "--json"]);
    if is_controlled {
        let mut run = raddle(path);
        run.args(["run", "--policy", "rr", "--clip", "it.clip", "program.c"]);
        quiet(&mut run).status().context("raddle")?;
        isolate.arg("it.clip");
    } else {
        isolate.args(["--", "./program"]);
    }
    let start = Instant::now();
    let output = isolate.stdin(Stdio::null()).stderr(Stdio::null()).output().context("raddle")?;
    let seconds = start.elapsed().as_secs_f64();
    let answer: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    ensure!(output.status.code() == Some(1), "{name} was not isolated: {answer}");

    let counts = answer["executions"].as_object().context("no executions")?;
    let n: u64 = counts.values().filter_map(Value::as_u64).sum();
    let stepped = answer["instructions"]["stepped"].as_u64().unwrap_or(0);
    let per_execution = (seconds - SECONDS_AROUND).max(0.0) / n as f64 / native;
    let share = stepped as f64 / (N_INSTRUCTIONS * n as f64);
    println!(
        "| {name} | {native:.2} | {seconds:.2} | {n} | {per_execution:.1} | {stepped} | {share:.1e} |"
    );
    Ok(per_execution <= RUNS_MAX && seconds <= SECONDS_MAX)
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// The `raddle` beside this program.
fn raddle(directory: &Path) -> Command {
    let mut command = Command::new(place::executable());
    command.current_dir(directory);
    command
}
