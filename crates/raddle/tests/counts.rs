//! The number of executions that raddle prints is the number that happened, and `--runs` limits it.
//!
//! Executions are counted from outside: a constructor that is compiled into the target appends a
//! byte to a file before `main`, by system calls of its own.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use tempfile::TempDir;

/// The names of programs, and where their sources are.
const BANK: &str = "examples/bank.c";
const NEVER_FAILS: &str = "crates/raddle/tests/localize/never_fails.c";
const ALWAYS_FAILS: &str = "crates/raddle/tests/localize/always_fails.c";
const ONE_THREAD: &str = "crates/raddle/tests/localize/one_thread.c";
const CRASH: &str = "crates/raddle/tests/isolate/propagation_pointer.c";
const VIOLATION: &str = "crates/raddle/tests/isolate/log_buffer_count.c";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = checks().into_iter().map(|Check { name, check }| {
        Trial::test(name, move || check().map_err(|Wrong(error)| error.into()))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Something that is to hold.
struct Check {
    name: String,
    check: Box<dyn FnOnce() -> Result<()> + Send>,
}

/// Why it does not.
struct Wrong(String);

type Result<T> = std::result::Result<T, Wrong>;

fn check(name: impl Display, check: impl FnOnce() -> Result<()> + Send + 'static) -> Check {
    Check { name: name.to_string(), check: Box::new(check) }
}

fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, options) in
        [("run", ""), ("run --clip", "--clip clip"), ("run --verify", "--verify")]
    {
        let n = if name.ends_with("verify") { 2 } else { 1 };
        checks.push(check(name, move || {
            let ran = Place::new(BANK).raddle(&format!("run {options} -- ./target"));
            ran.executed(n)
        }));
    }
    for (name, source) in [
        ("bank", BANK),
        ("never_fails", NEVER_FAILS),
        ("always_fails", ALWAYS_FAILS),
        ("one_thread", ONE_THREAD),
    ] {
        checks.push(check(format!("hunt, JSON: {name}"), move || {
            let ran = Place::new(source).raddle("hunt --jobs 1 --runs 100 --json -- ./target");
            ran.executed(ran.number("/trials/total")?)
        }));
        checks.push(check(format!("localize, JSON: {name}"), move || {
            let ran = Place::new(source).raddle("localize --jobs 1 --runs 40 --json -- ./target");
            ran.executed(ran.number("/trials/total")?)
        }));
    }
    checks.push(check("hunt, text", || {
        let ran = Place::new(BANK).raddle("hunt --jobs 1 --runs 100 -- ./target");
        ran.executed(ran.before(" runs in ")?)
    }));
    checks.push(check("hunt, text, two at a time", || {
        let ran = Place::new(BANK).raddle("hunt --jobs 2 --runs 100 -- ./target");
        ran.executed(ran.before(" runs in ")?)
    }));
    for n in [1, 2, 5, 40, 200] {
        for command in ["hunt --jobs 1", "hunt --jobs 2"] {
            checks.push(check(format!("{command} --runs {n}"), move || {
                let ran = Place::new(BANK).raddle(&format!("{command} --runs {n} -- ./target"));
                ran.executed_at_most(n)
            }));
        }
        checks.push(check(format!("localize --runs {n}"), move || {
            // What is limited are the runs that are compared; checking suspects comes on top.
            let line = format!("localize --json --jobs 1 --runs {n} -- ./target");
            let ran = Place::new(BANK).raddle(&line);
            let compared = ran.number("/runs/passed")? + ran.number("/runs/failed")?;
            match compared <= n {
                true => ran.executed(ran.number("/trials/total")?),
                false => Err(ran.wrong(format!("compared {compared}"))),
            }
        }));
        checks.push(check(format!("minimize --runs {n}"), move || {
            let place = Place::failing();
            place.raddle(&format!("minimize --jobs 1 --runs {n} clip")).executed_at_most(n)
        }));
    }
    checks.push(check("minimize, text", || {
        let ran = Place::failing().raddle("minimize --jobs 1 clip");
        ran.executed(ran.before(" runs")?)
    }));
    for n in [1, 2, 7] {
        for jobs in [1, 2] {
            checks.push(check(format!("replay --times {n} --jobs {jobs}"), move || {
                let place = Place::failing();
                let line = format!("replay --json --times {n} --jobs {jobs} clip");
                let ran = place.raddle(&line);
                ran.executed(ran.number("/times")?)?;
                place.raddle(&line.replace(" --json", "")).executed(n)
            }));
        }
    }
    for (name, source) in [("a crash", CRASH), ("a violation", VIOLATION)] {
        checks.push(check(format!("isolate, JSON: {name}"), move || {
            let place = Place::new(source);
            place.raddle("run --policy rr --clip clip -- ./target");
            let ran = place.raddle("isolate --json clip");
            let parts = ["original", "suppression", "race", "violation", "watch"];
            let number = |part: &str| ran.number(&format!("/executions/{part}"));
            let total = parts.into_iter().map(number).sum::<Result<u64>>()?;
            ran.executed(total)
        }));
    }
    checks
}

/// A directory with a program that counts its executions.
struct Place {
    directory: TempDir,
}

impl Place {
    /// Compiles a source of the repository.
    fn new(source: &str) -> Self {
        let place = Self { directory: TempDir::new().expect("a directory") };
        fs::write(place.path("counter.h"), COUNTER).expect("a file");
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let status = Command::new("gcc")
            .args(["-g", "-O1", "-pthread", "-fsanitize=thread", "-include", "counter.h"])
            .args(["-o", "target"])
            .arg(repository.join(source))
            .current_dir(place.directory.path())
            .status()
            .expect("gcc");
        assert!(status.success(), "{source}");
        place
    }

    /// One with a clip that fails.
    fn failing() -> Self {
        let place = Self::new(BANK);
        place.raddle("run --seed 4 --clip clip -- ./target");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Calls raddle, and counts.
    fn raddle(&self, line: &str) -> Ran {
        fs::write(self.path("count"), "").expect("a file");
        let output = Command::new(env!("CARGO_BIN_EXE_raddle"))
            .args(line.split_whitespace())
            .current_dir(self.directory.path())
            .env("COUNT_FILE", self.path("count"))
            .stdin(Stdio::null())
            .output()
            .expect("raddle");
        let n_executions = fs::metadata(self.path("count")).expect("a file").len();
        Ran { output, n_executions }
    }
}

/// What raddle has said, and how often the target was executed.
struct Ran {
    output: Output,
    n_executions: u64,
}

impl Ran {
    fn executed(&self, told: u64) -> Result<()> {
        match self.n_executions == told {
            true => Ok(()),
            false => Err(self.wrong(format!("told {told}"))),
        }
    }

    fn executed_at_most(&self, most: u64) -> Result<()> {
        match (1..=most).contains(&self.n_executions) {
            true => Ok(()),
            false => Err(self.wrong(format!("at most {most}"))),
        }
    }

    fn wrong(&self, wanted: String) -> Wrong {
        Wrong(format!("{wanted}, executed {}: {}", self.n_executions, self.said()))
    }

    /// A number in what was printed as JSON.
    fn number(&self, pointer: &str) -> Result<u64> {
        let number = self.json()?.pointer(pointer).and_then(Value::as_u64);
        number.ok_or_else(|| Wrong(format!("no number at {pointer}: {}", self.said())))
    }

    fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.output.stdout)
            .map_err(|error| Wrong(format!("{error}: {}", self.said())))
    }

    /// The number before some words on standard error.
    fn before(&self, words: &str) -> Result<u64> {
        let said = self.said();
        let number = said
            .split_once(words)
            .and_then(|(before, _)| before.rsplit(' ').next())
            .and_then(|number| number.parse().ok());
        number.ok_or_else(|| Wrong(format!("no number before «{words}»: {said}")))
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// Counts without libc, of which raddle stands in for a part.
const COUNTER: &str = r#"
    extern char **environ;

    __attribute__((no_sanitize("thread"))) static long counter_call(long number, long a, long b, long c)
    {
        long result;
        __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
                         : "rcx", "r11", "memory");
        return result;
    }

    __attribute__((constructor, no_sanitize("thread"))) static void counter_count(void)
    {
        static const char name[] = "COUNT_FILE=";
        for (char **variable = environ; *variable; variable++) {
            unsigned at = 0;
            while (name[at] && (*variable)[at] == name[at])
                at++;
            if (name[at])
                continue;
            /* open, to write at the end; write; close */
            long file = counter_call(2, (long)(*variable + at), 02001, 0);
            counter_call(1, file, (long)name, 1);
            counter_call(3, file, 0, 0);
        }
    }
"#;
