//! For people, on a terminal.

mod access;
mod finding;
mod isolation;
mod localization;
mod trace;

use std::io::{self, Write};

use super::Options;
use crate::model::{Hunt, Report, Stopped};

pub use self::trace::{prediction_summary, replay_summary};

pub(super) fn render(
    report: &Report,
    options: &Options<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match report {
        Report::Hunt(hunt) => {
            for (number, one) in (1..).zip(hunt.failing()) {
                finding::render(number, one, options, out)?;
                writeln!(out)?;
            }
            Ok(())
        }
        Report::Localize(localization) => localization::render(localization, options, out),
        Report::Isolate(isolation) => isolation::render(isolation, out),
        Report::Predict(prediction) => {
            for (number, one) in (1..).zip(&prediction.anomalies) {
                finding::render(number, one, options, out)?;
                writeln!(out)?;
            }
            Ok(())
        }
        // Its summary says it all.
        Report::Replay(_) => Ok(()),
        Report::Stats(stats) => trace::render(stats, out),
    }
}

/// What a hunt did, in one line.
#[must_use]
pub fn hunt_summary(hunt: &Hunt, seconds: f64) -> String {
    let a = &hunt.anomalies;
    let counts = [
        (a.failing, "failing"),
        (a.benign, "benign"),
        (a.infeasible, "infeasible"),
        (a.untested, "untested"),
    ];
    let counts: Vec<_> = counts.iter().map(|(n, word)| format!("{n} {word}")).collect();
    let stopped = match hunt.stopped {
        Stopped::Time => "; stopped by --time",
        Stopped::Interrupted => "; interrupted",
        Stopped::Found | Stopped::NothingNew | Stopped::Runs | Stopped::NoOrder => "",
    };
    format!(
        "{} runs in {seconds:.1} s, {} failed; {} anomalies predicted: {}; {} schedules explored{stopped}",
        hunt.trials.total,
        hunt.trials.failed,
        a.predicted,
        counts.join(", "),
        hunt.explored,
    )
}
