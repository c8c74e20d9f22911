//! DWARF's debugging information entries ("dies"), and the references between them.
//!
//! A [`Die`] is a number, so that tables of them outlive any walk. Units are parsed on first use
//! and kept.
//!
//! An entry may inherit attributes from another one: a definition from the declaration that it
//! completes (`DW_AT_specification`), an inlined or out-of-line copy from the abstract original
//! (`DW_AT_abstract_origin`). [`Dies::attr`] follows both.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{AttributeValue, DwAt, Dwarf, EndianArcSlice, Reader, SectionId, UnitOffset, UnitType};
use object::read::CompressionFormat;
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;

use raddle_code::elf::Elf;

/// Part of a section.
pub(super) type Bytes = EndianArcSlice<gimli::LittleEndian>;
/// A parsed unit.
pub(super) type Unit = gimli::Unit<Bytes>;
/// A parsed entry.
pub(super) type Entry = gimli::DebuggingInformationEntry<Bytes>;
/// The value of an attribute.
pub(super) type Value = AttributeValue<Bytes>;

/// An entry, by the number of its unit and its offset there. Meaningless in another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Die {
    /// Units of `.debug_info` come first, then those of `.debug_types`.
    pub(super) unit: usize,
    /// Offset from the start of the unit.
    pub(super) offset: usize,
}

/// Maximum number of references followed from entry to entry; compilers need two.
const REFERENCES_MAX: usize = 8;
/// Maximum number of children read per entry. Generated code has records with thousands of
/// members.
const CHILDREN_MAX: usize = 100_000;

/// All entries of a file.
pub(super) struct Dies {
    dwarf: Arc<Dwarf<Bytes>>,
    // invariant: those of .debug_info first, `n_info` of them, by offset
    headers: Vec<gimli::UnitHeader<Bytes>>,
    n_info: usize,
    signatures: FxHashMap<u64, Die>,
    units: RefCell<FxHashMap<usize, Option<Rc<Unit>>>>,
}

impl Dies {
    /// Finds the sections and the units of a file.
    pub(super) fn new(bytes: &Arc<[u8]>, elf: &Elf<'_>) -> gimli::Result<Self> {
        let whole = Bytes::new(Arc::clone(bytes), gimli::LittleEndian);
        let mut dwarf = Dwarf::load(|id| gimli::Result::Ok(section(&whole, elf, id)))?;
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        // Damage ends the list; the units before it are usable.
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let n_info = headers.len();
        let mut units = dwarf.type_units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let signature = |(unit, header): (usize, &gimli::UnitHeader<Bytes>)| match header.type_() {
            UnitType::Type { type_signature, type_offset } => {
                Some((type_signature.0, Die { unit, offset: type_offset.0 }))
            }
            _ => None,
        };
        let signatures = headers.iter().enumerate().filter_map(signature).collect();
        let dwarf = Arc::new(dwarf);
        Ok(Self { dwarf, headers, n_info, signatures, units: RefCell::default() })
    }

    /// The sections.
    pub(super) fn dwarf(&self) -> Arc<Dwarf<Bytes>> {
        Arc::clone(&self.dwarf)
    }

    /// The numbers of the units that may contain variables.
    pub(super) fn unit_numbers(&self) -> std::ops::Range<usize> {
        0..self.n_info
    }

    /// Whether the program's first unit is only the skeleton of one in another file.
    pub(super) fn is_split(&self) -> bool {
        let is_skeleton = |n| self.unit(n).is_some_and(|unit| unit.dwo_id.is_some());
        // The compiler's start files come first and are not split, so check a few units.
        self.unit_numbers().take(8).any(is_skeleton)
    }

    /// A unit, parsed on first use.
    pub(super) fn unit(&self, number: usize) -> Option<Rc<Unit>> {
        if let Some(unit) = self.units.borrow().get(&number) {
            return unit.clone();
        }
        let unit = self.unit_once(number);
        self.units.borrow_mut().insert(number, unit.clone());
        unit
    }

    /// A unit that is not cached, for a walk through all of them.
    pub(super) fn unit_once(&self, number: usize) -> Option<Rc<Unit>> {
        let header = self.headers.get(number)?;
        self.dwarf.unit(header.clone()).ok().map(Rc::new)
    }

    /// An entry.
    pub(super) fn entry(&self, die: Die) -> Option<Entry> {
        self.unit(die.unit)?.entry(UnitOffset(die.offset)).ok()
    }

    /// The entries directly below an entry.
    pub(super) fn children(&self, die: Die) -> Vec<(Die, Entry)> {
        let mut children = Vec::new();
        let Some(unit) = self.unit(die.unit) else { return children };
        let Ok(mut cursor) = unit.entries_at_offset(UnitOffset(die.offset)) else {
            return children;
        };
        let has_children = cursor.next_entry().unwrap_or(false)
            && cursor.current().is_some_and(Entry::has_children)
            && cursor.next_entry().unwrap_or(false);
        if !has_children {
            return children;
        }
        while children.len() < CHILDREN_MAX
            && let Some(entry) = cursor.current()
        {
            children.push((Die { unit: die.unit, offset: entry.offset().0 }, entry.clone()));
            if !matches!(cursor.next_sibling(), Ok(Some(_))) {
                break;
            }
        }
        children
    }

    /// The entry that an attribute of an entry in unit `unit` refers to.
    pub(super) fn reference(&self, unit: usize, value: &Value) -> Option<Die> {
        match *value {
            AttributeValue::UnitRef(offset) => Some(Die { unit, offset: offset.0 }),
            AttributeValue::DebugInfoRef(offset) => {
                let info = self.headers.get(..self.n_info)?;
                let n_before = info.partition_point(|header| header.offset().0 <= offset.0);
                let unit = n_before.checked_sub(1)?;
                Some(Die { unit, offset: offset.to_unit_offset(info.get(unit)?)?.0 })
            }
            AttributeValue::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    /// An attribute of an entry, or of the entries that it inherits from; and the entry that has
    /// it.
    pub(super) fn attr(&self, mut die: Die, name: DwAt) -> Option<(Die, Value)> {
        for _ in 0..REFERENCES_MAX {
            let entry = self.entry(die)?;
            if let Some(value) = entry.attr_value(name) {
                return Some((die, value));
            }
            let origin = entry
                .attr_value(gimli::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
            die = self.reference(die.unit, &origin)?;
        }
        None
    }

    /// A string attribute.
    pub(super) fn text(&self, die: Die, name: DwAt) -> Option<String> {
        let (die, value) = self.attr(die, name)?;
        self.string(die.unit, value)
    }

    /// An attribute that refers to another entry.
    pub(super) fn target(&self, die: Die, name: DwAt) -> Option<Die> {
        let (die, value) = self.attr(die, name)?;
        self.reference(die.unit, &value)
    }

    /// The string value of an attribute in unit `unit`.
    pub(super) fn string(&self, unit: usize, value: Value) -> Option<String> {
        self.string_in(&*self.unit(unit)?, value)
    }

    /// The string value of an attribute in a unit.
    pub(super) fn string_in(&self, unit: &Unit, value: Value) -> Option<String> {
        let text = self.dwarf.attr_string(unit, value).ok()?;
        Some(text.to_string_lossy().ok()?.into_owned())
    }

    /// The linker symbol of what an entry describes.
    pub(super) fn linkage_name(&self, die: Die) -> Option<String> {
        self.text(die, gimli::DW_AT_linkage_name)
            .or_else(|| self.text(die, gimli::DW_AT_MIPS_linkage_name))
    }

    /// Where an entry's subject is declared: full path and line.
    pub(super) fn declared(&self, die: Die) -> Option<(String, u32)> {
        let (holder, file) = self.attr(die, gimli::DW_AT_decl_file)?;
        let (_, line) = self.attr(die, gimli::DW_AT_decl_line)?;
        let AttributeValue::FileIndex(file) = file else { return None };
        let line = u32::try_from(line.udata_value()?).ok()?;
        let unit = self.unit(holder.unit)?;
        let header = unit.line_program.as_ref()?.header();
        let file = header.file(file)?;
        let mut path = std::path::PathBuf::new();
        if let Some(directory) = &unit.comp_dir {
            path.push(&*directory.to_string_lossy().ok()?);
        }
        if let Some(directory) = file.directory(header) {
            path.push(self.string(holder.unit, directory)?);
        }
        path.push(self.string(holder.unit, file.path_name())?);
        // Collecting the components drops the "." that compilers leave in the middle.
        let path: std::path::PathBuf = path.components().collect();
        Some((path.to_string_lossy().into_owned(), line))
    }
}

/// A section of a file, decompressed if necessary; empty if it is missing or damaged.
fn section(whole: &Bytes, elf: &Elf<'_>, id: SectionId) -> Bytes {
    let empty = || Bytes::new(Arc::from([]), gimli::LittleEndian);
    let Some(section) = elf.section_by_name(id.name()) else { return empty() };
    let Ok(range) = section.compressed_file_range() else { return empty() };
    if range.format != CompressionFormat::None {
        return section
            .uncompressed_data()
            .map_or_else(|_| empty(), |bytes| Bytes::new(Arc::from(&*bytes), gimli::LittleEndian));
    }
    let start = usize::try_from(range.offset).ok();
    let n_bytes = usize::try_from(range.uncompressed_size).ok();
    match start.zip(n_bytes).and_then(|(start, n)| Some(start..start.checked_add(n)?)) {
        Some(range) if range.end <= whole.len() => whole.range(range),
        _ => empty(),
    }
}
