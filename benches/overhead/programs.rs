//! The programs, and how they are built.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// A program to measure.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
}

macro_rules! program {
    ($name:literal, $path:literal) => {
        Program { name: $name, source: include_str!($path) }
    };
}

/// All of them do a quarter of their work in each of four threads, and check the result.
const PROGRAMS: [Program; 4] = [
    program!("sort", "../programs/sort.c"),
    program!("hash", "../programs/hash.c"),
    program!("matrix", "../programs/matrix.c"),
    program!("queue", "../programs/queue.c"),
];

/// A program of a few dozen events.
pub(crate) const SMALL: Program = program!("bank", "../../examples/bank.c");

/// The program of this name, or all.
pub(crate) fn named(name: Option<&str>) -> Result<Vec<&'static Program>> {
    let wanted = |program: &&Program| name.is_none_or(|name| name == program.name);
    let programs: Vec<_> = PROGRAMS.iter().filter(wanted).collect();
    if programs.is_empty() {
        let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        bail!("there is no program {}; there are {}", name.unwrap_or(""), names.join(", "));
    }
    Ok(programs)
}

/// A program, built in each way.
pub(crate) struct Builds {
    pub(crate) native: PathBuf,
    /// For gcc's ThreadSanitizer and, unchanged, for raddle.
    pub(crate) instrumented: PathBuf,
    /// None if clang or its runtime library is not installed.
    pub(crate) clang: Option<PathBuf>,
    /// Where its trace goes.
    pub(crate) trace: PathBuf,
}

/// Builds a program in each way.
pub(crate) fn compile(program: &Program, directory: &Path) -> Result<Builds> {
    let native = build(program, "gcc", &[], directory)?;
    let instrumented = build(program, "gcc", &[INSTRUMENTED], directory)?;
    let clang = match build(program, "clang", &[INSTRUMENTED], directory) {
        Ok(clang) => Some(clang),
        Err(error) => {
            eprintln!("without clang: {error:#}");
            None
        }
    };
    Ok(Builds {
        native,
        instrumented,
        clang,
        trace: directory.join(program.name).with_extension("trace"),
    })
}

/// Builds the small program for raddle.
pub(crate) fn compile_small(directory: &Path) -> Result<PathBuf> {
    build(&SMALL, "gcc", &[INSTRUMENTED], directory)
}

/// What a compiler says that it is.
pub(crate) fn version(compiler: &str) -> Option<String> {
    let output = Command::new(compiler).arg("--version").stderr(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

const INSTRUMENTED: &str = "-fsanitize=thread";

fn build(program: &Program, compiler: &str, flags: &[&str], directory: &Path) -> Result<PathBuf> {
    let source = directory.join(program.name).with_extension("c");
    std::fs::write(&source, program.source)
        .with_context(|| format!("cannot write {}", source.display()))?;
    let kind = if flags.is_empty() { "native" } else { "thread" };
    let output = directory.join(format!("{}-{compiler}-{kind}", program.name));
    let mut command = Command::new(compiler);
    command.args(["-O2", "-g", "-pthread"]).args(flags).arg("-o").arg(&output).arg(&source);
    let done = command
        .output()
        .with_context(|| format!("cannot start {compiler}; install it to run this benchmark"))?;
    if !done.status.success() {
        bail!(
            "{compiler} cannot build {}: {}",
            program.name,
            String::from_utf8_lossy(&done.stderr).trim()
        );
    }
    Ok(output)
}
