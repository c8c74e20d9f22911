//! The loop: base runs, predictions from them, attempts at what was predicted, and plain
//! exploration, until nothing new comes or the budget is used up.
//!
//! Rounds. In each, the most promising anomalies that were not tried yet are attempted, and
//! a few runs explore other orders; these are recorded and read as base runs, since a new
//! order may take a new way through the code. What is new is told by access pairs: when
//! several rounds bring none, and nothing is left to attempt, the hunt is over.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use raddle_analysis::anomaly::Identity;
use raddle_analysis::observed::Sites;
use raddle_analysis::pattern::Pattern;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trial::verdict::Verdict;
use raddle_trial::{Delivery, End, Order, Plan};
use rustc_hash::FxHashSet;
use tempfile::TempDir;

use super::attempt::{Attempt, attempt};
use super::base::{Base, base};
use super::conclude::Context;
use super::failure::Signature;
use super::team::{Judged, Team};

/// Attempts per round.
const ATTEMPTS: usize = 48;
/// Explorations per round.
const EXPLORATIONS: usize = 16;
/// Rounds without anything new before the hunt is over.
const IDLE_MAX: usize = 12;
/// A run of more events than this is not recorded just to explore.
const EVENTS_CHEAP: u64 = 50_000;
/// Runs that fail in the same way that are kept.
const HITS_MAX: usize = 12;

/// See the module.
pub(crate) struct Campaign<'a> {
    pub(crate) team: &'a Team,
    pub(crate) settings: &'a Settings,
    context: &'a Context<'a>,
    directory: TempDir,
    pub(crate) bases: Vec<Arc<Base>>,
    /// Anomalies that were not tried yet: rank, base, number.
    queue: Vec<(u32, usize, usize)>,
    known: FxHashSet<Identity>,
    /// Access pairs and triples of runs that passed.
    passing: FxHashSet<Sites>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) tally: Tally,
    n_traces: usize,
    seed: u64,
}

/// What a hunt was told to do.
pub(crate) struct Settings {
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) plan: Plan,
    pub(crate) keep_going: bool,
    pub(crate) quiet: bool,
}

/// Runs that fail in the same way.
pub(crate) struct Fault {
    pub(crate) signature: Signature,
    pub(crate) hits: Vec<Hit>,
    pub(crate) n: usize,
}

/// A run that failed.
pub(crate) struct Hit {
    pub(crate) judged: Judged,
    pub(crate) plan: Plan,
    pub(crate) source: Option<Source>,
}

impl Hit {
    /// How often threads took turns.
    pub(crate) fn n_stretches(&self) -> usize {
        self.judged.execution.schedule.as_ref().map_or(usize::MAX, |schedule| schedule.n_runs())
    }
}

/// The anomaly that a failing run was made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) base: usize,
    pub(crate) anomaly: usize,
    pub(crate) way: usize,
    pub(crate) followed: bool,
    pub(crate) alone: bool,
}

/// Counts, in PENELOPE's terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) predicted: usize,
    pub(crate) observed: usize,
    pub(crate) infeasible: usize,
    pub(crate) feasible: usize,
    pub(crate) failing: usize,
    pub(crate) explored: usize,
    pub(crate) failed: usize,
    pub(crate) bases: usize,
    /// Anomalies that happened without harm, or could not be made to.
    pub(crate) harmless: Vec<Harmless>,
}

/// An anomaly that did no harm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Harmless {
    pub(crate) base: usize,
    pub(crate) anomaly: usize,
    pub(crate) verdict: &'static str,
    /// Who left the schedule, and where.
    pub(crate) left: Option<(ThreadId, Pc)>,
}

impl<'a> Campaign<'a> {
    pub(crate) fn new(
        team: &'a Team,
        settings: &'a Settings,
        context: &'a Context<'a>,
    ) -> Result<Self> {
        Ok(Self {
            team,
            settings,
            context,
            directory: TempDir::with_prefix("raddle-hunt-")?,
            bases: Vec::new(),
            queue: Vec::new(),
            known: FxHashSet::default(),
            passing: FxHashSet::default(),
            faults: Vec::new(),
            tally: Tally::default(),
            n_traces: 0,
            seed: settings.plan.seed,
        })
    }

    /// The first base run, twice, so that one sees whether it repeats.
    pub(crate) fn first(&mut self) -> Result<Vec<Base>> {
        let (team, settings) = (self.team, self.settings);
        let paths = [self.trace_path(), self.trace_path()];
        let bases = team.all(&paths, |path, cpu| first(team, settings, path, cpu))?;
        Ok(bases.into_iter().flatten().collect())
    }

    /// The same, one after the other, behind one that finds what others have left.
    pub(crate) fn first_alone(&mut self) -> Result<Vec<Base>> {
        let paths = [self.trace_path(), self.trace_path()];
        first(self.team, self.settings, &paths[0], None)?;
        paths.iter().map(|path| first(self.team, self.settings, path, None)).collect()
    }

    /// Goes on from the first base run until the end.
    pub(crate) fn go_on(&mut self, first: Base) -> Result<()> {
        // A run that takes so much longer than the first one has no end.
        let longest = first.execution.outcome.wall * TIMES_MAX + GRACE;
        self.team.set_timeout(longest);
        let cheap = first.model.n_events <= EVENTS_CHEAP;
        let n_steps = first.execution.outcome.n_steps;
        self.add_base(first)?;
        let (mut idle, mut round) = (0, 0);
        let mut found_at = None;
        while !self.team.is_over() && idle < IDLE_MAX {
            let n_faults = self.faults.len();
            let mut new = self.attempts()?;
            new |= self.explore(round, n_steps, cheap)?;
            new |= self.faults.len() > n_faults;
            idle = if new { 0 } else { idle + 1 };
            round += 1;
            self.progress();
            // Once something is found, a little more is done to see it from its best side.
            if !self.faults.is_empty() && !self.settings.keep_going {
                let (runs, time) =
                    *found_at.get_or_insert((self.team.n_runs(), self.team.elapsed()));
                let enough = self.team.n_runs() > runs + RUNS_BEHIND
                    || self.team.elapsed() > time + TIME_BEHIND;
                if enough {
                    break;
                }
            }
        }
        self.clear_progress();
        Ok(())
    }

    /// Attempts the most promising anomalies. Whether there were any.
    fn attempts(&mut self) -> Result<bool> {
        self.queue.sort_unstable_by(|one, two| two.cmp(one));
        let from = self.queue.len().saturating_sub(ATTEMPTS);
        let batch: Vec<_> = self.queue.split_off(from).into_iter().rev().collect();
        let results = self.team.all(&batch, |&(_, base, anomaly), cpu| {
            let base = &self.bases[base];
            attempt(self.team, base, &base.anomalies[anomaly], cpu)
        })?;
        for (&(_, base, anomaly), result) in batch.iter().zip(results) {
            let harmless = |verdict, left| Harmless { base, anomaly, verdict, left };
            match result {
                Some(Attempt::Failing { judged, followed, alone, way }) => {
                    self.tally.failing += 1;
                    self.tally.feasible += usize::from(followed);
                    let source = Some(Source { base, anomaly, way, followed, alone });
                    let plan = self.bases[base].plan.clone();
                    self.fault(Hit { judged: *judged, plan, source })?;
                }
                Some(Attempt::Benign) => {
                    self.tally.feasible += 1;
                    self.tally.harmless.push(harmless("benign", None));
                }
                Some(Attempt::Infeasible(left)) => {
                    self.tally.infeasible += 1;
                    self.tally.harmless.push(harmless("infeasible", left));
                }
                None => self.tally.harmless.push(harmless("untested", None)),
            }
        }
        Ok(!batch.is_empty())
    }

    /// Runs under other orders. Whether they showed anything new.
    fn explore(&mut self, round: usize, n_steps: u64, cheap: bool) -> Result<bool> {
        let plans: Vec<_> = (0..EXPLORATIONS)
            .map(|n| {
                self.seed += 1;
                let order = match n % 4 {
                    0 => Order::Random,
                    1 | 3 => Order::Pct { depth: 1 + ((round + n / 4) % 4) as u32, n_steps },
                    _ => Order::Pos,
                };
                Plan { order, seed: self.seed, ..self.settings.plan.clone() }
            })
            .collect();
        self.tally.explored += plans.len();
        // Where recording is dear, one of them is recorded, and the others only tried.
        let n_recorded = if cheap { plans.len() } else { 2.min(plans.len()) };
        let recorded: Vec<_> =
            plans[..n_recorded].iter().map(|plan| (plan.clone(), self.trace_path())).collect();
        let bases = self.team.all(&recorded, |(plan, path), cpu| {
            base(self.team, &Plan { cpu, ..plan.clone() }, path, &self.settings.patterns)
        })?;
        let mut new = false;
        for base in bases.into_iter().flatten() {
            new |= self.add_base(base)?;
        }
        let tried = self.team.all(&plans[n_recorded..], |plan, cpu| {
            self.team.execute(&Plan { cpu, ..plan.clone() }, Delivery::Schedule)
        })?;
        for (judged, plan) in tried.into_iter().zip(&plans[n_recorded..]) {
            if let Some(judged) = judged
                && matches!(judged.verdict, Verdict::Fail(_))
            {
                self.fault(Hit { judged, plan: plan.clone(), source: None })?;
            }
        }
        Ok(new)
    }

    /// Takes in a base run. Whether it showed anything new.
    fn add_base(&mut self, mut base: Base) -> Result<bool> {
        self.tally.bases += 1;
        let index = self.bases.len();
        // What is known already is not kept twice.
        base.anomalies.retain(|anomaly| self.known.insert(anomaly.identity()));
        for (number, anomaly) in base.anomalies.iter().enumerate() {
            self.tally.predicted += 1;
            self.tally.observed += usize::from(anomaly.observed);
            self.queue.push((anomaly.rank, index, number));
        }
        let wanted = !base.anomalies.is_empty();
        let mut new = wanted;
        if base.verdict == Verdict::Pass {
            let n_known = self.passing.len();
            self.passing.extend(base.observed.sequences.iter().cloned());
            new |= self.passing.len() > n_known;
        }
        if let Verdict::Fail(_) = &base.verdict
            && !matches!(base.execution.outcome.end, End::Hang { .. } if self.faults.len() > 8)
        {
            let judged =
                Judged { execution: base.execution.clone(), verdict: base.verdict.clone() };
            self.fault(Hit { judged, plan: base.plan.clone(), source: None })?;
        }
        if wanted {
            self.bases.push(Arc::new(base));
        } else {
            // Its trace is not needed any more; what is left goes with the directory.
            let _ = std::fs::remove_file(&base.path);
        }
        Ok(new)
    }

    fn fault(&mut self, hit: Hit) -> Result<()> {
        let Verdict::Fail(failure) = &hit.judged.verdict else { return Ok(()) };
        self.tally.failed += 1;
        let signature = Signature::of(&hit.judged.execution, failure);
        let fault = match self.faults.iter_mut().find(|fault| fault.signature == signature) {
            Some(fault) => fault,
            None => {
                // Kept at once, as it is: whoever stops the hunt has it.
                let path = self.context.clip(self.faults.len());
                (self.context.keep)(&path, &hit.judged, &hit.plan, None)?;
                self.faults.push(Fault { signature, hits: Vec::new(), n: 0 });
                self.faults.last_mut().expect("it was just added")
            }
        };
        fault.n += 1;
        if fault.hits.len() < HITS_MAX || hit.source.is_some() && fault.hits.len() < 4 * HITS_MAX {
            fault.hits.push(hit);
        }
        Ok(())
    }

    fn trace_path(&mut self) -> PathBuf {
        self.n_traces += 1;
        self.directory.path().join(format!("{}.trace", self.n_traces))
    }

    /// Where a trace can be put that is needed for a moment.
    pub(crate) fn spare_path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn progress(&self) {
        if self.settings.quiet || !io::stderr().is_terminal() {
            return;
        }
        let Tally { predicted, infeasible, feasible, .. } = self.tally;
        // It is only for the eye.
        let _ = write!(
            io::stderr().lock(),
            "\r\x1b[K{:.0} s, {} runs: {predicted} anomalies predicted, {} to try, {feasible} happened, {infeasible} could not, {} failures",
            self.team.elapsed().as_secs_f64(),
            self.team.n_runs(),
            self.queue.len(),
            self.faults.len(),
        );
    }

    fn clear_progress(&self) {
        if !self.settings.quiet && io::stderr().is_terminal() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn first(team: &Team, settings: &Settings, path: &Path, cpu: Option<u32>) -> Result<Base> {
    let plan = Plan { order: Order::Rr, cpu, ..settings.plan.clone() };
    base(team, &plan, path, &settings.patterns)
}

/// How much longer than the first run another one may take.
const TIMES_MAX: u32 = 50;
const GRACE: Duration = Duration::from_secs(1);
/// How much more is done once something is found.
const RUNS_BEHIND: usize = 300;
const TIME_BEHIND: Duration = Duration::from_secs(8);
