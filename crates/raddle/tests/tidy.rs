//! Rules about the source itself.

mod modules;

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
const ARROWS: [(&str, &[&str]); 11] = [
    ("trace", &[]),
    ("runtime", &["trace"]),
    ("code", &["trace"]),
    ("symbols", &["trace", "code"]),
    ("analysis", &["trace"]),
    ("trial", &["trace", "code"]),
    ("lab", &["trace", "trial", "analysis", "code"]),
    ("isolate", &["trace", "trial", "analysis", "lab", "code"]),
    ("report", &["trace", "code", "symbols", "trial", "analysis", "lab", "isolate"]),
    (
        "raddle",
        &["trace", "code", "symbols", "trial", "analysis", "lab", "isolate", "report", "corpus"],
    ),
    ("corpus", &[]),
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
fn only_tests_and_benches_look_at_the_corpus() {
    for (name, _) in ARROWS {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml"))
            .expect("a manifest");
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        let looks = dependencies.lines().any(|line| line.starts_with("raddle-corpus"));
        assert!(!looks, "{name} may depend on corpus in its tests only");
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
    for name in ["trace", "code", "symbols", "analysis", "trial", "lab", "isolate", "report"] {
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

/// What a report is and how it is shown knows nothing of how it came about.
#[test]
fn models_and_renderers_see_plain_data() {
    for part in ["model", "render"] {
        let mut files = Vec::new();
        sources(&root().join("crates/report/src").join(part), &mut files);
        assert!(files.len() > 3);
        for file in files {
            let text = fs::read_to_string(&file).expect("a file");
            for word in ["raddle_", "crate::name"] {
                assert!(!text.contains(word), "{} uses {word}", file.display());
            }
        }
    }
}

/// Results are data: the command line makes no JSON of its own.
#[test]
fn only_reports_make_json() {
    let mut files = Vec::new();
    for name in ["raddle", "lab", "isolate"] {
        sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        assert!(!text.contains("json!("), "{} makes JSON", file.display());
    }
}

#[test]
fn modules_do_not_use_each_other_in_cycles() {
    let mut found = String::new();
    for entry in fs::read_dir(root().join("crates")).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        for cycle in modules::cycles(&name, &path.join("src")) {
            found += &format!("{}\n    {}\n", cycle.name, cycle.uses.join("\n    "));
        }
    }
    assert!(found.is_empty(), "modules use each other in a cycle:\n{found}");
}
