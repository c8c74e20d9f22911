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
