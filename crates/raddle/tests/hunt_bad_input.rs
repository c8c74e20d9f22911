//! Hunts that cannot come to much: a sentence that says why, the right exit code, and no wait.

use raddle_corpus::place::{CLEAN, FOUND, MISUSE, UNJUDGED};
use raddle_corpus::{Place, Ran, path};

/// A hunt in a program.
fn hunt(place: &Place, options: &str) -> Ran {
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
    let words = "failed under every schedule that was tried";
    hunt(&place, "").exits(FOUND).says(words);
}

#[test]
fn a_program_that_never_ends() {
    let place = holding(&two_threads("for (volatile int i = 0;; i++) { }"));
    let output = hunt(&place, "--timeout 1 --time 20");
    output.exits(UNJUDGED).says("did not end within 1 seconds");
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

// By the processor's clock, which passes in real time: long enough for runs that are started
// together to meet, on a fast machine, too.
const TAKE: &str = "if (open(\"taken\", O_CREAT | O_EXCL, 0600) < 0) return 9;
            for (unsigned long long start = __builtin_ia32_rdtsc();
                 __builtin_ia32_rdtsc() - start < 400000000;) { }";
const GIVE_BACK: &str = "unlink(\"taken\");";

#[test]
fn programs_that_get_in_each_other_s_way_run_one_by_one() {
    let place = holding(&with_order(TAKE, &format!("{GIVE_BACK} return is_late ? 3 : 0;")));
    for command in ["hunt --runs 20", "localize --runs 24"] {
        let output = place.raddle(&format!("{command} --jobs 2 --json program.c"));
        let text = output.exits(FOUND).says("one at a time, as with --jobs 1").stdout;
        assert!(text.contains("exit 3") && !text.contains("exit 9"), "{text}");
    }
}

#[test]
fn failures_that_come_only_while_others_run_are_none() {
    // At first the other thread is late, and the file is not needed.
    let behind = format!("if (is_late) return 0; {TAKE} {GIVE_BACK} return 0;");
    let place = holding(&with_order("", &behind));
    let output = place.raddle("hunt --jobs 2 --runs 200 -o found program.c");
    output.exits(UNJUDGED).says("did not come again when nothing else ran");
    let files = std::fs::read_dir(place.path("found")).expect("a directory");
    let names = files.map(|file| file.expect("a file").file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["report.json"]);
}

#[test]
fn a_program_of_one_thread() {
    let place = holding("int main(void) { return 0; }");
    hunt(&place, "").complains(CLEAN, "only one thread ran");
    let place = holding("int main(void) { return 3; }");
    hunt(&place, "").exits(FOUND).says("only one thread ran");
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
    hunt(&holding(program), "").complains(CLEAN, "share no memory that is written");
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
    output.exits(UNJUDGED).says("does not repeat under the same schedule");
}

#[test]
fn an_oracle_that_is_no_command() {
    let place = holding(&two_threads(""));
    let output = hunt(&place, "--oracle /nonexistent/command");
    output.exits(MISUSE).says("oracle `/nonexistent/command` not found");
    place.file("oracle", "exit 0");
    let output = hunt(&place, "--oracle ./oracle");
    output.exits(MISUSE).says("oracle `./oracle` is not executable");
}

#[test]
fn patterns_with_a_mistake() {
    let place = holding(&two_threads(""));
    place.file("patterns", "# mine\nmine atomicity R1x W2x Q1x\n");
    let output = hunt(&place, "--patterns patterns");
    output.complains(MISUSE, "patterns: line 2: `Q1x` is not an event");
    let output = hunt(&place, "--patterns missing");
    output.complains(MISUSE, "cannot read missing");
}

#[test]
fn no_runs() {
    hunt(&holding(&two_threads("")), "--runs 0").complains(MISUSE, "a whole number of at least 1");
}

#[test]
fn one_run() {
    let ran = hunt(&holding(&two_threads("")), "--runs 1").exits(UNJUDGED);
    ran.says("stopped after 1 run: all were used up (--runs)").says("nothing was tested");
}

#[test]
fn no_time_to_test_what_was_predicted() {
    // Sleeps for 0.7 seconds of real time in each run, past raddle's clock.
    let slow = "
        long time[2] = {0, 700000000}, result;
        __asm__ volatile(\"syscall\" : \"=a\"(result) : \"a\"(35), \"D\"(time), \"S\"(0) : \"rcx\", \"r11\", \"memory\");";
    let ran = hunt(&holding(&two_threads(slow)), "--time 1 --jobs 1").exits(UNJUDGED);
    ran.says("the time was up (--time); 1 of 1 predictions were not tested")
        .says("nothing was tested");
}

#[test]
fn most_of_what_was_predicted_is_not_tested() {
    let source = path("hunt/ok_bank.c");
    let ran = Place::new().raddle_on("hunt --jobs 1 --runs 30 --", &source, &[]).exits(CLEAN);
    ran.says("nothing failed, but most of what was predicted was not tested");
}

#[test]
fn a_directory_that_cannot_be_made() {
    let place = holding(&two_threads(""));
    place.file("file", "");
    let output = hunt(&place, "-o file/found");
    output.complains(MISUSE, "cannot create directory file/found");
}
