//! `raddle predict`: what a trace implies, without executing anything.

use std::path::Path;

use anyhow::{Context as _, Result};
use raddle_analysis::predict::predict as anomalies_of;
use raddle_analysis::reading;
use raddle_code::elf::Files;
use raddle_report::model::Report;
use raddle_report::render::text::prediction_summary;
use raddle_report::render::{Form, Options};
use raddle_trace::file::Trace;
use raddle_trial::interrupt;

use crate::args::PredictArgs;
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::{guard, hunt};

/// How many are shown by default.
const SHOWN: u64 = 50;

pub(crate) fn predict(args: &PredictArgs) -> Result<Exit> {
    let context = Context::new(Files::default());
    let trace = Trace::open(&args.trace).with_context(|| args.trace.display().to_string())?;
    let patterns = hunt::patterns(args.patterns.as_deref())?;
    guard::install()?;
    let model = reading::model(|| trace.events())?;
    let anomalies = anomalies_of(&model, &patterns);
    let wanted = args.count.unwrap_or(if args.json { u64::MAX } else { SHOWN });
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let prediction = context.names().prediction(&trace, &model, &anomalies, wanted);
    let is_interrupted = interrupt::signal().is_some();
    let so_far = if is_interrupted { "interrupted; so far, " } else { "" };
    let summary = format!("{so_far}{}", prediction_summary(&prediction));
    guard::print_now();
    let form = if args.json { Form::Json } else { Form::Text };
    let options = Options { count: usize::MAX, windows: false, directory: Path::new("") };
    context::print(&Report::Predict(prediction), form, &options)?;
    eprintln!("raddle: {summary}");
    Ok(match interrupt::signal() {
        Some(number) => guard::killed(number),
        None if anomalies.is_empty() => Exit::Clean,
        None => Exit::Found,
    })
}
