//! `raddle hunt`: the main job. Predicts what could go wrong, re-executes it, and reports
//! what did go wrong, with clips.

pub(crate) mod attempt;
pub(crate) mod base;
mod best;
mod blame;
mod campaign;
mod conclude;
pub(crate) mod failure;
pub(crate) mod finding;
pub(crate) mod minimize;
pub(crate) mod team;
pub(crate) mod tell;

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use raddle_analysis::pattern::{self, Pattern};
use raddle_trace::file::Trace;
use raddle_trial::verdict::Verdict;
use raddle_trial::{End, Plan};
use serde_json::json;

use self::base::Base;
use self::campaign::{Campaign, Settings, Tally};
use self::conclude::{Conclusion, Context, conclude};
use self::finding::Finding;
use self::team::Team;
use crate::args::HuntArgs;
use crate::clip::Kept;
use crate::exit::Exit;
use crate::explain::explain;
use crate::{isolate, run, say, target, verify};

pub(crate) fn hunt(mut args: HuntArgs) -> Result<Exit> {
    target::without_backtraces(&mut args.target);
    let patterns = patterns(args.patterns.as_deref())?;
    let expected = target::expected(&args.expected)?.unwrap_or_default();
    let (mut launch, program) = target::launch(&args.target)?;
    launch.timeout = target::timeout(args.target.timeout.unwrap_or(TIMEOUT));
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make the directory {}", args.output.display()))?;
    target::prepare()?;
    target::isolate(&mut launch)?;
    let plan = Plan { seed: args.seed, n_steps_max: Some(STEPS_MAX), ..Plan::default() };
    let settings = Settings { patterns, plan, keep_going: args.keep_going, quiet: args.talk.quiet };
    let time = Duration::from_secs_f64(args.budget.time.min(1e9));
    let team =
        Team::new(launch, expected.clone(), args.budget.jobs, args.budget.runs as usize, time);
    let keep = |path: &Path, judged: &team::Judged, plan: &Plan, anomaly| {
        let kept = Kept {
            target: &args.target,
            expected: &args.expected,
            program: &program,
            launch: &team.launch,
            plan,
            execution: &judged.execution,
            anomaly,
        };
        conclude::keep(&kept, path, &expected)
    };
    let context = Context {
        output: &args.output,
        name: clip_name(&args),
        minimizes: !args.no_minimize,
        findings_max: if args.talk.json { 1000 } else { 0 },
        keep: &keep,
    };
    let mut campaign = Campaign::new(&team, &settings, &context)?;

    let mut bases = campaign.first()?;
    let mut difference = difference(&bases)?;
    if difference.is_some() {
        // Perhaps only since they ran at the same time, or one found what the other had left.
        let alone = campaign.first_alone()?;
        if alone.len() == BASES && self::difference(&alone)?.is_none() {
            if team.n_jobs() > 1 {
                team.go_one_by_one();
            }
            (bases, difference) = (alone, None);
        }
    }
    let mut bases = bases.into_iter();
    let (Some(first), second) = (bases.next(), bases.next()) else {
        return Ok(run::interrupted());
    };
    if let Some(exit) = hopeless(&first, &args)? {
        return Ok(exit);
    }
    let failed = second.is_some_and(|second| matches!(second.verdict, Verdict::Fail(_)));
    campaign.tally.failed += usize::from(failed);
    let repeats = difference.is_none();
    if let Some(difference) = difference {
        say::news(&format!("this program does not repeat under the same order; {difference}"));
    }
    campaign.go_on(first)?;
    if team.is_interrupted() && campaign.faults.is_empty() {
        return Ok(run::interrupted());
    }

    let Conclusion { findings, n_gone } = conclude(&campaign, &context, repeats)?;
    if n_gone > 0 {
        let failures = if n_gone == 1 { "a failure" } else { "some failures" };
        say::news(&format!(
            "{failures} did not come again when nothing else ran; runs at the same time may get in each other's way: try --jobs 1"
        ));
    }
    tell(&args, &campaign, &findings, repeats && n_gone == 0)
}

/// Where runs of the same order differ first, in words.
fn difference(bases: &[Base]) -> Result<Option<String>> {
    let [first, second] = bases else { return Ok(None) };
    let traces = (Trace::open(&first.path)?, Trace::open(&second.path)?);
    verify::difference([(&first.execution, &traces.0), (&second.execution, &traces.1)])
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

/// A program that does not end by itself is given up sooner than by `run`.
const TIMEOUT: f64 = 10.0;
/// More steps than this are a livelock.
const STEPS_MAX: u64 = 200_000_000;

/// How often the first run is executed, to see whether it repeats.
const BASES: usize = 2;

/// A base run from which nothing can be learned, or nothing has to be.
fn hopeless(first: &Base, args: &HuntArgs) -> Result<Option<Exit>> {
    let end = &first.execution.outcome.end;
    if end.is_unjudged() {
        run::relay(&first.execution)?;
        return run::tell(&first.execution, None, None, "").map(Some);
    }
    if let End::Hang { after } = end {
        say::news(&format!(
            "the program did not end within {} seconds, so there is no run to start from; does it wait for input? --timeout gives it more time\n{}",
            after.as_secs_f64(),
            explain(&first.execution, None)
        ));
        return Ok(Some(Exit::Unjudged));
    }
    let n_threads = first.execution.run.threads.len();
    let model = &first.model;
    let nothing = if n_threads < 2 {
        "only one thread ran, so there is no order to change"
    } else if first.n_shared == 0 && model.nestings.is_empty() && model.waits.is_empty() {
        "its threads share no memory that is written and wait for nothing but each other's end, so their order makes no difference"
    } else {
        return Ok(None);
    };
    if let Verdict::Fail(failure) = &first.verdict {
        let text = explain(&first.execution, None);
        say::news(&format!("{nothing}; but it fails: {text}"));
        let failure = conclude::told(&first.execution, &first.verdict, failure, text);
        let finding = Finding {
            kind: "failure",
            pattern: String::new(),
            variable: None,
            accesses: Vec::new(),
            verdict: "failing",
            why: None,
            forced: None,
            failure: Some(failure),
            clip: None,
            n_switches: 0,
        };
        print_json(args, BASES, &Tally { failed: BASES, ..Tally::default() }, &[finding])?;
        return Ok(Some(Exit::Found));
    }
    eprintln!("raddle: {nothing}");
    print_json(args, BASES, &Tally::default(), &[])?;
    Ok(Some(Exit::Clean))
}

fn tell(
    args: &HuntArgs,
    campaign: &Campaign<'_>,
    findings: &[Finding],
    repeats: bool,
) -> Result<Exit> {
    let (n_runs, seconds) = (campaign.team.n_runs(), campaign.team.elapsed().as_secs_f64());
    let tally = &campaign.tally;
    print_json(args, n_runs, tally, findings)?;
    let failing: Vec<_> = findings.iter().filter(|f| f.verdict == "failing").collect();
    if !args.talk.json {
        let mut out = io::stdout().lock();
        for (at, finding) in failing.iter().enumerate() {
            writeln!(out, "{}", tell::finding(at + 1, finding))?;
            if let Some(clip) = finding.clip.as_deref().filter(|_| args.isolate) {
                match isolate::found(clip) {
                    Ok((text, _)) => writeln!(out, "{text}")?,
                    Err(error) => eprintln!("raddle: cannot isolate {}: {error:#}", clip.display()),
                }
            }
        }
    }
    if !args.talk.quiet {
        let text = tell::summary(tally, n_runs, seconds);
        eprintln!("raddle: {text}");
        let always = tally.failed == n_runs;
        if always && n_runs > 10 {
            eprintln!(
                "raddle: it failed under every order that was tried; the order of threads may not be the cause"
            );
        }
        if failing.is_empty() {
            eprintln!("raddle: nothing failed");
        }
    }
    Ok(match (failing.is_empty(), repeats) {
        (false, _) => Exit::Found,
        (true, true) => Exit::Clean,
        (true, false) => Exit::Unjudged,
    })
}

fn print_json(args: &HuntArgs, total: usize, tally: &Tally, findings: &[Finding]) -> Result<()> {
    if !args.talk.json {
        return Ok(());
    }
    let findings: Vec<_> = findings
        .iter()
        .enumerate()
        .map(|(at, finding)| {
            let mut object = finding.json(&format!("{}-{}", finding.kind, at + 1));
            if let Some(clip) = finding.clip.as_deref().filter(|_| args.isolate) {
                object["isolation"] = match isolate::found(clip) {
                    Ok((_, isolation)) => isolation,
                    Err(error) => json!({"error": format!("{error:#}")}),
                };
            }
            object
        })
        .collect();
    let object = json!({
        "schema": "raddle/hunt/1",
        "trials": {"total": total, "failed": tally.failed, "infeasible": tally.infeasible},
        "anomalies": {
            "predicted": tally.predicted,
            "observed": tally.observed,
            "infeasible": tally.infeasible,
            "feasible": tally.feasible,
            "failing": tally.failing,
        },
        "findings": findings,
    });
    writeln!(io::stdout().lock(), "{object}")?;
    Ok(())
}

/// What clips are called after.
fn clip_name(args: &HuntArgs) -> String {
    let command = args.target.command.first().map(Path::new);
    let stem = command.and_then(Path::file_stem).unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
