//! What is asked of an execution, and what came of it.

use raddle_trace::id::ThreadId;
use raddle_trace::run::Module;
use rustc_hash::FxHashMap;

use crate::failure::Failure;
use crate::origin::{Location, Origin};

/// What is to be done in an execution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// Whose accesses are noted.
    pub(crate) watches: Vec<Location>,
    /// Also reads.
    pub(crate) with_reads: bool,
    /// What is suppressed.
    pub(crate) points: Vec<Point>,
    /// Loads whose last addresses are wanted.
    pub(crate) probes: Vec<u64>,
}

/// A definition that is suppressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// What it defines.
    pub(crate) location: Location,
    /// Which definition.
    pub(crate) pick: Pick,
}

/// Which of the writes to a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// By their numbers among all writes to it in this execution, from 0 on.
    Numbers(Vec<u64>),
    /// The n-th, from 0 on, of a thread by a callback or call that returns to this address.
    Event { thread: u32, pc: u64, nth: u64 },
}

/// An access to a location that is watched.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) thread: ThreadId,
    /// The instruction.
    pub(crate) pc: u64,
    /// Where the activations around it return to, innermost first, if it is not in the
    /// program's own code.
    pub(crate) callers: Vec<u64>,
    /// What it touched; the whole word if that is not known.
    pub(crate) location: Location,
    /// Whether that is known.
    pub(crate) is_exact: bool,
    pub(crate) writes: bool,
    /// What the word that is watched held, before and after.
    pub(crate) word: u64,
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// A call or a push: it made room for something, and did not define it.
    pub(crate) is_save: bool,
}

impl Hit {
    /// What a location held in the word that is watched, before and after.
    pub(crate) fn values(&self, location: Location) -> [u64; 2] {
        let shift = location.address.saturating_sub(self.word).min(7) * 8;
        let n_bits = 8 * location.n_bytes.min(8);
        let mask = u64::MAX >> (64 - n_bits.max(1));
        [self.before, self.after].map(|word| word >> shift & mask)
    }

    /// Whether it is about this location. One that touches two words is noted for each.
    ///
    /// Debug registers watch whole words, so it may be about a neighbor in the word. If the
    /// instruction does not tell, what changed does.
    pub(crate) fn is_of(&self, location: &Location) -> bool {
        location.overlaps(self.word, 8)
            && location.overlaps(self.location.address, self.location.n_bytes)
            && (self.is_exact || !self.writes || self.is_save || self.changes(location))
    }

    /// Whether it changed bytes of a location that are in its word.
    fn changes(&self, location: &Location) -> bool {
        let changed = (self.before ^ self.after).to_le_bytes();
        (self.word..).zip(changed).any(|(byte, bits)| bits != 0 && location.overlaps(byte, 1))
    }
}

/// A definition that was suppressed.
#[derive(Clone, Debug)]
pub(crate) struct Suppressed {
    /// The number of its point.
    pub(crate) point: usize,
    pub(crate) hit: Hit,
    /// Where what it wrote came from.
    pub(crate) sources: Vec<Origin>,
    /// It was written through a pointer to another block of the heap.
    pub(crate) strays: bool,
    /// How many accesses to what is watched were noted by then.
    pub(crate) n_hits: usize,
    /// Where the activations around it return to, innermost first.
    pub(crate) callers: Vec<u64>,
}

/// What came of an execution.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) failure: Option<Failure>,
    /// How many accesses were noted when it failed: what came then was its end.
    pub(crate) n_hits_failed: Option<usize>,
    /// By thread and load, what it loaded last.
    pub(crate) probed: FxHashMap<(u32, u64), Location>,
    pub(crate) hits: Vec<Hit>,
    pub(crate) suppressed: Vec<Suppressed>,
    pub(crate) modules: Vec<Module>,
    /// Instructions that were executed one by one.
    pub(crate) n_stepped: u64,
    /// Instructions that were passed over.
    pub(crate) n_skipped: u64,
    /// How often a thread had to be stopped.
    pub(crate) n_stops: u64,
    /// What could not be done, in words.
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// What was suppressed of a point.
    pub(crate) fn suppressed_at(&self, point: usize) -> Vec<Suppressed> {
        self.suppressed.iter().filter(|suppressed| suppressed.point == point).cloned().collect()
    }

    /// Notes what could not be done, once.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: u64 = 0x1000;

    /// A write to a word that held zero, by an instruction that is not known.
    fn hit(after: u64) -> Hit {
        Hit {
            thread: ThreadId(0),
            pc: 0,
            callers: Vec::new(),
            location: Location { address: WORD, n_bytes: 8 },
            is_exact: false,
            writes: true,
            word: WORD,
            before: 0,
            after,
            is_save: false,
        }
    }

    /// Whether a write is about each of the two halves of its word.
    fn halves(hit: &Hit) -> [bool; 2] {
        [WORD, WORD + 4].map(|address| hit.is_of(&Location { address, n_bytes: 4 }))
    }

    #[test]
    fn an_unknown_write_is_about_what_it_changed() {
        assert_eq!(halves(&hit(1)), [true, false]);
        assert_eq!(halves(&hit(1 << 63)), [false, true]);
        assert_eq!(halves(&hit(1 << 31 | 1 << 32)), [true, true]);
    }

    #[test]
    fn a_known_write_is_about_what_it_touched() {
        let location = Location { address: WORD + 2, n_bytes: 2 };
        assert_eq!(halves(&Hit { location, is_exact: true, ..hit(0) }), [true, false]);
        let location = Location { address: WORD - 4, n_bytes: 12 };
        assert_eq!(halves(&Hit { location, is_exact: true, ..hit(1) }), [true, true]);
    }

    #[test]
    fn an_unknown_read_is_about_the_whole_word() {
        assert_eq!(halves(&Hit { writes: false, ..hit(0) }), [true, true]);
    }
}
