//! Runs at the same time, one per processor.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use raddle_trial::verdict::{Expected, Verdict, judge};
use raddle_trial::{Delivery, End, Execution, Launch, Plan, execute, processors};

use crate::say;

/// Whoever executes the target.
pub(crate) struct Team {
    pub(crate) launch: Launch,
    pub(crate) expected: Expected,
    processors: Vec<u32>,
    n_jobs: AtomicUsize,
    n_runs: AtomicUsize,
    runs_max: usize,
    start: Instant,
    time_max: Duration,
    interrupted: AtomicBool,
    timeout_ms: AtomicU64,
}

/// What came of one execution.
pub(crate) struct Judged {
    pub(crate) execution: Execution,
    pub(crate) verdict: Verdict,
}

impl Team {
    pub(crate) fn new(
        launch: Launch,
        expected: Expected,
        jobs: Option<u64>,
        runs_max: usize,
        time_max: Duration,
    ) -> Self {
        let processors = processors();
        let n_jobs = jobs.map_or(processors.len(), |jobs| jobs as usize).max(1);
        Self {
            launch,
            expected,
            processors,
            n_jobs: AtomicUsize::new(n_jobs),
            n_runs: AtomicUsize::new(0),
            runs_max,
            start: Instant::now(),
            time_max,
            interrupted: AtomicBool::new(false),
            timeout_ms: AtomicU64::new(u64::MAX),
        }
    }

    /// From now on a run is given up after so long, if not sooner.
    pub(crate) fn set_timeout(&self, timeout: Duration) {
        let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.timeout_ms.store(ms, Ordering::Relaxed);
    }

    /// The target as it is started now.
    fn launch(&self) -> Launch {
        let shorter = Duration::from_millis(self.timeout_ms.load(Ordering::Relaxed));
        let timeout = Some(self.launch.timeout.map_or(shorter, |given| given.min(shorter)));
        Launch { timeout, ..self.launch.clone() }
    }

    /// The same, with another budget.
    pub(crate) fn with_budget(&self, runs_max: usize, time_max: Duration) -> Self {
        let (launch, expected) = (self.launch(), self.expected.clone());
        Self::new(launch, expected, Some(self.n_jobs() as u64), runs_max, time_max)
    }

    /// Executions so far.
    pub(crate) fn n_runs(&self) -> usize {
        self.n_runs.load(Ordering::Relaxed)
    }

    /// Time so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether the budget is used up, or somebody wants us to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.n_runs() >= self.runs_max || self.elapsed() >= self.time_max || self.is_interrupted()
    }

    /// Whether somebody wants us to stop.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// How many runs go on at the same time.
    pub(crate) fn n_jobs(&self) -> usize {
        self.n_jobs.load(Ordering::Relaxed)
    }

    /// From now on there is one run at a time. Says so.
    pub(crate) fn go_one_by_one(&self) {
        self.n_jobs.store(1, Ordering::Relaxed);
        say::news(
            "runs at the same time get in each other's way, most likely by a file; from now on there is one at a time, as by --jobs 1",
        );
    }

    /// One execution, judged.
    pub(crate) fn execute(&self, plan: &Plan, delivery: Delivery<'_>) -> Result<Judged> {
        self.n_runs.fetch_add(1, Ordering::Relaxed);
        let execution = execute(&self.launch(), plan, delivery)?;
        if execution.outcome.end == End::Interrupted {
            self.interrupted.store(true, Ordering::Relaxed);
        }
        let verdict = judge(&execution, &self.expected)?;
        Ok(Judged { execution, verdict })
    }

    /// Does a job for each item, several at a time; gives the results in the order of the
    /// items. `work` gets the processor to run on. Items that are left when the budget is
    /// used up give nothing.
    pub(crate) fn all<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T, Option<u32>) -> Result<R> + Sync,
    ) -> Result<Vec<Option<R>>> {
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<R>>> = Mutex::new((0..items.len()).map(|_| None).collect());
        let n_jobs = self.n_jobs().min(items.len().max(1));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..n_jobs)
                .map(|job| {
                    // Two that share a processor would be slower than one after the other.
                    let cpu = Some(self.processors[job % self.processors.len()]);
                    let (next, results, work) = (&next, &results, &work);
                    scope.spawn(move || -> Result<()> {
                        loop {
                            let at = next.fetch_add(1, Ordering::Relaxed);
                            let Some(item) = items.get(at) else { return Ok(()) };
                            if self.is_over() {
                                return Ok(());
                            }
                            let result = work(item, cpu)?;
                            results.lock().expect("no panic while it was locked")[at] =
                                Some(result);
                        }
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
        })?;
        Ok(results.into_inner().expect("no panic while it was locked"))
    }
}
