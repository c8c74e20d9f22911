//! The runtime library that raddle carries.

use std::path::PathBuf;

use raddle_trial::unpack::{self, Soname, UnpackError};

const LIBRARY: &[u8] = include_bytes!(env!("RADDLE_RUNTIME"));

/// The library as a file.
pub(crate) fn file(soname: Soname) -> Result<PathBuf, UnpackError> {
    unpack::unpack(LIBRARY, soname)
}
