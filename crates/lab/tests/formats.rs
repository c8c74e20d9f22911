//! Run files of every version are read, or refused by name.
//!
//! `BLESS=1 cargo test -p raddle-lab --test formats` writes the files of the current version
//! again, which is right only together with a new version. Versions 1 and 2 were never released.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raddle_analysis::localize::facts::{
    Facts, LoopIteration, Pair, PairFact, Pattern, PatternFact, Point, SiteAccess,
};
use raddle_analysis::witness::AccessKind;
use raddle_lab::sample::{Failed, Sample, Spec, read_all};
use raddle_trace::control::{Mode, Policy};
use raddle_trace::failure::FailureKind;
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::run::{Module, Run, Thread};
use raddle_trace::schedule::{Schedule, Step};
use raddle_trial::outcome::{Assertion, Doubts, Place};
use raddle_trial::verdict::Failure;
use raddle_trial::{End, Order, Outcome};

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/v3")
}

fn run() -> Run {
    let thread = |id, name: &str| Thread {
        id: ThreadId(id),
        name: name.to_owned(),
        label: None,
        stack: (Addr(0x7fff_0000), Addr(0x7fff_8000)),
    };
    Run {
        command: vec!["./bank".to_owned(), "3".to_owned()],
        directory: "/home/me".to_owned(),
        mode: Mode::Controlled,
        policy: Some(Policy::Random),
        seed: 42,
        modules: vec![Module {
            path: "/home/me/bank".to_owned(),
            build_id: "5f1e".to_owned(),
            base: 0x40_0000,
            low: 0x40_0000,
            high: 0x41_0000,
        }],
        threads: vec![thread(0, "main"), thread(1, "main/1")],
        ending: Some("exit 0".to_owned()),
    }
}

fn facts() -> Facts {
    let [read, write] = [(0x10, AccessKind::Read), (0x20, AccessKind::Write)]
        .map(|(site, kind)| SiteAccess { site: Site(site), kind });
    let point = |thread, seq| Point {
        thread: ThreadId(thread),
        seq,
        addr: Addr(0x5000),
        bytes: 4,
        loops: vec![LoopIteration { entry: 0x40_0100, activation: 1, iteration: Some(2) }],
    };
    Facts {
        pairs: vec![PairFact {
            pair: Pair { head: read, tail: write },
            instances: vec![[point(0, 3), point(1, 4)]],
        }],
        patterns: vec![PatternFact {
            pattern: Pattern { accesses: vec![read, write, write] },
            points: vec![point(0, 3), point(1, 4), point(0, 5)],
            stacks: vec![vec![Site(0x30)], Vec::new(), vec![Site(0x30)]],
            window: 3,
        }],
        accesses: vec![read, write],
        n_events: 6,
        n_threads: 2,
        n_shared: 1,
        n_left_out: 0,
        is_exact: true,
    }
}

fn passed() -> Sample {
    let order = Order::Pct { depth: 3, n_steps: 100 };
    let spec = Spec { seed: 1, order, with_loops: false };
    Sample { run: run(), spec, failed: None, facts: facts() }
}

fn failed() -> Sample {
    let place = Place { thread: ThreadId(1), pc: Pc(0x40_0123), addr: Addr(0) };
    let assertion = Assertion {
        text: "balance >= 0".to_owned(),
        file: "bank.c".to_owned(),
        line: 42,
        function: "main".to_owned(),
    };
    let outcome = Outcome {
        end: End::Assert { assertion, place },
        stack: vec![Pc(0x40_0123)],
        threads: Vec::new(),
        doubts: Doubts::default(),
        left: None,
        n_steps: 6,
        n_switches: 2,
        cpu: Duration::from_millis(3),
        wall: Duration::from_millis(5),
    };
    let failure = Failure {
        kind: FailureKind::Assert,
        detail: "balance >= 0".to_owned(),
        place: Some(("bank.c".to_owned(), 42)),
    };
    let steps = vec![Step::Run { thread: ThreadId(1), count: 3, site: Site(5) }];
    let order =
        Order::Follow { schedule: Schedule { steps }, strict: false, after: Policy::Random };
    let spec = Spec { seed: 2, order, with_loops: true };
    let failed = Failed { key: "assert bank.c:42".to_owned(), failure, outcome };
    Sample { run: run(), spec, failed: Some(failed), facts: facts() }
}

/// A run of which almost nothing is known.
fn bare() -> Sample {
    let steps = vec![
        Step::Choose { choose: 2 },
        Step::Run { thread: ThreadId(1), count: 3, site: Site(5) },
        Step::Run { thread: ThreadId(0), count: u64::MAX, site: Site::UNKNOWN },
    ];
    let schedule = Schedule { steps };
    Sample {
        run: Run {
            command: vec!["prog".into(), "--fast".into()],
            directory: "/".into(),
            mode: Mode::Controlled,
            policy: Some(Policy::Follow),
            seed: 7,
            modules: vec![],
            threads: vec![],
            ending: Some("exit 0".into()),
        },
        spec: Spec {
            seed: 7,
            order: Order::Follow { schedule, strict: false, after: Policy::Random },
            with_loops: false,
        },
        failed: None,
        facts: Facts { n_events: 12, n_threads: 2, is_exact: true, ..Facts::default() },
    }
}

#[test]
fn version_3_is_read() {
    let directory = formats();
    let samples = [passed(), failed(), bare()];
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(&directory).expect("a directory");
        for sample in &samples {
            sample.keep(&directory).expect("written");
        }
    }
    let read = read_all(&directory).expect("run files");
    // Samples cannot be compared, but they print all that they hold.
    assert_eq!(format!("{read:?}"), format!("{samples:?}"));
    // And this version still writes what it reads.
    let again = tempfile::tempdir().expect("a directory");
    for sample in &read {
        sample.keep(again.path()).expect("written");
    }
    for name in ["000001-pass.run", "000002-fail.run", "000007-pass.run"] {
        let [old, new] = [&*directory, again.path()].map(|at| fs::read(at.join(name)));
        assert_eq!(old.expect("a file"), new.expect("a file"), "{name}");
    }
}

#[test]
fn other_versions_are_refused_by_name() {
    let bytes = fs::read(formats().join("000001-pass.run")).expect("a file");
    for version in [1_u32, 2, 4] {
        let mut other = bytes.clone();
        other[8..12].copy_from_slice(&version.to_le_bytes());
        let err = Sample::from_bytes(&other).expect_err("another version");
        assert!(err.contains(&format!("format {version}")), "{err}");
    }
}

#[test]
fn facts_that_contradict_themselves_are_damage() {
    let refused = |change: fn(&mut Facts)| {
        let directory = tempfile::tempdir().expect("a directory");
        let mut sample = passed();
        change(&mut sample.facts);
        sample.keep(directory.path()).expect("written");
        let err = read_all(directory.path()).expect_err("damage");
        assert!(err.to_string().contains("damaged"), "{err}");
    };
    refused(|facts| facts.pairs[0].instances.clear());
    refused(|facts| facts.pairs.push(facts.pairs[0].clone()));
    refused(|facts| facts.accesses.reverse());
    refused(|facts| facts.patterns[0].points.truncate(2));
    refused(|facts| facts.patterns[0].pattern.accesses.truncate(1));
}
