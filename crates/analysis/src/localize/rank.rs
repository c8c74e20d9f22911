//! Falcon's ranking: how well a pattern tells failing runs from passing ones.

use rustc_hash::FxHashSet;

use super::facts::Pattern;
use super::procedures::{Procedure, Suspect};
use super::runs::{Counted, Runs};

/// How suspicion is computed from counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formula {
    /// failed(p) / (all failed + passed(p)), as Falcon has it.
    #[default]
    Jaccard,
    /// The share of failing runs against the share of passing ones.
    Tarantula,
    /// The cosine of the two.
    Ochiai,
    /// failed(p)² / (passed(p) + failed without p).
    DStar,
}

/// Runs with something, and all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Failing runs that have it.
    pub failed: usize,
    /// Passing runs that have it.
    pub passed: usize,
    /// All failing runs.
    pub n_failed: usize,
    /// All passing runs.
    pub n_passed: usize,
}

impl Formula {
    /// The suspicion that counts give. Infinite for DStar when nothing speaks against it.
    #[must_use]
    pub fn score(self, counts: Counts) -> f64 {
        let Counts { failed, passed, n_failed, n_passed } = counts;
        let [failed, passed, n_failed, n_passed] =
            [failed, passed, n_failed, n_passed].map(|n| n as f64);
        if failed == 0.0 {
            return 0.0;
        }
        match self {
            Self::Jaccard => failed / (n_failed + passed),
            Self::Tarantula => {
                let share = failed / n_failed;
                let other = if n_passed == 0.0 { 0.0 } else { passed / n_passed };
                share / (share + other)
            }
            Self::Ochiai => failed / (n_failed * (failed + passed)).sqrt(),
            Self::DStar => failed * failed / (passed + n_failed - failed),
        }
    }
}

/// A pattern in its place.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// The pattern.
    pub pattern: Pattern,
    /// Its counts.
    pub counts: Counts,
    /// Its suspicion.
    pub score: f64,
    /// From 1; those with the same suspicion share a rank.
    pub rank: usize,
    /// How many share it.
    pub ties: usize,
    /// A failing run that has it, or a passing one that has it the other way round.
    pub example: Example,
}

/// A run to show a pattern by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Example {
    /// This failing one has it.
    Failed(usize),
    /// Failing ones ended before its second access; this passing one has the two the other way
    /// round.
    Passed(usize),
}

/// All patterns of failing runs, the most suspect first; among equals triples before pairs.
///
/// Also what failing runs would have had if they had not ended before: what the second procedure
/// tells of them ([`procedures`](super::procedures)).
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
        let acts = suspect.pairs.iter().flat_map(|pair| [pair.head, pair.tail]).collect();
        Some(new(Pattern { acts }, suspect.counts, Example::Passed(suspect.passing?)))
    });
    let mut all: Vec<Ranked> = had.collect();
    let known: FxHashSet<Pattern> = all.iter().map(|ranked| ranked.pattern.clone()).collect();
    all.extend(unmet.filter(|ranked| !known.contains(&ranked.pattern)));
    all.sort_by(|one, two| {
        two.score
            .total_cmp(&one.score)
            .then(two.pattern.acts.len().cmp(&one.pattern.acts.len()))
            .then_with(|| one.pattern.cmp(&two.pattern))
    });
    // Competition ranking: the next rank counts those before.
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
    use crate::localize::facts::{Act, Facts, PatternFact};
    use crate::localize::window::{Entry, Policy, Window};
    use crate::witness::Deed;

    fn counts(failed: usize, passed: usize) -> Counts {
        Counts { failed, passed, n_failed: 4, n_passed: 4 }
    }

    #[test]
    fn formulas_give_what_they_are_known_for() {
        assert_eq!(Formula::Jaccard.score(counts(4, 0)), 1.0);
        assert_eq!(Formula::Jaccard.score(counts(2, 4)), 0.25);
        assert_eq!(Formula::Tarantula.score(counts(4, 4)), 0.5);
        assert_eq!(Formula::Ochiai.score(counts(1, 0)), 0.5);
        assert_eq!(Formula::DStar.score(counts(2, 0)), 2.0);
        assert_eq!(Formula::DStar.score(counts(4, 0)), f64::INFINITY);
        for formula in [Formula::Jaccard, Formula::Tarantula, Formula::Ochiai, Formula::DStar] {
            assert_eq!(formula.score(counts(0, 3)), 0.0);
        }
    }

    /// `W1,4` of a variable.
    #[derive(Clone, Copy)]
    struct Reference {
        deed: Deed,
        thread: u32,
        statement: u64,
    }

    impl Entry for Reference {
        fn thread(&self) -> u32 {
            self.thread
        }
        fn writes(&self) -> bool {
            self.deed.writes()
        }
    }

    /// What a run with these references to x and to y gives. Statements on y count from 100.
    fn run(variables: [&str; 2]) -> Facts {
        let mut patterns = BTreeMap::new();
        for (first, references) in [0, 100].into_iter().zip(variables) {
            let mut window = Window::default();
            let mut found = |references: &[&Reference], window: usize| {
                let act = |one: &&Reference| Act { site: Site(one.statement), deed: one.deed };
                let acts = references.iter().map(act).collect();
                patterns.insert(Pattern { acts }, window);
            };
            for word in references.split('-') {
                let deed = if word.starts_with('R') { Deed::Read } else { Deed::Write };
                let (thread, statement) = word[1..].split_once(',').expect("two numbers");
                let thread = thread.parse().expect("a number");
                let statement = first + statement.parse::<u64>().expect("a number");
                let one = Reference { deed, thread, statement };
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
        let triples: Vec<_> = ranked.iter().filter(|one| one.pattern.acts.len() == 3).collect();
        let sites =
            |one: &Ranked| one.pattern.acts.iter().map(|act| act.site.0).collect::<Vec<_>>();
        let told: Vec<_> =
            triples.iter().map(|one| (one.pattern.name(), sites(one), one.score)).collect();
        let name = || "W1-W2-R1".to_owned();
        assert_eq!(told, [(name(), vec![1, 4, 3], 0.5), (name(), vec![102, 105, 103], 0.5)]);
        assert!(triples.iter().all(|one| (one.rank, one.ties) == (1, ranked[0].ties)));
        // The others are in no failing run, and score nothing.
        let others = passed.iter().flat_map(|facts| &facts.patterns);
        for pattern in others.map(|fact| &fact.pattern) {
            if pattern.acts.len() == 3 && pattern.acts.iter().any(|act| act.site.0 % 100 > 5) {
                assert!(!ranked.iter().any(|one| one.pattern == *pattern));
            }
        }
    }

    /// In the passing run somebody looks at what was written; the failing one ended before.
    #[test]
    fn a_run_that_goes_on_to_three_accesses_has_the_first_two() {
        let passed = [run(["W1,1-W2,2-R1,3", "R1,1"])];
        let failed = [run(["W1,1-W2,2", "R1,1"])];
        let ranked = rank(&Runs { passed: &passed, failed: &failed }, Formula::Jaccard, &[]);
        let told: Vec<_> = ranked.iter().map(|one| (one.pattern.name(), one.score)).collect();
        assert_eq!(told, [("W1-W2".to_owned(), 0.5)]);
    }
}
