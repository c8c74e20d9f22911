//! How well causes are localized, and how fast.
//!
//! `cargo run --release -p raddle-bench --bin localization` prints two tables in Markdown.
//!
//! The first is after LOCON's study of how many runs are needed: each failing program of
//! `crates/raddle/tests/hunt` and `tests/localize` (but for deadlocks, which are no matter of
//! memory) is run until there are a hundred passing and thirty failing runs or the budget is
//! used up; then some of them are compared, without the confirmation by execution that a user
//! gets by default. A pattern is right if all of its lines are guilty, a pair likewise.
//!
//! The second is the time that it takes to compare a hundred runs of a hundred thousand access
//! pairs each with one that failed.

mod corpus;
mod speed;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::corpus::Program;

/// Failing and passing runs that are compared.
const FAILED: [Option<u32>; 3] = [Some(1), Some(5), None];
const PASSED: [u32; 3] = [10, 30, 100];

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ranks {
    pattern: Option<usize>,
    pair: Option<usize>,
}

fn study(word: Option<&str>) -> Result<()> {
    let raddle = std::env::current_exe()?.with_file_name("raddle");
    if !raddle.exists() {
        bail!(
            "there is no raddle beside this executable; cargo build --release -p raddle makes it"
        );
    }
    let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut rows = Vec::new();
    for program in corpus::programs(word)? {
        eprintln!("{}", program.name);
        if let Some(ranks) = measure(&raddle, &program, &directory.path().join(&program.name))? {
            rows.push((program.name, ranks));
        }
    }
    println!(
        "Right patterns at rank 1 or 2, and right pairs at rank 1, of {} programs:\n",
        rows.len()
    );
    println!("| failing runs | 10 passing | 30 passing | 100 passing |\n|---|--:|--:|--:|");
    for (row, failed) in FAILED.iter().enumerate() {
        let cells: Vec<_> = (0..PASSED.len())
            .map(|column| {
                let of = |count: fn(&Ranks) -> bool| {
                    rows.iter().filter(|(_, ranks)| count(&ranks[row][column])).count()
                };
                let pattern = of(|ranks| ranks.pattern.is_some_and(|rank| rank <= 2));
                let pair = of(|ranks| ranks.pair == Some(1));
                format!("{pattern}, {pair}")
            })
            .collect();
        let name = failed.map_or("all".to_owned(), |n| n.to_string());
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!("\nRanks of pattern and pair with all failing and 100 passing runs:\n");
    println!("| program | pattern | pair |\n|---|--:|--:|");
    let rank = |rank: Option<usize>| rank.map_or("–".to_owned(), |rank| rank.to_string());
    for (name, ranks) in &rows {
        let last = ranks[FAILED.len() - 1][PASSED.len() - 1];
        println!("| {name} | {} | {} |", rank(last.pattern), rank(last.pair));
    }
    println!("\n{}", speed::measure());
    Ok(())
}

/// Ranks by how many failing and passing runs are compared; none if none failed.
fn measure(raddle: &Path, program: &Program, output: &Path) -> Result<Option<Vec<Vec<Ranks>>>> {
    let mut collect = Command::new(raddle);
    collect.args(["localize", "--quiet", "--json", "--no-confirm", "--runs", "130"]);
    collect.args(["--failed", "30", "--time", "20", "-o"]).arg(output);
    let collected = collect.arg(&program.path).args(&program.arguments).output()?;
    let answer: Option<Value> = serde_json::from_slice(&collected.stdout).ok();
    if answer.is_none_or(|answer| answer["groups"].as_array().is_none_or(Vec::is_empty)) {
        return Ok(None);
    }
    let ranks = |failed: Option<u32>, passed: u32| -> Result<Ranks> {
        let mut command = Command::new(raddle);
        command
            .args(["localize", "--json", "--count", "20", "--from"])
            .arg(output.join("localize"));
        command.args(["--passed", &passed.to_string()]);
        command.args(failed.map(|n| format!("--failed={n}")));
        let answer: Value = serde_json::from_slice(&command.output()?.stdout)?;
        // Some failures are another bug's: the group with the right one counts.
        let groups = answer["groups"].as_array().context("no groups")?;
        let best = |of: &dyn Fn(&Value) -> Option<usize>| groups.iter().filter_map(of).min();
        Ok(Ranks {
            pattern: best(&|group| program.rank_of_pattern(&group["patterns"])),
            pair: best(&|group| program.rank_of_pair(&group["pairs"])),
        })
    };
    FAILED
        .iter()
        .map(|&failed| PASSED.iter().map(|&passed| ranks(failed, passed)).collect())
        .collect::<Result<_>>()
        .map(Some)
}
