//! Circles of locks.
//!
//! After Havelund's GoodLock: an edge from each lock that a thread holds to each that it
//! takes then. A circle of edges, of any length, is a deadlock if each edge is another
//! thread's, no lock held by two of them keeps them apart (a gate), and nothing orders them.
//! Reader-writer locks count by mode: two readers do not wait for each other, but two
//! that hold a lock for reading and both want to write do.

use rustc_hash::FxHashSet;

use crate::model::{Model, Nesting};
use crate::witness::Witness;

/// Paths that are looked at from each edge, at most. The search goes deep first, so that a long
/// circle is found within as many steps as it has edges if there are few ways to go wrong.
const PATHS_MAX: usize = 5_000;

/// Per circle, where each of its threads takes the lock that the one before it waits for.
#[must_use]
pub fn cycles(model: &Model) -> Vec<Vec<Witness>> {
    let nestings: Vec<_> = model
        .nestings
        .iter()
        .filter(|nesting| {
            !model.words.is_other(nesting.outer.addr) && !model.words.is_other(nesting.inner.addr)
        })
        .collect();
    let nestings = within_circles(nestings);
    let mut search =
        Search { model, nestings, found: Vec::new(), seen: FxHashSet::default(), n: 0 };
    for start in 0..search.nestings.len() {
        search.n = 0;
        search.extend(&mut vec![start]);
    }
    search.found
}

/// Without edges from a lock that nobody else waits for, and to one that nobody holds while
/// waiting: no circle goes through them.
fn within_circles(mut nestings: Vec<&Nesting>) -> Vec<&Nesting> {
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
        if self.n > PATHS_MAX {
            return;
        }
        let (first, last) = (self.nestings[path[0]], self.nestings[path[path.len() - 1]]);
        if path.len() > 1 && waits_for(last, first) {
            self.close(path);
        }
        for next in 0..self.nestings.len() {
            let nesting = self.nestings[next];
            // The smallest thread starts, so that each circle is found once.
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
        let circle = || path.iter().map(|&at| self.nestings[at]);
        let sites = circle().map(|nesting| (nesting.outer.pc.0, nesting.inner.pc.0)).collect();
        if self.seen.insert(sites) {
            let circle = circle().map(|nesting| nesting.outer).collect();
            self.found.push(circle);
        }
    }
}

/// Whether the one's inner lock is what the other holds, in a mode that makes it wait.
fn waits_for(one: &Nesting, other: &Nesting) -> bool {
    one.inner.addr == other.outer.addr && !(one.inner_shared && other.outer_shared)
}
