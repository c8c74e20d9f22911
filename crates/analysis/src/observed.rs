//! What did happen: which accesses of different threads followed each other.
//!
//! For each location, meaning bytes that are accessed as one: pairs of accesses of two threads
//! where the second depends on the first (write to read, read to write, write to write), and
//! triples in which accesses of another thread came between two of one thread and are not
//! serializable. Each is kept once by its sites. Together they measure how much of the program's
//! behavior was covered.

use raddle_trace::event::{Event, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::FxHashSet;

use crate::accessed::accessed;
use crate::sharing::{GRANULE_BITS, Sharing};
use crate::witness::AccessKind;

/// An access that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenAccess {
    thread: ThreadId,
    pc: Pc,
    kind: AccessKind,
    /// First byte and size.
    addr: Addr,
    bytes: u64,
}

/// Kinds and code addresses in order; identifies a sequence.
pub type Sites = Vec<(AccessKind, Pc)>;

/// The sequences of accesses that happened.
#[derive(Debug, Default)]
pub struct Observed {
    /// Pairs and triples.
    pub sequences: FxHashSet<Sites>,
    /// By granule number: the ranges that were accessed as one.
    places: Vec<Vec<(Bytes, Place)>>,
}

/// First and last byte of a range within a granule.
type Bytes = (u64, u64);

#[derive(Clone, Debug, Default)]
struct Place {
    write: Option<SeenAccess>,
    /// Reads since the last write, one per thread.
    reads: Vec<SeenAccess>,
    threads: Vec<Track>,
}

/// What is remembered of one thread at a location.
#[derive(Clone, Debug)]
struct Track {
    last: SeenAccess,
    /// Since then by other threads: the first read and the last write.
    read: Option<SeenAccess>,
    write: Option<SeenAccess>,
}

impl Observed {
    /// Adds the next event of a trace.
    pub fn push(&mut self, event: &Event, sharing: &Sharing) {
        let Event { thread, pc, op } = *event;
        if let Op::Alloc { block, room: bytes, .. } | Op::Map { addr: block, bytes } = op {
            for number in sharing.numbers_within(block, bytes) {
                if let Some(place) = self.places.get_mut(number as usize) {
                    place.clear();
                }
            }
            return;
        }
        let memory = accessed(&op).filter(|(kind, ..)| !kind.is_of_object());
        let Some((kind, addr, bytes)) = memory else { return };
        let seen = SeenAccess { thread, pc, kind, addr, bytes };
        for (granule, number) in sharing.numbers(seen.addr, seen.bytes) {
            self.touch(granule, number as usize, seen);
        }
    }

    fn touch(&mut self, granule: u64, number: usize, new: SeenAccess) {
        let start = granule << GRANULE_BITS;
        let end = start + (1 << GRANULE_BITS) - 1;
        let last = new.addr.0.saturating_add(new.bytes.max(1) - 1);
        let bytes: Bytes = (new.addr.0.max(start) - start, last.min(end) - start);
        let touches = |&(from, to): &Bytes| from <= bytes.1 && bytes.0 <= to;
        if self.places.len() <= number {
            self.places.resize_with(number + 1, Vec::new);
        }
        let places = &mut self.places[number];
        // Adjacent fields are locations of their own. A range that is accessed as a whole for the
        // first time inherits the history of a part, or of a larger range.
        if !places.iter().any(|(known, _)| *known == bytes) {
            let known = places.iter().find(|(known, _)| touches(known));
            let place = known.map_or(Place::default(), |(_, place)| place.clone());
            places.push((bytes, place));
        }
        for (_, place) in places.iter_mut().filter(|(known, _)| touches(known)) {
            place.push(new, |sequence| {
                self.sequences.insert(sequence.iter().map(|seen| (seen.kind, seen.pc)).collect());
            });
        }
    }
}

impl Place {
    /// Adds the next access and reports each pair and triple that it completes.
    fn push(&mut self, new: SeenAccess, mut found: impl FnMut(&[SeenAccess])) {
        // Pairs.
        if let Some(write) = self.write
            && write.thread != new.thread
            && overlap(&write, &new)
            && (!new.kind.writes() || self.reads.iter().all(|read| read.thread == new.thread))
        {
            found(&[write, new]);
        }
        if new.kind.writes() {
            let others = self.reads.iter().filter(|read| read.thread != new.thread);
            others.filter(|read| overlap(read, &new)).for_each(|read| found(&[*read, new]));
        }
        // Triples.
        let mut own = false;
        for track in &mut self.threads {
            if track.last.thread == new.thread {
                own = true;
                for middle in [track.read, track.write].into_iter().flatten() {
                    if breaks(&track.last, &middle, &new) {
                        found(&[track.last, middle, new]);
                    }
                }
                (track.last, track.read, track.write) = (new, None, None);
            } else if new.kind.writes() {
                track.write = Some(new);
            } else {
                track.read.get_or_insert(new);
            }
        }
        if !own {
            self.threads.push(Track { last: new, read: None, write: None });
        }
        if new.kind.writes() {
            self.write = Some(new);
            self.reads.clear();
        } else {
            match self.reads.iter_mut().find(|read| read.thread == new.thread) {
                Some(read) => *read = new,
                None => self.reads.push(new),
            }
        }
    }
}

fn overlap(one: &SeenAccess, two: &SeenAccess) -> bool {
    one.addr.0 < two.addr.0.saturating_add(two.bytes)
        && two.addr.0 < one.addr.0.saturating_add(one.bytes)
}

/// Whether the triple is not serializable.
fn breaks(one: &SeenAccess, middle: &SeenAccess, two: &SeenAccess) -> bool {
    overlap(one, middle)
        && overlap(middle, two)
        && matches!(
            (one.kind.writes(), middle.kind.writes(), two.kind.writes()),
            (false, true, false) | (true, true, false) | (true, false, true) | (_, true, true)
        )
}
