//! `raddle run --verify`: the same run twice, compared event by event.

use anyhow::Result;
use raddle_report::events;
use raddle_report::symbols::name::Namer;
use raddle_trace::event::Event;
use raddle_trace::file::{Trace, Writer};
use raddle_trial::{Delivery, Execution, Launch, Plan, execute};
use tempfile::TempDir;

use crate::exit::Exit;
use crate::{run, say, target};

pub(crate) fn verify(mut launch: Launch, plan: &Plan, again: &str) -> Result<Exit> {
    run::needs_control("--verify", plan)?;
    target::isolate(&mut launch)?;
    let directory = TempDir::with_prefix("raddle-verify-")?;
    let first = record(&launch, plan, &directory, FIRST)?;
    let second = record(&launch, plan, &directory, "second")?;
    run::relay(&first.execution)?;
    for recorded in [&first, &second] {
        if recorded.execution.outcome.end.is_unjudged() {
            return run::tell(&recorded.execution, None, None, again);
        }
    }
    let pair = [(&first.execution, &first.trace), (&second.execution, &second.trace)];
    if let Some(difference) = difference(pair)? {
        say::news(&difference);
        return Ok(Exit::Unjudged);
    }
    eprintln!("raddle: both runs did the same {} events", first.n_events);
    run::tell(&first.execution, Some(&directory.path().join(FIRST)), None, again)
}

const FIRST: &str = "first";

/// A run with its trace.
struct Recorded {
    execution: Execution,
    trace: Trace,
    n_events: u64,
}

fn record(launch: &Launch, plan: &Plan, directory: &TempDir, name: &str) -> Result<Recorded> {
    let path = directory.path().join(name);
    let mut writer = Writer::create(&path)?;
    let execution = execute(launch, plan, Delivery::EveryRecord(&mut writer))?;
    let summary = writer.finish(&execution.run)?;
    Ok(Recorded { execution, trace: Trace::open(&path)?, n_events: summary.events })
}

/// Where two runs differ first, in words.
pub(crate) fn difference(runs: [(&Execution, &Trace); 2]) -> Result<Option<String>> {
    let mut namers = runs.map(|(_, trace)| Namer::new(trace.run()));
    let [mut left, mut right] = runs.map(|(_, trace)| trace.events());
    // How many events each thread has performed.
    let mut n_events = rustc_hash::FxHashMap::default();
    for seq in 0.. {
        let pair = (left.next().transpose()?, right.next().transpose()?);
        let (Some(a), Some(b)) = pair else {
            if pair == (None, None) {
                break;
            }
            return Ok(Some(located(&mut namers, seq, pair, &n_events)));
        };
        if a != b {
            return Ok(Some(located(&mut namers, seq, (Some(a), Some(b)), &n_events)));
        }
        *n_events.entry(a.thread).or_insert(0u64) += 1;
        for namer in &mut namers {
            namer.push(seq, &a);
        }
    }
    let [a, b] = runs.map(|(execution, _)| execution.outcome.end.to_string());
    if a != b {
        return Ok(Some(format!("two runs of one seed ended differently: {a}, then {b}\n")));
    }
    let [first, second] = runs.map(|(execution, _)| &execution.stdout);
    if first != second {
        return Ok(Some("two runs of one seed did the same but printed different output\n".into()));
    }
    Ok(None)
}

fn located(
    namers: &mut [Namer; 2],
    seq: u64,
    (a, b): (Option<Event>, Option<Event>),
    n_events: &rustc_hash::FxHashMap<raddle_trace::id::ThreadId, u64>,
) -> String {
    let mut side = |index: usize, event: Option<Event>| match event {
        Some(event) => {
            namers[index].push(seq, &event);
            let number = n_events.get(&event.thread).copied().unwrap_or(0);
            format!("event {number} of its thread: {}", events::line(&namers[index], seq, &event))
        }
        None => "nothing more".to_owned(),
    };
    let (a, b) = (side(0, a), side(1, b));
    format!("two runs of one seed differ at event {seq}\n  first:  {a}\n  second: {b}\n")
}
