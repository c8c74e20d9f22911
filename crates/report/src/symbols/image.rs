//! One module's file: its symbol tables and its debug information.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, SectionFlags, elf};
use raddle_trace::run::Module;

use super::Complaint;
use super::debug_file;
use super::dies::Dies;
use super::index::Index;
use super::table::Table;
use super::types::Types;

/// A parsed file; it borrows the bytes.
pub(crate) type Elf<'data> = ElfFile64<'data, LittleEndian, &'data [u8]>;

/// A module's file, as far as names need it.
pub(super) struct Image {
    /// Functions by address.
    pub(super) functions: Table,
    /// Variables by address.
    pub(super) objects: Table,
    /// DWARF, if there is any and it can be read.
    pub(super) debug: Option<Debug>,
}

/// A module's DWARF, and what was worked out of it.
pub(super) struct Debug {
    /// From code addresses to lines.
    pub(super) lines: addr2line::Context<super::dies::Bytes>,
    /// From references to entries.
    pub(super) dies: Rc<Dies>,
    /// From references to types.
    pub(super) types: Types,
    /// From addresses to variables.
    pub(super) index: std::cell::OnceCell<Index>,
    /// Where the module has data. An entry for a variable elsewhere was left behind when
    /// the linker dropped the variable.
    pub(super) data: Vec<Range<u64>>,
}

impl Image {
    /// Reads a module's file and what belongs to it.
    pub(super) fn load(
        module: &Module,
        debug_root: &Path,
        complaints: &mut Vec<Complaint>,
    ) -> Option<Self> {
        match Self::try_load(module, debug_root) {
            Ok((image, complaint)) => {
                complaints.extend(complaint);
                Some(image)
            }
            // The kernel's own module is in no file, and nobody misses it.
            Err(Complaint::Unreadable { path, .. }) if path.contains("vdso") => None,
            Err(complaint) => {
                complaints.push(complaint);
                None
            }
        }
    }

    fn try_load(
        module: &Module,
        debug_root: &Path,
    ) -> Result<(Self, Option<Complaint>), Complaint> {
        let path = module.path.clone();
        let bytes = read(Path::new(&path))
            .map_err(|err| Complaint::Unreadable { path: path.clone(), reason: err.to_string() })?;
        let elf = Elf::parse(&*bytes)
            .map_err(|err| Complaint::NotElf { path: path.clone(), reason: err.to_string() })?;
        let found = build_id(&elf);
        if !module.build_id.is_empty()
            && found.as_deref() != Some(module.build_id.to_ascii_lowercase().as_str())
        {
            return Err(Complaint::Replaced { path, recorded: module.build_id.clone(), found });
        }

        let apart = if has_dwarf(&elf) {
            None
        } else {
            debug_file::find(Path::new(&path), &elf, debug_root)
        };
        let apart_elf = apart.as_ref().and_then(|bytes| Elf::parse(&**bytes).ok());
        let elves: Vec<&Elf<'_>> = apart_elf.iter().chain([&elf]).collect();
        let (functions, objects) = (Table::functions(&elves), Table::objects(&elves));
        let (debug_bytes, debug_elf) = match (&apart, &apart_elf) {
            (Some(bytes), Some(elf)) => (bytes, elf),
            _ => (&bytes, &elf),
        };
        let (debug, complaint) = if has_dwarf(debug_elf) {
            match Debug::new(debug_bytes, debug_elf, data_ranges(&elf)) {
                Ok(debug) => (Some(debug), None),
                Err(err) => (None, Some(Complaint::Damaged { path, reason: err.to_string() })),
            }
        } else {
            (None, None)
        };
        Ok((Self { functions, objects, debug }, complaint))
    }

    /// Whether the debug information is in files that we do not read.
    pub(super) fn is_split(&self) -> bool {
        self.debug.as_ref().is_some_and(|debug| debug.dies.is_split())
    }
}

impl Debug {
    fn new(bytes: &Rc<[u8]>, elf: &Elf<'_>, data: Vec<Range<u64>>) -> gimli::Result<Self> {
        let dies = Rc::new(Dies::new(bytes, elf)?);
        Ok(Self {
            lines: addr2line::Context::from_arc_dwarf(dies.dwarf())?,
            types: Types::new(Rc::clone(&dies)),
            dies,
            index: std::cell::OnceCell::new(),
            data,
        })
    }

    /// The variables, found now if they were not before.
    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.dies, &self.data))
    }
}

/// The whole of a file. It is not mapped: a file that somebody truncates while it is
/// mapped would kill us.
pub(crate) fn read(path: &Path) -> io::Result<Rc<[u8]>> {
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let n_bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    // Filled in place: a debug build's file can be large, and a copy would double it.
    let mut bytes: Rc<[u8]> = std::iter::repeat_n(0, n_bytes).collect();
    if let Some(place) = Rc::get_mut(&mut bytes) {
        file.read_exact(place)?;
    }
    Ok(bytes)
}

/// A file's build-id in hexadecimal digits.
pub(crate) fn build_id(elf: &Elf<'_>) -> Option<String> {
    let id = elf.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a file has debug information that is worth reading.
pub(super) fn has_dwarf(elf: &Elf<'_>) -> bool {
    elf.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
}

fn data_ranges(elf: &Elf<'_>) -> Vec<Range<u64>> {
    let is_data = |flags| match flags {
        SectionFlags::Elf { sh_flags, .. } => {
            sh_flags.0 & elf::SHF_ALLOC.0 != 0 && sh_flags.0 & elf::SHF_TLS.0 == 0
        }
        _ => false,
    };
    elf.sections()
        .filter(|section| section.address() != 0 && is_data(section.flags()))
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .collect()
}
