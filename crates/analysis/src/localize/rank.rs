//! Falcon's ranking: how well a pattern separates failing from passing runs.

use rustc_hash::FxHashSet;

use super::facts::Pattern;
pub use super::formula::{Counts, Formula};
use super::procedures::{Procedure, Suspect};
use super::runs::{Counted, Runs};

/// A pattern with its rank.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// The pattern.
    pub pattern: Pattern,
    /// Number of runs that have it.
    pub counts: Counts,
    /// Its suspicion score.
    pub score: f64,
    /// The rank, from 1; equal scores share a rank.
    pub rank: usize,
    /// Number of patterns that share the rank.
    pub ties: usize,
    /// A failing run that has it, or a passing run that has it in the opposite order.
    pub example: Example,
}

/// A run that demonstrates a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Example {
    /// A failing run that has it.
    Failed(usize),
    /// A passing run that has the two accesses in the opposite order, since failing runs ended
    /// before the second one.
    Passed(usize),
}

/// All patterns of failing runs, the most suspicious first; triples before pairs on a tie.
///
/// Includes what failing runs would have had if they had not ended too early, as procedure II
/// determines it ([`procedures`](super::procedures)).
#[must_use]
pub fn rank(runs: &Runs<'_>, formula: Formula, suspects: &[Suspect]) -> Vec<Ranked> {
    let new = |pattern: Pattern, counts: Counts, example: Example| {
        let score = formula.score(counts);
        Ranked { pattern, counts, score, rank: 0, ties: 0, example }
    };
    let (n_failed, n_passed) = (runs.failed.len(), runs.passed.len());
    let had = runs.patterns().into_iter().map(|Counted { pattern, failed, passed, example }| {
        let counts = Counts { failed, passed, n_failed, n_passed };
        new(pattern.clone(), counts, Example::Failed(example))
    });
    let unmet = suspects.iter().filter(|suspect| suspect.procedure == Procedure::Two);
    let unmet = unmet.filter(|suspect| suspect.counts.failed > 0).filter_map(|suspect| {
        let accesses = suspect.pairs.iter().flat_map(|pair| [pair.head, pair.tail]).collect();
        Some(new(Pattern { accesses }, suspect.counts, Example::Passed(suspect.passing?)))
    });
    let mut all: Vec<Ranked> = had.collect();
    let known: FxHashSet<Pattern> = all.iter().map(|ranked| ranked.pattern.clone()).collect();
    all.extend(unmet.filter(|ranked| !known.contains(&ranked.pattern)));
    all.sort_by(|one, two| {
        two.score
            .total_cmp(&one.score)
            .then(two.pattern.accesses.len().cmp(&one.pattern.accesses.len()))
            .then_with(|| one.pattern.cmp(&two.pattern))
    });
    // Competition ranking: a rank is one more than the number of better patterns.
    let mut start = 0;
    while start < all.len() {
        let same = |ranked: &Ranked| ranked.score.total_cmp(&all[start].score).is_eq();
        let ties = all[start..].iter().take_while(|ranked| same(ranked)).count();
        for ranked in &mut all[start..start + ties] {
            (ranked.rank, ranked.ties) = (start + 1, ties);
        }
        start += ties;
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use raddle_trace::id::Site;

    use super::*;
    use crate::localize::facts::{Facts, PatternFact, SiteAccess};
    use crate::localize::window::{Entry, Policy, Window};
    use crate::witness::AccessKind;

    /// An access to a variable, such as `W1,4`.
    #[derive(Clone, Copy)]
    struct Reference {
        kind: AccessKind,
        thread: u32,
        statement: u64,
    }

    impl Entry for Reference {
        fn thread(&self) -> u32 {
            self.thread
        }
        fn writes(&self) -> bool {
            self.kind.writes()
        }
    }

    /// The facts of a run with these references to x and to y. Statements on y count from 100.
    fn run(variables: [&str; 2]) -> Facts {
        let mut patterns = BTreeMap::new();
        for (first, references) in [0, 100].into_iter().zip(variables) {
            let mut window = Window::default();
            let mut found = |references: &[&Reference], window: usize| {
                let access =
                    |one: &&Reference| SiteAccess { site: Site(one.statement), kind: one.kind };
                let accesses = references.iter().map(access).collect();
                patterns.insert(Pattern { accesses }, window);
            };
            for word in references.split('-') {
                let kind = if word.starts_with('R') { AccessKind::Read } else { AccessKind::Write };
                let (thread, statement) = word[1..].split_once(',').expect("two numbers");
                let thread = thread.parse().expect("a number");
                let statement = first + statement.parse::<u64>().expect("a number");
                let one = Reference { kind, thread, statement };
                window.push(one, 5, Policy::Paper, &mut found);
            }
            window.drain(&mut found);
        }
        let fact = |(pattern, window): (Pattern, usize)| PatternFact {
            pattern,
            points: Vec::new(),
            stacks: Vec::new(),
            window: window as u8,
        };
        Facts { patterns: patterns.into_iter().map(fact).collect(), ..Facts::default() }
    }

    #[test]
    fn figure_1_scores_as_printed() {
        const X_THIRD: &str = "R1,1-W1,1-R3,6-W3,6-R2,4-R1,3";
        const X_SECOND: &str = "R1,1-W1,1-R2,4-W2,4-R3,6-R1,3";
        const Y_THIRD: &str = "R1,2-W1,2-R3,7-W3,7-R2,5-R1,3";
        const Y_SECOND: &str = "R1,2-W1,2-R2,5-W2,5-R3,7-R1,3";
        let passed = [run([X_THIRD, Y_THIRD]), run([X_THIRD, Y_SECOND]), run([X_SECOND, Y_THIRD])];
        let failed = [run([X_SECOND, Y_SECOND])];
        let ranked = rank(&Runs { passed: &passed, failed: &failed }, Formula::Jaccard, &[]);
        let triples: Vec<_> = ranked.iter().filter(|one| one.pattern.accesses.len() == 3).collect();
        let sites = |one: &Ranked| {
            one.pattern.accesses.iter().map(|access| access.site.0).collect::<Vec<_>>()
        };
        let told: Vec<_> =
            triples.iter().map(|one| (one.pattern.name(), sites(one), one.score)).collect();
        let name = || "W1-W2-R1".to_owned();
        assert_eq!(told, [(name(), vec![1, 4, 3], 0.5), (name(), vec![102, 105, 103], 0.5)]);
        assert!(triples.iter().all(|one| (one.rank, one.ties) == (1, ranked[0].ties)));
        // No failing run has the others, so they have no score.
        let others = passed.iter().flat_map(|facts| &facts.patterns);
        for pattern in others.map(|fact| &fact.pattern) {
            if pattern.accesses.len() == 3
                && pattern.accesses.iter().any(|access| access.site.0 % 100 > 5)
            {
                assert!(!ranked.iter().any(|one| one.pattern == *pattern));
            }
        }
    }

    /// In the passing run another thread reads the written value; the failing run ended before.
    #[test]
    fn a_run_that_goes_on_to_three_accesses_has_the_first_two() {
        let passed = [run(["W1,1-W2,2-R1,3", "R1,1"])];
        let failed = [run(["W1,1-W2,2", "R1,1"])];
        let ranked = rank(&Runs { passed: &passed, failed: &failed }, Formula::Jaccard, &[]);
        let told: Vec<_> = ranked.iter().map(|one| (one.pattern.name(), one.score)).collect();
        assert_eq!(told, [("W1-W2".to_owned(), 0.5)]);
    }
}
