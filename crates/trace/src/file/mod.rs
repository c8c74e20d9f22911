//! The trace file.
//!
//! ```text
//! file    = magic (8 bytes) version (u32) zero (u32) block*
//! block   = kind (u32) stream (u32) n_records (u32) n_bytes (u32) checksum of the body (u32)
//!           checksum of the five words before (u32)
//!           body (n_bytes)
//! kind 1  = records of one stream, packed as [`crate::codec`] says
//! kind 2  = the [`Run`](crate::run::Run) as JSON; the last one counts
//! kind 3  = the end: n_events (u64) n_records (u64); nothing follows it
//! ```
//! All numbers are little-endian; checksums are the lower half of XXH64. The blocks of a stream
//! are in chronological order; those of different streams are interleaved as they arrive. Under
//! control there is one stream, 0. In free mode each thread has its own stream with the thread's
//! number.
//!
//! **Unfinished.** A recording is written to [`unfinished`]`(path)`. The file gets its name by
//! rename only after the end block is written, so a trace with its final name is complete, and an
//! older one of that name stays intact until then. A file without an end block is readable up to
//! its last complete block, and [`Trace::complete`] says so. What its recorder still held in
//! memory, up to [`RECORDS_MAX`] records per stream, is lost.
//!
//! **Damage.** A changed byte is detected by the checksum: in a block's head when the file is
//! opened, in its body when the block is read. Everything before it can be read.
//!
//! **What counts as an event**: see [`is_event`](crate::event::is_event).

mod reader;
mod stats;
mod writer;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use reader::{Events, Records, Trace};
pub use stats::Stats;
pub(crate) use writer::replaceable;
pub use writer::{Summary, Writer};

use crate::checksum::checksum;
use crate::codec::RECORDS_MAX;

/// The version that this code writes, and the newest that it reads. Version 4 brought channels
/// and mappings ([`Kind::Send`](crate::record::Kind::Send) and so on); the layout is that of
/// version 3.
pub const VERSION: u32 = 4;
/// The oldest version that this code reads.
pub const OLDEST: u32 = 3;

const MAGIC: [u8; 8] = *b"raddle\0t";
const FILE_HEAD_BYTES: usize = 16;
const BLOCK_HEAD_BYTES: usize = 24;
const END_BYTES: usize = 16;

/// The file of a trace while it is recorded: `path` with `.unfinished` appended.
#[must_use]
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".unfinished");
    PathBuf::from(name)
}

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An I/O error.
    #[error("cannot write the trace {}: {source}; give it another place or make room", path.display())]
    #[expect(missing_docs, reason = "a field is named for what it holds")]
    Io { path: PathBuf, source: io::Error },
}

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is named for what it holds")]
#[non_exhaustive]
pub enum ReadError {
    /// An I/O error.
    #[error("cannot read the trace {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is not a trace.
    #[error("{} is not a raddle trace; name a file that `raddle record` wrote", path.display())]
    NotATrace { path: PathBuf },
    /// The version is unknown to this reader.
    #[error(
        "trace has format version {found}, this raddle reads up to {known}; read it with a newer raddle"
    )]
    Version { found: u32, known: u32 },
    /// A version that was never released.
    #[error("trace has format version {found}, from before the first release; record it again")]
    Unreleased { found: u32 },
    /// The recording ended before there was anything to read.
    #[error(
        "trace ends at byte {at}, before it says what ran; was the recording killed? record it again"
    )]
    Truncated { at: u64 },
    /// The file is damaged.
    #[error("trace is damaged at byte {at}: {what}; copy or record it again")]
    Corrupt { at: u64, what: String },
}

/// Why a trace could not be written and read back.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Records = 1,
    Run = 2,
    End = 3,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockHead {
    kind: BlockKind,
    stream: u32,
    n_records: u32,
    n_bytes: u32,
    checksum: u32,
}

impl BlockHead {
    fn to_bytes(self) -> [u8; BLOCK_HEAD_BYTES] {
        let words = [self.kind as u32, self.stream, self.n_records, self.n_bytes, self.checksum];
        let mut bytes = [0; BLOCK_HEAD_BYTES];
        let (checked, seal) = bytes.split_at_mut(BLOCK_HEAD_BYTES - 4);
        for (place, word) in checked.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        seal.copy_from_slice(&checksum(checked).to_le_bytes());
        bytes
    }

    /// Parses the header, or returns what is wrong with it.
    fn from_bytes(bytes: [u8; BLOCK_HEAD_BYTES]) -> Result<Self, &'static str> {
        let mut words = [0; BLOCK_HEAD_BYTES / 4];
        for (word, place) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*place);
        }
        let [kind, stream, n_records, n_bytes, body, seal] = words;
        if !matches(seal, &bytes[..BLOCK_HEAD_BYTES - 4]) {
            return Err("a block's head does not match its checksum");
        }
        let kind = match kind {
            1 => BlockKind::Records,
            2 => BlockKind::Run,
            3 => BlockKind::End,
            _ => return Err("a block of unknown kind"),
        };
        if n_records as usize > RECORDS_MAX {
            return Err("a block with too many records");
        }
        Ok(Self { kind, stream, n_records, n_bytes, checksum: body })
    }
}

/// Whether `sum` is the checksum of `bytes`. Always true when fuzzing, since a fuzzer could not
/// guess it.
fn matches(sum: u32, bytes: &[u8]) -> bool {
    cfg!(feature = "fuzzing") || checksum(bytes) == sum
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::control::Mode;
    use crate::event::{Event, Op};
    use crate::id::{Addr, ThreadId};
    use crate::record::{Kind, Record};
    use crate::run::Run;

    fn run(ending: Option<&str>) -> Run {
        Run {
            command: vec!["./bank".to_owned(), "3".to_owned()],
            directory: "/tmp".to_owned(),
            mode: Mode::Controlled,
            policy: None,
            seed: 7,
            modules: Vec::new(),
            threads: Vec::new(),
            ending: ending.map(str::to_owned),
        }
    }

    fn directory() -> TempDir {
        tempfile::tempdir().expect("a temporary directory")
    }

    /// Writes a finished trace and opens it.
    fn written(streams: &[(u32, Vec<Record>)]) -> (Summary, Trace) {
        let directory = directory();
        let path = directory.path().join("t");
        let mut writer = Writer::create(&path).expect("a writer");
        writer.describe(&run(None)).expect("describe");
        for (stream, records) in streams {
            writer.push(*stream, records).expect("push");
        }
        let summary = writer.finish(&run(Some("exit 0"))).expect("finish");
        (summary, Trace::open(&path).expect("open"))
    }

    fn records(trace: &Trace, stream: u32) -> Vec<Record> {
        trace.records(stream).map(|record| record.expect("a record")).collect()
    }

    fn events(trace: &Trace) -> Vec<Event> {
        trace.events().map(|event| event.expect("an event")).collect()
    }

    fn read(at: u64) -> Record {
        Record::new(Kind::Read, 4, at, 0, 0x10)
    }

    fn time(at: u64) -> [Record; 2] {
        [Record::new(Kind::Time, 0, 0, 0, 0), Record::more(at)]
    }

    #[test]
    fn a_finished_trace_is_complete_and_described_by_its_last_description() {
        let (summary, trace) = written(&[(0, vec![read(8), read(16)])]);
        assert!(trace.complete());
        assert_eq!(trace.run(), &run(Some("exit 0")));
        assert_eq!((summary.events, summary.records), (2, 2));
        assert_eq!(summary.bytes, trace.bytes());
    }

    #[test]
    fn an_empty_trace_can_be_read() {
        let (summary, trace) = written(&[]);
        assert_eq!((summary.events, events(&trace)), (0, vec![]));
    }

    #[test]
    fn a_long_stream_is_many_blocks() {
        let long: Vec<_> = (0..RECORDS_MAX as u64 * 2 + 10).map(read).collect();
        let (_, trace) = written(&[(0, long.clone())]);
        assert!(records(&trace, 0) == long);
    }

    #[test]
    fn free_threads_are_merged_by_time() {
        let first = [&time(10)[..], &[read(1)], &time(30), &[read(3), read(4)]].concat();
        let second = [&time(20)[..], &[read(2)], &time(40), &[read(5)]].concat();
        let (summary, trace) = written(&[(0, first), (1, second)]);
        let seen: Vec<_> = events(&trace)
            .into_iter()
            .map(|event| match event.op {
                Op::Read(access) => (event.thread, access.addr),
                op => panic!("{op:?}"),
            })
            .collect();
        let expect = [(0, 1), (1, 2), (0, 3), (0, 4), (1, 5)];
        assert_eq!(seen, expect.map(|(thread, addr)| (ThreadId(thread), Addr(addr))));
        assert_eq!(summary.events, 5);
    }

    #[test]
    fn books_are_no_events() {
        let switch = Record::new(Kind::Switch, 1, 1, 0, 0);
        let choice = Record::new(Kind::Choice, 2, 1, 0, 0);
        let clock = Record::new(Kind::Clock, 0, 0, 0, 0);
        let stream =
            vec![read(1), switch, Record::more(1), choice, clock, Record::more(5), read(2)];
        let (summary, trace) = written(&[(0, stream)]);
        assert_eq!((summary.events, summary.records), (2, 7));
        assert_eq!(events(&trace).len(), 5);
        let stats = trace.stats().expect("stats");
        assert_eq!((stats.events, stats.threads), (2, 2));
        let kinds = [(Kind::Read, 2), (Kind::Switch, 1), (Kind::Choice, 1), (Kind::Clock, 1)];
        assert_eq!(stats.kinds, kinds);
    }

    #[test]
    fn repeats_are_events() {
        let write = Record::new(Kind::Write, 4, 1, 300, 0x10);
        let repeats = Record::new(Kind::Repeats, 0, 100_000, 0, 0);
        let (summary, trace) = written(&[(0, vec![read(1), write, repeats])]);
        let stats = trace.stats().expect("stats");
        assert_eq!((stats.events, stats.repeats), (100_302, 100_300));
        assert_eq!(summary.events, stats.events);
        assert_eq!(events(&trace)[2].op, Op::Repeats { n: 100_000 });
    }

    #[test]
    fn an_event_that_the_target_did_not_live_to_write_does_not_count() {
        let update = Record::new(Kind::AtomicUpdate, 8, 64, 5, 0x20);
        for cut in [vec![update], vec![update, Record::more(1)]] {
            let stream = [vec![read(1)], cut].concat();
            let (summary, trace) = written(&[(0, stream.clone())]);
            assert_eq!((summary.events, events(&trace).len()), (1, 1));
            // The same with the records one by one.
            let apart: Vec<_> = stream.into_iter().map(|record| (0, vec![record])).collect();
            assert_eq!(written(&apart).0.events, 1);
        }
    }

    #[test]
    fn locations_and_locks_are_told_apart_by_generation() {
        let at = |kind, operand| Record::new(kind, 1, operand, 0, 0);
        let (_, trace) = written(&[(
            0,
            vec![
                at(Kind::Alloc, 0x100),
                Record::more(32),
                at(Kind::Acquire, 0x100),
                at(Kind::Read, 0x110),
                at(Kind::Release, 0x100),
                at(Kind::Free, 0x100),
                Record::more(32),
                at(Kind::Write, 0x110),
                at(Kind::Acquire, 0x100),
                at(Kind::Acquire, 0x200),
            ],
        )]);
        let stats = trace.stats().expect("stats");
        assert_eq!((stats.locations, stats.locks, stats.complete), (2, 3, true));
    }

    #[test]
    fn an_unfinished_trace_is_readable_up_to_its_last_whole_block() {
        let directory = directory();
        let path = directory.path().join("t");
        let mut writer = Writer::create(&path).expect("a writer");
        writer.describe(&run(None)).expect("describe");
        let whole: Vec<_> = (0..RECORDS_MAX as u64).map(read).collect();
        writer.push(0, &whole).expect("push");
        writer.push(0, &[read(1)]).expect("push");
        drop(writer);
        assert!(!path.exists());
        let trace = Trace::open(&unfinished(&path)).expect("open");
        assert!(!trace.complete());
        assert_eq!(trace.run().ending, None);
        assert!(records(&trace, 0) == whole);
    }

    #[test]
    fn a_recording_that_fails_leaves_the_trace_before_it() {
        let directory = directory();
        let path = directory.path().join("t");
        let writer = Writer::create(&path).expect("a writer");
        writer.finish(&run(Some("the first"))).expect("finish");
        let mut second = Writer::create(&path).expect("a writer");
        second.push(0, &[read(1)]).expect("push");
        drop(second);
        let trace = Trace::open(&path).expect("open");
        assert!(trace.complete());
        assert_eq!(trace.run().ending.as_deref(), Some("the first"));
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let Err(err) = Writer::create(Path::new("/nowhere/t")) else { panic!("it was there") };
        assert!(err.to_string().starts_with("cannot write the trace /nowhere/t.unfinished: "));
    }

    fn opened(bytes: &[u8]) -> Result<Trace, ReadError> {
        Trace::from_bytes(bytes.to_vec(), Path::new("t"))
    }

    fn small() -> Vec<u8> {
        let directory = directory();
        let path = directory.path().join("t");
        let mut writer = Writer::create(&path).expect("a writer");
        writer.describe(&run(None)).expect("describe");
        writer.push(0, &[read(8), read(16), read(24)]).expect("push");
        writer.push(1, &[read(32)]).expect("push");
        writer.finish(&run(Some("exit 0"))).expect("finish");
        fs::read(&path).expect("read")
    }

    #[test]
    fn foreign_files_are_refused() {
        for foreign in ["", "x", "#!/bin/sh\nexec true\n", "raddle\0c, of another kind"] {
            let err = opened(foreign.as_bytes()).err();
            assert!(matches!(err, Some(ReadError::NotATrace { .. })), "{foreign:?}: {err:?}");
        }
    }

    #[test]
    fn an_unreleased_version_is_refused_by_name() {
        let mut bytes = small();
        bytes[8] = 1;
        let err = opened(&bytes).err();
        assert!(matches!(err, Some(ReadError::Unreleased { found: 1 })), "{err:?}");
    }

    #[test]
    fn a_newer_version_is_refused_by_name() {
        let mut bytes = small();
        bytes[8] = 200;
        let err = opened(&bytes).err();
        assert!(matches!(err, Some(ReadError::Version { found: 200, known: VERSION })), "{err:?}");
    }

    #[test]
    fn cut_anywhere_it_is_a_prefix_or_says_so() {
        let bytes = small();
        for len in 0..bytes.len() {
            match opened(&bytes[..len]) {
                Ok(trace) => {
                    assert!(!trace.complete(), "cut to {len} bytes");
                    assert!([0, 3, 4].contains(&events(&trace).len()), "cut to {len} bytes");
                }
                Err(ReadError::Truncated { at }) => assert_eq!(at, len as u64),
                Err(ReadError::NotATrace { .. }) => assert_eq!(len, 0),
                Err(err) => panic!("cut to {len} bytes: {err}"),
            }
        }
    }

    #[test]
    fn more_bytes_than_it_has_are_found() {
        let bytes = [small(), vec![0]].concat();
        let err = opened(&bytes).err();
        assert!(matches!(err, Some(ReadError::Corrupt { .. })), "{err:?}");
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let bytes = small();
        let is_reserved = |at: usize| (12..16).contains(&at);
        for bit in (0..bytes.len() * 8).filter(|bit| !is_reserved(bit / 8)) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let all =
                opened(&flipped).and_then(|trace| trace.events().collect::<Result<Vec<_>, _>>());
            assert!(all.is_err(), "bit {bit}");
        }
    }

    /// A stream that decodes: records with their payload.
    fn stream() -> impl Strategy<Value = Vec<Record>> {
        let one = (0..4_u8, 0..1000_u64, 0..20_u64).prop_map(|(kind, at, pc)| match kind {
            0 => vec![Record::new(Kind::AtomicLoad, 8, at, 5, pc), Record::more(at * pc)],
            1 => vec![Record::new(Kind::Switch, 1, at % 5, 0, pc), Record::more(at)],
            2 => vec![Record::new(Kind::Write, 8, at, 0, pc)],
            _ => vec![Record::new(Kind::Read, 4, at, 0, pc)],
        });
        vec(one, 0..200).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn streams_come_back(pushes in vec((0..4_u32, stream()), 0..12)) {
            let (summary, trace) = written(&pushes);
            for stream in 0..4 {
                let pushed: Vec<_> =
                    pushes.iter().filter(|push| push.0 == stream).flat_map(|push| push.1.clone()).collect();
                prop_assert_eq!(records(&trace, stream), pushed);
            }
            let stats = trace.stats().expect("stats");
            prop_assert_eq!(stats.events, summary.events);
            prop_assert_eq!(trace.n_records(), summary.records);
        }

        #[test]
        fn any_bytes_behind_a_head_give_a_trace_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
            let head = &small()[..FILE_HEAD_BYTES];
            if let Ok(trace) = opened(&[head, &bytes].concat()) {
                let _ = trace.stats();
            }
        }
    }
}
