//! Every program of `tests/programs` under every policy: it ends as its first lines say, two
//! executions of one seed do the same events, and a followed schedule does so too.
//!
//! `RADDLE_SEEDS=3 cargo test --release --test programs` tries fewer seeds, and does not ask for
//! every outcome that a program must show; `RADDLE_PROGRAM=mutex` tries only the programs whose
//! name holds that word.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::Source;
use raddle_trace::control::Policy;
use raddle_trace::event::Batch;
use raddle_trace::file::WriteError;
use raddle_trace::record::{Kind, Record};
use raddle_trace::run::Run;
use raddle_trial::outcome::signal_name;
use raddle_trial::unpack::{self, Soname};
use raddle_trial::{
    Delivery, End, Execution, Input, Launch, Order, Output, Plan, Sink, Status, compile, execute,
    fix_addresses, histories, processors,
};

const LIBRARY: &[u8] = include_bytes!(env!("RADDLE_RUNTIME"));
/// Seeds per policy, unless a program says that it is slow by nature. With so many, what a
/// program must show has to be seen.
const SEEDS: u64 = 50;
/// Steps after which a program that gets nowhere is taken for a livelock.
const STEPS_MAX: u64 = 20_000_000;

#[test]
fn c_programs_behave_under_every_policy() {
    check("c");
}

#[test]
fn cxx_programs_behave_under_every_policy() {
    check("cc");
}

#[test]
fn rust_programs_behave_under_every_policy() {
    check("rs");
}

/// A program with what its first lines say.
#[derive(Debug)]
struct Program {
    source: Source,
    outcomes: BTreeSet<String>,
    must: Option<String>,
    flags: Vec<String>,
    arguments: Vec<String>,
    stdin: Vec<u8>,
    timeout: Duration,
    n_seeds: u64,
    n_steps_max: u64,
    external: bool,
    free: bool,
    /// A followed schedule departs from it now and then.
    departs: bool,
}

impl Program {
    fn new(source: Source) -> Self {
        let said = |word: &str| source.directive(word);
        let number = |word: &str, otherwise: u64| {
            said(word).map_or(otherwise, |n| n.parse().expect("a number"))
        };
        let wanted =
            std::env::var("RADDLE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(SEEDS);
        Self {
            outcomes: said("Outcome")
                .expect("outcomes")
                .split('|')
                .map(|outcome| outcome.trim().to_owned())
                .collect(),
            must: said("Must").map(str::to_owned),
            flags: source.words("Flags"),
            arguments: source.words("Args"),
            stdin: said("Stdin").unwrap_or_default().replace("\\n", "\n").into_bytes(),
            timeout: Duration::from_secs_f64(
                said("Timeout").map_or(60.0, |seconds| seconds.parse().expect("seconds")),
            ),
            n_seeds: number("Seeds", wanted).min(wanted),
            n_steps_max: number("Steps", STEPS_MAX),
            external: said("External").is_some(),
            free: said("Free").is_none(),
            departs: said("Follow").is_some(),
            source,
        }
    }

    fn name(&self) -> &str {
        &self.source.name
    }
}

fn programs(extension: &str) -> Vec<Program> {
    let wanted = std::env::var("RADDLE_PROGRAM").unwrap_or_default();
    let is_wanted = |source: &Source| {
        source.path.extension().is_some_and(|found| found == extension)
            && source.name.contains(&wanted)
    };
    common::sources("programs").into_iter().filter(is_wanted).map(Program::new).collect()
}

/// Only one language at a time: each uses all processors.
static ALONE: Mutex<()> = Mutex::new(());

fn check(extension: &str) {
    let _alone = ALONE.lock();
    fix_addresses().expect("addresses that stay");
    let programs = programs(extension);
    let next = AtomicUsize::new(0);
    let complaints = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for cpu in processors() {
            let (programs, next, complaints) = (&programs, &next, &complaints);
            scope.spawn(move || {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = std::time::Instant::now();
                    let found = check_program(program, cpu);
                    if start.elapsed() > Duration::from_secs(10) {
                        println!("{} took {:.0?}", program.name(), start.elapsed());
                    }
                    complaints.lock().expect("no panic").extend(found);
                }
            });
        }
    });
    let complaints = complaints.into_inner().expect("no panic");
    assert!(complaints.is_empty(), "{} of them:\n{}", complaints.len(), complaints.join("\n"));
}

/// The records of a run, as a number that no other stream of records has.
#[derive(Default, PartialEq, Eq, Debug, Clone, Copy)]
struct Digest {
    n: u64,
    hash: u64,
    /// Of all but the switches, since one who follows a schedule may stop for other reasons, and
    /// the fences, which are no steps: a thread that was seen to spin stopped before one, and one
    /// that follows stops at its next step, behind it.
    events: u64,
    passed_over: bool,
}

impl Sink for Digest {
    fn describe(&mut self, _: &Run) -> Result<(), WriteError> {
        Ok(())
    }

    fn push(&mut self, _: u32, batch: &Batch<'_>) -> Result<(), WriteError> {
        for record in batch.records {
            self.n += 1;
            self.hash = hashed(self.hash, record);
            self.passed_over = match record.kind() {
                Some(Kind::Switch | Kind::Fence) => true,
                Some(Kind::More) => self.passed_over,
                _ => false,
            };
            if !self.passed_over {
                self.events = hashed(self.events, record);
            }
        }
        Ok(())
    }
}

fn hashed(hash: u64, record: &Record) -> u64 {
    [record.head, record.tail]
        .into_iter()
        .fold(hash, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95))
}

fn check_program(program: &Program, cpu: u32) -> Vec<String> {
    let launch = launch(program);
    let mut complaints = Vec::new();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut n_departed = 0;
    let policies = [
        ("random", Order::Random),
        ("pct", Order::Pct { depth: 3, n_steps: 0 }),
        ("pos", Order::Pos),
        ("rr", Order::Rr),
    ];
    for (policy, order) in policies {
        for seed in 0..program.n_seeds {
            let mut plan = Plan {
                order: order.clone(),
                seed,
                n_steps_max: Some(program.n_steps_max),
                spurious: false,
                early_sleepers: false,
                cpu: Some(cpu),
            };
            let complain = |what: String| {
                format!("{} --policy {policy} --seed {seed}: {what}", program.name())
            };
            let digits = process_digits();
            let (mut first, mut digest) = run(&launch, &plan);
            let outcome = words(&first.outcome.end);
            *seen.entry(outcome.clone()).or_default() += 1;
            if !program.outcomes.contains(&outcome) {
                complaints.push(complain(format!("{outcome} ({:?})", first.outcome.end)));
                continue;
            }
            let is_decided = !program.external && outcome != "hang";
            if seed == 0 {
                let kept = collect(&launch, &plan);
                let kept_outcome = words(&kept.outcome.end);
                let is_same = kept_outcome == outcome
                    && (kept.outcome.n_steps == first.outcome.n_steps
                        || process_digits() != digits);
                if !program.outcomes.contains(&kept_outcome) || is_decided && !is_same {
                    complaints.push(complain(format!(
                        "collected, it differs: {:?} after {} steps, not {outcome} after {}",
                        kept.outcome.end, kept.outcome.n_steps, first.outcome.n_steps
                    )));
                }
            }
            if !is_decided {
                continue;
            }
            let (second, digest_again) = run(&launch, &plan);
            if digest != digest_again && process_digits() != digits {
                (first, digest) = run(&launch, &plan);
            }
            if digest != digest_again {
                complaints.push(complain(format!(
                    "differs from itself: {digest:?}, then {digest_again:?}; {:?}",
                    second.outcome.doubts
                )));
                continue;
            }
            // What was recorded can be followed.
            let schedule = first.schedule.expect("a schedule");
            plan.order = Order::Follow { schedule, strict: true, after: Policy::Rr };
            let (followed, digest_followed) = run(&launch, &plan);
            // Who takes part in a livelock to its end is not told.
            let same = words(&followed.outcome.end) == outcome
                && (outcome == "livelock"
                    || digest.events == digest_followed.events
                    || process_digits() != digits);
            if !same {
                n_departed += 1;
                if !program.departs {
                    complaints.push(complain(format!(
                        "followed, it departs: {:?} instead of {outcome}, {digest:?}, then {digest_followed:?}",
                        followed.outcome.end
                    )));
                }
            }
        }
    }
    if let Some(must) =
        program.must.as_ref().filter(|must| program.n_seeds >= SEEDS && !seen.contains_key(*must))
    {
        complaints.push(format!("{}: no seed shows {must}, only {seen:?}", program.name()));
    }
    if program.departs && n_departed == 0 && program.n_seeds >= SEEDS {
        complaints.push(format!("{} can be followed now: take its mark away", program.name()));
    }
    complaints.extend(check_free(program, &launch));
    complaints
}

/// How many digits the last process's number has. A Rust panic prints it, and what formats one
/// more digit does other events.
fn process_digits() -> usize {
    let load = fs::read_to_string("/proc/loadavg").expect("a load");
    load.split_whitespace().last().map_or(0, str::len)
}

/// Threads in parallel, with delays. Nobody sees a deadlock then, so only programs that
/// always come to an end are tried.
fn check_free(program: &Program, launch: &Launch) -> Option<String> {
    let ends = |outcome: &String| {
        ["exit", "signal", "assert", "use", "double", "misuse"]
            .iter()
            .any(|word| outcome.starts_with(word))
    };
    if !program.free || !program.outcomes.iter().all(ends) {
        return None;
    }
    let delay = Some(raddle_trial::plan::Delay { probability: 0.01, us_max: 50 });
    let plan = Plan {
        order: Order::Free { delay },
        seed: 1,
        n_steps_max: None,
        spurious: false,
        early_sleepers: false,
        cpu: None,
    };
    let executions = [run(launch, &plan).0, collect(launch, &plan)];
    let wrong = executions
        .iter()
        .find(|execution| !program.outcomes.contains(&words(&execution.outcome.end)));
    wrong.map(|execution| format!("{} --policy free: {:?}", program.name(), execution.outcome.end))
}

/// A run of which histories are kept.
fn collect(launch: &Launch, plan: &Plan) -> Execution {
    let settings = histories::Settings { window: 5, paper: false };
    execute(launch, plan, Delivery::Histories(settings, &mut None)).expect("a run")
}

fn run(launch: &Launch, plan: &Plan) -> (Execution, Digest) {
    let mut digest = Digest::default();
    let execution = execute(launch, plan, Delivery::Records(&mut digest)).expect("a run");
    (execution, digest)
}

fn launch(program: &Program) -> Launch {
    let runtime = unpack::unpack(LIBRARY, Soname::default()).expect("the runtime");
    let binary = if program.flags.is_empty() {
        let language = compile::language(&program.source.path).expect("a language");
        compile::compile(&program.source.path, language, &runtime, None)
            .expect("a program that compiles")
    } else {
        compile_with_flags(program)
    };
    let mut arguments = vec![program.name().into()];
    arguments.extend(program.arguments.iter().map(Into::into));
    Launch {
        program: binary,
        arguments,
        directory: None,
        // A backtrace reads all of the program's debug information: two million events.
        environment: vec![("RUST_BACKTRACE".into(), Some("0".into()))],
        stdin: Input::Bytes(program.stdin.clone()),
        stdout: Output::Null,
        stderr: Output::Null,
        timeout: Some(program.timeout),
        runtime,
    }
}

/// The program, in a place of its own, by the compiler that takes flags.
fn compile_with_flags(program: &Program) -> PathBuf {
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program.name()).with_extension("");
    let status = Command::new(env!("CARGO_BIN_EXE_raddle"))
        .args(["cc", "-g", "-O1", "-pthread", "-o"])
        .args([&binary, &program.source.path])
        .args(&program.flags)
        .status()
        .expect("raddle");
    assert!(status.success(), "{} does not compile", program.name());
    binary
}

/// An end as the programs' first lines name it.
fn words(end: &End) -> String {
    let status = |status: &Status| match status {
        Status::Exited(status) => format!("exit {status}"),
        Status::Killed(number) => format!("signal {}", signal_name(*number)),
    };
    match end {
        End::Exit { status } => format!("exit {status}"),
        End::Signal { number, .. } => format!("signal {}", signal_name(*number)),
        End::Assert { .. } => "assert".to_owned(),
        End::Deadlock => "deadlock".to_owned(),
        End::LostWakeup => "lost wake-up".to_owned(),
        End::Livelock { .. } => "livelock".to_owned(),
        End::Hang { .. } => "hang".to_owned(),
        End::UseAfterFree { .. } => "use after free".to_owned(),
        End::DoubleFree { .. } => "double free".to_owned(),
        End::Misuse { .. } => "misuse".to_owned(),
        End::Exec { status: of } => status(of),
        other => format!("{other:?}"),
    }
}
