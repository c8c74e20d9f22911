//! A directory to make a mess in, and to call raddle from; and what raddle is to say then.
#![allow(dead_code, reason = "each test needs a part of it")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Nothing was found.
pub(crate) const CLEAN: i32 = 0;
/// Something was found.
pub(crate) const FOUND: i32 = 1;
/// Wrong use.
pub(crate) const MISUSE: i32 = 2;
/// The run, or the program, cannot be judged.
pub(crate) const UNJUDGED: i32 = 125;

/// A directory of its own.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().expect("a directory") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
        command.args(line.split_whitespace()).current_dir(self.directory.path());
        command
    }

    pub(crate) fn raddle(&self, line: &str) -> Output {
        self.command(line).output().expect("raddle")
    }
}

/// Raddle exits with `code` and says `words`.
#[track_caller]
pub(crate) fn check(output: &Output, code: i32, words: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(words), "«{words}» is not in: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// The same, in one line and nothing else.
#[track_caller]
pub(crate) fn check_sentence(output: &Output, code: i32, words: &str) {
    check(output, code, words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}
