//! A program that sleeps for its synchronization does so in virtual time.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const SOURCE: &str = r#"
    #include <pthread.h>
    #include <stdio.h>
    #include <time.h>
    #include <unistd.h>
    static long sum;
    static void *work(void *p) {
        for (int i = 1; i <= 1000; i++)
            sum += i;
        return p;
    }
    int main(void) {
        struct timespec before, after;
        pthread_t thread;
        clock_gettime(CLOCK_MONOTONIC, &before);
        pthread_create(&thread, 0, work, 0);
        usleep(2000000);
        printf("%ld\n", sum);
        clock_gettime(CLOCK_MONOTONIC, &after);
        pthread_join(thread, 0);
        return after.tv_sec - before.tv_sec < 2;
    }"#;

#[test]
fn a_sleep_of_two_seconds_orders_threads_and_costs_no_time() {
    let directory = TempDir::new().expect("a directory");
    fs::write(directory.path().join("sleeps.c"), SOURCE).expect("a file");
    let raddle = |policy: &str, seed: u32| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
        command.args(["run", "--policy", policy, "--seed", &seed.to_string(), "sleeps.c"]);
        command.current_dir(directory.path()).output().expect("raddle")
    };
    // Compiles it.
    raddle("rr", 0);
    for policy in ["random", "pct", "pos", "rr"] {
        for seed in 0..5 {
            let start = Instant::now();
            let output = raddle(policy, seed);
            let taken = start.elapsed();
            assert!(output.status.success(), "{policy} {seed}: {output:?}");
            assert_eq!(output.stdout, b"500500\n", "{policy} {seed}: {output:?}");
            assert!(taken < Duration::from_secs(1), "{policy} {seed} took {taken:?}");
        }
    }
}
