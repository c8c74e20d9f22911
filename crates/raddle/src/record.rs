//! `raddle record`: one execution, with all that it does.

use std::path::Path;

use anyhow::Result;
use raddle_trace::file::{self, Writer};
use raddle_trial::{Delivery, execute};

use crate::args::RecordArgs;
use crate::exit::Exit;
use crate::run::{self, Prepared};

pub(crate) fn record(args: RecordArgs) -> Result<Exit> {
    let prepared = Prepared::new(&args.execution)?;
    let Prepared { launch, plan, expected, .. } = &prepared;
    let mut writer = Writer::create(&args.output)?;
    let delivery = match args.every {
        true => Delivery::EveryRecord(&mut writer),
        false => Delivery::Records(&mut writer),
    };
    let executed = execute(launch, plan, delivery);
    let execution = match executed {
        Ok(execution) if !execution.outcome.end.is_unjudged() => execution,
        // Nothing worth keeping: an older trace of this name stays as it is.
        other => {
            discard(&args.output);
            let execution = other?;
            run::relay(&execution)?;
            return run::tell(&execution, None, None, "");
        }
    };
    let summary = writer.finish(&execution.run).inspect_err(|_| discard(&args.output))?;
    run::relay(&execution)?;
    eprintln!(
        "raddle: {} events in {} bytes: {}",
        summary.events,
        summary.bytes,
        args.output.display()
    );
    let again = prepared.keep(&execution)?;
    run::tell(&execution, Some(&args.output), expected.as_ref(), &again)
}

/// Takes away what was written so far.
fn discard(output: &Path) {
    // It may be what could not be written.
    let _ = std::fs::remove_file(file::unfinished(output));
}
