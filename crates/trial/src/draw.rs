//! Drawing the records out of the target while it runs.
//!
//! One thread takes finished chunks from every lane and hands them to who wants them: the
//! writer of a trace, the recorder of the schedule. When the target is dead it takes what
//! is left, to the last record. Who merges the lanes gets what unfinished chunks hold too: a
//! thread that does little must not hold up the others.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

use raddle_trace::control::{CHUNKS, CHUNKS_HALF, Lane};
use raddle_trace::event::Batch;
use raddle_trace::file::WriteError;
use raddle_trace::record::{Kind, RECORD_BYTES, Record};
use rustix::thread::futex;

use crate::shm::{Block, CHUNK_PARTS};

/// Whoever takes the records.
pub(crate) trait RecordSink {
    /// Takes the next records of a stream: 0 under control, the thread's number if free.
    fn take(&mut self, stream: u32, batch: &Batch<'_>) -> Result<(), WriteError>;

    /// Every lane was looked at once more.
    fn round(&mut self) -> Result<(), WriteError>;
}

/// What is taken from a lane that its target is still filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Finished chunks.
    Chunks,
    /// All that is there.
    Records,
}

/// How long to sleep when nothing has come, at most: a target that has filled half of its
/// ring wakes us, so this bounds only how far behind we are with one that does little.
const NAP: Duration = Duration::from_millis(5);
/// As [`NAP`], for many lanes: none of them can be waited for alone.
const NAP_FREE: Duration = Duration::from_micros(200);

/// Takes records until `over` is set and nothing is left. Stops at the first error of the
/// sink; the target then has to be killed, as it may be waiting for room.
pub(crate) fn draw(
    block: &Block,
    pace: Pace,
    over: &AtomicBool,
    sink: &mut dyn RecordSink,
) -> Result<(), WriteError> {
    let mut drawn = vec![Drawn::default(); block.lanes().len()];
    let mut records = Vec::new();
    loop {
        let last_round = over.load(Acquire);
        let mut n_taken = 0;
        for (index, lane) in block.lanes()[..n_lanes(block)].iter().enumerate() {
            let drawn = &mut drawn[index];
            while let Some(number) = next_chunk(lane) {
                match pace {
                    Pace::Chunks => {
                        for part in 0..CHUNK_PARTS {
                            block.chunk_part(index, number, part, &mut records);
                            drawn.hand(lane, &records, sink)?;
                        }
                    }
                    Pace::Records => {
                        block.rest_of_chunk(index, number, drawn.n_bytes, &mut records);
                        drawn.hand(lane, &records, sink)?;
                    }
                }
                drawn.n_bytes = 0;
                release(lane, number.wrapping_add(1));
                n_taken += 1;
            }
            if pace == Pace::Records {
                block.remainder(index, lane.taken.load(Relaxed), drawn.n_bytes, &mut records);
                drawn.hand(lane, &records, sink)?;
                drawn.n_bytes += records.len() * RECORD_BYTES;
            }
        }
        sink.round()?;
        if last_round {
            break;
        }
        if n_taken == 0 {
            match block.lanes() {
                [lane] => nap(lane, over),
                _ => std::thread::sleep(NAP_FREE),
            }
        }
    }
    for (index, lane) in block.lanes()[..n_lanes(block)].iter().enumerate() {
        let drawn = &mut drawn[index];
        block.remainder(index, lane.taken.load(Relaxed), drawn.n_bytes, &mut records);
        // What the target repeated behind its last record. It tells its repeats before any
        // record with payload, so if there are some, then no payload is owed.
        let n_told = drawn.n_told.wrapping_add(Batch::new(&records).n_repeats);
        let n_untold = lane.repeats.load(Acquire).wrapping_sub(n_told);
        if n_untold > 0 {
            records.push(Record::new(Kind::Repeats, 0, n_untold, 0, 0));
        }
        drawn.hand(lane, &records, sink)?;
    }
    Ok(())
}

/// What was drawn from a lane.
#[derive(Clone, Copy, Debug, Default)]
struct Drawn {
    /// How many repeats the records tell.
    n_told: u64,
    /// Of the chunk that the target is filling.
    n_bytes: usize,
}

impl Drawn {
    fn hand(
        &mut self,
        lane: &Lane,
        records: &[Record],
        sink: &mut dyn RecordSink,
    ) -> Result<(), WriteError> {
        let batch = Batch::new(records);
        self.n_told = self.n_told.wrapping_add(batch.n_repeats);
        sink.take(lane.thread.load(Relaxed), &batch)
    }
}

/// Gives chunks back to the target, which may wait for them.
fn release(lane: &Lane, taken: u32) {
    lane.taken.store(taken, SeqCst);
    let n_full = lane.filled.load(Relaxed).wrapping_sub(taken);
    if u64::from(n_full) <= CHUNKS_HALF && lane.target_waits.load(SeqCst) != 0 {
        wake(&lane.taken);
    }
}

/// Ends the nap of [`draw`], after `over` was set.
pub(crate) fn rouse(block: &Block) {
    wake(&block.lanes()[0].filled);
}

fn n_lanes(block: &Block) -> usize {
    match block.lanes().len() {
        1 => 1,
        n_lanes => (block.control().n_lanes.load(Acquire) as usize).min(n_lanes),
    }
}

/// The number of the next full chunk. A count that no target could have reached, as when
/// it writes all over the control block, gives none.
fn next_chunk(lane: &Lane) -> Option<u32> {
    let taken = lane.taken.load(Relaxed);
    let n_waiting = lane.filled.load(Acquire).wrapping_sub(taken);
    (n_waiting > 0 && u64::from(n_waiting) <= CHUNKS).then_some(taken)
}

fn nap(lane: &Lane, over: &AtomicBool) {
    let filled = lane.filled.load(Acquire);
    lane.parent_waits.store(1, SeqCst);
    if next_chunk(lane).is_none() && !over.load(Acquire) {
        let timeout = futex::Timespec { tv_sec: 0, tv_nsec: NAP.as_nanos() as i64 };
        // However it ends, the caller looks again.
        let _ = futex::wait(&lane.filled, futex::Flags::empty(), filled, Some(&timeout));
    }
    lane.parent_waits.store(0, Relaxed);
}

fn wake(word: &AtomicU32) {
    // Fails only for a bad address, and this one is mapped.
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX >> 1);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Release;

    use raddle_trace::control::{CHUNK_BYTES, LANE_BYTES, Layout};

    use super::*;

    const RING: u64 = 0x7000_0000_0000;
    const PER_CHUNK: u32 = (CHUNK_BYTES / RECORD_BYTES) as u32;

    struct Kept(Vec<u64>);

    impl RecordSink for Kept {
        fn take(&mut self, _: u32, batch: &Batch<'_>) -> Result<(), WriteError> {
            self.0.extend(batch.records.iter().map(|record| record.operand()));
            Ok(())
        }

        fn round(&mut self) -> Result<(), WriteError> {
            Ok(())
        }
    }

    /// Plays the runtime: `n` records through lane 0, waiting for room as it would.
    fn fill(block: &Block, n: u32) {
        let lane = &block.lanes()[0];
        lane.ring.store(RING, Relaxed);
        lane.cursor.store(RING, Relaxed);
        for number in 0..n {
            let filled = lane.filled.load(Relaxed);
            while u64::from(filled.wrapping_sub(lane.taken.load(Acquire))) == CHUNKS {
                std::thread::yield_now();
            }
            let cursor = lane.cursor.load(Relaxed) - RING;
            let record = Record::new(Kind::Read, 8, u64::from(number), 0, 0);
            block.poke(0, cursor as usize, record);
            lane.cursor.store(RING + cursor + RECORD_BYTES as u64, Release);
            if (number + 1) % PER_CHUNK == 0 {
                lane.cursor.store(RING + (cursor + 16) % LANE_BYTES as u64, Release);
                lane.filled.store(filled.wrapping_add(1), Release);
                if lane.parent_waits.load(SeqCst) == 1 {
                    wake(&lane.filled);
                }
            }
        }
    }

    /// What is drawn from a target that performs `n` events and dies.
    fn drawn(n: u32, pace: Pace) -> Vec<u64> {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        let over = AtomicBool::new(false);
        let mut kept = Kept(Vec::new());
        std::thread::scope(|scope| {
            let drawer = scope.spawn(|| draw(&block, pace, &over, &mut kept));
            fill(&block, n);
            over.store(true, Release);
            rouse(&block);
            drawer.join().expect("no panic").expect("no error");
        });
        kept.0
    }

    #[test]
    fn repeats_behind_the_last_record_are_told() {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        let lane = &block.lanes()[0];
        lane.ring.store(RING, Relaxed);
        block.poke(0, 0, Record::new(Kind::Write, 8, 1, 20, 0));
        block.poke(0, RECORD_BYTES, Record::new(Kind::Repeats, 0, 70_000, 0, 0));
        lane.cursor.store(RING + 2 * RECORD_BYTES as u64, Release);
        lane.repeats.store(70_025, Relaxed);
        let mut kept = Kept(Vec::new());
        draw(&block, Pace::Chunks, &AtomicBool::new(true), &mut kept).expect("no error");
        assert_eq!(kept.0, [1, 70_000, 5]);
    }

    #[test]
    fn no_record_is_lost() {
        for n in [0, 1, PER_CHUNK - 1, PER_CHUNK, PER_CHUNK + 1, 40 * PER_CHUNK + 7] {
            for pace in [Pace::Chunks, Pace::Records] {
                assert!(drawn(n, pace).into_iter().eq(0..u64::from(n)), "{n} records, {pace:?}");
            }
        }
    }
}
