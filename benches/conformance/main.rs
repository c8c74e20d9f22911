//! Whether programs behave under raddle as they do natively: glibc's own thread tests.
//!
//! `.ci/long conformance` runs all of them and writes the tables to `docs/measurements`. While you
//! work on something, filter by name:
//! `cargo run --release -p raddle-bench --bin conformance -- tst-cond`.
//!
//! The tests are `tst-*.c` in `nptl` and `sysdeps/pthread` of glibc's source, which the package
//! manager fetches. A test is *usable* if it builds outside of glibc and passes natively. It runs
//! by itself, with ThreadSanitizer, and under raddle with three policies and three seeds each. A
//! run *agrees* if it exits with the same status, or dies of the same signal, as natively.
//! ThreadSanitizer does not report races here, since many of these tests have some.
//!
//! `differs.txt` lists the tests that do not agree, with the reason. A test that is missing there
//! fails the benchmark, and so does a listed one that agrees. Tests that rely on what raddle calls a
//! failure run again with `--allow`, as far as the list says so.
//!
//! **Limits.** Only the status is compared, not the output. A run that takes longer than
//! [`LIMIT`] counts as a hang, so a slow machine may have more of them. Once a seed of a policy differs,
//! we skip the other seeds.

mod compile;
mod trial;
mod differs;
mod table;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use raddle_bench_shared::source::Sources;
use raddle_bench_shared::{directory, parallel, run};

use crate::differs::Differs;
use crate::trial::{Bench, Outcome};

/// Tests that run at the same time.
const WORKERS: usize = 2;
/// How long a run may take under raddle, in addition to twice the time that it takes natively.
const LIMIT: Duration = Duration::from_secs(20);

const HELP: &str = "\
Runs glibc's thread tests under raddle and compares with native runs

Usage: conformance [NAME]...

Arguments:
  [NAME]...  Only tests whose name contains one of these

Options:
  -h, --help  Print help
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

/// Runs the tests whose names contain one of `filter`; whether the list of differences is right.
fn bench(filter: &[String]) -> Result<bool> {
    if let Some(option) = filter.iter().find(|word| word.starts_with('-')) {
        bail!("unexpected option {option}; see conformance --help");
    }
    let is_chosen = |name: &str| filter.is_empty() || filter.iter().any(|word| name.contains(word));
    let differs = Differs::parse(include_str!("differs.txt"))?;
    let start = Instant::now();
    run::fix_addresses();

    let directory = directory("conformance")?;
    let glibc = Sources::new(&directory).fetch("glibc")?;
    let compiler = compile::prepare(&directory, &glibc)?;
    let tests: Vec<_> =
        compiler.tests()?.into_iter().filter(|test| is_chosen(&test.name)).collect();
    if tests.is_empty() {
        bail!("no test of {} has {} in its name", glibc.display(), filter.join(" or "));
    }
    let bench = Bench::new(&directory)?;
    let outcomes = parallel::map(WORKERS, &tests, |n, test| -> Result<Outcome> {
        let allow = differs.words(&test.name);
        let outcome = bench.outcome(&compiler, test, allow).with_context(|| test.name.clone())?;
        eprintln!("{n} of {}: {}: {outcome}", tests.len(), test.name);
        Ok(outcome)
    });
    let mut results = Vec::new();
    for (test, outcome) in tests.iter().zip(outcomes) {
        results.push((test.name.as_str(), outcome?));
    }

    println!("{}\n", table::conditions(&glibc, &results, start.elapsed()));
    println!("{}", table::counts(&results));
    println!("{}", table::differences(&results, &differs));
    println!("{}", table::unusable(&results));
    let complaints = differs.complaints(&results, is_chosen);
    for complaint in &complaints {
        println!("- {complaint}");
        eprintln!("error: {complaint}");
    }
    Ok(complaints.is_empty())
}
