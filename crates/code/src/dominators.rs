//! Immediate dominators of a directed graph.
//!
//! The iterative algorithm of Cooper, Harvey and Kennedy («A Simple, Fast Dominance Algorithm»,
//! 2001). Graphs of functions are small and nearly reducible, so it converges after two rounds.
//! Post-dominators are the dominators of the reversed graph, from a common end.

/// The immediate dominator of each node reachable from `root`; none for the root itself and for
/// unreachable nodes. `successors[n]` are the targets of the edges from `n`.
#[must_use]
pub fn immediate(successors: &[Vec<usize>], root: usize) -> Vec<Option<usize>> {
    let order = reverse_postorder(successors, root);
    let mut rank = vec![usize::MAX; successors.len()];
    for (place, &node) in order.iter().enumerate() {
        rank[node] = place;
    }
    let mut predecessors = vec![Vec::new(); successors.len()];
    for &node in &order {
        for &next in &successors[node] {
            predecessors[next].push(node);
        }
    }

    let mut above: Vec<Option<usize>> = vec![None; successors.len()];
    above[root] = Some(root);
    let mut changed = true;
    while changed {
        changed = false;
        for &node in &order[1..] {
            let known = predecessors[node]
                .iter()
                .copied()
                .filter(|&before| above[before].is_some())
                .reduce(|a, b| meet(&above, &rank, a, b));
            if above[node] != known {
                above[node] = known;
                changed = true;
            }
        }
    }
    above[root] = None;
    above
}

/// The immediate post-dominator of each node: the nearest other node on every path from it to any
/// of `exits`. None if there is no such node or path. Paths that never reach an exit do not
/// count.
#[must_use]
pub fn immediate_post(
    successors: &[Vec<usize>],
    exits: impl IntoIterator<Item = usize>,
) -> Vec<Option<usize>> {
    let end = successors.len();
    let mut reversed = vec![Vec::new(); end + 1];
    for (node, list) in successors.iter().enumerate() {
        for &next in list {
            reversed[next].push(node);
        }
    }
    reversed[end].extend(exits);
    let mut below = immediate(&reversed, end);
    below.truncate(end);
    below.into_iter().map(|node| node.filter(|&node| node != end)).collect()
}

/// The nodes reachable from `root`, each before those that it dominates.
fn reverse_postorder(successors: &[Vec<usize>], root: usize) -> Vec<usize> {
    let mut seen = vec![false; successors.len()];
    let mut order = Vec::new();
    let mut path = vec![(root, 0)];
    seen[root] = true;
    while let Some((node, place)) = path.last_mut() {
        if let Some(&next) = successors[*node].get(*place) {
            *place += 1;
            if !std::mem::replace(&mut seen[next], true) {
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

/// The nearest common dominator.
fn meet(above: &[Option<usize>], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    let up = |node: usize| above[node].expect("only nodes with a dominator are met");
    while a != b {
        while rank[a] > rank[b] {
            a = up(a);
        }
        while rank[b] > rank[a] {
            b = up(b);
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks where the paths from each node of a graph meet again.
    fn check(successors: &[&[usize]], expected: &[Option<usize>]) {
        let successors: Vec<Vec<usize>> = successors.iter().map(|to| to.to_vec()).collect();
        let exits = (0..successors.len()).filter(|&node| successors[node].is_empty());
        assert_eq!(immediate_post(&successors, exits), expected);
    }

    #[test]
    fn the_ways_of_an_if_meet_behind_it() {
        check(&[&[1, 2], &[3], &[3], &[]], &[Some(3), Some(3), Some(3), None]);
    }

    #[test]
    fn a_loop_is_left_behind_its_condition() {
        check(&[&[1], &[2, 3], &[1], &[]], &[Some(1), Some(3), Some(1), None]);
    }

    #[test]
    fn two_returns_meet_nowhere() {
        check(&[&[1, 2], &[], &[]], &[None, None, None]);
    }

    #[test]
    fn a_way_that_never_ends_does_not_count() {
        check(&[&[1, 2], &[1], &[]], &[Some(2), None, None]);
    }

    fn reaches(successors: &[Vec<usize>], from: usize, to: usize, without: Option<usize>) -> bool {
        let mut seen = vec![false; successors.len()];
        let mut work = vec![from];
        while let Some(node) = work.pop() {
            if Some(node) == without || std::mem::replace(&mut seen[node], true) {
                continue;
            }
            work.extend(&successors[node]);
        }
        seen[to]
    }

    proptest! {
        #[test]
        fn a_dominator_is_on_every_path(
            successors in prop::collection::vec(prop::collection::vec(0..10_usize, 0..3), 10)
        ) {
            let above = immediate(&successors, 0);
            for node in 0..10 {
                // All dominators, by walking up, and by removing each node.
                let chain: Vec<usize> =
                    std::iter::successors(Some(node), |&node| above[node]).collect();
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
