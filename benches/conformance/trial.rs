//! A test, natively, with ThreadSanitizer, and under raddle.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use raddle_bench_shared::run::{self, Ending, Launch, Run};
use raddle_bench_shared::verdict::Verdict;
use raddle_corpus::place;

use crate::LIMIT;
use crate::compile::{Compiler, Test};

/// Scheduling policies of raddle.
pub(crate) const POLICIES: [&str; 3] = ["random", "rr", "pct"];
const SEEDS: [&str; 3] = ["0", "1", "2"];

/// How long a test may take natively. Some sleep for 20 seconds.
const NATIVE_LIMIT: Duration = Duration::from_secs(60);

/// What came of a test.
pub(crate) enum Outcome {
    /// It does not build outside of glibc, for this reason.
    NotBuilt(String),
    /// It does not pass natively, and ends like this.
    NotPassed(Ending),
    Usable(Verdicts),
}

/// How a test compares with its native run.
pub(crate) struct Verdicts {
    pub(crate) tsan: Verdict,
    /// Of each policy: of the first seed that differs, if one does.
    pub(crate) policies: [Verdict; POLICIES.len()],
    /// With `--allow`, under all policies: of the first run that differs, if one does. None if the
    /// list says nothing about that, or the test agrees without.
    pub(crate) allowed: Option<Verdict>,
}

impl Verdicts {
    /// Whether the test agrees under raddle.
    pub(crate) fn agrees(&self) -> bool {
        self.policies.iter().all(|verdict| *verdict == Verdict::Same)
    }
}

/// Runs tests.
pub(crate) struct Bench {
    raddle: String,
    /// Where raddle unpacks its library.
    cache: PathBuf,
    /// What the last run of each kind printed.
    logs: PathBuf,
}

impl Bench {
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let raddle = place::executable().display().to_string();
        let (cache, logs) = (directory.join("cache"), directory.join("logs"));
        fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
        Ok(Self { raddle, cache, logs })
    }

    /// Builds a test and runs it in every way, if it differs also with what it is to be allowed.
    pub(crate) fn outcome(
        &self,
        compiler: &Compiler,
        test: &Test,
        allow: Option<&str>,
    ) -> Result<Outcome> {
        let builds = match compiler.build(test)? {
            Ok(builds) => builds,
            Err(error) => return Ok(Outcome::NotBuilt(error)),
        };
        // A test may leave files behind, and listens to sockets with short names.
        let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
        let run = |kind: &str, words: &[&str], variable: (&str, &Path), limit: Duration| {
            let place = directory.path();
            let log = self.logs.join(format!("{}.{kind}", test.name));
            let variables = &[variable, ("TMPDIR", place)];
            let (directory, log) = (place, log.as_path());
            run::run(&Launch { words, variables, directory, log, output: None, limit })
        };

        // The test's own driver would fork.
        let words = |program| [program, "--direct"];
        let expected = directory.path().join("expected");
        let program = builds.native.display().to_string();
        let native = run("native", &words(&program), ("TEST_DIRECT", &expected), NATIVE_LIMIT)?;
        // Tests with a `main` of their own write no such file.
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        if !is_passed(native.ending, &expected) {
            return Ok(Outcome::NotPassed(native.ending));
        }

        let program = builds.instrumented.display().to_string();
        let options = ("TSAN_OPTIONS", Path::new("report_bugs=0"));
        let tsan = run("tsan", &words(&program), options, LIMIT + native.duration)?;
        let under = |policy: &str, seed: &str, allow: Option<&str>| -> Result<Run> {
            let most = LIMIT + 2 * native.duration;
            let limit = most.as_secs().to_string();
            let mut line = vec![self.raddle.as_str(), "run", "--policy", policy, "--seed", seed];
            line.extend(allow.into_iter().flat_map(|words| ["--allow", words]));
            line.extend(["--timeout", &limit, "--"]);
            line.extend(words(&program));
            let kind = allow.map_or_else(|| policy.to_owned(), |_| format!("{policy}.allow"));
            // raddle itself ends the run in time, and says where its threads are.
            run(&kind, &line, ("XDG_CACHE_HOME", &self.cache), 2 * most)
        };
        // Of the first seed that differs, if one does.
        let verdict = |policy: &str, allow: Option<&str>| -> Result<Verdict> {
            for seed in SEEDS {
                let verdict = Verdict::of_raddle(native.ending, &under(policy, seed, allow)?);
                if verdict != Verdict::Same {
                    return Ok(verdict);
                }
            }
            Ok(Verdict::Same)
        };
        let mut policies = [const { Verdict::Same }; POLICIES.len()];
        for (policy, kept) in POLICIES.iter().zip(&mut policies) {
            *kept = verdict(policy, None)?;
        }
        let tsan = Verdict::of_plain(native.ending, &tsan);
        let mut verdicts = Verdicts { tsan, policies, allowed: None };
        if let Some(words) = allow.filter(|_| !verdicts.agrees()) {
            let mut allowed = Verdict::Same;
            for policy in POLICIES {
                if allowed == Verdict::Same {
                    allowed = verdict(policy, Some(words))?;
                }
            }
            verdicts.allowed = Some(allowed);
        }
        Ok(Outcome::Usable(verdicts))
    }
}

/// Whether a test ended as it expects to: with status 0, unless its driver says something else.
fn is_passed(ending: Ending, expected: &str) -> bool {
    let value = |name: &str| expected.lines().find_map(|line| line.strip_prefix(name));
    match (ending, value("exit="), value("signal=")) {
        (Ending::Exited(code), Some(exit), _) => exit.parse() == Ok(code),
        (Ending::Exited(code), None, None) => code == 0,
        // Its name is in the machine's words.
        (Ending::Killed(_), _, Some(_)) => true,
        (Ending::Exited(_) | Ending::Killed(_) | Ending::TimedOut, _, _) => false,
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt(error) => write!(f, "does not build: {error}"),
            Self::NotPassed(ending) => write!(f, "does not pass natively: {ending}"),
            Self::Usable(verdicts) => {
                write!(f, "ThreadSanitizer: {}", verdicts.tsan)?;
                POLICIES
                    .iter()
                    .zip(&verdicts.policies)
                    .try_for_each(|(policy, verdict)| write!(f, ", {policy}: {verdict}"))?;
                match &verdicts.allowed {
                    Some(allowed) => write!(f, ", with --allow: {allowed}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_may_expect_a_status_or_a_signal() {
        assert!(is_passed(Ending::Exited(0), "timeout=0\ntimeoutfactor=1\n"));
        assert!(!is_passed(Ending::Exited(1), ""));
        assert!(is_passed(Ending::Exited(9), "timeout=0\nexit=9\n"));
        assert!(!is_passed(Ending::Exited(0), "timeout=0\nexit=9\n"));
        assert!(is_passed(Ending::Killed(10), "signal=User defined signal 1\n"));
        assert!(!is_passed(Ending::Killed(11), ""));
    }
}
