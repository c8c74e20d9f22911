//! A clip shows its failure every time, also on a machine that has other things to do.

mod common;

use std::fs;
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

#[test]
fn a_schedule_is_left_if_a_thread_waits_for_a_signal_that_another_has_to_send() {
    let directory = TempDir::new().expect("a directory");
    let program = "#include <pthread.h>
        #include <signal.h>
        #include <unistd.h>
        static void handle(int signal) { (void)signal; }
        static void *other(void *p) { kill(getpid(), SIGUSR2); return p; }
        int main(void) {
            sigset_t set, before;
            pthread_t thread;
            sigemptyset(&set);
            sigaddset(&set, SIGUSR2);
            pthread_sigmask(SIG_BLOCK, &set, &before);
            signal(SIGUSR2, handle);
            pthread_create(&thread, 0, other, 0);
            sigsuspend(&before);
            pthread_join(thread, 0);
            return 3;
        }";
    fs::write(directory.path().join("signal.c"), program).expect("a file");
    let output = raddle("run --clip clip signal.c", directory.path());
    let clip = fs::read(directory.path().join("clip")).unwrap_or_else(|_| panic!("{output:?}"));
    let mut clip: serde_json::Value = serde_json::from_slice(&clip).expect("a clip");
    // The main thread alone, as long as it goes.
    clip["schedule"] = serde_json::json!(["T0 all"]);
    fs::write(directory.path().join("clip"), clip.to_string()).expect("a file");
    let output = raddle("replay clip --timeout 20", directory.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("raddle: reproduced"), "{output:?}");
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
