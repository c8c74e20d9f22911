//! Executes the target, and collects what a run gives while it goes on.

use anyhow::Result;
use raddle_analysis::localize::collect::{Collector, Settings};
use raddle_trace::control::Mode;
use raddle_trace::event::{Batch, Decoder, Event, LockOp, Op};
use raddle_trace::file::{Trace, WriteError, Writer};
use raddle_trace::id::ThreadId;
use raddle_trace::record::Lock;
use raddle_trace::run::Run;
use raddle_trial::verdict::Verdict;
use raddle_trial::{Delivery, End, Plan, Sink};
use tempfile::TempDir;

use super::laps::Teller;
use super::sample::{Fail, How, Sample};
use crate::clip;
use crate::explain::explain;
use crate::hunt::failure::Signature;
use crate::hunt::team::{Judged, Team};

/// Takes events as they come.
struct Gather {
    collector: Collector,
    /// Loops are to be told once modules are known, when the first records come.
    wants_laps: bool,
    decoder: Decoder,
    /// Records that make no sense: the target has written over them.
    is_broken: bool,
}

impl Sink for Gather {
    fn describe(&mut self, run: &Run) -> Result<(), WriteError> {
        if std::mem::take(&mut self.wants_laps) {
            self.collector.tell_laps(Box::new(Teller::new(run)));
        }
        Ok(())
    }

    fn push(&mut self, _: u32, batch: &Batch<'_>) -> Result<(), WriteError> {
        for &record in batch.records {
            match self.decoder.push(record) {
                Ok(Some(event)) => self.collector.push(&event),
                Ok(None) => {}
                Err(_) => self.is_broken = true,
            }
        }
        Ok(())
    }
}

/// One run; none if it cannot be judged.
pub(crate) fn gather(
    team: &Team,
    how: How,
    plan: &Plan,
    settings: Settings,
) -> Result<(Judged, Option<Sample>)> {
    let collector = Collector::new(settings);
    let (judged, mut collector) = match plan.mode() {
        Mode::Controlled => {
            let decoder = Decoder::new(ThreadId(0));
            let wants_laps = how.with_laps;
            let mut sink = Gather { collector, wants_laps, decoder, is_broken: false };
            let delivery = match how.with_laps {
                true => Delivery::EveryRecord(&mut sink),
                false => Delivery::Records(&mut sink),
            };
            let judged = team.execute(plan, delivery)?;
            if sink.is_broken {
                return Ok((judged, None));
            }
            (judged, sink.collector)
        }
        // Each thread has a stream of its own: they are merged by time when all are complete.
        Mode::Free => free(team, plan, collector)?,
    };
    let failure = match &judged.verdict {
        Verdict::Pass => None,
        Verdict::Fail(failure) => {
            let outcome = clip::outcome(&judged.execution, &judged.verdict);
            Some(Fail {
                key: Signature::of(&judged.execution, failure).key(),
                kind: failure.kind.as_str().to_owned(),
                detail: failure.detail.clone(),
                file: outcome.as_ref().and_then(|outcome| outcome.file.clone()),
                line: outcome.and_then(|outcome| outcome.line),
                text: match judged.execution.outcome.end.is_failure() {
                    true => explain(&judged.execution, None),
                    false => failure.detail.clone(),
                },
            })
        }
        Verdict::Unjudged => return Ok((judged, None)),
    };
    if let Some(event) = last_event(&judged.execution.outcome.end) {
        collector.push(&event);
    }
    let run = judged.execution.run.clone();
    let facts = collector.finish(&run);
    Ok((judged, Some(Sample { run, how, failure, facts })))
}

/// What a thread was about to do to a synchronization object when the run was ended for it.
fn last_event(end: &End) -> Option<Event> {
    let End::Misuse { message, place } = end else { return None };
    let kind = Lock::Mutex;
    let op = match message.split_once(' ')?.0 {
        "signals" => Op::CondSignal { cond: place.addr, n_woken: 0 },
        "posts" => Op::SemPost(place.addr),
        "destroys" => Op::Destroy { object: place.addr, kind },
        "locks" => Op::Acquire(LockOp { lock: place.addr, kind, shared: false, tried: false }),
        _ => return None,
    };
    Some(Event { thread: place.thread, pc: place.pc, op })
}

fn free(team: &Team, plan: &Plan, mut collector: Collector) -> Result<(Judged, Collector)> {
    let directory = TempDir::with_prefix("raddle-localize-")?;
    let path = directory.path().join("trace");
    let mut writer = Writer::create(&path)?;
    let judged = team.execute(plan, Delivery::Records(&mut writer))?;
    writer.finish(&judged.execution.run)?;
    let trace = Trace::open(&path)?;
    collector.tell_laps(Box::new(Teller::new(trace.run())));
    for event in trace.events() {
        collector.push(&event?);
    }
    Ok((judged, collector))
}
