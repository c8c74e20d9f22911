//! Histories of memory: the file in which the runtime keeps them, for `localize`.
//!
//! Each place of memory is in a [`State`], which says what has happened there as far as it
//! still matters; an access moves the place to another state. What many places have in common
//! is there once, so a run leaves little more than its different states, however long it was,
//! and a place takes four bytes.
//!
//! ```text
//! 0          Head
//! acts       [Act]       accesses that were performed
//! stints     [Stint]     what one thread did at a place before another one came
//! states     [State]
//! pairs      [Pair]      access pairs
//! patterns   [Pattern]   triples and pairs of stints
//! words      [u32]       the state of each word (4 bytes) of memory: a number, UNTOUCHED, or SPLIT
//! bytes      [u32]       the state of each byte of memory, if its word is SPLIT
//! older      [[u32; 4]]  of each word, the stints before those that its state tells
//! older_bytes            the same of each byte
//! ```
//!
//! Numbers count from [`FIRST`]. The file is sparse: nothing is there of memory that was not
//! touched. Everything the target has written survives it, however it dies.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The lower bits of an address, by which places are found. On x86-64 programs, heaps, libraries
/// and stacks lie apart in them.
pub const ADDRESS_BITS: u32 = 38;
/// The state of memory that was not touched yet.
pub const UNTOUCHED: u32 = 0;
/// In place of a word's state: its bytes have states of their own.
pub const SPLIT: u32 = 1;
/// The number of the first act, stint or state.
pub const FIRST: u32 = 2;
/// Bytes of a word.
pub const WORD: u64 = 4;
/// Stints of a place that are kept beside those in its state.
pub const OLDER: usize = 4;
/// The longest window: the stints of a state, and those beside it.
pub const WINDOW_MAX: usize = OLDER + 2;
/// Threads whose last read is remembered.
pub const READS_MAX: usize = 6;

/// Acts that there is room for.
pub const ACTS_MAX: usize = 1 << 20;
/// Stints that there is room for.
pub const STINTS_MAX: usize = 1 << 21;
/// States that there is room for; a place that would need one more starts over.
pub const STATES_MAX: usize = 1 << 21;
/// Pairs that there is room for.
pub const PAIRS_MAX: usize = 1 << 21;
/// Patterns that there is room for.
pub const PATTERNS_MAX: usize = 1 << 21;

/// The head of the file.
#[repr(C, align(64))]
pub struct Head {
    /// 1 once the runtime keeps histories, 2 if it had to stop before the end.
    pub condition: AtomicU32,
    /// How many acts there are, those with the numbers below [`FIRST`] included.
    pub n_acts: AtomicU32,
    /// The same of stints.
    pub n_stints: AtomicU32,
    /// The same of states.
    pub n_states: AtomicU32,
    /// How many pairs.
    pub n_pairs: AtomicU32,
    /// How many patterns.
    pub n_patterns: AtomicU32,
    /// Places that more than one thread touched.
    pub n_shared: AtomicU64,
    /// How often a place started over.
    pub n_cut: AtomicU64,
}

/// An access, by who performs it, where in the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Act {
    /// Where.
    pub pc: u64,
    /// Who.
    pub thread: u32,
    /// The [`crate::record::Kind`] of its record.
    pub kind: u8,
    /// 1 if it writes.
    pub writes: u8,
    /// Zero.
    pub unused: u16,
}

/// What one thread did at a place before another one came: the first access, and behind it the
/// last read and the last write, in their order. 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Stint {
    /// Numbers of acts.
    pub acts: [u32; 3],
}

/// What has happened at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct State {
    /// The stint before the last one; 0 for none.
    pub previous: u32,
    /// The last stint.
    pub current: u32,
    /// How many stints there were, up to the length of the window.
    pub n_stints: u32,
    /// The last write; 0 for none.
    pub write: u32,
    /// The last read of each thread since then, by thread; 0 behind the last one.
    pub reads: [u32; READS_MAX],
}

/// An access pair, and where it was first found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pair {
    /// Numbers of the two acts.
    pub acts: [u32; 2],
    /// The place.
    pub addr: u64,
    /// How many steps the run had taken.
    pub step: u64,
}

/// Stints that hold a pattern, and where they were first found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pattern {
    /// Numbers of two stints, or of three of which the outer ones are by one thread.
    pub stints: [u32; 3],
    /// The least window that has them.
    pub window: u32,
    /// The place.
    pub addr: u64,
    /// How many steps the run had taken.
    pub step: u64,
}

/// What a run has left. Numbers are indices.
#[cfg(feature = "std")]
#[derive(Clone, Debug, Default)]
pub struct Histories {
    /// See [`Act`].
    pub acts: Vec<Act>,
    /// See [`Stint`].
    pub stints: Vec<Stint>,
    /// See [`Pair`].
    pub pairs: Vec<Pair>,
    /// See [`Pattern`].
    pub patterns: Vec<Pattern>,
    /// What windows held at the end, the oldest stint first: each once, with a place that had it.
    pub last: Vec<(Vec<u32>, u64)>,
    /// Places that more than one thread touched.
    pub n_shared: u64,
    /// How often a place had to start over.
    pub n_cut: u64,
}

const PAGE: u64 = 4096;
const fn behind(start: u64, bytes: u64) -> u64 {
    (start + bytes).next_multiple_of(PAGE)
}

/// Offset of the acts.
pub const ACTS: u64 = PAGE;
/// Offset of the stints.
pub const STINTS: u64 = behind(ACTS, (ACTS_MAX * size_of::<Act>()) as u64);
/// Offset of the states.
pub const STATES: u64 = behind(STINTS, (STINTS_MAX * size_of::<Stint>()) as u64);
/// Offset of the pairs.
pub const PAIRS: u64 = behind(STATES, (STATES_MAX * size_of::<State>()) as u64);
/// Offset of the patterns.
pub const PATTERNS: u64 = behind(PAIRS, (PAIRS_MAX * size_of::<Pair>()) as u64);
/// Offset of the states of words.
pub const WORDS: u64 = behind(PATTERNS, (PATTERNS_MAX * size_of::<Pattern>()) as u64);
/// Offset of the states of bytes.
pub const BYTES: u64 = WORDS + (1 << ADDRESS_BITS);
/// Offset of the older stints of words.
pub const OLDER_WORDS: u64 = BYTES + (4 << ADDRESS_BITS);
/// Offset of the older stints of bytes.
pub const OLDER_BYTES: u64 = OLDER_WORDS + (4 << ADDRESS_BITS);
/// Size of the file.
pub const FILE_BYTES: u64 = OLDER_BYTES + (16 << ADDRESS_BITS);

const _: () = assert!(size_of::<Head>() <= PAGE as usize);
const _: () = assert!(size_of::<Act>() == 16 && size_of::<Stint>() == 12);
const _: () = assert!(size_of::<State>() == 40 && size_of::<Pair>() == 24);
const _: () = assert!(size_of::<Pattern>() == 32);
