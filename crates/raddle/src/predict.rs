//! `raddle predict`: what a trace implies, without executing anything.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use raddle_analysis::predict::predict as anomalies_of;
use raddle_trace::file::Trace;
use serde_json::json;

use crate::args::PredictArgs;
use crate::exit::Exit;
use crate::hunt::finding::{self, Finding};
use crate::hunt::{self, tell};

pub(crate) fn predict(args: &PredictArgs) -> Result<Exit> {
    let trace = Trace::open(&args.trace).with_context(|| args.trace.display().to_string())?;
    let patterns = hunt::patterns(args.patterns.as_deref())?;
    let model = hunt::base::model(&trace)?;
    let anomalies = anomalies_of(&model, &patterns);
    let shown = args.count.unwrap_or(if args.json { u64::MAX } else { SHOWN }) as usize;
    let events: Vec<_> = anomalies
        .iter()
        .take(shown)
        .map(|anomaly| finding::of_anomaly(&model, &anomaly.ways[0]))
        .collect();
    let findings: Vec<_> = anomalies
        .iter()
        .zip(finding::all_named(&trace, &events))
        .map(|(anomaly, accesses)| Finding {
            kind: anomaly.kind.as_str(),
            pattern: anomaly.pattern.clone(),
            variable: Finding::variables(&accesses),
            accesses,
            verdict: "untested",
            why: None,
            forced: None,
            failure: None,
            clip: None,
            n_switches: 0,
        })
        .collect();
    let mut out = io::stdout().lock();
    if args.json {
        let anomalies: Vec<_> = findings
            .iter()
            .enumerate()
            .map(|(at, finding)| finding.json(&format!("{}-{}", finding.kind, at + 1)))
            .collect();
        let object = json!({
            "schema": "raddle/predict/1",
            "events": model.n_events,
            "anomalies": anomalies,
        });
        writeln!(out, "{object}")?;
    } else {
        for (at, finding) in findings.iter().enumerate() {
            writeln!(out, "{}", tell::finding(at + 1, finding))?;
        }
    }
    let more = anomalies.len() - findings.len();
    let not_shown =
        if more > 0 { format!(", {more} of them not shown (--count)") } else { String::new() };
    eprintln!(
        "raddle: {} anomalies predicted from {} events{not_shown}; whether they happen, only raddle hunt can tell",
        anomalies.len(),
        model.n_events
    );
    Ok(if anomalies.is_empty() { Exit::Clean } else { Exit::Found })
}

/// How many are shown to a person, if nothing else was asked for.
const SHOWN: u64 = 50;
