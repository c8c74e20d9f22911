//! raddle in a temporary directory, and what it says there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The exit code if nothing was found.
pub const CLEAN: i32 = 0;
/// The exit code if something was found.
pub const FOUND: i32 = 1;
/// The exit code for wrong use.
pub const MISUSE: i32 = 2;
/// The exit code if the run, or the program, cannot be judged.
pub const UNJUDGED: i32 = 125;

/// A temporary directory to run raddle in.
#[derive(Debug)]
pub struct Place {
    directory: TempDir,
}

impl Place {
    /// An empty directory.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        Self { directory: TempDir::new().expect("a temporary directory") }
    }

    /// The directory itself.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The path of a file of this directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// Writes a file, and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    /// Compiles `source`, a path that may be relative to this directory, to a program of this name.
    ///
    /// # Panics
    /// If it does not compile.
    pub fn compile(&self, compiler: &str, flags: &[&str], source: impl AsRef<Path>, program: &str) {
        let mut command = Command::new(compiler);
        command.current_dir(self.directory()).args(flags).arg("-o").arg(program);
        let status = command.arg(source.as_ref()).status().expect("a compiler");
        assert!(status.success(), "{} does not compile", source.as_ref().display());
    }

    /// raddle with these arguments, separated by blanks, with nothing to read.
    #[must_use]
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(executable());
        command.args(line.split_whitespace()).current_dir(self.directory()).stdin(Stdio::null());
        command
    }

    /// Runs raddle with these arguments, separated by blanks.
    #[must_use]
    pub fn raddle(&self, line: &str) -> Ran {
        Ran::from(&mut self.command(line))
    }

    /// Runs raddle with these arguments on a program that may be anywhere.
    #[must_use]
    pub fn raddle_on(&self, line: &str, program: &Path, arguments: &[String]) -> Ran {
        Ran::from(self.command(line).arg(program).args(arguments))
    }
}

/// The executable that cargo built for this test, or the one beside this executable.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn executable() -> PathBuf {
    if let Some(path) = std::env::var_os("CARGO_BIN_EXE_raddle") {
        return path.into();
    }
    let own = std::env::current_exe().expect("an executable");
    // Tests are in a directory below the programs.
    let mut directories = own.ancestors().skip(1).take(2).map(|directory| directory.join("raddle"));
    directories.find(|path| path.is_file()).expect(
        "no raddle beside this executable; `cargo build -p raddle` in the same profile makes it",
    )
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub struct Ran {
    /// The exit code, unless a signal killed it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl From<&mut Command> for Ran {
    fn from(command: &mut Command) -> Self {
        Self::from(command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }
}

impl Ran {
    /// It exits with this code, and did not panic.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }

    /// It prints this text and nothing else.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert_eq!(self.stdout, text, "{self:?}");
        self
    }

    /// It says these words on standard error.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "«{words}» is not in: {self:?}");
        self
    }

    /// It says nothing on standard error.
    ///
    /// # Panics
    /// If it does.
    #[track_caller]
    pub fn says_nothing(self) -> Self {
        assert_eq!(self.stderr, "");
        self
    }

    /// It exits with this code, prints nothing, and says these words in one line.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn complains(self, code: i32, words: &str) {
        let ran = self.exits(code).says(words).prints("");
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{ran:?}");
    }

    /// The JSON that it prints.
    ///
    /// # Panics
    /// If it prints none.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        self.answer().unwrap_or_else(|why| panic!("{why}"))
    }

    /// The JSON that it prints.
    ///
    /// # Errors
    /// What it says instead.
    pub fn answer(&self) -> Result<Value, String> {
        serde_json::from_str(&self.stdout).map_err(|error| format!("{error}: {self:?}"))
    }
}
