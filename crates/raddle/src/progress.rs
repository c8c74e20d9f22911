//! What is going on, on a terminal.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use raddle_lab::progress::{Note, Progress};

use crate::say;

/// Shows progress in one line that is overwritten, if standard error is a terminal.
pub(crate) struct Line {
    bar: ProgressBar,
    start: Instant,
}

impl Line {
    pub(crate) fn new(is_quiet: bool) -> Self {
        let bar = if is_quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        let bar = bar.with_style(ProgressStyle::with_template("{msg}").expect("a template"));
        Self { bar, start: Instant::now() }
    }

    /// Shows what is going on; notes are always shown.
    pub(crate) fn show(&self, progress: &Progress<'_>) {
        let seconds = self.start.elapsed().as_secs();
        let text = match progress {
            Progress::Searching { n_runs, n_predicted, n_queued, n_failures, .. } => format!(
                "{seconds} s, {n_runs} runs: {n_predicted} anomalies predicted, {n_queued} to try, {n_failures} failures"
            ),
            Progress::Explaining { number, n_failures } => {
                format!("{seconds} s, explaining failure {} of {n_failures}", number + 1)
            }
            Progress::Collecting { n_runs, n_runs_max, n_failed } => {
                format!("{seconds} s, {n_runs} of {n_runs_max} runs, {n_failed} failed")
            }
            Progress::Replaying { n_runs, n_runs_max } => format!("{n_runs} of {n_runs_max}"),
            Progress::Failed { .. } => return,
            Progress::Note(note) => {
                self.bar.suspend(|| say::news(words(*note)));
                return;
            }
        };
        self.bar.set_message(text);
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

const fn words(note: Note) -> &'static str {
    match note {
        Note::OneByOne => {
            "parallel runs disturb each other, most likely through a file; continuing with one at a time, as with --jobs 1"
        }
    }
}
