//! The examples of the PECAN and PENELOPE papers end as the papers say.
//!
//! The programs are among those of `tests/hunt`. Of PECAN's figures the text that we have tells
//! what they show and not their code, so the code is ours.

use std::collections::BTreeSet;

use raddle_corpus::{Place, Source, path};
use serde_json::Value;

/// What raddle says of a program.
struct Said {
    /// What one run implies: kind and lines.
    predicted: BTreeSet<(String, Vec<u64>)>,
    /// What a hunt came to.
    hunt: Value,
}

impl Said {
    fn of(program: &str) -> Self {
        let (place, path) = (Place::new(), path("hunt").join(program));
        place.raddle_on("record --policy rr -o t", &path, &[]).exits(0);
        let predicted = place.raddle("predict --json t").json();
        let hunt = place.raddle_on("hunt --json -o found", &path, &[]).json();
        let anomalies = predicted["anomalies"].as_array().expect("anomalies");
        let predicted = anomalies.iter().map(|anomaly| (kind(anomaly), lines(anomaly))).collect();
        Self { predicted, hunt }
    }

    /// Lines of the predicted anomalies of a kind, in no order.
    fn predicted(&self, kind: &str) -> BTreeSet<BTreeSet<u64>> {
        let of_kind = self.predicted.iter().filter(|(its, _)| its == kind);
        of_kind.map(|(_, lines)| lines.iter().copied().collect()).collect()
    }

    fn findings(&self, verdict: &str) -> Vec<&Value> {
        let findings = self.hunt["findings"].as_array().expect("findings");
        findings.iter().filter(|finding| finding["verdict"] == verdict).collect()
    }

    /// The first finding: kind, pattern and lines.
    fn first(&self) -> (String, String, Vec<u64>) {
        let failing = self.findings("failing");
        let first = failing.first().expect("a failing finding");
        (kind(first), text(&first["pattern"]), lines(first))
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

fn kind(anomaly: &Value) -> String {
    text(&anomaly["kind"])
}

fn lines(anomaly: &Value) -> Vec<u64> {
    let accesses = anomaly["accesses"].as_array().expect("accesses");
    accesses.iter().map(|access| access["line"].as_u64().expect("a line")).collect()
}

/// The line of a program that holds this text.
fn line(program: &str, text: &str) -> u64 {
    Source::read(&path("hunt").join(program)).line(text).expect("a line")
}

/// «The races are between statements (2,5), (2,6) and (3,7). Among the three real races,
/// detecting the race (3,7) is comparably more important because it might trigger the ERROR.»
#[test]
fn pecan_figure_1_has_three_races_and_one_leads_to_the_error() {
    let program = "pecan_figure_1.c";
    let said = Said::of(program);
    let [two, three] = ["x = 1;", "int seen = y;"].map(|text| line(program, text));
    let [five, six, seven] =
        ["int before = x;", "x = before + 2;", "y = 1; /*"].map(|text| line(program, text));
    // A use that can come before the first write is told as a matter of order.
    let races = said.predicted("race").into_iter().chain(said.predicted("order"));
    let races: BTreeSet<_> =
        races.filter(|lines| lines.len() == 2 && lines.iter().all(|&line| line >= two)).collect();
    let expected = [[two, five], [two, six], [three, seven]].map(|pair| pair.into());
    assert_eq!(races, BTreeSet::from(expected));
    assert_eq!(said.first(), ("race".into(), "W1-R2".into(), vec![seven, three]));
}

/// «v8 can be placed between v2 and v5»: at v4, where the lock is free.
#[test]
fn pecan_figure_3_is_an_atomicity_violation() {
    let program = "pecan_figure_3.c";
    let said = Said::of(program);
    let [v2, v5, v8] =
        ["int before = x;", "int after = x;", "x = 2;"].map(|text| line(program, text));
    assert!(said.predicted.contains(&("atomicity".into(), vec![v2, v8, v5])));
    assert_eq!(said.first(), ("atomicity".into(), "R1-W2-R1".into(), vec![v2, v8, v5]));
}

/// «It is a false warning», pruned by re-execution: v2 comes before v5.
#[test]
fn pecan_figure_5_as_it_stands_is_no_race() {
    let program = "ok_pecan_figure_5.c";
    let said = Said::of(program);
    let [v3, v8] = ["x = 2; ", "seen = x;"].map(|text| line(program, text));
    assert!(said.predicted("race").contains(&BTreeSet::from([v3, v8])));
    assert!(said.findings("failing").is_empty());
    let infeasible = said.findings("infeasible").into_iter().map(lines);
    let infeasible: Vec<BTreeSet<u64>> =
        infeasible.map(|lines| lines.into_iter().collect()).collect();
    assert!(infeasible.contains(&BTreeSet::from([v3, v8])), "{infeasible:?}");
}

/// «If we remove the partial order relation from v2 to v5, (v3, v8) becomes a real race»: it
/// takes a schedule that moves v1, the outermost lock, with v3.
#[test]
fn pecan_figure_5_without_the_order_is_a_race() {
    let program = "pecan_figure_5.c";
    let said = Said::of(program);
    let [v3, v8] = ["x = 1; /*", "int seen = x;"].map(|text| line(program, text));
    assert_eq!(said.first(), ("race".into(), "W1-R2".into(), vec![v3, v8]));
}

/// Read, cleared by another thread, read again: the second read finds nothing there.
#[test]
fn penelope_add_all_is_broken_by_a_clear_in_between() {
    let program = "atomicity_rwr_vector_addall.c";
    let said = Said::of(program);
    let [size, get, clear] =
        ["int n = vector->n_elements;", "assert(index <", "vector->n_elements = 0; /*"]
            .map(|text| line(program, text));
    assert!(said.predicted.contains(&("atomicity".into(), vec![size, clear, get])));
    let (kind, pattern, lines) = said.first();
    assert_eq!((kind.as_str(), pattern.as_str()), ("atomicity", "R1-W2-R1"));
    assert_eq!(lines[1..], [clear, get]);
}

/// «At most one atomicity violating schedule for each of the 20 variables accessed by both
/// threads.»
#[test]
fn penelope_matrix_needs_few_schedules() {
    let said = Said::of("ok_penelope_matrix.c");
    let predicted = said.hunt["anomalies"]["predicted"].as_u64().expect("a number");
    assert!((1..=20).contains(&predicted), "{predicted} predicted");
    let violations = said.predicted.iter().filter(|(kind, _)| kind == "atomicity");
    assert_eq!(violations.count(), 1, "by their lines they are all the same");
    assert!(said.findings("failing").is_empty());
}
