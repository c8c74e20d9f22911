//! A finding.

use std::io::{self, Write};

use super::super::{Options, shell};
use super::{access, isolation};
use crate::model::{Finding, IsolationResult, Verdict};

pub(super) fn render(
    number: usize,
    finding: &Finding,
    options: &Options<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let on = finding.variable.as_ref().map_or(String::new(), |name| format!(" on {name}"));
    let pattern = match finding.pattern.as_str() {
        "" => String::new(),
        pattern => format!(" ({pattern})"),
    };
    writeln!(out, "{number}. {}{on}{pattern}", finding.headline())?;
    access::render(&finding.accesses.iter().collect::<Vec<_>>(), out)?;
    if let Some(failure) = &finding.failure {
        let mut lines = failure.text.trim_end().lines();
        writeln!(out, "   then: {}", lines.next().unwrap_or(&failure.detail))?;
        for line in lines {
            writeln!(out, "   {line}")?;
        }
    }
    if let (Verdict::Benign, Some(why)) = (finding.verdict, &finding.why) {
        writeln!(out, "   then: {why}")?;
    }
    if let Some(forced) = finding.forced.filter(|forced| forced.failed > 0) {
        let (failed, n) = (forced.failed, forced.n());
        writeln!(out, "   confirmed: forced on passing runs, {failed} of {n} fail")?;
    }
    if let Some(delay) = &finding.delay {
        writeln!(out, "   needs {delay}")?;
    }
    if let Some(clip) = &finding.clip {
        let clip = shell::word(options.directory.join(clip));
        let switches = match finding.switches {
            1 => "1 context switch".to_owned(),
            n => format!("{n} context switches"),
        };
        writeln!(out, "   {switches}; show it again: raddle replay {clip}")?;
    }
    match &finding.isolation {
        Some(IsolationResult::Done(done)) => {
            writeln!(out)?;
            isolation::render(done, out)
        }
        Some(IsolationResult::Failed { error }) => writeln!(out, "   cannot isolate it: {error}"),
        None => Ok(()),
    }
}
