//! Iterations that are told from a program's machine code, against what the program says.

mod build;

use std::process::Command;

use build::{source, tool};
use raddle_analysis::code::functions::Functions;
use raddle_analysis::code::iterations::Tracker;
use raddle_report::code::Code;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trace::run::Module;

const THREAD: ThreadId = ThreadId(0);

/// An access that the program announced: its loops' iterations, innermost first, as the program
/// says and as they are told.
type Told = (Vec<u32>, Option<Vec<Option<u32>>>);

/// Compiles, runs, and follows the callbacks.
fn told(compiler: &str, flags: &str, name: &str) -> Option<Vec<Told>> {
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
    let mut told = Vec::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["base", base] => {
                let path = program.to_string_lossy().into_owned();
                let base = hex(base);
                let module = Module { path, build_id: String::new(), base, low: 0, high: u64::MAX };
                let code = Code::load(&module).expect("an ELF file");
                tracker = Tracker::new(Functions::new(vec![Box::new(code)]));
            }
            ["enter", pc] => tracker.enter(THREAD, Pc(hex(pc))),
            ["leave"] => tracker.leave(THREAD),
            ["note", ref iterations @ ..] => {
                noted = Some(iterations.iter().filter_map(|n| n.parse().ok()).collect());
            }
            ["site", pc] => {
                let nest = tracker.site(THREAD, Pc(hex(pc)));
                let turns = tracker.turns(nest);
                let turns = turns.map(|turns| turns.iter().map(|turn| turn.iteration).collect());
                if let Some(noted) = noted.take().filter(|noted| !noted.is_empty()) {
                    told.push((noted, turns));
                }
            }
            _ => panic!("what is {line:?}?"),
        }
    }
    Some(told)
}

fn check(compiler: &str, flags: &str) {
    let Some(told) = told(compiler, flags, "loops.c") else { return };
    let mut n_unknown = 0;
    for (said, told) in &told {
        let told = told.as_ref().expect("the functions are decoded completely");
        assert_eq!(told.len(), said.len(), "{told:?} {said:?} with {compiler} {flags}");
        for (told, said) in told.iter().zip(said) {
            n_unknown += usize::from(told.is_none());
            assert!(
                told.is_none_or(|told| told == *said),
                "{told:?} {said} with {compiler} {flags}"
            );
        }
    }
    // Those of `seldom`, which are the last but two.
    assert_eq!((told.len() > 90, n_unknown), (true, 3), "with {compiler} {flags}");
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
        let Some(told) = told("g++", flags, "throws.cc") else { return };
        for (place, (said, told)) in told.iter().enumerate() {
            let told = told.as_ref().expect("the functions are decoded completely");
            let is_true = |(told, said): (&Option<u32>, &u32)| told.is_none_or(|n| n == *said);
            assert!(told.iter().zip(said).all(is_true), "{told:?} {said:?} with {flags}");
            // Those of `guards` and `catches`. Of `leaves` nobody can tell: whether an iteration
            // throws is not seen.
            assert!(place >= 14 || *told == [Some(said[0])], "{told:?} {said:?} with {flags}");
        }
    }
}
