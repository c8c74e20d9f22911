//! For other programs: one JSON object on one line.

use std::io::{self, Write};

use crate::model::Report;

pub(super) fn render(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, report)?;
    writeln!(out)
}
