//! A target from a single source file.
//!
//! Compiled as a user would, with the sanitizer's instrumentation, into a cache. What is
//! found there is used again if nothing that went into it has changed: the command, the
//! compiler's version and the text of the source file name the entry, and every file that
//! the compiler says it has read is older than its result, as `make` would have it.

use std::ffi::{OsStr, OsString};
use std::hash::Hasher as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::unpack;

/// What a source file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cpp,
    /// Rust.
    Rust,
}

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is named for what it holds")]
#[non_exhaustive]
pub enum CompileError {
    /// There is no compiler.
    #[error("cannot start compiler {}: {source}; install it or set {variable} to another compiler", compiler.display())]
    Compiler { compiler: OsString, variable: &'static str, source: io::Error },
    /// The compiler has found fault with the source, and has said so.
    #[error("{} does not compile", path.display())]
    Rejected { path: PathBuf },
    /// The operating system refused.
    #[error("cannot write the compiled program to {}: {source}; set XDG_CACHE_HOME to a writable directory", path.display())]
    Cache { path: PathBuf, source: io::Error },
    /// The operating system refused.
    #[error("cannot read {}: {source}", path.display())]
    Source { path: PathBuf, source: io::Error },
}

/// The language of a source file, or none if it is something else.
#[must_use]
pub fn language(path: &Path) -> Option<Language> {
    match path.extension()?.to_str()? {
        "c" => Some(Language::C),
        "cc" | "cpp" | "cxx" => Some(Language::Cpp),
        "rs" => Some(Language::Rust),
        _ => None,
    }
}

/// The program that a source file makes, for the given runtime library. `directory` is
/// where it was typed, if not here.
pub fn compile(
    path: &Path,
    language: Language,
    runtime: &Path,
    directory: Option<&Path>,
) -> Result<PathBuf> {
    let here = directory.unwrap_or(Path::new("."));
    let source = |source| CompileError::Source { path: path.to_owned(), source };
    let text = fs::read(here.join(path)).map_err(source)?;
    let compiler = Compiler::find(language)?;
    // The compiler notes where it ran. A path that says where the source is, without flags
    // that might mean something relative, means the same everywhere, and so gives the same.
    let here = match path.parent() {
        Some(parent) if path.is_absolute() && !compiler.has_own_flags => parent,
        _ => here,
    };
    let here = here.canonicalize().map_err(source)?;
    let key = compiler.key(path, &here, &text);
    let mut first_error = None;
    for cache in unpack::cache_directories() {
        let entry = cache.join("compiled").join(&key);
        if let Err(source) = unpack::own_directory(&entry) {
            first_error.get_or_insert(CompileError::Cache { path: entry, source });
            continue;
        }
        let program = entry.join(path.file_stem().unwrap_or(OsStr::new("program")));
        let dependencies = entry.join("dependencies");
        if !is_fresh(&program, &dependencies, &here) {
            prune(&cache.join("compiled"));
            let product = Product { program: &program, dependencies: &dependencies };
            compiler.compile(path, runtime, &here, &product)?;
        }
        return Ok(program);
    }
    Err(first_error.expect("there is at least one cache directory"))
}

/// What a compilation leaves.
struct Product<'a> {
    program: &'a Path,
    dependencies: &'a Path,
}

type Result<T> = std::result::Result<T, CompileError>;

/// A compiler, and how it is called.
struct Compiler {
    program: OsString,
    variable: &'static str,
    flags: Vec<OsString>,
    /// Whether some of the flags are the user's.
    has_own_flags: bool,
    kind: Kind,
    /// As it tells itself.
    version: Vec<u8>,
}

/// Which family of flags it understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gcc,
    Clang,
    Rustc,
}

impl Compiler {
    fn find(language: Language) -> Result<Self> {
        let (variable, fallback, flags_variable) = match language {
            Language::C => ("CC", "gcc", "CFLAGS"),
            Language::Cpp => ("CXX", "g++", "CXXFLAGS"),
            Language::Rust => ("RUSTC", "rustc", "RUSTFLAGS"),
        };
        let program = std::env::var_os(variable)
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| fallback.into());
        let version = Command::new(&program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| CompileError::Compiler {
                compiler: program.clone(),
                variable,
                source,
            })?
            .stdout;
        let kind = match language {
            Language::Rust => Kind::Rustc,
            _ if version.windows(5).any(|word| word == b"clang") => Kind::Clang,
            _ => Kind::Gcc,
        };
        let own: OsString = std::env::var_os(flags_variable).unwrap_or_default();
        let mut flags: Vec<OsString> = match kind {
            Kind::Gcc | Kind::Clang => vec!["-g".into(), "-O1".into(), "-pthread".into()],
            Kind::Rustc => vec!["-g".into(), "-Copt-level=1".into(), "--edition=2024".into()],
        };
        if language == Language::Cpp {
            flags.push("-std=c++20".into());
        }
        let n_flags = flags.len();
        flags.extend(words(&own));
        let has_own_flags = flags.len() > n_flags;
        Ok(Self { program, variable, flags, has_own_flags, kind, version })
    }

    /// The name of the cache's entry.
    fn key(&self, path: &Path, here: &Path, text: &[u8]) -> String {
        let mut hasher = rustc_hash::FxHasher::default();
        let parts = [
            self.program.as_bytes(),
            &self.version,
            path.as_os_str().as_bytes(),
            here.as_os_str().as_bytes(),
            text,
        ];
        for part in parts.into_iter().chain(self.flags.iter().map(|flag| flag.as_bytes())) {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        format!("{:016x}", hasher.finish())
    }

    fn compile(
        &self,
        path: &Path,
        runtime: &Path,
        here: &Path,
        product: &Product<'_>,
    ) -> Result<()> {
        // Others may compile the same at the same time: only whole results get their names.
        let temporary =
            |path: &Path| path.with_added_extension(format!("{}.tmp", std::process::id()));
        let (program, dependencies) = (temporary(product.program), temporary(product.dependencies));
        let compiled = match self.kind {
            Kind::Gcc => self.gcc(path, here, &program, &dependencies),
            Kind::Clang => self.clang(path, runtime, here, &program, &dependencies),
            Kind::Rustc => self.rustc(path, runtime, here, &program, &dependencies),
        };
        let kept = compiled.and_then(|()| {
            [(&dependencies, product.dependencies), (&program, product.program)]
                .into_iter()
                .try_for_each(|(from, to)| fs::rename(from, to))
                .map_err(|source| CompileError::Cache { path: program.clone(), source })
        });
        if kept.is_err() {
            for left_over in [program, dependencies] {
                // May not be there, and it is the first error that counts.
                let _ = fs::remove_file(left_over);
            }
        }
        kept
    }

    fn gcc(&self, path: &Path, here: &Path, program: &Path, dependencies: &Path) -> Result<()> {
        let mut command = self.command(here);
        command.args(GCC_FLAGS).args(&self.flags).args(["-MD", "-MF"]).arg(dependencies);
        self.run(path, command.arg("-o").arg(program).arg(path))
    }

    fn clang(
        &self,
        path: &Path,
        runtime: &Path,
        here: &Path,
        program: &Path,
        dependencies: &Path,
    ) -> Result<()> {
        let mut command = self.command(here);
        command.args(CLANG_FLAGS).args(&self.flags).args(["-MD", "-MF"]).arg(dependencies);
        self.run(path, command.arg("-o").arg(program).arg(path).arg(runtime))
    }

    fn rustc(
        &self,
        path: &Path,
        runtime: &Path,
        here: &Path,
        program: &Path,
        dependencies: &Path,
    ) -> Result<()> {
        let assigned = |flag: &str, value: &Path| {
            let mut text = OsString::from(flag);
            text.push(value);
            text
        };
        // rustc puts object files there meanwhile, by names that do not differ from run to run. Where
        // none is named, that is the working directory.
        let objects = program.with_added_extension("objects");
        fs::create_dir_all(&objects)
            .map_err(|source| CompileError::Cache { path: objects.clone(), source })?;
        let mut command = self.command(here);
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["--crate-type=bin", "--crate-name"])
            .arg(crate_name(path))
            .args(RUSTC_FLAGS)
            .arg(assigned("-Clink-arg=", runtime))
            .args(&self.flags)
            .arg("--out-dir")
            .arg(&objects)
            .arg(assigned("--emit=dep-info=", dependencies))
            .arg(assigned("--emit=link=", program))
            .arg(path);
        let compiled = self.run(path, &mut command);
        // Of no use to anybody, whether or not it can be removed.
        let _ = fs::remove_dir_all(objects);
        compiled
    }

    fn command(&self, here: &Path) -> Command {
        let mut command = Command::new(&self.program);
        // What it has to say goes to standard error: standard output is the target's.
        command.current_dir(here).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn run(&self, path: &Path, command: &mut Command) -> Result<()> {
        let status = command.status().map_err(|source| CompileError::Compiler {
            compiler: self.program.clone(),
            variable: self.variable,
            source,
        })?;
        match status.success() {
            true => Ok(()),
            false => Err(CompileError::Rejected { path: path.to_owned() }),
        }
    }
}

/// What makes gcc call the sanitizer's functions. It links the sanitizer's library
/// dynamically, and ours takes that one's place when the program runs.
pub const GCC_FLAGS: [&str; 1] = ["-fsanitize=thread"];

/// What makes clang call the sanitizer's functions, and leave them to us. LLVM drops the
/// read of `x = x + 1` unless it is told not to.
pub const CLANG_FLAGS: [&str; 4] = [
    "-fsanitize=thread",
    "-fno-sanitize-link-runtime",
    "-mllvm",
    "-tsan-instrument-read-before-write",
];

/// What makes the stable compiler call the sanitizer's functions, and leave them to us.
pub const RUSTC_FLAGS: [&str; 4] = [
    "-Zsanitizer=thread",
    "-Zexternal-clangrt",
    "-Cunsafe-allow-abi-mismatch=sanitizer",
    "-Cllvm-args=-tsan-instrument-read-before-write",
];

/// A name for the crate that a file makes: the compiler wants an identifier.
fn crate_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Whether the program is there, and newer than all that went into it.
fn is_fresh(program: &Path, dependencies: &Path, here: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let Ok(made) = time(program) else { return false };
    let Ok(rule) = fs::read(dependencies) else { return false };
    prerequisites(&rule).iter().all(|path| time(&here.join(path)).is_ok_and(|time| time <= made))
}

/// Entries that the cache holds at most.
const N_ENTRIES_MAX: usize = 512;

/// Makes room by removing the oldest entries. Nothing depends on its success.
fn prune(compiled: &Path) {
    let Ok(entries) = fs::read_dir(compiled) else { return };
    let mut entries: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    let n_surplus = entries.len().saturating_sub(N_ENTRIES_MAX);
    entries.sort_unstable();
    for (_, entry) in entries.into_iter().take(n_surplus) {
        let _ = fs::remove_dir_all(entry);
    }
}

/// The prerequisites of all rules, in the syntax of `make`.
fn prerequisites(rules: &[u8]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut word = Vec::new();
    let mut in_comment = false;
    let mut bytes = rules.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\n', _) if in_comment => in_comment = false,
            _ if in_comment => {}
            (b'#', _) if word.is_empty() => in_comment = true,
            (b'\\', Some(b'\n')) => {
                bytes.next();
            }
            (b'\\', Some(&escaped @ (b' ' | b'#' | b'\\'))) => {
                bytes.next();
                word.push(escaped);
            }
            (b' ' | b'\t' | b'\n', _) => {
                // What ends in a colon is a rule's target.
                if !word.is_empty() && word.last() != Some(&b':') {
                    paths.push(OsString::from_vec(word.clone()).into());
                }
                word.clear();
            }
            _ => word.push(byte),
        }
    }
    paths
}

/// The words of a variable such as `CFLAGS`.
fn words(text: &OsStr) -> impl Iterator<Item = OsString> {
    text.as_bytes()
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_make_is_understood() {
        let rules = b"/tmp/x.o: a.c sub/b\\ c.h \\\n d.h\n\nd.h:\n# env-dep:X=y z\n";
        let expected: Vec<PathBuf> = ["a.c", "sub/b c.h", "d.h"].map(PathBuf::from).into();
        assert_eq!(prerequisites(rules), expected);
    }

    #[test]
    fn a_crate_has_an_identifier_for_a_name() {
        assert_eq!(crate_name(Path::new("dir/two-words.rs")), "two_words");
        assert_eq!(crate_name(Path::new("3.rs")), "_3");
    }

    #[test]
    fn the_oldest_entries_make_room() {
        let cache = tempfile::tempdir().expect("a directory");
        for number in 0..N_ENTRIES_MAX + 3 {
            let entry = cache.path().join(number.to_string());
            fs::create_dir(&entry).expect("room");
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            fs::File::open(&entry).and_then(|entry| entry.set_modified(time)).expect("own");
        }
        prune(cache.path());
        let left = (0..N_ENTRIES_MAX + 3).filter(|n| cache.path().join(n.to_string()).exists());
        assert!(left.eq(3..N_ENTRIES_MAX + 3));
    }

    #[test]
    fn languages_go_by_extension() {
        assert_eq!(language(Path::new("a/b.cxx")), Some(Language::Cpp));
        assert_eq!(language(Path::new("b.h")), None);
        assert_eq!(language(Path::new("c")), None);
    }
}
