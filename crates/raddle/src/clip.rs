//! Clips: to be written once the format is there.

use std::path::Path;

use anyhow::{Result, bail};
use raddle_trial::binary::Program;
use raddle_trial::{Execution, Launch, Plan};

use crate::args::TargetArgs;

pub(crate) fn check(_: &Path, _: &Plan) -> Result<()> {
    bail!("not yet")
}

pub(crate) fn keep(
    _: &Path,
    _: &TargetArgs,
    _: &Program,
    _: &Launch,
    _: &Execution,
) -> Result<Option<String>> {
    bail!("not yet")
}
