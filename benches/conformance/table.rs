//! The results, in Markdown.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use raddle_bench_shared::verdict::{COLUMNS, Verdict};

use crate::differs::Differs;
use crate::trial::{Outcome, POLICIES, Verdicts};

/// Outcomes by name of the test.
type Results<'r> = [(&'r str, Outcome)];

/// What was run.
pub(crate) fn conditions(glibc: &Path, results: &Results<'_>, took: Duration) -> String {
    let glibc = glibc.file_name().unwrap_or_default().display();
    let n_usable = usable(results).count();
    let n_agree = usable(results).filter(|(_, verdicts)| verdicts.agrees()).count();
    format!(
        "Thread tests of {glibc}: {n_usable} of {} are usable, and {n_agree} of those agree with native runs under every policy ({:.0} minutes).",
        results.len(),
        took.as_secs_f64() / 60.0
    )
}

/// How many tests have which verdict.
pub(crate) fn counts(results: &Results<'_>) -> String {
    let mut text =
        format!("| | {} |\n|---|{}\n", COLUMNS.join(" | "), "--:|".repeat(COLUMNS.len()));
    let mut row = |name: &str, verdict: &dyn Fn(&Verdicts) -> Verdict| {
        let verdicts: Vec<_> = usable(results).map(|(_, verdicts)| verdict(verdicts)).collect();
        let count =
            |column: &str| verdicts.iter().filter(|verdict| verdict.column() == column).count();
        let cells: Vec<_> = COLUMNS
            .iter()
            .map(|&column| match count(column) {
                n if column == Verdict::Same.column() => {
                    format!("{n} ({:.0} %)", 100.0 * n as f64 / verdicts.len().max(1) as f64)
                }
                0 => "–".to_owned(),
                n => n.to_string(),
            })
            .collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    };
    row("ThreadSanitizer", &|verdicts| verdicts.tsan.clone());
    for (at, policy) in POLICIES.iter().enumerate() {
        row(&format!("raddle, {policy}"), &|verdicts| verdicts.policies[at].clone());
    }
    text
}

/// The tests that differ under raddle, then those that differ with ThreadSanitizer only.
pub(crate) fn differences(results: &Results<'_>, differs: &Differs<'_>) -> String {
    let policies = POLICIES.join(" | ");
    let mut text =
        format!("| test | ThreadSanitizer | {policies} | same with --allow | reason |\n");
    text += &format!("|---|---|{}---|---|\n", "---|".repeat(POLICIES.len()));
    for (test, verdicts) in usable(results).filter(|(_, verdicts)| !verdicts.agrees()) {
        let policies: Vec<_> = verdicts.policies.iter().map(Verdict::to_string).collect();
        let reason = differs.reason(test).unwrap_or("**not listed**");
        let policies = policies.join(" | ");
        let allowed = match (&verdicts.allowed, differs.words(test)) {
            (Some(Verdict::Same), Some(words)) => format!("yes: {words}"),
            (Some(verdict), Some(words)) => format!("no: {words}, {verdict}"),
            (None, _) | (_, None) => "–".to_owned(),
        };
        let _ =
            writeln!(text, "| {test} | {} | {policies} | {allowed} | {reason} |", verdicts.tsan);
    }
    let others: Vec<_> = usable(results)
        .filter(|(_, verdicts)| verdicts.agrees() && verdicts.tsan != Verdict::Same)
        .map(|(test, verdicts)| format!("{test} ({})", verdicts.tsan))
        .collect();
    if !others.is_empty() {
        let (n, others) = (others.len(), others.join(", "));
        let _ = write!(text, "\nThese {n} differ with ThreadSanitizer only: {others}.\n");
    }
    text
}

/// The tests that cannot be used.
pub(crate) fn unusable(results: &Results<'_>) -> String {
    let (mut parts, mut inside, mut not_passed) = (Vec::new(), Vec::new(), Vec::new());
    for (test, outcome) in results {
        match outcome {
            Outcome::NotBuilt(error) if error.contains("reference to `main'") => {
                parts.push((*test).to_owned());
            }
            Outcome::NotBuilt(_) => inside.push((*test).to_owned()),
            Outcome::NotPassed(ending) => not_passed.push(format!("{test} ({ending})")),
            Outcome::Usable(_) => {}
        }
    }
    let mut text = String::new();
    for (names, why) in [
        (parts, "are parts of other tests"),
        (inside, "do not build outside of glibc"),
        (not_passed, "do not pass natively when run this way"),
    ] {
        if !names.is_empty() {
            let (n, names) = (names.len(), names.join(", "));
            let _ = writeln!(text, "Not usable: {n} that {why} ({names}).\n");
        }
    }
    text
}

fn usable<'r>(results: &'r Results<'_>) -> impl Iterator<Item = (&'r str, &'r Verdicts)> {
    results.iter().filter_map(|(test, outcome)| match outcome {
        Outcome::Usable(verdicts) => Some((*test, verdicts)),
        Outcome::NotBuilt(_) | Outcome::NotPassed(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> [(&'static str, Outcome); 2] {
        let policies = [const { Verdict::Same }; 3];
        let fine = Verdicts { tsan: Verdict::Hang, policies, allowed: None };
        let policies = [Verdict::Deadlock, Verdict::Same, Verdict::Other("exit 1".to_owned())];
        let other = Verdicts { tsan: Verdict::Same, policies, allowed: Some(Verdict::Same) };
        [("tst-a", Outcome::Usable(fine)), ("tst-b", Outcome::Usable(other))]
    }

    #[test]
    fn verdicts_are_counted_by_column() {
        let text = counts(&results());
        let rows: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(rows[0], "| ThreadSanitizer | 1 (50 %) | 1 | – | – | – | – | – | – |");
        assert_eq!(rows[1], "| raddle, random | 1 (50 %) | – | 1 | – | – | – | – | – |");
        assert_eq!(rows[3], "| raddle, pct | 1 (50 %) | – | – | – | – | – | – | 1 |");
    }

    #[test]
    fn differences_have_a_reason() {
        let differs = Differs::parse("tst-b  limit: of memory").expect("a good list");
        let text = differences(&results(), &differs);
        let row = "| tst-b | same | deadlock | same | exit 1 | – | limit: of memory |\n";
        assert!(text.contains(row), "{text}");
        let differs = Differs::parse("tst-b  limit  [--allow misuse]").expect("a good list");
        let text = differences(&results(), &differs);
        assert!(text.contains("| exit 1 | yes: misuse | limit |\n"), "{text}");
        assert!(text.ends_with("\nThese 1 differ with ThreadSanitizer only: tst-a (hang).\n"));
    }
}
