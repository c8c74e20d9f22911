//! A clip shows its failure every time, also on a machine that has other things to do.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use raddle_corpus::Place;

const BANK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/bank.c");

#[test]
fn a_thousand_replays_on_a_busy_machine_fail_a_thousand_times() {
    let place = Place::new();
    let fails = |seed: &u32| {
        let line = format!("run --seed {seed} --clip lost.clip");
        place.raddle_on(&line, Path::new(BANK), &[]).code == Some(128 + 6)
    };
    (0..200).find(fails).expect("one of many seeds");
    let ran = while_busy(|| place.raddle("replay lost.clip --times 1000"));
    ran.exits(0).says("1000 of 1000 reproduced");
}

#[test]
fn a_schedule_is_left_if_a_thread_waits_for_a_signal_that_another_has_to_send() {
    let place = Place::new();
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
    place.file("signal.c", program);
    place.raddle("run --clip clip signal.c").exits(3);
    let clip = fs::read(place.path("clip")).expect("a clip");
    let mut clip: serde_json::Value = serde_json::from_slice(&clip).expect("a clip");
    // The main thread alone, as long as it goes.
    clip["schedule"] = serde_json::json!(["T0 all"]);
    place.file("clip", clip.to_string());
    place.raddle("replay clip --timeout 20").exits(0).says("raddle: reproduced");
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
