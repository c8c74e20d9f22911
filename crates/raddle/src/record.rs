//! `raddle record`: one execution, with all that it does.

use std::path::Path;

use anyhow::Result;
use raddle_trace::file::{self, Trace, Writer};
use raddle_trial::Delivery;

use crate::args::RecordArgs;
use crate::exit::Exit;
use crate::run::Prepared;

/// Traces with more records than this are not read to name where a run failed: about three
/// seconds' worth.
const N_RECORDS_MAX: u64 = 20_000_000;

pub(crate) fn record(args: RecordArgs) -> Result<Exit> {
    let prepared = Prepared::new(&args.execution)?;
    let mut writer = Writer::create(&args.output)?;
    let delivery = match args.every {
        true => Delivery::EveryRecord(&mut writer),
        false => Delivery::Records(&mut writer),
    };
    let execution = match prepared.run(delivery) {
        Ok(execution) if !execution.outcome.end.is_unjudged() => execution,
        // Nothing worth keeping: an older trace of this name stays as it is.
        other => {
            discard(&args.output);
            return Ok(prepared.conclude(&prepared.judge(other?)?, None, ""));
        }
    };
    let summary = writer.finish(&execution.run).inspect_err(|_| discard(&args.output))?;
    let trial = prepared.judge(execution)?;
    eprintln!(
        "raddle: {} events in {} bytes: {}",
        summary.events,
        summary.bytes,
        args.output.display()
    );
    let again = prepared.keep(&trial)?;
    let trace = trial.failure().and_then(|_| Trace::open(&args.output).ok());
    let trace = trace.filter(|trace| trace.n_records() <= N_RECORDS_MAX);
    Ok(prepared.conclude(&trial, trace.as_ref(), &again))
}

/// Removes what was written so far.
fn discard(output: &Path) {
    // It may be what could not be written.
    let _ = std::fs::remove_file(file::unfinished(output));
}
