//! Every program of `tests/hunt` and `tests/unseen`: what is wrong with it is found, is blamed on a guilty line, and
//! its clip shows it again; what is correct is not complained about.
//!
//! By default those that take longer than some seconds are left out; `RADDLE_HUNT=all` hunts in
//! all of them, `RADDLE_HUNT=deadlock` in those whose name holds that word.

mod common;

use std::process::Output;
use std::time::{Duration, Instant};

use common::{Source, json, raddle, said};
use serde_json::Value;
use tempfile::TempDir;

/// Hunts at the same time.
const WORKERS: usize = 2;
/// As long as a bug may take to be found and explained.
const SECONDS_MAX: u64 = 60;
/// What compiling takes beside that, on a machine that has other things to do.
const SECONDS_AROUND: u64 = 30;

/// Programs that took longer than 15 seconds on a busy machine: half of the time of all, which
/// was 203 seconds.
const SLOW: [&str; 7] = [
    "large_chat_server.cc",
    "large_kv_store.cc",
    "ok_large_web_server.c",
    "ok_rust_pipeline.rs",
    "ok_statistics.c",
    "ok_thread_pool.cc",
    "order_pbzip2_teardown.c",
];

/// FIXME: bugs of which the first finding names no guilty line.
const MAY_BE_BLAMED_WRONGLY: [&str; 2] = ["codec_registry.cc", "free_refcount.c"];

/// FIXME: bugs of which the first finding names guilty lines and others beside.
const MAY_BE_BLAMED_BESIDE: [&str; 5] = [
    "order_pbzip2_teardown.c",
    "path_eviction_callback.c",
    "shard_reload.cc",
    "steal_deque.c",
    "text_frame.c",
];

#[test]
fn what_is_wrong_is_found_and_nothing_else() {
    let check = |program: &Program| check(program).err().into_iter().collect();
    common::check_all(&programs(), WORKERS, |program| &program.source.name, check);
}

/// A program with what its first lines say.
struct Program {
    source: Source,
    fails: bool,
    guilty: Vec<u64>,
    arguments: Vec<String>,
}

fn programs() -> Vec<Program> {
    let wanted = std::env::var("RADDLE_HUNT").ok();
    let is_wanted = |source: &Source| match wanted.as_deref() {
        Some("all") => true,
        Some(word) => source.name.contains(word),
        None => !SLOW.contains(&&source.name[..]),
    };
    let sources = ["hunt", "unseen"].into_iter().flat_map(common::sources);
    sources.filter(is_wanted).map(program).collect()
}

fn program(source: Source) -> Program {
    // What was not written for this has no directives, and fails.
    let hunt = source.directive("Hunt");
    let fails = hunt.is_none_or(|word| word == "fails");
    Program {
        guilty: match hunt {
            Some("fails") => source.guilty(),
            Some(_) => Vec::new(),
            None => source.marked("guilty"),
        },
        arguments: source.words("Args"),
        fails,
        source,
    }
}

/// Hunts in a program, and replays what was found.
fn check(program: &Program) -> Result<(), String> {
    let directory = TempDir::new().expect("a directory");
    let start = Instant::now();
    let mut command = raddle(directory.path());
    command
        .args(["hunt", "--json", "-o", "found"])
        .arg(&program.source.path)
        .args(&program.arguments);
    let output = command.output().expect("raddle");
    let seconds = start.elapsed();
    let findings = findings(&output)?;
    let first = findings.first();
    let code = output.status.code();
    if !program.fails {
        return match (first, code) {
            (None, Some(0)) => Ok(()),
            (None, _) => Err(format!("exit code {code:?}: {}", said(&output))),
            (Some(finding), _) => Err(format!("complains: {finding}")),
        };
    }
    let Some(first) = first else {
        return Err(format!("nothing found: {}", said(&output)));
    };
    if code != Some(1) {
        return Err(format!("exit code {code:?} with a finding: {}", said(&output)));
    }
    if seconds > Duration::from_secs(SECONDS_MAX + SECONDS_AROUND) {
        return Err(format!("took {} s", seconds.as_secs()));
    }
    let lines: Vec<_> = first["accesses"].as_array().into_iter().flatten().collect();
    let lines: Vec<_> = lines.iter().filter_map(|access| access["line"].as_u64()).collect();
    let is_guilty = |line: &u64| program.guilty.contains(line);
    let name = &&program.source.name[..];
    let blamed = match MAY_BE_BLAMED_BESIDE.contains(name) {
        true => lines.iter().any(is_guilty),
        false => !lines.is_empty() && lines.iter().all(is_guilty),
    };
    if !blamed && !MAY_BE_BLAMED_WRONGLY.contains(name) {
        return Err(format!("blames lines {lines:?}, guilty are {:?}", program.guilty));
    }
    let clip = first["clip"].as_str().ok_or("the first finding has no clip")?;
    let mut replay = raddle(directory.path());
    let output = replay.args(["replay", "--times", "20", "--json", clip]).output().expect("raddle");
    let answer = json(&output).map_err(|why| format!("replay: {why}"))?;
    if answer["reproduced"] == 20 && output.status.code() == Some(0) {
        Ok(())
    } else {
        Err(format!("replay: {answer}: {}", said(&output)))
    }
}

/// The findings that fail.
fn findings(output: &Output) -> Result<Vec<Value>, String> {
    let answer = json(output)?;
    let findings = answer["findings"].as_array().ok_or("no findings in the answer")?;
    Ok(findings.iter().filter(|finding| finding["verdict"] == "failing").cloned().collect())
}
