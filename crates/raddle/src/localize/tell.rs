//! What was localized, for people and for programs.

use std::fmt::Write as _;

use raddle_analysis::localize::facts::{Act, Facts};
use raddle_analysis::localize::procedures::Procedure;
use raddle_analysis::localize::rank::Counts;
use serde_json::{Value, json};

use super::confirm::Evidence;
use super::order::Rank;
use super::sample::Fail;
use crate::hunt::finding::{Access, Finding};
use crate::hunt::tell;

/// A failure, and what is to blame for it.
pub(crate) struct Group {
    pub(crate) failure: Fail,
    pub(crate) n_failed: usize,
    pub(crate) n_passed: usize,
    pub(crate) patterns: Vec<PatternTold>,
    pub(crate) pairs: Vec<PairTold>,
}

/// A pattern in its place.
pub(crate) struct PatternTold {
    pub(crate) rank: Rank,
    pub(crate) score: f64,
    pub(crate) name: String,
    pub(crate) acts: Vec<Act>,
    /// Pairs of them that could not come in another order.
    pub(crate) n_fixed: usize,
    pub(crate) accesses: Vec<Access>,
    /// Who had called the function of each access, innermost first.
    pub(crate) stacks: Vec<Vec<String>>,
    pub(crate) counts: Counts,
    pub(crate) evidence: Evidence,
}

/// A pair, or a couple of them, in its place.
pub(crate) struct PairTold {
    pub(crate) rank: usize,
    pub(crate) procedure: Procedure,
    pub(crate) acts: Vec<Act>,
    /// Head and tail of each.
    pub(crate) pairs: Vec<[Access; 2]>,
    pub(crate) counts: Counts,
    pub(crate) score: f64,
    pub(crate) evidence: Evidence,
}

impl Group {
    /// In words.
    pub(crate) fn text(&self, shown: usize) -> String {
        let mut text = String::new();
        let Self { n_failed, n_passed, .. } = self;
        let _ = writeln!(
            text,
            "{}\n{n_failed} failing and {n_passed} passing runs compared",
            self.failure.text.trim_end()
        );
        if self.patterns.is_empty() && self.pairs.is_empty() {
            text.push_str(
                "\nthey do not differ in the accesses of different threads to the same memory\n",
            );
        }
        if !self.pairs.is_empty() {
            text.push_str("\naccess pairs to blame\n");
        }
        // Far less suspect than the first is not suspect, unless it was found out to be.
        let least = self.pairs.first().map_or(0.0, |first| first.score / 2.0);
        let is_suspect = |told: &&PairTold| {
            let is_weak = told.procedure == Procedure::Often && told.score < least;
            !is_weak || told.evidence.confirmed() == Some(true)
        };
        for told in self.pairs.iter().filter(is_suspect).take(shown) {
            let _ = writeln!(text, "{}. {}{}", told.rank, told.words(), confirmed(told.evidence));
            for pair in &told.pairs {
                text.push_str(&tell::accesses(pair));
            }
        }
        if !self.patterns.is_empty() {
            text.push_str("\npatterns by suspicion\n");
        }
        // The same.
        let least = self.patterns.first().map_or(0.0, |first| first.score / 2.0);
        for told in self.patterns.iter().take(shown).take_while(|told| told.score >= least) {
            let Counts { failed, passed, n_failed, n_passed } = told.counts;
            let on = Finding::variables(&told.accesses);
            let on = on.map_or(String::new(), |on| format!(" on {on}"));
            let ties = match told.rank.n_ties {
                1 => String::new(),
                n => format!(", shared by {n}"),
            };
            let _ = writeln!(
                text,
                "{}. {}{on}: {:.2}{ties}; {failed} of {n_failed} failing, {passed} of {n_passed} passing runs{}",
                told.rank.rank,
                told.name,
                told.score,
                confirmed(told.evidence)
            );
            text.push_str(&tell::accesses(&told.accesses));
        }
        text
    }

    /// As other programs read it.
    pub(crate) fn json(&self) -> Value {
        let patterns: Vec<_> = self.patterns.iter().map(PatternTold::json).collect();
        let pairs: Vec<_> = self.pairs.iter().map(PairTold::json).collect();
        let Fail { kind, detail, file, line, .. } = &self.failure;
        json!({
            "failure": {"kind": kind, "detail": detail, "file": file, "line": line},
            "runs": {"passed": self.n_passed, "failed": self.n_failed},
            "patterns": patterns,
            "pairs": pairs,
        })
    }
}

impl PatternTold {
    fn json(&self) -> Value {
        json!({
            "rank": self.rank.rank,
            "ties": self.rank.n_ties,
            // Not every score is a number in JSON.
            "score": if self.score.is_finite() { json!(self.score) } else { json!("infinite") },
            "pattern": self.name,
            "accesses": self.accesses.iter().map(Access::json).collect::<Vec<_>>(),
            "stacks": self.stacks,
            "passed": self.counts.passed,
            "failed": self.counts.failed,
            "confirmed": self.evidence.confirmed(),
            "forced": self.evidence.forced.json(),
            "gone": self.evidence.gone,
        })
    }

    /// For Graphviz: the accesses in their order, each in the column of its thread.
    pub(crate) fn dot(&self) -> String {
        let mut text = String::from("digraph pattern {\n  node [shape=box, fontname=monospace];\n");
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        for (at, access) in self.accesses.iter().enumerate() {
            let _ = writeln!(
                text,
                "  a{at} [group=\"{0}\", label=\"{0}\\n{1} {2}\\n{3}\"];",
                quoted(&access.thread),
                access.deed.letter(),
                quoted(&access.variable),
                quoted(&access.site),
            );
        }
        for at in 1..self.accesses.len() {
            let _ = writeln!(text, "  a{} -> a{at};", at - 1);
        }
        text.push_str("}\n");
        text
    }
}

impl PairTold {
    fn words(&self) -> String {
        match self.procedure {
            Procedure::One => "only failing runs have it (procedure I)".into(),
            Procedure::Two => {
                "passing runs have it the other way round, and the failing run ended before \
                 (procedure II)"
                    .into()
            }
            Procedure::Three(_) => format!(
                "no passing run has both (procedure III, by {})",
                self.procedure.level().unwrap_or_default()
            ),
            Procedure::Often => {
                let Counts { failed, passed, n_failed, n_passed } = self.counts;
                format!("{failed} of {n_failed} failing, {passed} of {n_passed} passing runs")
            }
        }
    }

    fn json(&self) -> Value {
        let pairs: Vec<_> = self
            .pairs
            .iter()
            .map(|[head, tail]| json!({"head": head.json(), "tail": tail.json()}))
            .collect();
        json!({
            "rank": self.rank,
            "procedure": self.procedure.name(),
            "level": self.procedure.level(),
            "pairs": pairs,
            "passed": self.counts.passed,
            "failed": self.counts.failed,
            "confirmed": self.evidence.confirmed(),
            "forced": self.evidence.forced.json(),
            "gone": self.evidence.gone,
        })
    }
}

fn confirmed(evidence: Evidence) -> String {
    match evidence.confirmed() {
        Some(true) if evidence.forced.n_failed > 0 => {
            format!("; confirmed: {}", evidence.forced)
        }
        Some(true) => "; confirmed: the other way round, the failing run passes".into(),
        Some(false) => "; not confirmed".into(),
        None => String::new(),
    }
}

/// How large the windows were that patterns needed.
pub(crate) fn histogram<'a>(runs: impl Iterator<Item = &'a Facts>) -> String {
    let mut counts = std::collections::BTreeMap::<u8, usize>::new();
    for facts in runs {
        for fact in &facts.patterns {
            *counts.entry(fact.window).or_default() += 1;
        }
    }
    let most = counts.values().copied().max().unwrap_or(0).max(1);
    let mut text = String::from("windows that patterns needed\n");
    for (window, n) in counts {
        let _ = writeln!(text, "{window:4}  {n:8}  {}", "█".repeat((n * 40).div_ceil(most)));
    }
    text
}
