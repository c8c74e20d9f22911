//! What a program says when it ends itself by `abort`.
//!
//! glibc, the C++ library and Rust's standard library print why before they do. That is read
//! from standard error if it was captured.
//!
//! It goes into the failure's detail, but not into clips or the comparison of failures, since
//! such messages change with the data.

use crate::execute::Execution;
use crate::outcome::End;

/// Why a program has ended itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastWords {
    /// In one line.
    pub text: String,
    /// Where, if it says so: file and line.
    pub place: Option<(String, u32)>,
}

/// What a run that ended by `abort` gave as the reason, in a form that is known.
#[must_use]
pub fn last_words(execution: &Execution) -> Option<LastWords> {
    match &execution.outcome.end {
        End::Signal { number: libc::SIGABRT, .. } => said(&execution.stderr.as_ref()?.bytes),
        _ => None,
    }
}

fn said(stderr: &[u8]) -> Option<LastWords> {
    let plain = |text: String| LastWords { text, place: None };
    if let Some(panic) = panic_in(stderr) {
        return Some(LastWords { text: format!("panic: {}", panic.text), ..panic });
    }
    let text = String::from_utf8_lossy(stderr);
    uncaught(&text).or_else(|| complaint(&text)).map(plain)
}

/// The first panic that a Rust program has reported.
pub(crate) fn panic_in(stderr: &[u8]) -> Option<LastWords> {
    let text = String::from_utf8_lossy(stderr);
    let (_, after) = text.split_once(" panicked at ")?;
    let (place, rest) = after.split_once('\n')?;
    let mut parts = place.trim_end_matches(':').rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    let text = rest.lines().next().unwrap_or_default().to_owned();
    Some(LastWords { text, place: Some((file.to_owned(), line.parse().ok()?)) })
}

/// The exception that libstdc++ or libc++abi says nobody has caught.
fn uncaught(text: &str) -> Option<String> {
    const GNU: &str = "terminate called after throwing an instance of '";
    const LLVM: &str = "uncaught exception of type ";
    if let Some((_, after)) = text.rsplit_once(GNU) {
        let (kind, rest) = after.split_once("'\n")?;
        let what = rest.strip_prefix("  what():  ").and_then(|what| what.lines().next());
        return Some(match what {
            Some(what) => format!("uncaught {kind}: {what}"),
            None => format!("uncaught {kind}"),
        });
    }
    let (_, after) = text.rsplit_once(LLVM)?;
    after.lines().next().map(|kind| format!("uncaught {kind}"))
}

/// How lines begin with which glibc, libstdc++ and Rust's standard library end a program.
const COMPLAINTS: [&str; 15] = [
    "terminate called ",
    "*** ",
    "Fatal glibc error: ",
    "fatal runtime error: ",
    "malloc(): ",
    "malloc_consolidate(): ",
    "realloc(): ",
    "calloc(): ",
    "free(): ",
    "munmap_chunk(): ",
    "mremap_chunk(): ",
    "sysmalloc: ",
    "double free or corruption",
    "corrupted size vs. prev_size",
    "corrupted double-linked list",
];

/// The last line that such a library ends a program with.
fn complaint(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| {
        let starts = COMPLAINTS.iter().any(|start| line.starts_with(start));
        starts && (!line.starts_with("*** ") || line.ends_with(" ***: terminated"))
    })?;
    Some(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stderr: &str, expect: Option<&str>) {
        assert_eq!(said(stderr.as_bytes()).map(|words| words.text).as_deref(), expect);
    }

    #[test]
    fn an_exception_is_told_with_its_message() {
        check(
            "hello\nterminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check: __n (which is 5)\n",
            Some("uncaught std::out_of_range: vector::_M_range_check: __n (which is 5)"),
        );
        check("terminate called after throwing an instance of 'int'\n", Some("uncaught int"));
        check(
            "libc++abi: terminating due to uncaught exception of type std::out_of_range: vector\n",
            Some("uncaught std::out_of_range: vector"),
        );
    }

    #[test]
    fn checks_of_libraries_are_told_as_they_are() {
        for line in [
            "free(): invalid pointer",
            "double free or corruption (out)",
            "*** stack smashing detected ***: terminated",
            "terminate called without an active exception",
        ] {
            check(&format!("hello\n{line}\n"), Some(line));
        }
    }

    #[test]
    fn what_a_program_says_of_itself_is_no_reason() {
        check("*** starting\nfreeing\n", None);
        check("", None);
    }

    #[test]
    fn a_panic_tells_its_place() {
        let stderr =
            b"\nthread 'main' (12) panicked at src/main.rs:7:5:\nassertion failed: x\nnote: run";
        let panic = panic_in(stderr).expect("a panic");
        assert_eq!(panic.place, Some(("src/main.rs".into(), 7)));
        assert_eq!(panic.text, "assertion failed: x");
        check(&String::from_utf8_lossy(stderr), Some("panic: assertion failed: x"));
    }
}
