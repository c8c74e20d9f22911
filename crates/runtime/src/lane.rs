//! Appending records.
//!
//! The access path in `abi::access` does the same in assembly. A record is stored before the
//! cursor is moved; x86 keeps the order of stores, so every record before the cursor is complete
//! whenever the target dies.

use core::sync::atomic::{AtomicU64, Ordering};

use raddle_trace::control::{CHUNK_BYTES, CHUNKS, CHUNKS_HALF, LANE_BYTES, Lane};
use raddle_trace::record::{Kind, LOW, RECORD_BYTES, Record};

use crate::{repeats, shared, sys, tls};

/// Prepares lane `index` for `thread`; false if there is none.
pub(crate) fn open(index: usize, thread: u32) -> bool {
    let Some((lane, ring)) = shared::lane(index) else { return false };
    lane.ring.store(ring, Ordering::Relaxed);
    lane.limit.store(ring + CHUNK_BYTES as u64, Ordering::Relaxed);
    lane.thread.store(thread, Ordering::Relaxed);
    lane.cursor.store(ring, Ordering::Release);
    shared::control().n_lanes.fetch_max(index as u32 + 1, Ordering::AcqRel);
    true
}

/// The address of lane `index`, for [`tls::LANE`].
pub(crate) fn address(index: usize) -> u64 {
    shared::lane(index).map_or(0, |(lane, _)| core::ptr::from_ref(lane) as u64)
}

/// The running thread's lane.
fn own() -> Option<&'static Lane> {
    let lane = tls::get(tls::LANE) as *const Lane;
    // SAFETY: LANE holds nothing or the address of a lane of the control block, which stays
    // mapped.
    unsafe { lane.as_ref() }
}

/// Appends a plain access under control, unless it only repeats others.
pub(crate) fn access(record: Record) {
    let Some(lane) = own() else { return };
    if repeats::is_one(record) {
        let n = lane.repeats.load(Ordering::Relaxed) + 1;
        lane.repeats.store(n, Ordering::Relaxed);
        return;
    }
    let mut n = unrecorded(lane);
    if n > u64::from(u16::MAX) {
        tell_repeats(lane);
        n = 0;
    }
    push(lane, Record { tail: record.tail & LOW | n << 48, ..record });
    lane.repeats_recorded.store(lane.repeats.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// For the access path: appends a record of the repeats, which are too many for the next record.
pub(crate) extern "C" fn many_repeats() {
    if let Some(lane) = own() {
        tell_repeats(lane);
    }
}

/// The repeats that no record has counted yet.
fn unrecorded(lane: &Lane) -> u64 {
    lane.repeats.load(Ordering::Relaxed).wrapping_sub(lane.repeats_recorded.load(Ordering::Relaxed))
}

fn tell_repeats(lane: &Lane) {
    let n = unrecorded(lane);
    if n > 0 {
        push(lane, Record::new(Kind::Repeats, 0, n, 0, 0));
        lane.repeats_recorded.store(lane.repeats.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Appends to the running thread's lane.
pub(crate) fn append(record: Record) {
    if let Some(lane) = own() {
        push(lane, record);
    }
}

fn push(lane: &Lane, record: Record) {
    let cursor = lane.cursor.load(Ordering::Relaxed);
    // SAFETY: the cursor points into the ring, at a place that is ours until it moves.
    let [head, tail] = unsafe { &*(cursor as *const [AtomicU64; 2]) };
    head.store(record.head, Ordering::Relaxed);
    tail.store(record.tail, Ordering::Relaxed);
    let cursor = cursor + RECORD_BYTES as u64;
    lane.cursor.store(cursor, Ordering::Release);
    if cursor >= lane.limit.load(Ordering::Relaxed) {
        turn_page(lane);
    }
}

/// Appends a record other than a plain access, with its payload. Under control, later accesses
/// repeat nothing from before it.
pub(crate) fn append_all(kind: Kind, info: u8, operand: u64, extra: u16, pc: u64, more: &[u64]) {
    let Some(lane) = own() else { return };
    if shared::mode() == shared::TRACE {
        tell_repeats(lane);
        repeats::forget();
    }
    push(lane, Record::new(kind, info, operand, extra, pc));
    for &payload in more {
        push(lane, Record::more(payload));
    }
}

/// The chunk is full: publishes it and continues with the next one once that is free.
fn turn_page(lane: &Lane) {
    let ring = lane.ring.load(Ordering::Relaxed);
    let end = lane.limit.load(Ordering::Relaxed);
    let next = if end >= ring + LANE_BYTES as u64 { ring } else { end };
    let filled = lane.filled.load(Ordering::Relaxed).wrapping_add(1);
    // The parent reads a partial chunk from `filled` and the cursor together, so the cursor is
    // moved to the new chunk before that counts as begun.
    lane.cursor.store(next, Ordering::Release);
    lane.limit.store(next + CHUNK_BYTES as u64, Ordering::Relaxed);
    lane.filled.store(filled, Ordering::SeqCst);
    let mut taken = lane.taken.load(Ordering::Acquire);
    let n_full = u64::from(filled.wrapping_sub(taken));
    if n_full >= CHUNKS_HALF && lane.parent_waits.load(Ordering::SeqCst) != 0 {
        sys::futex_wake(&lane.filled, true);
    }
    if n_full < CHUNKS {
        return;
    }
    lane.target_waits.store(1, Ordering::SeqCst);
    loop {
        taken = lane.taken.load(Ordering::SeqCst);
        if u64::from(filled.wrapping_sub(taken)) < CHUNKS {
            break;
        }
        sys::futex_wait(&lane.taken, taken, Some(100_000_000), true);
    }
    lane.target_waits.store(0, Ordering::Relaxed);
}

/// For the access path, which has already stored its record.
pub(crate) extern "C" fn full() {
    if let Some(lane) = own() {
        turn_page(lane);
    }
}

/// Whether the lane at this address waits for the parent.
pub(crate) fn is_full(address: u64) -> bool {
    if address == 0 {
        return false;
    }
    // SAFETY: a lane's address, as returned by [`address`].
    let lane = unsafe { &*(address as *const Lane) };
    lane.target_waits.load(Ordering::Relaxed) != 0
}
