//! Files of every released version are read, or rejected with a clear message.
//!
//! A file `formats/N.trace` contains records of every kind that version N has; `BLESS=1 cargo test
//! -p raddle-trace` rewrites the newest, which is right only together with a new version. Versions
//! 1 and 2 were never released.

use std::path::{Path, PathBuf};

use raddle_trace::clip::Clip;
use raddle_trace::control::{Mode, Policy};
use raddle_trace::event::n_more;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::id::{Addr, ThreadId};
use raddle_trace::record::{Kind, Record};
use raddle_trace::run::{Module, Run, Thread};
use raddle_trace::std_text;

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

fn blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Three rounds of every kind, by two threads.
fn records() -> Vec<Record> {
    let mut records = Vec::new();
    for round in 0..3_u64 {
        for &kind in Kind::ALL.iter().filter(|&&kind| kind != Kind::More) {
            let number = kind as u64;
            let operand = match kind {
                Kind::Switch | Kind::Spawn | Kind::Join | Kind::Detach => round % 2,
                Kind::Repeats => round + 1,
                _ => 0x5555_0000 + 64 * number + 8 * round,
            };
            records.push(Record::new(kind, 1, operand, 2, 0x40_0000 + 16 * number));
            let payload = (0..n_more(kind)).map(|i| Record::more(8 + round * number + i as u64));
            records.extend(payload);
        }
    }
    records
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

/// Checks the numbers of records, kinds, and events of a version's file.
#[track_caller]
fn check(version: &str, expected: (u64, usize, u64)) {
    let trace = Trace::open(&formats().join(version).with_extension("trace")).expect("a trace");
    assert!(trace.complete());
    assert_eq!(trace.run(), &run());
    let stats = trace.stats().expect("stats");
    assert_eq!((trace.n_records(), stats.kinds.len(), stats.events), expected);
}

#[test]
fn trace_3() {
    check("3", (231, 54, 165));
}

#[test]
fn trace_4() {
    let path = formats().join("4.trace");
    if blessed() {
        let mut writer = Writer::create(&path).expect("a writer");
        writer.push(0, &records()).expect("push");
        writer.finish(&run()).expect("finish");
    }
    check("4", (252, 59, 180));
}

#[test]
fn traces_1_and_2_are_refused_by_name() {
    for version in ["1", "2"] {
        let err = Trace::open(&formats().join(version).with_extension("trace"));
        let err = err.err().expect("an error");
        assert!(err.to_string().contains(&format!("format version {version}")), "{err}");
    }
}

/// Checks the STD text of a version's file. That of an older version is never blessed.
#[track_caller]
fn check_text(version: &str, is_newest: bool) {
    let path = formats().join(version);
    let mut text = Vec::new();
    let trace = Trace::open(&path.with_extension("trace")).expect("a trace");
    std_text::export(&trace, &mut text).expect("export");
    let path = path.with_extension("std");
    if is_newest && blessed() {
        std::fs::write(&path, &text).expect("write");
    }
    let expect = std::fs::read_to_string(&path).expect("the text");
    assert_eq!(String::from_utf8(text).as_deref(), Ok(&expect[..]));
}

#[test]
fn std_text_of_trace_3() {
    check_text("3", false);
}

#[test]
fn std_text_of_trace_4() {
    check_text("4", true);
}

/// Checks that a clip is read, and which steps its schedule counts.
#[track_caller]
fn check_clip(name: &str, step_version: u32) {
    let path = formats().join(name);
    let clip = Clip::read(&path).expect("a clip");
    let text = std::fs::read_to_string(&path).expect("the text");
    assert_eq!(String::from_utf8(clip.to_json()).as_deref(), Ok(&text[..]));
    assert_eq!(clip.step_version(), step_version);
}

#[test]
fn clip_1() {
    check_clip("1.clip", 1);
}

#[test]
fn clip_1_with_steps_2() {
    check_clip("1-steps-2.clip", 2);
}
