//! `raddle cc` and `raddle c++`: the user's compiler, with instrumentation.
//!
//! gcc links its sanitizer library dynamically, and raddle takes that one's place when the
//! program runs. clang would link its own into the program, so it is told not to, and gets
//! raddle's.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};
use raddle_code::program::Soname;
use raddle_trial::compile::{CLANG_FLAGS, GCC_FLAGS};

use crate::args::CompilerArgs;
use crate::exit::Exit;
use crate::runtime::RUNTIME;

/// Which language the compiler is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    C,
    Cxx,
}

/// Becomes the compiler.
pub(crate) fn cc(driver: Driver, args: CompilerArgs) -> Result<Exit> {
    let (variable, fallback) = match driver {
        Driver::C => ("RADDLE_CC", "cc"),
        Driver::Cxx => ("RADDLE_CXX", "c++"),
    };
    let compiler = std::env::var_os(variable).unwrap_or_else(|| fallback.into());
    let missing = || {
        format!("cannot start compiler {}; set {variable} to another compiler", compiler.display())
    };
    let version = Command::new(&compiler)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .with_context(missing)?
        .stdout;
    let is_clang = version.windows(5).any(|word| word == b"clang");
    let mut command = Command::new(&compiler);
    command.arg("-g").args(if is_clang { &CLANG_FLAGS[..] } else { &GCC_FLAGS });
    command.args(&args.arguments);
    if is_clang && links(&args.arguments) {
        command.arg(RUNTIME.file(Soname::default())?);
    }
    Err(anyhow!(command.exec()).context(missing()))
}

/// Whether the compiler will get as far as the linker.
fn links(arguments: &[OsString]) -> bool {
    const BEFORE: [&str; 6] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];
    let stops = |argument: &OsString| BEFORE.iter().any(|flag| argument == OsStr::new(flag));
    let is_input = |argument: &OsString| !argument.as_encoded_bytes().starts_with(b"-");
    arguments.iter().any(is_input) && !arguments.iter().any(stops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_link_gets_the_library() {
        let links =
            |line: &str| links(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert!(links("a.c -o a"));
        assert!(links("-O2 a.o b.o"));
        assert!(!links("-c a.c"));
        assert!(!links("--version"));
        assert!(!links(""));
    }
}
