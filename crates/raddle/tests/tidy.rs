//! Rules about the source itself.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Which crates of ours each may look at.
const ARROWS: [(&str, &[&str]); 7] = [
    ("trace", &[]),
    ("runtime", &["trace"]),
    ("trial", &["trace"]),
    ("analysis", &["trace"]),
    ("report", &["trace", "analysis"]),
    ("isolate", &["trace", "trial", "analysis", "report"]),
    ("raddle", &["trace", "trial", "analysis", "isolate", "report"]),
];

#[test]
fn crates_look_only_where_they_may() {
    for (name, may) in ARROWS {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml"))
            .expect("a manifest");
        for (other, _) in ARROWS {
            let looks = manifest.lines().any(|line| line.starts_with(&format!("raddle-{other}")));
            assert!(!looks || may.contains(&other), "{name} must not depend on {other}");
        }
    }
}

#[test]
fn every_module_says_what_it_is() {
    let mut files = Vec::new();
    for (name, _) in ARROWS {
        sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    assert!(files.len() > 50);
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        assert!(text.starts_with("//! "), "{} has no module doc", file.display());
    }
}

#[test]
fn only_the_command_line_prints_and_reads_arguments() {
    for name in ["trace", "trial", "analysis", "isolate", "report"] {
        let mut files = Vec::new();
        sources(&root().join("crates").join(name).join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("a file");
            for word in ["println!(", "eprintln!(", "env::args"] {
                let used = text
                    .lines()
                    .any(|line| line.contains(word) && !line.trim_start().starts_with("//"));
                assert!(!used, "{} uses {word}", file.display());
            }
        }
    }
}
