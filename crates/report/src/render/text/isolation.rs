//! An isolation.

use std::io::{self, Write};

use crate::model::{Action, CauseKind, Executions, Isolation, Step, Value};

pub(super) fn render(isolation: &Isolation, out: &mut dyn Write) -> io::Result<()> {
    for link in &isolation.chain {
        let at = &link.access;
        let location = at.location.as_deref();
        match &link.step {
            Step::Failure { detail } => {
                let used = location.map(|used| format!(", which used {used}{}", value(at)));
                let used = used.unwrap_or_default();
                writeln!(out, "{detail}: {} at {}{used}", at.thread, at.site)?;
            }
            Step::Definition { suppressed } => {
                let how = if *suppressed { "suppressed" } else { "followed back" };
                writeln!(
                    out,
                    "  <- {} {}, {} at {}{} ({how})",
                    defined(at.action),
                    location.unwrap_or_default(),
                    at.thread,
                    at.site,
                    value(at),
                )?;
            }
        }
    }
    match &isolation.cause {
        Some(cause) => {
            writeln!(out, "cause: {}", heading(cause.kind, cause.variable.as_deref()))?;
            for at in &cause.accesses {
                let verb = at.action.verb();
                writeln!(out, "  {} {verb} it at {}{}", at.thread, at.site, value(at))?;
            }
        }
        None => writeln!(out, "cause: not found")?,
    }
    let Executions { original, suppression, race, violation, watch } = isolation.executions;
    let total = original + suppression + race + violation;
    writeln!(
        out,
        "{total} executions ({original} + {suppression} + {race} + {violation}: original, suppression, race, violation), {watch} more to watch memory"
    )
}

fn value(at: &Value) -> String {
    at.value.map(|value| format!(" = {value:#x}")).unwrap_or_default()
}

fn heading(kind: CauseKind, variable: Option<&str>) -> String {
    let on = variable.map(|name| format!(" on `{name}`")).unwrap_or_default();
    match kind {
        CauseKind::Race => format!("a race{on}: nothing orders these accesses"),
        CauseKind::Atomicity => format!("an atomicity violation{on}: these accesses interleaved"),
        CauseKind::Order => format!("an order violation{on}: these came in the wrong order"),
        CauseKind::Statement => match variable {
            Some(name) => format!("the first wrong value that was found, of `{name}`"),
            None => "the first wrong value that was found".to_owned(),
        },
    }
}

/// How memory got what the failure used.
const fn defined(action: Action) -> &'static str {
    match action {
        Action::Free => "freed:",
        Action::Initialize => "uninitialized:",
        Action::Destroy => "destroyed:",
        Action::Signal => "signaled:",
        Action::Read => "used before it had a value:",
        Action::Write
        | Action::Acquire
        | Action::Release
        | Action::Wait
        | Action::Decrement
        | Action::GetValue
        | Action::Block => "defined:",
    }
}
