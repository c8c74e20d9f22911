//! The programs, with the lines that are guilty.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// A program that fails.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    guilty: BTreeSet<u64>,
}

/// What marks a guilty line.
const MARKS: [&str; 4] = ["guilty", "head", "tail", "falcon"];

/// Where the programs are that raddle was made with.
pub(crate) const KNOWN: &[&str] = &["hunt", "localize"];
/// Where those are that it was not made with.
pub(crate) const UNSEEN: &[&str] = &["unseen"];

/// The programs whose names hold a word, from directories below the tests of raddle.
pub(crate) fn programs(
    tests: &Path,
    directories: &[&str],
    word: Option<&str>,
) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for directory in directories {
        let directory = tests.join(directory);
        let entries = fs::read_dir(&directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            let is_source = path.extension().is_some_and(|extension| extension != "md");
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if is_source && word.is_none_or(|word| name.contains(word)) {
                programs.extend(program(path, name)?);
            }
        }
    }
    programs.sort_by(|one, two| one.name.cmp(&two.name));
    Ok(programs)
}

fn program(path: PathBuf, name: String) -> Result<Option<Program>> {
    let text = fs::read_to_string(&path)?;
    let directive = |name: &str| {
        let start = format!("// {name}: ");
        text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
    };
    let is_marked = |line: &str| {
        MARKS.iter().any(|mark| line.contains(&format!("/* {mark}")))
            || line.trim_end().ends_with("// guilty")
    };
    let lines = (1..).zip(text.lines());
    let guilty: BTreeSet<u64> =
        lines.filter(|(_, line)| is_marked(line)).map(|(number, _)| number).collect();
    let arguments = directive("Args").unwrap_or_default();
    let arguments = arguments.split_whitespace().map(str::to_owned).collect();
    Ok((!guilty.is_empty()).then_some(Program { name, path, arguments, guilty }))
}

impl Program {
    pub(crate) fn rank_of_pattern(&self, patterns: &Value) -> Option<usize> {
        self.rank(patterns, |pattern| pattern["accesses"].as_array().cloned().unwrap_or_default())
    }

    pub(crate) fn rank_of_pair(&self, pairs: &Value) -> Option<usize> {
        self.rank(pairs, |told| {
            let pairs = told["pairs"].as_array().into_iter().flatten();
            pairs.flat_map(|pair| [pair["head"].clone(), pair["tail"].clone()]).collect()
        })
    }

    fn rank(&self, told: &Value, accesses: impl Fn(&Value) -> Vec<Value>) -> Option<usize> {
        let is_guilty = |access: &Value| {
            access["line"].as_u64().is_some_and(|line| self.guilty.contains(&line))
        };
        let mut told = told.as_array()?.iter();
        told.position(|one| accesses(one).iter().all(is_guilty)).map(|at| at + 1)
    }
}
