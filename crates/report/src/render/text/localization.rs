//! A localization.

use std::io::{self, Write};

use super::super::Options;
use super::access;
use crate::model::{Forced, Group, Localization, Pair, Pattern, Procedure};

pub(super) fn render(
    localization: &Localization,
    options: &Options<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (at, group) in localization.groups.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        render_group(group, options.count, out)?;
    }
    if options.windows {
        writeln!(out, "\nwindows that patterns needed")?;
        let most = localization.windows.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1);
        for (window, n) in &localization.windows {
            writeln!(out, "{window:4}  {n:8}  {}", "█".repeat((n * 40).div_ceil(most)))?;
        }
    }
    Ok(())
}

fn render_group(group: &Group, count: usize, out: &mut dyn Write) -> io::Result<()> {
    let (n_failed, n_passed) = (group.runs.failed, group.runs.passed);
    writeln!(out, "{}", group.failure.text.trim_end())?;
    writeln!(out, "{n_failed} failing and {n_passed} passing runs compared")?;
    if group.patterns.is_empty() && group.pairs.is_empty() {
        writeln!(
            out,
            "\nthey do not differ in the accesses of different threads to the same memory"
        )?;
    }
    if !group.pairs.is_empty() {
        writeln!(out, "\naccess pairs to blame")?;
    }
    // Far less suspect than the first is not suspect, unless executions say otherwise.
    let least = group.pairs.first().map_or(0.0, |first| first.score.number() / 2.0);
    let is_suspect = |pair: &&Pair| {
        let is_weak = pair.procedure == Procedure::Often && pair.score.number() < least;
        !is_weak || pair.confirmed == Some(true)
    };
    for pair in group.pairs.iter().filter(is_suspect).take(count) {
        let confirmed = confirmed(pair.confirmed, pair.forced);
        writeln!(out, "{}. {}{confirmed}", pair.rank, why(pair, group))?;
        for one in &pair.pairs {
            access::render(&[&one.head, &one.tail], out)?;
        }
    }
    if !group.patterns.is_empty() {
        writeln!(out, "\npatterns by suspicion")?;
    }
    let least = group.patterns.first().map_or(0.0, |first| first.score.number() / 2.0);
    let is_suspect = |pattern: &&Pattern| pattern.score.number() >= least;
    for pattern in group.patterns.iter().take(count).take_while(is_suspect) {
        let on = pattern.variable.as_ref().map_or(String::new(), |on| format!(" on {on}"));
        let ties = match pattern.ties {
            1 => String::new(),
            n => format!(", shared by {n}"),
        };
        writeln!(
            out,
            "{}. {}{on}: {:.2}{ties}; {} of {n_failed} failing, {} of {n_passed} passing runs{}",
            pattern.rank,
            pattern.pattern,
            pattern.score.number(),
            pattern.failed,
            pattern.passed,
            confirmed(pattern.confirmed, pattern.forced)
        )?;
        access::render(&pattern.accesses.iter().collect::<Vec<_>>(), out)?;
    }
    Ok(())
}

/// Why a pair is suspect.
fn why(pair: &Pair, group: &Group) -> String {
    match pair.procedure {
        Procedure::One => "only failing runs have it (procedure I)".into(),
        Procedure::Two => {
            "passing runs have it the other way around, and the failing run ended before it (procedure II)"
                .into()
        }
        Procedure::Three => format!(
            "no passing run has both (procedure III, by {})",
            pair.level.as_deref().unwrap_or_default()
        ),
        Procedure::Often => format!(
            "{} of {} failing, {} of {} passing runs",
            pair.failed, group.runs.failed, pair.passed, group.runs.passed
        ),
    }
}

fn confirmed(confirmed: Option<bool>, forced: Forced) -> String {
    match confirmed {
        Some(true) if forced.failed > 0 => {
            format!("; confirmed: forced on passing runs, {} of {} fail", forced.failed, forced.n())
        }
        Some(true) => "; confirmed: the other way around, the failing run passes".into(),
        Some(false) => "; not confirmed".into(),
        None => String::new(),
    }
}
