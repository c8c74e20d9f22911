//! `raddle hunt`: the main job. Predicts what could go wrong, re-executes it, and reports what did
//! go wrong, with clips.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use raddle_analysis::pattern::{self, Pattern};
use raddle_lab::budget::{Budget, Limits};
use raddle_lab::executor::{Executor, Subject};
use raddle_lab::hunt::finding::Finding as Found;
use raddle_lab::hunt::{Hunted, Settings, hunt as search};
use raddle_lab::progress::Progress;
use raddle_report::model::{
    Anomalies, Coverage, Finding, Hunt, IsolationResult, Report, Stopped, Verdict as FindingVerdict,
};
use raddle_report::name::{HuntInput, NO_RUN, Names, trials};
use raddle_report::render::text::{hunt_result, hunt_summary};
use raddle_report::render::{Form, Options};
use raddle_symbols::Cache;
use raddle_trace::expiry::Expiry;
use raddle_trial::interrupt::{self, Cause};
use raddle_trial::verdict::Verdict;
use raddle_trial::{End, Plan, Trial};

use crate::args::{ExpiryName, HuntArgs};
use crate::clip::ClipWriter;
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::progress::Line;
use crate::{allow, guard, isolate, run, say, target};

/// A program that does not end by itself is given up sooner than by `run`.
const TIMEOUT: f64 = 10.0;
/// Harmless anomalies that are reported to other programs.
const HARMLESS_MAX: usize = 1000;

pub(crate) fn hunt(mut args: HuntArgs) -> Result<Exit> {
    let patterns = patterns(args.patterns.as_deref())?;
    let expected = target::expected(&args.expected)?.unwrap_or_default();
    let (mut launch, program) = target::launch(&args.target)?;
    let context = Context::new(launch.files.clone());
    let allow = allow::typed(&args.allow, &program.path, &context.files)?;
    target::without_backtraces(&mut args.target, &mut launch, &program);
    launch.timeout = target::timeout(args.target.timeout.unwrap_or(TIMEOUT));
    target::output_directory(&args.output)?;
    target::prepare()?;
    target::capture(&mut launch)?;
    // Orders that make a thread late are tried last, unless the user said which are possible.
    let (first, last) = match args.expiry {
        None => (Expiry::FAIR, Some(Expiry::LATE)),
        Some(ExpiryName::Any) => (Expiry::FAIR, Some(Expiry::ANY)),
        Some(ExpiryName::Fair) => (Expiry::FAIR, None),
        Some(ExpiryName::Idle) => (Expiry::IDLE, None),
    };
    let settings = Settings {
        patterns,
        plan: Plan {
            seed: args.seed,
            allow,
            expiry: first,
            ..target::limited(args.limits, target::STEPS_MAX)
        },
        expiry_last: last,
        limits_steps: args.limits.max_steps.is_none(),
        limits_idling: args.limits.max_idle.is_none(),
        keep_going: args.keep_going,
        uses_budget: args.budget.is_given() || args.keep_going,
        minimizes: !args.no_minimize,
        harmless_max: HARMLESS_MAX,
    };
    let clips = Clips { args: &args };
    let writer = ClipWriter {
        files: &context.files,
        target: &args.target,
        expected_args: &args.expected,
        program: &program,
        launch: &launch,
        expected: &expected,
    };
    let line = Line::new(args.talk.quiet);
    let so_far = Arc::new(Mutex::new(SoFar::default()));
    let show = |progress: Progress<'_>| {
        if let Progress::Failed { number, trial, plan } = &progress {
            // Kept at once, as it is: whoever stops the hunt has it. The finding replaces it.
            let clip = match writer.keep(&clips.path(*number), trial, plan, None) {
                Ok(is_kept) => is_kept.then(|| clips.name(*number)),
                Err(error) => {
                    line.clear();
                    eprintln!("raddle: {error:#}");
                    None
                }
            };
            let cache = Cache::new(context.files.clone());
            let finding = Names::new(&cache).unexplained(trial);
            so_far.lock().unwrap_or_else(PoisonError::into_inner).failed(finding, clip);
        }
        so_far.lock().unwrap_or_else(PoisonError::into_inner).learn(&progress);
        line.show(&progress);
    };
    let subject = Subject {
        launch: launch.clone(),
        expected: expected.clone(),
        jobs: args.budget.jobs.map(|jobs| jobs as usize),
        is_own: context.is_own.clone(),
        files: context.files.clone(),
    };
    let limits = Limits { runs_max: args.budget.runs_max(), time_max: args.budget.time_max() };
    let executor = Executor::new(subject, limits, &show);
    let budget = Arc::clone(&executor.budget);
    let last_words = {
        let (budget, so_far, printer) = (budget.clone(), so_far.clone(), Printer::new(&args));
        move |cause| {
            let so_far = so_far.lock().unwrap_or_else(PoisonError::into_inner);
            let report = so_far.report(&budget, cause);
            let is_untested = report.is_untested();
            let seconds = budget.elapsed().as_secs_f64();
            // What it came to is not known.
            printer.finish(report, None, seconds, is_untested).unwrap_or(Exit::Unjudged)
        }
    };
    guard::until(budget.deadline(), Box::new(last_words));
    let hunted = search(&executor, &settings)?;
    line.clear();
    let names = context.names();
    let (report, is_unjudged) = match hunted {
        Hunted::NoRun => (names.no_run(&budget), true),
        Hunted::NotJudged(trial) => {
            guard::print_now();
            run::relay(&trial.execution)?;
            let silence = matches!(trial.verdict, Verdict::Unanswered(_));
            match trial.unjudged().filter(|_| silence) {
                Some(why) => say::news(&format!("{why}\n")),
                None => say::news(&names.ending(&trial.execution, None)),
            }
            say::notes(names.allowed(&trial.execution.run, &trial.execution.allowed));
            say::notes(names.remarks(&trial.execution.run, &trial.execution.remarks));
            say::news(NO_RUN);
            return Ok(Exit::Unjudged);
        }
        Hunted::NoEnd(trial) => {
            guard::print_now();
            no_end(&context, &trial);
            return Ok(Exit::Unjudged);
        }
        Hunted::NoOrder(why, trial) => (names.no_order(why, &trial, &executor.budget), false),
        Hunted::Done(hunt) => {
            let mut report = names.hunt(&HuntInput { hunt: &hunt, budget: &budget });
            clips.keep_all(&writer, &hunt.findings, &mut report)?;
            let is_unjudged = hunt.difference.is_some() || hunt.n_gone > 0 || report.is_untested();
            (report, is_unjudged)
        }
    };
    let report = if args.isolate { isolated(&context, report, &args.output) } else { report };
    let seconds = budget.elapsed().as_secs_f64();
    guard::print_now();
    let result = hunt_result(&report);
    Printer::new(&args).finish(report, result, seconds, is_unjudged)
}

/// How a hunt prints and keeps its report.
struct Printer {
    is_json: bool,
    is_quiet: bool,
    output: PathBuf,
}

impl Printer {
    fn new(args: &HuntArgs) -> Self {
        let output = args.output.clone();
        Self { is_json: args.talk.json, is_quiet: args.talk.quiet, output }
    }

    fn finish(
        &self,
        report: Hunt,
        result: Option<&str>,
        seconds: f64,
        is_unjudged: bool,
    ) -> Result<Exit> {
        let is_found = report.failing().next().is_some();
        let (summary, notes) = (hunt_summary(&report, seconds), report.notes.clone());
        let stopped = report.stopped;
        let options = Options { count: usize::MAX, windows: false, directory: &self.output };
        let form = if self.is_json { Form::Json } else { Form::Text };
        let report = Report::Hunt(report);
        // What was found is printed before it is saved.
        context::print(&report, form, &options)?;
        if !self.is_quiet {
            for note in &notes {
                say::news(note);
            }
            for line in summary.iter().map(String::as_str).chain(result) {
                eprintln!("raddle: {line}");
            }
        } else if stopped == Stopped::Interrupted {
            eprintln!("raddle: interrupted");
        }
        context::keep(&report, &self.output)?;
        Ok(match (interrupt::signal(), is_found, is_unjudged) {
            (Some(number), _, _) => guard::killed(number),
            (None, true, _) => Exit::Found,
            (None, false, false) => Exit::Clean,
            (None, false, true) => Exit::Unjudged,
        })
    }
}

/// What a hunt has seen so far, for when it has no time to say more.
#[derive(Default)]
struct SoFar {
    findings: Vec<Finding>,
    anomalies: Anomalies,
    n_explored: usize,
    n_recorded: usize,
    coverage: Coverage,
}

impl SoFar {
    fn failed(&mut self, finding: Option<Finding>, clip: Option<String>) {
        self.findings.extend(finding.map(|finding| Finding { clip, ..finding }));
    }

    fn learn(&mut self, progress: &Progress<'_>) {
        let Progress::Searching {
            n_predicted,
            n_observed,
            n_decided,
            n_explored,
            n_recorded,
            n_orders,
            n_since_new: [since_new, since_new_recorded],
            ..
        } = progress
        else {
            return;
        };
        let [failing, benign, infeasible] = *n_decided;
        (self.n_explored, self.n_recorded) = (*n_explored, *n_recorded);
        self.coverage = Coverage {
            orders: *n_orders,
            since_new: *since_new,
            since_new_recorded: *since_new_recorded,
        };
        self.anomalies = Anomalies {
            predicted: *n_predicted,
            observed: *n_observed,
            feasible: failing + benign,
            failing,
            benign,
            infeasible,
            untested: n_predicted - failing - benign - infeasible,
        };
    }

    fn report(&self, budget: &Budget, cause: Cause) -> Hunt {
        let note = match (budget.n_judged(), self.findings.is_empty()) {
            (0, _) => NO_RUN,
            (_, true) => "there was no time to finish; counts are those of the last round",
            (_, false) => {
                "there was no time to explain what failed; counts are those of the last round"
            }
        };
        Hunt {
            trials: trials(budget, self.anomalies.infeasible),
            anomalies: self.anomalies,
            recorded: self.n_recorded,
            explored: self.n_explored,
            stopped: match cause {
                Cause::Time => Stopped::Time,
                Cause::Signal(_) => Stopped::Interrupted,
            },
            coverage: self.coverage,
            findings: self.findings.clone(),
            notes: vec![note.to_owned()],
        }
    }
}

/// Prints that the first run did not end.
fn no_end(context: &Context, trial: &Trial) {
    let End::TimedOut { after } = trial.execution.outcome.end else { return };
    say::news(&format!(
        "the program did not end within {} seconds, so there is no run to start from; if it waits for input, use --stdin; if it is slow, raise --timeout\n{}",
        after.as_secs_f64(),
        context.names().ending(&trial.execution, None)
    ));
}

/// Adds where each failure began.
fn isolated(context: &Context, mut report: Hunt, directory: &Path) -> Hunt {
    let failing = |finding: &&mut Finding| finding.verdict == FindingVerdict::Failing;
    for finding in report.findings.iter_mut().filter(failing) {
        if interrupt::stopped().is_some() {
            let error = "there was no time left".to_owned();
            finding.isolation = finding.clip.as_ref().map(|_| IsolationResult::Failed { error });
        } else if let Some(clip) = &finding.clip {
            finding.isolation = Some(isolate::found(context, &directory.join(clip)));
        }
    }
    report
}

/// The clips of a hunt.
struct Clips<'a> {
    args: &'a HuntArgs,
}

impl Clips<'_> {
    fn name(&self, number: usize) -> String {
        let command = self.args.target.command.first().map(Path::new);
        let stem = command.and_then(Path::file_stem).unwrap_or_default();
        format!("{}-{}.clip", stem.to_string_lossy(), number + 1)
    }

    /// Where the clip of a failure is.
    fn path(&self, number: usize) -> PathBuf {
        self.args.output.join(self.name(number))
    }

    /// Keeps the runs that show findings, in the place of those that were kept when the failures
    /// were first seen, and takes away what turned out not to be a finding.
    fn keep_all(&self, writer: &ClipWriter<'_>, found: &[Found], report: &mut Hunt) -> Result<()> {
        let proofs: Vec<_> = found.iter().filter_map(|finding| finding.proof.as_ref()).collect();
        for (proof, finding) in proofs.iter().zip(&mut report.findings) {
            finding.clip = Some(self.name(proof.number));
            let value = serde_json::to_value(&*finding)?;
            let path = self.path(proof.number);
            if !writer.keep(&path, &proof.trial, &proof.plan, Some(value))? {
                finding.clip = None;
            }
        }
        for number in 0.. {
            let path = self.path(number);
            if !path.exists() {
                break;
            }
            if !proofs.iter().any(|proof| proof.number == number) {
                // It did not come again, or is an older hunt's; it does no harm if it stays.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }
}

/// The patterns that raddle knows, and those of a file.
pub(crate) fn patterns(file: Option<&Path>) -> Result<Vec<Pattern>> {
    let mut patterns = pattern::built_in();
    if let Some(path) = file {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        patterns.extend(pattern::parse(&text).with_context(|| path.display().to_string())?);
    }
    Ok(patterns)
}
