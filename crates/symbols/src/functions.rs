//! From the name of a function to its code.
//!
//! A name is what raddle prints: demangled, without parameters ([`site`](crate::site)). The code of
//! a function is every address at which raddle prints its name: of the functions that are inlined
//! into each other there, the innermost one that is in the program's own source. So a function's
//! code is in several pieces: without the functions of the program that are inlined into it, and
//! with the places that it is inlined into itself.
//!
//! Pieces are found by asking for the name at every address where the innermost function may
//! change. DWARF says where that is; without it, linker symbols do.
//!
//! # Limits
//! An instruction whose line is in another file than its neighbors, without a call in between
//! (`#include` in the middle of a function), gets the name of the first one.

use std::ops::Range;

use raddle_trace::run::Module;
use rustc_hash::FxHashMap;

use super::demangle::demangle;
use super::dies::{Die, Dies};
use super::image::Image;
use super::{Cache, Symbols};

/// The code of a function in a module's file: ranges of addresses, sorted and apart.
#[must_use]
pub fn code_of(module: &Module, function: &str, cache: &Cache) -> Vec<Range<u64>> {
    let symbols = Symbols::new(std::slice::from_ref(module), cache);
    let Some(image) = symbols.modules.first().and_then(|slot| symbols.image(slot)) else {
        return Vec::new();
    };
    let Entries { named, mut edges } = Entries::new(image, function);
    edges.sort_unstable();
    edges.dedup();
    let mut code: Vec<Range<u64>> = Vec::new();
    for piece in edges.windows(2).map(|edges| edges[0]..edges[1]) {
        let is_near = || named.iter().any(|range| range.contains(&piece.start));
        if !is_near() || symbols.name_at(image, piece.start).as_deref() != Some(function) {
            continue;
        }
        match code.last_mut() {
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => code.push(piece),
        }
    }
    code
}

/// Functions of a module whose names end like this one, `Queue::push` for `push`: sorted, at most
/// `n_max`.
#[must_use]
pub fn alike(module: &Module, function: &str, n_max: usize, cache: &Cache) -> Vec<String> {
    let symbols = Symbols::new(std::slice::from_ref(module), cache);
    let image = symbols.modules.first().and_then(|slot| symbols.image(slot));
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    let wanted = last(function);
    let names = image.iter().flat_map(|image| image.functions.names()).map(demangle);
    let mut alike: Vec<String> = names.filter(|name| last(name) == wanted).collect();
    alike.sort();
    alike.dedup();
    alike.truncate(n_max);
    alike
}

/// Beyond every address of a file.
const END: u64 = 1 << 47;

impl Symbols {
    /// The name that raddle prints for code at an address of the file.
    fn name_at(&self, image: &Image, address: u64) -> Option<String> {
        let frames = self.frames(image, address);
        let own = frames.iter().find(|frame| frame.has_own_source());
        own.or(frames.first())?.function.clone()
    }
}

/// What is known about the functions of a file.
#[derive(Default)]
struct Entries {
    /// Code of functions of that name, with what is inlined into them.
    named: Vec<Range<u64>>,
    /// Where functions begin and end.
    edges: Vec<u64>,
}

impl Entries {
    fn new(image: &Image, function: &str) -> Self {
        let mut entries = Self::default();
        let mut symbols = image.functions.symbols().iter().peekable();
        while let Some(symbol) = symbols.next() {
            // One without a size extends to the next.
            let end = match symbol.bytes {
                0 => symbols.peek().map_or(END, |next| next.low),
                bytes => symbol.low.saturating_add(bytes).min(END),
            };
            entries.edges.extend([symbol.low, end]);
            if demangle(&symbol.name) == function {
                entries.named.push(symbol.low..end);
            }
        }
        if let Some(debug) = &image.debug {
            for number in debug.dies.unit_numbers() {
                // Damage ends this unit; what was found before it is usable.
                let _ = entries.add(&debug.dies, number, function);
            }
        }
        entries
    }

    fn add(&mut self, dies: &Dies, number: usize, function: &str) -> gimli::Result<()> {
        let Some(unit) = dies.unit(number) else { return Ok(()) };
        let dwarf = dies.dwarf();
        // Many places are inlined from one function.
        let mut known: FxHashMap<Die, bool> = FxHashMap::default();
        let mut cursor = unit.entries();
        while cursor.next_entry()? {
            let Some(entry) = cursor.current() else { continue };
            let tag = entry.tag();
            if !matches!(tag, gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine) {
                continue;
            }
            let mut ranges = Vec::new();
            let mut found = dwarf.die_ranges(&unit, entry)?;
            while let Some(range) = found.next()? {
                if range.begin < range.end {
                    ranges.push(range.begin..range.end);
                }
            }
            if ranges.is_empty() {
                continue;
            }
            self.edges.extend(ranges.iter().flat_map(|range| [range.start, range.end]));
            let own = Die { unit: number, offset: entry.offset().0 };
            let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
            let origin = origin.and_then(|value| dies.reference(number, &value)).unwrap_or(own);
            let is_named = *known.entry(origin).or_insert_with(|| {
                let name =
                    dies.linkage_name(origin).or_else(|| dies.text(origin, gimli::DW_AT_name));
                name.is_some_and(|name| demangle(&name) == function)
            });
            if is_named {
                self.named.append(&mut ranges);
            }
        }
        Ok(())
    }
}
