//! Clips: runs worth keeping, as small files.
//!
//! A clip holds everything needed to reproduce a run: the program and its input, which thread ran
//! when, and the outcome. It is JSON with one schedule step per line, meant to be read, compared
//! and checked in:
//!
//! ```text
//! {
//!   "schema": "raddle/clip/1",
//!   "program": "/home/me/bank",
//!   "build_id": "5f1e…",
//!   "args": ["3"],
//!   "directory": "/home/me",
//!   "environment": { "BANK_DEBUG": "1" },
//!   "stdin": { "text": "deposit 5\n" },
//!   "policy": "rr",
//!   "seed": 42,
//!   "options": { "spurious": false, … },
//!   "judge": { "expect_exit": 0 },
//!   "modules": [ { "name": "libc.so.6", "build_id": "08…" } ],
//!   "expect": { "kind": "assert", "detail": "balance >= 0", "file": "bank.c", "line": 23 },
//!   "anomaly": null,
//!   "step_version": 2,
//!   "schedule": [
//!     "T0 12 0x8f3a00000000124c",
//!     "choose 1",
//!     "T1 all"
//!   ]
//! }
//! ```
//! Fields have this order. `stdin` is null for none, or names a `file`, or holds the bytes as
//! `text`, or as `hex` if they are not text. Steps are those of [`crate::schedule`], counted as
//! [`crate::step_version`] says. An unknown field is an error, since it would be ignored silently.
//! A new field is optional, so that older clips are read; older raddles name it when they refuse
//! a clip that has it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::allow::Allowed;
use crate::control::Policy;
use crate::expiry::Expiry;
use crate::failure::FailureKind;
use crate::file::replaceable;
use crate::schedule::Schedule;
use crate::step_version::{self, STEP_VERSION};

/// The version that this code writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// A run that can be reproduced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    /// The kind and version of the file.
    pub schema: Schema,
    /// Path of the executable.
    pub program: String,
    /// Its build-id in hexadecimal; empty if it has none.
    pub build_id: String,
    /// Arguments without the program's name.
    pub args: Vec<String>,
    /// The working directory.
    pub directory: String,
    /// The environment variables that matter; the rest of the environment is not part of the
    /// clip.
    pub environment: BTreeMap<String, String>,
    /// The standard input.
    pub stdin: Stdin,
    /// The policy after the schedule has ended.
    pub policy: Policy,
    /// Seed of choices after the schedule's end, and of randomness that the target requests.
    pub seed: u64,
    /// How to run it.
    pub options: Options,
    /// How to judge its outcome.
    pub judge: Judge,
    /// The modules that the schedule refers to.
    pub modules: Vec<Module>,
    /// The expected outcome.
    pub expect: Outcome,
    /// The finding that it demonstrates, as in the report.
    pub anomaly: Option<serde_json::Value>,
    /// Which operations count as steps; see [`Clip::step_version`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_version: Option<u32>,
    /// Which thread runs when.
    #[serde(with = "steps")]
    pub schedule: Schedule,
}

/// Identifies the file as a clip of a certain version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schema;

/// A target's standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Option<StoredStdin>", try_from = "Option<StoredStdin>")]
pub enum Stdin {
    /// Nothing.
    #[default]
    Empty,
    /// The contents of a file.
    File(String),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// How to run a clip; see the fields of the same names in [`crate::control::Plan`].
#[expect(missing_docs, reason = "documented there")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    pub spurious: bool,
    /// In clips of versions that had no [`Options::expiry`]: deadlines may expire early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_sleepers: Option<bool>,
    /// None in clips of versions that had no such rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<KeptExpiry>,
    pub depth: u32,
    pub steps_expected: u64,
    pub steps_max: u64,
    /// None in clips of versions that had no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_max: Option<u64>,
    /// Judgements that do not end the run, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Allowed>,
}

impl Options {
    /// When a deadline may expire although threads can run. Older schedules knew no limit.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        self.expiry.map_or(Expiry::ANY, Expiry::from)
    }
}

/// An [`Expiry`] in a clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptExpiry {
    /// [`Expiry::n_steps`]; none if time never jumps beside a thread that can run.
    pub steps: Option<u64>,
    /// [`Expiry::delay_ns_max`]; none if there is no limit.
    pub delay_ns_max: Option<u64>,
}

impl From<Expiry> for KeptExpiry {
    fn from(Expiry { n_steps, delay_ns_max }: Expiry) -> Self {
        let limited = |n: u64| (n < u64::MAX).then_some(n);
        Self { steps: limited(n_steps), delay_ns_max: limited(delay_ns_max) }
    }
}

impl From<KeptExpiry> for Expiry {
    fn from(KeptExpiry { steps, delay_ns_max }: KeptExpiry) -> Self {
        let number = |n: Option<u64>| n.unwrap_or(u64::MAX);
        Self { n_steps: number(steps), delay_ns_max: number(delay_ns_max) }
    }
}

/// How to judge an outcome, where the command line said so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Judge {
    /// A longer run is a hang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The exit status of a passing run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_exit: Option<i32>,
    /// A file with the output of a passing run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_stdout: Option<String>,
    /// A command that decides whether a run passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oracle: Option<String>,
    /// Its time limit, 0 for none; none for the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oracle_timeout_ms: Option<u64>,
}

/// A module that the schedule's sites refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Its file name.
    pub name: String,
    /// Its build-id in hexadecimal; empty if it has none.
    pub build_id: String,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The kind of outcome.
    pub kind: OutcomeKind,
    /// A description.
    pub detail: String,
    /// Source file, if known.
    pub file: Option<String>,
    /// Line, if known.
    pub line: Option<u32>,
}

/// The kind of an outcome, in the words of the JSON output, and «pass».
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// The run passed.
    Pass,
    /// The run failed.
    Fail(FailureKind),
}

impl OutcomeKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(kind) => kind.as_str(),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Pass).chain(FailureKind::ALL.into_iter().map(Self::Fail))
    }
}

impl Serialize for OutcomeKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for OutcomeKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        Self::all().find(|kind| kind.as_str() == word).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(|kind| format!("`{}`", kind.as_str())).collect();
            D::Error::custom(format!("unknown outcome `{word}`, expected {}", known.join(", ")))
        })
    }
}

/// Why a clip could not be read or written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is named for what it holds")]
#[non_exhaustive]
pub enum ClipError {
    /// An I/O error.
    #[error("cannot access the clip {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is not a clip.
    #[error("{} is not a clip; name a file that raddle wrote as one", path.display())]
    NotAClip { path: PathBuf },
    /// The version is unknown to this reader.
    #[error("clip has version {found}, this raddle reads up to {known}; use a newer raddle")]
    Version { found: u32, known: u32 },
    /// The file is not a well-formed clip.
    #[error(
        "clip is malformed at line {line}, column {column}: {what}; correct it or make it anew"
    )]
    Malformed { line: usize, column: usize, what: String },
}

impl Clip {
    /// Which operations count as steps in its schedule.
    #[must_use]
    pub fn step_version(&self) -> u32 {
        self.step_version.unwrap_or(step_version::UNNAMED)
    }

    /// Whether the runtime counts steps as its schedule does.
    #[must_use]
    pub fn has_current_steps(&self) -> bool {
        self.step_version() == STEP_VERSION
    }

    /// Reads a clip.
    pub fn read(path: &Path) -> Result<Self, ClipError> {
        let bytes =
            fs::read(path).map_err(|source| ClipError::Io { path: path.to_owned(), source })?;
        Self::parse(&bytes, path)
    }

    /// Parses a clip; `path` is for error messages.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, ClipError> {
        let foreign = || ClipError::NotAClip { path: path.to_owned() };
        // Malformed text that names the schema is a malformed clip; other text is not a clip.
        if !bytes.windows(SCHEMA.len()).any(|part| part == SCHEMA.as_bytes()) {
            return Err(foreign());
        }
        let mark: Mark = serde_json::from_slice(bytes).map_err(malformed)?;
        let version = mark.schema.strip_prefix(SCHEMA).and_then(|version| version.parse().ok());
        match version {
            None => Err(foreign()),
            Some(found) if found > VERSION => Err(ClipError::Version { found, known: VERSION }),
            Some(_) => serde_json::from_slice(bytes).map_err(malformed),
        }
    }

    /// Writes the clip, completely or not at all.
    pub fn write(&self, path: &Path) -> Result<(), ClipError> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(format!(".{}.raddle.tmp", std::process::id()));
        let partial = PathBuf::from(partial);
        let written = replaceable(path)
            .and_then(|()| fs::write(&partial, self.to_json()))
            .and_then(|()| fs::rename(&partial, path));
        written.map_err(|source| {
            // Nobody needs the remains of a failure.
            let _ = fs::remove_file(&partial);
            ClipError::Io { path: path.to_owned(), source }
        })
    }

    /// The clip as stored in its file.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self).unwrap_or_else(|err| {
            unreachable!("all keys are strings, and memory takes all: {err}")
        });
        json.push(b'\n');
        json
    }
}

/// The schema without its version.
const SCHEMA: &str = "raddle/clip/";

/// The part that identifies a clip of any version.
#[derive(Deserialize)]
struct Mark {
    schema: String,
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{SCHEMA}{VERSION}"))
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == format!("{SCHEMA}{VERSION}") {
            Ok(Self)
        } else {
            Err(D::Error::custom(format_args!("unknown schema `{text}`")))
        }
    }
}

fn malformed(err: serde_json::Error) -> ClipError {
    let (line, column) = (err.line(), err.column());
    let mut what = err.to_string();
    if let Some(end) = what.rfind(" at line ") {
        what.truncate(end);
    }
    ClipError::Malformed { line, column, what }
}

/// Standard input as stored; null for none.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredStdin {
    File(String),
    Text(String),
    Hex(String),
}

impl From<Stdin> for Option<StoredStdin> {
    fn from(stdin: Stdin) -> Self {
        match stdin {
            Stdin::Empty => None,
            Stdin::File(path) => Some(StoredStdin::File(path)),
            Stdin::Bytes(bytes) => Some(match String::from_utf8(bytes) {
                Ok(text) => StoredStdin::Text(text),
                Err(err) => {
                    let digits = err.as_bytes().iter().map(|byte| format!("{byte:02x}"));
                    StoredStdin::Hex(digits.collect())
                }
            }),
        }
    }
}

impl TryFrom<Option<StoredStdin>> for Stdin {
    type Error = &'static str;

    fn try_from(stored: Option<StoredStdin>) -> Result<Self, Self::Error> {
        Ok(match stored {
            None => Self::Empty,
            Some(StoredStdin::File(path)) => Self::File(path),
            Some(StoredStdin::Text(text)) => Self::Bytes(text.into_bytes()),
            Some(StoredStdin::Hex(digits)) => Self::Bytes(unhex(&digits).ok_or(NOT_HEX)?),
        })
    }
}

const NOT_HEX: &str = "`hex` holds something else than pairs of hexadecimal digits";

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |&byte: &u8| char::from(byte).to_digit(16);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some((digit(high)? << 4 | digit(low)?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// A schedule as one string per step.
mod steps {
    use std::fmt;

    use serde::de::{Error, Visitor};
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::schedule::{Schedule, Step};

    pub(super) fn serialize<S: Serializer>(
        schedule: &Schedule,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(schedule.steps.iter().map(Step::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Schedule, D::Error> {
        let steps = Vec::<Text>::deserialize(deserializer)?.into_iter().map(|text| text.0);
        Ok(Schedule { steps: steps.collect() })
    }

    /// A step, parsed while the reader knows the position in the file.
    struct Text(Step);

    impl<'de> Deserialize<'de> for Text {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(TextVisitor)
        }
    }

    struct TextVisitor;

    impl Visitor<'_> for TextVisitor {
        type Value = Text;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a step")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
            text.parse().map(Text).map_err(E::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::id::{Site, ThreadId};
    use crate::schedule::Step;
    use crate::schedule::tests::any_schedule;

    fn small() -> Clip {
        Clip {
            schema: Schema,
            program: "/home/me/bank".to_owned(),
            build_id: "5f1e".to_owned(),
            args: vec!["3".to_owned()],
            directory: "/home/me".to_owned(),
            environment: BTreeMap::from([("BANK_DEBUG".to_owned(), "1".to_owned())]),
            stdin: Stdin::Bytes(b"deposit 5\n".to_vec()),
            policy: Policy::Rr,
            seed: 42,
            options: Options { expiry: Some(Expiry::ANY.into()), ..Options::default() },
            judge: Judge { expect_exit: Some(0), ..Judge::default() },
            modules: vec![Module { name: "libc.so.6".to_owned(), build_id: "08".to_owned() }],
            expect: Outcome {
                kind: OutcomeKind::Fail(FailureKind::Assert),
                detail: "balance >= 0".to_owned(),
                file: Some("bank.c".to_owned()),
                line: Some(23),
            },
            anomaly: None,
            step_version: Some(STEP_VERSION),
            schedule: Schedule {
                steps: vec![
                    Step::Run { thread: ThreadId(0), count: 12, site: Site(0x8f3a_0000_0000_124c) },
                    Step::Choose { choose: 1 },
                    Step::Run { thread: ThreadId(1), count: u64::MAX, site: Site::UNKNOWN },
                ],
            },
        }
    }

    const SMALL: &str = r#"{
  "schema": "raddle/clip/1",
  "program": "/home/me/bank",
  "build_id": "5f1e",
  "args": [
    "3"
  ],
  "directory": "/home/me",
  "environment": {
    "BANK_DEBUG": "1"
  },
  "stdin": {
    "text": "deposit 5\n"
  },
  "policy": "rr",
  "seed": 42,
  "options": {
    "spurious": false,
    "expiry": {
      "steps": 50000,
      "delay_ns_max": null
    },
    "depth": 0,
    "steps_expected": 0,
    "steps_max": 0
  },
  "judge": {
    "expect_exit": 0
  },
  "modules": [
    {
      "name": "libc.so.6",
      "build_id": "08"
    }
  ],
  "expect": {
    "kind": "assert",
    "detail": "balance >= 0",
    "file": "bank.c",
    "line": 23
  },
  "anomaly": null,
  "step_version": 2,
  "schedule": [
    "T0 12 0x8f3a00000000124c",
    "choose 1",
    "T1 all"
  ]
}
"#;

    fn parse(text: &str) -> Result<Clip, ClipError> {
        Clip::parse(text.as_bytes(), Path::new("x.clip"))
    }

    fn check_error(text: &str, expect: &str) {
        let Err(err) = parse(text) else { panic!("{text:?} was taken") };
        assert_eq!(err.to_string(), expect);
    }

    #[test]
    fn a_clip_is_readable() {
        assert_eq!(String::from_utf8(small().to_json()).as_deref(), Ok(SMALL));
        assert_eq!(parse(SMALL).expect("a clip"), small());
    }

    #[test]
    fn a_clip_comes_back_from_its_file_and_leaves_no_other() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("bank-1.clip");
        small().write(&path).expect("write");
        small().write(&path).expect("write over it");
        assert_eq!(Clip::read(&path).expect("read"), small());
        assert_eq!(directory.path().read_dir().expect("a directory").count(), 1);
    }

    #[test]
    fn bytes_that_are_no_text_are_hexadecimal() {
        let clip = Clip { stdin: Stdin::Bytes(vec![0xff, 0x01]), ..small() };
        let json = String::from_utf8(clip.to_json()).expect("text");
        assert!(json.contains(r#""hex": "ff01""#), "{json}");
        assert_eq!(parse(&json).expect("a clip"), clip);
    }

    #[test]
    fn allowed_judgements_are_words() {
        let allow = vec!["misuse".parse().expect("a word"), "double-free@f".parse().expect("one")];
        let clip = Clip { options: Options { allow, ..Options::default() }, ..small() };
        let json = String::from_utf8(clip.to_json()).expect("text");
        assert!(json.contains("\"misuse\",\n      \"double-free@f\"\n"), "{json}");
        assert_eq!(parse(&json).expect("a clip"), clip);
        let error = parse(&json.replace("misuse", "leaks")).expect_err("not a word");
        assert!(error.to_string().contains("unknown judgement `leaks`, expected use-after"));
    }

    #[test]
    fn a_clip_without_a_step_version_is_of_the_first() {
        let clip = parse(&SMALL.replace("  \"step_version\": 2,\n", "")).expect("a clip");
        assert_eq!((clip.step_version(), clip.has_current_steps()), (1, false));
        assert!(small().has_current_steps());
    }

    #[test]
    fn foreign_files_are_refused() {
        let expect = "x.clip is not a clip; name a file that raddle wrote as one";
        check_error("", expect);
        check_error("[1, 2]", expect);
        check_error(r#"{"schema": "raddle/hunt/1", "findings": []}"#, expect);
        check_error(r#"{"schema": "raddle/clip/one"}"#, expect);
    }

    #[test]
    fn a_newer_version_is_refused_by_name() {
        check_error(
            &SMALL.replace("clip/1", "clip/7"),
            "clip has version 7, this raddle reads up to 1; use a newer raddle",
        );
    }

    #[test]
    fn what_is_malformed_is_shown() {
        check_error(
            &SMALL.replace("choose 1", "chose 1"),
            "clip is malformed at line 46, column 13: `chose 1` is not a step like \
             `T1 12 0x8f3a00000000124c` or `choose 2`; correct it or make it anew",
        );
        check_error(
            &SMALL.replace("\"seed\"", "\"sed\""),
            "clip is malformed at line 16, column 7: unknown field `sed`, expected one of \
             `schema`, `program`, `build_id`, `args`, `directory`, `environment`, `stdin`, \
             `policy`, `seed`, `options`, `judge`, `modules`, `expect`, `anomaly`, \
             `step_version`, `schedule`; correct it or make it anew",
        );
        check_error(
            &SMALL[..300],
            "clip is malformed at line 19, column 5: EOF while parsing a string; \
             correct it or make it anew",
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let err = Clip::read(Path::new("/nowhere/x.clip")).expect_err("it is not there");
        assert!(err.to_string().starts_with("cannot access the clip /nowhere/x.clip: "), "{err}");
    }

    fn any_stdin() -> impl Strategy<Value = Stdin> {
        prop_oneof![
            Just(Stdin::Empty),
            any::<String>().prop_map(Stdin::File),
            vec(any::<u8>(), 0..40).prop_map(Stdin::Bytes),
            any::<String>().prop_map(|text| Stdin::Bytes(text.into_bytes())),
        ]
    }

    fn any_outcome() -> impl Strategy<Value = Outcome> {
        let kinds: Vec<_> = OutcomeKind::all().collect();
        (select(kinds), any::<String>(), any::<Option<String>>(), any::<Option<u32>>())
            .prop_map(|(kind, detail, file, line)| Outcome { kind, detail, file, line })
    }

    proptest! {
        #[test]
        fn clips_come_back(
            strings in vec(any::<String>(), 3..6),
            environment in btree_map(any::<String>(), any::<String>(), 0..4),
            stdin in any_stdin(),
            seed: u64,
            timeout_ms: Option<u64>,
            expect in any_outcome(),
            schedule in any_schedule(),
        ) {
            let clip = Clip {
                program: strings[0].clone(),
                directory: strings[1].clone(),
                args: strings[2..].to_vec(),
                environment,
                stdin,
                seed,
                judge: Judge { timeout_ms, ..Judge::default() },
                expect,
                anomaly: Some(serde_json::json!({ "kind": "race", "accesses": [seed] })),
                schedule,
                ..small()
            };
            let json = clip.to_json();
            prop_assert_eq!(Clip::parse(&json, Path::new("x")).expect("a clip"), clip);
        }
    }
}
