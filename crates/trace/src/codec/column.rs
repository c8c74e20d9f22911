//! Columns: byte strings, compressed where worthwhile.

use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use super::UnpackError;

/// A column that is being filled.
#[derive(Default)]
pub(super) struct Column {
    // invariant: `len` bytes, then room
    bytes: Vec<u8>,
    len: usize,
}

/// `put` and `get` move whole words, and then count only the bytes needed.
const WORD: usize = 8;

impl Column {
    /// Appends the lower `n` bytes of a word.
    #[inline]
    pub(super) fn put(&mut self, word: u64, n: usize) {
        self.make_room(0);
        self.bytes[self.len..self.len + WORD].copy_from_slice(&word.to_le_bytes());
        self.len += n;
    }

    /// Makes room for `n` bytes and a word.
    pub(super) fn make_room(&mut self, n: usize) {
        let n_bytes = self.len + n + WORD;
        if n_bytes > self.bytes.len() {
            self.bytes.resize(n_bytes.next_power_of_two().max(4096), 0);
        }
    }

    /// The unused room.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.len..]
    }

    /// Marks `n` bytes of the room as used.
    pub(super) fn advance(&mut self, n: usize) {
        assert!(self.len + n <= self.bytes.len(), "no more than there was room for");
        self.len += n;
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Compresses columns. One instance serves any number of packers, since it keeps only its memory
/// between columns.
pub struct ColumnCompressor {
    // None if zstd could not be set up for lack of memory: then nothing is compressed.
    zstd: Option<Compressor<'static>>,
    out: Vec<u8>,
}

/// The fastest level that still finds short patterns. See [`super`].
const LEVEL: i32 = -1;
/// Shorter columns are stored as they are.
const COMPRESSED_BYTES_MIN: usize = 64;
/// How many bytes of a longer column are tried first.
const SAMPLE_BYTES: usize = 4096;
/// A column is compressed if that makes it this many times shorter. On less regular data zstd
/// takes about 5 ns per byte, more than half of the time to pack a record.
const GAIN_MIN: usize = 8;
/// A column with more bytes per record than this is compressed if that saves a quarter, to
/// keep traces of random accesses small.
const BYTES_PER_RECORD_MAX: usize = 2;

impl Default for ColumnCompressor {
    fn default() -> Self {
        Self::new()
    }
}

impl ColumnCompressor {
    /// A compressor with memory of its own.
    #[must_use]
    pub fn new() -> Self {
        Self { zstd: Compressor::new(LEVEL).ok(), out: Vec::new() }
    }

    /// Appends a column of a block of `n_records` to `block`.
    pub(super) fn append(&mut self, column: &Column, n_records: usize, block: &mut Vec<u8>) {
        let bytes = column.bytes();
        let stored = self.shorter(bytes, n_records).unwrap_or(bytes);
        block.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        block.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        block.extend_from_slice(stored);
    }

    /// The compressed column, if worthwhile.
    fn shorter(&mut self, bytes: &[u8], n_records: usize) -> Option<&[u8]> {
        let is_heavy = bytes.len() > BYTES_PER_RECORD_MAX * n_records;
        let n_bytes_max = |n: usize| if is_heavy { n - n / 4 } else { n / GAIN_MIN };
        if bytes.len() < COMPRESSED_BYTES_MIN {
            return None;
        }
        if bytes.len() > 2 * SAMPLE_BYTES {
            let sample = &bytes[bytes.len() / 2..][..SAMPLE_BYTES];
            self.compress(sample)?;
            if self.out.len() > n_bytes_max(SAMPLE_BYTES) {
                return None;
            }
        }
        self.compress(bytes)?;
        (self.out.len() <= n_bytes_max(bytes.len())).then_some(&self.out)
    }

    fn compress(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.clear();
        self.out.reserve(compress_bound(bytes.len()));
        self.zstd.as_mut()?.compress_to_buffer(bytes, &mut self.out).ok()?;
        Some(())
    }
}

/// A column that is being read.
#[derive(Default)]
pub(super) struct Source {
    // invariant: the column, then `WORD` bytes of padding
    bytes: Vec<u8>,
    at: usize,
}

impl Source {
    /// Reads the next column of `block`, at most `bytes_max` long, and advances.
    pub(super) fn open(&mut self, block: &mut &[u8], bytes_max: usize) -> Result<(), UnpackError> {
        let n_bytes = take_u32(block)?;
        let n_stored = take_u32(block)?;
        let (stored, rest) = block.split_at_checked(n_stored).ok_or(UnpackError::Column)?;
        *block = rest;
        if n_bytes > bytes_max || n_stored > n_bytes {
            return Err(UnpackError::Column);
        }
        self.at = 0;
        self.bytes.clear();
        if n_stored == n_bytes {
            self.bytes.extend_from_slice(stored);
        } else {
            self.bytes.resize(n_bytes, 0);
            match zstd::bulk::decompress_to_buffer(stored, &mut self.bytes[..]) {
                Ok(n) if n == n_bytes => {}
                _ => return Err(UnpackError::Column),
            }
        }
        self.bytes.extend_from_slice(&[0; WORD]);
        Ok(())
    }

    /// The next `n` bytes, 0 to 8, as a word.
    #[inline]
    pub(super) fn get(&mut self, n: usize) -> Result<u64, UnpackError> {
        let word = self.bytes.get(self.at..self.at + WORD).and_then(|word| word.first_chunk());
        let word = u64::from_le_bytes(*word.ok_or(UnpackError::Short)?);
        self.at += n;
        Ok(word & !u64::MAX.checked_shl(8 * n as u32).unwrap_or(0))
    }
}

fn take_u32(block: &mut &[u8]) -> Result<usize, UnpackError> {
    let (word, rest) = block.split_first_chunk().ok_or(UnpackError::Column)?;
    *block = rest;
    Ok(u32::from_le_bytes(*word) as usize)
}

/// Maps numbers near zero, of either sign, to small numbers.
pub(super) fn zigzag(number: u64) -> u64 {
    number << 1 ^ (number as i64 >> 63) as u64
}

pub(super) fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}
