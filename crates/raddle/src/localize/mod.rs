//! `raddle localize`: many runs, and what those that fail have in common.

mod again;
mod campaign;
mod confirm;
mod gather;
mod laps;
mod sample;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::facts::{Act, Facts, Point};
use raddle_analysis::localize::procedures::{Suspect, suspects};
use raddle_analysis::localize::rank::{Formula, Ranked, rank};
use raddle_analysis::localize::runs::Runs;
use raddle_analysis::localize::window;
use raddle_report::symbols::name::Namer;
use raddle_trace::id::{Pc, Site};
use raddle_trace::run::Run;
use raddle_trial::Plan;
use raddle_trial::plan::PolicyName;
use serde_json::json;

use self::again::Again;
use self::campaign::{Campaign, Done};
use self::confirm::Court;
use self::gather::gather;
use self::sample::{Fail, How, Policy, Sample};
use self::tell::{Group, PairTold, PatternTold};
use crate::args::{FormulaName, LocalizeArgs, WindowName};
use crate::exit::Exit;
use crate::hunt::finding::{self, Access, Unnamed};
use crate::hunt::team::Team;
use crate::{run, target};

/// A program that does not end by itself is given up sooner than by `run`.
const TIMEOUT: f64 = 10.0;
/// More steps than this are a livelock.
const STEPS_MAX: u64 = 200_000_000;
/// Suspects that are checked.
const CHECKED: usize = 8;
/// Passing runs that suspects are forced on.
const FORCED: usize = 2;
/// How many are shown to a person, if nothing else was asked for.
const SHOWN: u64 = 5;
/// Patterns that are named for programs: beyond, nobody looks.
const NAMED: usize = 100;

pub(crate) fn localize(mut args: LocalizeArgs) -> Result<Exit> {
    target::without_backtraces(&mut args.target);
    let (done, team) = match &args.from {
        Some(directory) => (Done { samples: sample::all(directory)?, ..Done::default() }, None),
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
    let groups = compare(&args, &done.samples, team.as_ref())?;
    say(&args, &done, &groups)
}

/// Executes the target many times.
fn collect(args: &LocalizeArgs) -> Result<(Done, Team)> {
    let expected = target::expected(&args.expected)?.unwrap_or_default();
    let policy = policy(args)?;
    let (mut launch, _) = target::launch(&args.target)?;
    launch.timeout = target::timeout(args.target.timeout.unwrap_or(TIMEOUT));
    let directory = args.output.join("localize");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let mut done = Done::default();
    if args.resume {
        done.samples = sample::all(&directory)?;
    } else {
        sample::clear(&directory)?;
    }
    target::prepare()?;
    target::isolate(&mut launch)?;
    let time = Duration::from_secs_f64(args.time.min(1e9));
    let team = Team::new(launch, expected, args.jobs, usize::MAX, time);
    // More runs than before, if there are some.
    let runs_max = done.samples.len() + args.runs as usize;
    let campaign = Campaign {
        team: &team,
        plan: plan(args),
        policy,
        settings: settings(args),
        runs_max,
        failed_wanted: args.failed.map(|n| n as usize),
        directory: &directory,
        quiet: args.quiet,
    };
    let done = campaign.run(done)?;
    Ok((done, team))
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

/// Compares failing with passing runs, each kind of failure by itself, the most frequent first.
fn compare(args: &LocalizeArgs, samples: &[Sample], team: Option<&Team>) -> Result<Vec<Group>> {
    let (failed, passed): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.failure.is_some());
    let n_passed = args.passed.map_or(usize::MAX, |n| n as usize).min(passed.len());
    let passed = &passed[..n_passed];
    let mut by_failure: BTreeMap<&str, (&Fail, Vec<&Sample>)> = BTreeMap::new();
    for sample in failed {
        if let Some(failure) = &sample.failure {
            by_failure.entry(&failure.key).or_insert((failure, Vec::new())).1.push(sample);
        }
    }
    let mut by_failure: Vec<_> = by_failure.into_values().collect();
    by_failure.sort_by_key(|(_, samples)| std::cmp::Reverse(samples.len()));
    let passed_facts: Vec<Facts> = passed.iter().map(|sample| sample.facts.clone()).collect();
    let mut groups = Vec::new();
    for (failure, mut failed) in by_failure {
        failed.truncate(args.failed.map_or(usize::MAX, |n| n as usize));
        let failed_facts: Vec<Facts> = failed.iter().map(|sample| sample.facts.clone()).collect();
        let runs = Runs { passed: &passed_facts, failed: &failed_facts };
        let mut ranked = rank(&runs, formula(args.score));
        // The failed run with the fewest events is the one with the least beside the point.
        let Some((at, first)) =
            failed.iter().enumerate().min_by_key(|(_, sample)| sample.facts.n_events)
        else {
            continue;
        };
        let mut suspects = suspects(&failed_facts[at], &runs);
        let mut first = (*first).clone();
        let mut passed: Vec<Sample> = passed.iter().map(|&sample| sample.clone()).collect();
        if suspects.is_empty()
            && let Some(team) = team
        {
            // What is left to compare is loops, which takes the same runs once more.
            first = with_laps(args, team, &[first])?.remove(0);
            passed = with_laps(args, team, &passed)?;
            let facts: Vec<Facts> = passed.iter().map(|sample| sample.facts.clone()).collect();
            let runs = Runs { passed: &facts, failed: std::slice::from_ref(&first.facts) };
            suspects = self::suspects(&first.facts, &runs);
        }
        let place = Place { own: Own::new(&first.run), passed: &passed_facts };
        ranked.sort_by(|one, two| {
            let place = |ranked: &Ranked| place.of(&ranked.pattern.acts);
            let when = |ranked: &Ranked| occurrence(&failed_facts[ranked.example], ranked);
            let n_acts = |ranked: &Ranked| ranked.pattern.acts.len();
            place(one)
                .cmp(&place(two))
                .then(two.score.total_cmp(&one.score))
                .then(n_acts(two).cmp(&n_acts(one)))
                .then_with(|| when(one).cmp(&when(two)))
        });
        suspects.sort_by_key(|suspect| {
            let acts = suspect.pairs.iter().flat_map(|pair| [pair.head, pair.tail]);
            place.of(&acts.collect::<Vec<_>>())
        });
        let case = Case { args, team, failed: &failed, passed: &passed };
        groups.push(case.group(failure, &first, ranked, suspects)?);
    }
    Ok(groups)
}

/// The same runs with loops told; as they are, where that does not work.
fn with_laps(args: &LocalizeArgs, team: &Team, samples: &[Sample]) -> Result<Vec<Sample>> {
    let told = team.all(samples, |sample, cpu| {
        let how = How { with_laps: true, ..sample.how };
        let plan = Plan { cpu, ..how.plan(&plan(args)) };
        let (_, told) = gather(team, how, &plan, settings(args))?;
        Ok(told.filter(|told| told.failure == sample.failure))
    })?;
    Ok(told
        .into_iter()
        .zip(samples)
        .map(|(told, sample)| told.flatten().unwrap_or_else(|| sample.clone()))
        .collect())
}

/// Where a cause is to be looked for first.
struct Place<'a> {
    own: Own<'a>,
    passed: &'a [Facts],
}

impl Place<'_> {
    /// The less the better: in the program's own code, which passing runs come to as well;
    /// what only failing runs come to is most often an effect.
    fn of(&self, acts: &[Act]) -> (bool, bool) {
        let is_usual = |act: &Act| self.passed.iter().any(|facts| facts.has(*act));
        (!acts.iter().all(|act| self.own.has(act.site)), !acts.iter().all(is_usual))
    }
}

/// When a pattern is complete for the first time: causes come before effects.
fn occurrence(facts: &Facts, ranked: &Ranked) -> Option<u64> {
    let fact = facts.patterns.iter().find(|fact| fact.pattern == ranked.pattern)?;
    fact.points.last().map(|point| point.seq)
}

/// Tells the program's own code from that of libraries, where a cause rarely is.
struct Own<'a> {
    run: &'a Run,
    namer: Namer,
}

impl<'a> Own<'a> {
    fn new(run: &'a Run) -> Self {
        Self { run, namer: Namer::new(run) }
    }

    fn has(&self, site: Site) -> bool {
        let pc = again::pc(self.run, site);
        pc.is_some_and(|pc| self.namer.site(pc).own_frame().is_some())
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

/// Runs that fail in the same way, and those that pass.
struct Case<'a> {
    args: &'a LocalizeArgs,
    team: Option<&'a Team>,
    failed: &'a [&'a Sample],
    passed: &'a [Sample],
}

impl Case<'_> {
    fn group(
        &self,
        failure: &Fail,
        first: &Sample,
        mut ranked: Vec<Ranked>,
        mut suspects: Vec<Suspect>,
    ) -> Result<Group> {
        let most = self.args.count.map_or(NAMED, |n| n as usize).max(CHECKED);
        ranked.truncate(most);
        suspects.truncate(most);
        let again = |sample: &Sample| match self.team {
            Some(team) => Again::new(team, sample, &plan(self.args)),
            None => Ok(None),
        };
        let shown = again(first)?;
        let mut patterns = self.patterns(first, &ranked, &again)?;
        let mut pairs = self.pairs(first, shown.as_ref(), &suspects, &again)?;
        if let Some(team) = self.team
            && !self.args.no_confirm
        {
            let passed: Result<Vec<_>> = self.passed.iter().take(FORCED).map(&again).collect();
            let passed = passed?.into_iter().flatten().collect();
            let court = Court { team, failed: shown, passed, key: failure.key.clone() };
            for (told, ranked) in patterns.iter_mut().zip(&ranked).take(CHECKED) {
                told.confirmed = court.pattern(&ranked.pattern)?;
            }
            for (told, suspect) in pairs.iter_mut().zip(&suspects).take(CHECKED) {
                told.confirmed = court.suspect(suspect)?;
            }
        }
        // Confirmed causes come first, unless they are far less suspect.
        pairs.sort_by_key(|told| told.confirmed != Some(true));
        let least = patterns.first().map_or(0.0, |first| first.score / 2.0);
        patterns.sort_by_key(|told| told.confirmed != Some(true) || told.score < least);
        for (at, told) in pairs.iter_mut().enumerate() {
            told.rank = at + 1;
        }
        Ok(Group {
            failure: failure.clone(),
            n_failed: self.failed.len(),
            n_passed: self.passed.len(),
            patterns,
            pairs,
        })
    }

    fn patterns(
        &self,
        first: &Sample,
        ranked: &[Ranked],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<Vec<PatternTold>> {
        // By the run that they are shown from.
        let mut by_run: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let is_first = |facts: &Facts, ranked: &Ranked| {
            facts.patterns.iter().any(|fact| fact.pattern == ranked.pattern)
        };
        let own = self.failed.iter().position(|sample| sample.how.seed == first.how.seed);
        for (at, one) in ranked.iter().enumerate() {
            let run = own.filter(|_| is_first(&first.facts, one)).unwrap_or(one.example);
            by_run.entry(run).or_default().push(at);
        }
        let mut told: Vec<Option<PatternTold>> = ranked.iter().map(|_| None).collect();
        for (run, members) in by_run {
            let sample = self.failed[run];
            let facts: Vec<_> = members
                .iter()
                .filter_map(|&at| {
                    let same = |fact: &&raddle_analysis::localize::facts::PatternFact| {
                        fact.pattern == ranked[at].pattern
                    };
                    Some((at, sample.facts.patterns.iter().find(same)?))
                })
                .collect();
            let groups: Vec<Vec<Unnamed>> = facts
                .iter()
                .map(|(_, fact)| unnamed(&sample.run, &fact.pattern.acts, &fact.points))
                .collect();
            let trace = again(sample)?;
            let named = named(&sample.run, trace.as_ref(), &groups);
            let namer = Namer::new(&sample.run);
            for ((at, fact), accesses) in facts.into_iter().zip(named) {
                let stack = |sites: &Vec<Site>| -> Vec<String> {
                    sites.iter().map(|&site| site_name(&namer, &sample.run, site)).collect()
                };
                let one = &ranked[at];
                told[at] = Some(PatternTold {
                    rank: one.rank,
                    ties: one.ties,
                    score: one.score,
                    name: one.pattern.name(),
                    accesses,
                    stacks: fact.stacks.iter().map(stack).collect(),
                    counts: one.counts,
                    confirmed: None,
                });
            }
        }
        Ok(told.into_iter().flatten().collect())
    }

    fn pairs(
        &self,
        first: &Sample,
        shown: Option<&Again>,
        suspects: &[Suspect],
        again: &dyn Fn(&Sample) -> Result<Option<Again>>,
    ) -> Result<Vec<PairTold>> {
        let mut told: Vec<Option<PairTold>> = suspects.iter().map(|_| None).collect();
        let mut by_run: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (at, suspect) in suspects.iter().enumerate() {
            by_run.entry(suspect.passing).or_default().push(at);
        }
        for (passing, members) in by_run {
            let (sample, trace) = match passing {
                None => (first, None),
                Some(number) => (&self.passed[number], again(&self.passed[number])?),
            };
            let trace = if passing.is_none() { shown } else { trace.as_ref() };
            let groups: Vec<Vec<Unnamed>> = members
                .iter()
                .map(|&at| {
                    let suspect = &suspects[at];
                    let pairs = suspect.pairs.iter().zip(&suspect.points);
                    pairs
                        .flat_map(|(pair, points)| {
                            let mut points = points.clone();
                            // The points of a missing pair are from the other way round.
                            if passing.is_some() {
                                points.reverse();
                            }
                            unnamed(&sample.run, &[pair.head, pair.tail], &points)
                        })
                        .collect()
                })
                .collect();
            for (at, accesses) in members.into_iter().zip(named(&sample.run, trace, &groups)) {
                let mut accesses = accesses.into_iter();
                let mut pairs = Vec::new();
                while let (Some(head), Some(tail)) = (accesses.next(), accesses.next()) {
                    pairs.push([head, tail]);
                }
                let procedure = suspects[at].procedure;
                told[at] = Some(PairTold { rank: at + 1, procedure, pairs, confirmed: None });
            }
        }
        Ok(told.into_iter().flatten().collect())
    }
}

fn unnamed(run: &Run, acts: &[Act], points: &[Point]) -> Vec<Unnamed> {
    acts.iter()
        .zip(points)
        .map(|(act, point)| {
            finding::of_point(*act, again::pc(run, act.site).unwrap_or(Pc(0)), point)
        })
        .collect()
}

fn named(run: &Run, again: Option<&Again>, groups: &[Vec<Unnamed>]) -> Vec<Vec<Access>> {
    match again {
        Some(again) => finding::all_named(&again.trace, groups),
        None => finding::named_without(run, groups),
    }
}

fn site_name(namer: &Namer, run: &Run, site: Site) -> String {
    again::pc(run, site).map_or_else(|| site.to_string(), |pc| namer.own_site(pc, None))
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
