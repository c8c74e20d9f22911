//! What remains of a run.

use raddle_trace::id::{Addr, Site, ThreadId};
use serde::{Deserialize, Serialize};

use crate::witness::Deed;

/// An access, by what is the same about it in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Act {
    /// Where in the program.
    pub site: Site,
    /// What.
    pub deed: Deed,
}

/// Whether a deed counts as a write here: also a wake-up, which whoever waits reads, and whatever
/// changes the value of a semaphore; and a wait in vain, which is as good as the lock taken.
#[must_use]
pub const fn writes(deed: Deed) -> bool {
    deed.writes() || matches!(deed, Deed::Signal | Deed::Lower | Deed::Block)
}

/// A loop that an access is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lap {
    /// The loop's first instruction.
    pub entry: u64,
    /// Which activation of its function, counted per thread: loops are told apart by it.
    pub activation: u32,
    /// How often the loop was gone through before; none if that cannot be told.
    pub iteration: Option<u32>,
}

/// An access in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Who.
    pub thread: ThreadId,
    /// When: its number among all events.
    pub seq: u64,
    /// First byte.
    pub addr: Addr,
    /// How many bytes.
    pub bytes: u32,
    /// Loops around it in its function, innermost first.
    pub laps: Vec<Lap>,
}

/// An access pair: the tail depends on the head, which another thread performed, with nothing
/// in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair {
    /// The first access.
    pub head: Act,
    /// The second.
    pub tail: Act,
}

impl Pair {
    /// The same accesses the other way round.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { head: self.tail, tail: self.head }
    }
}

/// A pair in one run: how often is not counted, but how differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairFact {
    /// The pair.
    pub pair: Pair,
    /// Head and tail, the first occurrence first; then those with other threads or loops.
    pub instances: Vec<[Point; 2]>,
}

impl PairFact {
    /// The first occurrence.
    #[must_use]
    pub fn first(&self) -> &[Point; 2] {
        &self.instances[0]
    }
}

/// A pattern of two accesses by two threads, or of three by one, another, and the one again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pattern {
    /// The accesses in their order.
    pub acts: Vec<Act>,
}

impl Pattern {
    /// Such as `R1-W2-R1`.
    #[must_use]
    pub fn name(&self) -> String {
        let words: Vec<_> = self
            .acts
            .iter()
            .zip([1, 2, 1])
            .map(|(act, role)| format!("{}{role}", act.deed.letter()))
            .collect();
        words.join("-")
    }
}

/// A pattern in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternFact {
    /// The pattern.
    pub pattern: Pattern,
    /// Its first occurrence.
    pub points: Vec<Point>,
    /// Who had called the function of each access, innermost first.
    pub stacks: Vec<Vec<Site>>,
    /// The least window that it was found with.
    pub window: u8,
}

/// All that remains of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Access pairs, sorted.
    pub pairs: Vec<PairFact>,
    /// Patterns, sorted.
    pub patterns: Vec<PatternFact>,
    /// Accesses that were performed at all, sorted.
    pub acts: Vec<Act>,
    /// How many events the run had.
    pub n_events: u64,
    /// How many threads.
    pub n_threads: u32,
    /// How many places of memory more than one thread touched.
    pub n_shared: u64,
    /// How many of them were too many to be kept.
    pub n_left_out: u64,
    /// Whether each point is told as it was. If not, it has the address and the number of the
    /// step at which the last access was performed, and neither calls nor loops.
    pub is_exact: bool,
}

impl Facts {
    /// What the run tells of a pair, if it had it.
    #[must_use]
    pub fn pair(&self, pair: Pair) -> Option<&PairFact> {
        let at = self.pairs.binary_search_by_key(&pair, |fact| fact.pair).ok()?;
        Some(&self.pairs[at])
    }

    /// Whether the run performed an access.
    #[must_use]
    pub fn has(&self, act: Act) -> bool {
        self.acts.binary_search(&act).is_ok()
    }
}
