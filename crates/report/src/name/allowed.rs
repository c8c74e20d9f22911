//! What was allowed, in words.

use raddle_lab::budget::{AllowedTally, Budget};
use raddle_symbols::name::Namer;
use raddle_trace::allow::Judgement;
use raddle_trace::run::Run;
use raddle_trial::allowed::Lifted;

use super::Names;

impl Names<'_> {
    /// What a run was allowed; none if nothing.
    #[must_use]
    pub fn allowed(&self, run: &Run, allowed: &[Lifted]) -> Option<String> {
        let namer = Namer::new(run, self.cache);
        note(allowed.iter().map(|lifted| {
            let site = namer.own_site(lifted.pc, None);
            format!("{}, first at {site}", counted(lifted.judgement, lifted.n))
        }))
    }

    /// What all runs of a command were allowed; none if nothing.
    #[must_use]
    pub fn allowed_in_all(&self, budget: &Budget) -> Option<String> {
        let n_runs = budget.n_runs();
        note(budget.allowed().iter().map(|tally| {
            let AllowedTally { judgement, n, n_runs: n_with, pc, run, .. } = tally;
            let (what, site) =
                (counted(*judgement, *n), Namer::new(run, self.cache).own_site(*pc, None));
            match n_runs {
                1 => format!("{what}, first at {site}"),
                _ => format!("{what} in {n_with} of {n_runs} runs, for example at {site}"),
            }
        }))
    }
}

fn note(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| format!("allowed: {}", parts.join("; ")))
}

/// How often something was allowed.
fn counted(judgement: Judgement, n: u64) -> String {
    let (one, several) = match judgement {
        Judgement::UseAfterFree => ("use after free", "uses after free"),
        Judgement::DoubleFree => ("double free", "double frees"),
        Judgement::ForeignUnlock => (
            "unlock by a thread that does not hold the lock",
            "unlocks by threads that do not hold the lock",
        ),
        Judgement::Destroyed => ("destroyed object in use", "destroyed objects in use"),
        Judgement::Misuse => ("misuse of an object", "misuses of objects"),
        Judgement::SelfDeadlock => ("relock of a held lock", "relocks of held locks"),
    };
    format!("{n} {}", if n == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        assert_eq!(counted(Judgement::UseAfterFree, 1), "1 use after free");
        assert_eq!(counted(Judgement::UseAfterFree, 3), "3 uses after free");
        assert_eq!(note(std::iter::empty()), None);
    }
}
