//! A clip under gdb.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use tempfile::TempDir;

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
    let directory = TempDir::new().expect("a directory");
    fs::write(directory.path().join("looked_at.c"), SOURCE).expect("a file");
    let raddle = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
        command.current_dir(directory.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    let clip = raddle()
        .args(["run", "--policy", "rr", "--clip", "clip", "looked_at.c"])
        .output()
        .expect("raddle");
    assert!(clip.status.success(), "{clip:?}");
    let mut gdb = raddle().args(["replay", "--gdb", "clip"]).spawn().expect("raddle");
    let mut stdin = gdb.stdin.take().expect("a pipe");
    stdin.write_all(COMMANDS.as_bytes()).expect("gdb reads");
    drop(stdin);
    let output = gdb.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("shared is 0"), "{said}");
    assert!(said.contains("exited normally"), "{said}");
}
