//! What commands about traces and clips have to say.

use std::io::{self, Write};

use crate::model::{Prediction, Replay, Stats};

pub(super) fn render(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    let per_event = stats.bytes as f64 / stats.events.max(1) as f64;
    writeln!(out, "command    {}", stats.command.join(" "))?;
    writeln!(out, "ending     {}", stats.ending.as_deref().unwrap_or("unknown"))?;
    writeln!(out, "events     {}", stats.events)?;
    writeln!(out, "repeats    {} of them, only counted", stats.repeats)?;
    writeln!(out, "threads    {}", stats.threads)?;
    writeln!(out, "locations  {}", stats.locations)?;
    writeln!(out, "locks      {}", stats.locks)?;
    writeln!(out, "bytes      {} ({per_event:.2} per event)", stats.bytes)?;
    writeln!(out, "complete   {}", if stats.complete { "yes" } else { "no" })?;
    for (kind, n) in &stats.kinds {
        writeln!(out, "  {n:>12}  {kind}")?;
    }
    Ok(())
}

/// What was predicted, in one line.
#[must_use]
pub fn prediction_summary(prediction: &Prediction) -> String {
    let Prediction { events, anomalies, predicted } = prediction;
    let more = predicted - anomalies.len();
    let more =
        if more > 0 { format!(", {more} of them not shown (--count)") } else { String::new() };
    format!(
        "{predicted} anomalies predicted from {events} events{more}; only raddle hunt can tell whether they happen"
    )
}

/// What came of replaying, in one line; `expected` is what the clip says.
#[must_use]
pub fn replay_summary(replay: &Replay, expected: &str) -> String {
    match (replay.times, replay.reproduced) {
        (1, 1) => format!("reproduced, {expected}"),
        (1, _) => format!("not {expected}"),
        (times, n) => format!("{n} of {times} reproduced, {expected}"),
    }
}
