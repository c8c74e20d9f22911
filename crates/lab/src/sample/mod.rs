//! Samples: what is kept of a run to compare it with others, in memory and on disk.
//!
//! ```text
//! file = "raddlrun" | version (u32) | n_bytes (u64) | body | checksum of the body (u32)
//! body = Sample, as postcard writes it
//! ```
//! The name of a file says how its run ended.
//!
//! **Two ways to collect.** Under control, the target collects while it runs (`histories` of
//! memory). That tells what happened and in which order, but not when the first accesses of a
//! pattern were, who called, or in which loop. So a run that failed is executed once more with
//! all of its records, from which `analysis::localize::collect` makes the same facts in full
//! detail; so are runs whose loops are needed, and examples that are shown. A test demands that
//! both ways find the same. A free run cannot be executed again. So if runs are short, judging
//! by the first one, full detail is collected from each: the parent draws the records of every
//! thread as they come and merges them by time (`trace::merge`). Only facts are kept of a run;
//! the memory that collecting needs grows with the places that were touched.

pub mod collect;
mod loops;

use std::fs;
use std::path::{Path, PathBuf};

use raddle_analysis::localize::facts::Facts;
use raddle_trace::checksum::checksum;
use raddle_trace::run::Run;
use raddle_trial::verdict::Failure;
use raddle_trial::{Order, Outcome, Plan};
use serde::{Deserialize, Serialize};

use crate::error::LabError;

const MAGIC: &[u8; 8] = b"raddlrun";
const VERSION: u32 = 3;
const HEAD_BYTES: usize = 20;
/// How files of samples end.
const EXTENSION: &str = "run";

/// What is kept of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// What ran.
    pub run: Run,
    /// How to execute it again.
    pub spec: Spec,
    /// How it failed, if it did.
    pub failed: Option<Failed>,
    /// What threads did to memory.
    pub facts: Facts,
}

/// How a run failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failed {
    /// The same for all runs that fail in the same way.
    pub key: String,
    /// The failure.
    pub failure: Failure,
    /// How the run ended.
    pub outcome: Outcome,
}

/// How to execute the same run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The seed of all choices.
    pub seed: u64,
    /// Who goes next.
    pub order: Order,
    /// With the loops that accesses are in. That takes each access, also repeated ones.
    pub with_loops: bool,
}

impl Spec {
    /// One of many runs that are to differ, by its number.
    #[must_use]
    pub fn varied(seed: u64, n_steps: u64) -> Self {
        Self { seed, order: Order::in_turn(seed, n_steps), with_loops: false }
    }

    /// Whether it is the same run, in more or less detail.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.seed == other.seed && self.order == other.order
    }

    /// Whether the same plan gives the same run.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        !matches!(self.order, Order::Free { .. })
    }

    /// Whether the run was made by chance, not by a schedule that somebody wove.
    #[must_use]
    pub fn is_chance(&self) -> bool {
        !matches!(self.order, Order::Follow { .. })
    }

    /// The plan of such a run, in all else like another one.
    #[must_use]
    pub fn plan(&self, like: &Plan) -> Plan {
        Plan { order: self.order.clone(), seed: self.seed, ..like.clone() }
    }
}

impl Sample {
    /// The build of the program that ran.
    #[must_use]
    pub fn build_id(&self) -> &str {
        self.run.modules.first().map_or("", |module| &module.build_id)
    }

    /// What makes it the same failure as another sample's; none if it passed.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.failed.as_ref().map(|failed| &failed.key[..])
    }

    /// Writes it to a directory.
    pub fn keep(&self, directory: &Path) -> Result<(), LabError> {
        let ending = if self.failed.is_some() { "fail" } else { "pass" };
        let path = directory.join(format!("{:06}-{ending}.{EXTENSION}", self.spec.seed));
        let error = |reason: String| LabError::Sample { path: path.clone(), reason };
        let body = postcard::to_stdvec(self)
            .map_err(|source| error(format!("cannot be encoded: {source}")))?;
        let mut bytes = Vec::with_capacity(body.len() + HEAD_BYTES + 4);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&checksum(&body).to_le_bytes());
        fs::write(&path, bytes).map_err(|source| error(format!("cannot be written: {source}")))
    }

    fn open(path: &Path) -> Result<Self, LabError> {
        let error = |reason: String| LabError::Sample { path: path.to_owned(), reason };
        let bytes = fs::read(path).map_err(|source| error(format!("cannot be read: {source}")))?;
        Self::from_bytes(&bytes).map_err(error)
    }

    /// Reads the bytes of a file; or what is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (head, rest) =
            bytes.split_at_checked(HEAD_BYTES).ok_or("not a raddle run file: too short")?;
        let (magic, head) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err("not a raddle run file".into());
        }
        let (version, n_bytes) = head.split_at(4);
        let version = u32::from_le_bytes(version.try_into().expect("four bytes"));
        if version != VERSION {
            return Err(format!(
                "written by a different version of raddle (format {version}, this one reads {VERSION}); run raddle localize again"
            ));
        }
        let n_bytes = u64::from_le_bytes(n_bytes.try_into().expect("eight bytes"));
        let cut_off = "the file is cut off";
        let n_bytes = usize::try_from(n_bytes).map_err(|_| cut_off)?;
        let (body, end) = rest.split_at_checked(n_bytes).ok_or(cut_off)?;
        let end: [u8; 4] = end.try_into().map_err(|_| cut_off)?;
        if u32::from_le_bytes(end) != checksum(body) {
            return Err("the file is damaged".into());
        }
        let sample: Self = postcard::from_bytes(body).map_err(|_| "the file is damaged")?;
        if !sample.facts.is_sound() {
            return Err("the file is damaged".into());
        }
        Ok(sample)
    }
}

/// All samples of a directory, in the order of their names.
pub fn read_all(directory: &Path) -> Result<Vec<Sample>, LabError> {
    paths(directory)?.iter().map(|path| Sample::open(path)).collect()
}

/// Removes the samples of a directory.
pub fn clear(directory: &Path) -> Result<(), LabError> {
    for path in paths(directory)? {
        fs::remove_file(&path).map_err(|source| LabError::Sample {
            reason: format!("cannot be removed: {source}"),
            path,
        })?;
    }
    Ok(())
}

fn paths(directory: &Path) -> Result<Vec<PathBuf>, LabError> {
    let error = |source: std::io::Error| LabError::Sample {
        path: directory.to_owned(),
        reason: format!("cannot read the directory: {source}"),
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::{Mode, Policy};
    use raddle_trace::id::{Site, ThreadId};
    use raddle_trace::schedule::{Schedule, Step};

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
        let schedule = Schedule { steps };
        let order = Order::Follow { schedule, strict: false, after: Policy::Random };
        let spec = Spec { seed: 7, order, with_loops: false };
        Sample { run, spec, failed: None, facts: Facts::default() }
    }

    #[test]
    fn a_sample_comes_back_from_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        sample().keep(directory.path()).expect("written");
        let back = read_all(directory.path()).expect("read");
        assert_eq!(back.len(), 1);
        assert_eq!(back[0].spec, sample().spec);
        clear(directory.path()).expect("removed");
        assert!(read_all(directory.path()).expect("read").is_empty());
    }

    #[test]
    fn damage_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        sample().keep(directory.path()).expect("written");
        let path = directory.path().join("000007-pass.run");
        let bytes = fs::read(path).expect("a file");
        for n in 0..bytes.len() {
            assert!(Sample::from_bytes(&bytes[..n]).is_err(), "cut off at {n}");
            let mut other = bytes.clone();
            other[n] ^= 0x10;
            assert!(Sample::from_bytes(&other).is_err(), "changed at {n}");
        }
    }
}
