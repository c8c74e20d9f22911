//! Histories of memory, as a target has left them.
//!
//! Read from the file when the target is dead, in whatever way it died. The program may have
//! written over it, so nothing that is there is trusted to make sense.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};
use std::os::unix::fs::FileExt as _;

use raddle_trace::history::{
    ACCESSES, ACCESSES_MAX, BYTES, FILE_BYTES, Histories, OLDER, OLDER_BYTES, OLDER_WORDS, PAIRS,
    PAIRS_MAX, PATTERNS, PATTERNS_MAX, Pair, Pattern, READS_MAX, SPLIT, STATES, STATES_MAX, State,
    ThreadAccess, UNTOUCHED, VISITS, VISITS_MAX, Visit, WORD, WORDS,
};
use rustc_hash::FxHashSet;
use rustix::fs::{MemfdFlags, SeekFrom, ftruncate, memfd_create, seek};

/// How histories are to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The length of windows, from 2 to [`raddle_trace::history::WINDOW_MAX`].
    pub window: u32,
    /// A visit is one access, as in Falcon's paper.
    pub paper: bool,
}

/// The file, for one run.
pub(crate) struct HistoryFile {
    file: File,
}

impl HistoryFile {
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create("raddle-histories", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, FILE_BYTES)?;
        Ok(Self { file: file.into() })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// What the run has left; nothing if the target could not keep histories to its end.
    pub(crate) fn read(&self) -> io::Result<Option<Histories>> {
        let mut head = [0; 64];
        self.file.read_exact_at(&mut head, 0)?;
        let [condition, n_accesses, n_visits, n_states, n_pairs, n_patterns] =
            std::array::from_fn(|at| u32_at(&head, at * 4));
        if condition != 1 {
            return Ok(None);
        }
        let states = self.list(STATES, n_states, STATES_MAX, |bytes| State {
            previous: u32_at(bytes, 0),
            current: u32_at(bytes, 4),
            n_visits: u32_at(bytes, 8),
            write: u32_at(bytes, 12),
            reads: [0; READS_MAX],
        })?;
        Ok(Some(Histories {
            accesses: self.list(ACCESSES, n_accesses, ACCESSES_MAX, |bytes| ThreadAccess {
                pc: u64_at(bytes, 0),
                thread: u32_at(bytes, 8),
                kind: bytes[12],
                writes: bytes[13],
                unused: 0,
            })?,
            visits: self.list(VISITS, n_visits, VISITS_MAX, |bytes| Visit {
                accesses: std::array::from_fn(|at| u32_at(bytes, at * 4)),
            })?,
            pairs: self.list(PAIRS, n_pairs, PAIRS_MAX, |bytes| Pair {
                accesses: [u32_at(bytes, 0), u32_at(bytes, 4)],
                addr: u64_at(bytes, 8),
                step: u64_at(bytes, 16),
            })?,
            patterns: self.list(PATTERNS, n_patterns, PATTERNS_MAX, |bytes| Pattern {
                visits: std::array::from_fn(|at| u32_at(bytes, at * 4)),
                window: u32_at(bytes, 12),
                addr: u64_at(bytes, 16),
                step: u64_at(bytes, 24),
            })?,
            last: self.last(&states)?,
            n_shared: u64_at(&head, 24),
            n_cut: u64_at(&head, 32),
        }))
    }

    /// `n` values of a list.
    fn list<T>(
        &self,
        offset: u64,
        n: u32,
        most: usize,
        value: impl Fn(&[u8]) -> T,
    ) -> io::Result<Vec<T>> {
        let mut bytes = vec![0; (n as usize).min(most) * size_of::<T>()];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.chunks_exact(size_of::<T>()).map(value).collect())
    }

    /// What windows hold, each once.
    fn last(&self, states: &[State]) -> io::Result<Vec<(Vec<u32>, u64)>> {
        let mut found = Found { states, known: FxHashSet::default(), last: Vec::new() };
        let mut words = Blocks::new(&self.file);
        let mut bytes = Blocks::new(&self.file);
        let mut older = Blocks::new(&self.file);
        let mut at = WORDS;
        while let Some(start) = self.data(at).filter(|&start| start < BYTES) {
            let block = words.block(start)?;
            for (cell, number) in (start..BYTES).step_by(4).zip(block.iter().copied()) {
                let addr = cell - WORDS;
                if number == SPLIT {
                    for addr in addr..addr + WORD {
                        let number = bytes.at(BYTES + addr * 4)?;
                        found.place(number, addr, |at| older.at(OLDER_BYTES + addr * 16 + at))?;
                    }
                } else {
                    found.place(number, addr, |at| older.at(OLDER_WORDS + addr * 4 + at))?;
                }
            }
            at = start + block.len() as u64 * 4;
        }
        Ok(found.last)
    }

    /// Where there is something at or behind an offset.
    fn data(&self, offset: u64) -> Option<u64> {
        seek(self.file.as_fd(), SeekFrom::Data(offset)).ok()
    }
}

/// Windows that were found.
struct Found<'a> {
    states: &'a [State],
    known: FxHashSet<(u32, [u32; OLDER])>,
    last: Vec<(Vec<u32>, u64)>,
}

impl Found<'_> {
    fn place(
        &mut self,
        number: u32,
        addr: u64,
        mut older: impl FnMut(u64) -> io::Result<u32>,
    ) -> io::Result<()> {
        if number == UNTOUCHED {
            return Ok(());
        }
        let Some(state) = self.states.get(number as usize).filter(|state| state.n_visits > 1)
        else {
            return Ok(());
        };
        let mut beside = [0; OLDER];
        for (at, visit) in beside.iter_mut().enumerate().take(state.n_visits as usize - 2) {
            *visit = older(at as u64 * 4)?;
        }
        if self.known.insert((number, beside)) {
            let mut visits = vec![state.current, state.previous];
            visits.extend(beside.iter().take(state.n_visits as usize - 2));
            visits.reverse();
            self.last.push((visits, addr));
        }
        Ok(())
    }
}

/// Numbers of the file, a block at a time.
struct Blocks<'a> {
    file: &'a File,
    start: u64,
    numbers: Vec<u32>,
    bytes: Vec<u8>,
}

const BLOCK: u64 = 1 << 14;

impl<'a> Blocks<'a> {
    fn new(file: &'a File) -> Self {
        Self { file, start: 0, numbers: Vec::new(), bytes: vec![0; BLOCK as usize] }
    }

    /// Those from an offset on.
    fn block(&mut self, start: u64) -> io::Result<&[u32]> {
        let n = self.file.read_at(&mut self.bytes, start)?;
        self.start = start;
        self.numbers.clear();
        self.numbers.extend(self.bytes[..n].chunks_exact(4).map(|bytes| u32_at(bytes, 0)));
        Ok(&self.numbers)
    }

    /// The one at an offset.
    fn at(&mut self, offset: u64) -> io::Result<u32> {
        if offset < self.start || offset >= self.start + self.numbers.len() as u64 * 4 {
            self.block(offset & !(BLOCK - 1))?;
        }
        Ok(self.numbers.get(((offset - self.start) / 4) as usize).copied().unwrap_or(UNTOUCHED))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}
