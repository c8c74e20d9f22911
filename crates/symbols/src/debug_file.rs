//! Finding separate debug files.
//!
//! There are two ways, tried in gdb's order ("Debugging Information in Separate Files" in its
//! manual): by build-id, as `ROOT/.build-id/12/3456….debug`; and by the name in the module's
//! `.gnu_debuglink` section, beside the module, in `.debug` there, and in the module's directory
//! below ROOT. A file counts only if its build-id is the module's, or, if there is none, its
//! checksum is the recorded one. Debuginfod servers are not queried.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::{Object as _, ObjectSection as _};
use raddle_code::elf::{Elf, Files, build_id};

/// Finds the debug file of a module.
pub(super) fn find(module: &Path, elf: &Elf<'_>, files: &Files, root: &Path) -> Option<Arc<[u8]>> {
    let id = build_id(elf);
    let by_id = id.as_ref().and_then(|id| {
        let (head, tail) = id.split_at_checked(2)?;
        fitting(files, &root.join(".build-id").join(head).join(format!("{tail}.debug")), &id_is(id))
    });
    by_id.or_else(|| {
        let (name, checksum) = elf.gnu_debuglink().ok()??;
        let fits = |bytes: &[u8], debug: &Elf<'_>| match &id {
            Some(id) => id_is(id)(bytes, debug),
            None => crc32(bytes) == checksum,
        };
        places(module, Path::new(OsStr::from_bytes(name)), root)
            .iter()
            .filter(|place| *place != module)
            .find_map(|place| fitting(files, place, &fits))
    })
}

fn places(module: &Path, name: &Path, root: &Path) -> Vec<PathBuf> {
    let directory = module.parent().unwrap_or(Path::new("."));
    let below_root = directory.strip_prefix("/").unwrap_or(directory);
    vec![
        directory.join(name),
        directory.join(".debug").join(name),
        root.join(below_root).join(name),
    ]
}

fn fitting(
    files: &Files,
    path: &Path,
    fits: &dyn Fn(&[u8], &Elf<'_>) -> bool,
) -> Option<Arc<[u8]>> {
    let bytes = files.read(path).ok()?;
    let elf = Elf::parse(&*bytes).ok()?;
    (has_dwarf(&elf) && fits(&bytes, &elf)).then(|| Arc::clone(&bytes))
}

/// Whether a file has useful debug information.
pub(super) fn has_dwarf(elf: &Elf<'_>) -> bool {
    elf.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
}

fn id_is(id: &str) -> impl Fn(&[u8], &Elf<'_>) -> bool {
    move |_, debug| build_id(debug).as_deref() == Some(id)
}

/// The checksum of `.gnu_debuglink`, which is zlib's.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ POLYNOMIAL }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zlib() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
