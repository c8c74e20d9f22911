//! A program to run, whatever it was built from.

use std::path::PathBuf;

/// A program with its arguments, in both builds.
pub(crate) struct Subject {
    /// Such as `xz -d`.
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) native: Build,
    pub(crate) instrumented: Build,
    pub(crate) args: Vec<String>,
    /// Files that it reads, by name, in the directory where it runs.
    pub(crate) files: Vec<(&'static str, Vec<u8>)>,
    pub(crate) answer: Answer,
}

/// A build of a program.
pub(crate) struct Build {
    pub(crate) program: PathBuf,
    /// A library of ours that is preloaded.
    pub(crate) driver: Option<PathBuf>,
}

/// What a program answers, besides status 0.
pub(crate) enum Answer {
    /// Nothing more: what it prints contains times.
    Status,
    /// What it prints natively.
    Output,
    /// This output.
    Bytes(Vec<u8>),
}
