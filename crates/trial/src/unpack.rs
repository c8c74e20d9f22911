//! The runtime library, from raddle's own bytes into a file that the loader can open.
//!
//! It goes to a cache directory whose name is a hash of the bytes, so that raddles of
//! different versions do not meet, under the name by which targets ask for it. A file that
//! is already there is compared byte by byte: it will be loaded into programs of the user.

use std::borrow::Cow;
use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use raddle_code::program::Soname;

/// Why the runtime could not be unpacked.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot unpack the runtime library to {}: {source}; set XDG_CACHE_HOME to a writable directory",
    path.display()
)]
pub struct UnpackError {
    path: PathBuf,
    source: io::Error,
}

/// Makes sure that the library is there, and says where.
pub fn unpack(library: &[u8], soname: Soname) -> Result<PathBuf, UnpackError> {
    let library = renamed(library, soname);
    let mut first_error = None;
    for cache in cache_directories() {
        let directory = cache.join(format!("{:016x}", hash(&library)));
        let path = directory.join(soname.as_str());
        match place(&library, &directory, &path) {
            Ok(()) => return Ok(path),
            Err(source) => {
                first_error.get_or_insert(UnpackError { path, source });
            }
        }
    }
    Err(first_error.expect("there is at least one cache directory"))
}

/// Where files that can be made again are kept, the best place first.
pub(crate) fn cache_directories() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let owner = rustix::process::getuid().as_raw();
    let mut directories: Vec<_> = [
        variable("XDG_CACHE_HOME").map(|cache| cache.join("raddle")),
        variable("HOME").map(|home| home.join(".cache/raddle")),
        Some(std::env::temp_dir().join(format!("raddle-{owner}"))),
    ]
    .into_iter()
    .flatten()
    // The loader takes LD_PRELOAD apart at these.
    .filter(|path| !path.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)))
    .collect();
    if directories.is_empty() {
        directories.push(format!("/tmp/raddle-{owner}").into());
    }
    directories
}

/// A directory of the user's own: others could put their library into one of theirs.
pub(crate) fn own_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let metadata = std::fs::metadata(path)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o002 != 0 {
        return Err(io::Error::other("others can write to this directory"));
    }
    Ok(())
}

/// Puts a file into place as a whole, or not at all.
pub(crate) fn write_whole(bytes: &[u8], path: &Path) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = File::create(&temporary).and_then(|mut file| file.write_all(bytes));
    written.and_then(|()| std::fs::rename(&temporary, path)).inspect_err(|_| {
        // It is the first error that counts.
        let _ = std::fs::remove_file(&temporary);
    })
}

fn place(library: &[u8], directory: &Path, path: &Path) -> io::Result<()> {
    // A cache that cannot be written may still hold it, as in a container.
    if holds(path, library).unwrap_or(false) {
        return Ok(());
    }
    own_directory(directory)?;
    write_whole(library, path)
}

/// Whether a file holds these bytes. Every run asks, so it is read piece by piece into memory that
/// stays in the cache.
fn holds(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let mut piece = [0; 1 << 15];
    for expected in bytes.chunks(piece.len()) {
        let there = &mut piece[..expected.len()];
        file.read_exact(there)?;
        if there != expected {
            return Ok(false);
        }
    }
    Ok(file.read(&mut piece)? == 0)
}

/// The library under another name of the same length: the string is in its string table once.
fn renamed(library: &[u8], soname: Soname) -> Cow<'_, [u8]> {
    let mut library = Cow::Borrowed(library);
    let [from, to] = [Soname::So2.as_str(), soname.as_str()].map(|name| format!("\0{name}\0"));
    if from != to {
        let at = library.windows(from.len()).position(|window| window == from.as_bytes());
        let at = at.expect("the runtime library has a name");
        library.to_mut()[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    library
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cache/library");
        for damage in [&b"abcd"[..], b"abcx", b""] {
            place(b"abcd", path.parent().expect("a parent"), &path).expect("room");
            assert_eq!(std::fs::read(&path).expect("readable"), b"abcd");
            std::fs::write(&path, damage).expect("writable");
        }
    }

    #[test]
    fn the_name_is_changed_in_place() {
        let library = b"..\0libtsan.so.2\0..";
        assert_eq!(*renamed(library, Soname::So0), *b"..\0libtsan.so.0\0..");
        assert_eq!(*renamed(library, Soname::So2), *library);
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let open = directory.path().join("open");
        std::fs::create_dir(&open).expect("room");
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).expect("own");
        assert!(own_directory(&open).is_err());
    }
}
