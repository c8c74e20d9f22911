//! Every program of `tests/hunt` and `tests/unseen`: raddle finds the bug and names it as the
//! program's first lines do, blames guilty lines, and its clip reproduces the failure. Correct
//! programs cause no finding; a lock cycle that does no harm causes one that is benign.
//!
//! One test per program: `cargo test --release -p raddle --test hunt -- deadlock` hunts in those
//! whose name holds that word. Slow programs are ignored tests, which `--include-ignored` runs.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use raddle_corpus::place::{CLEAN, FOUND};
use raddle_corpus::{Exceptions, Place, Ran, Source, runner, sources};
use serde_json::Value;

/// Ends a hunt by the number of its executions, whatever the machine does beside: the time is more
/// than any hunt takes. One job, since hunts run side by side.
const BUDGET: &str = "--time 900 --jobs 1";
/// Executions of a hunt, unless the program says another number.
const RUNS: &str = "2000";
/// The time in which a bug has to be found and explained, with what compiling takes.
const TIME_MAX: Duration = Duration::from_secs(90);

/// Programs that took longer than 20 seconds on a busy machine with two processors.
const SLOW: [&str; 7] = [
    "large_chat_server.cc",
    "large_kv_store.cc",
    "ok_large_web_server.c",
    "ok_rust_pipeline.rs",
    "ok_statistics.c",
    "ok_thread_pool.cc",
    "order_pbzip2_teardown.c",
];

/// FIXME: bugs whose first finding is of another kind than the program says.
const OTHER_KIND: Exceptions = Exceptions {
    list: "OTHER_KIND",
    entries: &[
        (
            "atomicity_www_cancelled.c",
            "an order: the read that finds the overwritten value, not the third write",
        ),
        (
            "cxx_cache_find_then_at.cc",
            "an order: the free inside the map against the read, not the two look-ups",
        ),
        ("deadlock_upgrade.c", "an order on the count of readers that leads to the deadlock"),
        (
            "free_refcount.c",
            "an order: the free of the data against its use, not the count that is read twice",
        ),
        ("large_order_book.c", "an order: one of the two variables is enough to make the run fail"),
        ("multi_property_cache.c", "an atomicity violation of the key alone, without the value"),
        ("order_pbzip2_teardown.c", "an atomicity violation that includes the initialization"),
        (
            "path_repair_dirty.c",
            "an order: the check against the other thread's write, without the repair",
        ),
        ("path_retry_gives_up.c", "an order: the last lost swap against the other thread's write"),
        ("rare_aba_stack.c", "an order: the read of the top against the pop that brings it back"),
        (
            "rust_stock_atomics.rs",
            "an order: the load against the other thread's store, without the own store",
        ),
    ],
};

/// FIXME: bugs whose first finding names no guilty line.
const BLAMED_WRONGLY: Exceptions = Exceptions {
    list: "BLAMED_WRONGLY",
    entries: &[
        ("codec_registry.cc", "blames accesses to an entry, not to the count"),
        ("free_refcount.c", "blames the use and the free of the data, not the count"),
    ],
};

/// FIXME: bugs whose first finding names guilty lines and others beside.
const BLAMED_BESIDE: Exceptions = Exceptions {
    list: "BLAMED_BESIDE",
    entries: &[
        ("order_pbzip2_teardown.c", "the initialization of the queue is one of three accesses"),
        ("steal_deque.c", "pairs the top with the bottom, which the thief reads as well"),
        ("text_frame.c", "pairs the range with the flag that says it changed"),
    ],
};

/// What a finding may be called.
const KINDS: [&str; 6] = ["race", "atomicity", "multi-variable", "order", "deadlock", "failure"];

/// How a program may fail, as its first lines say, and the kind of failure that raddle reports.
const SHOWN: [(&str, &str); 8] = [
    ("assert", "assert"),
    ("signal", "signal"),
    ("deadlock", "deadlock"),
    ("lost-wakeup", "deadlock"),
    ("exit", "exit"),
    ("use-after-free", "memory"),
    ("double-free", "memory"),
    ("misuse", "misuse"),
];

fn main() -> ExitCode {
    let mut tests = Vec::from(raddle_corpus::tests![lists_name_programs]);
    tests.extend(runner::tests_of("hunt", sources("hunt"), |source| check(&Program::new(source)?)));
    let unseen = |source| check(&Program::unseen(source)?);
    tests.extend(runner::tests_of("unseen", sources("unseen"), unseen));
    let is_slow = |name: &str| SLOW.iter().any(|slow| name.ends_with(&format!("::{slow}")));
    let tests = tests.into_iter().map(|test| {
        let is_slow = is_slow(test.name());
        test.with_ignored_flag(is_slow)
    });
    runner::run(usize::MAX, tests.collect())
}

fn lists_name_programs() {
    let sources = ["hunt", "unseen"].map(sources);
    let names: Vec<_> = sources.iter().flatten().map(|source| &source.name[..]).collect();
    for list in [OTHER_KIND, BLAMED_WRONGLY, BLAMED_BESIDE] {
        assert_eq!(list.name_only(&names), Ok(()));
    }
    assert!(SLOW.iter().all(|slow| names.contains(slow)), "SLOW names what is no program");
}

/// What a hunt is to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// A failure.
    Failing,
    /// A lock cycle that did no harm.
    Benign,
    /// Nothing.
    Clean,
}

/// A program with what its first lines say.
struct Program {
    source: Source,
    expects: Expects,
    guilty: Vec<u64>,
    arguments: Vec<String>,
    /// What its bug may be called, and how it may fail; none for what was not written for raddle.
    expected: Option<(Vec<String>, Vec<String>)>,
    /// How many anomalies are predicted, if that is certain.
    n_predicted: Option<u64>,
}

impl Program {
    /// One of `tests/hunt`.
    fn new(source: Source) -> Result<Self, String> {
        source.knows_only(&["Hunt", "Kind", "Guilty", "Shows", "Args", "Runs", "Predicted"])?;
        let n_predicted = source.directive("Predicted").map(|n| n.parse().expect("a number"));
        let arguments = source.words("Args");
        match source.directive("Hunt") {
            Some("fails") => {
                let shown = SHOWN.map(|(word, _)| word);
                let expected =
                    Some((words(&source, "Kind", &KINDS)?, words(&source, "Shows", &shown)?));
                let (expects, guilty) = (Expects::Failing, source.guilty());
                Ok(Self { expects, guilty, arguments, expected, n_predicted, source })
            }
            Some("benign") => {
                let (expects, guilty) = (Expects::Benign, source.guilty());
                let expected = Some((words(&source, "Kind", &KINDS)?, Vec::new()));
                Ok(Self { expects, guilty, arguments, expected, n_predicted, source })
            }
            Some("clean") => {
                let (expects, guilty, expected) = (Expects::Clean, Vec::new(), None);
                Ok(Self { expects, guilty, arguments, expected, n_predicted, source })
            }
            other => Err(format!("`Hunt: fails`, `benign`, or `clean` is missing: {other:?}")),
        }
    }

    /// One of `tests/unseen`, which have marks and no directives, and fail.
    fn unseen(source: Source) -> Result<Self, String> {
        let guilty = source.marked("guilty");
        match guilty.is_empty() {
            true => Err("no guilty line is marked".to_owned()),
            false => {
                let (expects, arguments, expected) = (Expects::Failing, Vec::new(), None);
                Ok(Self { expects, guilty, arguments, expected, n_predicted: None, source })
            }
        }
    }
}

/// The words of a directive, each of them one of `known`, and at least one.
fn words(source: &Source, directive: &str, known: &[&str]) -> Result<Vec<String>, String> {
    let words = source.words(directive);
    if words.is_empty() {
        return Err(format!("`{directive}: …` is missing"));
    }
    match words.iter().find(|word| !known.contains(&&word[..])) {
        Some(word) => Err(format!("`{directive}: {word}` is none of {known:?}")),
        None => Ok(words),
    }
}

/// Hunts in a program, and replays what was found.
fn check(program: &Program) -> Result<(), String> {
    let place = Place::new();
    let start = Instant::now();
    let runs = program.source.directive("Runs").unwrap_or(RUNS);
    let line = format!("hunt --json -o found {BUDGET} --runs {runs}");
    let ran = place.raddle_on(&line, &program.source.path, &program.arguments);
    let time = start.elapsed();
    let [findings, benign] = ["failing", "benign"].map(|verdict| findings(&ran, verdict));
    let (findings, benign) = (findings?, benign?);
    if let Some(n) = program.n_predicted
        && let predicted = &ran.answer()?["anomalies"]["predicted"]
        && *predicted != n
    {
        return Err(format!("predicts {predicted} anomalies, not {n}"));
    }
    // Those that a run shows; other anomalies without harm have no clip.
    let shown: Vec<_> = benign.iter().filter(|finding| finding["clip"].is_string()).collect();
    if program.expects != Expects::Failing {
        return match (findings.first(), &shown[..], program.expects, ran.code) {
            (None, [], Expects::Clean, Some(CLEAN)) => Ok(()),
            (None, [one], Expects::Benign, Some(CLEAN)) => check_all(&[
                check_kind(program, one),
                check_blame(program, one),
                replay(&place, one),
            ]),
            (None, shown, _, Some(CLEAN)) => Err(format!("{} benign: {shown:?}", shown.len())),
            (None, _, _, code) => Err(format!("exit code {code:?}: {}", ran.stderr)),
            (Some(finding), ..) => Err(format!("complains: {finding}")),
        };
    }
    let Some(first) = findings.first() else {
        return Err(format!("nothing found: {}", ran.stderr));
    };
    if ran.code != Some(FOUND) {
        return Err(format!("exit code {:?} with a finding: {}", ran.code, ran.stderr));
    }
    if time > TIME_MAX {
        return Err(format!("took {time:.0?}"));
    }
    check_all(&[
        check_kind(program, first),
        check_failure(program, first),
        check_blame(program, first),
        replay(&place, first),
    ])
}

/// Everything that is wrong.
fn check_all(checks: &[Result<(), String>]) -> Result<(), String> {
    let wrong: Vec<_> = checks.iter().filter_map(|check| check.clone().err()).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn check_kind(program: &Program, first: &Value) -> Result<(), String> {
    let Some((kinds, _)) = &program.expected else { return Ok(()) };
    let kind = first["kind"].as_str().unwrap_or_default();
    let checked = match kinds.iter().any(|expected| expected == kind) {
        true => Ok(()),
        false => Err(format!("the first finding is of kind {kind:?}, not {kinds:?}")),
    };
    OTHER_KIND.apply(&program.source.name, checked)
}

fn check_failure(program: &Program, first: &Value) -> Result<(), String> {
    let Some((_, shown)) = &program.expected else { return Ok(()) };
    let failure = first["failure"]["kind"].as_str().unwrap_or_default();
    let is_shown =
        SHOWN.iter().any(|(word, kind)| shown.iter().any(|its| its == word) && *kind == failure);
    match is_shown {
        true => Ok(()),
        false => {
            Err(format!("the failure is of kind {failure:?}, not {shown:?}: {}", first["failure"]))
        }
    }
}

fn check_blame(program: &Program, first: &Value) -> Result<(), String> {
    let accesses = first["accesses"].as_array().into_iter().flatten();
    let lines: Vec<_> = accesses.filter_map(|access| access["line"].as_u64()).collect();
    let is_guilty = |line: &u64| program.guilty.contains(line);
    let blamed = |is_right: bool| match is_right {
        true => Ok(()),
        false => Err(format!("blames lines {lines:?}, guilty are {:?}", program.guilty)),
    };
    let name = &program.source.name;
    BLAMED_WRONGLY.apply(name, blamed(lines.iter().any(is_guilty)))?;
    match BLAMED_WRONGLY.reason(name) {
        Some(_) => Ok(()),
        None => BLAMED_BESIDE.apply(name, blamed(lines.iter().all(is_guilty))),
    }
}

fn replay(place: &Place, first: &Value) -> Result<(), String> {
    let clip = first["clip"].as_str().ok_or("the first finding has no clip")?;
    let ran = place.raddle(&format!("replay --times 20 --json found/{clip}"));
    let answer = ran.answer().map_err(|why| format!("replay: {why}"))?;
    match answer["reproduced"] == 20 && ran.code == Some(CLEAN) {
        true => Ok(()),
        false => Err(format!("replay: {answer}: {}", ran.stderr)),
    }
}

/// The findings of this verdict.
fn findings(ran: &Ran, verdict: &str) -> Result<Vec<Value>, String> {
    let answer = ran.answer()?;
    let findings = answer["findings"].as_array().ok_or("no findings in the answer")?;
    Ok(findings.iter().filter(|finding| finding["verdict"] == verdict).cloned().collect())
}
