//! What a command has at hand: module files, names, and which code is the program's own.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use raddle_code::elf::Files;
use raddle_lab::executor::IsOwn;
use raddle_report::model::Report;
use raddle_report::name::Names;
use raddle_report::render::{Form, Options, render};
use raddle_symbols::Cache;
use raddle_symbols::own::OwnCode;

use crate::guard;

/// What a command has at hand.
pub(crate) struct Context {
    pub(crate) files: Files,
    pub(crate) cache: Cache,
    pub(crate) is_own: Arc<IsOwn>,
}

impl Context {
    /// Over the module files of a target, or an empty set of its own.
    pub(crate) fn new(files: Files) -> Self {
        let own = OwnCode::new(files.clone());
        Self {
            cache: Cache::new(files.clone()),
            is_own: Arc::new(move |run, pc| own.contains(run, pc)),
            files,
        }
    }

    pub(crate) fn names(&self) -> Names<'_> {
        Names::new(&self.cache).unless(guard::is_late)
    }
}

/// Prints a report on standard output. Whoever reads it may have enough: that is no error, and
/// changes nothing about what was found.
pub(crate) fn print(report: &Report, form: Form, options: &Options<'_>) -> Result<()> {
    let mut out = io::stdout().lock();
    match render(report, form, options, &mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// Writes a report to a file.
pub(crate) fn write(report: &Report, form: Form, options: &Options<'_>, path: &Path) -> Result<()> {
    let mut bytes = Vec::new();
    render(report, form, options, &mut bytes)?;
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The name of the report in an output directory.
pub(crate) const REPORT: &str = "report.json";

/// Writes a report into an output directory, for other programs.
pub(crate) fn keep(report: &Report, directory: &Path) -> Result<()> {
    let options = Options { count: 0, windows: false, directory };
    write(report, Form::Json, &options, &directory.join(REPORT))
}
