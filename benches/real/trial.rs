//! A program, natively, under raddle, and in a hunt.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use raddle_bench_shared::parallel;
use raddle_bench_shared::run::{self, Ending, Launch, Run};
use raddle_bench_shared::verdict::Verdict;
use raddle_corpus::place::{self, UNJUDGED};
use serde_json::Value;

use crate::subject::{Answer, Build, Subject};

/// Scheduling policies of raddle.
pub(crate) const POLICIES: [&str; 4] = ["random", "pct", "pos", "rr"];
/// Runs at the same time.
const WORKERS: usize = 2;
/// How long a run may take, natively or under raddle.
const LIMIT: Duration = Duration::from_secs(60);

/// How much is tried.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Seeds per policy.
    pub(crate) n_seeds: u64,
    /// Of each hunt; 0 for none.
    pub(crate) hunt_seconds: u64,
}

/// What came of a program.
pub(crate) struct Outcome {
    /// How many plans were executed.
    pub(crate) n_plans: usize,
    /// How many of them gave the native answer.
    pub(crate) n_same: usize,
    /// How many of them repeat.
    pub(crate) n_repeat: usize,
    /// The longest pair of runs.
    pub(crate) slowest: Duration,
    pub(crate) hunt: Option<Hunt>,
    /// Every difference, in words.
    pub(crate) differences: Vec<String>,
}

/// What a hunt said.
pub(crate) struct Hunt {
    pub(crate) n_runs: u64,
    pub(crate) n_failing: usize,
    pub(crate) n_predicted: u64,
    pub(crate) n_untested: u64,
}

/// Runs programs.
pub(crate) struct Bench {
    raddle: String,
    effort: Effort,
    /// Where raddle unpacks its library.
    cache: PathBuf,
    /// What runs printed, and what hunts left.
    logs: PathBuf,
}

impl Bench {
    pub(crate) fn new(directory: &Path, effort: Effort) -> Result<Self> {
        let raddle = place::executable().display().to_string();
        let (cache, logs) = (directory.join("cache"), directory.join("logs"));
        fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
        Ok(Self { raddle, effort, cache, logs })
    }

    /// Runs a program in every way.
    pub(crate) fn outcome(&self, subject: &Subject) -> Result<Outcome> {
        let place = tempfile::tempdir().context("cannot make a temporary directory")?;
        for (name, bytes) in &subject.files {
            fs::write(place.path().join(name), bytes).context("cannot write an input")?;
        }
        let answer = self.native_answer(subject, place.path())?;

        let seeds = 0..self.effort.n_seeds;
        let plans: Vec<_> = seeds.flat_map(|seed| POLICIES.map(|policy| (policy, seed))).collect();
        let trials = parallel::map(WORKERS, &plans, |_, &(policy, seed)| {
            self.trial(subject, place.path(), answer.as_deref(), policy, seed)
        });
        let mut outcome = Outcome {
            n_plans: plans.len(),
            n_same: 0,
            n_repeat: 0,
            slowest: Duration::ZERO,
            hunt: None,
            differences: Vec::new(),
        };
        for ((policy, seed), trial) in plans.iter().zip(trials) {
            let trial = trial?;
            outcome.n_same += usize::from(trial.other.is_none());
            outcome.n_repeat += usize::from(trial.differs.is_none());
            outcome.slowest = outcome.slowest.max(trial.duration);
            let differences = [trial.other, trial.differs].into_iter().flatten();
            outcome
                .differences
                .extend(differences.map(|words| format!("{policy}, seed {seed}: {words}")));
        }
        if self.effort.hunt_seconds > 0 {
            let hunt = self.hunt(subject, place.path(), answer.is_some(), &mut outcome)?;
            outcome.hunt = Some(hunt);
        }
        Ok(outcome)
    }

    /// What the program prints natively, if that is part of its answer. It is also left in the
    /// file [`ANSWER`].
    fn native_answer(&self, subject: &Subject, place: &Path) -> Result<Option<Vec<u8>>> {
        let file = place.join(ANSWER);
        let program = subject.native.program.display().to_string();
        let driver = preload(&subject.native);
        // The program alone is to have the driver, not what starts it.
        let mut words: Vec<_> = driver.iter().flat_map(|driver| ["env", driver]).collect();
        words.push(&program);
        words.extend(subject.args.iter().map(String::as_str));
        let native = run::run(&Launch {
            words: &words,
            variables: &[],
            directory: place,
            log: &self.log(subject, "native"),
            output: Some(&file),
            limit: LIMIT,
        })?;
        let ending = native.ending;
        ensure!(ending == Ending::Exited(0), "natively: {ending}: {}", native.text.trim());
        let printed = fs::read(&file).context("cannot read what the program printed")?;
        match &subject.answer {
            Answer::Status => Ok(None),
            Answer::Output => Ok(Some(printed)),
            Answer::Bytes(expected) => {
                ensure!(printed == *expected, "natively: another output than expected");
                Ok(Some(printed))
            }
        }
    }

    /// Executes a plan twice and compares.
    fn trial(
        &self,
        subject: &Subject,
        place: &Path,
        answer: Option<&[u8]>,
        policy: &str,
        seed: u64,
    ) -> Result<Trial> {
        let seed = seed.to_string();
        let file = place.join(format!("output-{policy}-{seed}"));
        let run = |verify: Option<&str>| {
            let mut options: Vec<&str> = verify.into_iter().collect();
            let limit = LIMIT.as_secs().to_string();
            options.extend(["--policy", policy, "--seed", &seed, "--timeout", &limit]);
            let log = self.log(subject, &format!("{policy}-{seed}"));
            self.raddle(subject, place, "run", &options, &log, &file, 3 * LIMIT)
        };
        let twice = run(Some("--verify"))?;
        let duration = twice.duration;
        let is_repeated = twice.ending != Ending::Exited(UNJUDGED);
        let differs = (!is_repeated).then(|| raddle_words(&twice.text));
        // What does not repeat has one answer per run; that of another one counts.
        let run = if is_repeated { twice } else { run(None)? };
        let verdict = Verdict::of_raddle(Ending::Exited(0), &run);
        let printed = fs::read(&file).context("cannot read what the program printed")?;
        fs::remove_file(&file).context("cannot remove what the program printed")?;
        let other = if verdict != Verdict::Same {
            Some(format!("{verdict}: {}", raddle_words(&run.text)))
        } else if answer.is_some_and(|answer| answer != printed) {
            Some("another output".to_owned())
        } else {
            None
        };
        Ok(Trial { other, differs, duration })
    }

    /// Hunts; findings become differences.
    fn hunt(
        &self,
        subject: &Subject,
        place: &Path,
        is_printed: bool,
        outcome: &mut Outcome,
    ) -> Result<Hunt> {
        let (log, file) = (self.log(subject, "hunt"), self.log(subject, "hunt.json"));
        // Clips stay there for whoever examines them.
        let output = self.log(subject, "hunt.out").display().to_string();
        let seconds = self.effort.hunt_seconds;
        let time = seconds.to_string();
        let mut options = vec!["--time", &time, "--json", "-o", &output];
        if is_printed {
            options.extend(["--expect-stdout", ANSWER]);
        }
        let limit = Duration::from_secs(2 * seconds) + LIMIT;
        let run = self.raddle(subject, place, "hunt", &options, &log, &file, limit)?;
        let text = fs::read_to_string(&file).context("cannot read what a hunt printed")?;
        let report: Value = serde_json::from_str(&text)
            .with_context(|| format!("a hunt ended with {}: {}", run.ending, run.text.trim()))?;
        let count = |part: &str, name: &str| report[part][name].as_u64().unwrap_or_default();
        let findings = report["findings"].as_array().map_or(&[][..], Vec::as_slice);
        let failing: Vec<_> =
            findings.iter().filter(|finding| finding["verdict"] == "failing").collect();
        for finding in &failing {
            outcome.differences.push(format!("hunt: {}", finding_words(finding)));
        }
        let n_failed = count("trials", "failed");
        if failing.is_empty() && run.ending != Ending::Exited(0) {
            let (ending, words) = (run.ending, run.text.trim().replace('\n', "; "));
            outcome.differences.push(format!("hunt: {ending}, {n_failed} failed: {words}"));
        }
        Ok(Hunt {
            n_runs: count("trials", "total"),
            n_failing: failing.len(),
            n_predicted: count("anomalies", "predicted"),
            n_untested: count("anomalies", "untested"),
        })
    }

    /// Runs a command of raddle on a program.
    #[expect(clippy::too_many_arguments, reason = "each is a different kind of thing")]
    fn raddle(
        &self,
        subject: &Subject,
        place: &Path,
        command: &str,
        options: &[&str],
        log: &Path,
        output: &Path,
        limit: Duration,
    ) -> Result<Run> {
        let program = subject.instrumented.program.display().to_string();
        let driver = preload(&subject.instrumented);
        let mut words = vec![self.raddle.as_str(), command];
        words.extend(options);
        words.extend(driver.iter().flat_map(|driver| ["--env", driver]));
        words.extend(["--", &program]);
        words.extend(subject.args.iter().map(String::as_str));
        let variables = [("XDG_CACHE_HOME", self.cache.as_path())];
        let output = Some(output);
        run::run(&Launch {
            words: &words,
            variables: &variables,
            directory: place,
            log,
            output,
            limit,
        })
    }

    fn log(&self, subject: &Subject, kind: &str) -> PathBuf {
        self.logs.join(format!("{}.{kind}", subject.name.replace(' ', "")))
    }
}

/// The file with the native answer, where the program runs.
const ANSWER: &str = "answer";

/// A plan that was executed twice.
struct Trial {
    /// Another answer, in words.
    other: Option<String>,
    /// How the two runs differ.
    differs: Option<String>,
    duration: Duration,
}

/// The setting that preloads a build's driver.
fn preload(build: &Build) -> Option<String> {
    Some(format!("LD_PRELOAD={}", build.driver.as_ref()?.display()))
}

/// What raddle says about a run, in one line.
fn raddle_words(text: &str) -> String {
    let lines: Vec<_> =
        text.lines().skip_while(|line| !line.contains("raddle: ")).map(str::trim).collect();
    lines.join("; ").replace('|', "/")
}

/// A finding, in one line.
fn finding_words(finding: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let accesses = finding["accesses"].as_array().map_or(&[][..], Vec::as_slice);
    let sites: Vec<_> = accesses
        .iter()
        .map(|access| {
            format!("{} {} {}", text(&access["thread"]), text(&access["op"]), text(&access["site"]))
        })
        .collect();
    format!(
        "{} on {} ({}): {}; then {}; {}",
        text(&finding["kind"]),
        text(&finding["variable"]),
        text(&finding["pattern"]),
        sites.join(", "),
        text(&finding["failure"]["detail"]),
        text(&finding["clip"]),
    )
}
