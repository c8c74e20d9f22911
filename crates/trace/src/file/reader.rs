//! Reads a trace.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

use super::{
    BLOCK_HEAD_BYTES, BlockHead, BlockKind, END_BYTES, FILE_HEAD_BYTES, MAGIC, OLDEST, ReadError,
    VERSION, matches,
};
use crate::codec::Unpacker;
use crate::event::{Decoder, Event};
use crate::id::ThreadId;
use crate::mapped;
use crate::record::Record;
use crate::run::Run;

/// A trace, open for reading.
pub struct Trace {
    bytes: Bytes,
    run: Run,
    complete: bool,
    // By stream, in the order of the file.
    blocks: BTreeMap<u32, Vec<Block>>,
}

/// Where the bytes of a trace come from.
enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The location of a block of records.
#[derive(Clone, Copy, Debug)]
struct Block {
    head: BlockHead,
    // The body's offset; invariant: the body is within the file.
    start: usize,
}

impl Trace {
    /// Opens a trace, finished or not.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let bytes =
            mapped::map(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Self::new(Bytes::Mapped(bytes), path)
    }

    /// Parses a trace; `path` is for error messages.
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self, ReadError> {
        Self::new(Bytes::Owned(bytes), path)
    }

    fn new(bytes: Bytes, path: &Path) -> Result<Self, ReadError> {
        let Outline { run, complete, blocks } = outline(&bytes, path)?;
        Ok(Self { run, complete, blocks, bytes })
    }

    /// What is known about the run apart from its events.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Whether the recording was finished. If not, the trace is a prefix.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// The size of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The streams that have records, in order.
    pub fn streams(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.keys().copied()
    }

    /// Total number of records.
    #[must_use]
    pub fn n_records(&self) -> u64 {
        self.blocks.values().flatten().map(|block| u64::from(block.head.n_records)).sum()
    }

    /// The records of a stream. The iterator ends after an error.
    pub fn records(&self, stream: u32) -> Records<'_> {
        Records {
            bytes: &self.bytes,
            blocks: self.blocks.get(&stream).map_or(&[][..], Vec::as_slice).iter(),
            unpacker: Unpacker::new(),
            at: 0,
            chunk: Vec::new(),
            next: 0,
            failed: false,
        }
    }

    /// The events in chronological order. The iterator ends after an error.
    ///
    /// In free mode the streams are merged by time stamp; an event without its own has that of
    /// the previous event of its thread. A last event whose payload the target did not live to
    /// write is omitted.
    pub fn events(&self) -> Events<'_> {
        Events::new(self)
    }
}

/// The records of a stream, in order.
pub struct Records<'a> {
    bytes: &'a [u8],
    blocks: std::slice::Iter<'a, Block>,
    unpacker: Unpacker,
    // Offset of the current block.
    at: u64,
    chunk: Vec<Record>,
    next: usize,
    // Nothing is read after an error.
    failed: bool,
}

impl Records<'_> {
    /// Stops reading.
    fn fail(&mut self) {
        self.failed = true;
        self.next = self.chunk.len();
    }

    /// Unpacks the next chunk; false if there is none.
    #[cold]
    fn refill(&mut self) -> Result<bool, ReadError> {
        self.chunk.clear();
        self.next = 0;
        if self.failed {
            return Ok(false);
        }
        loop {
            self.unpacker.fill(&mut self.chunk).map_err(|err| corrupt(self.at, err))?;
            if !self.chunk.is_empty() {
                return Ok(true);
            }
            let Some(block) = self.blocks.next() else { return Ok(false) };
            self.at = block.start as u64;
            let body = &self.bytes[block.start..][..block.head.n_bytes as usize];
            if !matches(block.head.checksum, body) {
                return Err(corrupt(self.at, "a block does not match its checksum"));
            }
            let n_records = block.head.n_records as usize;
            self.unpacker.start(body, n_records).map_err(|err| corrupt(self.at, err))?;
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.chunk.len() {
            match self.refill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(err) => {
                    self.failed = true;
                    return Some(Err(err));
                }
            }
        }
        let record = self.chunk[self.next];
        self.next += 1;
        Some(Ok(record))
    }
}

/// The events of a trace, in order.
pub struct Events<'a> {
    lanes: Vec<Lane<'a>>,
}

/// One stream of the merge.
struct Lane<'a> {
    records: Records<'a>,
    decoder: Decoder,
    // With more than one stream: the next event and its time.
    next: Option<(u64, Result<Event, ReadError>)>,
}

impl<'a> Events<'a> {
    fn new(trace: &'a Trace) -> Self {
        let mut lanes: Vec<_> = trace
            .streams()
            .map(|stream| Lane {
                records: trace.records(stream),
                decoder: Decoder::new(ThreadId(stream)),
                next: None,
            })
            .collect();
        if lanes.len() > 1 {
            lanes.iter_mut().for_each(Lane::advance);
        }
        Self { lanes }
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.lanes[..] {
            [lane] => lane.pull(),
            _ => self.merge(),
        }
    }
}

impl Events<'_> {
    fn merge(&mut self) -> Option<Result<Event, ReadError>> {
        // There are as few streams as threads, and most steps stay with one: a scan is enough.
        let lane = self
            .lanes
            .iter_mut()
            .filter(|lane| lane.next.is_some())
            .min_by_key(|lane| lane.next.as_ref().map(|(time, _)| *time))?;
        let (_, event) = lane.next.take()?;
        lane.advance();
        if event.is_err() {
            self.lanes.clear();
        }
        Some(event)
    }
}

impl Lane<'_> {
    fn advance(&mut self) {
        self.next = self.pull().map(|event| (self.decoder.time().unwrap_or(0), event));
    }

    #[inline]
    fn pull(&mut self) -> Option<Result<Event, ReadError>> {
        // Separate, so that it is inlined where events are used. Copying an event through memory
        // at each return took several times as long as unpacking its record.
        if let Some(&record) = self.records.chunk.get(self.records.next)
            && let Some(event) = self.decoder.frequent(record)
        {
            self.records.next += 1;
            return Some(Ok(event));
        }
        self.pull_any()
    }

    #[inline(never)]
    fn pull_any(&mut self) -> Option<Result<Event, ReadError>> {
        loop {
            let record = match self.records.next()? {
                Ok(record) => record,
                Err(err) => return Some(Err(err)),
            };
            match self.decoder.push(record) {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(err) => {
                    self.records.fail();
                    return Some(Err(corrupt(self.records.at, err)));
                }
            }
        }
    }
}

/// A trace without its records.
struct Outline {
    run: Run,
    complete: bool,
    blocks: BTreeMap<u32, Vec<Block>>,
}

/// Walks from block header to block header.
fn outline(bytes: &[u8], path: &Path) -> Result<Outline, ReadError> {
    let len = bytes.len() as u64;
    let foreign = || ReadError::NotATrace { path: path.to_owned() };
    let Some((head, _)) = bytes.split_first_chunk::<FILE_HEAD_BYTES>() else {
        let n = bytes.len().min(MAGIC.len());
        let started = n > 0 && bytes[..n] == MAGIC[..n];
        return Err(if started { ReadError::Truncated { at: len } } else { foreign() });
    };
    let (magic, rest) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(foreign());
    }
    let found = rest.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    if found < OLDEST {
        return Err(ReadError::Unreleased { found });
    }
    if found > VERSION {
        return Err(ReadError::Version { found, known: VERSION });
    }

    let mut blocks: BTreeMap<u32, Vec<Block>> = BTreeMap::new();
    let mut run = None;
    let mut end = None;
    let mut n_records = 0;
    let mut at = FILE_HEAD_BYTES;
    // A header or body that extends beyond the end of the file was being written when the
    // recording ended.
    while let Some(head) = bytes[at..].first_chunk::<BLOCK_HEAD_BYTES>() {
        if end.is_some() {
            return Err(corrupt(at as u64, "bytes after the end"));
        }
        let head = BlockHead::from_bytes(*head).map_err(|what| corrupt(at as u64, what))?;
        let start = at + BLOCK_HEAD_BYTES;
        let Some(body) = bytes[start..].get(..head.n_bytes as usize) else {
            break;
        };
        if head.kind == BlockKind::Records {
            n_records += u64::from(head.n_records);
            blocks.entry(head.stream).or_default().push(Block { head, start });
        } else if !matches(head.checksum, body) {
            return Err(corrupt(at as u64, "a block does not match its checksum"));
        } else if head.kind == BlockKind::Run {
            run = Some(serde_json::from_slice(body).map_err(|err| corrupt(start as u64, err))?);
        } else {
            end = Some(body);
        }
        at = start + body.len();
    }
    if let Some(end) = end {
        let told: Option<&[u8; END_BYTES]> = end.try_into().ok();
        let told = told.and_then(|words| words.last_chunk()).map(|word| u64::from_le_bytes(*word));
        if told != Some(n_records) {
            return Err(corrupt(at as u64, "the end does not count the records that are there"));
        }
        if at != bytes.len() {
            return Err(corrupt(at as u64, "bytes after the end"));
        }
    }
    let run = run.ok_or(ReadError::Truncated { at: len })?;
    Ok(Outline { run, complete: end.is_some(), blocks })
}

fn corrupt(at: u64, what: impl ToString) -> ReadError {
    ReadError::Corrupt { at, what: what.to_string() }
}
