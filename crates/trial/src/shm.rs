//! The control block, as the parent holds it.
//!
//! The one place of this crate that handles raw memory. All that both sides write is
//! atomic ([`raddle_trace::control`]), so that a target that runs, or that runs wild, may
//! change it at any time without more than giving wrong numbers; whoever reads them here
//! expects that. Records are copied out of their ring word by word for the same reason.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use raddle_trace::control::{
    CHUNK_BYTES, CHUNKS, Control, Death, FollowStep, LANE_BYTES, Lane, Layout, MAGIC, MODULES_MAX,
    Module, THREADS_MAX, ThreadSlot, VERSION,
};
use raddle_trace::record::{RECORD_BYTES, Record};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A chunk is copied in parts that stay in the first-level cache until they are packed.
pub const CHUNK_PARTS: usize = 4;
const PART_BYTES: usize = CHUNK_BYTES / CHUNK_PARTS;

/// A control block in a memory file, mapped.
#[derive(Debug)]
pub struct Block {
    file: OwnedFd,
    // invariant: the start of a shared mapping of `layout.bytes()` bytes that lives as long as this.
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the mapping belongs to this value alone, and everything in it that is handed out
// is made of atomics.
unsafe impl Send for Block {}
// SAFETY: as for Send.
unsafe impl Sync for Block {}

impl Block {
    /// A new control block, all zero but for its magic and version.
    pub fn new(layout: Layout) -> io::Result<Self> {
        let file = memfd_create("raddle-control", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, layout.bytes() as u64)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let start =
            unsafe { mmap(std::ptr::null_mut(), layout.bytes(), protection, flags, &file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let block = Self { file, start, layout };
        block.control().magic.store(MAGIC, Ordering::Relaxed);
        block.control().version.store(VERSION, Ordering::Relaxed);
        Ok(block)
    }

    /// The descriptor that the target is to open.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Where its parts are.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The head.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.part(0, 1)[0]
    }

    /// Every thread that there may be.
    #[must_use]
    pub fn threads(&self) -> &[ThreadSlot] {
        self.part(self.layout.threads(), THREADS_MAX)
    }

    /// Every module that there may be.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        self.part(self.layout.modules(), MODULES_MAX)
    }

    /// The thread that a signal killed.
    #[must_use]
    pub fn death(&self) -> &Death {
        &self.part(self.layout.death(), 1)[0]
    }

    /// The schedule to follow.
    #[must_use]
    pub fn follow(&self) -> &[FollowStep] {
        self.part(self.layout.follow(), self.layout.n_follow)
    }

    /// The lanes.
    #[must_use]
    pub fn lanes(&self) -> &[Lane] {
        self.part(self.layout.lanes(), self.layout.n_lanes)
    }

    /// Copies a part of the full chunk of this number, one of [`CHUNK_PARTS`].
    pub fn chunk_part(&self, lane: usize, number: u32, part: usize, into: &mut Vec<Record>) {
        self.copy(lane, number, part * PART_BYTES..(part + 1) * PART_BYTES, into);
    }

    /// Copies what the full chunk of this number holds behind so many bytes.
    pub fn rest_of_chunk(&self, lane: usize, number: u32, from: usize, into: &mut Vec<Record>) {
        self.copy(lane, number, from..CHUNK_BYTES, into);
    }

    /// Copies what the target has written by now to the chunk of this number, which it is
    /// filling, behind so many bytes.
    pub fn remainder(&self, lane: usize, number: u32, from: usize, into: &mut Vec<Record>) {
        let head = &self.lanes()[lane];
        let cursor = head.cursor.load(Ordering::Acquire);
        let written = cursor.wrapping_sub(head.ring.load(Ordering::Acquire));
        // Between counting a full chunk and moving on to the next one the cursor is at the end of
        // the ring, or at the start of the new chunk.
        let bytes = written.wrapping_sub(chunk_offset(number) as u64);
        if (from as u64..=CHUNK_BYTES as u64).contains(&bytes) {
            self.copy(lane, number, from..bytes as usize, into);
        } else {
            into.clear();
        }
    }

    /// Plays the target: stores a record at an offset of a ring.
    #[cfg(test)]
    pub(crate) fn poke(&self, lane: usize, offset: usize, record: Record) {
        let start = self.layout.rings() + lane * LANE_BYTES + offset;
        let [head, tail] = &self.part::<[AtomicU64; 2]>(start, 1)[0];
        head.store(record.head, Ordering::Relaxed);
        tail.store(record.tail, Ordering::Relaxed);
    }

    fn copy(&self, lane: usize, number: u32, part: Range<usize>, into: &mut Vec<Record>) {
        let start = self.layout.rings() + lane * LANE_BYTES + chunk_offset(number) + part.start;
        let words: &[[AtomicU64; 2]] = self.part(start, part.len() / RECORD_BYTES);
        into.clear();
        into.extend(words.iter().map(|[head, tail]| Record {
            head: head.load(Ordering::Relaxed),
            tail: tail.load(Ordering::Relaxed),
        }));
    }

    /// `n` values at an offset. `T` is one of the types of atomics that the block is made of.
    fn part<T>(&self, offset: usize, n: usize) -> &[T] {
        assert!(offset + n * size_of::<T>() <= self.layout.bytes(), "a part lies in the block");
        // SAFETY: the mapping holds `layout.bytes()` bytes, and the offset lies within.
        let first = unsafe { self.start.add(offset) }.cast::<T>();
        assert!(first.is_aligned());
        // SAFETY: in bounds and aligned by the assertions; zeroed or written memory is a valid
        // atomic; being atomics, others may write while this reference lives.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), n) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: made by `mmap` in `new` with this size; no reference outlives `self`.
        let result = unsafe { munmap(self.start.as_ptr().cast(), self.layout.bytes()) };
        debug_assert!(result.is_ok(), "unmapping what was mapped");
    }
}

fn chunk_offset(number: u32) -> usize {
    (u64::from(number) % CHUNKS) as usize * CHUNK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: u64 = 0x7000_0000_0000;

    fn block() -> Block {
        Block::new(Layout { n_follow: 3, n_lanes: 2 }).expect("a memory file")
    }

    /// The remainder's length in bytes for a target that died with these values.
    fn remainder(filled: u32, cursor: u64) -> usize {
        let block = block();
        let lane = &block.lanes()[1];
        lane.ring.store(RING, Ordering::Relaxed);
        lane.cursor.store(cursor, Ordering::Relaxed);
        let mut records = vec![Record::default()];
        block.remainder(1, filled, 0, &mut records);
        records.len() * RECORD_BYTES
    }

    #[test]
    fn parts_do_not_overlap() {
        let block = block();
        for slot in block.threads() {
            slot.steps.store(1, Ordering::Relaxed);
        }
        for step in block.follow() {
            step.count.store(2, Ordering::Relaxed);
        }
        assert_eq!(block.control().magic.load(Ordering::Relaxed), MAGIC);
        assert!(block.modules().iter().all(|module| module.base.load(Ordering::Relaxed) == 0));
        let stacks = block.death().stacks.iter();
        assert!(
            stacks.flat_map(|stack| &stack.words).all(|word| word.load(Ordering::Relaxed) == 0)
        );
        assert!(block.lanes().iter().all(|lane| lane.cursor.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn the_remainder_ends_at_the_cursor() {
        assert_eq!(remainder(0, RING), 0);
        assert_eq!(remainder(0, RING + 48), 48);
        assert_eq!(remainder(17, RING + CHUNK_BYTES as u64 + 16), 16);
    }

    #[test]
    fn a_full_chunk_that_was_not_counted_is_whole() {
        assert_eq!(remainder(0, RING + CHUNK_BYTES as u64), CHUNK_BYTES);
    }

    #[test]
    fn a_cursor_that_had_not_moved_on_leaves_nothing() {
        assert_eq!(remainder(16, RING + LANE_BYTES as u64), 0);
        assert_eq!(remainder(1, RING + CHUNK_BYTES as u64), 0);
    }

    #[test]
    fn a_wild_cursor_leaves_nothing() {
        assert_eq!(remainder(0, 0), 0);
        assert_eq!(remainder(3, u64::MAX), 0);
    }
}
