//! Columns: strings of bytes, compressed where that pays.

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

/// `put` and `get` move whole words and then count only the bytes that are meant.
const WORD: usize = 8;

impl Column {
    /// Appends the lower `n` bytes of a word.
    #[inline]
    pub(super) fn put(&mut self, word: u64, n: usize) {
        if self.len + WORD > self.bytes.len() {
            self.grow();
        }
        self.bytes[self.len..self.len + WORD].copy_from_slice(&word.to_le_bytes());
        self.len += n;
    }

    /// Appends a number, seven bits to the byte, lowest first.
    pub(super) fn put_varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.put(number & 0x7f | 0x80, 1);
            number >>= 7;
        }
        self.put(number, 1);
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[cold]
    fn grow(&mut self) {
        self.bytes.resize((self.bytes.len() * 2).max(4096), 0);
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Compresses columns. One serves any number of packers, since it keeps nothing between
/// columns but its memory.
pub struct Press {
    // None if zstd could not be set up, for want of memory: then nothing is compressed.
    zstd: Option<Compressor<'static>>,
    out: Vec<u8>,
}

/// See [`super`] for what a faster level would save and cost.
const LEVEL: i32 = 1;
/// Shorter columns are stored as they are.
const PRESSED_BYTES_MIN: usize = 64;

impl Default for Press {
    fn default() -> Self {
        Self::new()
    }
}

impl Press {
    /// A press.
    #[must_use]
    pub fn new() -> Self {
        Self { zstd: Compressor::new(LEVEL).ok(), out: Vec::new() }
    }

    /// Appends a column to `block`.
    pub(super) fn press(&mut self, column: &Column, block: &mut Vec<u8>) {
        let bytes = column.bytes();
        let stored = self.shorter(bytes).unwrap_or(bytes);
        block.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        block.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        block.extend_from_slice(stored);
    }

    /// The column compressed, if that saves a sixteenth.
    fn shorter(&mut self, bytes: &[u8]) -> Option<&[u8]> {
        if bytes.len() < PRESSED_BYTES_MIN {
            return None;
        }
        self.out.clear();
        self.out.reserve(compress_bound(bytes.len()));
        self.zstd.as_mut()?.compress_to_buffer(bytes, &mut self.out).ok()?;
        (self.out.len() < bytes.len() - bytes.len() / 16).then_some(&self.out)
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
    /// Reads the next column of `block`, which is `bytes_max` long at most, and moves on.
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

    pub(super) fn is_empty(&self) -> bool {
        self.at + WORD >= self.bytes.len()
    }

    /// The next `n` bytes, 1 to 8, as a word.
    #[inline]
    pub(super) fn get(&mut self, n: usize) -> Result<u64, UnpackError> {
        let word = self.bytes.get(self.at..self.at + WORD).and_then(|word| word.first_chunk());
        let word = u64::from_le_bytes(*word.ok_or(UnpackError::Short)?);
        self.at += n;
        Ok(word & u64::MAX >> (64 - 8 * n))
    }

    pub(super) fn get_varint(&mut self) -> Result<u64, UnpackError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.get(1)?;
            number |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(UnpackError::Column)
    }
}

fn take_u32(block: &mut &[u8]) -> Result<usize, UnpackError> {
    let (word, rest) = block.split_first_chunk().ok_or(UnpackError::Column)?;
    *block = rest;
    Ok(u32::from_le_bytes(*word) as usize)
}

/// Small for what is near zero on either side.
pub(super) fn zigzag(number: u64) -> u64 {
    number << 1 ^ (number as i64 >> 63) as u64
}

pub(super) fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}
