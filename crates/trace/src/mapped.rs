//! A file as bytes in memory.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Maps the regular file at `path`.
pub(crate) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    // SAFETY: nobody changes a trace that can be mapped: a finished one is only ever renamed or
    // removed, an unfinished one only grows, and a new recording unlinks an old unfinished file
    // before it creates its own (`file::Writer::create`). Another program that writes to the file
    // could break this, as it could break any mapping.
    unsafe { Mmap::map(&file) }
}
