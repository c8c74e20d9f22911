//! What raddle has to say, on standard error.

use std::io::{self, IsTerminal as _, Write as _};

/// Says how a run ended. The first line is the news.
pub(crate) fn news(text: &str) {
    if text.is_empty() {
        return;
    }
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (on, off) = if is_coloured() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    // Nobody is left to be told if this fails.
    let _ = write!(io::stderr().lock(), "raddle: {on}{first}{off}\n{rest}");
}

/// Says what else there is to know, each in a line.
pub(crate) fn notes(notes: impl IntoIterator<Item = String>) {
    for note in notes {
        let _ = writeln!(io::stderr().lock(), "raddle: {note}");
    }
}

/// Says which command shows a run again.
pub(crate) fn again(command: &str) {
    let _ = writeln!(io::stderr().lock(), "show it again: {command}");
}

fn is_coloured() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
