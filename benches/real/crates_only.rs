//! The programs of [`crates`] alone: whether they answer under raddle as they do natively, and repeat.
//!
//! `cargo run --release -p raddle-bench --bin real-crates -- 20` takes 20 seeds per policy.

mod crates;

use std::path::Path;
use std::process::{Command, ExitCode, Output};

use anyhow::{Context as _, Result, ensure};
use raddle_corpus::place;

const POLICIES: [&str; 4] = ["random", "pct", "pos", "rr"];

fn main() -> ExitCode {
    match bench() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<()> {
    let n_seeds: u64 = match std::env::args().nth(1) {
        Some(word) => word.parse().with_context(|| format!("{word} is no number of seeds"))?,
        None => 2,
    };
    let raddle = place::executable();
    let directory = std::env::current_exe()?.with_file_name("real-crates.builds");
    std::fs::create_dir_all(&directory)?;
    for crates::Builds { name, version, native, instrumented } in
        crates::build(&directory, &raddle)?
    {
        let expected = run(&mut Command::new(&native))?.stdout;
        for policy in POLICIES {
            for seed in 1..=n_seeds {
                let ran = run(&mut verified(&raddle, policy, seed, &instrumented))?;
                ensure!(ran.stdout == expected, "{name}, {policy}, seed {seed}: another answer");
            }
        }
        println!("{name} {version}: {} runs agree and repeat", POLICIES.len() as u64 * n_seeds);
    }
    Ok(())
}

fn verified(raddle: &Path, policy: &str, seed: u64, program: &Path) -> Command {
    let mut command = Command::new(raddle);
    command.args(["run", "--verify", "--policy", policy, "--seed"]).arg(seed.to_string());
    command.arg("--").arg(program);
    command
}

/// Runs a command that is to succeed.
fn run(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}: {said}", output.status);
    Ok(output)
}
