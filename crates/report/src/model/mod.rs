//! The report as plain data.
//!
//! Field names are a contract with other programs: they may be added, never renamed, and readers
//! accept values of enumerations that they do not know. A new meaning needs a new schema version.

mod access;
mod failure;
mod finding;
mod hunt;
mod isolation;
mod localization;
mod trace;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::access::{Access, Action};
pub use self::failure::{Failure, FailureKind};
pub use self::finding::{Delay, Finding, FindingKind, Forced, Verdict};
pub use self::hunt::{Anomalies, Coverage, Hunt, Stopped, Trials};
pub use self::isolation::{
    Cause, CauseKind, Executions, Instructions, Isolation, IsolationResult, Link, Step, Value,
};
pub use self::localization::{
    Group, Localization, Pair, PairAccesses, Pattern, Procedure, Runs, Score,
};
pub use self::trace::{Prediction, Replay, Stats};

/// What a command has to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "schema")]
pub enum Report {
    /// Of `raddle hunt`.
    #[serde(rename = "raddle/hunt/1")]
    Hunt(Hunt),
    /// Of `raddle localize`.
    #[serde(rename = "raddle/localize/1")]
    Localize(Localization),
    /// Of `raddle isolate`.
    #[serde(rename = "raddle/isolate/1")]
    Isolate(Isolation),
    /// Of `raddle predict`.
    #[serde(rename = "raddle/predict/1")]
    Predict(Prediction),
    /// Of `raddle replay`.
    #[serde(rename = "raddle/replay/1")]
    Replay(Replay),
    /// Of `raddle trace stats`.
    #[serde(rename = "raddle/stats/1")]
    Stats(Stats),
}

/// The JSON schema of reports, as it is published in `docs/report.schema.json`.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// `BLESS=1 cargo test -p raddle-report` rewrites it.
    #[test]
    fn the_published_schema_is_that_of_the_code() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
        let schema = serde_json::to_string_pretty(&schema()).expect("text") + "\n";
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &schema).expect("written");
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == schema,
            "the schema has changed; bless it: BLESS=1 cargo test -p raddle-report"
        );
    }

    #[test]
    fn a_report_comes_back_from_its_json() {
        let failure = Failure {
            kind: FailureKind::Assert,
            detail: "balance == 20".into(),
            file: Some("bank.c".into()),
            line: Some(42),
            text: "assertion failed".into(),
        };
        let finding = Finding {
            id: "0123456789abcdef".into(),
            kind: FindingKind::MultiVariable,
            pattern: "R1-W2-W2-R1".into(),
            variable: None,
            accesses: Vec::new(),
            verdict: Verdict::Failing,
            why: None,
            forced: Some(Forced { failed: 4, passed: 0 }),
            delay: None,
            failure: Some(failure),
            clip: Some("bank-1.clip".into()),
            switches: 2,
            isolation: Some(IsolationResult::Failed { error: "no".into() }),
        };
        let report = Report::Hunt(Hunt {
            trials: Trials { total: 3, failed: 1, infeasible: 0, not_judged: 0 },
            anomalies: Anomalies::default(),
            recorded: 2,
            explored: 1,
            stopped: Stopped::NothingNew,
            coverage: Coverage::default(),
            findings: vec![finding],
            notes: Vec::new(),
        });
        let text = serde_json::to_string(&report).expect("text");
        assert!(text.starts_with(r#"{"schema":"raddle/hunt/1","trials":{"total":3"#), "{text}");
        assert!(text.contains(r#""kind":"multi-variable""#) && text.contains(r#""kind":"assert""#));
        assert_eq!(serde_json::from_str::<Report>(&text).expect("a report"), report);
    }
}
