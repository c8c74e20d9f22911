//! The program that a name means: found, compiled if it is a source file, and checked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use raddle_code::program::{self, Program, Soname, Unfit};

use crate::compile::{self, CompileError};
use crate::unpack::{self, UnpackError};

/// The runtime library, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Runtime(pub &'static [u8]);

impl Runtime {
    /// The library as a file.
    pub fn file(self, soname: Soname) -> Result<PathBuf, UnpackError> {
        unpack::unpack(self.0, soname)
    }
}

/// Why there is no target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The program is not fit for it.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// It could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The runtime library could not be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
}

/// The program that a name means; a source file is compiled, in `directory` if not here.
pub fn program(
    name: &Path,
    directory: Option<&Path>,
    runtime: Runtime,
) -> Result<Program, TargetError> {
    let path = match directory {
        Some(directory) if name.as_os_str().as_encoded_bytes().contains(&b'/') => {
            directory.join(name)
        }
        _ => name.to_owned(),
    };
    match compile::language(&path) {
        Some(language) if path.is_file() => {
            let runtime = runtime.file(Soname::default())?;
            let program = compile::compile(name, language, &runtime, directory)?;
            Ok(program::check(&program)?)
        }
        _ => Ok(program::check(&path)?),
    }
}

/// The program's name for itself: as it was typed, or after its source file.
#[must_use]
pub fn name_of(program: &Program, typed: &Path) -> OsString {
    match compile::language(typed) {
        Some(_) => program.path.file_name().unwrap_or_default().to_owned(),
        None => typed.as_os_str().to_owned(),
    }
}
