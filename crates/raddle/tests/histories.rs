//! What a target keeps of a run by itself is what its records say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raddle_analysis::localize::collect::Settings;
use raddle_analysis::localize::facts::Facts;
use raddle_analysis::localize::recall::recall;
use raddle_analysis::localize::window;
use raddle_code::elf::Files;
use raddle_lab::budget::Limits;
use raddle_lab::executor::{Executor, Subject};
use raddle_lab::progress::Progress;
use raddle_lab::sample::Spec;
use raddle_lab::sample::collect::{in_detail, kept, last_events};
use raddle_trial::plan::Delay;
use raddle_trial::target::{self, Runtime};
use raddle_trial::verdict::Expected;
use raddle_trial::{Delivery, Input, Launch, Order, Output, Plan};

const RUNTIME: Runtime = Runtime(include_bytes!(env!("RADDLE_RUNTIME")));

fn ignore(_: Progress<'_>) {}

fn executor(program: &Path) -> Executor<'static> {
    raddle_trial::fix_addresses().expect("addresses can be fixed");
    let program = target::program(program, None, RUNTIME).expect("a target");
    let launch = Launch {
        arguments: vec![program.path.clone().into_os_string()],
        runtime: RUNTIME.file(program.soname).expect("the runtime library"),
        program: program.path,
        directory: None,
        environment: Vec::new(),
        stdin: Input::Null,
        stdout: Output::Capture,
        stderr: Output::Capture,
        timeout: Some(Duration::from_secs(20)),
        files: Files::default(),
    };
    let subject = Subject {
        launch,
        expected: Expected::default(),
        jobs: Some(1),
        is_own: Arc::new(|run, pc| run.is_own(pc)),
        files: Files::default(),
    };
    Executor::new(subject, Limits { runs_max: usize::MAX, time_max: Duration::MAX }, &ignore)
}

/// Those that are to be localized, those of `hunt` that are about synchronization objects, and
/// one that is killed.
fn programs() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let of = |directory: &str, starts: &[&str]| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(tests.join(directory)).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").path());
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".c") && starts.iter().any(|start| name.starts_with(start))
        };
        names.filter(is_one).collect()
    };
    let mut paths = [of("localize", &[""]), of("hunt", &["destroy_", "sem_", "wakeup_"])].concat();
    paths.sort();
    paths.push(tests.join("programs/crash_killed.c"));
    paths
}

/// The patterns and pairs of one that the other has not.
fn missing(one: &Facts, other: &Facts) -> Vec<String> {
    let patterns = |facts: &Facts| -> BTreeSet<_> {
        facts.patterns.iter().map(|fact| fact.pattern.clone()).collect()
    };
    let pairs =
        |facts: &Facts| -> BTreeSet<_> { facts.pairs.iter().map(|fact| fact.pair).collect() };
    let patterns = &patterns(one) - &patterns(other);
    let pairs = &pairs(one) - &pairs(other);
    patterns
        .iter()
        .map(|pattern| format!("{pattern:?}"))
        .chain(pairs.iter().map(|pair| format!("{pair:?}")))
        .collect()
}

/// What a run left, from its histories and from its records.
fn both(executor: &Executor<'_>, spec: &Spec, settings: Settings) -> (Facts, Facts) {
    let plan = spec.plan(&Plan::default());
    let mut histories = None;
    let delivery = Delivery::Histories(kept(settings), &mut histories);
    let runner = executor.alone(2);
    let trial = runner.run(&plan, delivery).expect("a run").expect("a budget");
    let facts = recall(&histories.expect("histories"), &trial.execution.run, 0);
    (facts, exact(executor, spec, &plan, settings))
}

fn exact(executor: &Executor<'_>, spec: &Spec, plan: &Plan, settings: Settings) -> Facts {
    let sampled = in_detail(&executor.alone(1), spec, plan, settings).expect("a run");
    sampled.expect("a budget").sample.expect("a run that is judged").facts
}

#[test]
fn free_threads_that_have_only_one_order_tell_the_same_as_controlled_ones() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let executor = executor(&tests.join("programs/sem_handed_over.c"));
    let settings = Settings::default();
    let spec = |order| Spec { seed: 1, order, with_loops: false };
    let (_, expected) = both(&executor, &spec(Order::Random), settings);
    assert!(expected.pairs.len() > 20 && expected.patterns.len() > 20);
    for delay in [None, Some((0.001, 30)), Some((0.1, 3))] {
        let delay = delay.map(|(probability, us_max)| Delay { probability, us_max });
        let (kept, exact) = both(&executor, &spec(Order::Free { delay }), settings);
        for facts in [kept, exact] {
            assert_eq!(missing(&expected, &facts), Vec::<String>::new());
            assert_eq!(missing(&facts, &expected), Vec::<String>::new());
        }
    }
}

#[test]
fn histories_and_records_tell_the_same() {
    let settings = [
        Settings::default(),
        Settings { window: 3, ..Settings::default() },
        Settings { policy: window::Policy::Paper, ..Settings::default() },
        Settings { window: 6, policy: window::Policy::Paper },
    ];
    let mut wrong = Vec::new();
    let mut n_pairs = 0;
    for program in programs() {
        let name = program.file_name().expect("a name").to_string_lossy().into_owned();
        let executor = executor(&program);
        for (seed, settings) in (0..).zip(settings) {
            let order = if seed % 2 == 0 { Order::Random } else { Order::Pos };
            let spec = Spec { seed, order, with_loops: false };
            let plan = spec.plan(&Plan { n_steps_max: Some(10_000_000), ..Plan::default() });
            let mut histories = None;
            let delivery = Delivery::Histories(kept(settings), &mut histories);
            let trial = executor.alone(1).run(&plan, delivery).expect("a run").expect("a budget");
            // What threads were about to do is told by the records alone.
            if !last_events(&trial.execution.outcome).is_empty() {
                continue;
            }
            let kept = recall(&histories.expect("histories"), &trial.execution.run, 0);
            let exact = exact(&executor, &spec, &plan, settings);
            let (lost, made_up) = (missing(&exact, &kept), missing(&kept, &exact));
            if !lost.is_empty() || !made_up.is_empty() {
                wrong.push(format!("{name} {seed}: lost {lost:#?}, made up {made_up:#?}"));
            }
            n_pairs += kept.pairs.len();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_pairs > 0);
}
