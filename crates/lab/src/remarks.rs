//! Mistakes that executions did not fail by, added up.

use raddle_trace::id::Site;
use raddle_trace::run::Run;
use raddle_trial::remarked::Remarked;

/// A mistake at one place in the code, in all executions.
#[derive(Clone, Debug)]
pub struct RemarkTally {
    /// What, where, and how often in all.
    pub remarked: Remarked,
    /// In which executions.
    pub runs: RunSet,
    /// What knows the place's name.
    pub run: Run,
    site: Site,
}

/// Executions, by number. One bit each: a hunt may have many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSet(Vec<u64>);

impl RunSet {
    /// Adds an execution.
    pub fn insert(&mut self, number: usize) {
        let at = number / 64;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (number % 64);
    }

    /// Adds those of another set.
    pub fn extend(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (to, from) in self.0.iter_mut().zip(&other.0) {
            *to |= from;
        }
    }

    /// How many there are.
    #[must_use]
    pub fn n_runs(&self) -> usize {
        self.0.iter().map(|bits| bits.count_ones() as usize).sum()
    }
}

/// The tallies of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemarkTallies {
    // invariant: sorted by kind and place
    pub(crate) tallies: Vec<RemarkTally>,
    n_runs: usize,
}

impl RemarkTallies {
    /// Adds what an execution showed.
    pub(crate) fn count(&mut self, remarks: &[Remarked], run: &Run) {
        let number = self.n_runs;
        self.n_runs += 1;
        for remarked in remarks {
            let site = run.site(remarked.pc);
            let key = (&remarked.mistake, site);
            let at = self
                .tallies
                .binary_search_by(|tally| (&tally.remarked.mistake, tally.site).cmp(&key))
                .unwrap_or_else(|at| {
                    let remarked = Remarked { n: 0, ..remarked.clone() };
                    let (run, runs) = (run.clone(), RunSet::default());
                    self.tallies.insert(at, RemarkTally { remarked, runs, run, site });
                    at
                });
            let tally = &mut self.tallies[at];
            tally.remarked.n += remarked.n;
            tally.runs.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::Mode;
    use raddle_trace::id::Pc;
    use raddle_trace::run::Module;
    use raddle_trial::remarked::Mistake;

    use super::*;

    #[test]
    fn mistakes_at_one_place_are_added_up() {
        let module = Module {
            path: "/bank".to_owned(),
            build_id: String::new(),
            base: 0,
            low: 0,
            high: 0x1000,
        };
        let run = Run {
            command: Vec::new(),
            directory: String::new(),
            mode: Mode::Controlled,
            policy: None,
            seed: 0,
            modules: vec![module],
            threads: Vec::new(),
            ending: None,
        };
        let errno = |signal| Mistake::HandlerErrno { signal };
        let remarked = |mistake, pc, n| Remarked { mistake, pc: Pc(pc), n };
        let mut tallies = RemarkTallies::default();
        tallies.count(&[remarked(errno(14), 0x200, 2), remarked(Mistake::Leak, 0x300, 1)], &run);
        tallies.count(&[], &run);
        tallies.count(&[remarked(errno(10), 0x200, 1), remarked(errno(14), 0x100, 4)], &run);
        tallies.count(&[remarked(errno(14), 0x200, 3)], &run);
        let tally = |tally: &RemarkTally| {
            let Remarked { mistake, pc, n } = &tally.remarked;
            (mistake.clone(), pc.0, *n, tally.runs.n_runs())
        };
        let tallies: Vec<_> = tallies.tallies.iter().map(tally).collect();
        assert_eq!(
            tallies,
            [
                (errno(10), 0x200, 1, 1),
                (errno(14), 0x100, 4, 1),
                (errno(14), 0x200, 5, 2),
                (Mistake::Leak, 0x300, 1, 1),
            ]
        );
    }

    #[test]
    fn a_run_of_two_sets_counts_once() {
        let set = |numbers: &[usize]| {
            let mut set = RunSet::default();
            numbers.iter().for_each(|&number| set.insert(number));
            set
        };
        let mut all = set(&[1, 63]);
        all.extend(&set(&[63, 64, 300]));
        assert_eq!((all.n_runs(), all), (4, set(&[1, 63, 64, 300])));
    }
}
