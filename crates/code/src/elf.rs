//! ELF files of a run's modules, each read once.
//!
//! [`Files`] is the only place that reads whole module files. A command owns it and passes it to
//! everything that needs file contents: names, machine code. A file is kept by path, and read
//! again only if another build of it is requested.
//!
//! Files are not mapped: truncating a mapped file would kill us.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _};
use raddle_trace::run::Module;

/// A parsed file; it borrows the bytes.
pub type Elf<'data> = ElfFile64<'data, LittleEndian, &'data [u8]>;

/// Why a module's file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// An I/O error.
    #[error("{path} cannot be read ({reason})")]
    Unreadable {
        /// The module.
        path: String,
        /// The operating system's message.
        reason: String,
    },
    /// The file is not the build that ran.
    #[error(
        "{path} was rebuilt since the run (build-id {}, recorded {recorded})",
        found.as_deref().unwrap_or("none")
    )]
    Replaced {
        /// The module.
        path: String,
        /// The build-id of the file that ran.
        recorded: String,
        /// The build-id of the file that is there now.
        found: Option<String>,
    },
    /// Not an ELF file, or a truncated one.
    #[error("{path} is not an ELF file ({reason})")]
    NotElf {
        /// The module.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The files read so far. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Files {
    known: Arc<Mutex<HashMap<PathBuf, Arc<[u8]>>>>,
}

impl Files {
    /// The contents of a regular file.
    pub fn read(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        if let Some(bytes) = self.lock().get(path) {
            return Ok(Arc::clone(bytes));
        }
        let bytes = read(path)?;
        self.lock().insert(path.to_owned(), Arc::clone(&bytes));
        Ok(bytes)
    }

    /// The file of a module, if it is still the build that ran.
    pub fn module(&self, module: &Module) -> Result<Arc<[u8]>, ElfError> {
        let path = Path::new(&module.path);
        let unreadable = |err: io::Error| ElfError::Unreadable {
            path: module.path.clone(),
            reason: err.to_string(),
        };
        let bytes = self.read(path).map_err(unreadable)?;
        if check(module, &bytes).is_ok() {
            return Ok(bytes);
        }
        // It may have been rebuilt since it was read.
        let bytes = read(path).map_err(unreadable)?;
        check(module, &bytes)?;
        self.lock().insert(path.to_owned(), Arc::clone(&bytes));
        Ok(bytes)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<[u8]>>> {
        // Entries are inserted atomically, so whatever a panicking thread left is consistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses a module's file.
pub fn parse<'data>(module: &Module, bytes: &'data [u8]) -> Result<Elf<'data>, ElfError> {
    Elf::parse(bytes)
        .map_err(|err| ElfError::NotElf { path: module.path.clone(), reason: err.to_string() })
}

/// Whether these bytes are the build of a module that ran.
fn check(module: &Module, bytes: &[u8]) -> Result<(), ElfError> {
    let found = build_id(&parse(module, bytes)?);
    let recorded = &module.build_id;
    if !recorded.is_empty() && found.as_deref() != Some(recorded.to_ascii_lowercase().as_str()) {
        let (path, recorded) = (module.path.clone(), recorded.clone());
        return Err(ElfError::Replaced { path, recorded, found });
    }
    Ok(())
}

/// A file's build-id in hexadecimal.
#[must_use]
pub fn build_id(elf: &Elf<'_>) -> Option<String> {
    let id = elf.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read(path: &Path) -> io::Result<Arc<[u8]>> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let n_bytes = usize::try_from(metadata.len()).map_err(io::Error::other)?;
    // Filled in place: a debug build's file can be large, and a copy would double it.
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, n_bytes).collect();
    if let Some(place) = Arc::get_mut(&mut bytes) {
        file.read_exact(place)?;
    }
    Ok(bytes)
}
