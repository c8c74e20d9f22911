//! The list of tests that differ.
//!
//! A line of `differs.txt` is the name of a test, two spaces, and the reason. `[allow: hang, same]`
//! at its end gives the verdicts that are fine, by column of the table; without it every verdict
//! is fine as long as one policy differs. With `same` the test may also agree.
//! `[--allow misuse]` names words of raddle's option of that name, with which the test runs again.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use raddle_bench_shared::verdict::{COLUMNS, Verdict};
use raddle_trace::allow::AllowedList;

use crate::trial::{Outcome, POLICIES};

/// The list, by name of the test.
pub(crate) struct Differs<'t> {
    entries: BTreeMap<&'t str, Entry<'t>>,
}

struct Entry<'t> {
    reason: &'t str,
    /// Columns; empty if all are fine.
    allowed: Vec<&'t str>,
    /// The value of `--allow` for another run.
    words: Option<&'t str>,
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

    /// What a test is to be allowed in another run, if it is to run again.
    pub(crate) fn words(&self, test: &str) -> Option<&'t str> {
        self.entries.get(test)?.words
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
    let mut entry = Entry { reason: rest.trim(), allowed: Vec::new(), words: None };
    while let Some((reason, remark)) =
        entry.reason.strip_suffix(']').and_then(|rest| rest.rsplit_once("  ["))
    {
        if let Some(allowed) = remark.strip_prefix("allow: ") {
            entry.allowed = allowed.split(", ").collect();
        } else if let Some(words) = remark.strip_prefix("--allow ") {
            words.parse::<AllowedList>().map_err(|error| anyhow!("--allow {words}: {error}"))?;
            entry.words = Some(words);
        } else {
            bail!("there is no remark [{remark}]");
        }
        entry.reason = reason.trim_end();
    }
    for word in &entry.allowed {
        ensure!(COLUMNS.contains(word), "there is no verdict {word}");
    }
    Ok((name, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Verdicts;

    fn check(list: &str, random: Verdict, expected: &[&str]) {
        let differs = Differs::parse(list).expect("a good list");
        let policies = [random, Verdict::Same, Verdict::Same];
        let verdicts = Verdicts { tsan: Verdict::Same, policies, allowed: None };
        let results = [("tst-a", Outcome::Usable(verdicts))];
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
    fn a_test_may_run_again_with_what_it_is_to_be_allowed() {
        let list = "tst-a  slow: loops  [--allow misuse]  [allow: hang, same]\ntst-b  x";
        let differs = Differs::parse(list).expect("a good list");
        assert_eq!(differs.words("tst-a"), Some("misuse"));
        assert_eq!(differs.reason("tst-a"), Some("slow: loops"));
        assert_eq!((differs.words("tst-b"), differs.words("tst-c")), (None, None));
        check(list.lines().next().unwrap_or_default(), Verdict::Same, &[]);
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
        assert_eq!(
            error("tst-a  slow  [allows: hang]").as_deref(),
            Some("differs.txt:1: there is no remark [allows: hang]")
        );
        let unknown = error("tst-a  slow  [--allow hang]").unwrap_or_default();
        assert!(unknown.starts_with("differs.txt:1: --allow hang: expected use-"), "{unknown}");
    }
}
