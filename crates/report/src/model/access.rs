//! An access, with names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An access to memory or to a synchronization object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// Which of the threads of a finding performed it, from 1.
    pub role: usize,
    /// The thread by spawn path, such as `main/1`.
    pub thread: String,
    /// What it did, in one letter, as patterns have it.
    pub op: char,
    /// What it did.
    pub action: Action,
    /// The source file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
    /// File, line and function in words, or what else is known.
    pub site: String,
    /// What was accessed.
    pub variable: String,
    /// Locks that the thread held.
    pub locks: Vec<String>,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Frees memory.
    Free,
    /// Acquires a lock.
    Acquire,
    /// Releases a lock.
    Release,
    /// Waits on a condition variable or the like.
    Wait,
    /// Decrements a semaphore.
    Decrement,
    /// Asks a semaphore for its value.
    GetValue,
    /// Signals a condition variable, or increments a semaphore.
    Signal,
    /// Initializes a synchronization object.
    Initialize,
    /// Destroys a synchronization object.
    Destroy,
    /// Blocks on a lock forever.
    Block,
}

impl Action {
    /// As a verb in the third person.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Free => "frees",
            Self::Acquire => "acquires",
            Self::Release => "releases",
            Self::Wait => "waits on",
            Self::Decrement => "decrements",
            Self::GetValue => "gets the value of",
            Self::Signal => "signals",
            Self::Initialize => "initializes",
            Self::Destroy => "destroys",
            Self::Block => "blocks on",
        }
    }
}
