//! How fast raddle predicts from a trace file, end to end.
//!
//! `cargo run --release -p raddle-bench --bin prediction` prints a table in Markdown, of traces
//! with 10^6, 10^7 and 10^8 events that no program performed ([`stream`] says what they are
//! like). With trace files as arguments it is about those, which `raddle record` may have
//! written.
//!
//! **What is counted.** All that `raddle predict` does to a trace file, and what a hunt does
//! with the result before it executes anything: reading and decoding the file for what is
//! shared (`sharing`), reading and decoding it again for what it implies (`scanning`), matching
//! patterns (`matching`), and making the schedules of the most promising hundred anomalies
//! (`weaving`): more than a hunt of that many runs can try. Not counted is what writing the
//! trace took, and names for the output.
//!
//! Each row is a process of its own, so that its memory can be told. Times are processor
//! seconds of one thread, since the machine may have other work.

mod stream;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use raddle_analysis::pattern::built_in;
use raddle_analysis::predict::predict;
use raddle_analysis::scan::Scan;
use raddle_analysis::sharing::Sharing;
use raddle_analysis::weave::{Hold, weave};
use raddle_trace::control::Mode;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::run::Run;
use tempfile::TempDir;

use crate::stream::{Stream, records};

/// Of a trace with ten million events, on one processor.
const MILLIONS_PER_S_MIN: f64 = 5.0;
/// Sizes of traces, as powers of ten.
const POWERS: [u32; 3] = [6, 7, 8];
/// Anomalies that get a schedule.
const N_WOVEN: usize = 100;
/// Records that are written at once.
const BATCH: usize = 1 << 16;

/// As the first argument: this process is for one row.
const ROW: &str = "--row";
/// As the first argument: only write a trace with so many events.
const WRITE: &str = "--write";

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
    let args: Vec<_> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [ROW, path] => row(Path::new(path)),
        [WRITE, n, path] => write(n.parse().context("no number of events")?, Path::new(path)),
        [] => {
            head();
            let directory = TempDir::new()?;
            for power in POWERS {
                let path = directory.path().join(format!("10^{power}"));
                write(10_u64.pow(power), &path)?;
                row_of(&path)?;
                std::fs::remove_file(&path)?;
            }
            println!(
                "\ntarget: {MILLIONS_PER_S_MIN} million events/s at 10^7, and growth that is linear"
            );
            Ok(())
        }
        files => {
            head();
            files.iter().try_for_each(|file| row_of(&PathBuf::from(file)))
        }
    }
}

/// Writes a trace of the stream.
fn write(n: u64, path: &Path) -> Result<()> {
    let mut writer = Writer::create(path)?;
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
    Ok(())
}

fn head() {
    println!(
        "| trace | MB | events | seconds | million events/s | sharing | scanning | matching | weaving | anomalies | woven | peak MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
}

/// A row, in a process of its own.
fn row_of(path: &Path) -> Result<()> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let status = Command::new(this).arg(ROW).arg(path).status()?;
    if !status.success() {
        bail!("no row for {}: {status}", path.display());
    }
    Ok(())
}

/// Reads a trace, predicts and makes schedules, as `raddle predict` and a hunt do it.
fn row(path: &Path) -> Result<()> {
    let start = seconds()?;
    let trace = Trace::open(path)?;
    let mut sharing = Sharing::default();
    for event in trace.events() {
        sharing.push(&event?);
    }
    let shared = seconds()?;
    let mut scan = Scan::new(&sharing);
    for event in trace.events() {
        scan.push(&event?);
    }
    let model = scan.finish();
    let scanned = seconds()?;
    let anomalies = predict(&model, &built_in());
    let matched = seconds()?;
    let promising = anomalies.iter().take(N_WOVEN);
    let n_woven = promising
        .filter(|anomaly| {
            let holds = Hold::ALL.iter().filter(|&&hold| hold != Hold::Anywhere);
            holds.into_iter().any(|&hold| weave(&model, &anomaly.ways[0], hold).is_ok())
        })
        .count();
    let woven = seconds()?;

    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let took = woven - start;
    println!(
        "| {name} | {} | {} | {took:.2} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {n_woven} | {} |",
        trace.bytes() / 1_000_000,
        model.n_events,
        model.n_events as f64 / took / 1e6,
        shared - start,
        scanned - shared,
        matched - scanned,
        woven - matched,
        anomalies.len(),
        peak_bytes()? / 1_000_000,
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
