//! How a run compares with the native one.

use std::fmt;

use crate::run::{Ending, Run};

/// How a run compares with the native one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It ended in the same way.
    Same,
    /// It took too long.
    Hang,
    /// All waited for each other, or for a wake-up that was lost.
    Deadlock,
    /// A synchronization object was used against its rules.
    Misuse,
    /// Its threads ran and got nowhere.
    Livelock,
    /// A freed block was used or freed again.
    Memory,
    /// raddle's runtime could not go on.
    GaveUp,
    /// Another status or signal.
    Other(String),
}

/// The columns of the table.
pub const COLUMNS: [&str; 8] =
    ["same", "hang", "deadlock", "misuse", "livelock", "memory", "gave up", "other"];

/// What raddle's words about a run start with.
const WORDS: [(&str, Verdict); 8] = [
    ("hang", Verdict::Hang),
    ("deadlock", Verdict::Deadlock),
    ("lost wake-up", Verdict::Deadlock),
    ("misuse", Verdict::Misuse),
    ("livelock", Verdict::Livelock),
    ("use after free", Verdict::Memory),
    ("double free", Verdict::Memory),
    ("raddle's runtime gave up", Verdict::GaveUp),
];

impl Verdict {
    /// Of a run by itself.
    #[must_use]
    pub fn of_plain(native: Ending, run: &Run) -> Self {
        match run.ending {
            Ending::TimedOut => Self::Hang,
            ending if ending == native => Self::Same,
            ending => Self::Other(ending.to_string()),
        }
    }

    /// Of a run under raddle, which exits as a shell does if a signal killed the program.
    #[must_use]
    pub fn of_raddle(native: Ending, run: &Run) -> Self {
        let expected = match native {
            Ending::Exited(code) => Some(code),
            Ending::Killed(number) => Some(128 + number),
            Ending::TimedOut => None,
        };
        match run.ending {
            Ending::TimedOut => Self::Hang,
            Ending::Exited(code) if Some(code) == expected => Self::Same,
            ending => said(&run.text).unwrap_or_else(|| Self::Other(seen(ending).to_string())),
        }
    }

    /// The name of the column that it counts for.
    #[must_use]
    pub fn column(&self) -> &'static str {
        let at = match self {
            Self::Same => 0,
            Self::Hang => 1,
            Self::Deadlock => 2,
            Self::Misuse => 3,
            Self::Livelock => 4,
            Self::Memory => 5,
            Self::GaveUp => 6,
            Self::Other(_) => 7,
        };
        COLUMNS[at]
    }
}

/// How the program ended, given how raddle did.
fn seen(ending: Ending) -> Ending {
    match ending {
        Ending::Exited(code) if code > 128 => Ending::Killed(code - 128),
        other => other,
    }
}

/// The verdict in raddle's words, among those of the program.
fn said(text: &str) -> Option<Verdict> {
    // The program may have begun a line.
    let mut news = text.lines().filter_map(|line| line.split_once("raddle: "));
    news.find_map(|(_, news)| {
        WORDS.into_iter().find(|(words, _)| news.starts_with(words)).map(|(_, verdict)| verdict)
    })
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(ending) => f.write_str(ending),
            verdict => f.write_str(verdict.column()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn check(native: Ending, ending: Ending, text: &str, expected: &str) {
        let run = Run { ending, duration: Duration::ZERO, text: text.to_owned() };
        assert_eq!(Verdict::of_raddle(native, &run).to_string(), expected);
    }

    #[test]
    fn the_same_status_or_signal_agrees() {
        check(Ending::Exited(0), Ending::Exited(0), "", "same");
        check(Ending::Killed(10), Ending::Exited(138), "raddle: killed by SIGUSR1\n", "same");
    }

    #[test]
    fn raddle_says_what_differs() {
        let fine = Ending::Exited(0);
        check(fine, Ending::Exited(1), "joined\nraddle: deadlock\n  main waits\n", "deadlock");
        check(fine, Ending::Exited(1), "...raddle: lost wake-up\n", "deadlock");
        check(fine, Ending::Exited(125), "raddle: raddle's runtime gave up: no room\n", "gave up");
        check(fine, Ending::Exited(3), "raddle: exited with status 3\n", "exit 3");
        check(fine, Ending::Exited(142), "raddle: killed by SIGALRM\n", "SIGALRM");
        check(fine, Ending::TimedOut, "", "hang");
    }
}
