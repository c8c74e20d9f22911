//! What every command prints, for good and for bad input.
//!
//! A case is a file of `golden/`. Its lines are marked by their first character:
//!
//! ```text
//! # a remark
//! $ a command of the shell, in which `raddle` is the program under test
//! > a line on standard output
//! ! a line on standard error
//! = the exit code
//! ```
//!
//! `BLESS=1 cargo test -p raddle --test golden` rewrites what follows each command. A new case is a
//! file with commands only. `# Needs: gdb` skips a case on a machine without that program.
//!
//! A case runs in a directory of its own. The directories of test programs can be reached from
//! there by the names in [`SOURCES`]. Whatever differs from machine to machine is replaced before
//! comparing ([`Normalizer`]); numbers of runs, events and seeds are not, since they are the same
//! everywhere.
//!
//! Cases run as whoever runs the tests, perhaps as root, so they write to their own directory only:
//! raddle replaces what `-o` and `--clip` name, even a device.
//!
//! Left out, since it is not the same each time: runs that get in each other's way (see
//! `hunt_bad_input.rs`), hunts that find several failures or take long (there are limits of
//! wall-clock time in blaming), free threads but in a program in which they do not matter, progress
//! on a terminal, `replay --gdb`. What needs a machine that refuses something is left out too:
//! no `personality`, no ptrace, a full disk, files that cannot be read (root can read them).

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use regex::{Captures, Regex};
use serde_json::Value;

/// Directories below the repository, and what they are called where a case runs.
const SOURCES: [(&str, &str); 7] = [
    ("examples", "examples"),
    ("programs", "crates/raddle/tests/programs"),
    ("hunt", "crates/raddle/tests/hunt"),
    ("localize", "crates/raddle/tests/localize"),
    ("isolate", "crates/raddle/tests/isolate"),
    ("unseen", "crates/raddle/tests/unseen"),
    ("small", "crates/raddle/tests/golden/small"),
];

/// Variables that a case gets from outside; all others are not set.
const INHERITED: [&str; 5] = ["HOME", "PATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME"];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Under control a target has one processor; a few cases wait for a time-out.
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(n_threads);
    let setting = Arc::new(Setting::new());
    // Directories of cases are always the same, so that compiled programs are found again.
    let lock = fs::File::create(setting.scratch.join("lock")).expect("a file");
    lock.lock().expect("a lock");
    let cases = golden();
    let mut trials = Vec::new();
    for path in files(&cases) {
        let relative = path.strip_prefix(&cases).expect("below it").with_extension("");
        let name = relative.to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a case");
        let is_skipped = needs(&text).any(|tool| !is_installed(tool));
        let (setting, directory) = (Arc::clone(&setting), name.replace('/', "-"));
        let check = move || setting.check(&path, &text, &directory);
        trials.push(Trial::test(name, check).with_ignored_flag(is_skipped));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a directory")
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The cases, by name.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.extension() {
            _ if path.is_dir() => paths.extend(files(&path)),
            Some(extension) if extension == "txt" => paths.push(path),
            _ => {}
        }
    }
    paths.sort();
    paths
}

/// The programs that a case needs.
fn needs(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("# Needs: "))
}

fn is_installed(tool: &str) -> bool {
    let version = Command::new(tool).arg("--version").stdin(Stdio::null()).output();
    version.is_ok_and(|output| output.status.success())
}

/// What all cases have in common.
struct Setting {
    repository: PathBuf,
    /// Where cases run.
    scratch: PathBuf,
    cache: PathBuf,
    path: OsString,
    normalizer: Normalizer,
}

impl Setting {
    fn new() -> Self {
        let repository = repository();
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden");
        let cache = scratch.join("cache");
        fs::create_dir_all(&cache).expect("a directory");
        let raddle = Path::new(env!("CARGO_BIN_EXE_raddle")).parent().expect("a directory");
        let mut path = raddle.as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let normalizer = Normalizer::new(&repository, &cache);
        Self { repository, scratch, cache, path, normalizer }
    }

    /// Runs a case and compares, or writes down what came out.
    fn check(&self, file: &Path, expected: &str, directory: &str) -> Result<(), Failed> {
        let directory = self.scratch.join(directory);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir(&directory)?;
        for (name, path) in SOURCES {
            symlink(self.repository.join(path), directory.join(name))?;
        }
        let mut actual = String::new();
        let mut in_remarks = false;
        for line in expected.lines().filter(|line| line.starts_with(['#', '$'])) {
            let is_remark = line.starts_with('#');
            if !actual.is_empty() && !in_remarks {
                actual.push('\n');
            }
            in_remarks = is_remark;
            let _ = writeln!(actual, "{line}");
            if let Some(command) = line.strip_prefix("$ ") {
                let output = self.shell(command, &directory)?;
                actual += &self.normalizer.told(&output, &directory);
            }
        }
        if actual == expected {
            return Ok(());
        }
        if std::env::var_os("BLESS").is_some_and(|bless| bless == "1") {
            return Ok(fs::write(file, actual)?);
        }
        Err(difference(expected, &actual).into())
    }

    fn shell(&self, command: &str, directory: &Path) -> std::io::Result<Output> {
        let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        Command::new("sh")
            .args(["-c", command])
            .current_dir(directory)
            .env_clear()
            .envs(inherited)
            .env("PATH", &self.path)
            .env("XDG_CACHE_HOME", &self.cache)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
    }
}

/// Replaces what differs from machine to machine, and from run to run.
struct Normalizer {
    repository: String,
    cache: String,
    rules: Vec<(Regex, &'static str)>,
    decimal: Regex,
}

impl Normalizer {
    fn new(repository: &Path, cache: &Path) -> Self {
        let rules = [
            // Before addresses, since they are hexadecimal numbers too.
            (r"\b[0-9a-f]{40}\b", "[build-id]"),
            (r"\b\d+\.\d s\b", "[time] s"),
            // A site of the code keeps its offset.
            (r"\b0x(?:7f|55)[0-9a-f]{10}\b", "[address]"),
            (r"(/raddle/(?:compiled/)?)[0-9a-f]{16}/", "$1[key]/"),
            (r"/tmp/(raddle-\w+-|\.tmp)\w+", "/tmp/$1[temporary]"),
            (r"' \(\d+\) panicked", "' ([pid]) panicked"),
            // Where raddle's own library and libc have something.
            (r"(\.so[.0-9]*\+)0x[0-9a-f]+", "$1[offset]"),
            // Traces hold absolute paths.
            (r"(events in )\d+( bytes)", "$1[n]$2"),
            (r"(bytes +)\d+ \(\d+\.\d\d per event\)", "$1[n] ([n] per event)"),
            (r#"("bytes": )\d+"#, "$1[n]"),
            // Now and then the kernel stops a thread once more at the same instruction.
            (r#"("stepped": )\d+"#, "$1[n]"),
        ];
        let rule = |(pattern, by)| (Regex::new(pattern).expect("a pattern"), by);
        Self {
            repository: repository.display().to_string(),
            cache: cache.display().to_string(),
            rules: rules.into_iter().map(rule).collect(),
            decimal: Regex::new(r"\b\d{14,15}\b").expect("a pattern"),
        }
    }

    fn text(&self, text: &str, directory: &Path) -> String {
        let mut text = text
            .replace(&directory.display().to_string(), "[directory]")
            .replace(&self.cache, "[cache]")
            .replace(&self.repository, "[repository]");
        for (pattern, by) in &self.rules {
            text = pattern.replace_all(&text, *by).into_owned();
        }
        // Addresses of code, heap and stack, as JSON has them.
        let address = |number: &Captures<'_>| match number[0].parse::<u64>() {
            Ok(0x5555_0000_0000..0x8000_0000_0000) => "[address]".to_owned(),
            _ => number[0].to_owned(),
        };
        self.decimal.replace_all(&text, address).into_owned()
    }

    /// What a command has printed, and its exit code.
    fn told(&self, output: &Output, directory: &Path) -> String {
        let stdout = String::from_utf8_lossy(&output.stdout);
        let mut text = String::new();
        for (mark, stream) in
            [('>', spread(&stdout)), ('!', String::from_utf8_lossy(&output.stderr).into_owned())]
        {
            let stream = self.text(&stream, directory);
            for line in stream.lines() {
                let _ = writeln!(text, "{}", format!("{mark} {line}").trim_end());
            }
            if !stream.is_empty() && !stream.ends_with('\n') {
                let _ = writeln!(text, "{mark}\\ no newline at the end");
            }
        }
        let _ = match output.status.code() {
            Some(code) => writeln!(text, "= {code}"),
            None => writeln!(text, "= {}", output.status),
        };
        text
    }
}

/// A JSON object on one line, over many lines.
fn spread(text: &str) -> String {
    let is_object = text.starts_with('{') && text.lines().count() == 1;
    let object = is_object.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    object.map_or_else(|| text.to_owned(), |object| lines(&object, 0) + "\n")
}

/// What holds nothing but plain values has one line, such as an access.
fn lines(value: &Value, depth: usize) -> String {
    let is_plain = |value: &Value| match value {
        Value::Array(items) => items.iter().all(|item| !item.is_array() && !item.is_object()),
        Value::Object(members) => members.is_empty(),
        _ => true,
    };
    let (open, items, close): (_, Vec<_>, _) = match value {
        Value::Array(items) if !is_plain(value) => {
            ('[', items.iter().map(|item| lines(item, depth + 1)).collect(), ']')
        }
        Value::Object(members) if !members.values().all(is_plain) => {
            let member = |(name, value)| format!("\"{name}\": {}", lines(value, depth + 1));
            ('{', members.iter().map(member).collect(), '}')
        }
        _ => return value.to_string().replace("\":", "\": ").replace(",\"", ", \""),
    };
    let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
    format!("{open}\n{inner}{}\n{outer}{close}", items.join(&format!(",\n{inner}")))
}

/// The first lines that differ, and what is before them.
fn difference(expected: &str, actual: &str) -> String {
    const BEFORE: usize = 4;
    const SHOWN: usize = 8;
    let (expected, actual): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), actual.lines().collect());
    let at = expected.iter().zip(&actual).take_while(|(one, other)| one == other).count();
    let command = expected[..at].iter().rfind(|line| line.starts_with('$'));
    let mut text = format!("line {}; BLESS=1 accepts what is new\n", at + 1);
    let start = at.saturating_sub(BEFORE);
    if let Some(command) = command.filter(|command| !expected[start..at].contains(command)) {
        let _ = writeln!(text, "  {command}\n  …");
    }
    for line in &expected[start..at] {
        let _ = writeln!(text, "  {line}");
    }
    for (mark, lines) in [('-', &expected), ('+', &actual)] {
        for line in lines.iter().skip(at).take(SHOWN) {
            let _ = writeln!(text, "{mark} {line}");
        }
    }
    text
}
