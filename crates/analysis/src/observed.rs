//! What did happen: which accesses of different threads followed each other.
//!
//! Per place, which is what is accessed as one: pairs of accesses of two threads where the
//! second depends on the first (write to read, read to write, write to write), and triples in
//! which accesses of another thread came between two of one thread with a result that no serial
//! order has. Each is kept once by its sites. They tell how much of the program's behaviour was seen.

use raddle_trace::event::{AtomicAction, Event, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::FxHashSet;

use crate::sharing::{GRANULE_BITS, Sharing};
use crate::witness::Deed;

/// An access that did happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    thread: ThreadId,
    pc: Pc,
    deed: Deed,
    /// First byte, and how many.
    addr: Addr,
    bytes: u64,
}

/// Sites and deeds, in order: what makes two sequences the same.
pub type Sites = Vec<(Deed, Pc)>;

/// See the module.
#[derive(Debug, Default)]
pub struct Observed {
    /// Pairs and triples.
    pub sequences: FxHashSet<Sites>,
    /// By the granule's number, what of it was accessed as one.
    places: Vec<Vec<(Bytes, Place)>>,
}

/// Bytes of a granule, from the first to the last.
type Bytes = (u64, u64);

#[derive(Clone, Debug, Default)]
struct Place {
    write: Option<Seen>,
    /// Reads since the last write, one per thread.
    reads: Vec<Seen>,
    threads: Vec<Track>,
}

/// What a thread has to remember of a place.
#[derive(Clone, Debug)]
struct Track {
    last: Seen,
    /// Since then, by others: the first read and the last write.
    read: Option<Seen>,
    write: Option<Seen>,
}

impl Observed {
    /// Takes the next event of a trace.
    pub fn push(&mut self, event: &Event, sharing: &Sharing) {
        let Event { thread, pc, op } = *event;
        let seen = |deed, addr, bytes| Seen { thread, pc, deed, addr, bytes };
        let seen = match op {
            Op::Read(access) => seen(Deed::Read, access.addr, access.bytes),
            Op::Write(access) => seen(Deed::Write, access.addr, access.bytes),
            Op::Free { block, bytes } => seen(Deed::Free, block, bytes),
            Op::Atomic(atomic) => {
                let deed = match atomic.action {
                    AtomicAction::Load | AtomicAction::Miss => Deed::AtomicRead,
                    _ => Deed::AtomicWrite,
                };
                seen(deed, atomic.addr, u64::from(atomic.bytes))
            }
            Op::Alloc { block, room, .. } => {
                for (_, number) in sharing.numbers(block, room) {
                    if let Some(place) = self.places.get_mut(number as usize) {
                        place.clear();
                    }
                }
                return;
            }
            _ => return,
        };
        for (granule, number) in sharing.numbers(seen.addr, seen.bytes) {
            self.at(granule, number as usize, seen);
        }
    }

    fn at(&mut self, granule: u64, number: usize, new: Seen) {
        let start = granule << GRANULE_BITS;
        let end = start + (1 << GRANULE_BITS) - 1;
        let last = new.addr.0.saturating_add(new.bytes.max(1) - 1);
        let bytes: Bytes = (new.addr.0.max(start) - start, last.min(end) - start);
        let touches = |&(from, to): &Bytes| from <= bytes.1 && bytes.0 <= to;
        if self.places.len() <= number {
            self.places.resize_with(number + 1, Vec::new);
        }
        let places = &mut self.places[number];
        // Fields that lie side by side are places of their own. What is accessed as a whole
        // for the first time takes over what is known of a part, or of more than it.
        if !places.iter().any(|(known, _)| *known == bytes) {
            let known = places.iter().find(|(known, _)| touches(known));
            let place = known.map_or(Place::default(), |(_, place)| place.clone());
            places.push((bytes, place));
        }
        for (_, place) in places.iter_mut().filter(|(known, _)| touches(known)) {
            place.push(new, |sequence| {
                self.sequences.insert(sequence.iter().map(|seen| (seen.deed, seen.pc)).collect());
            });
        }
    }
}

impl Place {
    /// Takes the next access, and tells each pair and triple that it completes.
    fn push(&mut self, new: Seen, mut found: impl FnMut(&[Seen])) {
        // Pairs.
        if let Some(write) = self.write
            && write.thread != new.thread
            && overlap(&write, &new)
            && (!new.deed.writes() || self.reads.iter().all(|read| read.thread == new.thread))
        {
            found(&[write, new]);
        }
        if new.deed.writes() {
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
            } else if new.deed.writes() {
                track.write = Some(new);
            } else {
                track.read.get_or_insert(new);
            }
        }
        if !own {
            self.threads.push(Track { last: new, read: None, write: None });
        }
        if new.deed.writes() {
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

fn overlap(one: &Seen, two: &Seen) -> bool {
    one.addr.0 < two.addr.0 + two.bytes && two.addr.0 < one.addr.0 + one.bytes
}

/// Whether no serial order has the same result.
fn breaks(one: &Seen, middle: &Seen, two: &Seen) -> bool {
    overlap(one, middle)
        && overlap(middle, two)
        && matches!(
            (one.deed.writes(), middle.deed.writes(), two.deed.writes()),
            (false, true, false) | (true, true, false) | (true, false, true) | (_, true, true)
        )
}
