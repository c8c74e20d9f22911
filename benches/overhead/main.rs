//! What raddle costs, next to native runs and to ThreadSanitizer.
//!
//! `cargo run --release -p raddle-bench` prints tables in Markdown; progress goes to
//! standard error. The programs are in `benches/programs`.
//!
//! Times are processor seconds, user and system, of the target and of raddle together, each
//! the median of all rounds. A round runs everything once, so that a machine that gets
//! slower in between slows down all columns alike. Address randomization is off for all,
//! since gcc's ThreadSanitizer does not start with as much of it as newer kernels give.
//! A run that fails or prints something else than the native one is an error.
//!
//! **Limits.** Processor time says nothing about waiting: natively and under
//! ThreadSanitizer the four threads use all processors at once, under raddle's control one.

mod args;
mod path;
mod programs;
mod run;
mod table;
mod trials;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::programs::{Builds, Program};
use crate::run::Raddle;
use crate::table::{Figures, Times};

fn main() -> ExitCode {
    match args::parse(std::env::args().skip(1)).and_then(|args| bench(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn bench(args: &Args) -> Result<()> {
    if args.help {
        print!("{}", args::HELP);
        return Ok(());
    }
    let raddle = raddle(args.raddle.as_deref())?;
    run::fix_addresses();
    let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
    let raddle = Raddle::new(&raddle, directory.path());

    let mut rows = Vec::new();
    for program in programs::named(args.program.as_deref())? {
        eprintln!("compiling {}", program.name);
        let builds = programs::compile(program, directory.path())?;
        rows.push((program, builds, Times::default()));
    }
    for round in 1..=args.n_rounds {
        for (program, builds, times) in &mut rows {
            eprintln!("round {round} of {}: {}", args.n_rounds, program.name);
            measure(&raddle, program, builds, times)?;
        }
    }
    let mut figures = Vec::new();
    for (program, builds, times) in rows {
        let recorded = raddle.stats(&builds.trace)?;
        figures.push(Figures { program: program.name, times, recorded });
    }
    eprintln!("{} runs of a small program", args.n_trials);
    let small = programs::compile_small(directory.path())?;
    let trials_per_s = trials::per_second(&raddle, &small, args.n_trials)?;
    let n_instructions = path::n_instructions(&raddle.library()?)?;

    println!("{}\n", table::conditions(args.n_rounds));
    println!("{}", table::times(&figures));
    println!("{}", table::traces(&figures));
    println!("{}", table::others(trials_per_s, n_instructions));
    Ok(())
}

/// Runs everything once.
fn measure(raddle: &Raddle, program: &Program, builds: &Builds, times: &mut Times) -> Result<()> {
    let native = run::plain(&builds.native)?;
    let gcc = run::plain(&builds.instrumented)?;
    let clang = builds.clang.as_deref().map(run::plain).transpose()?;
    let controlled = raddle.run(&builds.instrumented)?;
    let recording = raddle.record(&builds.instrumented, &builds.trace)?;
    let collecting_cpu_s = raddle.collect(&builds.instrumented)?;
    let others = [Some(&gcc), clang.as_ref(), Some(&controlled), Some(&recording)];
    if others.into_iter().flatten().any(|run| run.stdout != native.stdout) {
        bail!("{} does not print the same in every run", program.name);
    }
    times.native.push(native.cpu_s);
    times.gcc.push(gcc.cpu_s);
    times.clang.extend(clang.map(|run| run.cpu_s));
    times.controlled.push(controlled.cpu_s);
    times.recording.push(recording.cpu_s);
    times.collecting.push(collecting_cpu_s);
    Ok(())
}

/// The raddle to measure: the one that was named, or the one that was built with this.
fn raddle(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe().context("cannot find myself")?.with_file_name("raddle"),
    };
    if !path.is_file() {
        bail!(
            "there is no raddle at {}; build it with `cargo build --release -p raddle`, or name one with --raddle PATH",
            path.display()
        );
    }
    // Names without a slash would be looked for elsewhere.
    path.canonicalize().with_context(|| format!("cannot resolve {}", path.display()))
}
