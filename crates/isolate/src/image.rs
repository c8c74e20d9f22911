//! What is loaded into a process: functions, how to unwind them, and whose they are.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::Pid;
use object::read::elf::ProgramHeader as _;
use object::{LittleEndian, Object as _, ObjectSymbol as _, RelocationTarget};
use raddle_code::elf::{self, Elf, Files};
use raddle_code::unwind::{self, Frame, Loaded, Table};
use raddle_trace::own;
use raddle_trace::run::Module;
use rustc_hash::FxHashMap;

use crate::tracee::Memory;

/// All that is loaded into a process.
#[derive(Debug, Default)]
pub(crate) struct Images {
    images: Vec<Image>,
}

/// An executable or a library.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    /// What to subtract from an address to get one of the file.
    pub(crate) base: u64,
    low: u64,
    high: u64,
    build_id: String,
    /// The program's own code, not the system's or raddle's.
    pub(crate) is_own: bool,
    /// Raddle's library.
    pub(crate) is_runtime: bool,
    bytes: Arc<[u8]>,
    /// Address of the file, length, offset in the file.
    segments: Vec<(u64, u64, u64)>,
    /// invariant: sorted by start.
    functions: Vec<Function>,
    table: Table,
    /// Slots of the global offset table, by address of the file: names of what is elsewhere.
    slots: FxHashMap<u64, String>,
    /// The same, of what is in this image: where.
    own_slots: FxHashMap<u64, u64>,
}

/// A function, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// First address of the file.
    start: u64,
    end: u64,
    name: Option<String>,
}

/// Where an address is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: Option<&'a str>,
}

impl Images {
    /// What is loaded now. Files that cannot be read are left out.
    pub(crate) fn load(pid: Pid, files: &Files) -> io::Result<Self> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let mut spans: Vec<(PathBuf, u64, u64, u64)> = Vec::new();
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (Some(range), _, Some(offset)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Some(path) = words.nth(2).filter(|path| path.starts_with('/')) else { continue };
            let Some((low, high)) = range.split_once('-') else { continue };
            let hex = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
            let (low, high, offset) = (hex(low), hex(high), hex(offset));
            match spans.iter_mut().find(|(other, ..)| other == Path::new(path)) {
                Some(span) => span.2 = span.2.max(high),
                None => spans.push((path.into(), low, high, offset)),
            }
        }
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let mut images: Vec<Image> = spans
            .into_iter()
            .filter_map(|(path, low, high, offset)| Image::load(path, low, high, offset, files))
            .collect();
        // The executable first, as everywhere.
        images.sort_by_key(|image| image.path != program);
        if let Some(first) = images.first_mut() {
            first.is_own = true;
        }
        Ok(Self { images })
    }

    /// Whether nothing is loaded, as in a process that has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// The image that holds an address.
    pub(crate) fn at(&self, address: u64) -> Option<&Image> {
        self.images.iter().find(|image| (image.low..image.high).contains(&address))
    }

    /// Whether an address is in the program's own code.
    pub(crate) fn is_own(&self, address: u64) -> bool {
        self.at(address).is_some_and(|image| image.is_own)
    }

    /// Whether an address is in raddle's library.
    pub(crate) fn is_runtime(&self, address: u64) -> bool {
        self.at(address).is_some_and(|image| image.is_runtime)
    }

    /// Whether an address is in code that can be read.
    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.code(address, 1).is_some()
    }

    /// The function that an address is in.
    pub(crate) fn function(&self, address: u64) -> Option<Bounds<'_>> {
        let image = self.at(address)?;
        let function = image.function(address - image.base)?;
        Some(Bounds {
            start: function.start + image.base,
            end: function.end + image.base,
            name: function.name.as_deref(),
        })
    }

    /// The function of this name in the image that holds `near`.
    pub(crate) fn named(&self, near: u64, name: &str) -> Option<u64> {
        let image = self.at(near)?;
        let function = image.functions.iter().find(|f| f.name.as_deref() == Some(name))?;
        Some(function.start + image.base)
    }

    /// The first function in the image that holds `near` whose name is such a one.
    pub(crate) fn named_like(&self, near: u64, is_it: impl Fn(&str) -> bool) -> Option<u64> {
        let image = self.at(near)?;
        let function = image.functions.iter().find(|f| f.name.as_deref().is_some_and(&is_it))?;
        Some(function.start + image.base)
    }

    /// The name of what a slot of a global offset table holds.
    pub(crate) fn slot(&self, address: u64) -> Option<&str> {
        let image = self.at(address)?;
        image.slots.get(&(address - image.base)).map(String::as_str)
    }

    /// What of its own image a slot of a global offset table points to.
    pub(crate) fn own_slot(&self, address: u64) -> Option<u64> {
        let image = self.at(address)?;
        image.own_slots.get(&(address - image.base)).map(|target| target + image.base)
    }

    /// Code as the file has it: at most so many bytes.
    pub(crate) fn code(&self, address: u64, n_bytes: usize) -> Option<&[u8]> {
        let image = self.at(address)?;
        let at = address - image.base;
        let (start, len, offset) =
            image.segments.iter().find(|(start, len, _)| (*start..start + len).contains(&at))?;
        let from = (offset + (at - start)) as usize;
        let to = (offset + len) as usize;
        image.bytes.get(from..to.min(from + n_bytes))
    }

    /// The modules, as reports know them.
    pub(crate) fn modules(&self) -> Vec<Module> {
        self.images
            .iter()
            .map(|image| Module {
                path: image.path.to_string_lossy().into_owned(),
                build_id: image.build_id.clone(),
                base: image.base,
                low: image.low,
                high: image.high,
            })
            .collect()
    }

    /// The frame that called this one.
    pub(crate) fn caller(&self, frame: &Frame, memory: &Memory) -> Option<Frame> {
        unwind::caller(frame, self, memory)
    }

    /// The frames of a thread, innermost first.
    pub(crate) fn frames(&self, innermost: Frame, memory: &Memory) -> Vec<Frame> {
        unwind::stack(innermost, self, memory, FRAMES_MAX)
    }
}

impl Loaded for Images {
    fn table(&self, address: u64) -> Option<(&Table, u64)> {
        self.at(address).map(|image| (&image.table, image.base))
    }
}

/// More frames than this are a recursion that went wrong; the inner ones tell enough.
const FRAMES_MAX: usize = 64;

impl Image {
    fn load(path: PathBuf, low: u64, high: u64, offset: u64, files: &Files) -> Option<Self> {
        let bytes = files.read(&path).ok()?;
        let file = Elf::parse(&*bytes).ok()?;
        let endian = file.endian();
        let headers = file.elf_program_headers();
        let loaded = |header: &&object::elf::ProgramHeader64<LittleEndian>| {
            header.p_type(endian) == object::elf::PT_LOAD
        };
        let first = headers.iter().filter(loaded).find(|header| {
            let from = header.p_offset(endian) & !0xfff;
            (from..from + header.p_filesz(endian).max(1) + 0xfff).contains(&offset)
        })?;
        let base = low.wrapping_sub(
            (first.p_vaddr(endian) & !0xfff) + offset - (first.p_offset(endian) & !0xfff),
        );
        let segments = headers
            .iter()
            .filter(loaded)
            .map(|header| {
                (header.p_vaddr(endian), header.p_filesz(endian), header.p_offset(endian))
            })
            .collect();
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let mut functions: Vec<Function> = symbols
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.address() > 0)
            .map(|symbol| Function {
                start: symbol.address(),
                end: symbol.address() + symbol.size(),
                name: symbol.name().ok().map(str::to_owned),
            })
            .collect();
        let table = Table::parse(&*bytes)?;
        let described =
            |range: Range<u64>| Function { start: range.start, end: range.end, name: None };
        functions.extend(table.functions().into_iter().map(described));
        // Named before nameless, so that the nameless of the same start goes.
        functions.sort_by_key(|f| (f.start, f.name.is_none(), std::cmp::Reverse(f.end)));
        functions.dedup_by(|later, first| {
            let same = later.start == first.start;
            if same && first.end == first.start {
                first.end = later.end;
            }
            same
        });
        let mut slots = FxHashMap::default();
        let mut own_slots = FxHashMap::default();
        for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
            if relocation.target() == RelocationTarget::Absolute {
                own_slots.insert(at, relocation.addend() as u64);
            }
            if let RelocationTarget::Symbol(index) = relocation.target()
                && let Some(table) = file.dynamic_symbol_table()
                && let Ok(symbol) = object::ObjectSymbolTable::symbol_by_index(&table, index)
                && let Ok(name) = symbol.name()
            {
                slots.insert(at, name.to_owned());
            }
        }
        let is_runtime = own::is_runtime(path.as_os_str().as_bytes());
        let is_own = own::is_own_library(path.as_os_str().as_bytes());
        let build_id = elf::build_id(&file).unwrap_or_default();
        Some(Self {
            base,
            low,
            high,
            build_id,
            is_own,
            is_runtime,
            segments,
            functions,
            table,
            slots,
            own_slots,
            bytes,
            path,
        })
    }

    fn function(&self, at: u64) -> Option<&Function> {
        let index = self.functions.partition_point(|function| function.start <= at);
        // A part may lie inside of another one.
        self.functions[..index].iter().rev().take(8).find(|function| at < function.end)
    }
}
