//! One module's file: its symbol tables and its debug information.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use object::elf::{SHF_ALLOC, SHF_TLS};
use object::{Object as _, ObjectSection as _, SectionFlags};
use raddle_code::elf::{self, Elf, ElfError, Files};
use raddle_trace::run::Module;

use super::Complaint;
use super::debug_file;
use super::dies::Dies;
use super::index::Index;
use super::table::Table;
use super::types::Types;

/// A module's file, as far as names need it.
pub(super) struct Image {
    /// Functions by address.
    pub(super) functions: Table,
    /// Variables by address.
    pub(super) objects: Table,
    /// DWARF, if there is any and it can be read.
    pub(super) debug: Option<Debug>,
}

/// A module's DWARF and what was derived from it.
pub(super) struct Debug {
    /// From code addresses to lines.
    pub(super) lines: addr2line::Context<super::dies::Bytes>,
    /// From references to entries.
    pub(super) dies: Rc<Dies>,
    /// From references to types.
    pub(super) types: Types,
    /// From addresses to variables.
    pub(super) index: std::cell::OnceCell<Index>,
    /// Where the module has data. A variable elsewhere was dropped by the linker.
    pub(super) data: Vec<Range<u64>>,
}

impl Image {
    /// Reads a module's file and its debug file.
    pub(super) fn load(
        module: &Module,
        files: &Files,
        debug_root: &Path,
        complaints: &mut Vec<Complaint>,
    ) -> Option<Self> {
        match Self::try_load(module, files, debug_root) {
            Ok((image, complaint)) => {
                complaints.extend(complaint);
                Some(image)
            }
            // The kernel's module has no file, which is fine.
            Err(ElfError::Unreadable { path, .. }) if path.contains("vdso") => None,
            Err(error) => {
                complaints.push(Complaint::File(error));
                None
            }
        }
    }

    fn try_load(
        module: &Module,
        files: &Files,
        debug_root: &Path,
    ) -> Result<(Self, Option<Complaint>), ElfError> {
        let bytes = files.module(module)?;
        let elf = elf::parse(module, &bytes)?;
        let apart = if debug_file::has_dwarf(&elf) {
            None
        } else {
            debug_file::find(Path::new(&module.path), &elf, files, debug_root)
        };
        let apart_elf = apart.as_ref().and_then(|bytes| Elf::parse(&**bytes).ok());
        let elves: Vec<&Elf<'_>> = apart_elf.iter().chain([&elf]).collect();
        let (functions, objects) = (Table::functions(&elves), Table::objects(&elves));
        let (debug_bytes, debug_elf) = match (&apart, &apart_elf) {
            (Some(bytes), Some(elf)) => (bytes, elf),
            _ => (&bytes, &elf),
        };
        let (debug, complaint) = if debug_file::has_dwarf(debug_elf) {
            match Debug::new(debug_bytes, debug_elf, data_ranges(&elf)) {
                Ok(debug) => (Some(debug), None),
                Err(err) => {
                    let (path, reason) = (module.path.clone(), err.to_string());
                    (None, Some(Complaint::Damaged { path, reason }))
                }
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
    fn new(bytes: &Arc<[u8]>, elf: &Elf<'_>, data: Vec<Range<u64>>) -> gimli::Result<Self> {
        let dies = Rc::new(Dies::new(bytes, elf)?);
        Ok(Self {
            lines: addr2line::Context::from_arc_dwarf(dies.dwarf())?,
            types: Types::new(Rc::clone(&dies)),
            dies,
            index: std::cell::OnceCell::new(),
            data,
        })
    }

    /// The variables, indexed on first use.
    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.dies, &self.data))
    }
}

fn data_ranges(elf: &Elf<'_>) -> Vec<Range<u64>> {
    let is_data = |flags| match flags {
        SectionFlags::Elf { sh_flags, .. } => {
            sh_flags.0 & SHF_ALLOC.0 != 0 && sh_flags.0 & SHF_TLS.0 == 0
        }
        _ => false,
    };
    elf.sections()
        .filter(|section| section.address() != 0 && is_data(section.flags()))
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .collect()
}
