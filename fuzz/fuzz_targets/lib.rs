//! What several fuzz targets need: bytes as a file, and an ELF file as a module of a run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use raddle_trace::run::Module;
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a temporary directory"));

/// A path for this process alone, always the same.
#[must_use]
pub fn path() -> PathBuf {
    DIRECTORY.path().join("input")
}

/// An executable file that holds `bytes`.
#[must_use]
pub fn file(bytes: &[u8]) -> PathBuf {
    let path = path();
    fs::write(&path, bytes).expect("a file that can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("a file of ours");
    path
}

/// Where [`module`] is loaded.
pub const BASE: u64 = 0x5555_5555_0000;

/// A module whose file holds `bytes`, without a build-id, so that the file is believed.
#[must_use]
pub fn module(bytes: &[u8]) -> Module {
    let path = file(bytes).to_string_lossy().into_owned();
    Module { path, build_id: String::new(), base: BASE, low: BASE, high: BASE + (1 << 30) }
}
