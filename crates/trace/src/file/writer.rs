//! Writes a trace.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::reader::Trace;
use super::{
    BLOCK_HEAD_BYTES, BlockHead, BlockKind, END_BYTES, FILE_HEAD_BYTES, MAGIC, TraceError, VERSION,
    WriteError, unfinished,
};
use crate::checksum::checksum;
use crate::codec::{ColumnCompressor, Packer, RECORDS_MAX};
use crate::event::{Batch, is_event, n_more};
use crate::record::{Kind, Record};
use crate::run::Run;

/// A trace that is being recorded.
///
/// If dropped before [`Writer::finish`], it leaves an unfinished file.
pub struct Writer {
    out: Out,
    path: PathBuf,
    streams: Vec<Stream>,
    compressor: ColumnCompressor,
    // Reused for every block: header, then body.
    block: Vec<u8>,
    n_records: u64,
    n_bytes: u64,
}

/// Where the bytes go.
enum Out {
    File(File),
    /// Up to [`SPOOL_BYTES`].
    Memory(Vec<u8>),
}

/// A larger spooled trace is moved to its file. Most runs of a hunt stay below.
const SPOOL_BYTES: usize = 4 << 20;

/// Statistics of what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Number of events, as defined by [`is_event`], including repeats.
    pub events: u64,
    /// Number of records.
    pub records: u64,
    /// Size of the file.
    pub bytes: u64,
}

struct Stream {
    number: u32,
    packer: Packer,
    // Records that begin an event, and repeats.
    n_begun: u64,
    // Payload that the last record still lacks, and whether it counts once that arrives.
    n_owed: usize,
    owed_is_event: bool,
}

impl Writer {
    /// Creates a trace that will be named `path` when it is finished.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        Self::new(Out::File(create(path)?), path)
    }

    /// Creates a trace that stays in memory as long as it is small, and is moved to `path`
    /// otherwise. [`Writer::into_trace`] returns it.
    pub fn spool(path: &Path) -> Result<Self, WriteError> {
        Self::new(Out::Memory(Vec::new()), path)
    }

    fn new(out: Out, path: &Path) -> Result<Self, WriteError> {
        let mut writer = Self {
            out,
            path: path.to_owned(),
            streams: Vec::new(),
            compressor: ColumnCompressor::new(),
            block: Vec::new(),
            n_records: 0,
            n_bytes: 0,
        };
        let mut head = [0; FILE_HEAD_BYTES];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        writer.block.extend_from_slice(&head);
        writer.write_block()?;
        Ok(writer)
    }

    /// Appends records to a stream: 0 under control, the thread's number in free mode.
    pub fn push(&mut self, stream: u32, records: &[Record]) -> Result<(), WriteError> {
        self.push_batch(stream, &Batch::new(records))
    }

    /// Like [`Writer::push`], for records that are already counted.
    pub fn push_batch(&mut self, stream: u32, batch: &Batch<'_>) -> Result<(), WriteError> {
        let index = match self.streams.iter().position(|known| known.number == stream) {
            Some(index) => index,
            None => {
                self.streams.push(Stream::new(stream));
                self.streams.len() - 1
            }
        };
        let n_begun = &mut self.streams[index].n_begun;
        *n_begun = n_begun.saturating_add(batch.n_begun).saturating_add(batch.n_repeats);
        let mut records = batch.records;
        while !records.is_empty() {
            let stream = &mut self.streams[index];
            let n = records.len().min(RECORDS_MAX - stream.packer.n_records());
            let (now, later) = records.split_at(n);
            stream.push(now);
            if stream.packer.n_records() == RECORDS_MAX {
                self.flush(index)?;
            }
            records = later;
        }
        Ok(())
    }

    /// Stores what is known about the run so far; a later description replaces this one.
    pub fn describe(&mut self, run: &Run) -> Result<(), WriteError> {
        let json = serde_json::to_vec(run).map_err(|err| self.error(err.into()))?;
        self.write(BlockKind::Run, 0, 0, &json)
    }

    /// Finishes the trace and renames it to its final name. A spooled one that is still in memory
    /// is dropped.
    pub fn finish(mut self, run: &Run) -> Result<Summary, WriteError> {
        self.close(run)
    }

    /// Finishes the trace and opens it for reading.
    pub fn into_trace(mut self, run: &Run) -> Result<Trace, TraceError> {
        self.close(run)?;
        Ok(match self.out {
            Out::File(_) => Trace::open(&self.path)?,
            Out::Memory(bytes) => Trace::from_bytes(bytes, &self.path)?,
        })
    }

    fn close(&mut self, run: &Run) -> Result<Summary, WriteError> {
        for index in 0..self.streams.len() {
            self.flush(index)?;
        }
        self.describe(run)?;
        let events = self.streams.iter().map(Stream::n_events).sum::<u64>();
        let records = self.n_records;
        let mut end = [0; END_BYTES];
        end[..8].copy_from_slice(&events.to_le_bytes());
        end[8..].copy_from_slice(&records.to_le_bytes());
        self.write(BlockKind::End, 0, 0, &end)?;
        if let Out::File(_) = self.out {
            fs::rename(unfinished(&self.path), &self.path)
                .map_err(|source| WriteError::Io { path: self.path.clone(), source })?;
        }
        Ok(Summary { events, records, bytes: self.n_bytes })
    }

    /// Discards the trace and removes the unfinished file.
    pub fn discard(self) {
        // It may already be gone, and a caller that gives up has no use for another error.
        let _ = fs::remove_file(unfinished(&self.path));
    }

    /// Writes the pending records of a stream.
    fn flush(&mut self, index: usize) -> Result<(), WriteError> {
        let stream = &mut self.streams[index];
        let n_records = stream.packer.n_records();
        if n_records == 0 {
            return Ok(());
        }
        let number = stream.number;
        self.block.clear();
        self.block.resize(BLOCK_HEAD_BYTES, 0);
        stream.packer.finish(&mut self.compressor, &mut self.block);
        self.n_records += n_records as u64;
        self.seal(BlockKind::Records, number, n_records)
    }

    fn write(
        &mut self,
        kind: BlockKind,
        stream: u32,
        n_records: usize,
        body: &[u8],
    ) -> Result<(), WriteError> {
        self.block.clear();
        self.block.resize(BLOCK_HEAD_BYTES, 0);
        self.block.extend_from_slice(body);
        self.seal(kind, stream, n_records)
    }

    /// Fills in the header of the block whose body is complete, and writes it.
    fn seal(&mut self, kind: BlockKind, stream: u32, n_records: usize) -> Result<(), WriteError> {
        let (head, body) = self.block.split_at_mut(BLOCK_HEAD_BYTES);
        let too_long = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let n_bytes = u32::try_from(body.len()).map_err(too_long);
        let n_records = n_records as u32;
        let checksum = checksum(body);
        match n_bytes {
            Ok(n_bytes) => head.copy_from_slice(
                &BlockHead { kind, stream, n_records, n_bytes, checksum }.to_bytes(),
            ),
            Err(err) => return Err(self.error(err)),
        }
        self.write_block()
    }

    fn write_block(&mut self) -> Result<(), WriteError> {
        if let Out::Memory(bytes) = &mut self.out {
            if bytes.len() + self.block.len() <= SPOOL_BYTES {
                bytes.extend_from_slice(&self.block);
                self.n_bytes += self.block.len() as u64;
                return Ok(());
            }
            let spooled = std::mem::take(bytes);
            self.out = Out::File(create(&self.path)?);
            self.write_out(&spooled)?;
        }
        let block = std::mem::take(&mut self.block);
        let written = self.write_out(&block);
        self.block = block;
        written?;
        self.n_bytes += self.block.len() as u64;
        Ok(())
    }

    fn write_out(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        match &mut self.out {
            Out::File(file) => file.write_all(bytes).map_err(|err| self.error(err)),
            Out::Memory(memory) => {
                memory.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn error(&self, source: io::Error) -> WriteError {
        WriteError::Io { path: unfinished(&self.path), source }
    }
}

/// Refuses to replace what is not a regular file: a rename over a device would take its place.
pub(crate) fn replaceable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it exists and is not a regular file"))
        }
        _ => Ok(()),
    }
}

/// Makes the file of a trace that is being recorded.
fn create(path: &Path) -> Result<File, WriteError> {
    let partial = unfinished(path);
    let io = |source| WriteError::Io { path: partial.clone(), source };
    replaceable(path).map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
    // Who still reads an unfinished file keeps it; see `mapped`.
    match fs::remove_file(&partial) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(io(err)),
        _ => {}
    }
    File::create_new(&partial).map_err(io)
}

impl Stream {
    fn new(number: u32) -> Self {
        Self { number, packer: Packer::new(), n_begun: 0, n_owed: 0, owed_is_event: false }
    }

    fn push(&mut self, records: &[Record]) {
        self.track_owed(records);
        self.packer.push(records);
    }

    /// Tracks a record whose payload may never arrive because the target is killed.
    fn track_owed(&mut self, records: &[Record]) {
        let is_more = |record: &&Record| record.kind() == Some(Kind::More);
        let n_trailing = records.iter().rev().take_while(is_more).count();
        match records.iter().rev().nth(n_trailing).and_then(|record| record.kind()) {
            Some(kind) => {
                self.n_owed = n_more(kind).saturating_sub(n_trailing);
                self.owed_is_event = is_event(kind);
            }
            None => self.n_owed = self.n_owed.saturating_sub(n_trailing),
        }
    }

    fn n_events(&self) -> u64 {
        self.n_begun - u64::from(self.n_owed > 0 && self.owed_is_event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut writer = Writer::create(&directory.path().join("t")).expect("a writer");
        writer.out = Out::File(File::options().write(true).open("/dev/full").expect("/dev/full"));
        let records: Vec<_> =
            (0..RECORDS_MAX as u64).map(|i| Record::new(Kind::Read, 1, i, 0, 0)).collect();
        let err = writer.push(0, &records).expect_err("no room");
        assert!(err.to_string().contains("No space left on device"), "{err}");
    }

    #[test]
    fn a_device_is_not_replaced() {
        let err = Writer::create(Path::new("/dev/null")).err().expect("refused");
        assert!(
            err.to_string().contains("/dev/null: it exists and is not a regular file"),
            "{err}"
        );
    }

    /// Spools so many records of one byte pattern each, and reads them back.
    fn spooled(n_records: u64) -> (bool, u64) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("t");
        let mut writer = Writer::spool(&path).expect("a writer");
        let records: Vec<_> = (0..n_records)
            .map(|i| Record::new(Kind::Read, 1, i.wrapping_mul(0x9e37_79b9) & 0xffff_ffff, 0, i))
            .collect();
        writer.push(0, &records).expect("written");
        let trace = writer.into_trace(&run()).expect("a trace");
        (path.exists(), trace.n_records())
    }

    fn run() -> Run {
        Run {
            command: vec!["t".into()],
            directory: "/".into(),
            mode: crate::control::Mode::Controlled,
            policy: None,
            seed: 0,
            modules: Vec::new(),
            threads: Vec::new(),
            ending: None,
        }
    }

    #[test]
    fn a_small_trace_stays_in_memory_and_a_large_one_does_not() {
        assert_eq!(spooled(1000), (false, 1000));
        let n_large = 2_000_000;
        assert_eq!(spooled(n_large), (true, n_large));
    }
}
