//! Executes the target, and collects what a run gives while it goes on.

use anyhow::Result;
use raddle_analysis::localize::collect::{Collector, Settings};
use raddle_analysis::localize::recall::recall;
use raddle_analysis::localize::window;
use raddle_trace::control::{Mode, State};
use raddle_trace::event::{Batch, Decoder, Event, LockOp, Op};
use raddle_trace::file::WriteError;
use raddle_trace::history::WINDOW_MAX;
use raddle_trace::id::ThreadId;
use raddle_trace::merge::Merge;
use raddle_trace::record::Lock;
use raddle_trace::run::Run;
use raddle_trial::outcome::ThreadAt;
use raddle_trial::verdict::{Failure, Verdict};
use raddle_trial::{Delivery, End, Outcome, Plan, Sink, histories};

use super::laps::Teller;
use super::sample::{Fail, How, Sample};
use crate::clip;
use crate::explain::explain;
use crate::hunt::failure::Signature;
use crate::hunt::team::{Judged, Team};

/// Steps of a run whose records are looked at all the same.
const DETAILED_MAX: u64 = 50_000_000;

/// Takes events as they come.
struct Gather {
    collector: Collector,
    /// Loops are to be told once modules are known, when the first records come.
    wants_laps: bool,
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

impl Gather {
    fn new(collector: Collector, wants_laps: bool, mode: Mode) -> Self {
        let order = match mode {
            Mode::Controlled => Order::Given(Decoder::new(ThreadId(0))),
            Mode::Free => Order::Merged(Merge::default()),
        };
        Self { collector, wants_laps, order, is_broken: false }
    }

    /// The run is over; none if its records make no sense.
    fn finish(mut self) -> Option<Collector> {
        if let Order::Merged(merge) = self.order {
            merge.finish(|event| self.collector.push(event));
        }
        (!self.is_broken).then_some(self.collector)
    }
}

impl Sink for Gather {
    fn describe(&mut self, run: &Run) -> Result<(), WriteError> {
        if std::mem::take(&mut self.wants_laps) {
            self.collector.tell_laps(Box::new(Teller::new(run)));
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

/// One run; none if it cannot be judged.
///
/// The target itself keeps what happens at each place of memory, which is fast. A run that has
/// failed is executed once more, with all of its records, unless they are too many: of such a run
/// more is to be told, and in the order in which it happened.
pub(crate) fn gather(
    team: &Team,
    how: How,
    plan: &Plan,
    settings: Settings,
) -> Result<(Judged, Option<Sample>)> {
    if how.with_laps || settings.window > WINDOW_MAX {
        return in_detail(team, how, plan, settings);
    }
    let mut histories = None;
    let judged = team.execute(plan, Delivery::Histories(kept(settings), &mut histories))?;
    let Some(histories) = histories else { return in_detail(team, how, plan, settings) };
    let n_steps = judged.execution.outcome.n_steps;
    let failure = match &judged.verdict {
        Verdict::Unjudged => return Ok((judged, None)),
        Verdict::Pass => None,
        Verdict::Fail(failure) => {
            let fail = fail(&judged, failure);
            if n_steps <= DETAILED_MAX && how.is_repeatable() {
                let again = in_detail(team, how.clone(), plan, settings)?;
                if again.1.as_ref().is_some_and(|sample| sample.failure.as_ref() == Some(&fail)) {
                    return Ok(again);
                }
            }
            Some(fail)
        }
    };
    let run = judged.execution.run.clone();
    let facts = recall(&histories, &run, n_steps);
    Ok((judged, Some(Sample { run, how, failure, facts })))
}

/// The same, as the target is told.
fn kept(settings: Settings) -> histories::Settings {
    histories::Settings {
        window: settings.window as u32,
        paper: settings.policy == window::Policy::Paper,
    }
}

/// One run from its records, in every detail.
pub(crate) fn in_detail(
    team: &Team,
    how: How,
    plan: &Plan,
    settings: Settings,
) -> Result<(Judged, Option<Sample>)> {
    let mut sink = Gather::new(Collector::new(settings), how.with_laps, plan.mode());
    // Also accesses that only repeat others: what comes last counts.
    let judged = team.execute(plan, Delivery::EveryRecord(&mut sink))?;
    let Some(mut collector) = sink.finish() else { return Ok((judged, None)) };
    let failure = match &judged.verdict {
        Verdict::Pass => None,
        Verdict::Fail(failure) => Some(fail(&judged, failure)),
        Verdict::Unjudged => return Ok((judged, None)),
    };
    let outcome = &judged.execution.outcome;
    for event in last_events(outcome) {
        collector.push(&event);
    }
    for at in outcome.threads.iter().filter(|at| outcome.end == End::Deadlock && is_blocked(at)) {
        if let Some((holder, _)) = at.holder {
            collector.block(at.thread, at.pc, at.object, holder);
        }
    }
    let run = judged.execution.run.clone();
    let facts = collector.finish(&run);
    Ok((judged, Some(Sample { run, how, failure, facts })))
}

fn fail(judged: &Judged, failure: &Failure) -> Fail {
    let outcome = clip::outcome(&judged.execution, &judged.verdict);
    Fail {
        key: Signature::of(&judged.execution, failure).key(),
        kind: failure.kind.as_str().to_owned(),
        detail: failure.detail.clone(),
        file: outcome.as_ref().and_then(|outcome| outcome.file.clone()),
        line: outcome.and_then(|outcome| outcome.line),
        text: match judged.execution.outcome.end.is_failure() {
            true => explain(&judged.execution, None),
            false => failure.detail.clone(),
        },
    }
}

/// What threads were about to do to synchronization objects when the run ended.
fn last_events(outcome: &Outcome) -> Vec<Event> {
    let waits = matches!(outcome.end, End::Deadlock | End::LostWakeup);
    let waiting = outcome.threads.iter().filter(|_| waits).filter_map(waiting);
    waiting.chain(misused(&outcome.end)).collect()
}

/// Whether a thread waits for a lock.
pub(crate) fn is_blocked(at: &ThreadAt) -> bool {
    matches!(at.state, State::Lock | State::ReadLock | State::WriteLock)
}

/// What a thread waits for in vain, unless it is told otherwise: a wait for a condition, or for a
/// lock that somebody has.
fn waiting(at: &ThreadAt) -> Option<Event> {
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

/// What a run was ended for.
fn misused(end: &End) -> Option<Event> {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use clap::Parser as _;
    use raddle_analysis::localize::facts::Facts;

    use super::*;
    use crate::args::{Command, Raddle};
    use crate::localize::sample::Policy;
    use crate::target;

    fn team(program: &Path) -> Result<Team> {
        let words = ["raddle".as_ref(), "localize".as_ref(), "--".as_ref(), program.as_os_str()];
        let Command::Localize(args) = Raddle::try_parse_from(words)?.command else {
            unreachable!("it says localize");
        };
        let (mut launch, _) = target::launch(&args.target)?;
        target::prepare()?;
        target::isolate(&mut launch)?;
        launch.timeout = Some(Duration::from_secs(20));
        let expected = target::expected(&args.expected)?.unwrap_or_default();
        Ok(Team::new(launch, expected, Some(1), usize::MAX, Duration::MAX))
    }

    /// Those that are to be localized, those of `hunt` that are about synchronization objects, and
    /// one that is killed.
    fn programs() -> Vec<PathBuf> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let of = |directory: &str, starts: &[&str]| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(tests.join(directory)).expect("a directory");
            let names = entries.map(|entry| entry.expect("an entry").path());
            let is_one = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.ends_with(".c") && starts.iter().any(|start| name.starts_with(start))
            };
            names.filter(is_one).collect()
        };
        let mut paths =
            [of("localize", &[""]), of("hunt", &["destroy_", "sem_", "wakeup_"])].concat();
        paths.sort();
        paths.push(tests.join("programs/crash_killed.c"));
        paths
    }

    /// The patterns and pairs of one that the other has not.
    fn missing(one: &Facts, other: &Facts) -> Vec<String> {
        let patterns = |facts: &Facts| -> BTreeSet<_> {
            facts.patterns.iter().map(|fact| fact.pattern.clone()).collect()
        };
        let pairs =
            |facts: &Facts| -> BTreeSet<_> { facts.pairs.iter().map(|fact| fact.pair).collect() };
        let patterns = &patterns(one) - &patterns(other);
        let pairs = &pairs(one) - &pairs(other);
        patterns
            .iter()
            .map(|pattern| format!("{pattern:?}"))
            .chain(pairs.iter().map(|pair| format!("{pair:?}")))
            .collect()
    }

    /// What a run left, from its histories and from its records.
    fn both(team: &Team, how: &How, settings: Settings) -> (Facts, Facts) {
        let plan = how.plan(&Plan::default());
        let mut histories = None;
        let delivery = Delivery::Histories(kept(settings), &mut histories);
        let judged = team.execute(&plan, delivery).expect("a run");
        let run = &judged.execution.run;
        let facts = recall(&histories.expect("histories"), run, 0);
        let (_, sample) = in_detail(team, how.clone(), &plan, settings).expect("a run");
        (facts, sample.expect("a run that is judged").facts)
    }

    #[test]
    fn free_threads_that_have_only_one_order_tell_the_same_as_controlled_ones() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let team = team(&tests.join("programs/sem_handed_over.c")).expect("a target");
        let settings = Settings::default();
        let how = |policy| How { seed: 1, policy, with_laps: false };
        let (_, expected) = both(&team, &how(Policy::Random), settings);
        assert!(expected.pairs.len() > 20 && expected.patterns.len() > 20);
        for delay in [None, Some((0.001, 30)), Some((0.1, 3))] {
            let (kept, exact) = both(&team, &how(Policy::Free { delay }), settings);
            for facts in [kept, exact] {
                assert_eq!(missing(&expected, &facts), Vec::<String>::new());
                assert_eq!(missing(&facts, &expected), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn histories_and_records_tell_the_same() {
        let settings = [
            Settings::default(),
            Settings { window: 3, ..Settings::default() },
            Settings { policy: window::Policy::Paper, ..Settings::default() },
            Settings { window: 6, policy: window::Policy::Paper },
        ];
        let mut wrong = Vec::new();
        let mut n_pairs = 0;
        for program in programs() {
            let name = program.file_name().expect("a name").to_string_lossy().into_owned();
            let team = team(&program).expect("a target");
            for (seed, settings) in (0..).zip(settings) {
                let policy = if seed % 2 == 0 { Policy::Random } else { Policy::Pos };
                let how = How { seed, policy, with_laps: false };
                let plan = how.plan(&Plan { n_steps_max: Some(10_000_000), ..Plan::default() });
                let mut histories = None;
                let delivery = Delivery::Histories(kept(settings), &mut histories);
                let judged = team.execute(&plan, delivery).expect("a run");
                // What threads were about to do is told by the records alone.
                if !last_events(&judged.execution.outcome).is_empty() {
                    continue;
                }
                let kept = recall(&histories.expect("histories"), &judged.execution.run, 0);
                let (_, sample) = in_detail(&team, how, &plan, settings).expect("the same run");
                let exact = sample.expect("a run that is judged").facts;
                let (lost, made_up) = (missing(&exact, &kept), missing(&kept, &exact));
                if !lost.is_empty() || !made_up.is_empty() {
                    wrong.push(format!("{name} {seed}: lost {lost:#?}, made up {made_up:#?}"));
                }
                n_pairs += kept.pairs.len();
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(n_pairs > 0);
    }
}
