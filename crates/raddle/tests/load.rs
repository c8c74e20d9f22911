//! A hunt that `--runs` ends says the same on an idle and on a loaded machine, byte by byte.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use raddle_corpus::{Place, Source, runner, sources};

/// Ends hunts long before the time does; two runs at a time, whose speed must not matter.
const HUNT: &str = "hunt --json --quiet --jobs 2 --runs 150 --time 900";
/// Programs whose hunts would take long.
const SLOW: [&str; 3] = ["large_", "ok_large", "ok_rust_pipeline"];

fn main() -> ExitCode {
    let mut programs = sources("hunt");
    programs.retain(|program| !SLOW.iter().any(|slow| program.name.starts_with(slow)));
    // Every fifth one is enough for each change; `.ci/long` takes all.
    let tests = programs.into_iter().enumerate().map(|(at, program)| {
        let name = format!("load::{}", program.name);
        let test = runner::test(name, move || check(&program));
        test.with_ignored_flag(at % 5 != 0)
    });
    // One at a time, since each loads the machine.
    runner::run(1, tests.collect())
}

fn check(program: &Source) -> Result<(), String> {
    let place = Place::new();
    let arguments = program.words("Args");
    let hunt = || place.raddle_on(HUNT, &program.path, &arguments).stdout;
    let idle = hunt();
    let load = Load::new();
    let loaded = hunt();
    drop(load);
    match idle == loaded {
        true => Ok(()),
        false => Err(format!("idle:\n{idle}\nloaded:\n{loaded}")),
    }
}

/// As many busy threads as there are processors, twice.
struct Load {
    is_over: Arc<AtomicBool>,
}

impl Load {
    fn new() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let n_processors = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..2 * n_processors {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self { is_over }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
