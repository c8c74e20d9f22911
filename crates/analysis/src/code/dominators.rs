//! Immediate dominators of a directed graph.
//!
//! The iterative algorithm of Cooper, Harvey and Kennedy («A Simple, Fast Dominance
//! Algorithm», 2001). Graphs of functions are small and nearly reducible, so it settles after
//! two rounds. Post-dominators are the dominators of the reversed graph.

/// For each node that `root` reaches its immediate dominator; none for the root itself and for
/// what it does not reach. `successors[n]` are the nodes that edges lead to from `n`.
#[must_use]
pub fn immediate(successors: &[Vec<u32>], root: u32) -> Vec<Option<u32>> {
    let order = reverse_postorder(successors, root);
    let mut rank = vec![usize::MAX; successors.len()];
    for (place, &node) in order.iter().enumerate() {
        rank[node as usize] = place;
    }
    let mut predecessors = vec![Vec::new(); successors.len()];
    for &node in &order {
        for &next in &successors[node as usize] {
            predecessors[next as usize].push(node);
        }
    }

    let mut above: Vec<Option<u32>> = vec![None; successors.len()];
    above[root as usize] = Some(root);
    let mut changed = true;
    while changed {
        changed = false;
        for &node in &order[1..] {
            let known = predecessors[node as usize]
                .iter()
                .copied()
                .filter(|&before| above[before as usize].is_some())
                .reduce(|a, b| meet(&above, &rank, a, b));
            if above[node as usize] != known {
                above[node as usize] = known;
                changed = true;
            }
        }
    }
    above[root as usize] = None;
    above
}

/// The nodes that `root` reaches, each before those that it dominates.
fn reverse_postorder(successors: &[Vec<u32>], root: u32) -> Vec<u32> {
    let mut seen = vec![false; successors.len()];
    let mut order = Vec::new();
    let mut path = vec![(root, 0)];
    seen[root as usize] = true;
    while let Some((node, place)) = path.last_mut() {
        if let Some(&next) = successors[*node as usize].get(*place) {
            *place += 1;
            if !std::mem::replace(&mut seen[next as usize], true) {
                path.push((next, 0));
            }
        } else {
            order.push(*node);
            path.pop();
        }
    }
    order.reverse();
    order
}

/// The nearest node that dominates both.
fn meet(above: &[Option<u32>], rank: &[usize], mut a: u32, mut b: u32) -> u32 {
    let up = |node: u32| above[node as usize].expect("only nodes with a dominator are met");
    while a != b {
        while rank[a as usize] > rank[b as usize] {
            a = up(a);
        }
        while rank[b as usize] > rank[a as usize] {
            b = up(b);
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reaches(successors: &[Vec<u32>], from: u32, to: u32, without: Option<u32>) -> bool {
        let mut seen = vec![false; successors.len()];
        let mut work = vec![from];
        while let Some(node) = work.pop() {
            if Some(node) == without || std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            work.extend(&successors[node as usize]);
        }
        seen[to as usize]
    }

    proptest! {
        #[test]
        fn a_dominator_is_on_every_path(
            successors in prop::collection::vec(prop::collection::vec(0..10_u32, 0..3), 10)
        ) {
            let above = immediate(&successors, 0);
            for node in 0..10 {
                // All dominators, by walking up, and by taking each node away.
                let chain: Vec<u32> =
                    std::iter::successors(Some(node), |&node| above[node as usize]).collect();
                for other in 0..10 {
                    let is_reached = reaches(&successors, 0, node, None);
                    let dominates =
                        other == node || !reaches(&successors, 0, node, Some(other));
                    prop_assert_eq!(is_reached && dominates, is_reached && chain.contains(&other));
                }
            }
        }
    }
}
