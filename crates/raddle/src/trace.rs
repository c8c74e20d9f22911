//! `raddle trace`: looking at a trace.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use raddle_code::elf::Files;
use raddle_report::model::Report;
use raddle_report::render::{Form, Options};
use raddle_symbols::events;
use raddle_symbols::name::Namer;
use raddle_trace::event::Op;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::id::ThreadId;
use raddle_trace::std_text;

use crate::args::{Format, TraceCommand};
use crate::context::{self, Context};
use crate::exit::Exit;

pub(crate) fn trace(command: TraceCommand) -> Result<Exit> {
    match command {
        TraceCommand::Stats { trace, json } => stats(&open(&trace)?, json),
        TraceCommand::Show { trace, thread, from, count, calls } => {
            let trace = open(&trace)?;
            let thread = thread.map(|name| thread_named(&trace, &name)).transpose()?;
            show(&trace, &Wanted { thread, from, count: count.unwrap_or(u64::MAX), calls })
        }
        TraceCommand::Export { trace, format: Format::Std, output } => {
            export(&open(&trace)?, output.as_deref())
        }
        TraceCommand::Import { text, format: Format::Std, output } => import(&text, &output),
    }
}

fn open(path: &Path) -> Result<Trace> {
    let trace = Trace::open(path).with_context(|| path.display().to_string())?;
    if !trace.complete() {
        eprintln!(
            "raddle: {} is unfinished; it ends where the recording was stopped",
            path.display()
        );
    }
    Ok(trace)
}

fn stats(trace: &Trace, json: bool) -> Result<Exit> {
    let report = Report::Stats(raddle_report::name::stats(trace, &trace.stats()?));
    let options = Options { count: 0, windows: false, directory: Path::new("") };
    context::print(&report, if json { Form::Json } else { Form::Text }, &options)?;
    Ok(Exit::Clean)
}

/// Which events to show.
struct Wanted {
    thread: Option<ThreadId>,
    from: u64,
    count: u64,
    calls: bool,
}

fn show(trace: &Trace, wanted: &Wanted) -> Result<Exit> {
    let mut namer = Namer::new(trace.run(), &Context::new(Files::default()).cache);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut n_shown = 0;
    for (seq, event) in (0..).zip(trace.events()) {
        if n_shown == wanted.count {
            break;
        }
        let event = event?;
        namer.push(seq, &event);
        let is_call = matches!(event.op, Op::Enter { .. } | Op::Leave);
        let is_wanted = seq >= wanted.from
            && event.op != Op::Step
            && (wanted.calls || !is_call)
            && wanted.thread.is_none_or(|thread| thread == event.thread);
        if is_wanted {
            writeln!(out, "{}", events::line(&namer, seq, &event))?;
            n_shown += 1;
        }
    }
    out.flush()?;
    for complaint in namer.symbols().complaints() {
        eprintln!("raddle: {complaint}");
    }
    Ok(Exit::Clean)
}

/// The thread that a name or a number means.
fn thread_named(trace: &Trace, name: &str) -> Result<ThreadId> {
    let threads = &trace.run().threads;
    if let Some(thread) = threads.iter().find(|thread| thread.name == name) {
        return Ok(thread.id);
    }
    match name.parse() {
        Ok(number) if threads.iter().any(|thread| thread.id.0 == number) => Ok(ThreadId(number)),
        _ => {
            let names: Vec<_> = threads.iter().map(|thread| thread.name.as_str()).collect();
            bail!("no thread {name} in the trace; its threads are {}", names.join(", "))
        }
    }
}

fn export(trace: &Trace, output: Option<&Path>) -> Result<Exit> {
    let sink: Box<dyn Write> = match output {
        Some(path) => Box::new(File::create(path).with_context(|| path.display().to_string())?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::new(sink);
    std_text::export(trace, &mut out)?;
    out.flush()?;
    Ok(Exit::Clean)
}

fn import(text: &Path, output: &Path) -> Result<Exit> {
    let source: Box<dyn Read> = match text.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(text).with_context(|| format!("cannot read {}", text.display()))?),
    };
    let summary = std_text::import(BufReader::new(source), Writer::create(output)?)
        .with_context(|| text.display().to_string())?;
    eprintln!("raddle: {} events in {} bytes: {}", summary.events, summary.bytes, output.display());
    Ok(Exit::Clean)
}
