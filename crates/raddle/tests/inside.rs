//! Threads that all wait for descriptors: a deadlock if nobody outside can act on them, and not
//! judged if somebody might.

use std::io::pipe;
use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use raddle_corpus::Place;

/// The program, compiled.
static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let place = Place::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inside/waits.c");
    let flags = ["-g", "-O1", "-Wall", "-Wextra", "-fsanitize=thread", "-pthread"];
    place.compile("gcc", &flags, source, "waits");
    place
});

/// Well below the time limit.
const AT_ONCE: Duration = Duration::from_secs(20);

#[track_caller]
fn is_deadlock(what: &str) {
    for policy in ["rr", "random", "pct", "pos"] {
        let start = Instant::now();
        let line = format!("run --policy {policy} --timeout 60 --clip {what}.clip -- ./waits");
        PLACE.raddle(&format!("{line} {what}")).exits(1).says("raddle: deadlock");
        PLACE.raddle(&format!("replay {what}.clip")).exits(0).says("reproduced");
        assert!(start.elapsed() < AT_ONCE, "{what}: {:?}", start.elapsed());
    }
}

#[track_caller]
fn is_not_judged(what: &str) {
    for policy in ["rr", "random"] {
        let line = format!("run --policy {policy} --timeout 0.3 -- ./waits {what}");
        PLACE.raddle(&line).exits(125).says("not judged: the program did not end within");
    }
}

#[test]
fn nobody_outside_acts_on_what_the_program_created() {
    for what in ["pipe", "polled", "full", "pair", "event"] {
        is_deadlock(what);
    }
}

#[test]
fn others_may_open_or_connect_to_what_has_a_name() {
    for what in ["fifo", "listener", "datagrams"] {
        is_not_judged(what);
    }
}

#[test]
fn child_processes_may_hold_the_other_end() {
    is_not_judged("child");
    is_not_judged("background");
}

#[test]
fn a_descriptor_that_was_passed_on_is_out_of_sight() {
    is_not_judged("passed");
}

#[test]
fn a_signal_from_outside_may_come_if_it_is_handled() {
    is_not_judged("handler");
}

#[test]
fn members_of_epoll_sets_are_not_examined() {
    is_not_judged("epoll");
}

/// Standard input is a pipe whose other end this test holds.
#[test]
fn whoever_started_the_program_may_write_to_its_input() {
    for what in ["stdin", "mixed"] {
        let (input, _kept) = pipe().expect("a pipe");
        let ran = PLACE
            .command(&format!("run --timeout 0.3 -- ./waits {what}"))
            .stdin(Stdio::from(input))
            .output()
            .expect("raddle starts");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(125), "{what}: {said}");
        assert!(said.contains("not judged"), "{what}: {said}");
    }
}
