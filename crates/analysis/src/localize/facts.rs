//! The facts of a run: what localization keeps of it.

use raddle_trace::id::{Addr, Site, ThreadId};
use serde::{Deserialize, Serialize};

use crate::witness::AccessKind;

/// An access by what identifies it across runs: its site and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SiteAccess {
    /// The code location.
    pub site: Site,
    /// What the access does.
    pub kind: AccessKind,
}

/// Whether a kind counts as a write in localization. In addition to [`AccessKind::writes`], these
/// are wake-ups, which waiting threads read, everything that changes a semaphore, and blocking
/// forever on a lock, which stands for the acquisition.
#[must_use]
pub const fn writes(kind: AccessKind) -> bool {
    kind.writes() || matches!(kind, AccessKind::Signal | AccessKind::Lower | AccessKind::Block)
}

/// A loop around an access, and the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LoopIteration {
    /// Address of the loop's first instruction.
    pub entry: u64,
    /// The activation of its function, counted per thread; distinguishes executions of the same
    /// loop.
    pub activation: u32,
    /// Number of iterations completed before, if known.
    pub iteration: Option<u32>,
}

/// An access in one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The thread that performed it.
    pub thread: ThreadId,
    /// Its position among all events of the run.
    pub seq: u64,
    /// First byte accessed.
    pub addr: Addr,
    /// Size of the access.
    pub bytes: u32,
    /// Enclosing loops in its function, innermost first.
    pub loops: Vec<LoopIteration>,
}

/// An access pair: the tail depends on the head, which another thread performed, with no access
/// in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair {
    /// The first access.
    pub head: SiteAccess,
    /// The second access.
    pub tail: SiteAccess,
}

impl Pair {
    /// The same accesses in the opposite order.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { head: self.tail, tail: self.head }
    }
}

/// A pair in one run. Different occurrences are kept, repetitions are not counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairFact {
    /// The pair.
    pub pair: Pair,
    /// Head and tail of the first occurrence, then of occurrences with different threads or
    /// loops.
    pub instances: Vec<[Point; 2]>,
}

impl PairFact {
    /// The first occurrence.
    #[must_use]
    pub fn first(&self) -> &[Point; 2] {
        &self.instances[0]
    }
}

/// A pattern: two accesses by two threads, or three by one thread, another, and the first again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pattern {
    /// The accesses in order.
    pub accesses: Vec<SiteAccess>,
}

impl Pattern {
    /// The pattern's name, such as `R1-W2-R1`.
    #[must_use]
    pub fn name(&self) -> String {
        let words: Vec<_> = self
            .accesses
            .iter()
            .zip([1, 2, 1])
            .map(|(access, role)| format!("{}{role}", access.kind.letter()))
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
    /// The callers of each access's function, innermost first.
    pub stacks: Vec<Vec<Site>>,
    /// The smallest window that contains it.
    pub window: u8,
}

/// What localization keeps of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Access pairs, sorted.
    pub pairs: Vec<PairFact>,
    /// Patterns, sorted.
    pub patterns: Vec<PatternFact>,
    /// All accesses that were performed, sorted.
    pub accesses: Vec<SiteAccess>,
    /// Number of events in the run.
    pub n_events: u64,
    /// Number of threads.
    pub n_threads: u32,
    /// Number of locations that more than one thread touched.
    pub n_shared: u64,
    /// Number of shared locations that did not fit.
    pub n_left_out: u64,
    /// Whether points are exact. Otherwise a point has the address and the step of the pattern's
    /// last access, and neither calls nor loops.
    pub is_exact: bool,
}

impl Facts {
    /// Whether these facts are sorted and complete, as comparing assumes. Facts from a file may
    /// not be.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_complete = |fact: &PatternFact| {
            matches!(fact.points.len(), 2 | 3) && fact.points.len() == fact.pattern.accesses.len()
        };
        self.pairs.is_sorted_by(|one, two| one.pair < two.pair)
            && self.pairs.iter().all(|fact| !fact.instances.is_empty())
            && self.patterns.is_sorted_by(|one, two| one.pattern < two.pattern)
            && self.patterns.iter().all(is_complete)
            && self.accesses.is_sorted_by(|one, two| one < two)
    }

    /// What is known of a pair, if the run has it.
    #[must_use]
    pub fn pair(&self, pair: Pair) -> Option<&PairFact> {
        let at = self.pairs.binary_search_by_key(&pair, |fact| fact.pair).ok()?;
        Some(&self.pairs[at])
    }

    /// Whether the run performed an access.
    #[must_use]
    pub fn has(&self, access: SiteAccess) -> bool {
        self.accesses.binary_search(&access).is_ok()
    }
}
