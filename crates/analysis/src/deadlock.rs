//! Lock cycles.
//!
//! After Havelund's GoodLock: an edge leads from each lock that a thread holds to each lock that
//! it then acquires. A cycle of edges, of any length, is a deadlock if each edge belongs to a
//! different thread, no lock held by two of them keeps them apart (a gate), and nothing orders
//! them. Reader-writer locks count by mode: two readers do not block each other, but two threads
//! that hold a lock for reading and both want to write do.
//!
//! Limits: whether each thread can get to its lock is not checked here. A thread that is created
//! while its creator holds a lock, and needs that lock on its way, cannot be part of a cycle with
//! that hold; [`crate::weave`] finds no schedule for it.

use rustc_hash::FxHashSet;

use crate::model::{Model, Nesting};
use crate::stop::is_requested;
use crate::witness::Witness;

/// Maximum number of paths searched from each edge. The search is depth first, so a long cycle is
/// found in as many steps as it has edges if there are few ways to go wrong.
const PATHS_MAX: usize = 5_000;

/// For each cycle, where each of its threads acquires the lock that the previous one waits for.
#[must_use]
pub fn cycles(model: &Model) -> Vec<Vec<Witness>> {
    let nestings: Vec<_> = model
        .nestings
        .iter()
        .filter(|nesting| {
            !model.words.is_other(nesting.outer.addr) && !model.words.is_other(nesting.inner.addr)
        })
        .collect();
    let nestings = within_cycles(nestings);
    let mut search =
        Search { model, nestings, found: Vec::new(), seen: FxHashSet::default(), n: 0 };
    for start in 0..search.nestings.len() {
        search.n = 0;
        search.extend(&mut vec![start]);
    }
    search.found
}

/// Drops edges from a lock that nobody waits for and edges to a lock that nobody holds while
/// waiting: no cycle contains them.
fn within_cycles(mut nestings: Vec<&Nesting>) -> Vec<&Nesting> {
    loop {
        let n = nestings.len();
        let outer: FxHashSet<_> = nestings.iter().map(|nesting| nesting.outer.addr).collect();
        let inner: FxHashSet<_> = nestings.iter().map(|nesting| nesting.inner.addr).collect();
        nestings.retain(|nesting| {
            outer.contains(&nesting.inner.addr) && inner.contains(&nesting.outer.addr)
        });
        if nestings.len() == n {
            return nestings;
        }
    }
}

struct Search<'a> {
    model: &'a Model,
    nestings: Vec<&'a Nesting>,
    found: Vec<Vec<Witness>>,
    seen: FxHashSet<Vec<(u64, u64)>>,
    n: usize,
}

impl Search<'_> {
    fn extend(&mut self, path: &mut Vec<usize>) {
        self.n += 1;
        if self.n > PATHS_MAX || is_requested() {
            return;
        }
        let (first, last) = (self.nestings[path[0]], self.nestings[path[path.len() - 1]]);
        if path.len() > 1 && waits_for(last, first) {
            self.close(path);
        }
        for next in 0..self.nestings.len() {
            let nesting = self.nestings[next];
            // The smallest thread starts, so that each cycle is found once.
            if nesting.inner.thread > first.inner.thread
                && waits_for(last, nesting)
                && path.iter().all(|&other| self.compatible(self.nestings[other], nesting))
            {
                path.push(next);
                self.extend(path);
                path.pop();
            }
        }
    }

    fn compatible(&self, one: &Nesting, two: &Nesting) -> bool {
        one.inner.thread != two.inner.thread
            && !self.model.exclude(one.inner.locks, two.inner.locks)
            && !self.model.ordered(&one.inner, &two.inner)
    }

    fn close(&mut self, path: &[usize]) {
        let cycle = || path.iter().map(|&at| self.nestings[at]);
        let sites = cycle().map(|nesting| (nesting.outer.pc.0, nesting.inner.pc.0)).collect();
        if self.seen.insert(sites) {
            let cycle = cycle().map(|nesting| nesting.outer).collect();
            self.found.push(cycle);
        }
    }
}

/// Whether `other` holds the inner lock of `one` in a mode that makes `one` wait.
fn waits_for(one: &Nesting, other: &Nesting) -> bool {
    one.inner.addr == other.outer.addr && !(one.inner_shared && other.outer_shared)
}
