//! The tests, and how they are built outside of glibc.
//!
//! Public headers are the machine's. What glibc's tests include beyond them is found in its source
//! tree, in directories that the compiler searches last; `config.h` stands in for glibc's own.
//! Tests link with a library of `support/*.c`, which is not instrumented. Flags for single tests
//! are taken from glibc's makefiles.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use raddle_bench_shared::parallel;

use crate::WORKERS;

/// A test of glibc.
pub(crate) struct Test {
    /// Such as `tst-cond1`.
    pub(crate) name: String,
    source: PathBuf,
}

/// A test in both builds.
pub(crate) struct Builds {
    pub(crate) native: PathBuf,
    /// For ThreadSanitizer and for raddle.
    pub(crate) instrumented: PathBuf,
}

/// All that is needed to build a test.
pub(crate) struct Compiler {
    glibc: PathBuf,
    /// Where programs go.
    programs: PathBuf,
    support: PathBuf,
    flags: Vec<String>,
    /// Further flags of single tests, by name.
    own_flags: HashMap<String, Vec<String>>,
}

const CONFIG: &str = include_str!("config.h");

/// Directories with tests.
const TESTS: [&str; 2] = ["nptl", "sysdeps/pthread"];

/// Directories of glibc that are searched for headers, after the machine's own.
const HEADERS: [&str; 14] = [
    "",
    "nptl",
    "sysdeps/pthread",
    "support",
    "sysdeps/x86_64/nptl",
    "sysdeps/x86/nptl",
    "sysdeps/x86_64",
    "sysdeps/x86",
    "sysdeps/nptl",
    "sysdeps/unix/sysv/linux/x86_64",
    "sysdeps/unix/sysv/linux/x86",
    "sysdeps/unix/sysv/linux",
    "include",
    "sysdeps/generic",
];

/// Builds the support library, unless an earlier run has; programs of another compiler, of other
/// flags, or of another glibc are removed.
pub(crate) fn prepare(directory: &Path, glibc: &Path) -> Result<Compiler> {
    let builds = directory.join("builds");
    let config = builds.join("config.h");
    let mut flags: Vec<String> =
        ["-std=gnu11", "-O2", "-g", "-w", "-pthread", "-D_GNU_SOURCE"].map(str::to_owned).into();
    flags.push(format!("-I{}", builds.display()));
    flags.extend(["-include".to_owned(), config.display().to_string()]);
    for header in HEADERS {
        flags.extend(["-idirafter".to_owned(), glibc.join(header).display().to_string()]);
    }
    let compiler = Compiler {
        glibc: glibc.to_owned(),
        programs: builds.join("programs"),
        support: builds.join("libsupport.a"),
        own_flags: own_flags(glibc)?,
        flags,
    };
    let stamp = format!("{}\n{:?}\n{CONFIG}", version()?, compiler.flags);
    let stamp_file = builds.join("stamp");
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Ok(compiler);
    }
    if builds.exists() {
        fs::remove_dir_all(&builds).context("cannot remove an older build")?;
    }
    fs::create_dir_all(&compiler.programs).context("cannot make a directory for programs")?;
    fs::write(&config, CONFIG).context("cannot write config.h")?;
    compiler.build_support(&builds.join("support"))?;
    fs::write(&stamp_file, stamp).context("cannot write the stamp of the build")?;
    Ok(compiler)
}

impl Compiler {
    /// All tests, by name.
    pub(crate) fn tests(&self) -> Result<Vec<Test>> {
        let mut tests = Vec::new();
        for directory in TESTS {
            for source in c_files(&self.glibc.join(directory))? {
                match source.file_stem().and_then(|stem| stem.to_str()) {
                    Some(name) if name.starts_with("tst-") => {
                        tests.push(Test { name: name.to_owned(), source });
                    }
                    _ => {}
                }
            }
        }
        tests.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(tests)
    }

    /// Builds a test in both ways, unless an earlier run has; the first error if it cannot be
    /// built.
    pub(crate) fn build(&self, test: &Test) -> Result<Result<Builds, String>> {
        let native = self.programs.join(&test.name);
        let instrumented = self.programs.join(format!("{}.tsan", test.name));
        let log = self.programs.join(format!("{}.log", test.name));
        if let Ok(error) = fs::read_to_string(&log) {
            return Ok(Err(error));
        }
        for (program, flag) in [(&native, None), (&instrumented, Some("-fsanitize=thread"))] {
            if program.exists() {
                continue;
            }
            if let Err(error) = self.link(test, flag, program)? {
                fs::write(&log, &error).context("cannot write a log")?;
                return Ok(Err(error));
            }
        }
        Ok(Ok(Builds { native, instrumented }))
    }

    fn link(&self, test: &Test, flag: Option<&str>, program: &Path) -> Result<Result<(), String>> {
        let own_flags = self.own_flags.get(&test.name).map_or(&[][..], Vec::as_slice);
        // Under another name until it is complete.
        let part = program.with_extension("part");
        let mut gcc = self.gcc();
        gcc.args(own_flags).args(flag).arg("-o").arg(&part).arg(&test.source).arg(&self.support);
        // Libraries are searched for what stands before them.
        gcc.args(own_flags.iter().filter(|flag| flag.starts_with("-l")));
        let built = compiled(&mut gcc)?;
        if built.is_ok() {
            fs::rename(&part, program).context("cannot rename a program")?;
        }
        Ok(built)
    }

    fn build_support(&self, objects: &Path) -> Result<()> {
        eprintln!("compiling glibc's support library");
        fs::create_dir_all(objects).context("cannot make a directory for objects")?;
        let names = support_names(&self.glibc)?;
        let compiled = parallel::map(WORKERS, &names, |_, name| -> Result<Option<PathBuf>> {
            let source = self.glibc.join("support").join(name).with_extension("c");
            let object = objects.join(name).with_extension("o");
            let is_built =
                compiled(self.gcc().arg("-c").arg("-o").arg(&object).arg(source))?.is_ok();
            Ok(is_built.then_some(object))
        });
        // A few need what only glibc's build has. A test that needs them does not link.
        let built: Vec<_> = compiled.into_iter().collect::<Result<Vec<_>>>()?;
        let built: Vec<_> = built.into_iter().flatten().collect();
        ensure!(built.len() > names.len() / 2, "most of glibc's support library does not compile");
        let status = Command::new("ar").arg("rc").arg(&self.support).args(built).status();
        ensure!(status.context("cannot start ar")?.success(), "ar fails");
        Ok(())
    }

    fn gcc(&self) -> Command {
        let mut command = Command::new("gcc");
        command.args(&self.flags);
        command
    }
}

/// Runs the compiler; its first error if there is one.
fn compiled(gcc: &mut Command) -> Result<Result<(), String>> {
    let output = gcc.stdin(Stdio::null()).output().context("cannot start gcc")?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_error = |line: &&str| line.contains("error") || line.contains("undefined reference");
    Ok(Err(stderr.lines().find(is_error).unwrap_or("gcc fails").to_owned()))
}

fn version() -> Result<String> {
    let output = Command::new("gcc").arg("--version").output().context("cannot start gcc")?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

fn c_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect())
}

/// The files of the support library. The others in its directory are programs.
fn support_names(glibc: &Path) -> Result<Vec<String>> {
    let text = makefile(&glibc.join("support/Makefile"))?;
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("libsupport-routines =") {
            return Ok(names.split_whitespace().map(str::to_owned).collect());
        }
    }
    bail!("glibc's support/Makefile has no libsupport-routines")
}

/// What glibc's makefiles say about single tests.
fn own_flags(glibc: &Path) -> Result<HashMap<String, Vec<String>>> {
    let mut flags: HashMap<String, Vec<String>> = HashMap::new();
    for directory in TESTS {
        for line in makefile(&glibc.join(directory).join("Makefile"))?.lines() {
            if let Some((test, own)) = own_flags_in(line) {
                flags.entry(test.to_owned()).or_default().extend(own.map(str::to_owned));
            }
        }
    }
    Ok(flags)
}

/// The test that a line of a makefile has flags for, and the flags.
fn own_flags_in(line: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let kinds = ["CFLAGS-", "LDFLAGS-", "LDLIBS-"];
    let line = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let (test, flags) = line.split_once('=')?;
    let test = test.trim_end_matches([' ', '+', ':']);
    let test = test.strip_suffix(".c").unwrap_or(test);
    Some((test, flags.split_whitespace().filter(|flag| flag.starts_with('-'))))
}

/// A makefile with its continued lines joined.
fn makefile(path: &Path) -> Result<String> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.replace("\\\n", " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, &[&str])>) {
        let found = own_flags_in(line).map(|(test, flags)| (test, flags.collect::<Vec<_>>()));
        assert_eq!(found, expected.map(|(test, flags)| (test, flags.to_vec())));
    }

    #[test]
    fn flags_of_a_test_come_from_the_makefile() {
        check("CFLAGS-tst-cancelx2.c += -fexceptions", Some(("tst-cancelx2", &["-fexceptions"])));
        check("LDLIBS-tst-once5 = -lstdc++", Some(("tst-once5", &["-lstdc++"])));
        check("CFLAGS-tst-pt-align.c += $(stack-align-test-flags)", Some(("tst-pt-align", &[])));
        check("tests = tst-once5", None);
    }
}
