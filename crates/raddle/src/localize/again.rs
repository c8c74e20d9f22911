//! A run once more, with a trace: to name what it did, and to change it.

use anyhow::{Result, ensure};
use raddle_analysis::localize::facts::Act;
use raddle_analysis::scan::Model;
use raddle_analysis::weave::{Hold, schedule, weave};
use raddle_analysis::witness::{Deed, Witness};
use raddle_trace::control::{Mode, Policy, State};
use raddle_trace::file::{Trace, Writer};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::run::Run;
use raddle_trial::verdict::{Failure, FailureKind, Verdict};
use raddle_trial::{Delivery, Order, Plan};
use rustc_hash::FxHashMap;
use tempfile::TempDir;

use super::gather::is_blocked;
use super::sample::Sample;
use crate::hunt::base;
use crate::hunt::failure::Signature;
use crate::hunt::team::{Judged, Team};

/// Accesses of a kind that are looked at for whether their order could be another one.
const OF_A_KIND: usize = 64;

/// See the module.
pub(crate) struct Again {
    plan: Plan,
    pub(crate) trace: Trace,
    model: Model,
    witnesses: Witnesses,
    /// What threads waited for in vain when it ended.
    waited: Vec<Addr>,
    /// Where they waited for each other's locks, in a circle.
    circle: Vec<Pc>,
    _directory: TempDir,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// No schedule could be followed.
    Impossible,
    Passes,
    /// It failed in the way that this key tells.
    Fails(String),
}

impl Again {
    /// Executes a sample's run again; none if it does not end as it did.
    pub(crate) fn new(team: &Team, sample: &Sample, like: &Plan) -> Result<Option<Self>> {
        let plan = sample.how.plan(like);
        if plan.mode() == Mode::Free {
            return Ok(None);
        }
        let directory = TempDir::with_prefix("raddle-localize-")?;
        let path = directory.path().join("trace");
        let mut writer = Writer::create(&path)?;
        // The same events, or their numbers would not fit.
        let delivery = match sample.facts.is_exact {
            true => Delivery::EveryRecord(&mut writer),
            false => Delivery::Records(&mut writer),
        };
        let judged = team.execute(&plan, delivery)?;
        writer.finish(&judged.execution.run)?;
        let build_id = judged.execution.run.modules.first().map(|module| &module.build_id[..]);
        ensure!(
            build_id.unwrap_or_default() == sample.build_id(),
            "the runs are of another build of the program; start anew"
        );
        let key = key(&judged.execution, &judged.verdict);
        if key != sample.failure.as_ref().map(|failure| failure.key.clone()) {
            return Ok(None);
        }
        let trace = Trace::open(&path)?;
        let (model, _, _) = base::read(&trace)?;
        let waited = waited(&judged);
        let witnesses = witnesses(&model);
        let circle = judged.execution.outcome.circle();
        let blocked = circle.iter().filter(|at| is_blocked(at));
        let circle = blocked.map(|at| at.pc).collect();
        Ok(Some(Self { plan, trace, model, witnesses, waited, circle, _directory: directory }))
    }

    /// The same run with these accesses in this order.
    pub(crate) fn with_order(
        &self,
        team: &Team,
        order: &[Witness],
        after: Policy,
        cpu: Option<u32>,
    ) -> Result<Change> {
        let mut change = Change::Impossible;
        for hold in Hold::ALL {
            let Ok(stretches) = weave(&self.model, order, hold) else { continue };
            let schedule = schedule(&self.model, &stretches, self.trace.run());
            let order = Order::Follow { schedule, strict: false, after };
            let plan = Plan { order, cpu, ..self.plan.clone() };
            let judged = team.execute(&plan, Delivery::Schedule)?;
            if let Some(key) = key(&judged.execution, &judged.verdict) {
                return Ok(Change::Fails(key));
            }
            let followed = judged.execution.outcome.left.is_none();
            if followed && judged.verdict == Verdict::Pass {
                change = Change::Passes;
            }
        }
        Ok(change)
    }

    /// Whether one access comes before another in any order of threads, since one of the two
    /// threads begins or awaits the other.
    pub(crate) fn is_fixed(&self, head: Act, tail: Act) -> bool {
        let [heads, tails] = [head, tail].map(|act| self.witnesses(act).iter().take(OF_A_KIND));
        let pairs = heads.flat_map(|head| tails.clone().map(move |tail| (head, tail)));
        let mut pairs = pairs
            .filter(|(head, tail)| head.thread != tail.thread && head.overlaps(tail))
            .peekable();
        pairs.peek().is_some()
            && pairs.all(|(head, tail)| {
                self.is_kin(head.thread, tail.thread) && self.model.ordered(head, tail)
            })
    }

    /// Whether one of two threads has created the other, or its creator.
    fn is_kin(&self, one: ThreadId, two: ThreadId) -> bool {
        let threads = &self.trace.run().threads;
        let name = |id: ThreadId| threads.iter().find(|thread| thread.id == id).map(|at| &at.name);
        let (Some(one), Some(two)) = (name(one), name(two)) else { return false };
        let above =
            |one: &str, two: &str| two.strip_prefix(one).is_some_and(|rest| rest.starts_with('/'));
        above(one, two) || above(two, one)
    }

    /// Whether an access is to the word of a lock.
    pub(crate) fn is_of_lock(&self, act: Act) -> bool {
        let witnesses = self.witnesses(act);
        !witnesses.is_empty()
            && witnesses.iter().all(|one| self.model.words.looks_like_lock(one.addr))
    }

    /// Whether an access is to what threads waited for in vain; of no matter if none did. In a
    /// circle of locks that is what each waited for, and nothing else.
    pub(crate) fn is_waited_for(&self, act: Act) -> bool {
        if !self.circle.is_empty() || act.deed == Deed::Block {
            let pc = pc(self.trace.run(), act.site);
            let is_in_circle = pc.is_some_and(|pc| self.circle.contains(&pc));
            return act.deed == Deed::Block && (is_in_circle || self.circle.is_empty());
        }
        let is_it = |one: &Witness| self.waited.contains(&one.addr);
        self.waited.is_empty() || self.witnesses(act).iter().any(is_it)
    }

    /// Accesses of a kind: of each thread the first and the last one.
    pub(crate) fn witnesses(&self, act: Act) -> &[Witness] {
        let pc = pc(self.trace.run(), act.site);
        pc.and_then(|pc| self.witnesses.get(&(pc, act.deed))).map_or(&[], Vec::as_slice)
    }
}

/// The accesses of a run that can be moved, by where and what they are.
type Witnesses = FxHashMap<(Pc, Deed), Vec<Witness>>;

fn witnesses(model: &Model) -> Witnesses {
    let kinds = &model.kinds;
    let singles = model.cells.iter().flat_map(|cell| &cell.singles);
    let singles =
        singles.flat_map(|one| [&one.first, &one.last].map(|when| kinds.witness(one.addr, when)));
    let mut all = Witnesses::default();
    for witness in singles.chain(model.waits.iter().copied()).chain(model.signals.iter().copied()) {
        all.entry((witness.pc, witness.deed)).or_default().push(witness);
    }
    for witnesses in all.values_mut() {
        witnesses.sort_by_key(|witness| witness.seq);
        witnesses.dedup_by_key(|witness| witness.seq);
    }
    all
}

/// What threads wait for in a deadlock, but for each other's ends.
fn waited(judged: &Judged) -> Vec<Addr> {
    let is_deadlock = |failure: &Failure| failure.kind == FailureKind::Deadlock;
    match &judged.verdict {
        Verdict::Fail(failure) if is_deadlock(failure) => {
            let ends = [State::Ended, State::Unborn, State::Join, State::Ready];
            let threads = judged.execution.outcome.threads.iter();
            threads.filter(|at| !ends.contains(&at.state)).map(|at| at.object).collect()
        }
        _ => Vec::new(),
    }
}

fn key(execution: &raddle_trial::Execution, verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Fail(failure) => Some(Signature::of(execution, failure).key()),
        Verdict::Pass | Verdict::Unjudged => None,
    }
}

/// Where a site is in a run.
pub(crate) fn pc(run: &Run, site: Site) -> Option<Pc> {
    run.modules
        .iter()
        .find(|module| Site::new(module.path.as_bytes(), site.offset()) == site)
        .map(|module| Pc(module.base + site.offset()))
}
