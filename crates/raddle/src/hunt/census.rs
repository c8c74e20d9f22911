//! How many runs had which accesses follow each other.

use raddle_analysis::observed::{Observed, Sites};
use raddle_trace::id::Pc;
use rustc_hash::{FxHashMap, FxHashSet};

/// Counts runs that ended alike.
#[derive(Debug, Default)]
pub(crate) struct Census {
    n_runs: u32,
    counts: FxHashMap<Sites, u32>,
    sites: FxHashSet<Pc>,
}

impl Census {
    /// Takes in a run. Whether it had anything that no other had.
    pub(crate) fn add(&mut self, observed: &Observed) -> bool {
        self.n_runs += 1;
        let mut new = false;
        for sites in observed.sequences.keys() {
            match self.counts.get_mut(sites) {
                Some(n) => *n += 1,
                None => {
                    self.counts.insert(sites.clone(), 1);
                    self.sites.extend(sites.iter().map(|&(_, pc)| pc));
                    new = true;
                }
            }
        }
        new
    }

    /// How many runs had this.
    pub(crate) fn n_with(&self, sites: &Sites) -> u32 {
        self.counts.get(sites).copied().unwrap_or(0)
    }

    /// Whether any run had this site.
    pub(crate) fn has_site(&self, pc: Pc) -> bool {
        self.sites.contains(&pc)
    }

    /// How well a sequence tells the runs of this census, which failed, from others that
    /// passed: 0 to 100, Jaccard's coefficient, as Falcon ranks with it.
    pub(crate) fn suspicion(&self, sites: &Sites, passing: &Self) -> u32 {
        let n_all = self.n_runs + passing.n_with(sites);
        self.n_with(sites) * 100 / n_all.max(1)
    }
}
