//! Two accesses of each of two threads, interleaved in the order of a pattern.

use super::found::Found;
use crate::locks::LockSet;
use crate::witness::Witness;

/// The accesses of both threads, at these positions of the order.
pub(super) fn interleaved(
    places: [usize; 4],
    one: [Witness; 2],
    two: [Witness; 2],
) -> [Witness; 4] {
    let mut way = [one[0], one[1], two[0], two[1]];
    for (place, event) in places.into_iter().zip([one[0], one[1], two[0], two[1]]) {
        way[place] = event;
    }
    way
}

/// Whether no lock that a thread holds between its two events excludes the other thread's events
/// in between.
pub(super) fn apart(
    found: &mut Found<'_>,
    places: [usize; 4],
    way: &[Witness; 4],
    kept: [LockSet; 2],
) -> bool {
    let [a, b, c, d] = places;
    let mut free = |kept: LockSet, [from, to]: [usize; 2], others: [usize; 2]| {
        let mut between = others.into_iter().filter(|&other| from < other && other < to);
        between.all(|other| !found.exclude(kept, way[other].locks))
    };
    free(kept[0], [a, b], [c, d]) && free(kept[1], [c, d], [a, b])
}
