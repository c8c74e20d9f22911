//! Every program of `tests/isolate`: its failure is isolated to the guilty lines, as what it is,
//! and with as many executions as it should take. And what cannot be isolated is refused.
//!
//! One test per program: `cargo test --release -p raddle --test isolate -- overflow` takes those
//! whose name holds that word.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use raddle_corpus::place::{self, FOUND, MISUSE, UNJUDGED};
use raddle_corpus::{Place, Ran, Source, path, runner, sources};
use serde_json::Value;

/// Most programs take a second on an idle machine.
const TIME_MAX: Duration = Duration::from_secs(40);

fn main() -> ExitCode {
    let mut tests = Vec::from(raddle_corpus::tests![
        a_clip_that_passes_is_refused,
        a_program_that_passes_is_refused,
        a_clip_of_another_build_is_refused,
        a_clip_that_no_longer_replays_cannot_be_judged,
        what_is_no_program_for_this_machine_is_refused,
        a_failure_without_a_location_is_said_to_be_one,
        the_oracle_is_asked_once_per_run,
        the_oracle_may_accept_any_status,
        who_may_not_trace_is_told_what_to_allow,
    ]);
    tests
        .extend(runner::tests_of("isolate", sources("isolate"), |source| check(&program(source)?)));
    // One at a time: it single-steps.
    runner::run(1, tests)
}

/// A program with what its first lines say.
struct Program {
    source: Source,
    /// Without anything of raddle in it, compiled with these options.
    plain: Option<Vec<String>>,
    causes: Vec<String>,
    /// As in Table II; any number where none is given.
    executions: Vec<Option<u64>>,
    guilty: Vec<u64>,
}

fn program(source: Source) -> Result<Program, String> {
    source.knows_only(&["Isolate", "Build", "Cause", "Executions", "Guilty"])?;
    let is_plain = match source.directive("Isolate") {
        Some("plain") => true,
        Some("rr") => false,
        other => return Err(format!("`Isolate: plain` or `rr` is missing: {other:?}")),
    };
    Ok(Program {
        plain: is_plain.then(|| source.words("Build")),
        causes: source.words("Cause"),
        executions: source.words("Executions").iter().map(|word| word.parse().ok()).collect(),
        guilty: source.guilty(),
        source,
    })
}

fn check(program: &Program) -> Result<(), String> {
    let place = Place::new();
    let line = if let Some(options) = &program.plain {
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        compile(&place, &program.source.path, &options);
        "isolate --json -- ./target"
    } else {
        let mut run = raddle(&place, "run --policy rr --clip it.clip");
        let ran = Ran::from(run.arg(&program.source.path));
        if !place.path("it.clip").exists() {
            return Err(format!("no clip: {}", ran.stderr));
        }
        "isolate --json it.clip"
    };
    let start = Instant::now();
    let ran = Ran::from(&mut raddle(&place, line));
    let time = start.elapsed();
    if time > TIME_MAX {
        return Err(format!("took {time:.0?}"));
    }
    let answer = ran.answer()?;
    if ran.code != Some(FOUND) {
        return Err(format!("exit code {:?}: {answer}", ran.code));
    }
    let cause = &answer["cause"];
    let kind = cause["kind"].as_str().unwrap_or_default();
    if !program.causes.iter().any(|cause| cause == kind) {
        return Err(format!("is said to be {kind:?}: {answer}"));
    }
    let accesses = cause["accesses"].as_array().ok_or("no accesses")?;
    let lines: Vec<_> = accesses.iter().filter_map(|access| access["line"].as_u64()).collect();
    if lines.is_empty() || !lines.iter().all(|line| program.guilty.contains(line)) {
        return Err(format!("blames lines {lines:?}, guilty are {:?}", program.guilty));
    }
    let names = ["original", "suppression", "race", "violation"];
    for (name, expected) in names.iter().zip(&program.executions) {
        let n = answer["executions"][name].as_u64();
        if expected.is_some() && n != *expected {
            return Err(format!("executions {}, not {expected:?} {name}", answer["executions"]));
        }
    }
    Ok(())
}

/// A program that passes.
const FINE: &str = "int main(void) { return 0; }\n";
/// A program that fails.
const FAILS: &str = "int main(void) { return 1; }\n";

fn a_clip_that_passes_is_refused() {
    let place = Place::new();
    place.file("fine.c", FINE);
    isolate(&place, "run --clip fine.clip fine.c").exits(0);
    isolate(&place, "isolate fine.clip").exits(MISUSE).says("does not fail");
}

fn a_program_that_passes_is_refused() {
    let place = Place::new();
    compile(&place, &place.file("fine.c", FINE), &[]);
    isolate(&place, "isolate -- ./target").exits(MISUSE).says("does not fail");
}

fn a_clip_of_another_build_is_refused() {
    let place = Place::new();
    place.file("it.c", FAILS);
    isolate(&place, "run --clip it.clip it.c").exits(1);
    place.file("it.c", "#include <stdio.h>\nint main(void) { puts(\"x\"); return 1; }\n");
    isolate(&place, "isolate it.clip").exits(MISUSE).says("a different build");
}

fn a_clip_that_no_longer_replays_cannot_be_judged() {
    let place = Place::new();
    let source = path("isolate/pointer_cleared.c");
    Ran::from(raddle(&place, "run --policy rr --clip it.clip").arg(source)).exits(128 + 11);
    let text = fs::read_to_string(place.path("it.clip")).expect("a clip");
    // The first thread is to stop where it never does.
    let mut clip: Value = serde_json::from_str(&text).expect("JSON");
    let steps = clip["schedule"].as_array_mut().expect("steps");
    let site = steps[1].as_str().and_then(|step| step.split(' ').nth(2)).expect("a site");
    steps[0] = format!("T0 2 {site}").into();
    place.file("it.clip", clip.to_string());
    isolate(&place, "isolate it.clip").exits(UNJUDGED).says("no longer replays");
}

fn what_is_no_program_for_this_machine_is_refused() {
    let place = Place::new();
    compile(&place, &place.file("it.c", FAILS), &[]);
    let mut bytes = fs::read(place.path("target")).expect("a program");
    // The class of the file: 32 bits.
    bytes[4] = 1;
    place.file("target", bytes);
    isolate(&place, "isolate -- ./target").exits(MISUSE).says("x86-64");
    isolate(&place, "isolate").exits(MISUSE).says("nothing to isolate");
}

fn a_failure_without_a_location_is_said_to_be_one() {
    let place = Place::new();
    let source = place.file("it.c", "#include <stdlib.h>\nint main(void) { abort(); }\n");
    compile(&place, &source, &[]);
    let ran = isolate(&place, "isolate --json -- ./target").exits(UNJUDGED).says("uses no memory");
    let answer = ran.json();
    assert_eq!(answer["cause"], Value::Null);
    assert_eq!(answer["chain"][0]["access"]["line"], 2);
}

/// Rejects a failed run, and leaves a line for each time that it is asked.
const ORACLE: &str = r#"echo asked >>asked; test "$RADDLE_STATUS" = 0"#;

fn the_oracle_is_asked_once_per_run() {
    let place = Place::new();
    compile(&place, &path("isolate/neighbor_in_word.c"), &[]);
    let mut command = raddle(&place, "isolate --json --oracle");
    let ran = Ran::from(command.arg(ORACLE).args(["--", "./target"])).exits(FOUND);
    let answer = ran.json();
    assert_eq!(answer["failure"], format!("oracle `{ORACLE}` rejected the run"));
    let executions = answer["executions"].as_object().expect("counts");
    let n: u64 = executions.values().filter_map(Value::as_u64).sum();
    assert!(n > 1, "{answer}");
    let asked = fs::read_to_string(place.path("asked")).expect("it was asked");
    assert_eq!(asked.lines().count() as u64, n, "{answer}");
}

fn the_oracle_may_accept_any_status() {
    let place = Place::new();
    compile(&place, &place.file("it.c", FAILS), &[]);
    isolate(&place, "isolate --oracle true -- ./target").exits(MISUSE).says("does not fail");
}

/// Compiles a program that is not instrumented, to `target`.
fn compile(place: &Place, source: &Path, options: &[&str]) {
    let flags = [&["-g", "-O0", "-w"], options].concat();
    place.compile("gcc", &flags, source, "target");
}

/// raddle with a cache of its own: others clear theirs as they like.
fn raddle(place: &Place, line: &str) -> Command {
    let mut command = place.command(line);
    command.env("XDG_CACHE_HOME", place.directory());
    command
}

fn isolate(place: &Place, line: &str) -> Ran {
    Ran::from(&mut raddle(place, line))
}

/// Runs its arguments without the right to trace.
const WITHOUT_PTRACE: &str = r"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    execv(argv[1], argv + 1);
    return 1;
}
";

fn who_may_not_trace_is_told_what_to_allow() {
    let place = Place::new();
    let source = place.file("without.c", WITHOUT_PTRACE);
    place.compile("gcc", &["-w"], source, "without");
    compile(&place, &place.file("it.c", FAILS), &[]);
    let mut command = Command::new(place.path("without"));
    command.current_dir(place.directory()).stdin(Stdio::null());
    command.arg(place::executable()).args(["isolate", "--", "./target"]);
    Ran::from(&mut command).exits(UNJUDGED).says("ptrace_scope");
}
