//! The call stacks seen so far.

use raddle_trace::id::Pc;
use rustc_hash::FxHashMap;

/// Maximum number of calls reported per access.
const STACK_MAX: usize = 16;

/// A call stack, as a node of the tree of all stacks.
pub(super) type Node = u32;
/// The empty call stack.
pub(super) const ROOT: Node = 0;

/// The stacks seen so far, as a tree: each node is a call made from its parent.
pub(super) struct Stacks {
    nodes: Vec<(Node, Pc)>,
    below: FxHashMap<(Node, Pc), Node>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self { nodes: vec![(ROOT, Pc(0))], below: FxHashMap::default() }
    }
}

impl Stacks {
    pub(super) fn below(&mut self, node: Node, call: Pc) -> Node {
        let nodes = &mut self.nodes;
        *self.below.entry((node, call)).or_insert_with(|| {
            nodes.push((node, call));
            nodes.len() as Node - 1
        })
    }

    pub(super) fn above(&self, node: Node) -> Node {
        self.nodes[node as usize].0
    }

    /// The calls of a stack, innermost first.
    pub(super) fn calls(&self, mut node: Node) -> impl Iterator<Item = Pc> + '_ {
        std::iter::from_fn(move || {
            let (above, call) = *self.nodes.get(node as usize).filter(|_| node != ROOT)?;
            node = above;
            Some(call)
        })
        .take(STACK_MAX)
    }
}
