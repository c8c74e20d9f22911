//! Every program of `tests/programs` under every policy: it ends as its first lines say, calls and
//! records what they say that it covers, two executions of one seed perform the same events, and so
//! does an execution that follows a recorded schedule.
//!
//! One test per program: `cargo test --release -p raddle --test programs -- mutex` tries those
//! whose name holds that word. `RADDLE_SEEDS=3` tries fewer seeds, and does not ask for every
//! outcome and event that a program must show.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use object::{Object as _, ObjectSymbol as _};
use raddle_code::program::Soname;
use raddle_corpus::{Source, place, runner, sources};
use raddle_trace::control::Policy;
use raddle_trace::event::Batch;
use raddle_trace::file::WriteError;
use raddle_trace::record::{Kind, Record};
use raddle_trace::run::Run;
use raddle_trial::outcome::signal_name;
use raddle_trial::unpack;
use raddle_trial::{
    Delivery, End, Execution, Input, Launch, Order, Output, Plan, Sink, Status, compile, execute,
    fix_addresses, histories, processors,
};

const LIBRARY: &[u8] = include_bytes!(env!("RADDLE_RUNTIME"));
/// Seeds per policy, unless a program says that it is slow by nature. With so many, what a
/// program must show has to be seen.
const SEEDS: u64 = 50;
/// Steps after which a program is taken for one without end.
const STEPS_MAX: u64 = 40_000_000;
/// The share of these for which its threads may spin.
const IDLE_SHARE: u64 = 20;

/// FIXME: exported functions and events that no program covers, one name per line, with the
/// reason in a comment above.
const UNCOVERED: &str = include_str!("uncovered.txt");
/// The functions that the runtime exports, one name per line.
const EXPORTS: &str = include_str!("../../runtime/exports.txt");

/// What directives and outcomes mean.
const README: &str = include_str!("programs/README.md");

/// The directives of a program.
const DIRECTIVES: [&str; 14] = [
    "About", "Covers", "Outcome", "Must", "Args", "Stdin", "Flags", "Library", "Timeout", "Seeds",
    "Steps", "External", "Free", "Follow",
];

/// The ways to end that a program may name, without statuses and the names of signals.
const OUTCOMES: [&str; 10] = [
    "exit",
    "signal",
    "assert",
    "deadlock",
    "lost wake-up",
    "livelock",
    "timed out",
    "use after free",
    "double free",
    "misuse",
];

fn main() -> ExitCode {
    fix_addresses().expect("addresses that stay");
    let mut tests = Vec::from(raddle_corpus::tests![
        every_directive_and_outcome_is_explained,
        every_outcome_is_covered,
        every_export_and_event_is_covered_or_listed,
    ]);
    tests.extend(runner::tests_of("programs", sources("programs"), |source| {
        check(&Program::new(source)?)
    }));
    runner::run(processors().len(), tests)
}

/// The processor that this thread's targets run on: another one for each thread.
fn cpu() -> u32 {
    static N_THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static CPU: u32 = {
            let cpus = processors();
            cpus[N_THREADS.fetch_add(1, Ordering::Relaxed) % cpus.len()]
        };
    }
    CPU.with(|&cpu| cpu)
}

/// A program with what its first lines say.
#[derive(Debug)]
struct Program {
    source: Source,
    /// Exported functions that it calls, and events that it performs.
    covers: BTreeSet<String>,
    outcomes: BTreeSet<String>,
    must: Option<String>,
    flags: Vec<String>,
    /// Whether the file is also compiled as a library.
    has_library: bool,
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
    fn new(source: Source) -> Result<Self, String> {
        source.knows_only(&DIRECTIVES)?;
        let covers: BTreeSet<_> = source.words("Covers").into_iter().collect();
        let vocabulary = vocabulary();
        match covers.iter().find(|name| !vocabulary.contains(&name[..])) {
            Some(name) => return Err(format!("covers `{name}`, which is no export and no event")),
            None if covers.is_empty() => return Err("covers nothing".to_owned()),
            None => {}
        }
        let said = |word: &str| source.directive(word);
        let number = |word: &str, otherwise: u64| {
            said(word).map_or(otherwise, |n| n.parse().expect("a number"))
        };
        let wanted =
            std::env::var("RADDLE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(SEEDS);
        Ok(Self {
            covers,
            outcomes: outcomes(&source),
            must: said("Must").map(str::to_owned),
            flags: source.words("Flags"),
            has_library: said("Library").is_some(),
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
        })
    }

    fn name(&self) -> &str {
        &self.source.name
    }
}

/// What a program may end with, by its first lines.
fn outcomes(source: &Source) -> BTreeSet<String> {
    let outcomes = source.directive("Outcome").unwrap_or_default().split('|');
    outcomes.map(|outcome| outcome.trim().to_owned()).collect()
}

/// What a program may cover: the functions that the runtime exports, and the kinds of records.
fn vocabulary() -> BTreeSet<&'static str> {
    EXPORTS.lines().chain(Kind::ALL.iter().map(|kind| kind_name(*kind))).collect()
}

/// The name of a kind of record.
fn kind_name(kind: Kind) -> &'static str {
    static NAMES: OnceLock<BTreeMap<u8, String>> = OnceLock::new();
    let names = NAMES
        .get_or_init(|| Kind::ALL.iter().map(|kind| (*kind as u8, format!("{kind:?}"))).collect());
    &names[&(kind as u8)]
}

fn every_directive_and_outcome_is_explained() {
    let rows = || README.lines().filter(|line| line.starts_with('|'));
    for word in DIRECTIVES {
        assert!(rows().any(|row| row.contains(&format!("`// {word}: "))), "{word}");
    }
    for word in OUTCOMES {
        let is_named =
            |row: &str| [' ', '`'].iter().any(|&end| row.contains(&format!("`{word}{end}")));
        assert!(rows().any(is_named), "{word}");
    }
}

fn every_outcome_is_covered() {
    let programs = sources("programs");
    let outcomes: BTreeSet<_> = programs.iter().flat_map(outcomes).collect();
    let is_known = |outcome: &&String| {
        OUTCOMES.iter().any(|known| match *known {
            "exit" | "signal" => outcome.starts_with(known),
            known => *outcome == known,
        })
    };
    let unknown: Vec<_> = outcomes.iter().filter(|outcome| !is_known(outcome)).collect();
    assert!(unknown.is_empty(), "no outcomes: {unknown:?}");
    let is_covered = |known: &&&str| outcomes.iter().any(|outcome| outcome.starts_with(**known));
    let missing: Vec<_> = OUTCOMES.iter().filter(|known| !is_covered(known)).collect();
    assert!(missing.is_empty(), "no program ends with {missing:?}");
}

fn every_export_and_event_is_covered_or_listed() {
    let programs = sources("programs");
    let covered: BTreeSet<_> = programs.iter().flat_map(|source| source.words("Covers")).collect();
    let uncovered: BTreeSet<_> =
        vocabulary().into_iter().filter(|name| !covered.contains(*name)).collect();
    let listed: BTreeSet<_> =
        UNCOVERED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let expired: Vec<_> = listed.difference(&uncovered).collect();
    let missing: Vec<_> = uncovered.difference(&listed).collect();
    assert!(
        expired.is_empty() && missing.is_empty(),
        "tests/uncovered.txt: covered or unknown now, so remove them: {expired:?}; \
         to be covered by a program, or else listed: {missing:?}"
    );
}

/// What a program says that it covers and yet neither imports nor recorded.
fn not_covered(program: &Program, binary: &Path, kinds: u64) -> Vec<String> {
    let mut imports = imports(binary);
    if program.has_library {
        imports.extend(self::imports(&binary.with_extension("so")));
    }
    let recorded = Kind::ALL.iter().filter(|kind| kinds & 1 << **kind as u8 != 0);
    let recorded: BTreeSet<_> = recorded.map(|kind| kind_name(*kind)).collect();
    let is_covered = |name: &&String| imports.contains(*name) || recorded.contains(&name[..]);
    program.covers.iter().filter(|name| !is_covered(name)).cloned().collect()
}

/// The functions that a program or library imports.
fn imports(binary: &Path) -> BTreeSet<String> {
    let bytes = fs::read(binary).expect("a program");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    elf.dynamic_symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .collect()
}

fn check(program: &Program) -> Result<(), String> {
    let complaints = check_program(program, cpu());
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
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
    /// The kinds of records that it holds, a bit each.
    kinds: u64,
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
            self.kinds |= record.kind().map_or(0, |kind| 1 << kind as u8);
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
    let mut kinds = 0;
    for order in Order::controlled() {
        let policy = order.name();
        for seed in 0..program.n_seeds {
            let mut plan = Plan {
                order: order.clone(),
                seed,
                n_steps_max: Some(program.n_steps_max),
                n_idle_max: Some(program.n_steps_max / IDLE_SHARE),
                cpu: Some(cpu),
                ..Plan::default()
            };
            let complain = |what: String| {
                format!("{} --policy {policy} --seed {seed}: {what}", program.name())
            };
            let mut digits = process_digits();
            let (mut first, mut digest) = run(&launch, &plan);
            kinds |= digest.kinds;
            let outcome = words(&first.outcome.end);
            *seen.entry(outcome.clone()).or_default() += 1;
            if !program.outcomes.contains(&outcome) {
                complaints.push(complain(format!("{outcome} ({:?})", first.outcome.end)));
                continue;
            }
            let is_decided = !program.external && outcome != "timed out";
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
            let (mut second, mut digest_again) = run(&launch, &plan);
            // Both runs, since ids of one length were followed by longer ones in either.
            while digest != digest_again && process_digits() != digits {
                digits = process_digits();
                (first, digest) = run(&launch, &plan);
                (second, digest_again) = run(&launch, &plan);
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
    let not_covered = not_covered(program, &launch.program, kinds);
    if !not_covered.is_empty() {
        complaints.push(format!("covers, but neither calls nor records: {not_covered:?}"));
    }
    complaints.extend(check_free(program, &launch));
    complaints
}

/// How many digits the newest kernel id has. A Rust panic prints the id of its thread, and an id
/// with one more digit is copied by other events.
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
    let plan = Plan { order: Order::Free { delay }, seed: 1, n_idle_max: None, ..Plan::default() };
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
    let binary = if program.flags.is_empty() && !program.has_library {
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
        files: raddle_code::elf::Files::default(),
    }
}

/// The program, in a place of its own, by the compiler that takes flags; and its library, beside it.
fn compile_with_flags(program: &Program) -> PathBuf {
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program.name()).with_extension("");
    let compile = |flags: &[&str], output: &Path| {
        let status = Command::new(place::executable())
            .args(["cc", "-g", "-O1", "-pthread"])
            .args(flags)
            .arg("-o")
            .args([output, &program.source.path])
            .args(&program.flags)
            .status()
            .expect("raddle");
        assert!(status.success(), "{} does not compile", program.name());
    };
    if program.has_library {
        compile(&["-DLIBRARY", "-shared", "-fPIC"], &binary.with_extension("so"));
    }
    compile(&[], &binary);
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
        End::Endless { .. } => "hang".to_owned(),
        End::TimedOut { .. } => "timed out".to_owned(),
        End::UseAfterFree { .. } => "use after free".to_owned(),
        End::DoubleFree { .. } => "double free".to_owned(),
        End::Misuse { .. } => "misuse".to_owned(),
        End::Exec { status: of } => status(of),
        End::Diverged(_) | End::Internal { .. } | End::Unattached { .. } | End::Interrupted => {
            format!("{end:?}")
        }
    }
}
