//! What was compared, with names.

use std::collections::{BTreeMap, BTreeSet};

use raddle_analysis::localize::facts::Pattern as Acts;
use raddle_analysis::localize::procedures::Procedure as Found;
use raddle_lab::budget::Budget;
use raddle_lab::compare::{Group as Compared, RankedPair, RankedPattern};
use raddle_lab::localize::collect::Collected;
use raddle_symbols::name::Namer;
use raddle_trace::id::Site;
use raddle_trace::run::Run;

use super::Names;
use super::access::Named;
use super::hunt::trials;
use crate::model::{
    Coverage, Forced, Group, Localization, Pair, PairAccesses, Pattern, Procedure, Runs, Score,
    Stopped,
};

/// Runs that were compared.
pub struct LocalizationInput<'a> {
    /// The runs.
    pub collected: &'a Collected,
    /// Failures, the most frequent first.
    pub groups: &'a [Compared],
    /// What it took; none if nothing was executed.
    pub budget: Option<&'a Budget>,
}

impl Names<'_> {
    /// What was compared, with names.
    #[must_use]
    pub fn localization(&self, input: &LocalizationInput<'_>) -> Localization {
        let LocalizationInput { collected, groups, budget } = *input;
        let n_failed = collected.n_failed();
        let groups: Vec<Group> = groups.iter().map(|group| self.group_of_runs(group)).collect();
        let first = groups.first();
        let facts = collected.samples.iter().map(|sample| &sample.facts);
        let mut notes = notes(&groups, collected);
        notes.extend(budget.and_then(|budget| self.allowed_in_all(budget)));
        let mut windows = BTreeMap::<u8, usize>::new();
        for fact in facts.clone().flat_map(|facts| &facts.patterns) {
            *windows.entry(fact.window).or_default() += 1;
        }
        Localization {
            runs: Runs { passed: collected.samples.len() - n_failed, failed: n_failed },
            trials: budget.map(|budget| trials(budget, 0)).unwrap_or_default(),
            stopped: match budget {
                Some(budget) if budget.is_interrupted() => Stopped::Interrupted,
                Some(budget) if budget.is_stopped() => Stopped::Time,
                Some(_) | None => Stopped::Runs,
            },
            coverage: coverage(collected),
            patterns: first.map(|group| group.patterns.clone()).unwrap_or_default(),
            pairs: first.map(|group| group.pairs.clone()).unwrap_or_default(),
            notes,
            groups,
            windows: windows.into_iter().collect(),
        }
    }

    fn group_of_runs(&self, group: &Compared) -> Group {
        let failed = &group.failed;
        let shown = group.patterns.iter().map(|pattern| &pattern.shown);
        let shown: Vec<_> = shown.chain(group.pairs.iter().map(|pair| &pair.shown)).collect();
        // Accesses of one run in one pass over its trace.
        let mut named: Vec<Named> = shown.iter().map(|_| Named::default()).collect();
        for (number, example) in group.examples.iter().enumerate() {
            let members: Vec<usize> =
                (0..shown.len()).filter(|&at| shown[at].example == number).collect();
            let accesses: Vec<_> = members.iter().map(|&at| &shown[at].accesses[..]).collect();
            let all = self.accesses(&example.run, example.trace.as_deref(), &accesses);
            for (at, group) in members.into_iter().zip(all) {
                named[at] = group;
            }
        }
        let pairs = named.split_off(group.patterns.len());
        let pattern = |(pattern, named): (&RankedPattern, Named)| {
            let run = &group.examples[pattern.shown.example].run;
            self.pattern(pattern, named, run)
        };
        Group {
            failure: self.failure(&group.run, &failed.outcome, &failed.failure, None),
            runs: Runs { passed: group.n_passed, failed: group.n_failed },
            patterns: group.patterns.iter().zip(named).map(pattern).collect(),
            pairs: group.pairs.iter().zip(pairs).map(|(one, named)| pair(one, named)).collect(),
        }
    }

    fn pattern(&self, ranked: &RankedPattern, named: Named, run: &Run) -> Pattern {
        let namer = Namer::new(run, self.cache);
        let site = |&site: &Site| {
            run.pc(site).map_or_else(|| site.to_string(), |pc| namer.own_site(pc, None))
        };
        let pattern = match &named.accesses[..] {
            // A thread that waits for a lock that it holds itself.
            [one, two] if one.thread == two.thread => format!("{}1-{}1", one.op, two.op),
            _ => Acts { accesses: ranked.accesses.clone() }.name(),
        };
        Pattern {
            rank: ranked.rank.rank,
            ties: ranked.rank.n_ties,
            score: Score::from(ranked.score),
            pattern,
            variable: named.variable,
            accesses: named.accesses,
            stacks: ranked.stacks.iter().map(|stack| stack.iter().map(site).collect()).collect(),
            passed: ranked.counts.passed,
            failed: ranked.counts.failed,
            confirmed: ranked.evidence.confirmed(),
            forced: Forced::from(ranked.evidence.forced),
            gone: ranked.evidence.gone,
        }
    }
}

fn pair(ranked: &RankedPair, named: Named) -> Pair {
    let mut accesses = named.accesses.into_iter();
    let mut pairs = Vec::new();
    while let (Some(head), Some(tail)) = (accesses.next(), accesses.next()) {
        pairs.push(PairAccesses { head, tail });
    }
    Pair {
        rank: ranked.rank,
        procedure: match ranked.procedure {
            Found::One => Procedure::One,
            Found::Two => Procedure::Two,
            Found::Three(_) => Procedure::Three,
            Found::Often => Procedure::Often,
        },
        level: ranked.procedure.level().map(ToOwned::to_owned),
        pairs,
        score: Score::from(ranked.score),
        passed: ranked.counts.passed,
        failed: ranked.counts.failed,
        confirmed: ranked.evidence.confirmed(),
        forced: Forced::from(ranked.evidence.forced),
        gone: ranked.evidence.gone,
    }
}

/// The pairs and patterns that runs had.
fn coverage(collected: &Collected) -> Coverage {
    let (mut pairs, mut patterns) = (BTreeSet::new(), BTreeSet::new());
    let mut coverage = Coverage::default();
    for facts in collected.samples.iter().map(|sample| &sample.facts) {
        pairs.extend(facts.pairs.iter().map(|fact| fact.pair));
        patterns.extend(facts.patterns.iter().map(|fact| &fact.pattern));
        let n_orders = pairs.len() + patterns.len();
        let since_new = if n_orders > coverage.orders { 0 } else { coverage.since_new + 1 };
        coverage = Coverage { orders: n_orders, since_new, since_new_recorded: since_new };
    }
    coverage
}

/// What the user should know beside the ranking.
fn notes(groups: &[Group], collected: &Collected) -> Vec<String> {
    let mut notes = Vec::new();
    let kinds: BTreeSet<_> = groups.iter().map(|group| group.failure.kind.as_str()).collect();
    let n = groups.len();
    if kinds.len() > 1 {
        let kinds: Vec<_> = kinds.into_iter().collect();
        notes.push(format!(
            "the runs failed in {n} ways of different kinds ({}), analyzed separately; choose one with --expect-exit or --oracle",
            kinds.join(", ")
        ));
    } else if n > 1 {
        notes.push(format!("the runs failed in {n} different ways, analyzed separately"));
    }
    let n_left_out = collected.samples.iter().map(|one| one.facts.n_left_out).max().unwrap_or(0);
    if n_left_out > 0 {
        notes.push(format!(
            "the threads share more memory than can be watched; {n_left_out} places were left out"
        ));
    }
    if collected.n_not_judged > 0 {
        notes.push(format!(
            "{} runs could not be judged and were left out: {}",
            collected.n_not_judged,
            collected.not_judged.as_deref().unwrap_or_default()
        ));
    }
    notes
}
