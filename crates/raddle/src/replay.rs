//! `raddle replay`: to be written once the format is there.

use anyhow::{Result, bail};

use crate::args::ReplayArgs;
use crate::exit::Exit;

pub(crate) fn replay(_: ReplayArgs) -> Result<Exit> {
    bail!("not yet")
}
