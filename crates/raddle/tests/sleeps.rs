//! A program that sleeps for its synchronization does so in virtual time.

use std::time::{Duration, Instant};

use raddle_corpus::Place;
use raddle_trial::Order;

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
    let place = Place::new();
    place.file("sleeps.c", SOURCE);
    // Compiles it.
    place.raddle("run --policy rr sleeps.c").exits(0);
    for policy in Order::controlled() {
        let policy = policy.name();
        for seed in 0..5 {
            let start = Instant::now();
            let ran = place.raddle(&format!("run --policy {policy} --seed {seed} sleeps.c"));
            let taken = start.elapsed();
            ran.exits(0).prints("500500\n");
            assert!(taken < Duration::from_secs(1), "{policy} {seed} took {taken:?}");
        }
    }
}
