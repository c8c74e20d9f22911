//! Whether real programs behave under raddle as they do natively, and what a hunt says about them.
//!
//! `.ci/long real` runs all of them and writes the table to `docs/measurements`. While you work on
//! something, name programs: `cargo run --release -p raddle-bench --bin real -- --seeds 2 redis`.
//!
//! Programs come from the package manager ([`packages`]). A program runs natively, in a build
//! without instrumentation, and under raddle with four policies and twenty seeds each. A run
//! has *the same answer* if its status and, where it prints one, its output are the native ones. It
//! *repeats* if `raddle run --verify` finds no difference. Then comes a hunt, which is to find
//! nothing: whoever sees a finding has to examine it, and a real bug of such a program belongs
//! into the docs.
//!
//! **Limits.** Threads are few and inputs small, so that a run takes less than two seconds. A hunt
//! has time for some hundred runs, far from all that is predicted.

mod subject;
mod packages;
mod input;
mod trial;
mod table;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use raddle_bench_shared::directory;

use crate::trial::{Bench, Effort};

const HELP: &str = "\
Runs real programs under raddle, compares with native runs, and hunts in them

Usage: real [OPTIONS] [NAME]...

Arguments:
  [NAME]...  Only programs whose name contains one of these

Options:
      --seeds <N>       Seeds per policy [default: 20]
      --time <SECONDS>  Time limit of each hunt; 0 for no hunt [default: 60]
  -h, --help            Print help
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "-h" || word == "--help") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match bench(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs what the arguments name; whether everything agrees and no hunt finds anything.
fn bench(words: &[String]) -> Result<bool> {
    let (effort, filter) = parse(words)?;
    let is_chosen = |name: &str| filter.is_empty() || filter.iter().any(|word| name.contains(word));
    let start = Instant::now();
    let directory = directory("real")?;
    let bench = Bench::new(&directory, effort)?;
    let subjects = packages::subjects(&directory, is_chosen)?;
    ensure!(!subjects.is_empty(), "no program has {} in its name", filter.join(" or "));

    let mut results = Vec::new();
    for (n, subject) in (1..).zip(&subjects) {
        eprintln!("{n} of {}: {}", subjects.len(), subject.name);
        let outcome = bench.outcome(subject).with_context(|| subject.name.clone())?;
        results.push((subject, outcome));
    }
    println!("{}\n", table::conditions(&results, effort, start.elapsed()));
    println!("{}", table::programs(&results));
    let differences = table::differences(&results);
    print!("{differences}");
    eprint!("{differences}");
    Ok(differences.is_empty())
}

/// The effort, and names.
fn parse(words: &[String]) -> Result<(Effort, Vec<&str>)> {
    let mut effort = Effort { n_seeds: 20, hunt_seconds: 60 };
    let mut names = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let value = words.next().with_context(|| format!("{word} needs a number"))?;
            value.parse().with_context(|| format!("{word} {value} is no number"))
        };
        match word.as_str() {
            "--seeds" => effort.n_seeds = number()?,
            "--time" => effort.hunt_seconds = number()?,
            option if option.starts_with('-') => {
                bail!("unexpected option {option}; see real --help")
            }
            name => names.push(name),
        }
    }
    Ok((effort, names))
}
