//! One test per program, with cargo test's own arguments: a filter, `--exact`, `--skip`,
//! `--include-ignored`, `--list`, `--test-threads`.
//!
//! For tests with `harness = false`. After each test its time is printed on standard error.

use std::process::ExitCode;
use std::time::Instant;

use libtest_mimic::{Arguments, Trial};

use crate::Source;

/// A test that passes unless its check returns an error or panics.
pub fn test(
    name: impl Into<String>,
    check: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Trial {
    let name = name.into();
    Trial::test(name.clone(), move || {
        let start = Instant::now();
        let checked = check();
        eprintln!("{:5.1} s  {name}", start.elapsed().as_secs_f64());
        checked.map_err(Into::into)
    })
}

/// A test per program, named `group::program.c`.
pub fn tests_of(
    group: &str,
    sources: Vec<Source>,
    check: impl Fn(Source) -> Result<(), String> + Copy + Send + 'static,
) -> impl Iterator<Item = Trial> {
    sources
        .into_iter()
        .map(move |source| test(format!("{group}::{}", source.name), move || check(source)))
}

/// Tests that are functions, by their names.
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        [$($crate::runner::test(stringify!($name), || { $name(); Ok(()) })),*]
    };
}

/// Runs the tests that the command line selects, as many at a time as there are processors,
/// but at most `n_threads_max`.
#[must_use]
pub fn run(n_threads_max: usize, tests: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    if arguments.test_threads.is_none() {
        let n_processors = std::thread::available_parallelism().map_or(1, Into::into);
        arguments.test_threads = Some(n_processors.min(n_threads_max));
    }
    libtest_mimic::run(&arguments, tests).exit_code()
}
