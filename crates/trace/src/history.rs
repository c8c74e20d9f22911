//! Memory histories: the file in which the runtime keeps them, for `localize`.
//!
//! Each memory location has a [`State`], which describes what has happened there as far as it
//! still matters; an access moves the location to another state. Equal states are stored once, so
//! a run leaves little more than its distinct states, however long it was, and a location takes
//! four bytes.
//!
//! ```text
//! 0            Head
//! accesses     [ThreadAccess]  accesses that were performed
//! visits       [Visit]         what one thread did at a location before another arrived
//! states       [State]
//! pairs        [Pair]          access pairs
//! patterns     [Pattern]       triples and pairs of visits
//! words        [u32]           the state of each word (4 bytes) of memory: a number,
//!                              UNTOUCHED, or SPLIT
//! bytes        [u32]           the state of each byte of memory whose word is SPLIT
//! older        [[u32; 4]]      for each word, the visits before those in its state
//! older_bytes  [[u32; 4]]      the same for each byte
//! ```
//!
//! Numbers start at [`FIRST`]. The file is sparse: untouched memory takes no space. Everything
//! that the target has written survives the target, however it dies.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The lower bits of an address, by which locations are found. On x86-64, programs, heaps,
/// libraries and stacks differ in them.
pub const ADDRESS_BITS: u32 = 38;
/// The state of untouched memory.
pub const UNTOUCHED: u32 = 0;
/// Instead of a word's state: its bytes have states of their own.
pub const SPLIT: u32 = 1;
/// The number of the first access, visit or state.
pub const FIRST: u32 = 2;
/// Size of a word.
pub const WORD: u64 = 4;
/// Number of visits of a location that are kept beside its state.
pub const OLDER: usize = 4;
/// The longest window: the visits of a state and those beside it.
pub const WINDOW_MAX: usize = OLDER + 2;
/// Number of threads whose last read is remembered.
pub const READS_MAX: usize = 6;

/// Maximum number of accesses.
pub const ACCESSES_MAX: usize = 1 << 20;
/// Maximum number of visits.
pub const VISITS_MAX: usize = 1 << 21;
/// Maximum number of states; a location that would need one more starts over.
pub const STATES_MAX: usize = 1 << 21;
/// Maximum number of pairs.
pub const PAIRS_MAX: usize = 1 << 21;
/// Maximum number of patterns.
pub const PATTERNS_MAX: usize = 1 << 21;

/// The head of the file.
#[repr(C, align(64))]
pub struct Head {
    /// 1 once the runtime keeps histories, 2 if it had to stop early.
    pub condition: AtomicU32,
    /// Number of accesses, including the numbers below [`FIRST`].
    pub n_accesses: AtomicU32,
    /// Number of visits, including the numbers below [`FIRST`].
    pub n_visits: AtomicU32,
    /// Number of states, including the numbers below [`FIRST`].
    pub n_states: AtomicU32,
    /// Number of pairs.
    pub n_pairs: AtomicU32,
    /// Number of patterns.
    pub n_patterns: AtomicU32,
    /// Number of locations that more than one thread touched.
    pub n_shared: AtomicU64,
    /// How many times a location started over.
    pub n_cut: AtomicU64,
}

/// An access, by thread and code address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ThreadAccess {
    /// The code address.
    pub pc: u64,
    /// The thread.
    pub thread: u32,
    /// The [`crate::record::Kind`] of its record.
    pub kind: u8,
    /// 1 if it writes.
    pub writes: u8,
    /// Zero.
    pub unused: u16,
}

/// What one thread did at a location before another thread arrived: the first access, then the
/// last read and the last write, in order. 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Visit {
    /// Numbers of accesses.
    pub accesses: [u32; 3],
}

/// The history of a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct State {
    /// The visit before the last one; 0 for none.
    pub previous: u32,
    /// The last visit.
    pub current: u32,
    /// Number of visits, up to the length of the window.
    pub n_visits: u32,
    /// The last write; 0 for none.
    pub write: u32,
    /// The last read of each thread since then, sorted by thread; 0 after the last one.
    pub reads: [u32; READS_MAX],
}

/// An access pair, and where it was first found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pair {
    /// Numbers of the two accesses.
    pub accesses: [u32; 2],
    /// The location.
    pub addr: u64,
    /// Number of steps of the run at that time.
    pub step: u64,
}

/// Visits that contain a pattern, and where they were first found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pattern {
    /// Numbers of two visits, or of three of which the outer two are by one thread.
    pub visits: [u32; 3],
    /// The smallest window that contains them.
    pub window: u32,
    /// The location.
    pub addr: u64,
    /// Number of steps of the run at that time.
    pub step: u64,
}

/// The histories of a run. Numbers are indices.
#[cfg(feature = "std")]
#[derive(Clone, Debug, Default)]
pub struct Histories {
    /// All accesses.
    pub accesses: Vec<ThreadAccess>,
    /// All visits.
    pub visits: Vec<Visit>,
    /// Access pairs, each with its first occurrence.
    pub pairs: Vec<Pair>,
    /// Visits with a pattern, each with the first occurrence.
    pub patterns: Vec<Pattern>,
    /// Contents of the windows at the end, the oldest visit first: each once, with a location
    /// that had it.
    pub last: Vec<(Vec<u32>, u64)>,
    /// Number of locations that more than one thread touched.
    pub n_shared: u64,
    /// How many times a location had to start over.
    pub n_cut: u64,
}

const PAGE: u64 = 4096;
const fn aligned_end(start: u64, bytes: u64) -> u64 {
    (start + bytes).next_multiple_of(PAGE)
}

/// Offset of the accesses.
pub const ACCESSES: u64 = PAGE;
/// Offset of the visits.
pub const VISITS: u64 = aligned_end(ACCESSES, (ACCESSES_MAX * size_of::<ThreadAccess>()) as u64);
/// Offset of the states.
pub const STATES: u64 = aligned_end(VISITS, (VISITS_MAX * size_of::<Visit>()) as u64);
/// Offset of the pairs.
pub const PAIRS: u64 = aligned_end(STATES, (STATES_MAX * size_of::<State>()) as u64);
/// Offset of the patterns.
pub const PATTERNS: u64 = aligned_end(PAIRS, (PAIRS_MAX * size_of::<Pair>()) as u64);
/// Offset of the states of words.
pub const WORDS: u64 = aligned_end(PATTERNS, (PATTERNS_MAX * size_of::<Pattern>()) as u64);
/// Offset of the states of bytes.
pub const BYTES: u64 = WORDS + (1 << ADDRESS_BITS);
/// Offset of the older visits of words.
pub const OLDER_WORDS: u64 = BYTES + (4 << ADDRESS_BITS);
/// Offset of the older visits of bytes.
pub const OLDER_BYTES: u64 = OLDER_WORDS + (4 << ADDRESS_BITS);
/// Size of the file.
pub const FILE_BYTES: u64 = OLDER_BYTES + (16 << ADDRESS_BITS);

const _: () = assert!(size_of::<Head>() <= PAGE as usize);
const _: () = assert!(size_of::<ThreadAccess>() == 16 && size_of::<Visit>() == 12);
const _: () = assert!(size_of::<State>() == 40 && size_of::<Pair>() == 24);
const _: () = assert!(size_of::<Pattern>() == 32);
