//! The results, in Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use crate::subject::{Answer, Subject};
use crate::trial::{Effort, Outcome, POLICIES};

/// Outcomes by program.
type Results<'r> = [(&'r Subject, Outcome)];

/// What was run.
pub(crate) fn conditions(results: &Results<'_>, effort: Effort, took: Duration) -> String {
    let n_fine = results.iter().filter(|(_, outcome)| outcome.differences.is_empty()).count();
    let hunts = match effort.hunt_seconds {
        0 => "no hunts".to_owned(),
        seconds => format!("hunts of {seconds} s"),
    };
    format!(
        "{n_fine} of {} programs agree with their native runs under {} and {} seeds each, repeat, and are found free of failures; {hunts} ({:.0} minutes).",
        results.len(),
        POLICIES.join(", "),
        effort.n_seeds,
        took.as_secs_f64() / 60.0
    )
}

/// A row per program.
pub(crate) fn programs(results: &Results<'_>) -> String {
    let mut text = "| program | version | native answer | same answer | repeats | slowest two runs | hunt: findings | runs | predicted | untested |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n".to_owned();
    for (subject, outcome) in results {
        let Outcome { n_plans, n_same, n_repeat, slowest, hunt, .. } = outcome;
        let answer = match subject.answer {
            Answer::Status => "status 0",
            Answer::Output => "status 0 and output",
            Answer::Bytes(_) => "status 0 and the original text",
        };
        let hunt = match hunt {
            Some(hunt) => format!(
                "{} | {} | {} | {}",
                hunt.n_failing, hunt.n_runs, hunt.n_predicted, hunt.n_untested
            ),
            None => "– | – | – | –".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {answer} | {n_same} of {n_plans} | {n_repeat} of {n_plans} | {:.1} s | {hunt} |",
            subject.name,
            subject.version,
            slowest.as_secs_f64()
        );
    }
    text
}

/// Every difference and every finding; empty if there is none.
pub(crate) fn differences(results: &Results<'_>) -> String {
    let mut text = String::new();
    for (subject, outcome) in results {
        for difference in &outcome.differences {
            let _ = writeln!(text, "- {}: {difference}", subject.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::subject::Build;
    use crate::trial::Hunt;

    #[test]
    fn a_row_has_what_was_counted() {
        let build = || Build { program: PathBuf::new(), driver: None };
        let subject = Subject {
            name: "xz -d".to_owned(),
            version: "5.4.1".to_owned(),
            native: build(),
            instrumented: build(),
            args: Vec::new(),
            files: Vec::new(),
            answer: Answer::Output,
        };
        let outcome = Outcome {
            n_plans: 80,
            n_same: 79,
            n_repeat: 80,
            slowest: Duration::from_millis(1500),
            hunt: Some(Hunt { n_runs: 300, n_failing: 0, n_predicted: 20, n_untested: 5 }),
            differences: vec!["rr, seed 3: hang: raddle: hang".to_owned()],
        };
        let results = [(&subject, outcome)];
        let row = "| xz -d | 5.4.1 | status 0 and output | 79 of 80 | 80 of 80 | 1.5 s | 0 | 300 | 20 | 5 |";
        assert_eq!(programs(&results).lines().last(), Some(row));
        assert_eq!(differences(&results), "- xz -d: rr, seed 3: hang: raddle: hang\n");
        let effort = Effort { n_seeds: 20, hunt_seconds: 60 };
        assert!(conditions(&results, effort, Duration::ZERO).starts_with("0 of 1 programs agree"));
    }
}
