//! Hunts that cannot come to much: a sentence that says why, the right exit code, and no wait.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Nothing was found.
const CLEAN: i32 = 0;
/// Something was found.
const FOUND: i32 = 1;
/// Wrong use.
const MISUSE: i32 = 2;
/// The program cannot be judged.
const UNJUDGED: i32 = 125;

/// A directory with a program in it.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new(program: &str) -> Self {
        let place = Self { directory: TempDir::new().expect("a directory") };
        place.file("program.c", program);
        place
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    fn hunt(&self, options: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
        command.arg("hunt").args(options.split_whitespace()).arg("program.c");
        command.current_dir(self.directory.path()).output().expect("raddle")
    }
}

/// Raddle exits with `code` and says `words`.
#[track_caller]
fn check(output: &Output, code: i32, words: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(words), "«{words}» is not in: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// The same, in one line and nothing else.
#[track_caller]
fn check_sentence(output: &Output, code: i32, words: &str) {
    check(output, code, words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
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
    let place = Place::new(&two_threads("assert(shared == 2);"));
    let words = "failed under every order that was tried";
    check(&place.hunt(""), FOUND, words);
}

#[test]
fn a_program_that_never_ends() {
    let place = Place::new(&two_threads("for (volatile int i = 0;; i++) { }"));
    let output = place.hunt("--timeout 1 --time 20");
    check(&output, UNJUDGED, "did not end within 1 seconds");
}

#[test]
fn a_program_of_one_thread() {
    let place = Place::new("int main(void) { return 0; }");
    check_sentence(&place.hunt(""), CLEAN, "only one thread ran");
    let place = Place::new("int main(void) { return 3; }");
    check(&place.hunt(""), FOUND, "only one thread ran");
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
    check_sentence(&Place::new(program).hunt(""), CLEAN, "share no memory that is written");
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
    let place = Place::new(&two_threads(body));
    let output = place.hunt("--time 10");
    check(&output, UNJUDGED, "does not repeat under the same order");
}

#[test]
fn an_oracle_that_is_no_command() {
    let place = Place::new(&two_threads(""));
    let output = place.hunt("--oracle /nonexistent/command");
    check(&output, MISUSE, "the oracle `/nonexistent/command` is no command");
    place.file("oracle", "exit 0");
    let output = place.hunt("--oracle ./oracle");
    check(&output, MISUSE, "the oracle `./oracle` cannot be executed");
}

#[test]
fn patterns_with_a_mistake() {
    let place = Place::new(&two_threads(""));
    place.file("patterns", "# mine\nmine atomicity R1x W2x Q1x\n");
    let output = place.hunt("--patterns patterns");
    check_sentence(&output, MISUSE, "patterns: line 2: `Q1x` is not an event");
    let output = place.hunt("--patterns missing");
    check_sentence(&output, MISUSE, "cannot read missing");
}

#[test]
fn no_runs() {
    check_sentence(&Place::new(&two_threads("")).hunt("--runs 0"), MISUSE, "from 1 on is needed");
}

#[test]
fn one_run() {
    check(&Place::new(&two_threads("")).hunt("--runs 1"), CLEAN, "nothing failed");
}

#[test]
fn a_directory_that_cannot_be_made() {
    let place = Place::new(&two_threads(""));
    place.file("file", "");
    let output = place.hunt("-o file/found");
    check_sentence(&output, MISUSE, "cannot make the directory file/found");
}
