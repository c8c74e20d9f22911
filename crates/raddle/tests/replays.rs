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

/// A program that closes a pipe, which was no step in version 1, before it starts a thread.
const CLOSING: &str = "#include <assert.h>
    #include <pthread.h>
    #include <unistd.h>
    static int written;
    static void *other(void *p) { written = 1; return p; }
    int main(void) {
        int ends[2];
        pthread_t thread;
        if (pipe(ends)) return 2;
        close(ends[0]);
        close(ends[1]);
        pthread_create(&thread, 0, other, 0);
        pthread_join(thread, 0);
        assert(!written);
        return 0;
    }";

/// A clip of [`CLOSING`], as a raddle with step version 1 made it: it names no version, and the
/// two calls of `close` are not counted.
fn older_clip(place: &Place) -> serde_json::Value {
    place.file("closing.c", CLOSING);
    place.raddle("run --policy rr --clip clip closing.c").exits(128 + 6);
    let clip = fs::read(place.path("clip")).expect("a clip");
    let mut clip: serde_json::Value = serde_json::from_slice(&clip).expect("a clip");
    let version = clip.as_object_mut().expect("an object").remove("step_version");
    assert_eq!(version, Some(2.into()));
    let first = clip["schedule"][0].as_str().expect("a step").to_owned();
    let (until, site) = first.rsplit_once(' ').expect("a site");
    let count: u64 = until.strip_prefix("T0 ").and_then(|n| n.parse().ok()).expect("a count");
    clip["schedule"][0] = format!("T0 {} {site}", count - 2).into();
    clip
}

#[test]
fn a_clip_that_counts_other_steps_is_followed_by_its_sites() {
    let place = Place::new();
    let clip = older_clip(&place);
    place.file("older.clip", clip.to_string());
    let replayed = place.raddle("replay older.clip --times 20");
    replayed.exits(0).says("20 of 20 reproduced").says("step version 1");
    place.raddle("isolate older.clip").complains(2, "raddle minimize older.clip");
    place.raddle("minimize older.clip -o new.clip").exits(0).says("followed by its sites");
    let renewed = fs::read_to_string(place.path("new.clip")).expect("a clip");
    assert!(renewed.contains("\"step_version\": 2"), "{renewed}");
    place.raddle("replay new.clip").exits(0).says("raddle: reproduced");
}

#[test]
fn a_clip_that_counts_other_steps_and_leads_elsewhere_is_refused() {
    let place = Place::new();
    let clip = older_clip(&place);
    // With the steps of this version, it departs.
    let mut current = clip.clone();
    current["step_version"] = 2.into();
    place.file("current.clip", current.to_string());
    place.raddle("replay current.clip").exits(125).says("departed from its schedule");
    // Never there.
    let mut lost = clip.clone();
    lost["schedule"][0] = "T0 1 0x8f3a00000000124c".into();
    place.file("lost.clip", lost.to_string());
    place.raddle("replay lost.clip").exits(125).says("record it anew");
    place.raddle("minimize lost.clip").complains(2, "record it anew");
    // There, and on to another outcome.
    let mut other = clip;
    other["expect"]["detail"] = "written".into();
    place.file("other.clip", other.to_string());
    place.raddle("replay other.clip").exits(125).says("not judged; record it anew");
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
