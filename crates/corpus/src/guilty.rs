//! Programs that fail, with the lines that are to blame, and where a ranking puts them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Source;
use crate::source::sources;

/// Directories of programs that raddle was developed with.
pub const KNOWN: &[&str] = &["hunt", "localize"];
/// Directories of programs that raddle was not developed with.
pub const UNSEEN: &[&str] = &["unseen"];

/// What marks a guilty line.
const MARKS: [&str; 4] = ["guilty", "head", "tail", "falcon"];

/// A program that fails.
#[derive(Debug)]
pub struct Program {
    /// Its text.
    pub source: Source,
    /// What it is called with.
    pub arguments: Vec<String>,
    guilty: BTreeSet<u64>,
}

impl Program {
    /// The program, unless no line of it is guilty, or what is guilty does no harm.
    #[must_use]
    pub fn new(source: Source) -> Option<Self> {
        if source.directive("Hunt") == Some("benign") {
            return None;
        }
        let is_marked = |line: &str| {
            MARKS.iter().any(|mark| line.contains(&format!("/* {mark}")))
                || line.trim_end().ends_with("// guilty")
        };
        let guilty: BTreeSet<u64> =
            source.lines().filter(|(_, line)| is_marked(line)).map(|(number, _)| number).collect();
        let arguments = source.words("Args");
        (!guilty.is_empty()).then_some(Self { source, arguments, guilty })
    }

    /// The rank, from 1, of the first pattern whose accesses are all guilty.
    #[must_use]
    pub fn rank_of_pattern(&self, patterns: &Value) -> Option<usize> {
        self.rank(patterns, |pattern| pattern["accesses"].as_array().cloned().unwrap_or_default())
    }

    /// The rank, from 1, of the first entry whose pairs are all guilty.
    #[must_use]
    pub fn rank_of_pair(&self, pairs: &Value) -> Option<usize> {
        self.rank(pairs, |entry| {
            let pairs = entry["pairs"].as_array().into_iter().flatten();
            pairs.flat_map(|pair| [pair["head"].clone(), pair["tail"].clone()]).collect()
        })
    }

    fn rank(&self, ranking: &Value, accesses: impl Fn(&Value) -> Vec<Value>) -> Option<usize> {
        let is_guilty = |access: &Value| {
            access["line"].as_u64().is_some_and(|line| self.guilty.contains(&line))
        };
        let mut ranking = ranking.as_array()?.iter();
        ranking.position(|entry| accesses(entry).iter().all(is_guilty)).map(|at| at + 1)
    }
}

/// The failing programs of directories of raddle's tests, by name.
#[must_use]
pub fn programs(directories: &[&str]) -> Vec<Program> {
    let sources = directories.iter().flat_map(|directory| sources(directory));
    let mut programs: Vec<_> = sources.filter_map(Program::new).collect();
    programs.sort_by(|one, two| one.source.name.cmp(&two.source.name));
    programs
}
