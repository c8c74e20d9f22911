//! Accesses, a line each.

use std::io::{self, Write};

use crate::model::Access;

/// Accesses in their order, in columns.
pub(super) fn render(accesses: &[&Access], out: &mut dyn Write) -> io::Result<()> {
    let width = |of: fn(&Access) -> &str| {
        accesses.iter().map(|access| of(access).chars().count()).max().unwrap_or(0)
    };
    let (threads, verbs) = (width(|a| &a.thread), width(|a| a.action.verb()));
    let sites = width(|a| &a.site);
    let is_one_variable = accesses.windows(2).all(|pair| pair[0].variable == pair[1].variable);
    for access in accesses {
        let locks = match &access.locks[..] {
            [] => String::new(),
            locks => format!("  holding {}", locks.join(", ")),
        };
        let what = if is_one_variable { "it" } else { &access.variable };
        let line = format!(
            "   {:threads$}  {:verbs$} {what}  {:sites$}{locks}",
            access.thread,
            access.action.verb(),
            access.site,
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
