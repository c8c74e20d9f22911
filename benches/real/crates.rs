//! Programs that use crates of the registry, built for raddle.
//!
//! `crates` is a package of its own with one program per crate. It is compiled twice: as it is, and
//! with the flags that raddle uses for single Rust files. Those apply to the crates that it depends
//! on as well, but not to the standard library, which comes compiled. Build scripts and macros run
//! while we compile, so they must not be instrumented: cargo keeps them apart if a target is named,
//! even if it is the machine itself.
//!
//! The linker is `raddle cc` with clang, which adds raddle's library to what it links.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use raddle_trial::compile::RUSTC_FLAGS;

/// A program in both builds. It prints the same whatever its threads do.
pub(crate) struct Builds {
    /// The crate that it uses.
    pub(crate) name: &'static str,
    /// The version of that crate.
    pub(crate) version: String,
    pub(crate) native: PathBuf,
    pub(crate) instrumented: PathBuf,
}

/// Crates; the program has the same name, with underscores.
const NAMES: [&str; 5] = ["rayon", "crossbeam-channel", "parking_lot", "dashmap", "tokio"];

const MANIFEST: &str = include_str!("crates/Cargo.toml");

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds all programs below `directory`, for this raddle.
pub(crate) fn build(directory: &Path, raddle: &Path) -> Result<Vec<Builds>> {
    let (native, instrumented) = (directory.join("native"), directory.join("instrumented"));
    cargo(&native, |_| {})?;
    let linker = linker(directory, raddle)?;
    let flags = [RUSTC_FLAGS.join("\x1f"), format!("-Clinker={}", linker.display())].join("\x1f");
    cargo(&instrumented, |command| {
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RADDLE_CC", "clang")
            .env("CARGO_ENCODED_RUSTFLAGS", flags);
    })?;
    let program =
        |target: &Path, name: &str| target.join(TARGET).join("debug").join(name.replace('-', "_"));
    let builds = NAMES.map(|name| {
        let (native, instrumented) = (program(&native, name), program(&instrumented, name));
        Ok(Builds { name, version: version(name)?, native, instrumented })
    });
    builds.into_iter().collect()
}

/// The version of a crate, which the manifest names exactly.
fn version(name: &str) -> Result<String> {
    let is_for = |line: &&str| line.split([' ', '=']).next() == Some(name);
    let line = MANIFEST.lines().find(is_for);
    let version = line.and_then(|line| line.split("\"=").nth(1)?.split('"').next());
    Ok(version.with_context(|| format!("the manifest names no version of {name}"))?.to_owned())
}

/// A script that is `raddle cc`: rustc takes the path of a linker, without arguments.
fn linker(directory: &Path, raddle: &Path) -> Result<PathBuf> {
    let linker = directory.join("cc");
    let text = format!("#!/bin/sh\nexec '{}' cc \"$@\"\n", raddle.display());
    // A linker that is newer than a program does not make cargo link it again.
    fs::write(&linker, text)
        .and_then(|()| fs::set_permissions(&linker, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", linker.display()))?;
    Ok(linker)
}

/// Builds the package into a target directory.
fn cargo(target: &Path, configure: impl FnOnce(&mut Command)) -> Result<()> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("real/crates/Cargo.toml");
    let mut command =
        Command::new(std::env::var_os("CARGO").as_deref().unwrap_or(OsStr::new("cargo")));
    command.args(["build", "--locked", "--bins", "--target", TARGET, "--manifest-path"]);
    command.arg(&manifest).arg("--target-dir").arg(target);
    configure(&mut command);
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "{} does not build", manifest.display());
    Ok(())
}
