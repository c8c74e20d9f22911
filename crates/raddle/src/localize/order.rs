//! The order in which suspects are told.
//!
//! Where accesses are comes first ([`Place`]), then what executions say of them, then what
//! comparing says: what is far less suspect than others is not told before them, though
//! executions confirm it, since almost any change to a run can make it fail by accident.

use raddle_analysis::localize::facts::Act;
use raddle_report::symbols::name::Namer;
use raddle_trace::id::Site;
use raddle_trace::run::Run;

use super::again::{self, Again};
use super::confirm::Evidence;
use super::sample::Sample;

/// What executions and comparing say together: the less the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing {
    weight: u8,
    is_weak: bool,
}

/// The standing of suspects by their evidence and suspicion.
pub(crate) fn standings(suspects: impl Iterator<Item = (Evidence, f64)> + Clone) -> Vec<Standing> {
    let open = suspects.clone().filter(|(evidence, _)| weight(*evidence) <= UNKNOWN);
    let best = open.map(|(_, score)| score).fold(0.0, f64::max);
    suspects
        .map(|(evidence, score)| {
            let is_weak = score < best / 2.0;
            let weight = weight(evidence);
            Standing { weight: if is_weak { weight.max(UNKNOWN) } else { weight }, is_weak }
        })
        .collect()
}

/// Nothing is known, or as much for it as against it.
const UNKNOWN: u8 = 1;

const fn weight(evidence: Evidence) -> u8 {
    match (evidence.forced.fails(), evidence.gone) {
        (Some(true), Some(true) | None) => 0,
        (Some(true), Some(false)) | (None, _) => UNKNOWN,
        (Some(false), Some(true) | None) => 2,
        (Some(false), Some(false)) => 3,
    }
}

/// A place, once executions have spoken: a confirmed cause may be anywhere in the code.
pub(crate) const fn place(
    [foreign, unusual, fixed, lock]: [bool; 4],
    standing: Standing,
) -> [bool; 4] {
    match standing.weight {
        0 => [false, false, fixed, lock],
        _ => [foreign, unusual, fixed, lock],
    }
}

/// Where a cause is to be looked for first.
pub(crate) struct Place<'a> {
    run: &'a Run,
    namer: Namer,
    passed: &'a [Sample],
    failed: Option<&'a Again>,
}

impl<'a> Place<'a> {
    /// By the names of a failed run, by passing runs, and by that run once more.
    pub(crate) fn new(run: &'a Run, passed: &'a [Sample], failed: Option<&'a Again>) -> Self {
        Self { run, namer: Namer::new(run), passed, failed }
    }

    /// The less the better. First the program's own code; in it what passing runs come to as
    /// well, since what only failing runs come to is most often an effect; then accesses whose
    /// order could be another one, and that are not a lock's, which only follow the others.
    pub(crate) fn of(&self, acts: &[Act]) -> [bool; 4] {
        let is_usual = |act: &Act| self.passed.iter().any(|sample| sample.facts.has(*act));
        let n_pairs = if acts.len() == 4 { 2 } else { acts.len() - 1 };
        [
            !acts.iter().all(|act| self.is_own(act.site)),
            !acts.iter().all(is_usual),
            self.n_fixed(acts) == n_pairs,
            self.failed.is_some_and(|run| acts.iter().all(|act| run.is_of_lock(*act))),
        ]
    }

    /// How many pairs of accesses that follow each other do so in any order of threads.
    pub(crate) fn n_fixed(&self, acts: &[Act]) -> usize {
        let Some(run) = self.failed else { return 0 };
        let is_fixed = |pair: &&[Act]| run.is_fixed(pair[0], pair[1]);
        match acts.len() {
            4 => acts.chunks(2).filter(is_fixed).count(),
            _ => acts.windows(2).filter(is_fixed).count(),
        }
    }

    /// Tells the program's own code from that of libraries, where a cause rarely is.
    fn is_own(&self, site: Site) -> bool {
        let pc = again::pc(self.run, site);
        pc.is_some_and(|pc| self.namer.site(pc).own_frame().is_some())
    }
}
