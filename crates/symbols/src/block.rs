//! Which heap block contains an address.
//!
//! The map is fed with a trace's events in order and keeps every block that ever existed, since a
//! freed address soon belongs to another block: [`HeapMap::block_at`] answers for any event so
//! far. An address in a freed block still belongs to it until a new block covers it; using it is
//! a bug, and a report should say what it was.
//!
//! # Limits
//! A block's type is unknown; only its allocation site is known. Memory that the program got
//! directly from the kernel (`mmap`) is in no block.

use std::collections::BTreeMap;
use std::rc::Rc;

use raddle_trace::event::{Event, Op};
use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

/// All heap blocks of a run.
#[derive(Clone, Debug, Default)]
pub struct HeapMap {
    // invariant: in order of allocation
    blocks: Vec<Block>,
    /// From the first byte of a range to its end and the last block that covered it.
    // invariant: no two overlap
    cover: BTreeMap<u64, (u64, usize)>,
    generations: FxHashMap<Addr, u32>,
    stacks: FxHashSet<Rc<[Pc]>>,
}

/// A heap block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// First byte.
    pub addr: Addr,
    /// Size.
    pub bytes: u64,
    /// How many earlier blocks started at this address.
    pub generation: u32,
    /// The event that allocated it.
    pub allocated: Cause,
    /// The event that freed it, if any.
    pub freed: Option<Cause>,
}

/// The event that allocated or freed a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its position in the trace.
    pub seq: u64,
    /// The thread.
    pub thread: ThreadId,
    /// The code address.
    pub pc: Pc,
    /// Return addresses of the enclosing functions, innermost first; not all of them.
    pub callers: Rc<[Pc]>,
}

/// Maximum number of callers kept per block: enough to get out of the standard library, which in
/// an unoptimized program puts several functions between `Arc::new` and the allocator.
const CALLERS_MAX: usize = 16;

impl HeapMap {
    /// Adds event number `seq` of the trace. `callers` are the return addresses of the functions
    /// that the thread is in, outermost first.
    pub fn push(&mut self, seq: u64, event: &Event, callers: &[Pc]) {
        match event.op {
            Op::Alloc { block, bytes, .. } => {
                let allocated = self.cause(seq, event, callers);
                self.alloc(block, bytes, allocated);
            }
            Op::Free { block, .. } => {
                let freed = self.cause(seq, event, callers);
                self.free(block, freed);
            }
            _ => {}
        }
    }

    /// Adds a block.
    pub fn alloc(&mut self, addr: Addr, bytes: u64, allocated: Cause) {
        let generation = self.generations.entry(addr).or_default();
        self.blocks.push(Block { addr, bytes, generation: *generation, allocated, freed: None });
        *generation += 1;
        // A block of size 0 still has an address.
        self.paint(addr.0, addr.0.saturating_add(bytes.max(1)), self.blocks.len() - 1);
    }

    /// Frees a block. Nothing happens if there is none, or if it is already freed.
    pub fn free(&mut self, addr: Addr, freed: Cause) {
        let id = self.cover.get(&addr.0).map(|&(_, id)| id);
        if let Some(block) = id.and_then(|id| self.blocks.get_mut(id))
            && block.addr == addr
            && block.freed.is_none()
        {
            block.freed = Some(freed);
        }
    }

    /// The last block that contained an address.
    #[must_use]
    pub fn block(&self, addr: Addr) -> Option<&Block> {
        let (_, &(end, id)) = self.cover.range(..=addr.0).next_back()?;
        self.blocks.get(id).filter(|_| addr.0 < end)
    }

    /// The last block that contained an address at event `seq`. It may have been freed by then:
    /// see [`Block::is_freed_at`]. Slower for events far back.
    #[must_use]
    pub fn block_at(&self, addr: Addr, seq: u64) -> Option<&Block> {
        let last = self.block(addr)?;
        if last.allocated.seq <= seq {
            return Some(last);
        }
        let n_before = self.blocks.partition_point(|block| block.allocated.seq <= seq);
        self.blocks.get(..n_before)?.iter().rev().find(|block| block.contains(addr))
    }

    /// Whether `addr` is the start of a live block.
    #[must_use]
    pub fn is_live(&self, addr: Addr) -> bool {
        self.block(addr).is_some_and(|block| block.addr == addr && block.freed.is_none())
    }

    fn cause(&mut self, seq: u64, event: &Event, callers: &[Pc]) -> Cause {
        let innermost: Rc<[Pc]> = callers.iter().rev().take(CALLERS_MAX).copied().collect();
        // There are many blocks, but few allocation sites.
        let callers = match self.stacks.get(&innermost) {
            Some(known) => Rc::clone(known),
            None => {
                self.stacks.insert(Rc::clone(&innermost));
                innermost
            }
        };
        Cause { seq, thread: event.thread, pc: event.pc, callers }
    }

    /// Covers `low..high` with a block, replacing what was there.
    fn paint(&mut self, low: u64, high: u64, id: usize) {
        if let Some((&start, &(end, old))) = self.cover.range(..low).next_back()
            && end > low
        {
            self.cover.insert(start, (low, old));
            if end > high {
                self.cover.insert(high, (end, old));
            }
        }
        while let Some((&start, &(end, old))) = self.cover.range(low..high).next() {
            self.cover.remove(&start);
            if end > high {
                self.cover.insert(high, (end, old));
            }
        }
        self.cover.insert(low, (high, id));
    }
}

impl Block {
    /// Whether it contains an address.
    #[must_use]
    pub fn contains(&self, addr: Addr) -> bool {
        addr.0.checked_sub(self.addr.0).is_some_and(|offset| offset < self.bytes.max(1))
    }

    /// Whether it was freed by event `seq`.
    #[must_use]
    pub fn is_freed_at(&self, seq: u64) -> bool {
        self.freed.as_ref().is_some_and(|freed| freed.seq <= seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds lines of `alloc ADDR BYTES` and `free ADDR`, numbered from 1.
    fn heap(text: &str) -> HeapMap {
        let mut heap = HeapMap::default();
        for (seq, line) in (1..).zip(text.lines().filter(|line| !line.trim().is_empty())) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |n: usize| words[n].parse().expect("a number");
            let block = Addr(number(1));
            let op = match words[0] {
                "alloc" => Op::Alloc { block, bytes: number(2), room: number(2) },
                "free" => Op::Free { block, bytes: 0 },
                other => panic!("no such op: {other}"),
            };
            heap.push(seq, &Event { thread: ThreadId(0), pc: Pc(seq), op }, &[]);
        }
        heap
    }

    /// The block of an address as `ADDR/GENERATION`, with a `-` if it is freed.
    fn check(text: &str, addr: u64, seq: u64, expect: &str) {
        let heap = heap(text);
        let found = heap.block_at(Addr(addr), seq).map_or_else(String::new, |block| {
            let freed = if block.is_freed_at(seq) { "-" } else { "" };
            format!("{}/{}{freed}", block.addr.0, block.generation)
        });
        assert_eq!(found, expect);
    }

    #[test]
    fn an_address_in_no_block_has_none() {
        check("alloc 100 50", 99, 9, "");
        check("alloc 100 50", 150, 9, "");
    }

    #[test]
    fn the_first_and_last_byte_are_inside() {
        check("alloc 100 50", 100, 9, "100/0");
        check("alloc 100 50", 149, 9, "100/0");
    }

    #[test]
    fn a_freed_block_is_still_the_answer() {
        check("alloc 100 50\nfree 100", 120, 9, "100/0-");
    }

    #[test]
    fn a_block_was_not_yet_freed_before_it_was() {
        check("alloc 100 50\nfree 100", 120, 1, "100/0");
    }

    #[test]
    fn a_new_block_at_the_same_address_is_another_generation() {
        check("alloc 100 50\nfree 100\nalloc 100 20", 110, 9, "100/1");
    }

    #[test]
    fn what_a_new_block_leaves_of_an_old_one_is_still_the_old_one() {
        check("alloc 100 50\nfree 100\nalloc 100 20", 120, 9, "100/0-");
        check("alloc 100 50\nfree 100\nalloc 110 10", 105, 9, "100/0-");
        check("alloc 100 50\nfree 100\nalloc 110 10", 130, 9, "100/0-");
        check("alloc 100 50\nfree 100\nalloc 90 30", 130, 9, "100/0-");
    }

    #[test]
    fn a_new_block_covers_several_old_ones() {
        let text = "alloc 100 10\nalloc 110 10\nfree 100\nfree 110\nalloc 100 20";
        check(text, 100, 9, "100/1");
        check(text, 115, 9, "100/1");
    }

    #[test]
    fn the_past_is_remembered() {
        let text = "alloc 100 50\nfree 100\nalloc 110 20\nfree 110\nalloc 100 50";
        check(text, 115, 0, "");
        check(text, 115, 1, "100/0");
        check(text, 115, 2, "100/0-");
        check(text, 115, 3, "110/0");
        check(text, 115, 5, "100/1");
    }

    #[test]
    fn a_block_of_no_bytes_has_an_address() {
        check("alloc 100 0", 100, 9, "100/0");
    }

    #[test]
    fn freeing_twice_changes_nothing() {
        let heap = heap("alloc 100 50\nfree 100\nfree 100");
        let freed = heap.block(Addr(100)).and_then(|block| block.freed.as_ref());
        assert_eq!(freed.map(|cause| cause.seq), Some(2));
    }

    #[test]
    fn a_block_at_the_end_of_all_addresses_is_no_harm() {
        check(
            &format!("alloc {} 100", u64::MAX - 10),
            u64::MAX - 5,
            9,
            &format!("{}/0", u64::MAX - 10),
        );
    }
}
