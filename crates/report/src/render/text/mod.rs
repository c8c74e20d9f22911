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
            for (number, one) in (1..).zip(hunt.shown()) {
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
    vec![counts, stopped]
}

/// What came of a hunt that is complete and found nothing; none if it did find something, if there
/// was nothing to search for, or if no run was judged, which a note says.
#[must_use]
pub fn hunt_result(hunt: &Hunt) -> Option<&'static str> {
    let n_judged = hunt.trials.total - hunt.trials.not_judged;
    if hunt.stopped == Stopped::NoOrder || n_judged == 0 || hunt.failing().next().is_some() {
        return None;
    }
    Some(if hunt.is_untested() && n_judged <= FIRST_RUNS {
        "nothing was tested: no order but that of the first run was executed"
    } else if hunt.is_untested() {
        "nothing was tested: nothing that was predicted could be tried to the end"
    } else if hunt.anomalies.untested > hunt.anomalies.predicted / 2 {
        "nothing failed, but most of what was predicted was not tested"
    } else {
        "nothing failed"
    })
}

/// Runs by which a hunt begins, all in the same order.
const FIRST_RUNS: usize = 2;

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
