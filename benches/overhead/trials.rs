//! How many runs of a small program a second holds.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::run::Raddle;

const WORKERS: usize = 2;

/// Runs a program so often, each time with another seed, and tells how many runs
/// there were in a second. Some of its runs fail, as in any search for a bug.
pub(crate) fn per_second(raddle: &Raddle, program: &Path, n_trials: u32) -> Result<f64> {
    let trial = |seed: u32| -> Result<()> {
        let mut command = raddle.command("run");
        command.args(["--seed", &seed.to_string()]).arg("--").arg(program);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        match status.context("cannot start raddle")?.code() {
            Some(0 | ABORTED) => Ok(()),
            _ => bail!("a run of the small program was not judged; try {command:?}"),
        }
    };
    // Unpacks the library, if that is not done yet.
    trial(0)?;
    let next = AtomicU32::new(0);
    let work = || -> Result<()> {
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                seed if seed < n_trials => trial(seed)?,
                _ => return Ok(()),
            }
        }
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        let workers = [(); WORKERS].map(|()| scope.spawn(work));
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    Ok(f64::from(n_trials) / start.elapsed().as_secs_f64())
}

/// What raddle exits with if an assertion failed, as a shell does.
const ABORTED: i32 = 128 + 6;
