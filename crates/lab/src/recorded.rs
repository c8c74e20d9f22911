//! Recorded runs: executed with a trace, and read.

use std::sync::{Arc, OnceLock};

use raddle_analysis::localize::facts::SiteAccess;
use raddle_analysis::model::Model;
use raddle_analysis::observed::Observed;
use raddle_analysis::reading::Reading;
use raddle_analysis::sharing::GRANULE_BITS;
use raddle_analysis::witness::{AccessKind, Witness};
use raddle_trace::control::State;
use raddle_trace::event::{Event, Op};
use raddle_trace::failure::FailureKind;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::run::Run;
use raddle_trial::outcome::{ThreadAt, cycle};
use raddle_trial::verdict::Verdict;
use raddle_trial::{Delivery, Order, Plan, Trial};
use rustc_hash::FxHashMap;

use crate::error::LabError;
use crate::executor::Runner;

/// Accesses of one kind that are looked at when asking whether their order could be different.
const OF_A_KIND_MAX: usize = 64;
/// How many of the reads before a failure are kept.
const LAST_READS_MAX: usize = 6;

/// A run with its trace, and what the trace implies.
pub struct Recorded {
    /// How it ended.
    pub trial: Trial,
    /// How it was executed, for runs in other orders.
    pub plan: Plan,
    /// All that it did.
    pub trace: Arc<Trace>,
    /// What could have happened in it.
    pub model: Model,
    /// What did happen in it.
    pub observed: Observed,
    /// Pieces of memory that threads shared.
    pub n_shared: u64,
    /// If it failed: the pieces of memory that the failing thread read last.
    pub last_reads: Vec<u64>,
    witnesses: OnceLock<Witnesses>,
}

/// Accesses of a run that can be moved, by site and kind.
type Witnesses = FxHashMap<(Pc, AccessKind), Vec<Witness>>;

/// How much of a run is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Repeated accesses are only counted.
    Counted,
    /// Each access.
    Every,
}

impl Recorded {
    /// Executes the target with a trace and reads it; none if nothing more may be executed.
    pub fn new(runner: &Runner<'_>, plan: &Plan, detail: Detail) -> Result<Option<Self>, LabError> {
        let mut writer = Writer::spool(&runner.executor.scratch()?)?;
        let delivery = match detail {
            Detail::Counted => Delivery::Records(&mut writer),
            Detail::Every => Delivery::EveryRecord(&mut writer),
        };
        let Some(trial) = runner.run(plan, delivery)? else { return Ok(None) };
        let trace = Arc::new(writer.into_trace(&trial.execution.run)?);
        let mut last_reads = LastReads::of(&trial);
        let Reading { model, observed, n_shared } =
            Reading::from_events(|| trace.events(), |event| last_reads.push(event))?;
        let (mut plan, last_reads) = (plan.clone(), last_reads.granules);
        // A run that follows a schedule does not tell.
        if !matches!(plan.order, Order::Follow { .. }) {
            plan.is_alone = !trial.execution.outcome.doubts.external;
        }
        let witnesses = OnceLock::new();
        Ok(Some(Self { trial, plan, trace, model, observed, n_shared, last_reads, witnesses }))
    }

    /// What ran.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.trial.execution.run
    }

    /// Accesses of a kind: the first and the last of each thread.
    #[must_use]
    pub fn witnesses(&self, access: SiteAccess) -> &[Witness] {
        let all = self.witnesses.get_or_init(|| witnesses(&self.model));
        let pc = self.run().pc(access.site);
        pc.and_then(|pc| all.get(&(pc, access.kind))).map_or(&[], Vec::as_slice)
    }

    /// Whether one access comes before another under any schedule, since one of the two threads
    /// creates or joins the other.
    #[must_use]
    pub fn is_fixed(&self, head: SiteAccess, tail: SiteAccess) -> bool {
        let [heads, tails] =
            [head, tail].map(|access| self.witnesses(access).iter().take(OF_A_KIND_MAX));
        let pairs = heads.flat_map(|head| tails.clone().map(move |tail| (head, tail)));
        let mut pairs = pairs
            .filter(|(head, tail)| head.thread != tail.thread && head.overlaps(tail))
            .peekable();
        pairs.peek().is_some()
            && pairs.all(|(head, tail)| {
                self.is_kin(head.thread, tail.thread) && self.model.ordered(head, tail)
            })
    }

    /// Whether one of two threads is an ancestor of the other.
    fn is_kin(&self, one: ThreadId, two: ThreadId) -> bool {
        self.is_ancestor(one, two) || self.is_ancestor(two, one)
    }

    fn is_ancestor(&self, old: ThreadId, young: ThreadId) -> bool {
        let threads = &self.trial.execution.outcome.threads;
        let parent = |thread: &ThreadId| threads.get(thread.0 as usize)?.parent;
        std::iter::successors(parent(&young), parent).any(|ancestor| ancestor == old)
    }

    /// Whether an access is to the word of a lock.
    #[must_use]
    pub fn is_of_lock(&self, access: SiteAccess) -> bool {
        let witnesses = self.witnesses(access);
        !witnesses.is_empty()
            && witnesses.iter().all(|one| self.model.words.looks_like_lock(one.addr))
    }

    /// Whether an access is to something that threads were blocked on when the run ended. True of
    /// every access if none was blocked. In a lock cycle only the waits that close it count.
    #[must_use]
    pub fn is_waited_for(&self, access: SiteAccess) -> bool {
        let outcome = &self.trial.execution.outcome;
        let cycle: Vec<Pc> =
            outcome.cycle().iter().filter(|at| is_blocked(at)).map(|at| at.pc).collect();
        if !cycle.is_empty() || access.kind == AccessKind::Block {
            let is_in_cycle = self.run().pc(access.site).is_some_and(|pc| cycle.contains(&pc));
            return access.kind == AccessKind::Block && (is_in_cycle || cycle.is_empty());
        }
        let waited = waited(&self.trial);
        waited.is_empty() || self.witnesses(access).iter().any(|one| waited.contains(&one.addr))
    }
}

/// Whether a thread waits for a lock.
#[must_use]
pub fn is_blocked(at: &ThreadAt) -> bool {
    matches!(at.state, State::Lock | State::ReadLock | State::WriteLock)
}

/// The threads that make up a deadlock, by number: those of the lock cycle if there is one, or
/// else all that wait for something other than another thread's end. Others may wait for what
/// the threads of a cycle hold.
#[must_use]
pub fn waiting(threads: &[ThreadAt]) -> Vec<&ThreadAt> {
    let mut waiting = cycle(threads);
    if waiting.is_empty() {
        waiting = threads.iter().collect();
    }
    waiting.retain(|at| match at.state {
        // Who waits for timers is a thread that raddle started.
        State::Ended | State::Unborn | State::Join | State::Ready | State::Timer => false,
        State::Lock
        | State::ReadLock
        | State::WriteLock
        | State::Cond
        | State::Semaphore
        | State::Barrier
        | State::Once
        | State::Futex
        | State::Sleep
        | State::Descriptor
        | State::Outside
        | State::SignalWait
        | State::Loader
        | State::Child => true,
    });
    waiting.sort_unstable_by_key(|at| at.thread);
    waiting
}

/// Whether a run passed although a lock cycle formed in it: other threads ended the program.
#[must_use]
pub fn has_cycle(trial: &Trial) -> bool {
    trial.verdict == Verdict::Pass && !cycle(&trial.execution.outcome.threads).is_empty()
}

/// What threads wait for in a deadlock, other than each other's end.
fn waited(trial: &Trial) -> Vec<Addr> {
    match trial.failure() {
        Some(failure) if failure.kind == FailureKind::Deadlock => {
            waiting(&trial.execution.outcome.threads).iter().map(|at| at.object).collect()
        }
        _ => Vec::new(),
    }
}

fn witnesses(model: &Model) -> Witnesses {
    let classes = &model.classes;
    let singles = model.cells.iter().flat_map(|cell| &cell.singles);
    let singles =
        singles.flat_map(|one| [&one.first, &one.last].map(|when| classes.witness(one.addr, when)));
    let mut all = Witnesses::default();
    for witness in singles.chain(model.waits.iter().copied()).chain(model.signals.iter().copied()) {
        all.entry((witness.pc, witness.kind)).or_default().push(witness);
    }
    for witnesses in all.values_mut() {
        witnesses.sort_by_key(|witness| witness.seq);
        witnesses.dedup_by_key(|witness| witness.seq);
    }
    all
}

/// What the thread that failed had read last: what it failed on is most often among it.
struct LastReads {
    /// None if the run did not fail.
    thread: Option<ThreadId>,
    /// The latest last.
    granules: Vec<u64>,
}

impl LastReads {
    fn of(trial: &Trial) -> Self {
        let place = trial.execution.outcome.end.place();
        let thread = trial.failure().map(|_| place.map_or(ThreadId(0), |place| place.thread));
        Self { thread, granules: Vec::new() }
    }

    fn push(&mut self, event: &Event) {
        if self.thread != Some(event.thread) {
            return;
        }
        let addr = match event.op {
            Op::Read(access) => access.addr,
            Op::Atomic(atomic) => atomic.addr,
            _ => return,
        };
        let granule = addr.0 >> GRANULE_BITS;
        self.granules.retain(|&other| other != granule);
        self.granules.push(granule);
        if self.granules.len() > LAST_READS_MAX {
            self.granules.remove(0);
        }
    }
}
