//! A clip shows its failure every time, also on a machine that has other things to do.

mod common;

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

const BANK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/bank.c");

#[test]
fn a_thousand_replays_on_a_busy_machine_fail_a_thousand_times() {
    let directory = TempDir::new().expect("a directory");
    let fails = |seed: &u32| {
        let line = format!("run --seed {seed} --clip lost.clip {BANK}");
        raddle(&line, directory.path()).status.code() == Some(128 + 6)
    };
    (0..200).find(fails).expect("one of many seeds");
    let output = while_busy(|| raddle("replay lost.clip --times 1000", directory.path()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("1000 of 1000 reproduced"), "{output:?}");
}

/// What `body` gives while every processor has another thread to run.
fn while_busy<R>(body: impl FnOnce() -> R) -> R {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in raddle_trial::processors() {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = body();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn raddle(line: &str, directory: &Path) -> Output {
    common::raddle(directory).args(line.split_whitespace()).output().expect("raddle")
}
