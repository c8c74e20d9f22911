//! `raddle localize`: many runs, and what those that fail have in common.

pub(crate) mod again;
mod campaign;
pub(crate) mod compare;
pub(crate) mod confirm;
mod effects;
pub(crate) mod gather;
mod laps;
mod order;
pub(crate) mod sample;
mod show;
pub(crate) mod tell;
mod woven;

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::rank::Formula;
use raddle_analysis::localize::window;
use raddle_trial::Plan;
use raddle_trial::plan::PolicyName;
use serde_json::json;

use self::campaign::{Campaign, Done};
use self::compare::{Terms, compare};
use self::sample::{Policy, Sample};
use self::tell::Group;
use crate::args::{FormulaName, LocalizeArgs, WindowName};
use crate::exit::Exit;
use crate::hunt::team::Team;
use crate::{run, target};

/// Runs that there are, if nobody says how many, and those beyond as long as few fail.
const RUNS: usize = 100;
const RUNS_MORE: usize = 400;
/// A program that does not end by itself is given up sooner than by `run`.
const TIMEOUT: f64 = 10.0;
/// More steps than this are a livelock.
const STEPS_MAX: u64 = 1_000_000_000;
/// How many are shown to a person, if nothing else was asked for.
const SHOWN: u64 = 5;

pub(crate) fn localize(mut args: LocalizeArgs) -> Result<Exit> {
    target::without_backtraces(&mut args.target);
    let (done, team) = match &args.from {
        Some(directory) => {
            let done = Done { samples: sample::all(directory)?, ..Done::default() };
            let has_program = !args.target.command.is_empty();
            (done, has_program.then(|| team(&args)).transpose()?)
        }
        None => {
            let (done, team) = collect(&args)?;
            (done, Some(team))
        }
    };
    if let Some(team) = &team
        && team.is_interrupted()
    {
        return Ok(run::interrupted());
    }
    let what =
        args.from.as_deref().map_or_else(String::new, |from| format!(" in {}", from.display()));
    if done.samples.is_empty() {
        bail!("there are no runs{what}; raddle localize -- PROGRAM makes some");
    }
    same_build(&done.samples)?;
    if let Some(exit) = hopeless(&done, &args) {
        return Ok(exit);
    }
    let groups = compare(&terms(&args), &done.samples, team.as_ref())?;
    say(&args, &done, &groups)
}

/// Executes the target many times.
fn collect(args: &LocalizeArgs) -> Result<(Done, Team)> {
    let policy = policy(args)?;
    let team = team(args)?;
    let directory = args.output.join("localize");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let mut done = Done::default();
    if args.resume {
        done.samples = sample::all(&directory)?;
    } else {
        sample::clear(&directory)?;
    }
    // More runs than before, if there are some.
    let runs_max = done.samples.len() + args.runs.map_or(RUNS, |n| n as usize);
    let campaign = Campaign {
        team: &team,
        plan: plan(args),
        policy,
        settings: settings(args),
        runs_max,
        runs_more: if args.runs.is_none() { RUNS_MORE } else { 0 },
        failed_wanted: args.failed.map(|n| n as usize),
        directory: &directory,
        quiet: args.quiet,
    };
    let done = campaign.run(done)?;
    Ok((done, team))
}

/// Whoever executes the target.
fn team(args: &LocalizeArgs) -> Result<Team> {
    let expected = target::expected(&args.expected)?.unwrap_or_default();
    let (mut launch, _) = target::launch(&args.target)?;
    launch.timeout = target::timeout(args.target.timeout.unwrap_or(TIMEOUT));
    target::prepare()?;
    target::isolate(&mut launch)?;
    let time = Duration::from_secs_f64(args.time.min(1e9));
    Ok(Team::new(launch, expected, args.jobs, usize::MAX, time))
}

fn plan(args: &LocalizeArgs) -> Plan {
    Plan { seed: args.seed, n_steps_max: Some(STEPS_MAX), ..Plan::default() }
}

fn settings(args: &LocalizeArgs) -> Settings {
    let policy = match args.windows {
        WindowName::Precise => window::Policy::Precise,
        WindowName::Paper => window::Policy::Paper,
    };
    Settings { window: usize::from(args.window), policy }
}

fn terms(args: &LocalizeArgs) -> Terms {
    let or_all = |n: Option<u64>| n.map_or(usize::MAX, |n| n as usize);
    let terms = Terms::new(plan(args), settings(args));
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

fn policy(args: &LocalizeArgs) -> Result<Option<Policy>> {
    if args.delay.is_some() && args.policy != Some(PolicyName::Free) {
        bail!("--delay is for threads that run freely; add --policy free");
    }
    Ok(match args.policy {
        None => None,
        Some(PolicyName::Random) => Some(Policy::Random),
        Some(PolicyName::Pct) => Some(Policy::Pct { depth: 3, n_steps: 0 }),
        Some(PolicyName::Pos) => Some(Policy::Pos),
        Some(PolicyName::Rr) => bail!("under rr all runs are alike; use random, pct, pos or free"),
        Some(PolicyName::Follow) => {
            bail!("to follow a schedule, replay a clip: raddle replay CLIP")
        }
        Some(PolicyName::Free) => {
            let delay = args.delay.map(|delay| (delay.probability, delay.us_max));
            Some(Policy::Free { delay })
        }
    })
}

/// Runs of different builds cannot be compared.
fn same_build(samples: &[Sample]) -> Result<()> {
    let builds: BTreeSet<_> = samples.iter().map(Sample::build_id).collect();
    if builds.len() > 1 {
        bail!(
            "the runs are of {} different builds of the program ({}), which cannot be compared; start anew without --resume, or keep them apart",
            builds.len(),
            builds.into_iter().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(())
}

/// Runs from which nothing can be learned.
fn hopeless(done: &Done, args: &LocalizeArgs) -> Option<Exit> {
    let samples = &done.samples;
    let n_failed = samples.iter().filter(|sample| sample.failure.is_some()).count();
    let n_threads = samples.iter().map(|sample| sample.facts.n_threads).max().unwrap_or(0);
    let why = if n_threads < 2 {
        "only one thread ran, so accesses of different threads cannot be to blame".to_owned()
    } else if n_failed == 0 {
        format!(
            "none of {} runs failed, so there is nothing to compare; try more (--runs), other inputs, or let raddle hunt look for an order that fails",
            samples.len()
        )
    } else if n_failed == samples.len() {
        let first = samples.iter().find_map(|sample| sample.failure.as_ref());
        format!(
            "all of {} runs failed, so there is nothing to compare with; the order of threads may not be the cause: {}",
            samples.len(),
            first.map_or("", |failure| failure.text.trim_end())
        )
    } else {
        return None;
    };
    if args.json {
        println!("{}", json(samples, &[]));
    }
    eprintln!("raddle: {why}");
    Some(Exit::Unjudged)
}

fn json(samples: &[Sample], groups: &[Group]) -> serde_json::Value {
    let n_failed = samples.iter().filter(|sample| sample.failure.is_some()).count();
    let groups: Vec<_> = groups.iter().map(Group::json).collect();
    let first = |name: &str| groups.first().map_or_else(|| json!([]), |group| group[name].clone());
    json!({
        "schema": "raddle/localize/1",
        "runs": {"passed": samples.len() - n_failed, "failed": n_failed},
        "patterns": first("patterns"),
        "pairs": first("pairs"),
        "groups": groups,
    })
}

fn say(args: &LocalizeArgs, done: &Done, groups: &[Group]) -> Result<Exit> {
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json(&done.samples, groups))?;
    } else {
        let shown = args.count.unwrap_or(SHOWN) as usize;
        for (at, group) in groups.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            write!(out, "{}", group.text(shown))?;
        }
        if args.histogram {
            let runs = done.samples.iter().map(|sample| &sample.facts);
            write!(out, "\n{}", tell::histogram(runs))?;
        }
    }
    if let Some(path) = &args.dot {
        draw(path, groups)?;
    }
    let kinds: BTreeSet<_> = groups.iter().map(|group| &group.failure.kind[..]).collect();
    if kinds.len() > 1 {
        eprintln!(
            "raddle: the runs failed in {} ways of different kinds ({}); each was compared by itself, and which of them is meant is not for raddle to say",
            groups.len(),
            kinds.iter().copied().collect::<Vec<_>>().join(", ")
        );
    } else if groups.len() > 1 && !args.quiet {
        eprintln!(
            "raddle: the runs failed in {} different ways; each was compared by itself",
            groups.len()
        );
    }
    let n_left_out = done.samples.iter().map(|sample| sample.facts.n_left_out).max().unwrap_or(0);
    if n_left_out > 0 && !args.quiet {
        eprintln!(
            "raddle: the program's threads share more memory than can be watched; {n_left_out} places were left out"
        );
    }
    if done.n_unjudged > 0 && !args.quiet {
        eprintln!(
            "raddle: {} runs could not be judged and were left out: {}",
            done.n_unjudged,
            done.unjudged.as_deref().unwrap_or_default()
        );
    }
    Ok(if kinds.len() > 1 { Exit::Unjudged } else { Exit::Found })
}

fn draw(path: &Path, groups: &[Group]) -> Result<()> {
    let first = groups.first().and_then(|group| group.patterns.first());
    let pattern = first.context("there is no pattern to draw")?;
    std::fs::write(path, pattern.dot()).with_context(|| format!("cannot write {}", path.display()))
}
