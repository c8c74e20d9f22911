//! Tools that some tests need and that not every machine has: clang, gdb, unshare.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// Whether a tool is installed. If not, says that a test is skipped.
///
/// # Panics
/// If the tool is missing on a machine of the continuous integration, where `CI` is `true`: there
/// nothing may be skipped.
#[must_use]
#[track_caller]
pub fn tool(name: &str) -> bool {
    let mut command = Command::new(name);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command.status().is_ok();
    if !is_there {
        skip(&format!("no {name}"));
    }
    is_there
}

/// Says that a test is skipped, and why.
///
/// # Panics
/// If `CI` is `true`.
#[track_caller]
pub fn skip(why: &str) {
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "{why}, and CI skips no test");
    // Not by `eprintln!`, which the test harness keeps to itself.
    let _ = writeln!(io::stderr(), "skipped: {why}");
}
