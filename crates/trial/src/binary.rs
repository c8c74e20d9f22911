//! Is a program fit to be a target?
//!
//! It has to be a dynamic executable for x86-64 that calls the sanitizer's functions and
//! does not define them itself. A program that is not instrumented may still load a library
//! that is: those among its needed libraries that are not the system's are looked at too.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DynamicTag, EM_X86_64, PT_INTERP};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _};

use crate::unpack::Soname;

/// A program that is fit to be a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Where it was found.
    pub path: PathBuf,
    /// The name of the sanitizer library that it asks for.
    pub soname: Soname,
    /// In hexadecimal digits, empty if it has none.
    pub build_id: String,
    /// Whether it is a script, of which nothing more is known.
    pub is_script: bool,
}

/// Why a program is not fit to be a target.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is named for what it holds")]
#[non_exhaustive]
pub enum Unfit {
    /// There is no such file.
    #[error("there is no program {}", name.display())]
    Missing { name: PathBuf },
    /// None in the search path.
    #[error("there is no program {} in PATH; for one in this directory say ./{}", name.display(), name.display())]
    NotInPath { name: PathBuf },
    /// A directory.
    #[error("{} is a directory, not a program", path.display())]
    Directory { path: PathBuf },
    /// A file without the right to be executed.
    #[error("{} is not executable; chmod +x makes it so", path.display())]
    NotExecutable { path: PathBuf },
    /// The operating system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Not a program for Linux.
    #[error("{} is neither an ELF executable nor a script", path.display())]
    Foreign { path: PathBuf },
    /// Of another processor.
    #[error("{} is not a program for x86-64, which is all that raddle can run", path.display())]
    Architecture { path: PathBuf },
    /// Without a dynamic loader.
    #[error("{} is linked statically, so raddle's runtime cannot take the place of the sanitizer's; link it without -static", path.display())]
    Static { path: PathBuf },
    /// With clang's runtime inside.
    #[error("{} has clang's own ThreadSanitizer runtime linked in; build it with `raddle cc` in the place of clang, or with clang -fsanitize=thread -shared-libsan", path.display())]
    OwnRuntime { path: PathBuf },
    /// Without a single call to the sanitizer's functions.
    #[error("{} is not instrumented, so raddle would see nothing of it; build it with gcc -g -fsanitize=thread (or `raddle cc`)", path.display())]
    Uninstrumented { path: PathBuf },
}

/// Finds a program as a shell would, and checks it.
pub fn check(name: &Path) -> Result<Program, Unfit> {
    let path = find(name)?;
    let bytes = fs::read(&path).map_err(|source| Unfit::Io { path: path.clone(), source })?;
    if bytes.starts_with(b"#!") {
        let (soname, build_id) = (Soname::default(), String::new());
        return Ok(Program { path, soname, build_id, is_script: true });
    }
    if !bytes.starts_with(b"\x7fELF") {
        return Err(Unfit::Foreign { path });
    }
    let Some(elf) = Elf::parse(&bytes) else {
        return Err(Unfit::Architecture { path });
    };
    if elf.defines_runtime() {
        return Err(Unfit::OwnRuntime { path });
    }
    if !elf.has_loader() {
        return Err(Unfit::Static { path });
    }
    let soname = if elf.instrumented() {
        elf.soname()
    } else {
        match instrumented_library(&elf, &path) {
            Some(soname) => soname,
            None => return Err(Unfit::Uninstrumented { path }),
        }
    };
    Ok(Program { build_id: elf.build_id(), path, soname, is_script: false })
}

/// The build-id of a file, empty if it has none.
pub fn build_id(path: &Path) -> Result<String, Unfit> {
    let bytes = fs::read(path).map_err(|source| Unfit::Io { path: path.to_owned(), source })?;
    Ok(Elf::parse(&bytes).map(|elf| elf.build_id()).unwrap_or_default())
}

/// The file that a name means: itself if it has a slash, else the first in the search path.
fn find(name: &Path) -> Result<PathBuf, Unfit> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return executable(name);
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories)
        .map(|directory| directory.join(name))
        .find(|path| executable(path).is_ok())
        .ok_or_else(|| Unfit::NotInPath { name: name.to_owned() })
}

fn executable(path: &Path) -> Result<PathBuf, Unfit> {
    let metadata = fs::metadata(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Unfit::Missing { name: path.to_owned() },
        _ => Unfit::Io { path: path.to_owned(), source },
    })?;
    if metadata.is_dir() {
        return Err(Unfit::Directory { path: path.to_owned() });
    }
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(Unfit::NotExecutable { path: path.to_owned() });
    }
    Ok(path.to_owned())
}

/// An ELF file for x86-64.
struct Elf<'a> {
    file: ElfFile64<'a, Endianness>,
}

impl<'a> Elf<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
        let machine = file.elf_header().e_machine(file.endian());
        (machine == EM_X86_64).then_some(Self { file })
    }

    fn has_loader(&self) -> bool {
        let endian = self.file.endian();
        self.file.elf_program_headers().iter().any(|header| header.p_type(endian) == PT_INTERP)
    }

    fn instrumented(&self) -> bool {
        self.file
            .dynamic_symbols()
            .any(|symbol| symbol.is_undefined() && is_callback(symbol.name_bytes()))
    }

    /// Whether the sanitizer's own runtime is linked in. Its start function is exported, for
    /// libraries that are loaded later; a stripped static executable hides it.
    fn defines_runtime(&self) -> bool {
        self.file.dynamic_symbols().chain(self.file.symbols()).any(|symbol| {
            !symbol.is_undefined() && symbol.name_bytes().is_ok_and(|name| name == b"__tsan_init")
        })
    }

    fn soname(&self) -> Soname {
        match self.strings(&[DT_NEEDED]).any(|name| name == Soname::So0.as_str()) {
            true => Soname::So0,
            false => Soname::So2,
        }
    }

    fn build_id(&self) -> String {
        let build_id = self.file.build_id().ok().flatten().unwrap_or_default();
        build_id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The strings of the dynamic table under these tags.
    fn strings(&self, tags: &[DynamicTag]) -> impl Iterator<Item = OsString> {
        let mut strings = Vec::new();
        if let Ok(table) = self.file.elf_dynamic_table() {
            for entry in table.iter().filter(|entry| tags.contains(&entry.tag)) {
                if let Ok(string) = table.string(entry) {
                    strings.push(OsString::from_vec(string.to_vec()));
                }
            }
        }
        strings.into_iter()
    }
}

fn is_callback(name: object::Result<&[u8]>) -> bool {
    name.is_ok_and(|name| name.starts_with(b"__tsan_"))
}

/// The name by which an instrumented library among those that `elf` needs asks for the
/// sanitizer's, if there is such a library outside the system's directories.
fn instrumented_library(elf: &Elf<'_>, path: &Path) -> Option<Soname> {
    let origin = path.canonicalize().ok()?.parent()?.to_owned();
    let mut directories: Vec<PathBuf> = elf
        .strings(&[DT_RPATH, DT_RUNPATH])
        .flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>())
        .map(|directory| with_origin(&directory, &origin))
        .collect();
    if let Some(list) = std::env::var_os("LD_LIBRARY_PATH") {
        directories.extend(std::env::split_paths(&list));
    }
    elf.strings(&[DT_NEEDED]).find_map(|name| {
        let bytes = directories.iter().find_map(|directory| read(&directory.join(&name)))?;
        let library = Elf::parse(&bytes)?;
        library.instrumented().then(|| library.soname())
    })
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A directory of a library search path, with `$ORIGIN` filled in.
fn with_origin(directory: &Path, origin: &Path) -> PathBuf {
    let text = directory.as_os_str().as_bytes();
    for variable in [&b"$ORIGIN"[..], b"${ORIGIN}"] {
        if let Some(rest) = text.strip_prefix(variable) {
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            return origin.join(OsStr::from_bytes(rest));
        }
    }
    directory.to_owned()
}
