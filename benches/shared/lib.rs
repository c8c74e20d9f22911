//! What benchmarks about programs of others share: their sources, runs, and verdicts.

pub mod parallel;
pub mod run;
pub mod source;
pub mod verdict;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use raddle_corpus::place;

/// A directory below `target`, where a benchmark keeps everything for its next run.
///
/// # Errors
/// If it cannot be made.
pub fn directory(name: &str) -> Result<PathBuf> {
    let raddle = place::executable();
    let target = raddle.parent().and_then(Path::parent).context("raddle is not in target")?;
    let directory = target.join(name);
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    directory.canonicalize().with_context(|| format!("cannot resolve {}", directory.display()))
}
