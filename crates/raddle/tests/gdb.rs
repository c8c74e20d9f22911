//! A clip under gdb.

use std::io::Write as _;
use std::process::Stdio;

use raddle_corpus::{Place, Ran, tool};

/// The main thread has the turn while it is looked at; the other one has not.
const SOURCE: &str = r#"
    #include <pthread.h>
    volatile int shared;
    static void *other(void *p) { shared = 1; return p; }
    __attribute__((noinline)) void quiet(void) { __asm__ volatile("nop;nop;nop;nop;nop;nop"); }
    int main(void) {
        pthread_t thread;
        pthread_create(&thread, 0, other, 0);
        quiet();
        pthread_join(thread, 0);
        return 0;
    }"#;

/// Each step lets all threads run for a moment, and by then the watchdog would have lost its
/// patience.
const COMMANDS: &str = "
set pagination off
set confirm off
break quiet
run
shell sleep 0.2
stepi
shell sleep 2.5
stepi
shell sleep 0.2
stepi
printf \"shared is %d\\n\", shared
continue
quit
";

#[test]
fn a_thread_that_is_looked_at_keeps_the_turn() {
    if !tool("gdb") {
        return;
    }
    let place = Place::new();
    place.file("looked_at.c", SOURCE);
    place.raddle("run --policy rr --clip clip looked_at.c").exits(0);
    let mut gdb = place.command("replay --gdb clip");
    let mut gdb = gdb.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("raddle");
    let mut stdin = gdb.stdin.take().expect("a pipe");
    stdin.write_all(COMMANDS.as_bytes()).expect("gdb reads");
    drop(stdin);
    let said = Ran::from(gdb.wait_with_output().expect("an end")).stdout;
    assert!(said.contains("shared is 0"), "{said}");
    assert!(said.contains("exited normally"), "{said}");
}
