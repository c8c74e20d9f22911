//! What many executions may cost, and how many there were.
//!
//! One budget is shared by everything that a command executes: searching, explaining, minimizing.
//! So the limit on executions is a true limit and their count is the true count.
//!
//! **Deterministic.** Work that runs in parallel must not compete for what is left, or the same
//! hunt would end differently on a loaded machine. So executions are *granted* before work starts,
//! in the order of the work, as many as each item may need at most; what an item does not use
//! comes back when all are done (see [`Executor::all`](crate::executor::Executor::all)).
//!
//! **Shares.** [`Budget::hold_back`] keeps executions for what comes later: a search leaves enough
//! to explain what it finds.
//!
//! **Stopped.** When time is up, or the user interrupts, runs that go on are cut short
//! ([`raddle_trial::interrupt`]). They are executions that were not judged.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use raddle_trace::allow::Judgement;
use raddle_trace::id::{Pc, Site};
use raddle_trace::run::Run;
use raddle_trial::allowed::Lifted;
use raddle_trial::verdict::Verdict;
use raddle_trial::{Trial, interrupt};

use crate::remarks::{RemarkTallies, RemarkTally};

/// What a command may execute.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Executions.
    pub runs_max: usize,
    /// Time.
    pub time_max: Duration,
}

/// A command's executions: how many there may be, and how many there were.
#[derive(Debug)]
pub struct Budget {
    /// Not granted to anybody.
    left: AtomicUsize,
    /// Of those, kept for later.
    held_back: AtomicUsize,
    n_runs: AtomicUsize,
    n_failed: AtomicUsize,
    n_judged: AtomicUsize,
    n_cut_short: AtomicUsize,
    n_steps: AtomicU64,
    start: Instant,
    time_max: Duration,
    allowed: Mutex<Vec<AllowedTally>>,
    remarks: Mutex<RemarkTallies>,
}

/// How often a judgement was allowed in all executions.
#[derive(Clone, Debug)]
pub struct AllowedTally {
    /// The judgement.
    pub judgement: Judgement,
    /// How often.
    pub n: u64,
    /// In how many executions.
    pub n_runs: usize,
    /// Where an execution was allowed it first: of all executions, the place that comes first in the
    /// code, so that it does not depend on which execution is faster.
    pub pc: Pc,
    /// What knows this place's name.
    pub run: Run,
    site: Site,
}

impl Budget {
    /// A budget whose time starts now.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            left: AtomicUsize::new(limits.runs_max),
            held_back: AtomicUsize::new(0),
            n_runs: AtomicUsize::new(0),
            n_failed: AtomicUsize::new(0),
            n_judged: AtomicUsize::new(0),
            n_cut_short: AtomicUsize::new(0),
            n_steps: AtomicU64::new(0),
            start: Instant::now(),
            time_max: limits.time_max,
            allowed: Mutex::default(),
            remarks: Mutex::default(),
        }
    }

    /// What was allowed so far, by the number of the judgement.
    #[must_use]
    pub fn allowed(&self) -> Vec<AllowedTally> {
        self.tallies().clone()
    }

    fn tallies(&self) -> MutexGuard<'_, Vec<AllowedTally>> {
        // Tallies are changed as a whole, so whatever a panicking thread left is consistent.
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Mistakes so far that no execution failed by, in order of their kind and place.
    #[must_use]
    pub fn remarks(&self) -> Vec<RemarkTally> {
        self.remark_tallies().tallies.clone()
    }

    fn remark_tallies(&self) -> MutexGuard<'_, RemarkTallies> {
        // As above.
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executions so far.
    #[must_use]
    pub fn n_runs(&self) -> usize {
        self.n_runs.load(Ordering::Relaxed)
    }

    /// Executions so far that failed.
    #[must_use]
    pub fn n_failed(&self) -> usize {
        self.n_failed.load(Ordering::Relaxed)
    }

    /// Executions so far that were judged.
    #[must_use]
    pub fn n_judged(&self) -> usize {
        self.n_judged.load(Ordering::Relaxed)
    }

    /// Executions so far that could not be judged, with those that go on.
    #[must_use]
    pub fn n_not_judged(&self) -> usize {
        // Each is counted as one that has started first.
        let n_judged = self.n_judged();
        self.n_runs().saturating_sub(n_judged)
    }

    /// Of those, the ones that were cut short since time was up or the user interrupted.
    #[must_use]
    pub fn n_cut_short(&self) -> usize {
        self.n_cut_short.load(Ordering::Relaxed)
    }

    /// Steps of all executions so far.
    #[must_use]
    pub fn n_steps(&self) -> u64 {
        self.n_steps.load(Ordering::Relaxed)
    }

    /// Time so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// When time is up; none if it never is.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.start.checked_add(self.time_max)
    }

    /// Executions that there may still be, with those that are held back.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Executions that can be granted now.
    #[must_use]
    pub fn available(&self) -> usize {
        self.left().saturating_sub(self.held_back.load(Ordering::Relaxed))
    }

    /// From now on this many executions are kept for later.
    pub fn hold_back(&self, n: usize) {
        self.held_back.store(n, Ordering::Relaxed);
    }

    /// Whether the user wants us to stop.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        interrupt::signal().is_some()
    }

    /// Whether time is up, or the user wants us to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        interrupt::stopped().is_some() || self.elapsed() >= self.time_max
    }

    /// Whether nothing more can be executed now.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.available() == 0 || self.is_stopped()
    }

    /// Whether this share of the time is used up.
    #[must_use]
    pub fn is_past(&self, share: f64) -> bool {
        self.elapsed().as_secs_f64() >= share * self.time_max.as_secs_f64()
    }

    /// Grants up to `n` executions. Only the thread that hands out work calls this.
    pub(crate) fn grant(&self, n: usize) -> usize {
        let granted = n.min(self.available());
        self.left.fetch_sub(granted, Ordering::Relaxed);
        granted
    }

    /// Takes back what was granted and not used.
    pub(crate) fn give_back(&self, n: usize) {
        self.left.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts an execution that is about to start.
    pub(crate) fn count(&self) {
        self.n_runs.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what came of it.
    pub(crate) fn count_trial(&self, trial: &Trial) {
        let outcome = &trial.execution.outcome;
        self.n_steps.fetch_add(outcome.n_steps, Ordering::Relaxed);
        match trial.verdict {
            Verdict::Pass => {
                self.n_judged.fetch_add(1, Ordering::Relaxed);
            }
            Verdict::Fail(_) => {
                self.n_judged.fetch_add(1, Ordering::Relaxed);
                self.n_failed.fetch_add(1, Ordering::Relaxed);
            }
            Verdict::Unjudged | Verdict::Unanswered(_) => {
                self.n_cut_short.fetch_add(usize::from(trial.is_stopped()), Ordering::Relaxed);
            }
        }
        let run = &trial.execution.run;
        for lifted in &trial.execution.allowed {
            self.count_allowed(lifted, run);
        }
        self.remark_tallies().count(&trial.execution.remarks, run);
    }

    fn count_allowed(&self, lifted: &Lifted, run: &Run) {
        let Lifted { judgement, n, pc } = *lifted;
        let site = run.site(pc);
        let mut tallies = self.tallies();
        let at = tallies.partition_point(|tally| (tally.judgement as u8) < judgement as u8);
        match tallies.get_mut(at).filter(|tally| tally.judgement == judgement) {
            Some(tally) => {
                tally.n += n;
                tally.n_runs += 1;
                if site < tally.site {
                    (tally.site, tally.pc, tally.run) = (site, pc, run.clone());
                }
            }
            None => {
                let run = run.clone();
                tallies.insert(at, AllowedTally { judgement, n, n_runs: 1, pc, run, site });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::Mode;
    use raddle_trace::run::Module;

    use super::*;

    fn budget(runs_max: usize) -> Budget {
        Budget::new(Limits { runs_max, time_max: Duration::MAX })
    }

    #[test]
    fn no_more_is_granted_than_there_is() {
        let budget = budget(5);
        assert_eq!([budget.grant(3), budget.grant(3), budget.grant(3)], [3, 2, 0]);
        budget.give_back(1);
        assert_eq!((budget.left(), budget.is_over()), (1, false));
    }

    #[test]
    fn what_was_allowed_is_added_up() {
        let budget = budget(5);
        let module = Module {
            path: "/bank".to_owned(),
            build_id: String::new(),
            base: 0,
            low: 0,
            high: 0x1000,
        };
        let run = Run {
            command: Vec::new(),
            directory: String::new(),
            mode: Mode::Controlled,
            policy: None,
            seed: 0,
            modules: vec![module],
            threads: Vec::new(),
            ending: None,
        };
        for (judgement, n, pc) in [
            (Judgement::Misuse, 1, 0x300),
            (Judgement::UseAfterFree, 2, 0x200),
            (Judgement::UseAfterFree, 5, 0x100),
            (Judgement::UseAfterFree, 1, 0x400),
        ] {
            budget.count_allowed(&Lifted { judgement, n, pc: Pc(pc) }, &run);
        }
        let tally = |tally: &AllowedTally| (tally.judgement, tally.n, tally.n_runs, tally.pc.0);
        let tallies: Vec<_> = budget.allowed().iter().map(tally).collect();
        let uses = (Judgement::UseAfterFree, 8, 3, 0x100);
        assert_eq!(tallies, [uses, (Judgement::Misuse, 1, 1, 0x300)]);
    }

    #[test]
    fn what_is_held_back_is_granted_later() {
        let budget = budget(5);
        budget.hold_back(4);
        assert_eq!((budget.grant(3), budget.is_over()), (1, true));
        budget.hold_back(0);
        assert_eq!(budget.grant(9), 4);
    }
}
