//! Random walks through graphs of all kinds, compared with the truth.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::tests::THREAD;
use super::*;
use crate::sketch::Code;

/// A graph to walk through: for each block, whether it calls a callback, and its successors.
#[derive(Clone, Debug)]
struct Graph(Vec<(bool, Vec<usize>)>);

impl Graph {
    fn sketch(&self) -> String {
        let line = |(n, (has_call, to)): (usize, &(bool, Vec<usize>))| {
            let to: Vec<String> = to.iter().map(|to| format!("b{to}")).collect();
            let call = if *has_call { "*" } else { "" };
            format!("b{n}{call} -> {}\n", to.join(" "))
        };
        self.0.iter().enumerate().map(line).collect()
    }

    fn reached(&self, from: usize, without: Option<usize>) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut work = vec![from];
        while let Some(block) = work.pop() {
            if Some(block) != without && seen.insert(block) {
                work.extend(&self.0[block].1);
            }
        }
        seen
    }

    /// The textbook definition: the natural loop of each header, from all its back edges.
    fn natural_loops(&self) -> Vec<(usize, BTreeSet<usize>)> {
        let reached = self.reached(0, None);
        let dominates = |header: usize, block: usize| {
            header == block || !self.reached(0, Some(header)).contains(&block)
        };
        let body = |header: usize| {
            let mut body = BTreeSet::from([header]);
            let latches = reached
                .iter()
                .copied()
                .filter(|&b| self.0[b].1.contains(&header) && dominates(header, b));
            let mut work: Vec<usize> = latches.collect();
            if work.is_empty() {
                return None;
            }
            while let Some(block) = work.pop() {
                if body.insert(block) {
                    work.extend(reached.iter().filter(|b| self.0[**b].1.contains(&block)));
                }
            }
            Some((header, body))
        };
        reached.iter().copied().filter_map(body).collect()
    }

    /// Walks according to `choices` and compares the tracker's results with the truth. If
    /// `is_reducible`, all loops must be reported. Returns how many iterations were known, and
    /// the total.
    fn check(&self, choices: &[usize], is_reducible: bool) -> (usize, usize) {
        let code = Code::sketch(&self.sketch());
        let sites = code.sites.clone();
        let labels: Vec<u64> = code.labels.iter().map(|(_, address)| *address).collect();
        let mut tracker = Tracker::new(Functions::new(vec![Box::new(code)]));
        let loops = self.natural_loops();
        let mut truth: Vec<u32> = vec![0; loops.len()];
        let (mut n_known, mut n_all) = (0, 0);

        tracker.enter(THREAD, Pc(sites["b0"]));
        let mut at = 0;
        for choice in choices {
            let to = &self.0[at].1;
            if to.is_empty() {
                break;
            }
            let next = to[choice % to.len()];
            for ((header, body), iteration) in loops.iter().zip(&mut truth) {
                if next == *header {
                    *iteration = if body.contains(&at) { *iteration + 1 } else { 0 };
                }
            }
            at = next;
            if !self.0[at].0 {
                continue;
            }
            let nest = tracker.site(THREAD, Pc(sites[&format!("b{at}")]));
            let derived = tracker.loop_iterations(nest).expect("the graph is complete");
            for known in &derived {
                n_all += 1;
                let Some(iteration) = known.iteration else { continue };
                n_known += 1;
                let header = labels.iter().position(|&l| l == known.entry.0).expect("a block");
                let place = loops.iter().position(|(h, _)| *h == header).expect("a loop");
                assert!(loops[place].1.contains(&at));
                assert_eq!(iteration, truth[place]);
            }
            if is_reducible {
                let n_around = loops.iter().filter(|(_, body)| body.contains(&at)).count();
                assert_eq!(nest.depth(), Some(n_around));
            }
        }
        (n_known, n_all)
    }
}

/// Any graph. No edge leads back to the entry, as in instrumented functions.
fn graphs() -> impl Strategy<Value = Graph> {
    (3..12_usize).prop_flat_map(|n| {
        let block = (prop::bool::weighted(0.6), prop::collection::vec(1..n, 0..=2));
        prop::collection::vec(block, n).prop_map(|mut blocks| {
            blocks[0].0 = true;
            Graph(blocks)
        })
    })
}

/// Statements, from which reducible graphs are built.
#[derive(Clone, Debug)]
enum Statement {
    Access,
    If(Vec<Statement>, Vec<Statement>),
    DoWhile(Vec<Statement>),
    While(bool, Vec<Statement>),
    Continue,
    Break,
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let leaf = prop_oneof![6 => Just(Statement::Access), 1 => Just(Statement::Continue), 1 => Just(Statement::Break)];
    let statement = leaf.prop_recursive(5, 24, 4, |inner| {
        let some = prop::collection::vec(inner, 0..4);
        prop_oneof![
            (some.clone(), some.clone()).prop_map(|(a, b)| Statement::If(a, b)),
            some.clone().prop_map(Statement::DoWhile),
            (any::<bool>(), some).prop_map(|(access, body)| Statement::While(access, body)),
        ]
    });
    prop::collection::vec(statement, 1..5)
}

/// Appends blocks for `code` after block `at`; returns the block after it, if any.
fn build(
    blocks: &mut Vec<(bool, Vec<usize>)>,
    at: usize,
    code: &[Statement],
    around: Option<(usize, usize)>,
) -> Option<usize> {
    fn new(blocks: &mut Vec<(bool, Vec<usize>)>, before: usize, has_call: bool) -> usize {
        blocks.push((has_call, vec![]));
        let block = blocks.len() - 1;
        blocks[before].1.push(block);
        block
    }
    let mut at = at;
    for statement in code {
        at = match statement {
            Statement::Access => new(blocks, at, true),
            Statement::If(yes, no) => {
                let fork = new(blocks, at, false);
                let ends: Vec<usize> = [yes, no]
                    .into_iter()
                    .filter_map(|branch| {
                        let start = new(blocks, fork, false);
                        build(blocks, start, branch, around)
                    })
                    .collect();
                let (&first, others) = ends.split_first()?;
                let join = new(blocks, first, false);
                for &other in others {
                    blocks[other].1.push(join);
                }
                join
            }
            Statement::DoWhile(body) => {
                let header = new(blocks, at, false);
                blocks.push((false, vec![]));
                let test = blocks.len() - 1;
                let exit = new(blocks, test, false);
                let end = build(blocks, header, body, Some((test, exit)));
                if let Some(end) = end {
                    blocks[end].1.push(test);
                }
                blocks[test].1.push(header);
                exit
            }
            Statement::While(access, body) => {
                let header = new(blocks, at, *access);
                let exit = new(blocks, header, false);
                let start = new(blocks, header, false);
                if let Some(end) = build(blocks, start, body, Some((header, exit))) {
                    blocks[end].1.push(header);
                }
                exit
            }
            Statement::Continue | Statement::Break => {
                let Some((next, exit)) = around else { continue };
                let to = if matches!(statement, Statement::Continue) { next } else { exit };
                blocks[at].1.push(to);
                return None;
            }
        };
    }
    Some(at)
}

proptest! {
    #[test]
    fn what_is_told_is_true(
        graph in graphs(),
        choices in prop::collection::vec(0..60_usize, 200),
    ) {
        graph.check(&choices, false);
    }

    #[test]
    fn loops_of_structured_code_are_told(
        code in statements(),
        choices in prop::collection::vec(0..60_usize, 200),
    ) {
        let mut blocks = vec![(true, vec![])];
        build(&mut blocks, 0, &code, None);
        Graph(blocks).check(&choices, true);
    }
}
