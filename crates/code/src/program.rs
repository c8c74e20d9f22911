//! Whether a program can be a target.
//!
//! It must be a dynamic executable for x86-64 that calls the sanitizer's functions and does not
//! define them itself. An uninstrumented program may still load an instrumented library, so its
//! needed libraries outside the system's directories are checked too.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DynamicTag, EM_X86_64, PT_INTERP};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _};
use raddle_trace::own::is_own_library;

/// The name of the sanitizer library that a target requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Soname {
    /// `libtsan.so.2`, since gcc 11.
    #[default]
    So2,
    /// `libtsan.so.0`, of gcc 4.8 to 10.
    So0,
}

impl Soname {
    /// The name that the loader compares.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::So2 => "libtsan.so.2",
            Self::So0 => "libtsan.so.0",
        }
    }
}

/// A program that can be a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// The sanitizer library that it requests.
    pub soname: Soname,
    /// Its build-id in hexadecimal; empty if it has none.
    pub build_id: String,
    /// Whether it is a script, of which nothing more is known.
    pub is_script: bool,
    /// Whether Rust's standard library is linked into it.
    pub has_rust: bool,
}

/// Why a program cannot be a target.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is named for what it holds")]
#[non_exhaustive]
pub enum Unfit {
    /// The file does not exist.
    #[error("program {} not found", name.display())]
    Missing { name: PathBuf },
    /// Not found in the search path.
    #[error("program {} not found in PATH; for one in this directory, use ./{}", name.display(), name.display())]
    NotInPath { name: PathBuf },
    /// The path is a directory.
    #[error("{} is a directory, not a program", path.display())]
    Directory { path: PathBuf },
    /// The file is not executable.
    #[error("{} is not executable; run chmod +x on it", path.display())]
    NotExecutable { path: PathBuf },
    /// An I/O error.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Not a Linux program.
    #[error("{} is neither an ELF executable nor a script", path.display())]
    Foreign { path: PathBuf },
    /// Built for another processor.
    #[error("{} is not an x86-64 program; raddle runs no others", path.display())]
    Architecture { path: PathBuf },
    /// Statically linked.
    #[error("{} is linked statically, so raddle cannot load its runtime; link it without -static", path.display())]
    Static { path: PathBuf },
    /// Contains clang's runtime.
    #[error("{} contains clang's ThreadSanitizer runtime; build it with `raddle cc` instead of clang, or with clang -fsanitize=thread -shared-libsan", path.display())]
    OwnRuntime { path: PathBuf },
    /// No call to the sanitizer's functions.
    #[error("{} is not instrumented; build it with gcc -g -fsanitize=thread or with `raddle cc`", path.display())]
    Uninstrumented { path: PathBuf },
}

const BACKTRACE: &[u8] = b"RUST_BACKTRACE";

/// Finds a program as a shell would, and checks it.
pub fn check(name: &Path) -> Result<Program, Unfit> {
    let path = find(name)?;
    let bytes = fs::read(&path).map_err(|source| Unfit::Io { path: path.clone(), source })?;
    if bytes.starts_with(b"#!") {
        let (soname, build_id) = (Soname::default(), String::new());
        return Ok(Program { path, soname, build_id, is_script: true, has_rust: false });
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
    // The variable that the standard library reads.
    let has_rust = bytes.windows(BACKTRACE.len()).any(|window| window == BACKTRACE);
    Ok(Program { build_id: elf.build_id(), path, soname, is_script: false, has_rust })
}

/// The build-id of a file; empty if it has none.
pub fn build_id(path: &Path) -> Result<String, Unfit> {
    let bytes = fs::read(path).map_err(|source| Unfit::Io { path: path.to_owned(), source })?;
    Ok(Elf::parse(&bytes).map(|elf| elf.build_id()).unwrap_or_default())
}

/// The file that a name refers to: itself if it has a slash, otherwise the first one in the
/// search path.
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

    /// The strings of the dynamic table with these tags.
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

/// The program's own libraries that a file is linked with, directly or through others, as far as
/// they are found by the file's search path or `LD_LIBRARY_PATH`.
#[must_use]
pub fn own_libraries(path: &Path) -> Vec<PathBuf> {
    let mut libraries: Vec<PathBuf> = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Some(bytes) = read(&path) else { continue };
        let Some(elf) = Elf::parse(&bytes) else { continue };
        let directories = directories(&elf, &path);
        for name in elf.strings(&[DT_NEEDED]) {
            let found = directories.iter().map(|directory| directory.join(&name));
            let Some(library) = found.into_iter().find(|path| path.is_file()) else { continue };
            if is_own_library(library.as_os_str().as_bytes()) && !libraries.contains(&library) {
                libraries.push(library.clone());
                open.push(library);
            }
        }
    }
    libraries
}

/// The sanitizer library requested by an instrumented library that `elf` needs, if there is one
/// outside the system's directories.
fn instrumented_library(elf: &Elf<'_>, path: &Path) -> Option<Soname> {
    let directories = directories(elf, path);
    elf.strings(&[DT_NEEDED]).find_map(|name| {
        let bytes = directories.iter().find_map(|directory| read(&directory.join(&name)))?;
        let library = Elf::parse(&bytes)?;
        library.instrumented().then(|| library.soname())
    })
}

/// Where the loader looks for what a file needs, before it looks in the system's directories.
fn directories(elf: &Elf<'_>, path: &Path) -> Vec<PathBuf> {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let origin = whole.parent().map(Path::to_owned).unwrap_or_default();
    let mut directories: Vec<PathBuf> = elf
        .strings(&[DT_RPATH, DT_RUNPATH])
        .flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>())
        .map(|directory| with_origin(&directory, &origin))
        .collect();
    if let Some(list) = std::env::var_os("LD_LIBRARY_PATH") {
        directories.extend(std::env::split_paths(&list));
    }
    directories
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A directory of a library search path with `$ORIGIN` substituted.
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
