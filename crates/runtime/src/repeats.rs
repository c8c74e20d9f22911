//! Accesses that only repeat others.
//!
//! Between two points at which other threads could learn of it, a thread that repeats the same
//! access (kind, size, flags, address and code address) adds nothing from the third time on:
//! whatever orders the second orders the third. So the third and later ones are counted and not
//! recorded. Such a point is any record other than a plain access, entry or exit; a switch is one
//! too.
//!
//! Accesses recorded since the last point are kept in a table with one slot per hash, so an
//! access may be forgotten and recorded again, but is never omitted wrongly. The hash keeps
//! neighbors in memory neighbors in the table, which helps the cache.
//!
//! `abi::access` does the same in assembly. Both must agree, as it depends on the plan which of
//! them sees an access.
//!
//! The next recorded access says how many accesses were left out before it (`Access::repeats`
//! of an event); before any other record comes a `Kind::Repeats`; and the parent adds what was
//! counted after the last record. So every step can still be counted, by adding both. In free
//! mode, and with `raddle record --every`, each access is recorded.

use core::sync::atomic::{AtomicU64, Ordering};

use raddle_trace::record::{LOW, Record, SIZE};

/// Slots of the table: half a megabyte, which leaves room in the second-level cache. An unbounded
/// table would find hardly more: 26 % of `benches/programs/sort` instead of 25 %, 87 % of
/// `matrix` instead of 86 %.
pub(crate) const PLACES: usize = 1 << 15;

/// An access that was recorded.
#[repr(C, align(16))]
pub(crate) struct Place {
    /// The record's first word.
    head: AtomicU64,
    /// Its pc, and above it the [`STAMP`] of when it was recorded; without [`SECOND`] if it was
    /// recorded once.
    tail: AtomicU64,
}

const _: () = assert!(size_of::<Place>() == 16);

/// Recorded accesses. In `.bss`, so untouched pages cost nothing.
pub(crate) static TABLE: [Place; PLACES] =
    [const { Place { head: AtomicU64::new(0), tail: AtomicU64::new(0) } }; PLACES];

/// Bits 49 to 63: the number of the last synchronization point. Bit 48 is [`SECOND`].
pub(crate) static STAMP: AtomicU64 = AtomicU64::new(FIRST_STAMP);
/// In a stamp: recorded for the second time.
pub(crate) const SECOND: u64 = 1 << 48;
/// Not zero, which fills the empty table.
const FIRST_STAMP: u64 = SECOND | NEXT;
const NEXT: u64 = 1 << 49;

/// What is subtracted from a stamp when an access is seen for the second time: nothing, or
/// [`SECOND`] if all accesses are to be recorded.
pub(crate) static TAKEN: AtomicU64 = AtomicU64::new(0);

/// How the pc is spread over the table.
pub(crate) const SPREAD: u64 = 0x9e37_79b1;
/// The bits of a spread pc that count.
pub(crate) const SPREAD_SHIFT: u32 = 12;
/// The bits of an offset in the table.
pub(crate) const OFFSETS: usize = (PLACES - 1) * size_of::<Place>();
/// Address bits above these are added to the offset. Otherwise rows of a matrix that are a power
/// of two apart would share a few slots and cache lines; 2 % of what `benches/programs/matrix`
/// records was recorded for that reason alone.
pub(crate) const FOLD_SHIFT: u32 = 5;

/// Converts the address of an access to an offset: neighbors have neighboring slots.
pub(crate) const fn unit_shift(bytes_log2: u32) -> u32 {
    size_of::<Place>().ilog2() - bytes_log2
}

/// From now on, every access is recorded.
pub(crate) fn record_every() {
    TAKEN.store(SECOND, Ordering::Relaxed);
}

/// Whether this access only repeats others. If not, it is registered as recorded.
pub(crate) fn is_one(record: Record) -> bool {
    let pc = record.tail & LOW;
    let bytes = (record.info() & SIZE).max(1);
    let spread = pc.wrapping_mul(SPREAD) >> SPREAD_SHIFT;
    let at = record.operand() << unit_shift(bytes.ilog2());
    let offset = at.wrapping_add(at >> FOLD_SHIFT).wrapping_add(spread) as usize & OFFSETS;
    let place = &TABLE[offset / size_of::<Place>()];
    let tail = pc ^ STAMP.load(Ordering::Relaxed);
    let difference = place.head.load(Ordering::Relaxed) ^ record.head
        | place.tail.load(Ordering::Relaxed) ^ tail;
    if difference == 0 {
        return true;
    }
    let taken = if difference == SECOND { TAKEN.load(Ordering::Relaxed) } else { SECOND };
    place.head.store(record.head, Ordering::Relaxed);
    place.tail.store(tail ^ taken, Ordering::Relaxed);
    false
}

/// A synchronization point: nothing repeats what came before.
pub(crate) fn forget() {
    let stamp = STAMP.load(Ordering::Relaxed).wrapping_add(NEXT);
    if stamp & !SECOND == 0 {
        clear();
        STAMP.store(FIRST_STAMP, Ordering::Relaxed);
    } else {
        STAMP.store(stamp, Ordering::Relaxed);
    }
}

/// Clears the table and restarts the stamps.
#[cold]
fn clear() {
    for place in &TABLE {
        place.head.store(0, Ordering::Relaxed);
        place.tail.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::record::Kind;

    use super::*;

    /// One test, since the table is shared by all threads.
    #[test]
    fn an_access_repeats_what_was_recorded_twice_since_the_last_moment() {
        let read = |addr, pc| Record::new(Kind::Read, 4, addr, 0, pc);
        let write = Record::new(Kind::Write, 4, 0x7000, 0, 0x40_0010);
        let seen = |record: Record| [0; 4].map(|_| is_one(record));
        assert_eq!(seen(read(0x7000, 0x40_0010)), [false, false, true, true]);
        // Another kind, address or code address is another access.
        assert_eq!(seen(write), [false, false, true, true]);
        assert_eq!(seen(read(0x7004, 0x40_0010)), [false, false, true, true]);
        assert_eq!(seen(read(0x7000, 0x40_0020)), [false, false, true, true]);
        forget();
        assert_eq!(seen(read(0x7004, 0x40_0010)), [false, false, true, true]);
        // Stamps start over, and even then nothing old is found.
        for _ in 0..3 << 15 {
            forget();
            assert!(!is_one(read(0x7008, 0x40_0010)));
        }
        record_every();
        assert_eq!(seen(read(0x7000, 0x40_0030)), [false; 4]);
    }
}
