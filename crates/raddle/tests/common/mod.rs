//! Programs that say in their first lines what is to be found out about them, and raddle to find
//! it out.
//!
//! A directive is a line `// Name: value`. A line that is meant holds `/* mark */`, or ends with
//! `// mark`.
#![allow(dead_code, reason = "each test needs a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A program's text.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    text: String,
}

impl Source {
    pub(crate) fn read(path: &Path) -> Self {
        Self {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path: path.to_owned(),
            text: fs::read_to_string(path).expect("a program"),
        }
    }

    /// What a directive says.
    pub(crate) fn directive(&self, name: &str) -> Option<&str> {
        let start = format!("// {name}: ");
        self.text.lines().find_map(|line| line.strip_prefix(&start))
    }

    /// The words that a directive says.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let words = self.directive(name).unwrap_or_default().split_whitespace();
        words.map(|word| word.trim_end_matches(',').to_owned()).collect()
    }

    /// The numbers of the lines with a mark.
    pub(crate) fn marked(&self, mark: &str) -> Vec<u64> {
        let (inside, end) = (format!("/* {mark} */"), format!("// {mark}"));
        let is_marked = |line: &str| line.contains(&inside) || line.trim_end().ends_with(&end);
        let lines = (1..).zip(self.text.lines());
        lines.filter(|(_, line)| is_marked(line)).map(|(number, _)| number).collect()
    }

    /// The guilty lines, which are as many as a directive says.
    pub(crate) fn guilty(&self) -> Vec<u64> {
        let guilty = self.marked("guilty");
        let n = self.words("Guilty").first().and_then(|n| n.parse().ok());
        assert_eq!(n, Some(guilty.len()), "guilty lines of {}", self.name);
        guilty
    }
}

/// The programs of a directory of `tests`, by name.
pub(crate) fn sources(directory: &str) -> Vec<Source> {
    let mut sources: Vec<_> = fs::read_dir(path(directory))
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "md"))
        .map(|path| Source::read(&path))
        .collect();
    sources.sort_by(|one, two| one.name.cmp(&two.name));
    sources
}

/// A file or directory of `tests`.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Checks all programs, some at the same time; nothing may be wrong with any.
pub(crate) fn check_all<P: Sync>(
    programs: &[P],
    n_workers: usize,
    name: impl Fn(&P) -> &str + Sync,
    check: impl Fn(&P) -> Vec<String> + Sync,
) {
    assert!(!programs.is_empty(), "no such program");
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = std::time::Instant::now();
                    let complaints = check(program);
                    eprintln!("{:5.1} s  {}", start.elapsed().as_secs_f64(), name(program));
                    let told = complaints.iter().map(|why| format!("{}: {why}", name(program)));
                    wrong.lock().expect("no panic").extend(told);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

/// Raddle in a directory.
pub(crate) fn raddle(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raddle"));
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// What was printed as JSON, or what was said instead.
pub(crate) fn json(output: &Output) -> Result<serde_json::Value, String> {
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", said(output)))
}

/// What was said on standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}
