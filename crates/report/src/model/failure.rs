//! How a run fails, with names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// In a few words, the same for all runs that fail like this.
    pub detail: String,
    /// The source file where it fails.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The whole story, as `raddle run` tells it; the first line is the headline.
    pub text: String,
}

/// What kind of failure.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// A wrong exit status.
    Exit,
    /// A signal.
    Signal,
    /// A failed assertion, or a panic.
    Assert,
    /// Threads that wait forever.
    Deadlock,
    /// It does not end.
    Hang,
    /// Use after free, or a double free.
    Memory,
    /// Misuse of a synchronization object.
    Misuse,
    /// Wrong output.
    Output,
    /// The oracle rejected it.
    Oracle,
}

impl FailureKind {
    /// As JSON has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Assert => "assert",
            Self::Deadlock => "deadlock",
            Self::Hang => "hang",
            Self::Memory => "memory",
            Self::Misuse => "misuse",
            Self::Output => "output",
            Self::Oracle => "oracle",
        }
    }
}
