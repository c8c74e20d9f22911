//! Executes the target, and collects a sample while it runs.

use raddle_analysis::localize::collect::{Collector, Settings};
use raddle_analysis::localize::recall::recall;
use raddle_analysis::localize::window;
use raddle_code::elf::Files;
use raddle_trace::control::{Mode, State};
use raddle_trace::event::{Batch, Decoder, Event, LockOp, Op};
use raddle_trace::file::WriteError;
use raddle_trace::history::WINDOW_MAX;
use raddle_trace::id::{Addr, ThreadId};
use raddle_trace::merge::Merge;
use raddle_trace::misuse::Operation;
use raddle_trace::record::Lock;
use raddle_trace::run::Run;
use raddle_trial::outcome::ThreadAt;
use raddle_trial::verdict::{Failure, Verdict};
use raddle_trial::{Delivery, End, Outcome, Plan, Sink, Trial, histories};

use super::loops::LoopTracker;
use super::{Failed, Sample, Spec};
use crate::error::LabError;
use crate::executor::Runner;
use crate::recorded::{is_blocked, waiting};
use crate::signature::Signature;

/// Runs of more steps than this are not executed again for their records.
const DETAILED_MAX: u64 = 50_000_000;
/// Executions that a sample takes at most.
pub const RUNS_MAX: usize = 2;

/// Takes records as they come.
struct Intake<'a> {
    collector: Collector,
    /// Loops are wanted. They can be found once modules are known, when the first records come.
    wants_loops: Option<&'a Files>,
    order: Order,
    /// Records that make no sense: the target has written over them.
    is_broken: bool,
}

/// How events come into the order in which they happened.
enum Order {
    /// Under control they are.
    Given(Decoder),
    /// Free threads have a stream each.
    Merged(Merge),
}

impl<'a> Intake<'a> {
    fn new(collector: Collector, wants_loops: Option<&'a Files>, mode: Mode) -> Self {
        let order = match mode {
            Mode::Controlled => Order::Given(Decoder::new(ThreadId(0))),
            Mode::Free => Order::Merged(Merge::default()),
        };
        Self { collector, wants_loops, order, is_broken: false }
    }

    /// The run is over; none if its records make no sense.
    fn finish(mut self) -> Option<Collector> {
        if let Order::Merged(merge) = self.order {
            merge.finish(|event| self.collector.push(event));
        }
        (!self.is_broken).then_some(self.collector)
    }
}

impl Sink for Intake<'_> {
    fn describe(&mut self, run: &Run) -> Result<(), WriteError> {
        if let Some(files) = self.wants_loops.take() {
            self.collector.track_loops(Box::new(LoopTracker::new(run, files)));
        }
        Ok(())
    }

    fn push(&mut self, stream: u32, batch: &Batch<'_>) -> Result<(), WriteError> {
        match &mut self.order {
            Order::Given(decoder) => {
                for &record in batch.records {
                    match decoder.push(record) {
                        Ok(Some(event)) => self.collector.push(&event),
                        Ok(None) => {}
                        Err(_) => self.is_broken = true,
                    }
                }
            }
            Order::Merged(merge) => self.is_broken |= merge.push(stream, batch.records).is_err(),
        }
        Ok(())
    }

    fn round(&mut self) -> Result<(), WriteError> {
        if let Order::Merged(merge) = &mut self.order {
            merge.round(|event| self.collector.push(event));
        }
        Ok(())
    }
}

/// A run that was sampled.
pub struct Sampled {
    /// How it ended.
    pub trial: Trial,
    /// What is kept of it; none if it could not be judged.
    pub sample: Option<Sample>,
    /// Whether it failed, and did not fail when it was executed again.
    pub is_unsteady: bool,
}

/// Samples one run; none if nothing more may be executed.
///
/// The target itself keeps what happens at each place of memory, which is fast. A run that fails
/// is executed once more with all of its records, unless they are too many: more is wanted of such
/// a run, and in the order in which it happened.
pub fn collect(
    runner: &Runner<'_>,
    spec: &Spec,
    plan: &Plan,
    settings: Settings,
) -> Result<Option<Sampled>, LabError> {
    let in_histories = settings.window <= WINDOW_MAX && !plan.allow.reaches_freed_memory();
    if spec.with_loops || !in_histories {
        return in_detail(runner, spec, plan, settings);
    }
    let mut histories = None;
    let delivery = Delivery::Histories(kept(settings), &mut histories);
    let Some(trial) = runner.run(plan, delivery)? else { return Ok(None) };
    let Some(histories) = histories else { return in_detail(runner, spec, plan, settings) };
    let mut is_unsteady = false;
    let n_steps = trial.execution.outcome.n_steps;
    let failed = match &trial.verdict {
        Verdict::Unjudged | Verdict::Unanswered(_) => {
            return Ok(Some(Sampled { trial, sample: None, is_unsteady: false }));
        }
        Verdict::Pass => None,
        Verdict::Fail(failure) => {
            let failed = failed(runner, &trial, failure);
            if n_steps <= DETAILED_MAX && spec.is_repeatable() {
                let again = in_detail(runner, spec, plan, settings)?;
                let key = |again: &Sampled| again.sample.as_ref()?.key().map(ToOwned::to_owned);
                if let Some(again) = again {
                    if key(&again).as_ref() == Some(&failed.key) {
                        return Ok(Some(again));
                    }
                    is_unsteady = true;
                }
            }
            Some(failed)
        }
    };
    let run = trial.execution.run.clone();
    let facts = recall(&histories, &run, n_steps);
    let sample = Sample { run, spec: spec.clone(), failed, facts };
    Ok(Some(Sampled { trial, sample: Some(sample), is_unsteady }))
}

/// What the target is to keep.
#[must_use]
pub fn kept(settings: Settings) -> histories::Settings {
    histories::Settings {
        window: settings.window as u32,
        paper: settings.policy == window::Policy::Paper,
    }
}

/// Samples one run from its records, in every detail.
pub fn in_detail(
    runner: &Runner<'_>,
    spec: &Spec,
    plan: &Plan,
    settings: Settings,
) -> Result<Option<Sampled>, LabError> {
    let files = spec.with_loops.then_some(&runner.executor.subject.files);
    let mut intake = Intake::new(Collector::new(settings), files, plan.mode());
    // Also accesses that only repeat others: what comes last counts.
    let Some(trial) = runner.run(plan, Delivery::EveryRecord(&mut intake))? else {
        return Ok(None);
    };
    let Some(mut collector) = intake.finish() else {
        return Ok(Some(Sampled { trial, sample: None, is_unsteady: false }));
    };
    let failed = match &trial.verdict {
        Verdict::Pass => None,
        Verdict::Fail(failure) => Some(failed(runner, &trial, failure)),
        Verdict::Unjudged | Verdict::Unanswered(_) => {
            return Ok(Some(Sampled { trial, sample: None, is_unsteady: false }));
        }
    };
    let outcome = &trial.execution.outcome;
    for event in last_events(outcome) {
        collector.push(&event);
    }
    let deadlocked =
        if outcome.end == End::Deadlock { waiting(&outcome.threads) } else { Vec::new() };
    for at in deadlocked.into_iter().filter(|at| is_blocked(at)) {
        if let Some((holder, _)) = at.holder {
            collector.block(at.thread, at.pc, at.object, holder);
        }
    }
    let run = trial.execution.run.clone();
    let facts = collector.finish(&run);
    let sample = Sample { run, spec: spec.clone(), failed, facts };
    Ok(Some(Sampled { trial, sample: Some(sample), is_unsteady: false }))
}

fn failed(runner: &Runner<'_>, trial: &Trial, failure: &Failure) -> Failed {
    let is_own = &*runner.executor.subject.is_own;
    Failed {
        key: Signature::of(&trial.execution, failure, is_own).key(),
        failure: failure.clone(),
        outcome: trial.execution.outcome.clone(),
    }
}

/// What threads were about to do to synchronization objects when the run ended.
#[must_use]
pub fn last_events(outcome: &Outcome) -> Vec<Event> {
    let waits = matches!(outcome.end, End::Deadlock | End::LostWakeup);
    let waiting = if waits { waiting(&outcome.threads) } else { Vec::new() };
    waiting.into_iter().filter_map(awaited).chain(misused(&outcome.end)).collect()
}

/// What a thread waits for in vain, unless it is told otherwise: a wait for a condition, or for a
/// lock that somebody has.
fn awaited(at: &ThreadAt) -> Option<Event> {
    if is_blocked(at) && at.holder.is_some() {
        return None;
    }
    let lock = |kind, shared| LockOp { lock: at.object, kind, shared, tried: false };
    let op = match at.state {
        State::Semaphore => Op::SemWait { semaphore: at.object, tried: false },
        State::Lock => Op::Acquire(lock(Lock::Mutex, false)),
        State::ReadLock => Op::Acquire(lock(Lock::RwLock, true)),
        State::WriteLock => Op::Acquire(lock(Lock::RwLock, false)),
        _ => return None,
    };
    Some(Event { thread: at.thread, pc: at.pc, op })
}

/// What a run was ended for, unless it is an event of the run already.
fn misused(end: &End) -> Option<Event> {
    let End::Misuse { misuse, place } = end else { return None };
    let kind = misuse.object;
    let lock = |shared, tried| LockOp { lock: place.addr, kind, shared, tried };
    let op = match misuse.operation {
        Operation::Lock => Op::Acquire(lock(false, false)),
        Operation::ReadLock => Op::Acquire(lock(true, false)),
        Operation::TryLock => Op::Acquire(lock(false, true)),
        Operation::TryReadLock => Op::Acquire(lock(true, true)),
        Operation::Unlock | Operation::WaitWith => Op::Release(lock(false, false)),
        Operation::Wait => waited(kind, place.addr),
        Operation::TryWait => Op::SemWait { semaphore: place.addr, tried: true },
        Operation::Signal => Op::CondSignal { cond: place.addr, n_woken: 0 },
        Operation::Broadcast => Op::CondBroadcast { cond: place.addr, n_woken: 0 },
        Operation::Post => Op::SemPost(place.addr),
        Operation::Value => Op::SemAsk(place.addr),
        Operation::Destroy => Op::Destroy { object: place.addr, kind },
        // Recorded before the objects in the block are looked at.
        Operation::Free => return None,
    };
    Some(Event { thread: place.thread, pc: place.pc, op })
}

/// A wait for an object of this kind, as an event.
fn waited(kind: Lock, object: Addr) -> Op {
    match kind {
        Lock::Cond => Op::CondWait { cond: object, mutex: Addr(0) },
        Lock::Barrier => Op::BarrierEnter(object),
        Lock::Semaphore => Op::SemWait { semaphore: object, tried: false },
        Lock::Mutex | Lock::RwLock | Lock::Spin | Lock::Annotated => {
            Op::Acquire(LockOp { lock: object, kind, shared: false, tried: false })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_misuse_has_its_event() {
        use raddle_trace::id::Pc;
        use raddle_trace::misuse::{Fault, Misuse};
        use raddle_trace::record::Kind;
        use raddle_trial::outcome::Place;

        let place = Place { thread: ThreadId(2), pc: Pc(3), addr: Addr(0x5000) };
        for operation in (0..=u8::MAX).filter_map(Operation::from_u8) {
            let misuse = Misuse { operation, object: Lock::Semaphore, fault: Fault::Destroyed };
            let event = misused(&End::Misuse { misuse, place });
            let kind = event.map(|event| {
                assert_eq!((event.thread, event.pc), (place.thread, place.pc));
                event.op.kind()
            });
            let wanted = match operation {
                Operation::Lock | Operation::ReadLock => Some(Kind::Acquire),
                Operation::TryLock | Operation::TryReadLock => Some(Kind::Acquire),
                Operation::Unlock | Operation::WaitWith => Some(Kind::Release),
                Operation::Wait | Operation::TryWait => Some(Kind::SemWait),
                Operation::Value => Some(Kind::SemAsk),
                Operation::Post => Some(Kind::SemPost),
                Operation::Signal => Some(Kind::CondSignal),
                Operation::Broadcast => Some(Kind::CondBroadcast),
                Operation::Destroy => Some(Kind::Destroy),
                Operation::Free => None,
            };
            assert_eq!(kind, wanted, "{operation:?}");
        }
    }
}
