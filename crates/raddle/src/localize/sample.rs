//! What a run has given, and the file that keeps it.
//!
//! ```text
//! file = "raddlrun" | version (u32) | n_bytes (u64) | body | checksum of the body (u32)
//! body = Sample, as postcard writes it
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use raddle_analysis::localize::facts::Facts;
use raddle_trace::checksum::checksum;
use raddle_trace::control;
use raddle_trace::run::Run;
use raddle_trace::schedule::Schedule;
use raddle_trial::plan::Delay;
use raddle_trial::{Order, Plan};
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 8] = b"raddlrun";
const VERSION: u32 = 2;
const HEAD_BYTES: usize = 20;
/// How files of runs end.
pub(crate) const EXTENSION: &str = "run";

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) run: Run,
    pub(crate) how: How,
    /// Why it failed, if it did.
    pub(crate) failure: Option<Fail>,
    pub(crate) facts: Facts,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Fail {
    /// The same for all runs that fail in the same way.
    pub(crate) key: String,
    pub(crate) kind: String,
    pub(crate) detail: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// As `raddle run` would say it.
    pub(crate) text: String,
}

/// How to make the same run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct How {
    pub(crate) seed: u64,
    pub(crate) policy: Policy,
    /// With the loops that accesses are in: that takes each access, also those that only repeat
    /// others.
    pub(crate) with_laps: bool,
}

impl How {
    /// One of many runs that are to differ, by its number.
    pub(crate) fn varied(seed: u64, n_steps: u64) -> Self {
        let policy = match seed % 4 {
            0 => Policy::Random,
            1 | 3 => Policy::Pct { depth: 1 + (seed / 4 % 4) as u32, n_steps },
            _ => Policy::Pos,
        };
        Self { seed, policy, with_laps: false }
    }

    /// Whether it is the same run, told in more or less detail.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.seed == other.seed && self.policy == other.policy
    }

    /// Whether the same plan gives the same run.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self.policy, Policy::Free { .. })
    }
}

/// Who went next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Policy {
    Random,
    Pct {
        depth: u32,
        n_steps: u64,
    },
    Pos,
    Rr,
    Free {
        delay: Option<(f64, u32)>,
    },
    /// By a schedule, then thread by thread, or mixed.
    Woven {
        #[serde(with = "as_json")]
        schedule: Schedule,
        mixed: bool,
    },
}

/// Schedules within what postcard writes, which has no words for them.
mod as_json {
    use raddle_trace::schedule::Schedule;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de, ser};

    pub(super) fn serialize<S: Serializer>(schedule: &Schedule, to: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(schedule).map_err(ser::Error::custom)?;
        text.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Schedule, D::Error> {
        serde_json::from_str(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}

impl How {
    /// The plan of such a run.
    pub(crate) fn plan(&self, like: &Plan) -> Plan {
        let order = match &self.policy {
            Policy::Random => Order::Random,
            &Policy::Pct { depth, n_steps } => Order::Pct { depth, n_steps },
            Policy::Pos => Order::Pos,
            Policy::Rr => Order::Rr,
            Policy::Free { delay } => Order::Free {
                delay: delay.map(|(probability, us_max)| Delay { probability, us_max }),
            },
            Policy::Woven { schedule, mixed } => Order::Follow {
                schedule: schedule.clone(),
                strict: false,
                after: if *mixed { control::Policy::Random } else { control::Policy::Rr },
            },
        };
        Plan { order, seed: self.seed, ..like.clone() }
    }
}

impl Sample {
    /// The build of the program that ran.
    pub(crate) fn build_id(&self) -> &str {
        self.run.modules.first().map_or("", |module| &module.build_id)
    }

    /// Writes it to a directory; its name tells how it ended.
    pub(crate) fn keep(&self, directory: &Path) -> Result<()> {
        let body = postcard::to_stdvec(self).context("cannot encode what a run has given")?;
        let ending = if self.failure.is_some() { "fail" } else { "pass" };
        let path = directory.join(format!("{:06}-{ending}.{EXTENSION}", self.how.seed));
        let mut bytes = Vec::with_capacity(body.len() + HEAD_BYTES + 4);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&checksum(&body).to_le_bytes());
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    fn open(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::read(&bytes).with_context(|| path.display().to_string())
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else {
            bail!("this is no run that raddle localize has kept: it is too short");
        };
        ensure!(head.starts_with(MAGIC), "this is no run that raddle localize has kept");
        let (version, n_bytes) = head[8..].split_at(4);
        let version = u32::from_le_bytes(version.try_into()?);
        ensure!(
            version == VERSION,
            "it was kept by another version of raddle (format {version}, this one reads {VERSION})"
        );
        let n_bytes = usize::try_from(u64::from_le_bytes(n_bytes.try_into()?))?;
        let (body, end) = rest.split_at_checked(n_bytes).context("the file is cut off")?;
        let end: [u8; 4] = end.try_into().context("the file is cut off")?;
        ensure!(u32::from_le_bytes(end) == checksum(body), "the file is damaged");
        postcard::from_bytes(body).context("the file is damaged")
    }
}

/// All runs of a directory, in the order of their names.
pub(crate) fn all(directory: &Path) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for path in paths(directory)? {
        samples.push(Sample::open(&path)?);
    }
    Ok(samples)
}

/// Removes the runs of a directory.
pub(crate) fn clear(directory: &Path) -> Result<()> {
    for path in paths(directory)? {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

fn paths(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot read the directory {}", directory.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::Mode;
    use raddle_trace::id::{Site, ThreadId};
    use raddle_trace::schedule::Step;

    use super::*;

    fn sample() -> Sample {
        let run = Run {
            command: vec!["prog".into()],
            directory: "/".into(),
            mode: Mode::Controlled,
            policy: None,
            seed: 7,
            modules: vec![],
            threads: vec![],
            ending: None,
        };
        let steps = vec![Step::Run { thread: ThreadId(1), count: 3, site: Site(5) }];
        let policy = Policy::Woven { schedule: Schedule { steps }, mixed: true };
        let how = How { seed: 7, policy, with_laps: false };
        Sample { run, how, failure: None, facts: Facts::default() }
    }

    #[test]
    fn a_run_comes_back_from_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        sample().keep(directory.path()).expect("written");
        let back = all(directory.path()).expect("read");
        assert_eq!(back.len(), 1);
        assert_eq!(back[0].how, sample().how);
        clear(directory.path()).expect("removed");
        assert!(all(directory.path()).expect("read").is_empty());
    }

    #[test]
    fn damage_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        sample().keep(directory.path()).expect("written");
        let path = directory.path().join("000007-pass.run");
        let bytes = fs::read(path).expect("a file");
        for n in 0..bytes.len() {
            assert!(Sample::read(&bytes[..n]).is_err(), "cut off at {n}");
            let mut other = bytes.clone();
            other[n] ^= 0x10;
            assert!(Sample::read(&other).is_err(), "changed at {n}");
        }
    }
}
