//! How fast raddle reads a trace: what is shared, what it implies, and the prediction.
//!
//! `cargo run --release -p raddle-bench --bin prediction` prints a table in Markdown. Events are
//! made while they are read ([`stream`]), so that a hundred million of them need no room; what
//! making them takes is measured beside, and taken off. One row goes by way of a trace file, as a
//! hunt does it: that is the one to look at.
//!
//! Times are processor seconds of one thread. Memory is the peak of this process so far. The
//! prediction depends on sites and locations and not on the length of a trace, so it has a column
//! of its own; the rate is that of everything.

mod stream;

use std::hint::black_box;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use raddle_analysis::observed::Observed;
use raddle_analysis::pattern::built_in;
use raddle_analysis::predict::predict;
use raddle_analysis::scan::Scan;
use raddle_analysis::sharing::Sharing;
use raddle_trace::control::Mode;
use raddle_trace::event::Event;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::run::Run;
use tempfile::TempDir;

use crate::stream::{Stream, records};

/// Of a trace file, on one processor.
const MILLIONS_PER_S_MIN: f64 = 5.0;
/// Seconds of ten times the events, at most.
const GROWTH_MAX: f64 = 12.0;
/// Records that are written at once.
const BATCH: usize = 1 << 16;

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn bench() -> Result<()> {
    let largest = match std::env::args().nth(1) {
        None => 8,
        Some(word) => match word.parse() {
            Ok(power @ 6..=9) => power,
            _ => bail!("`{word}` is not a power of ten from 6 to 9"),
        },
    };
    println!(
        "| events | from | seconds | of them predicting | million events/s | growth | anomalies | peak MB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut last = None;
    for power in 6..=largest {
        let n = 10_u64.pow(power);
        let start = seconds()?;
        for _ in 0..2 {
            Stream::new(n).for_each(|event| {
                black_box(event);
            });
        }
        let making = seconds()? - start;
        let start = seconds()?;
        let reading = read(|| Ok(Stream::new(n).map(Ok)))?;
        let took = seconds()? - start - making;
        row(n, "generator", took, last, &reading)?;
        last = Some(took);
    }
    let mut last = None;
    for power in 6..=largest.min(7) {
        let n = 10_u64.pow(power);
        let directory = TempDir::new()?;
        let path = directory.path().join("trace");
        let mut writer = Writer::create(&path)?;
        let mut batch = Vec::with_capacity(BATCH + 2);
        for event in Stream::new(n) {
            records(&event, &mut batch);
            if batch.len() >= BATCH {
                writer.push(0, &batch)?;
                batch.clear();
            }
        }
        writer.push(0, &batch)?;
        writer.finish(&run())?;
        let start = seconds()?;
        let trace = Trace::open(&path)?;
        let reading = read(|| Ok(trace.events().map(|event| Ok(event?))))?;
        let took = seconds()? - start;
        row(n, "trace file", took, last, &reading)?;
        last = Some(took);
    }
    println!(
        "\ntargets: {MILLIONS_PER_S_MIN} million events/s from a trace file, growth at most {GROWTH_MAX}"
    );
    Ok(())
}

/// Reads events twice, as a hunt does, and predicts; how many anomalies there are.
fn read<I: Iterator<Item = Result<Event>>>(events: impl Fn() -> Result<I>) -> Result<Reading> {
    let mut sharing = Sharing::default();
    for event in events()? {
        sharing.push(&event?);
    }
    let (mut scan, mut observed) = (Scan::default(), Observed::default());
    for event in events()? {
        let event = event?;
        scan.push(&event, &sharing);
        observed.push(&event, &sharing);
    }
    black_box(observed.sequences.len());
    let model = scan.finish();
    let start = seconds()?;
    let n_anomalies = predict(&model, &built_in()).len();
    Ok(Reading { n_anomalies, predicting: seconds()? - start })
}

/// What came of reading.
struct Reading {
    n_anomalies: usize,
    /// Seconds of it for the prediction.
    predicting: f64,
}

fn row(n: u64, from: &str, took: f64, last: Option<f64>, reading: &Reading) -> Result<()> {
    let growth = last.map_or_else(|| "".to_owned(), |last| format!("{:.1}", took / last));
    let rate = n as f64 / took / 1e6;
    let memory = peak_bytes()? / 1_000_000;
    let Reading { n_anomalies, predicting } = reading;
    println!(
        "| {n} | {from} | {took:.2} | {predicting:.2} | {rate:.1} | {growth} | {n_anomalies} | {memory} |"
    );
    Ok(())
}

/// A run that never was.
fn run() -> Run {
    Run {
        command: vec!["synthetic".to_owned()],
        directory: "/".to_owned(),
        mode: Mode::Controlled,
        policy: None,
        seed: 0,
        modules: Vec::new(),
        threads: Vec::new(),
        ending: None,
    }
}

/// Processor seconds of this process.
fn seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("no processor time")?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6)
}

fn peak_bytes() -> Result<u64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("no memory figures")?;
    // In kilobytes: getrusage(2).
    Ok(usage.max_rss() as u64 * 1024)
}
