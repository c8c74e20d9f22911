//! Hunts that cannot come to much: a sentence that says why, the right exit code, and no wait.

mod place;

use std::process::Output;

use place::{CLEAN, FOUND, MISUSE, Place, UNJUDGED, check, check_sentence};

/// A hunt in a program.
fn hunt(place: &Place, options: &str) -> Output {
    place.raddle(&format!("hunt {options} program.c"))
}

/// A directory with a program in it.
fn holding(program: &str) -> Place {
    let place = Place::new();
    place.file("program.c", program);
    place
}

/// Two threads that write the same, with `body` behind.
fn two_threads(body: &str) -> String {
    format!(
        "#include <assert.h>
        #include <pthread.h>
        #include <stdio.h>
        volatile int shared;
        static void *other(void *p) {{ shared = 1; return p; }}
        int main(void) {{
            pthread_t thread;
            pthread_create(&thread, 0, other, 0);
            shared = 1;
            pthread_join(thread, 0);
            {body}
            return 0;
        }}"
    )
}

#[test]
fn a_program_that_always_fails() {
    let place = holding(&two_threads("assert(shared == 2);"));
    let words = "failed under every order that was tried";
    check(&hunt(&place, ""), FOUND, words);
}

#[test]
fn a_program_that_never_ends() {
    let place = holding(&two_threads("for (volatile int i = 0;; i++) { }"));
    let output = hunt(&place, "--timeout 1 --time 20");
    check(&output, UNJUDGED, "did not end within 1 seconds");
}

/// A program that tells by `is_late` which of two threads came first, with something before and
/// behind; and what it does to be alone with a file for a while.
fn with_order(before: &str, behind: &str) -> String {
    format!(
        "#include <fcntl.h>
        #include <pthread.h>
        #include <unistd.h>
        static int is_first, is_late;
        static void *other(void *p) {{ is_late = is_first; return p; }}
        int main(void) {{
            pthread_t thread;
            {before}
            pthread_create(&thread, 0, other, 0);
            is_first = 1;
            pthread_join(thread, 0);
            {behind}
        }}"
    )
}

const TAKE: &str = "if (open(\"taken\", O_CREAT | O_EXCL, 0600) < 0) return 9;
            for (volatile long i = 0; i < 20000000; i++) { }";
const GIVE_BACK: &str = "unlink(\"taken\");";

#[test]
fn programs_that_get_in_each_other_s_way_run_one_by_one() {
    let place = holding(&with_order(TAKE, &format!("{GIVE_BACK} return is_late ? 3 : 0;")));
    for command in ["hunt --runs 20", "localize --runs 24"] {
        let output = place.raddle(&format!("{command} --jobs 2 --json program.c"));
        check(&output, FOUND, "one at a time, as by --jobs 1");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("exit 3") && !text.contains("exit 9"), "{text}");
    }
}

#[test]
fn failures_that_come_only_while_others_run_are_none() {
    // At first the other thread is late, and the file is not needed.
    let behind = format!("if (is_late) return 0; {TAKE} {GIVE_BACK} return 0;");
    let place = holding(&with_order("", &behind));
    let output = place.raddle("hunt --jobs 2 --runs 200 -o found program.c");
    check(&output, UNJUDGED, "did not come again when nothing else ran");
    let clips = std::fs::read_dir(place.path("found")).expect("a directory").count();
    assert_eq!(clips, 0);
}

#[test]
fn a_program_of_one_thread() {
    let place = holding("int main(void) { return 0; }");
    check_sentence(&hunt(&place, ""), CLEAN, "only one thread ran");
    let place = holding("int main(void) { return 3; }");
    check(&hunt(&place, ""), FOUND, "only one thread ran");
}

#[test]
fn a_program_that_shares_nothing() {
    let program = "
        #include <pthread.h>
        static void *other(void *p) { return p; }
        int main(void) {
            pthread_t thread;
            pthread_create(&thread, 0, other, 0);
            pthread_join(thread, 0);
            return 0;
        }";
    check_sentence(&hunt(&holding(program), ""), CLEAN, "share no memory that is written");
}

#[test]
fn a_program_that_does_something_else_each_time() {
    // How often it was started, in a file, decides how often it writes.
    let body = r#"
        FILE *file = fopen("starts", "a+");
        fputc('x', file);
        fflush(file);
        long n = ftell(file);
        fclose(file);
        for (long i = 0; i < n; i++) shared++;"#;
    let place = holding(&two_threads(body));
    let output = hunt(&place, "--time 10");
    check(&output, UNJUDGED, "does not repeat under the same order");
}

#[test]
fn an_oracle_that_is_no_command() {
    let place = holding(&two_threads(""));
    let output = hunt(&place, "--oracle /nonexistent/command");
    check(&output, MISUSE, "the oracle `/nonexistent/command` is no command");
    place.file("oracle", "exit 0");
    let output = hunt(&place, "--oracle ./oracle");
    check(&output, MISUSE, "the oracle `./oracle` cannot be executed");
}

#[test]
fn patterns_with_a_mistake() {
    let place = holding(&two_threads(""));
    place.file("patterns", "# mine\nmine atomicity R1x W2x Q1x\n");
    let output = hunt(&place, "--patterns patterns");
    check_sentence(&output, MISUSE, "patterns: line 2: `Q1x` is not an event");
    let output = hunt(&place, "--patterns missing");
    check_sentence(&output, MISUSE, "cannot read missing");
}

#[test]
fn no_runs() {
    check_sentence(&hunt(&holding(&two_threads("")), "--runs 0"), MISUSE, "from 1 on is needed");
}

#[test]
fn one_run() {
    check(&hunt(&holding(&two_threads("")), "--runs 1"), CLEAN, "nothing failed");
}

#[test]
fn a_directory_that_cannot_be_made() {
    let place = holding(&two_threads(""));
    place.file("file", "");
    let output = hunt(&place, "-o file/found");
    check_sentence(&output, MISUSE, "cannot make the directory file/found");
}
