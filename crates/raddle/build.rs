//! Builds the runtime library, alone and by its own profile, so that it can be embedded.
//!
//! It is built by the cargo that builds this, into a directory of its own: the lock of the
//! outer build is held while this runs, and the library must not share a build of the
//! standard library's features with anything else.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    let target = PathBuf::from(variable("OUT_DIR")).join("runtime");
    for watched in ["crates/runtime", "crates/trace", "Cargo.toml", "Cargo.lock"] {
        println!("cargo:rerun-if-changed={}", root.join(watched).display());
    }
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["build", "--quiet", "--profile", "runtime", "--package", "raddle-runtime"])
        .args(["--features", "standalone", "--manifest-path"])
        .arg(root.join("crates/runtime/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    if std::env::var_os("CARGO_NET_OFFLINE").is_some() {
        cargo.arg("--offline");
    }
    // Flags of the outer build, such as those of a coverage or sanitizer build, are not for
    // what runs inside a target; clippy's wrapper would only check it.
    for flags in
        ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"]
    {
        cargo.env_remove(flags);
    }
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "the runtime library does not build");
    let library = target.join("runtime/libraddle_runtime.so");
    println!("cargo:rustc-env=RADDLE_RUNTIME={}", library.display());
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
