//! `raddle localize`: many runs, and what those that fail have in common.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::rank::Formula;
use raddle_analysis::localize::window;
use raddle_code::elf::Files;
use raddle_lab::budget::{Budget, Limits};
use raddle_lab::compare::{Terms, compare};
use raddle_lab::error::LabError;
use raddle_lab::executor::{Executor, Subject};
use raddle_lab::localize::collect::{Collected, Collection};
use raddle_lab::progress::Progress;
use raddle_lab::sample::{self, Sample};
use raddle_report::model::{Coverage, Localization, Report, Runs, Stopped};
use raddle_report::name::{LocalizationInput, trials};
use raddle_report::render::{Form, Options, shell};
use raddle_trial::interrupt::{self, Cause};
use raddle_trial::{Order, Plan};

use crate::args::{FormulaName, LocalizeArgs, WindowName};
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::guard::LastWords;
use crate::progress::Line;
use crate::{allow, guard, target};

/// Runs that there are by default, and those beyond as long as few fail.
const RUNS: usize = 100;
const RUNS_MORE: usize = 400;
/// A program that does not end by itself is given up sooner than by `run`.
const TIMEOUT: f64 = 10.0;
/// More steps than this are too many.
const STEPS_MAX: u64 = 1_000_000_000;
/// How many suspects are shown by default.
const SHOWN: u64 = 5;

pub(crate) fn localize(mut args: LocalizeArgs) -> Result<Exit> {
    let context = Context::new(Files::default());
    let order = order(&args)?;
    let line = Line::new(args.quiet);
    let so_far = Arc::new(Mutex::new(Runs { passed: 0, failed: 0 }));
    let show = |progress: Progress<'_>| {
        if let Progress::Collecting { n_runs, n_failed, .. } = progress {
            let runs = Runs { passed: n_runs - n_failed, failed: n_failed };
            *so_far.lock().unwrap_or_else(PoisonError::into_inner) = runs;
        }
        line.show(&progress);
    };
    let executor = match (&args.from, args.target.command.is_empty()) {
        (Some(_), true) => None,
        _ => Some(Executor::new(subject(&mut args, &context)?, limits(&args), &show)),
    };
    if let Some(executor) = &executor {
        guard::until(
            executor.budget.deadline(),
            last_words(&args, Arc::clone(&executor.budget), Arc::clone(&so_far)),
        );
    }
    let plan = plan(&args, order.as_ref(), executor.as_ref())?;
    let collected = match (&args.from, &executor) {
        (Some(directory), _) => {
            Collected { samples: sample::read_all(directory)?, ..Collected::default() }
        }
        (None, Some(executor)) => match collect(&args, executor, &plan, order) {
            Ok(collected) => collected,
            Err(error) => match error.downcast::<LabError>() {
                Ok(error @ LabError::Unjudged(_)) => {
                    line.clear();
                    guard::print_now();
                    eprintln!("raddle: {error}");
                    return Ok(Exit::Unjudged);
                }
                Ok(error) => return Err(error.into()),
                Err(error) => return Err(error),
            },
        },
        (None, None) => {
            bail!("no program to run; name it after the options: raddle localize -- PROGRAM")
        }
    };
    line.clear();
    if collected.samples.is_empty() && executor.is_none() {
        let from = args.from.as_ref();
        let place = from.map_or_else(String::new, |from| format!(" in {}", from.display()));
        bail!("no runs{place}; collect some with raddle localize -- PROGRAM");
    }
    same_build(&collected.samples)?;
    let hopeless = hopeless(&context, &collected);
    let groups = match hopeless {
        Some(_) => Vec::new(),
        None => compare(&terms(&args, plan, &context), &collected.samples, executor.as_ref())?,
    };
    let budget = executor.as_ref().map(|executor| &*executor.budget);
    let input = LocalizationInput { collected: &collected, groups: &groups, budget };
    let mut report = context.names().localization(&input);
    let is_hopeless = hopeless.is_some();
    report.notes.extend(hopeless);
    guard::print_now();
    Printer::new(&args).finish(report, is_hopeless)
}

/// What to say if there is no time to compare the runs.
fn last_words(args: &LocalizeArgs, budget: Arc<Budget>, so_far: Arc<Mutex<Runs>>) -> LastWords {
    let printer = Printer::new(args);
    Box::new(move |cause| {
        let directory = shell::word(printer.output.join(KEPT));
        let report = Localization {
            runs: *so_far.lock().unwrap_or_else(PoisonError::into_inner),
            trials: trials(&budget, 0),
            stopped: match cause {
                Cause::Time => Stopped::Time,
                Cause::Signal(_) => Stopped::Interrupted,
            },
            coverage: Coverage::default(),
            patterns: Vec::new(),
            pairs: Vec::new(),
            groups: Vec::new(),
            windows: Vec::new(),
            notes: vec![match budget.n_judged() {
                0 => NO_RUN.to_owned(),
                _ => format!(
                    "there was no time to compare the runs; they are kept: raddle localize --from {directory}"
                ),
            }],
        };
        let printer = Printer { dot: None, ..printer };
        printer.finish(report, true).unwrap_or(Exit::Unjudged)
    })
}

/// What to say if no run could be judged.
const NO_RUN: &str = "no run could be judged, so there is nothing to compare";
/// Where runs are kept in the output directory.
const KEPT: &str = "localize";

/// Executes the target many times.
fn collect(
    args: &LocalizeArgs,
    executor: &Executor<'_>,
    plan: &Plan,
    order: Option<Order>,
) -> Result<Collected> {
    let directory = args.output.join(KEPT);
    target::output_directory(&directory)?;
    let mut collected = Collected::default();
    if args.resume {
        collected.samples = sample::read_all(&directory)?;
    } else {
        sample::clear(&directory)?;
    }
    let collection = Collection {
        executor,
        plan: plan.clone(),
        order,
        settings: settings(args),
        // More runs than before, if there are some.
        runs_max: collected.samples.len() + args.runs.map_or(RUNS, |n| n as usize),
        runs_more: if args.runs.is_none() { RUNS_MORE } else { 0 },
        failed_wanted: args.failed.map(|n| n as usize),
        directory: &directory,
    };
    Ok(collection.run(collected)?)
}

fn subject(args: &mut LocalizeArgs, context: &Context) -> Result<Subject> {
    let expected = target::expected(&args.expected)?.unwrap_or_default();
    let (mut launch, program) = target::launch(&args.target)?;
    target::without_backtraces(&mut args.target, &mut launch, &program);
    launch.files = context.files.clone();
    launch.timeout = target::timeout(args.target.timeout.unwrap_or(TIMEOUT));
    target::prepare()?;
    target::capture(&mut launch)?;
    Ok(Subject {
        launch,
        expected,
        jobs: args.jobs.map(|jobs| jobs as usize),
        is_own: context.is_own.clone(),
        files: context.files.clone(),
    })
}

fn limits(args: &LocalizeArgs) -> Limits {
    let time_max = Duration::from_secs_f64(args.time.min(1e9));
    // Runs are counted where they are collected: checking suspects comes on top.
    Limits { runs_max: usize::MAX, time_max }
}

fn plan(
    args: &LocalizeArgs,
    order: Option<&Order>,
    executor: Option<&Executor<'_>>,
) -> Result<Plan> {
    let mut plan = Plan {
        seed: args.seed,
        expiry: args.expiry.name().expiry(),
        ..target::limited(args.limits, STEPS_MAX)
    };
    if let Some(Executor { subject, .. }) = executor.filter(|_| !args.allow.allow.is_empty()) {
        let order = order.cloned().unwrap_or(Order::Random);
        target::needs_control("--allow", &Plan { order, ..Plan::default() })?;
        plan.allow = allow::typed(&args.allow, &subject.launch.program, &subject.files)?;
    }
    Ok(plan)
}

fn settings(args: &LocalizeArgs) -> Settings {
    let policy = match args.windows {
        WindowName::Precise => window::Policy::Precise,
        WindowName::Paper => window::Policy::Paper,
    };
    Settings { window: usize::from(args.window), policy }
}

fn terms(args: &LocalizeArgs, plan: Plan, context: &Context) -> Terms {
    let or_all = |n: Option<u64>| n.map_or(usize::MAX, |n| n as usize);
    let terms = Terms::new(plan, settings(args), context.is_own.clone());
    Terms {
        n_passed: or_all(args.passed),
        n_failed: or_all(args.failed),
        formula: formula(args.score),
        count: args.count.map_or(terms.count, |n| n as usize),
        checked: if args.no_confirm { 0 } else { terms.checked },
        ..terms
    }
}

fn formula(name: FormulaName) -> Formula {
    match name {
        FormulaName::Jaccard => Formula::Jaccard,
        FormulaName::Tarantula => Formula::Tarantula,
        FormulaName::Ochiai => Formula::Ochiai,
        FormulaName::Dstar => Formula::DStar,
    }
}

fn order(args: &LocalizeArgs) -> Result<Option<Order>> {
    let mut order = args.policy.clone();
    match &mut order {
        Some(order) if !order.is_seeded() => bail!(
            "--policy {} runs the program the same way every time; use {}",
            order.name(),
            Order::names(Order::POLICIES.into_iter().filter(Order::is_seeded))
        ),
        Some(order) => target::delayed(order, args.delay)?,
        None if args.delay.is_some() => bail!("--delay needs --policy free"),
        None => {}
    }
    Ok(order)
}

/// Runs of different builds cannot be compared.
fn same_build(samples: &[Sample]) -> Result<()> {
    let builds: BTreeSet<_> = samples.iter().map(Sample::build_id).collect();
    if builds.len() > 1 {
        bail!(
            "cannot compare runs of {} different builds of the program ({}); start over without --resume, or keep them in separate directories",
            builds.len(),
            builds.into_iter().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(())
}

/// Why nothing can be learned from the runs.
fn hopeless(context: &Context, collected: &Collected) -> Option<String> {
    let samples = &collected.samples;
    let n_failed = collected.n_failed();
    let n_threads = samples.iter().map(|sample| sample.facts.n_threads).max().unwrap_or(0);
    let n = samples.len();
    if n == 0 {
        Some(NO_RUN.to_owned())
    } else if n_threads < 2 {
        Some("only one thread ran, so no accesses of different threads can be the cause".to_owned())
    } else if n_failed == 0 {
        Some(format!(
            "none of {n} runs failed, so there is nothing to compare; try more runs (--runs), other input, or late threads (--expiry any), or find a failing order with raddle hunt"
        ))
    } else if n_failed == n {
        let text = samples.iter().find_map(|sample| {
            let failed = sample.failed.as_ref()?;
            let names = context.names();
            Some(names.failure(&sample.run, &failed.outcome, &failed.failure, None).text)
        });
        Some(format!(
            "all {n} runs failed, so there is nothing to compare with; thread order may not be the cause: {}",
            text.unwrap_or_default().trim_end()
        ))
    } else {
        None
    }
}

/// How a report is printed and kept.
struct Printer {
    is_json: bool,
    is_quiet: bool,
    shows_windows: bool,
    count: usize,
    dot: Option<PathBuf>,
    output: PathBuf,
}

impl Printer {
    fn new(args: &LocalizeArgs) -> Self {
        Self {
            is_json: args.json,
            is_quiet: args.quiet,
            shows_windows: args.histogram,
            count: args.count.unwrap_or(SHOWN) as usize,
            dot: args.dot.clone(),
            output: args.output.clone(),
        }
    }

    fn finish(&self, report: Localization, is_hopeless: bool) -> Result<Exit> {
        let (notes, n_runs) = (report.notes.clone(), report.trials.total);
        let stopped = match report.stopped {
            Stopped::Time => "; stopped by --time",
            Stopped::Interrupted => "; interrupted",
            Stopped::Found | Stopped::NothingNew | Stopped::Runs | Stopped::NoOrder => "",
        };
        let is_drawable = !report.patterns.is_empty();
        let report = Report::Localize(report);
        let options =
            Options { count: self.count, windows: self.shows_windows, directory: &self.output };
        context::print(&report, if self.is_json { Form::Json } else { Form::Text }, &options)?;
        for note in notes.iter().filter(|_| is_hopeless || !self.is_quiet) {
            eprintln!("raddle: {note}");
        }
        if !self.is_quiet && n_runs > 0 {
            eprintln!("raddle: {n_runs} runs, including those that checked suspects{stopped}");
        } else if interrupt::signal().is_some() {
            eprintln!("raddle: interrupted");
        }
        if self.output.is_dir() {
            context::keep(&report, &self.output)?;
        }
        if let Some(path) = &self.dot {
            if !is_drawable {
                bail!("--dot: no pattern was found, so there is nothing to draw");
            }
            context::write(&report, Form::Dot, &options, path)?;
        }
        Ok(match interrupt::signal() {
            Some(number) => guard::killed(number),
            None if is_hopeless => Exit::Unjudged,
            None => Exit::Found,
        })
    }
}
