//! `raddle record`: one execution, with all that it does.

use std::path::Path;

use anyhow::Result;
use raddle_trace::file::{self, Writer};
use raddle_trial::{Delivery, Output, execute};

use crate::args::RecordArgs;
use crate::clip::Kept;
use crate::exit::Exit;
use crate::{clip, run, target};

pub(crate) fn record(args: RecordArgs) -> Result<Exit> {
    let plan = target::plan(&args.plan)?;
    let expected = target::expected(&args.expected)?;
    let (mut launch, program) = target::launch(&args.target)?;
    target::prepare()?;
    if let Some(path) = &args.clip {
        clip::check(path, &plan)?;
        target::isolate(&mut launch)?;
    } else if expected.is_some() {
        launch.stdout = Output::Capture;
    }
    let mut writer = Writer::create(&args.output)?;
    let delivery = match args.every {
        true => Delivery::EveryRecord(&mut writer),
        false => Delivery::Records(&mut writer),
    };
    let executed = execute(&launch, &plan, delivery);
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
    let mut again = target::again(&args.plan, &args.target);
    if let Some(path) = &args.clip {
        let kept = Kept {
            target: &args.target,
            expected: &args.expected,
            program: &program,
            launch: &launch,
            plan: &plan,
            execution: &execution,
            anomaly: None,
        };
        again = clip::keep(path, &kept, &expected.clone().unwrap_or_default())?.unwrap_or(again);
    }
    run::tell(&execution, Some(&args.output), expected.as_ref(), &again)
}

/// Takes away what was written so far.
fn discard(output: &Path) {
    // It may be what could not be written.
    let _ = std::fs::remove_file(file::unfinished(output));
}
