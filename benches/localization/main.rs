//! How well causes are localized, and how fast.
//!
//! `cargo run --release -p raddle-bench --bin localization` prints tables in Markdown.
//!
//! The first is after LOCON's study of how many runs are needed: each failing program of
//! `crates/raddle/tests/hunt` and `tests/localize` is run until there are a hundred passing and
//! thirty failing runs or the budget is used up; then some of them are compared, with the
//! confirmation by execution that a user gets by default. A pattern is right if all of its lines
//! are guilty, a pair likewise. A second table tells it by program, for those that are not right
//! everywhere. The same of `tests/unseen`, which raddle was not made with.
//!
//! The last is the time that it takes to compare a hundred runs of a hundred thousand access
//! pairs each with one that failed.

mod speed;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use raddle_corpus::guilty::{self, KNOWN, Program, UNSEEN};
use raddle_corpus::place;
use serde_json::Value;

/// Failing and passing runs that are compared.
const FAILED: [Option<u32>; 3] = [Some(1), Some(5), None];
const PASSED: [u32; 3] = [10, 30, 100];
/// Programs at the same time.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    match study(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Ranks of what is right, from 1; none if it was not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ranks {
    pattern: Option<usize>,
    pair: Option<usize>,
}

impl Ranks {
    fn is_pattern_right(self) -> bool {
        self.pattern.is_some_and(|rank| rank <= 2)
    }

    fn is_pair_right(self) -> bool {
        self.pair == Some(1)
    }
}

/// Ranks by how many failing, then passing runs are compared.
type Cells = [[Ranks; PASSED.len()]; FAILED.len()];

fn study(word: Option<&str>) -> Result<()> {
    let raddle = place::executable();
    let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
    for (what, directories) in [("programs", KNOWN), ("unseen programs", UNSEEN)] {
        let mut programs = guilty::programs(directories);
        programs.retain(|program| word.is_none_or(|word| program.source.name.contains(word)));
        print(what, &rows(&raddle, &programs, directory.path())?);
    }
    println!("{}", speed::measure());
    Ok(())
}

/// What is measured of each program, by name.
fn rows<'p>(
    raddle: &Path,
    programs: &'p [Program],
    directory: &Path,
) -> Result<Vec<(&'p str, Cells)>> {
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        eprintln!("{}", program.source.name);
                        let cells =
                            measure(raddle, program, &directory.join(&program.source.name))?;
                        rows.lock().expect("no panic").push((&program.source.name[..], cells));
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    let mut rows = rows.into_inner().expect("no panic");
    rows.sort_by_key(|(name, _)| *name);
    Ok(rows)
}

fn print(what: &str, rows: &[(&str, Cells)]) {
    println!(
        "Right patterns at rank 1 or 2, and right pairs at rank 1, of {} {what}:\n",
        rows.len()
    );
    println!("| failing runs | 10 passing | 30 passing | 100 passing |\n|---|--:|--:|--:|");
    for (row, failed) in FAILED.iter().enumerate() {
        let cells: Vec<_> = (0..PASSED.len())
            .map(|column| {
                let of = |is_right: fn(Ranks) -> bool| {
                    rows.iter().filter(|(_, cells)| is_right(cells[row][column])).count()
                };
                format!("{}, {}", of(Ranks::is_pattern_right), of(Ranks::is_pair_right))
            })
            .collect();
        let name = failed.map_or("all".to_owned(), |n| n.to_string());
        println!("| {name} | {} |", cells.join(" | "));
    }
    let wrong: Vec<_> = rows.iter().filter(|(_, cells)| !is_right(cells)).collect();
    if !wrong.is_empty() {
        print_wrong(&wrong);
    }
    println!();
}

fn is_right(cells: &Cells) -> bool {
    cells.iter().flatten().all(|ranks| ranks.is_pattern_right() && ranks.is_pair_right())
}

fn print_wrong(rows: &[&(&str, Cells)]) {
    println!("\nRanks of pattern and pair where they are not right, by failing/passing runs:\n");
    let names = FAILED.iter().flat_map(|failed| {
        let failed = failed.map_or("all".to_owned(), |n| n.to_string());
        PASSED.iter().map(move |passed| format!("{failed}/{passed}"))
    });
    println!("| program | {} |", names.collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "--:|".repeat(FAILED.len() * PASSED.len()));
    let rank = |rank: Option<usize>| rank.map_or("–".to_owned(), |rank| rank.to_string());
    for (name, cells) in rows {
        let all = cells.iter().flatten();
        let all = all.map(|ranks| match ranks.is_pattern_right() && ranks.is_pair_right() {
            true => String::new(),
            false => format!("{}, {}", rank(ranks.pattern), rank(ranks.pair)),
        });
        println!("| {name} | {} |", all.collect::<Vec<_>>().join(" | "));
    }
}

/// Ranks by how many failing and passing runs are compared; nothing is told if none failed.
fn measure(raddle: &Path, program: &Program, output: &Path) -> Result<Cells> {
    let mut collect = Command::new(raddle);
    collect.args(["localize", "--quiet", "--json", "--no-confirm", "--runs", "130"]);
    collect.args(["--failed", "30", "--time", "20", "--jobs", "1", "-o"]).arg(output);
    let collected = collect.arg(&program.source.path).args(&program.arguments).output()?;
    let mut cells = Cells::default();
    let answer: Option<Value> = serde_json::from_slice(&collected.stdout).ok();
    if answer.is_none_or(|answer| answer["groups"].as_array().is_none_or(Vec::is_empty)) {
        return Ok(cells);
    }
    for (row, failed) in FAILED.iter().enumerate() {
        for (column, passed) in PASSED.iter().enumerate() {
            let mut command = Command::new(raddle);
            command.args(["localize", "--json", "--count", "20", "--jobs", "1", "--from"]);
            command.arg(output.join("localize")).args(["--passed", &passed.to_string()]);
            command.args(failed.map(|n| format!("--failed={n}")));
            let told = command.arg(&program.source.path).args(&program.arguments).output()?;
            cells[row][column] = ranks(program, &serde_json::from_slice(&told.stdout)?);
        }
    }
    Ok(cells)
}

/// Of several ways to fail the most frequent one counts.
fn ranks(program: &Program, answer: &Value) -> Ranks {
    let group = &answer["groups"][0];
    Ranks {
        pattern: program.rank_of_pattern(&group["patterns"]),
        pair: program.rank_of_pair(&group["pairs"]),
    }
}
