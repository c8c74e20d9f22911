//! The loops of a function.
//!
//! A loop is a set of blocks that reach each other. If it can be entered at only one block, that
//! block is its header: it dominates the others, edges from the loop to it are the back edges,
//! and the loop is a natural loop in the textbook sense. Nested loops are found in what is left
//! without the back edges. So loops nest, and each header has one loop, however many back edges
//! (`continue`) lead to it.
//!
//! A set that can be entered at several blocks (by `goto` into it, or by an optimizer) is
//! irreducible: its iterations have no defined start. It is kept and marked, and nested loops are
//! searched without any edges to its entries.
//!
//! Loops are those of the machine code. Optimizers rotate loops (the condition comes last, and
//! once before the loop), peel off first iterations, unroll, and merge two loops with a common
//! header; source and machine code then count differently, though each consistently in every run
//! of a build.

use super::cfg::{BlockId, Cfg};

/// A loop of a function, numbered so that a loop comes after those that enclose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopIndex(pub u32);

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The block at which it is entered; the first such block if it is irreducible.
    pub header: BlockId,
    /// Address of that block.
    pub entry: u64,
    /// The innermost enclosing loop.
    pub parent: Option<LoopIndex>,
    /// Whether it can be entered at several blocks.
    pub is_irreducible: bool,
}

/// A function's loops.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    loops: Vec<Loop>,
    // The innermost loop of each block.
    innermost: Vec<Option<LoopIndex>>,
}

impl Loops {
    /// Finds the loops of a function. In an incomplete graph, some may be missing.
    #[must_use]
    pub fn find(cfg: &Cfg) -> Self {
        let n_blocks = cfg.blocks().len();
        let mut found = Self { loops: Vec::new(), innermost: vec![None; n_blocks] };
        let all = cfg.blocks().map(|(block, _)| block).collect();
        let mut region = vec![0; n_blocks];
        let mut n_regions = 0;
        // Regions still to be split, each with the enclosing loop. An edge counts if both ends
        // are in the same region and it does not lead to an entry.
        let mut work: Vec<(Vec<BlockId>, Vec<BlockId>, Option<LoopIndex>)> =
            vec![(all, Vec::new(), None)];
        while let Some((blocks, entries, parent)) = work.pop() {
            n_regions += 1;
            for block in &blocks {
                region[block.0 as usize] = n_regions;
            }
            let next = |block: BlockId| {
                let is_inside = |to: &&BlockId| region[to.0 as usize] == n_regions;
                cfg.successors(block)
                    .iter()
                    .filter(is_inside)
                    .copied()
                    .filter(|to| !entries.contains(to))
            };
            for component in components(&blocks, next) {
                found.insert(cfg, component, parent, &mut work);
            }
        }
        found
    }

    fn insert(
        &mut self,
        cfg: &Cfg,
        mut component: Vec<BlockId>,
        parent: Option<LoopIndex>,
        work: &mut Vec<(Vec<BlockId>, Vec<BlockId>, Option<LoopIndex>)>,
    ) {
        component.sort_unstable();
        let is_inside = |block: &BlockId| component.binary_search(block).is_ok();
        let is_entry = |block: &&BlockId| {
            **block == cfg.entry() || !cfg.predecessors(**block).iter().all(is_inside)
        };
        let entries: Vec<BlockId> = component.iter().filter(is_entry).copied().collect();
        let header = entries[0];
        let index = LoopIndex(u32::try_from(self.loops.len()).expect("no more loops than blocks"));
        self.loops.push(Loop {
            header,
            entry: cfg.block(header).start,
            parent,
            is_irreducible: entries.len() > 1,
        });
        for block in &component {
            self.innermost[block.0 as usize] = Some(index);
        }
        work.push((component, entries, Some(index)));
    }

    /// All loops.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (LoopIndex, &Loop)> {
        let index = |place| LoopIndex(u32::try_from(place).expect("no more loops than blocks"));
        self.loops.iter().enumerate().map(move |(place, found)| (index(place), found))
    }

    /// One loop.
    #[must_use]
    pub fn get(&self, index: LoopIndex) -> &Loop {
        &self.loops[index.0 as usize]
    }

    /// The loops around a block, innermost first.
    pub fn around(&self, block: BlockId) -> impl Iterator<Item = LoopIndex> + use<'_> {
        std::iter::successors(self.innermost[block.0 as usize], |&index| self.get(index).parent)
    }

    /// Whether a block is in a loop.
    #[must_use]
    pub fn contains(&self, index: LoopIndex, block: BlockId) -> bool {
        self.around(block).any(|around| around == index)
    }
}

/// Strongly connected components along `next`; a single block counts only if it has an edge to
/// itself. Tarjan's algorithm with an explicit stack.
fn components<I: Iterator<Item = BlockId>>(
    blocks: &[BlockId],
    next: impl Fn(BlockId) -> I,
) -> Vec<Vec<BlockId>> {
    let n = blocks.iter().map(|block| block.0 as usize + 1).max().unwrap_or(0);
    let mut number = vec![0_u32; n];
    let mut low = vec![0_u32; n];
    let mut is_open = vec![false; n];
    let mut open = Vec::new();
    let mut n_seen = 0;
    let mut found = Vec::new();
    for &root in blocks {
        if number[root.0 as usize] != 0 {
            continue;
        }
        let mut path: Vec<(BlockId, Vec<BlockId>)> = Vec::new();
        let mut visit = Some(root);
        loop {
            if let Some(block) = visit.take() {
                n_seen += 1;
                number[block.0 as usize] = n_seen;
                low[block.0 as usize] = n_seen;
                is_open[block.0 as usize] = true;
                open.push(block);
                path.push((block, next(block).collect()));
            }
            let Some((block, rest)) = path.last_mut() else { break };
            let place = block.0 as usize;
            if let Some(to) = rest.pop() {
                if number[to.0 as usize] == 0 {
                    visit = Some(to);
                } else if is_open[to.0 as usize] {
                    low[place] = low[place].min(number[to.0 as usize]);
                }
                continue;
            }
            let block = *block;
            path.pop();
            if let Some((above, _)) = path.last() {
                let above = above.0 as usize;
                low[above] = low[above].min(low[place]);
            }
            if low[place] == number[place] {
                let start = open.iter().rposition(|&b| b == block).expect("it was opened");
                let component = open.split_off(start);
                for block in &component {
                    is_open[block.0 as usize] = false;
                }
                if component.len() > 1 || next(block).any(|to| to == block) {
                    found.push(component);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dominators;
    use crate::sketch::Code;

    /// Lists the blocks that are in loops, with the entries of their loops, innermost first; `!`
    /// marks irreducible ones.
    fn check(sketch: &str, expect: &str) {
        let code = Code::sketch(sketch);
        let cfg = code.cfg();
        let loops = Loops::find(&cfg);
        let name = |index: LoopIndex| {
            let Loop { entry, is_irreducible, .. } = *loops.get(index);
            format!("{}{}", code.label(entry), if is_irreducible { "!" } else { "" })
        };
        let line = |(block, found): (BlockId, &crate::cfg::Block)| {
            let around: Vec<String> = loops.around(block).map(name).collect();
            let label = code.labels.iter().find(|(_, address)| *address == found.start);
            let label = label.filter(|_| !around.is_empty());
            label.map(|(label, _)| format!("{label}:{}", around.join(",")))
        };
        let lines: Vec<String> = cfg.blocks().filter_map(line).collect();
        assert_eq!(lines.join(" "), expect);
        let successors: Vec<Vec<usize>> = cfg
            .blocks()
            .map(|(block, _)| cfg.successors(block).iter().map(|to| to.0 as usize).collect())
            .collect();
        let above = dominators::immediate(&successors, cfg.entry().0 as usize);
        let dominates = |header: BlockId, block: BlockId| {
            std::iter::successors(Some(block.0 as usize), |&block| above[block])
                .any(|block| block == header.0 as usize)
        };
        for (index, found) in loops.iter().filter(|(_, found)| !found.is_irreducible) {
            for (block, _) in cfg.blocks().filter(|&(block, _)| loops.contains(index, block)) {
                assert!(dominates(found.header, block));
            }
        }
    }

    #[test]
    fn straight_code_has_none() {
        check(
            "
            a -> b c
            b -> c
            c ->",
            "",
        );
    }

    #[test]
    fn a_block_may_be_its_own_loop() {
        check(
            "
            a -> b
            b -> b c
            c ->",
            "b:b",
        );
    }

    #[test]
    fn a_loop_is_what_reaches_its_back_edge() {
        check(
            "
            a -> h
            h -> b e
            b -> c x
            c -> h
            x -> e
            e ->",
            "h:h b:h c:h",
        );
    }

    #[test]
    fn loops_nest() {
        check(
            "
            a -> o
            o -> i e
            i -> b p
            b -> i
            p -> o
            e ->",
            "o:o i:i,o b:i,o p:o",
        );
    }

    #[test]
    fn two_back_edges_are_one_loop() {
        check(
            "
            a -> h
            h -> b c
            b -> h
            c -> h e
            e ->",
            "h:h b:h c:h",
        );
    }

    #[test]
    fn a_loop_with_two_entries_is_irreducible() {
        check(
            "
            a -> b c
            b -> c e
            c -> b
            e ->",
            "b:b! c:b!",
        );
    }

    #[test]
    fn a_loop_within_an_irreducible_one_is_found() {
        check(
            "
            a -> b c
            b -> i
            i -> i c
            c -> b e
            e ->",
            "b:b! i:i,b! c:b!",
        );
    }

    #[test]
    fn an_irreducible_loop_spares_the_one_around() {
        check(
            "
            a -> h
            h -> b c
            b -> c
            c -> b p
            p -> h e
            e ->",
            "h:h b:b!,h c:b!,h p:h",
        );
    }
}
