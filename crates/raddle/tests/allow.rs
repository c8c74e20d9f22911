//! `--allow`: runs that go on where raddle would end them, and what is said about that.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use raddle_corpus::Place;

/// Both programs, compiled.
static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let place = Place::new();
    let flags = ["-g", "-O1", "-fno-builtin", "-w", "-fsanitize=thread", "-pthread"];
    place.compile("gcc", &flags, source("objects.c"), "objects");
    place.compile("gcc", &flags, source("stale_balance.c"), "stale_balance");
    place
});

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/allow").join(name)
}

/// Checks that an act ends a run, and that the run goes on with this word, which is counted so.
#[track_caller]
fn check(act: &str, without: &str, word: &str, allowed: &str) {
    for policy in ["rr", "random", "pct"] {
        let run = |options: &str| PLACE.raddle(&format!("run --policy {policy} {options} {act}"));
        run("-- ./objects").exits(1).says(&format!("raddle: {without}"));
        let expected = format!("raddle: allowed: {allowed}, first at ");
        run(&format!("--allow {word} -- ./objects")).exits(0).prints("").says(&expected);
    }
}

const FOREIGN: &str = "1 unlock by a thread that does not hold the lock";

#[test]
fn a_lock_that_another_thread_unlocks_is_free() {
    check("unlock_held", "misuse", "foreign-unlock", FOREIGN);
    check("unlock_free", "misuse", "foreign-unlock", FOREIGN);
    check("unlock_rwlock_held", "misuse", "foreign-unlock", FOREIGN);
    check("unlock_rwlock_free", "misuse", "foreign-unlock", FOREIGN);
    check("wait_without_lock", "misuse", "foreign-unlock", FOREIGN);
}

/// Whether it is a deadlock or a misuse depends on who goes first.
#[test]
fn a_thread_may_wait_for_its_own_lock_if_others_may_unlock_it() {
    check("unlock_awaited", "", "foreign-unlock", FOREIGN);
    check("unlock_awaited", "", "misuse", FOREIGN);
}

#[test]
fn a_mutex_is_destroyed_as_libc_does_it() {
    check("destroy_held", "misuse", "destroyed", "1 destroyed object in use");
    check("use_destroyed_mutex", "misuse", "destroyed", "3 destroyed objects in use");
}

#[test]
fn other_objects_are_new_after_their_destruction() {
    for act in [
        "use_destroyed_rwlock",
        "use_destroyed_spin",
        "use_destroyed_semaphore",
        "use_destroyed_cond",
        "use_destroyed_barrier",
    ] {
        check(act, "misuse", "destroyed", "1 destroyed object in use");
    }
}

#[test]
fn an_object_in_use_outlives_its_destruction() {
    for act in ["destroy_rwlock_held", "destroy_spin_held", "destroy_barrier_awaited"] {
        check(act, "misuse", "destroyed", "1 destroyed object in use");
    }
}

#[test]
fn the_memory_of_a_held_mutex_is_freed() {
    check("free_held", "misuse", "destroyed", "2 destroyed objects in use");
    check("use_freed_mutex", "misuse", "destroyed", "3 destroyed objects in use");
}

#[test]
fn locks_of_the_program_s_own_are_objects_too() {
    check("unlock_own_held", "misuse", "foreign-unlock", FOREIGN);
    check("unlock_own_free", "misuse", "foreign-unlock", FOREIGN);
    check("destroy_own_held", "misuse", "destroyed", "1 destroyed object in use");
    check("lock_own_held", "misuse", "misuse", "1 misuse of an object");
    check("relock_own", "misuse", "misuse", "1 misuse of an object");
}

#[test]
fn misuse_is_every_misuse() {
    check("destroy_held", "misuse", "misuse", "1 destroyed object in use");
    check("use_uninitialized", "misuse", "misuse", "1 misuse of an object");
    for word in ["destroyed", "foreign-unlock"] {
        PLACE
            .raddle(&format!("run --allow {word} -- ./objects use_uninitialized"))
            .exits(1)
            .says("misuse: main locks a mutex that was never initialized");
    }
    PLACE
        .raddle("run --allow misuse -- ./objects use_null")
        .exits(1)
        .says("misuse: main locks a mutex through a null pointer");
}

#[test]
fn a_thread_that_relocks_waits() {
    for act in ["relock", "relock_rwlock", "relock_spin"] {
        check(act, "deadlock", "self-deadlock", "1 relock of a held lock");
    }
    PLACE
        .raddle("run --allow self-deadlock -- ./objects relock_alone")
        .exits(1)
        .says("raddle: deadlock\n  main waits for mutex mutex (")
        .says("raddle: allowed: 1 relock of a held lock, first at ");
    PLACE
        .raddle("run --policy rr --allow self-deadlock -- ./objects unlock_awaited")
        .exits(1)
        .says("misuse: main/1 unlocks a mutex that another thread holds");
}

#[test]
fn a_block_is_freed_once() {
    check("free_again", "double free", "double-free", "2 double frees");
}

#[test]
fn freed_memory_keeps_what_it_held() {
    check("use_freed_large", "use after free", "use-after-free", "2 uses after free");
    let moved = PLACE.raddle("run --allow use-after-free -- ./objects use_moved_large");
    moved.exits(0).says("allowed: 1 use after free, first at objects.c:");
}

#[test]
fn a_function_may_be_named() {
    let run = |words: &str| PLACE.raddle(&format!("run --policy rr {words} ./stale_balance x"));
    run("--").exits(1).says("use after free in main at stale_balance.c:11 in limit");
    run("--allow use-after-free --")
        .exits(0)
        .says("raddle: allowed: 3 uses after free, first at stale_balance.c:11 in limit\n");
    let only = "run --policy rr --seed 0 --allow use-after-free@limit -- ./stale_balance x";
    run("--allow use-after-free@limit --")
        .exits(1)
        .says("raddle: use after free in main at stale_balance.c:15 in count_use\n")
        .says("raddle: allowed: 1 use after free, first at stale_balance.c:11 in limit\n")
        .says(&format!("show it again: raddle {only}\n"));
    run("--allow use-after-free@count_use --").exits(1).says("stale_balance.c:11 in limit");
    run("--allow use-after-free@limit,use-after-free@count_use --").exits(0);
    run("--allow use-after-free@limit --allow use-after-free@count_use --").exits(0);
    // What is inlined is not the function that it is inlined into.
    run("--allow use-after-free@main --").exits(1).says("stale_balance.c:11 in limit");
}

#[test]
fn other_judgements_are_allowed_in_functions_too() {
    let run = |word: &str, act: &str| PLACE.raddle(&format!("run --allow {word} ./objects {act}"));
    run("misuse@destroy_held", "destroy_held").exits(0).says("1 destroyed object in use");
    run("misuse@unlock_held", "destroy_held").exits(1).says("misuse: main destroys a mutex");
    run("self-deadlock@relock", "relock").exits(0).says("1 relock of a held lock");
    run("self-deadlock@main", "relock").exits(1).says("raddle: deadlock");
    run("double-free@free_again", "free_again").exits(0).says("2 double frees");
}

#[test]
fn other_words_and_names_are_refused() {
    let known = "expected use-after-free, double-free, foreign-unlock, destroyed, misuse, \
                 self-deadlock, handler-errno, handler-unsafe, or leak";
    for command in ["run", "record -o trace", "hunt", "localize", "isolate"] {
        PLACE
            .raddle(&format!("{command} --allow loss -- ./stale_balance"))
            .complains(2, &format!("invalid value 'loss' for '--allow <WHAT[@WHERE]>': {known}"));
        PLACE
            .raddle(&format!("{command} --allow misuse@nothing -- ./stale_balance"))
            .complains(2, "stale_balance has the name nothing; write it as raddle prints it");
    }
    PLACE
        .raddle("run --policy free --allow misuse -- ./stale_balance")
        .complains(2, "--allow does not work with --policy free; use another policy");
}

#[test]
fn names_that_end_alike_are_suggested() {
    let place = Place::new();
    place.file(
        "queue.cc",
        "struct Queue { int n; void push(); };\nvoid Queue::push() { n++; }\n\
                            int main() { Queue queue{}; queue.push(); return queue.n - 1; }\n",
    );
    place.compile("g++", &["-g", "-O0", "-fsanitize=thread"], "queue.cc", "queue");
    place
        .raddle("run --allow misuse@push -- ./queue")
        .complains(2, "has the name push; there is Queue::push");
    place.raddle("run --allow misuse@Queue::push -- ./queue").exits(0).says_nothing();
}

/// The known failure no longer hides the other one.
#[test]
fn a_hunt_finds_what_comes_after() {
    let place = &PLACE;
    let hunt = |options: &str| place.raddle(&format!("hunt --json {options} -- ./stale_balance"));
    let report = hunt("-o hidden").exits(1).json();
    assert_eq!(report["findings"][0]["failure"]["kind"], "memory", "{report}");
    let report = hunt("-o shown --allow use-after-free").exits(1).json();
    let finding = &report["findings"][0];
    assert_eq!(finding["kind"], "atomicity", "{report}");
    assert_eq!(finding["variable"], "balance", "{report}");
    let n = report["trials"]["total"].as_u64().expect("a number");
    let note = format!(
        "allowed: {n} uses after free in {n} of {n} runs, for example at stale_balance.c:11 in limit"
    );
    assert_eq!(report["notes"], serde_json::json!([note]), "{report}");
}

#[test]
fn a_clip_replays_with_its_words() {
    let place = &PLACE;
    let word = "use-after-free@limit";
    place.raddle(&format!("hunt -o kept --allow {word} -- ./stale_balance")).exits(1);
    let clip = std::fs::read_to_string(place.path("kept/stale_balance-1.clip")).expect("a clip");
    assert!(clip.contains(&format!("\"allow\": [\n      \"{word}\"\n    ]")), "{clip}");
    let note = "allowed: 1 use after free, first at stale_balance.c:11 in limit";
    let replay = |clip: &str| place.raddle(&format!("replay {clip}"));
    let replayed = replay("kept/stale_balance-1.clip").exits(0).says(&format!("raddle: {note}\n"));
    assert!(replayed.stderr.contains("reproduced, as kept/"), "{replayed:?}");
    let tally = place.raddle("replay --json kept/stale_balance-1.clip").exits(0).json();
    assert_eq!(tally["notes"], serde_json::json!([note]));
    // Without its words it ends at the first failure, and words can be added.
    place.file("bare.clip", clip.replace(&format!("\"{word}\""), ""));
    replay("bare.clip").exits(1).says("use after free in main");
    replay("--allow use-after-free bare.clip").exits(0).says(note);
    place
        .raddle("minimize -o less.clip --allow use-after-free bare.clip")
        .exits(0)
        .says("allowed: ");
    replay("less.clip").exits(0).says(note);
    let isolated = place.raddle("isolate --json less.clip").exits(1).json();
    assert_eq!(isolated["cause"]["kind"], "atomicity", "{isolated}");
    assert!(isolated["notes"].as_array().is_some_and(|notes| notes.contains(&note.into())));
}

#[test]
fn runs_with_allowed_judgements_are_compared() {
    let report = PLACE
        .raddle("localize --json -o compared --runs 40 --allow use-after-free -- ./stale_balance x")
        .exits(1)
        .json();
    assert_eq!(report["patterns"][0]["variable"], "balance", "{report}");
    assert_eq!(report["patterns"][0]["score"], 1.0, "{report}");
    let (n, note) = (&report["trials"]["total"], &report["notes"][0]);
    let n = n.as_u64().expect("a number");
    let expected = format!("allowed: {} uses after free in {n} of {n} runs, for example", 3 * n);
    assert!(note.as_str().is_some_and(|note| note.starts_with(&expected)), "{report}");
}

/// Passing runs are told apart by what they do to freed memory, too.
#[test]
fn accesses_to_freed_memory_are_compared() {
    let place = Place::new();
    place.file(
        "counter.c",
        "#include <pthread.h>
        #include <stdlib.h>
        static volatile int *counter;
        static void *count(void *unused) { (*counter)++; return unused; }
        int main(void) {
            counter = calloc(1, sizeof *counter);
            free((void *)counter);
            pthread_t threads[2];
            *counter = 0;
            for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, count, 0);
            for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
            return *counter != 2;
        }",
    );
    place.compile("gcc", &["-g", "-O1", "-w", "-fsanitize=thread"], "counter.c", "counter");
    let report = place
        .raddle("localize --json --allow use-after-free --runs 60 -- ./counter")
        .exits(1)
        .json();
    let blamed = &report["patterns"][0];
    assert_eq!(blamed["pattern"], "R1-W2-W1", "{report}");
    assert_eq!(blamed["score"], 1.0, "{report}");
    // Both kinds of runs write and read it in one order or another.
    let in_both = |pair: &serde_json::Value| pair["passed"].as_u64().is_some_and(|n| n > 0);
    let patterns = report["patterns"].as_array().expect("patterns");
    assert!(patterns.iter().any(in_both), "{report}");
}

#[test]
fn a_run_repeats_with_what_was_allowed() {
    PLACE
        .raddle("run --verify --allow use-after-free -- ./stale_balance x")
        .says("raddle: both runs did the same ")
        .says("raddle: allowed: 3 uses after free, first at ");
    PLACE
        .raddle("record -o trace --allow use-after-free --policy rr -- ./stale_balance x")
        .exits(0)
        .says("raddle: allowed: 3 uses after free, first at ");
}
