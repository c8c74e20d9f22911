//! Vector clocks that share what they have in common.
//!
//! A plain vector per communication takes memory in proportion to communications times threads:
//! 100,000 threads one after another would take tens of gigabytes. Here a clock is a persistent
//! radix tree: a copy is a pointer, a change copies one path, and joining two clocks visits only
//! the parts in which they differ. With up to [`WIDTH`] threads it is one small array.

use std::sync::Arc;

/// Entries of a node.
const WIDTH: usize = 16;
const BITS: u32 = WIDTH.trailing_zeros();

/// How far a thread knows the time of each thread; 0 if it knows nothing.
#[derive(Clone, Debug, Default)]
pub struct VectorClock {
    root: Option<Arc<Node>>,
    /// Levels of branches above the leaves.
    height: u32,
}

/// invariant: all leaves have the same depth, and no node is all zeros.
#[derive(Clone, Debug)]
enum Node {
    Leaf([u32; WIDTH]),
    Branch([Option<Arc<Node>>; WIDTH]),
}

impl VectorClock {
    /// The time of a thread.
    #[must_use]
    pub fn get(&self, thread: usize) -> u32 {
        if thread >= WIDTH << (BITS * self.height) {
            return 0;
        }
        let mut node = self.root.as_deref();
        let mut height = self.height;
        while let Some(Node::Branch(children)) = node {
            node = children[index(thread, height)].as_deref();
            height -= 1;
        }
        match node {
            Some(Node::Leaf(times)) => times[thread % WIDTH],
            Some(Node::Branch(_)) | None => 0,
        }
    }

    /// Sets the time of a thread, which must be above 0.
    pub(crate) fn set(&mut self, thread: usize, time: u32) {
        while thread >= WIDTH << (BITS * self.height) {
            self.grow();
        }
        let mut slot = &mut self.root;
        for height in (0..=self.height).rev() {
            let empty = || Arc::new(if height == 0 { Node::LEAF } else { Node::BRANCH });
            match Arc::make_mut(slot.get_or_insert_with(empty)) {
                Node::Leaf(times) => {
                    times[thread % WIDTH] = time;
                    return;
                }
                Node::Branch(children) => slot = &mut children[index(thread, height)],
            }
        }
    }

    /// Learns all that another clock knows; returns whether anything of it is new.
    pub(crate) fn join(&mut self, other: &Self) -> bool {
        let mut other = other.clone();
        while self.height < other.height {
            self.grow();
        }
        while other.height < self.height {
            other.grow();
        }
        let Some(news) = other.root else { return false };
        let both = match &self.root {
            None => Some(news),
            Some(known) => joined(known, &news),
        };
        let is_new = both.is_some();
        self.root = both.or(self.root.take());
        is_new
    }

    /// Adds a level.
    fn grow(&mut self) {
        self.height += 1;
        if let Some(below) = self.root.take() {
            let mut children = [const { None }; WIDTH];
            children[0] = Some(below);
            self.root = Some(Arc::new(Node::Branch(children)));
        }
    }
}

impl Node {
    const LEAF: Self = Self::Leaf([0; WIDTH]);
    const BRANCH: Self = Self::Branch([const { None }; WIDTH]);
}

/// The child of a branch at this height that leads to a thread.
const fn index(thread: usize, height: u32) -> usize {
    thread >> (BITS * height) & (WIDTH - 1)
}

/// What two nodes of one height know together; none if the second adds nothing to the first.
fn joined(known: &Arc<Node>, news: &Arc<Node>) -> Option<Arc<Node>> {
    if Arc::ptr_eq(known, news) {
        return None;
    }
    match (&**known, &**news) {
        (Node::Leaf(a), Node::Leaf(b)) => {
            let times: [u32; WIDTH] = std::array::from_fn(|at| a[at].max(b[at]));
            match times {
                times if times == *a => None,
                times if times == *b => Some(Arc::clone(news)),
                times => Some(Arc::new(Node::Leaf(times))),
            }
        }
        (Node::Branch(a), Node::Branch(b)) => {
            let mut both: Option<[Option<Arc<Node>>; WIDTH]> = None;
            for at in 0..WIDTH {
                let child = match (&a[at], &b[at]) {
                    (_, None) => None,
                    (None, Some(news)) => Some(Arc::clone(news)),
                    (Some(known), Some(news)) => joined(known, news),
                };
                if let Some(child) = child {
                    both.get_or_insert_with(|| a.clone())[at] = Some(child);
                }
            }
            Some(Arc::new(Node::Branch(both?)))
        }
        // Not of one height, which the callers exclude.
        (Node::Leaf(_), Node::Branch(_)) | (Node::Branch(_), Node::Leaf(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Plain = BTreeMap<usize, u32>;

    fn clock(plain: &Plain) -> VectorClock {
        let mut clock = VectorClock::default();
        for (&thread, &time) in plain {
            clock.set(thread, time);
        }
        clock
    }

    fn check(clock: &VectorClock, plain: &Plain) {
        let around =
            plain.keys().flat_map(|&thread| [thread.saturating_sub(1), thread, thread + 1]);
        for thread in around.chain([0, 15, 16, 255, 256, 70_000, 2_000_000]) {
            assert_eq!(clock.get(thread), plain.get(&thread).copied().unwrap_or(0), "{thread}");
        }
    }

    fn any_clock() -> impl Strategy<Value = Plain> {
        let thread = prop_oneof![0..20_usize, 0..300_usize, 0..100_000_usize];
        proptest::collection::btree_map(thread, 1..5_u32, 0..40)
    }

    proptest! {
        #[test]
        fn a_join_is_the_maximum_and_tells_whether_there_were_news(
            a in any_clock(), b in any_clock(), shared in any_clock(),
        ) {
            // Both continue from what they share.
            let common = clock(&shared);
            let extend = |own: &Plain| {
                let (mut plain, mut tree) = (shared.clone(), common.clone());
                for (&thread, &time) in own {
                    let time = time.max(shared.get(&thread).copied().unwrap_or(0));
                    plain.insert(thread, time);
                    tree.set(thread, time);
                }
                (plain, tree)
            };
            let ((plain_a, mut tree_a), (plain_b, tree_b)) = (extend(&a), extend(&b));
            check(&tree_a, &plain_a);
            check(&tree_b, &plain_b);
            let mut both = plain_a.clone();
            for (&thread, &time) in &plain_b {
                let known = both.entry(thread).or_insert(0);
                *known = time.max(*known);
            }
            prop_assert_eq!(tree_a.join(&tree_b), both != plain_a);
            check(&tree_a, &both);
            check(&tree_b, &plain_b);
            check(&common, &shared);
            prop_assert!(!tree_a.join(&tree_b));
        }
    }
}
