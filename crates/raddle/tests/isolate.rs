//! Every program of `tests/isolate`: its failure is isolated to the guilty lines, as what it is,
//! and with as many executions as it should take. And what cannot be isolated is refused.
//!
//! `RADDLE_ISOLATE=overflow` isolates those programs whose name holds that word.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Source, json, said};
use serde_json::Value;
use tempfile::TempDir;

/// Most take a second on a machine that has nothing else to do.
const SECONDS_MAX: u64 = 40;

#[test]
fn failures_are_isolated_to_the_guilty_lines() {
    let wanted = std::env::var("RADDLE_ISOLATE").unwrap_or_default();
    let sources = common::sources("isolate").into_iter();
    let programs: Vec<Program> =
        sources.filter(|source| source.name.contains(&wanted)).map(program).collect();
    let check = |program: &Program| check(program).err().into_iter().collect();
    common::check_all(&programs, 1, |program| &program.source.name, check);
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

fn program(source: Source) -> Program {
    let is_plain = source.directive("Isolate").expect("a directive") == "plain";
    Program {
        plain: is_plain.then(|| source.words("Build")),
        causes: source.words("Cause"),
        executions: source.words("Executions").iter().map(|word| word.parse().ok()).collect(),
        guilty: source.guilty(),
        source,
    }
}

fn check(program: &Program) -> Result<(), String> {
    let directory = TempDir::new().expect("a directory");
    let mut isolate = raddle(directory.path());
    isolate.args(["isolate", "--json"]);
    if let Some(options) = &program.plain {
        compile(directory.path(), &program.source.path, options);
        isolate.args(["--", "./target"]);
    } else {
        let mut run = raddle(directory.path());
        run.args(["run", "--policy", "rr", "--clip", "it.clip"]).arg(&program.source.path);
        let output = run.output().expect("raddle");
        if !directory.path().join("it.clip").exists() {
            return Err(format!("no clip: {}", said(&output)));
        }
        isolate.arg("it.clip");
    }
    let start = Instant::now();
    let output = isolate.output().expect("raddle");
    if start.elapsed() > Duration::from_secs(SECONDS_MAX) {
        return Err(format!("took {} s", start.elapsed().as_secs()));
    }
    let answer = json(&output)?;
    if output.status.code() != Some(1) {
        return Err(format!("exit code {:?}: {answer}", output.status.code()));
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

#[test]
fn a_clip_that_passes_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let source = directory.path().join("fine.c");
    fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
    let mut run = raddle(directory.path());
    run.args(["run", "--clip", "fine.clip", "fine.c"]).output().expect("raddle");
    let output = raddle(directory.path()).args(["isolate", "fine.clip"]).output().expect("raddle");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("does not fail"), "{}", said(&output));
}

#[test]
fn a_program_that_passes_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let source = directory.path().join("fine.c");
    fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
    compile(directory.path(), &source, &[]);
    let output =
        raddle(directory.path()).args(["isolate", "--", "./target"]).output().expect("raddle");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("does not fail"), "{}", said(&output));
}

#[test]
fn a_clip_of_another_build_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let source = directory.path().join("it.c");
    fs::write(&source, "int main(void) { return 1; }\n").expect("a file");
    let mut run = raddle(directory.path());
    run.args(["run", "--clip", "it.clip", "it.c"]).output().expect("raddle");
    fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"x\"); return 1; }\n")
        .expect("a file");
    let output = raddle(directory.path()).args(["isolate", "it.clip"]).output().expect("raddle");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("another build"), "{}", said(&output));
}

#[test]
fn a_clip_that_no_longer_replays_cannot_be_judged() {
    let directory = TempDir::new().expect("a directory");
    let source = common::path("isolate/pointer_cleared.c");
    let mut run = raddle(directory.path());
    run.args(["run", "--policy", "rr", "--clip", "it.clip"]).arg(source).output().expect("raddle");
    let path = directory.path().join("it.clip");
    let text = fs::read_to_string(&path).expect("a clip");
    // The first thread is to stop where it never does.
    let mut clip: Value = serde_json::from_str(&text).expect("JSON");
    let steps = clip["schedule"].as_array_mut().expect("steps");
    let site = steps[1].as_str().and_then(|step| step.split(' ').nth(2)).expect("a site");
    steps[0] = format!("T0 2 {site}").into();
    fs::write(&path, clip.to_string()).expect("a file");
    let output = raddle(directory.path()).args(["isolate", "it.clip"]).output().expect("raddle");
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("does not replay any more"), "{}", said(&output));
}

#[test]
fn what_is_no_program_for_this_machine_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let source = directory.path().join("it.c");
    fs::write(&source, "int main(void) { return 1; }\n").expect("a file");
    compile(directory.path(), &source, &[]);
    let path = directory.path().join("target");
    let mut bytes = fs::read(&path).expect("a program");
    // The class of the file: 32 bits.
    bytes[4] = 1;
    fs::write(&path, bytes).expect("a file");
    let output =
        raddle(directory.path()).args(["isolate", "--", "./target"]).output().expect("raddle");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("x86-64"), "{}", said(&output));
    let output = raddle(directory.path()).arg("isolate").output().expect("raddle");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("nothing to isolate"), "{}", said(&output));
}

#[test]
fn a_failure_without_a_location_is_said_to_be_one() {
    let directory = TempDir::new().expect("a directory");
    let source = directory.path().join("it.c");
    fs::write(&source, "#include <stdlib.h>\nint main(void) { abort(); }\n").expect("a file");
    compile(directory.path(), &source, &[]);
    let mut isolate = raddle(directory.path());
    let output = isolate.args(["isolate", "--json", "--", "./target"]).output().expect("raddle");
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    let answer = json(&output).expect("JSON");
    assert_eq!(answer["cause"], Value::Null);
    assert_eq!(answer["chain"][0]["access"]["line"], 2);
    assert!(said(&output).contains("uses no memory"), "{}", said(&output));
}

fn compile(directory: &Path, source: &Path, options: &[String]) {
    let mut compiler = Command::new("gcc");
    compiler.current_dir(directory).args(["-g", "-O0", "-w", "-o", "target"]);
    let status = compiler.args(options).arg(source).status().expect("gcc");
    assert!(status.success());
}

fn raddle(directory: &Path) -> Command {
    let mut command = common::raddle(directory);
    // A cache of its own: others clear theirs as they like.
    command.env("XDG_CACHE_HOME", directory);
    command
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

#[test]
fn who_may_not_trace_is_told_what_to_allow() {
    let directory = TempDir::new().expect("a directory");
    let source = directory.path().join("without.c");
    fs::write(&source, WITHOUT_PTRACE).expect("a file");
    compile(directory.path(), &source, &[]);
    let path = directory.path().join("without");
    fs::rename(directory.path().join("target"), &path).expect("a file");
    fs::write(&source, "int main(void) { return 1; }\n").expect("a file");
    compile(directory.path(), &source, &[]);
    let mut command = Command::new(path);
    command.current_dir(directory.path()).stdin(Stdio::null());
    command.arg(env!("CARGO_BIN_EXE_raddle")).args(["isolate", "--", "./target"]);
    let output = command.output().expect("a program");
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("ptrace_scope"), "{}", said(&output));
}
