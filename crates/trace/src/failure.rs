//! The kinds of failures: one list for verdicts, clips, and saved runs.

use serde::{Deserialize, Serialize};

/// What kind of failure. Saved runs store its number, so new kinds come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// An unexpected exit status.
    Exit,
    /// Killed by a signal.
    Signal,
    /// A failed assertion, or a panic.
    Assert,
    /// Threads wait forever.
    Deadlock,
    /// The run does not end.
    Hang,
    /// A use after free, or a double free.
    Memory,
    /// Misuse of a synchronization object.
    Misuse,
    /// Unexpected output.
    Output,
    /// The oracle rejected the run.
    Oracle,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Exit,
        Self::Signal,
        Self::Assert,
        Self::Deadlock,
        Self::Hang,
        Self::Memory,
        Self::Misuse,
        Self::Output,
        Self::Oracle,
    ];

    /// The name in clips and JSON.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole_and_names_are_those_of_json() {
        for (number, kind) in (0..).zip(FailureKind::ALL) {
            assert_eq!(kind as u8, number);
            let json = serde_json::to_string(&kind).expect("JSON");
            assert_eq!(json, format!("\"{}\"", kind.as_str()));
        }
        let unknown = serde_json::from_str::<FailureKind>("\"\"").expect_err("not a kind");
        let named = unknown.to_string().matches('`').count() / 2;
        assert_eq!(named, FailureKind::ALL.len() + 1, "{unknown}");
    }
}
