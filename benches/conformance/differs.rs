//! The list of tests that differ.
//!
//! A line of `differs.txt` is the name of a test, two spaces, and the reason. `[allow: hang, same]`
//! at its end gives the verdicts that are fine, by column of the table; without it every verdict
//! is fine as long as one policy differs. With `same` the test may also agree.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

use crate::trial::{Outcome, POLICIES};
use crate::verdict::{COLUMNS, Verdict};

/// The list, by name of the test.
pub(crate) struct Differs<'t> {
    entries: BTreeMap<&'t str, Entry<'t>>,
}

struct Entry<'t> {
    reason: &'t str,
    /// Columns; empty if all are fine.
    allowed: Vec<&'t str>,
}

impl<'t> Differs<'t> {
    /// Reads the list.
    pub(crate) fn parse(text: &'t str) -> Result<Self> {
        let mut entries = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, entry) = entry(line).with_context(|| format!("differs.txt:{number}"))?;
            let older = entries.insert(name, entry);
            ensure!(older.is_none(), "differs.txt:{number}: {name} is listed twice");
        }
        Ok(Self { entries })
    }

    /// Why a test differs, if that is known.
    pub(crate) fn reason(&self, test: &str) -> Option<&'t str> {
        self.entries.get(test).map(|entry| entry.reason)
    }

    /// What is wrong with the list, given these results. A listed test that cannot be used on
    /// this machine is not wrong.
    pub(crate) fn complaints(
        &self,
        results: &[(&str, Outcome)],
        is_chosen: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut complaints = Vec::new();
        for (test, outcome) in results {
            let Outcome::Usable(verdicts) = outcome else { continue };
            let Some(entry) = self.entries.get(test) else {
                if !verdicts.agrees() {
                    complaints.push(format!("{test} differs, and differs.txt does not list it"));
                }
                continue;
            };
            if verdicts.agrees() && !entry.allowed.contains(&Verdict::Same.column()) {
                complaints.push(format!("{test} agrees; remove it from differs.txt"));
            }
            for (policy, verdict) in POLICIES.iter().zip(&verdicts.policies) {
                let is_fine = *verdict == Verdict::Same
                    || entry.allowed.is_empty()
                    || entry.allowed.contains(&verdict.column());
                if !is_fine {
                    complaints.push(format!(
                        "{test} under {policy}: {verdict}, not as differs.txt allows"
                    ));
                }
            }
        }
        let is_known = |test: &str| results.iter().any(|(known, _)| *known == test);
        for test in self.entries.keys().filter(|test| is_chosen(test) && !is_known(test)) {
            complaints.push(format!("{test} is in differs.txt, and glibc has no such test"));
        }
        complaints
    }
}

fn entry(line: &str) -> Result<(&str, Entry<'_>)> {
    let (name, rest) =
        line.split_once("  ").context("a line is a name, two spaces, and a reason")?;
    let rest = rest.trim();
    let (reason, allowed) =
        match rest.strip_suffix(']').and_then(|rest| rest.split_once("[allow: ")) {
            Some((reason, allowed)) => (reason.trim_end(), allowed.split(", ").collect()),
            None => (rest, Vec::new()),
        };
    for word in &allowed {
        ensure!(COLUMNS.contains(word), "there is no verdict {word}");
    }
    Ok((name, Entry { reason, allowed }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Verdicts;

    fn check(list: &str, random: Verdict, expected: &[&str]) {
        let differs = Differs::parse(list).expect("a good list");
        let policies = [random, Verdict::Same, Verdict::Same];
        let results = [("tst-a", Outcome::Usable(Verdicts { tsan: Verdict::Same, policies }))];
        assert_eq!(differs.complaints(&results, |_| true), expected);
    }

    #[test]
    fn the_list_has_exactly_the_tests_that_differ() {
        check("", Verdict::Same, &[]);
        check("tst-a  slow: loops", Verdict::Hang, &[]);
        check("", Verdict::Hang, &["tst-a differs, and differs.txt does not list it"]);
        check("tst-a  slow: loops", Verdict::Same, &["tst-a agrees; remove it from differs.txt"]);
        check(
            "tst-a  x\ntst-b  y",
            Verdict::Hang,
            &["tst-b is in differs.txt, and glibc has no such test"],
        );
    }

    #[test]
    fn verdicts_can_be_allowed() {
        check("tst-a  slow: loops  [allow: hang, same]", Verdict::Same, &[]);
        check("tst-a  slow: loops  [allow: hang, same]", Verdict::Hang, &[]);
        check(
            "tst-a  slow: loops  [allow: hang]",
            Verdict::Deadlock,
            &["tst-a under random: deadlock, not as differs.txt allows"],
        );
    }

    #[test]
    fn mistakes_in_the_list_are_named() {
        let error = |list| Differs::parse(list).err().map(|error| format!("{error:#}"));
        assert_eq!(
            error("# list\ntst-a slow").as_deref(),
            Some("differs.txt:2: a line is a name, two spaces, and a reason")
        );
        assert_eq!(
            error("tst-a  slow  [allow: hangs]").as_deref(),
            Some("differs.txt:1: there is no verdict hangs")
        );
    }
}
