//! For people, on a terminal.

mod access;
mod finding;
mod isolation;
mod localization;
mod trace;

use std::io::{self, Write};

use super::Options;
use crate::model::{Anomalies, Coverage, Hunt, Report, Stopped};

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

/// What a hunt did, and why it ended. Empty where the order of threads makes no difference: there
/// was no search to sum up.
#[must_use]
pub fn hunt_summary(hunt: &Hunt, seconds: f64) -> Vec<String> {
    let Some(stopped) = stopped(hunt, seconds) else { return Vec::new() };
    let a = &hunt.anomalies;
    let counts = [
        (a.failing, "failing"),
        (a.benign, "benign"),
        (a.infeasible, "infeasible"),
        (a.untested, "untested"),
    ];
    let counts: Vec<_> = counts.iter().map(|(n, word)| format!("{n} {word}")).collect();
    let counts = format!(
        "{} runs in {seconds:.1} s, {} failed; {} anomalies predicted: {}; {} schedules explored",
        hunt.trials.total,
        hunt.trials.failed,
        a.predicted,
        counts.join(", "),
        hunt.explored,
    );
    let is_found = hunt.failing().next().is_some();
    let nothing = match () {
        () if is_found => None,
        () if hunt.is_untested() => {
            Some("nothing was tested: no order but that of the first run was executed")
        }
        () if a.untested > a.predicted / 2 => {
            Some("nothing failed, but most of what was predicted was not tested")
        }
        () => Some("nothing failed"),
    };
    let lines = [Some(counts), Some(stopped), nothing.map(str::to_owned)];
    lines.into_iter().flatten().collect()
}

/// Why a hunt ended; none if it had nothing to search for.
fn stopped(hunt: &Hunt, seconds: f64) -> Option<String> {
    let n_runs = hunt.trials.total;
    let runs = if n_runs == 1 { "run" } else { "runs" };
    let Anomalies { predicted, untested, .. } = hunt.anomalies;
    let left = match untested {
        0 => String::new(),
        _ => format!("; {untested} of {predicted} predictions were not tested"),
    };
    Some(match hunt.stopped {
        Stopped::NoOrder => return None,
        Stopped::Found => "stopped since a failure was found; --keep-going continues".to_owned(),
        Stopped::NothingNew => {
            let Coverage { since_new, since_new_recorded, .. } = hunt.coverage;
            let recorded = match since_new_recorded == since_new {
                true => String::new(),
                false => format!(", of which {since_new_recorded} were recorded"),
            };
            format!(
                "stopped after {n_runs} {runs}: no new order in the last {since_new} explored{recorded}; --runs or --time continues"
            )
        }
        // Some are kept to explain what was found.
        Stopped::Runs if hunt.failing().next().is_some() => {
            format!("stopped after {n_runs} {runs}: those to search by were used up (--runs){left}")
        }
        Stopped::Runs => format!("stopped after {n_runs} {runs}: all were used up (--runs){left}"),
        Stopped::Time => {
            format!("stopped after {seconds:.1} s: the time was up (--time){left}")
        }
        Stopped::Interrupted => {
            format!("stopped after {n_runs} {runs} by the user{left}")
        }
    })
}
