//! Executes the target, several runs at a time, within a budget.
//!
//! Runs execute in parallel, one per processor, and share what is outside of the program. If
//! that disturbs them, [`Executor::go_one_by_one`] ends it.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use raddle_code::elf::Files;
use raddle_trace::id::Pc;
use raddle_trace::run::Run;
use raddle_trial::verdict::Expected;
use raddle_trial::{Delivery, Launch, Plan, Trial, processors};
use tempfile::TempDir;

use crate::budget::{Budget, Limits};
use crate::error::LabError;
use crate::progress::{Note, Progress, Sink};

/// Says whether a code address of a run is in the program's own code.
pub type IsOwn = dyn Fn(&Run, Pc) -> bool + Send + Sync;

/// What is executed, and what surrounds it.
pub struct Subject {
    /// How the target is started.
    pub launch: Launch,
    /// What makes a run pass.
    pub expected: Expected,
    /// How many runs at the same time; none for one per processor.
    pub jobs: Option<usize>,
    /// Which code is the program's own.
    pub is_own: Arc<IsOwn>,
    /// Module files, for what looks at machine code.
    pub files: Files,
}

/// Where temporary files are, for [`remove_scratch`].
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn scratch_directories() -> MutexGuard<'static, Vec<PathBuf>> {
    SCRATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of all executors, for a process that exits at once.
pub fn remove_scratch() {
    for directory in scratch_directories().drain(..) {
        // It may be gone already.
        let _ = std::fs::remove_dir_all(directory);
    }
}

/// Executes a target, several runs at a time.
pub struct Executor<'a> {
    /// What is executed.
    pub subject: Subject,
    /// What it may cost.
    pub budget: Arc<Budget>,
    progress: &'a Sink<'a>,
    processors: Vec<u32>,
    n_jobs: AtomicUsize,
    n_files: AtomicU64,
    directory: OnceLock<TempDir>,
}

impl<'a> Executor<'a> {
    /// Its time starts now.
    #[must_use]
    pub fn new(subject: Subject, limits: Limits, progress: &'a Sink<'a>) -> Self {
        let processors = processors();
        let n_jobs = subject.jobs.unwrap_or(processors.len()).max(1);
        Self {
            subject,
            budget: Arc::new(Budget::new(limits)),
            progress,
            processors,
            n_jobs: AtomicUsize::new(n_jobs),
            n_files: AtomicU64::new(0),
            directory: OnceLock::new(),
        }
    }

    /// Reports what is going on.
    pub fn report(&self, progress: Progress<'_>) {
        (self.progress)(progress);
    }

    /// How many runs go on at the same time.
    #[must_use]
    pub fn n_jobs(&self) -> usize {
        self.n_jobs.load(Ordering::Relaxed)
    }

    /// From now on there is one run at a time.
    pub fn go_one_by_one(&self) {
        self.n_jobs.store(1, Ordering::Relaxed);
        self.report(Progress::Note(Note::OneByOne));
    }

    /// A path for a temporary file that goes when the executor does.
    pub(crate) fn scratch(&self) -> Result<PathBuf, LabError> {
        let directory = match self.directory.get() {
            Some(directory) => directory,
            None => {
                let made = TempDir::with_prefix("raddle-").map_err(LabError::Scratch)?;
                scratch_directories().push(made.path().to_owned());
                self.directory.get_or_init(|| made)
            }
        };
        let number = self.n_files.fetch_add(1, Ordering::Relaxed);
        Ok(directory.path().join(number.to_string()))
    }

    /// A runner for up to `n` executions, one after the other, on any processor.
    pub fn alone(&self, n: usize) -> Runner<'_> {
        self.runner(self.budget.grant(n), None)
    }

    fn runner(&self, granted: usize, cpu: Option<u32>) -> Runner<'_> {
        Runner { executor: self, left: Cell::new(granted), cpu }
    }

    /// Does work for each item, several at a time, and gives the results in the order of the
    /// items; none for those that the budget did not reach. An item makes `most` executions at
    /// most.
    ///
    /// Which items are worked on does not depend on how fast they are: items are taken in waves,
    /// as many as the budget has room for if each makes as many executions as it may.
    pub fn all<T: Sync, R: Send>(
        &self,
        items: &[T],
        most: usize,
        work: impl Fn(&T, &Runner<'_>) -> Result<R, LabError> + Sync,
    ) -> Result<Vec<Option<R>>, LabError> {
        let mut results: Vec<Option<R>> = Vec::with_capacity(items.len());
        while results.len() < items.len() && !self.budget.is_over() {
            let n_whole = (self.budget.available() / most.max(1)).max(1);
            let rest = &items[results.len()..];
            let wave = &rest[..n_whole.min(rest.len())];
            results.extend(self.wave(wave, most, &work)?);
        }
        results.resize_with(items.len(), || None);
        Ok(results)
    }

    fn wave<T: Sync, R: Send>(
        &self,
        items: &[T],
        most: usize,
        work: &(impl Fn(&T, &Runner<'_>) -> Result<R, LabError> + Sync),
    ) -> Result<Vec<Option<R>>, LabError> {
        let grants: Vec<usize> = items.iter().map(|_| self.budget.grant(most)).collect();
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
        let n_jobs = self.n_jobs().min(items.len());
        let worked = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..n_jobs)
                .map(|job| {
                    // Two that share a processor would be slower than one after the other.
                    let cpu = Some(self.processors[job % self.processors.len()]);
                    let (next, results, grants) = (&next, &results, &grants);
                    scope.spawn(move || -> Result<(), LabError> {
                        loop {
                            let at = next.fetch_add(1, Ordering::Relaxed);
                            let Some(item) = items.get(at) else { return Ok(()) };
                            let runner = self.runner(grants[at], cpu);
                            if self.budget.is_stopped() {
                                // What was granted comes back with the runner.
                                continue;
                            }
                            let result = work(item, &runner)?;
                            let mut results =
                                results.lock().unwrap_or_else(PoisonError::into_inner);
                            results[at] = Some(result);
                        }
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
        });
        worked?;
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Executes the target as often as it was granted.
pub struct Runner<'a> {
    /// What is executed.
    pub executor: &'a Executor<'a>,
    left: Cell<usize>,
    cpu: Option<u32>,
}

impl Runner<'_> {
    /// One execution, judged; none if no more was granted, or time is up before it can be judged.
    pub fn run(&self, plan: &Plan, delivery: Delivery<'_>) -> Result<Option<Trial>, LabError> {
        let budget = &self.executor.budget;
        let left = self.left.get();
        if left == 0 || budget.is_stopped() {
            return Ok(None);
        }
        self.left.set(left - 1);
        budget.count();
        let Subject { launch, expected, .. } = &self.executor.subject;
        let plan = Plan { cpu: self.cpu.or(plan.cpu), ..plan.clone() };
        let trial = Trial::run(launch, &plan, delivery, expected)?;
        budget.count_trial(&trial);
        Ok((!trial.is_stopped()).then_some(trial))
    }

    /// Whether time is up, or the user wants us to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.executor.budget.is_stopped()
    }

    /// Whether it can execute nothing more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left.get() == 0 || self.executor.budget.is_stopped()
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.executor.budget.give_back(self.left.get());
    }
}
