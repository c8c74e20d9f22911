//! The control flow graph of one function: blocks of its instructions, and the edges between
//! them.
//!
//! A call ends its block: what follows starts at the return address, which is how raddle
//! identifies sites. A call that may throw also has an edge to each of its landing pads.
//!
//! Only code reachable from the function's start is part of the graph. [`super::body`] describes
//! which edges may be missing, and when.

use std::collections::BTreeSet;
use std::ops::Range;

use super::body::{Body, Call, Flow};
use super::image::Image;

/// A block of a [`Cfg`], numbered by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// Instructions that are executed in sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address of the first instruction.
    pub start: u64,
    /// The end of the last one.
    pub end: u64,
    /// The call that ends it, if any. It returns to `end`.
    pub call: Option<Call>,
}

/// A function's blocks and the edges between them.
#[derive(Clone, Debug)]
pub struct Cfg {
    // invariant: sorted by address, without overlaps if complete, and all are reached from the
    // entry
    blocks: Vec<Block>,
    successors: Vec<Vec<BlockId>>,
    predecessors: Vec<Vec<BlockId>>,
    entry: BlockId,
    is_complete: bool,
    may_return: bool,
}

impl Cfg {
    /// The graph of a function that may consist of several parts; the first starts with its first
    /// instruction.
    #[must_use]
    pub fn of_parts(image: &dyn Image, parts: &[Range<u64>]) -> Self {
        let body = Body::of_parts(image, parts);
        let Some(start) = body.entry() else {
            // One block without bytes.
            let blocks = vec![Block { start: 0, end: 0, call: None }];
            return Self::new(blocks, vec![vec![]], BlockId(0));
        };
        let after = |at: usize| {
            let mut after = [body.next(at), &body.unwinds(at)].concat();
            after.sort_unstable();
            after.dedup();
            after
        };
        // Guessed landing pads may turn out to be dead code.
        let mut reached = BTreeSet::new();
        let mut leaders = BTreeSet::from([start]);
        let mut work = vec![start];
        while let Some(at) = work.pop() {
            if !reached.insert(at) {
                continue;
            }
            let after = after(at);
            // Where instructions overlap, the next one by address is another reading of the bytes.
            if body.flow(at) != Flow::Next || after != [at + 1] {
                leaders.extend(&after);
            }
            work.extend(after);
        }

        let mut blocks: Vec<Block> = Vec::new();
        // The first and the last instruction of each block.
        let mut bounds: Vec<(usize, usize)> = Vec::new();
        for &at in &reached {
            let instruction = &body.instructions()[at];
            let start = instruction.ip();
            let goes_on =
                blocks.last().is_some_and(|block| block.end == start) && !leaders.contains(&at);
            if !goes_on {
                blocks.push(Block { start, end: start, call: None });
                bounds.push((at, at));
            }
            let block = blocks.last_mut().expect("one was pushed");
            block.end = instruction.next_ip();
            if let Flow::Call(call) = body.flow(at) {
                block.call = Some(call);
            }
            bounds.last_mut().expect("one was pushed").1 = at;
        }
        let place = |at: usize| bounds.binary_search_by_key(&at, |(first, _)| *first).ok().map(id);
        let successors = bounds
            .iter()
            .map(|&(_, last)| after(last).into_iter().filter_map(place).collect())
            .collect();
        let entry = place(start).expect("the entry is reached");
        Self {
            is_complete: body.is_complete(),
            may_return: !body.is_complete() || reached.iter().any(|&at| body.may_leave(at, image)),
            ..Self::new(blocks, successors, entry)
        }
    }

    fn new(blocks: Vec<Block>, successors: Vec<Vec<BlockId>>, entry: BlockId) -> Self {
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (place, list) in successors.iter().enumerate() {
            for next in list {
                predecessors[next.0 as usize].push(id(place));
            }
        }
        Self { blocks, successors, predecessors, entry, is_complete: false, may_return: true }
    }

    /// Whether all edges are known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the function may return. If not, its callers do not continue after the call.
    #[must_use]
    pub fn may_return(&self) -> bool {
        self.may_return
    }

    /// The first block.
    #[must_use]
    pub fn entry(&self) -> BlockId {
        self.entry
    }

    /// All blocks, by address.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = (BlockId, &Block)> {
        self.blocks.iter().enumerate().map(|(place, block)| (id(place), block))
    }

    /// One block.
    #[must_use]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.0 as usize]
    }

    /// The block that contains an address.
    #[must_use]
    pub fn block_at(&self, address: u64) -> Option<BlockId> {
        let n_before = self.blocks.partition_point(|block| block.start <= address);
        let place = n_before.checked_sub(1)?;
        (address < self.blocks[place].end).then_some(id(place))
    }

    /// The block whose call returns to an address.
    #[must_use]
    pub fn block_calling(&self, return_address: u64) -> Option<BlockId> {
        let block = self.block_at(return_address.checked_sub(1)?)?;
        let Block { end, call, .. } = self.block(block);
        (*end == return_address && call.is_some()).then_some(block)
    }

    /// The blocks that may come next, each once.
    #[must_use]
    pub fn successors(&self, block: BlockId) -> &[BlockId] {
        &self.successors[block.0 as usize]
    }

    /// The blocks that may come before, each once.
    #[must_use]
    pub fn predecessors(&self, block: BlockId) -> &[BlockId] {
        &self.predecessors[block.0 as usize]
    }
}

fn id(place: usize) -> BlockId {
    BlockId(u32::try_from(place).expect("a function has less than 2^32 bytes"))
}

#[cfg(test)]
mod tests;
