//! Loop iterations derived from a program's machine code, compared with the program's own counts.

mod build;

use std::process::Command;

use build::{source, tool};
use raddle_code::elf::Files;
use raddle_code::functions::Functions;
use raddle_code::iterations::Tracker;
use raddle_code::module::Code;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trace::run::Module;

const THREAD: ThreadId = ThreadId(0);

/// An access that the program announced: the iterations of its loops, innermost first, as the
/// program says and as derived.
type Answer = (Vec<u32>, Option<Vec<Option<u32>>>);

/// Compiles, runs, and follows the callbacks.
fn derived(compiler: &str, flags: &str, name: &str) -> Option<Vec<Answer>> {
    let dir = tempfile::tempdir().expect("a directory");
    let (library, program) = (dir.path().join("libcallbacks.so"), dir.path().join("program"));
    let object = dir.path().join("loops.o");
    tool(compiler, |command| {
        command.args(["-x", "c", "-shared", "-fPIC", "-O1", "-o"]).arg(&library);
        command.arg(source("callbacks.c"));
    })?;
    tool(compiler, |command| {
        command.args(["-c", "-g", "-fsanitize=thread"]).args(flags.split_whitespace());
        command.arg(source(name)).arg("-o").arg(&object);
    })?;
    tool(compiler, |command| {
        let flags = flags.split_whitespace().filter(|flag| *flag == "-no-pie");
        command.args(flags).arg(&object).arg(&library).arg("-o").arg(&program);
        command.arg(format!("-Wl,-rpath,{}", dir.path().display()));
    })?;
    let output = Command::new(&program).output().expect("the program runs");
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).expect("text");

    let hex = |word: &str| u64::from_str_radix(word, 16).expect("an address");
    let mut tracker = Tracker::new(Functions::default());
    let mut noted: Option<Vec<u32>> = None;
    let mut derived = Vec::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["base", base] => {
                let path = program.to_string_lossy().into_owned();
                let base = hex(base);
                let module = Module { path, build_id: String::new(), base, low: 0, high: u64::MAX };
                let code = Code::load(&module, &Files::default()).expect("an ELF file");
                tracker = Tracker::new(Functions::new(vec![Box::new(code)]));
            }
            ["enter", pc] => tracker.enter(THREAD, Pc(hex(pc))),
            ["leave"] => tracker.leave(THREAD),
            ["note", ref iterations @ ..] => {
                noted = Some(iterations.iter().filter_map(|n| n.parse().ok()).collect());
            }
            ["site", pc] => {
                let nest = tracker.site(THREAD, Pc(hex(pc)));
                let turns = tracker.loop_iterations(nest);
                let turns = turns.map(|turns| turns.iter().map(|turn| turn.iteration).collect());
                if let Some(noted) = noted.take().filter(|noted| !noted.is_empty()) {
                    derived.push((noted, turns));
                }
            }
            _ => panic!("what is {line:?}?"),
        }
    }
    Some(derived)
}

fn check(compiler: &str, flags: &str) {
    let Some(derived) = derived(compiler, flags, "loops.c") else { return };
    let mut n_unknown = 0;
    for (said, derived) in &derived {
        let derived = derived.as_ref().expect("the functions are decoded completely");
        assert_eq!(derived.len(), said.len(), "{derived:?} {said:?} with {compiler} {flags}");
        for (derived, said) in derived.iter().zip(said) {
            n_unknown += usize::from(derived.is_none());
            assert!(
                derived.is_none_or(|derived| derived == *said),
                "{derived:?} {said} with {compiler} {flags}"
            );
        }
    }
    // Those of `seldom`, which are the last but two.
    assert_eq!((derived.len() > 90, n_unknown), (true, 3), "with {compiler} {flags}");
}

#[test]
fn iterations_in_code_of_gcc() {
    for flags in ["-O0", "-O1", "-O2", "-O2 -fno-plt", "-O1 -no-pie -fno-pie"] {
        check("gcc", flags);
    }
}

#[test]
fn iterations_in_code_of_clang() {
    for flags in ["-O1", "-O2 -fno-plt"] {
        check("clang", flags);
    }
}

#[test]
fn exceptions_lead_to_no_wrong_count() {
    for flags in ["-O0", "-O1", "-O2"] {
        let Some(derived) = derived("g++", flags, "throws.cc") else { return };
        for (place, (said, derived)) in derived.iter().enumerate() {
            let derived = derived.as_ref().expect("the functions are decoded completely");
            let is_true =
                |(derived, said): (&Option<u32>, &u32)| derived.is_none_or(|n| n == *said);
            assert!(derived.iter().zip(said).all(is_true), "{derived:?} {said:?} with {flags}");
            // Those of `guards` and `catches`. Those of `leaves` cannot be known: whether an
            // iteration throws is not visible.
            assert!(
                place >= 14 || *derived == [Some(said[0])],
                "{derived:?} {said:?} with {flags}"
            );
        }
    }
}
