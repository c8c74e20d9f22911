//! Programs that a signal kills, most often deep inside a library: in every order of threads each
//! has died at the one line of its own that is marked.
//!
//! A program says in its first lines with which words (`Says`), and with which flags it is to be
//! compiled (`Flags`).

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

use raddle_corpus::place::FOUND;
use raddle_corpus::{Place, Ran, Source, runner, sources};

const POLICIES: [&str; 3] = ["random", "pos", "pct"];
/// Seeds per policy.
const SEEDS: u64 = 20;

/// Other functions for strings than this processor would get.
const TUNABLES: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-EVEX");

fn main() -> ExitCode {
    let programs = || sources("deaths");
    let mut tests: Vec<_> = runner::tests_of("order", programs(), in_every_order).collect();
    tests.extend(runner::tests_of("processor", programs(), on_another_processor));
    tests.extend(runner::tests_of("words", programs(), last_words));
    tests.push(runner::test("hunt::vector_at.cc", hunted));
    runner::run(usize::MAX, tests)
}

fn in_every_order(program: Source) -> Result<(), String> {
    places(&program, SEEDS, &[])
}

fn on_another_processor(program: Source) -> Result<(), String> {
    places(&program, 2, &[TUNABLES])
}

/// A death has one place, whatever the order of threads.
fn places(program: &Source, n_seeds: u64, environment: &[(&str, &str)]) -> Result<(), String> {
    let place = Place::new();
    let mut places = BTreeSet::new();
    for policy in POLICIES {
        for seed in 0..n_seeds {
            let line = format!("run --policy {policy} --seed {seed} --");
            let mut command = with_flags(program, &place, &line);
            command.env("RUST_BACKTRACE", "0").envs(environment.to_vec()).arg(&program.path);
            places.insert(died_at(&Ran::from(&mut command)));
        }
    }
    let expected = BTreeSet::from([died(program)]);
    if places == expected { Ok(()) } else { Err(format!("died at {places:?}")) }
}

/// A death is reported with what the program said last, and its clip repeats it.
fn last_words(program: Source) -> Result<(), String> {
    let place = Place::new();
    let mut command = with_flags(&program, &place, "run --seed 1 --clip kept.clip --");
    command.env("RUST_BACKTRACE", "0").arg(&program.path);
    let words = program.directive("Says").ok_or("it does not say its last words")?;
    let said = ending(&Ran::from(&mut command));
    if !said.contains(words) {
        return Err(said);
    }
    let again = Ran::from(&mut with_flags(&program, &place, "replay kept.clip"));
    match again.code {
        Some(0) => Ok(()),
        code => Err(format!("replay exits with {code:?}: {}", again.stderr)),
    }
}

/// A hunt reports the exception and where it was thrown.
fn hunted() -> Result<(), String> {
    let place = Place::new();
    let program = Source::read(&raddle_corpus::path("deaths/vector_at.cc"));
    let ran = place.raddle_on("hunt --json --runs 60 --", &program.path, &[]).exits(FOUND);
    let found = ran.answer()?;
    let findings = found["findings"].as_array().ok_or("no findings")?;
    let failures: Vec<_> = findings.iter().filter(|one| one["verdict"] == "failing").collect();
    let [one] = &failures[..] else { return Err(format!("{} failures: {found}", failures.len())) };
    let failure = &one["failure"];
    let detail = failure["detail"].as_str().unwrap_or_default();
    let is_right = failure["kind"] == "signal"
        && detail.starts_with("uncaught std::out_of_range: vector::_M_range_check")
        && failure["line"].as_u64() == program.marked("died").first().copied();
    if is_right { Ok(()) } else { Err(failure.to_string()) }
}

/// Raddle in a place, which compiles with the program's flags.
fn with_flags(program: &Source, place: &Place, line: &str) -> Command {
    let mut command = place.command(line);
    let flags = program.directive("Flags").unwrap_or_default();
    for variable in ["CFLAGS", "CXXFLAGS", "RUSTFLAGS"] {
        command.env(variable, flags);
    }
    command
}

/// Where the marked line is.
fn died(program: &Source) -> String {
    let lines = program.marked("died");
    assert_eq!(lines.len(), 1, "{}", program.name);
    format!("{}:{}", program.name, lines[0])
}

/// What raddle says about the end.
fn ending(ran: &Ran) -> String {
    let line = ran.stderr.lines().find_map(|line| line.strip_prefix("raddle: "));
    line.unwrap_or(&ran.stderr).to_owned()
}

/// Where the program died, as raddle says.
fn died_at(ran: &Ran) -> String {
    let said = ending(ran);
    let at = said.split_once(" at ").and_then(|(_, after)| after.split([' ', ',', ':']).next());
    let name = at.map(|at| at.rsplit('/').next().unwrap_or(at).to_owned());
    let line = said.split_once(" at ").and_then(|(_, after)| after.split([':', ' ', ',']).nth(1));
    match (name, line) {
        (Some(name), Some(line)) => format!("{name}:{line}"),
        _ => said,
    }
}
