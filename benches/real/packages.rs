//! Programs in C and C++ from the package manager.
//!
//! A directory of `packages` is about one of them. Its script `build` runs in the package's source
//! and makes `$OUT/program`, and `$OUT/driver.so` if there is a driver to preload. Libraries such
//! as sqlite are linked with a driver that has a `main`. Nothing of the packages themselves is ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use raddle_bench_shared::source::Sources;

use crate::input;
use crate::subject::{Answer, Build, Subject};

/// A package of the distribution.
struct Package {
    /// Our name for it, that of its directory.
    name: &'static str,
    /// The source package.
    source: &'static str,
    cases: &'static [Case],
}

/// A way to run a program.
struct Case {
    /// What comes after the package's name.
    suffix: &'static str,
    args: &'static [&'static str],
    kind: Kind,
}

/// What a program does.
enum Kind {
    /// Prints `input`, compressed.
    Compresses(fn() -> Vec<u8>),
    /// Prints the text that it printed itself, compressed, when it ran with these arguments.
    Decompresses(&'static [&'static str]),
    /// Is driven by ours, which prints what it sees.
    Prints,
    /// The same, and ends with status 1 if something is wrong.
    Serves,
}

const FLAGS: &str = "-g -O1";

const PACKAGES: [Package; 8] = [
    Package {
        name: "pigz",
        source: "pigz",
        cases: &[
            Case {
                suffix: "",
                args: &["-p3", "-b32", "-1", "-n", "-c", "input"],
                kind: Kind::Compresses(input::text),
            },
            Case {
                suffix: " -d",
                args: &["-p3", "-d", "-c", "input"],
                kind: Kind::Decompresses(&["-p3", "-b32", "-1", "-n", "-c", "input"]),
            },
        ],
    },
    Package {
        name: "xz",
        source: "xz-utils",
        cases: &[
            Case {
                suffix: "",
                args: &["-T3", "--block-size=30000", "-0", "-c", "input"],
                kind: Kind::Compresses(input::text),
            },
            Case {
                suffix: " -d",
                args: &["-T3", "-d", "-c", "--format=xz", "--single-stream", "input"],
                kind: Kind::Decompresses(&["-T3", "--block-size=30000", "-0", "-c", "input"]),
            },
        ],
    },
    Package {
        name: "zstd",
        source: "libzstd",
        cases: &[
            Case {
                suffix: "",
                // Its jobs have at least 512 kilobytes.
                args: &["-T3", "-B524288", "-1", "-q", "-c", "input"],
                kind: Kind::Compresses(input::sparse),
            },
            Case {
                suffix: " -d",
                args: &["-d", "-q", "-c", "input"],
                kind: Kind::Decompresses(&["-T3", "-1", "-q", "-c", "input"]),
            },
        ],
    },
    Package {
        name: "pbzip2",
        source: "pbzip2",
        cases: &[
            Case {
                suffix: "",
                args: &["-p3", "-b1", "-1", "-c", "-k", "input"],
                kind: Kind::Compresses(input::text),
            },
            Case {
                suffix: " -d",
                args: &["-p3", "-d", "-c", "-k", "input"],
                kind: Kind::Decompresses(&["-p3", "-b1", "-1", "-c", "-k", "input"]),
            },
        ],
    },
    Package {
        name: "sqlite",
        source: "sqlite3",
        cases: &[
            Case { suffix: "", args: &["delete"], kind: Kind::Prints },
            Case { suffix: " wal", args: &["wal"], kind: Kind::Prints },
        ],
    },
    Package {
        name: "leveldb",
        source: "leveldb",
        cases: &[Case { suffix: "", args: &[], kind: Kind::Prints }],
    },
    Package {
        name: "memcached",
        source: "memcached",
        cases: &[Case {
            suffix: "",
            args: &["-s", "socket", "-t", "2", "-A", "-m", "16", "-u", "root"],
            kind: Kind::Serves,
        }],
    },
    Package {
        name: "redis",
        source: "redis",
        cases: &[Case {
            suffix: "",
            args: &[
                "--port",
                "0",
                "--unixsocket",
                "socket",
                "--save",
                "",
                "--io-threads",
                "2",
                "--io-threads-do-reads",
                "yes",
                "--loglevel",
                "warning",
            ],
            kind: Kind::Serves,
        }],
    },
];

/// Fetches and builds the programs below `directory` that are chosen by name.
pub(crate) fn subjects(directory: &Path, is_chosen: impl Fn(&str) -> bool) -> Result<Vec<Subject>> {
    let sources = Sources::new(directory);
    let mut subjects = Vec::new();
    for package in &PACKAGES {
        let name = |case: &Case| format!("{}{}", package.name, case.suffix);
        let chosen: Vec<_> = package.cases.iter().filter(|case| is_chosen(&name(case))).collect();
        if chosen.is_empty() {
            continue;
        }
        let source = sources.fetch(package.source)?;
        for case in chosen {
            let native = build(directory, package, &source, "native", FLAGS)?;
            let flags = format!("{FLAGS} -fsanitize=thread");
            let instrumented = build(directory, package, &source, "instrumented", &flags)?;
            let (files, answer) = match case.kind {
                Kind::Compresses(input) => (vec![("input", input())], Answer::Output),
                Kind::Decompresses(args) => {
                    let compressed = printed(&native, args, &input::text())?;
                    (vec![("input", compressed)], Answer::Bytes(input::text()))
                }
                Kind::Prints => (Vec::new(), Answer::Output),
                Kind::Serves => (Vec::new(), Answer::Status),
            };
            subjects.push(Subject {
                name: name(case),
                version: version(&source),
                native,
                instrumented,
                args: case.args.iter().map(|&word| word.to_owned()).collect(),
                files,
                answer,
            });
        }
    }
    Ok(subjects)
}

/// Builds a package with these flags, unless an earlier run has done so with the same script and
/// driver.
fn build(
    directory: &Path,
    package: &Package,
    source: &Path,
    kind: &str,
    flags: &str,
) -> Result<Build> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("real/packages");
    let here = packages.join(package.name);
    let out = directory.join("builds").join(package.name).join(kind);
    let made = || {
        let driver = out.join("driver.so");
        let driver = driver.exists().then_some(driver);
        Build { program: out.join("program"), driver }
    };
    let stamp = stamp(&here, &packages, source, flags)?;
    let stamp_file = out.join("stamp");
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Ok(made());
    }
    eprintln!("building {} ({kind})", package.name);
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let log = out.join("log");
    let file = fs::File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
    let script = here.join("build");
    // Each build has the source to itself.
    let status = Command::new("sh")
        .args(["-exc", "cp -a \"$SOURCE\" \"$OUT/tree\"; cd \"$OUT/tree\"; . \"$HERE/build\""])
        .env("SOURCE", source)
        .env("OUT", &out)
        .env("HERE", &here)
        .env("CFLAGS", flags)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .context("cannot start sh")?;
    ensure!(status.success(), "{} fails; see {}", script.display(), log.display());
    fs::write(&stamp_file, stamp).context("cannot write the stamp of a build")?;
    Ok(made())
}

/// All that a build depends on, but the machine's compiler and libraries.
fn stamp(here: &Path, packages: &Path, source: &Path, flags: &str) -> Result<String> {
    let mut files: Vec<PathBuf> = vec![packages.join("client.h")];
    let entries = fs::read_dir(here).with_context(|| format!("cannot read {}", here.display()))?;
    files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    files.sort();
    let mut stamp = format!("{}\n{flags}\n", source.display());
    for file in files {
        stamp += &fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
    }
    Ok(stamp)
}

/// What a program makes of an input.
fn printed(build: &Build, args: &[&str], input: &[u8]) -> Result<Vec<u8>> {
    let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
    fs::write(directory.path().join("input"), input).context("cannot write an input")?;
    let output = Command::new(&build.program)
        .args(args)
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", build.program.display()))?;
    ensure!(output.status.success(), "{} fails natively", build.program.display());
    Ok(output.stdout)
}

/// The version in the name of a source directory.
fn version(source: &Path) -> String {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-').map_or_else(String::new, |(_, version)| version.to_owned())
}
