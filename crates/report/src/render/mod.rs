//! Forms of output, one file each. A renderer takes a report and a writer and decides nothing.
//! [`shell`] is no form: it quotes words of commands for all of them.

pub mod dot;
pub mod json;
pub mod shell;
pub mod text;

use std::io::{self, Write};
use std::path::Path;

use crate::model::Report;

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people, on a terminal.
    Text,
    /// For other programs.
    Json,
    /// For Graphviz: the accesses of the first pattern or finding.
    Dot,
}

/// What is shown of a report.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// How many suspects of each kind.
    pub count: usize,
    /// How large the windows were that patterns needed.
    pub windows: bool,
    /// Where clips are.
    pub directory: &'a Path,
}

/// Writes a report.
pub fn render(
    report: &Report,
    form: Form,
    options: &Options<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match form {
        Form::Text => text::render(report, options, out),
        Form::Json => json::render(report, out),
        Form::Dot => dot::render(report, out),
    }
}
