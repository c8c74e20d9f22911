//! What a hunt has found, for people.

use std::fmt::Write as _;

use raddle_analysis::witness::Deed;

use super::campaign::Tally;
use super::finding::{Access, Finding};
use crate::shell;

/// A failing finding in words.
pub(crate) fn finding(number: usize, finding: &Finding) -> String {
    let mut text = String::new();
    let what = match finding.kind {
        "atomicity" => "atomicity violation",
        "multi-variable" => "atomicity violation of variables that belong together",
        "order" => "order violation",
        other => other,
    };
    let on = finding.variable.as_ref().map_or(String::new(), |name| format!(" on {name}"));
    let pattern = match finding.pattern.as_str() {
        "" => String::new(),
        pattern => format!(" ({pattern})"),
    };
    let _ = writeln!(text, "{number}. {what}{on}{pattern}");
    text.push_str(&accesses(&finding.accesses));
    if let Some(failure) = &finding.failure {
        let mut lines = failure.text.trim_end().lines();
        let _ = writeln!(text, "   then: {}", lines.next().unwrap_or(&failure.detail));
        for line in lines {
            let _ = writeln!(text, "   {line}");
        }
    }
    if let Some(forced) = finding.forced.filter(|forced| forced.n_failed > 0) {
        let _ = writeln!(text, "   confirmed: {forced}");
    }
    if let Some(clip) = &finding.clip {
        let _ = writeln!(
            text,
            "   {} context switches; show it again: raddle replay {}",
            finding.n_switches,
            shell::word(clip)
        );
    }
    text
}

/// Accesses in their order, a line each.
pub(crate) fn accesses(accesses: &[Access]) -> String {
    let mut text = String::new();
    let width = |of: fn(&Access) -> String| {
        accesses.iter().map(|access| of(access).chars().count()).max().unwrap_or(0)
    };
    let (threads, deeds, sites) = (
        width(|a| a.thread.clone()),
        width(|a| deed(a.deed).to_owned()),
        width(|a| a.site.clone()),
    );
    let same_variable = accesses.windows(2).all(|pair| pair[0].variable == pair[1].variable);
    for access in accesses {
        let locks = match &access.locks[..] {
            [] => String::new(),
            locks => format!("  holding {}", locks.join(", ")),
        };
        let what = if same_variable { "it".to_owned() } else { access.variable.clone() };
        let line = format!(
            "   {:threads$}  {:deeds$} {what}  {:sites$}{locks}",
            access.thread,
            deed(access.deed),
            access.site,
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// What was done, in PENELOPE's terms.
pub(crate) fn summary(tally: &Tally, n_runs: usize, seconds: f64) -> String {
    let Tally { predicted, observed, infeasible, feasible, failing, explored, bases, .. } = tally;
    let untested = predicted.saturating_sub(infeasible + feasible);
    format!(
        "{n_runs} runs in {seconds:.1} s; from {bases} recorded runs {predicted} anomalies predicted: \
         {observed} already observed, {infeasible} infeasible, {feasible} feasible, {failing} failing\
         {}; {explored} orders explored",
        if untested > 0 { format!(", {untested} untested") } else { String::new() }
    )
}

fn deed(deed: Deed) -> &'static str {
    match deed {
        Deed::Read | Deed::AtomicRead => "reads",
        Deed::Write | Deed::AtomicWrite => "writes",
        Deed::Free => "frees",
        Deed::Acquire => "takes",
        Deed::Release => "gives back",
        Deed::Wait => "waits on",
        Deed::Lower => "lowers",
        Deed::Ask => "asks for the value of",
        Deed::Signal => "signals",
        Deed::Init => "initializes",
        Deed::Destroy => "destroys",
        Deed::Block => "waits in vain for",
    }
}
