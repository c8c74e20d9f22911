//! For Graphviz: the first pattern or finding, each access in the column of its thread.

use std::io::{self, Write};

use crate::model::{Access, Report};

pub(super) fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let accesses: &[Access] = match report {
        Report::Localize(localization) => {
            localization.patterns.first().map_or(&[], |pattern| &pattern.accesses)
        }
        Report::Hunt(hunt) => hunt.failing().next().map_or(&[], |finding| &finding.accesses),
        Report::Predict(prediction) => {
            prediction.anomalies.first().map_or(&[], |finding| &finding.accesses)
        }
        Report::Isolate(_) | Report::Replay(_) | Report::Stats(_) => &[],
    };
    writeln!(out, "digraph pattern {{\n  node [shape=box, fontname=monospace];")?;
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    for (at, access) in accesses.iter().enumerate() {
        writeln!(
            out,
            "  a{at} [group=\"{0}\", label=\"{0}\\n{1} {2}\\n{3}\"];",
            quoted(&access.thread),
            access.op,
            quoted(&access.variable),
            quoted(&access.site),
        )?;
    }
    for at in 1..accesses.len() {
        writeln!(out, "  a{} -> a{at};", at - 1)?;
    }
    writeln!(out, "}}")
}
