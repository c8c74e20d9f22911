//! Index of variables by address.
//!
//! One pass over all entries of a file finds the variables with a fixed address: globals, and
//! `static` ones in functions and classes. A location counts if it is `DW_OP_addr` or
//! `DW_OP_addrx`, with `DW_OP_plus_uconst` where the compiler merged variables, and with
//! `DW_OP_piece` where it split one. Everything else (stack, registers, thread-local storage) is
//! skipped without parsing. Names are built on demand: an entry keeps its scopes.

use std::ops::Range;

use gimli::{AttributeValue, Operation, UnitOffset};
use rustc_hash::FxHashMap;

use super::demangle::demangle;
use super::dies::{Bytes, Die, Dies, Unit};

/// The variables of a file.
#[derive(Debug, Default)]
pub(super) struct Index {
    // invariant: sorted by address, and no two with the same one
    globals: Vec<Global>,
    /// Variables that are only declared, by linker symbol: their definition has no DWARF, but
    /// their type is known.
    declared: FxHashMap<String, Die>,
}

/// A variable, or a piece of one, with a fixed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Global {
    /// Its address in the file.
    pub(super) low: u64,
    /// For a piece: its size.
    pub(super) piece_bytes: Option<u64>,
    /// For a piece: its offset in the variable.
    pub(super) piece_offset: u64,
    /// Its DWARF entry.
    pub(super) die: Die,
    scopes: Box<[usize]>,
}

impl Index {
    /// Finds all variables. Those outside `data` were dropped by the linker.
    pub(super) fn new(dies: &Dies, data: &[Range<u64>]) -> Self {
        let mut index = Self::default();
        for number in dies.unit_numbers() {
            if let Some(unit) = dies.unit_once(number) {
                // Damage ends this unit; what was found before it is usable.
                let _ = index.add(dies, number, &unit);
            }
        }
        index.globals.retain(|global| data.iter().any(|range| range.contains(&global.low)));
        // A stable sort: of two entries at one address, the first one wins.
        index.globals.sort_by_key(|global| global.low);
        index.globals.dedup_by_key(|global| global.low);
        index
    }

    /// The last variable that starts at or before an address.
    pub(super) fn before(&self, address: u64) -> Option<&Global> {
        let n_before = self.globals.partition_point(|global| global.low <= address);
        self.globals.get(n_before.checked_sub(1)?)
    }

    /// The declaration of a variable that has no definition here.
    pub(super) fn declared(&self, linkage_name: &str) -> Option<Die> {
        self.declared.get(linkage_name).copied()
    }

    fn add(&mut self, dies: &Dies, number: usize, unit: &Unit) -> gimli::Result<()> {
        let mut attrs = Vec::new();
        walk(unit, |abbreviation, raw, scopes, offset| {
            let has = |name| abbreviation.attributes().iter().any(|spec| spec.name() == name);
            if !is_variable(abbreviation.tag())
                || !(has(gimli::DW_AT_location) || has(gimli::DW_AT_declaration))
            {
                return raw.skip_attributes(abbreviation.attributes());
            }
            raw.read_attributes(abbreviation.attributes(), &mut attrs)?;
            let die = Die { unit: number, offset: offset.0 };
            let value = |name| attrs.iter().find(|a| a.name() == name).map(gimli::Attribute::value);
            if let Some(AttributeValue::Exprloc(location)) = value(gimli::DW_AT_location) {
                let scopes: Box<[usize]> = scopes.iter().map(|scope| scope.offset.0).collect();
                for piece in pieces(dies, unit, location)? {
                    self.globals.push(Global {
                        low: piece.low,
                        piece_bytes: piece.bytes,
                        piece_offset: piece.offset,
                        die,
                        scopes: scopes.clone(),
                    });
                }
            } else if value(gimli::DW_AT_declaration).is_some()
                && value(gimli::DW_AT_external).is_some()
                && let Some(name) = value(gimli::DW_AT_linkage_name)
                    .or_else(|| value(gimli::DW_AT_name))
                    .and_then(|name| dies.string_in(unit, name))
            {
                self.declared.entry(name).or_insert(die);
            }
            Ok(())
        })
    }
}

impl Global {
    /// Its qualified name: `bank::ledger`, `push::calls`. `symbol` is its linker symbol.
    pub(super) fn name(&self, dies: &Dies, symbol: Option<&str>) -> Option<String> {
        // It contains all scopes, even if the definition is elsewhere than its declaration.
        if let Some(linkage) = dies.linkage_name(self.die) {
            return Some(demangle(&linkage));
        }
        let name = dies.text(self.die, gimli::DW_AT_name)?;
        if dies.entry(self.die)?.has_attr(gimli::DW_AT_specification) {
            return Some(symbol.map_or(name, demangle));
        }
        let scopes = || self.scopes.iter().map(|&offset| Die { unit: self.die.unit, offset });
        let has_nameless_function = scopes().any(|scope| {
            dies.entry(scope).is_some_and(|entry| entry.tag() == gimli::DW_TAG_subprogram)
                && dies.text(scope, gimli::DW_AT_name).is_none()
        });
        // clang writes this for a function that is inlined everywhere.
        if has_nameless_function && let Some(symbol) = symbol {
            return Some(from_symbol(symbol, &name));
        }
        Some(qualified(dies, scopes(), &name))
    }
}

/// The name of a function's static variable from its symbol: `_ZZ4pushvE5calls` or, for C
/// compiled by clang, `push.calls`.
fn from_symbol(symbol: &str, name: &str) -> String {
    match symbol.split_once('.') {
        Some((function, variable)) if variable == name => format!("{function}::{name}"),
        _ if symbol.starts_with("_Z") => demangle(symbol),
        _ => name.to_owned(),
    }
}

/// A name qualified by its scopes, outermost first.
pub(super) fn qualified(dies: &Dies, scopes: impl Iterator<Item = Die>, name: &str) -> String {
    let mut qualified = String::new();
    for scope in scopes {
        let Some(entry) = dies.entry(scope) else { continue };
        let is_function = entry.tag() == gimli::DW_TAG_subprogram;
        if is_function && let Some(linkage) = dies.linkage_name(scope) {
            // It is complete, whatever the entry is nested in.
            qualified = demangle(&linkage);
        } else if let Some(scope_name) = dies.text(scope, gimli::DW_AT_name) {
            qualified += &scope_name;
        } else if entry.tag() == gimli::DW_TAG_namespace {
            qualified += "(anonymous namespace)";
        } else {
            continue;
        }
        qualified += "::";
    }
    qualified + name
}

/// An enclosing scope during a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    depth: isize,
    /// Its entry.
    pub(super) offset: UnitOffset,
}

/// Visits every entry of a unit with its scopes, outermost first. The visitor reads or skips the
/// entry's attributes.
pub(super) fn walk(
    unit: &Unit,
    mut visit: impl FnMut(
        &gimli::Abbreviation,
        &mut gimli::EntriesRaw<'_, Bytes>,
        &[Scope],
        UnitOffset,
    ) -> gimli::Result<()>,
) -> gimli::Result<()> {
    let mut raw = unit.entries_raw(None)?;
    let mut scopes: Vec<Scope> = Vec::new();
    while !raw.is_empty() {
        let (offset, depth) = (raw.next_offset(), raw.next_depth());
        let Some(abbreviation) = raw.read_abbreviation()? else { continue };
        while scopes.last().is_some_and(|scope| scope.depth >= depth) {
            scopes.pop();
        }
        visit(abbreviation, &mut raw, &scopes, offset)?;
        if abbreviation.has_children() && is_scope(abbreviation.tag()) {
            scopes.push(Scope { depth, offset });
        }
    }
    Ok(())
}

fn is_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_subprogram
            | gimli::DW_TAG_module
    )
}

fn is_variable(tag: gimli::DwTag) -> bool {
    // Up to DWARF 4 a class's static member is a DW_TAG_member, declared only.
    matches!(tag, gimli::DW_TAG_variable | gimli::DW_TAG_member)
}

struct Piece {
    low: u64,
    bytes: Option<u64>,
    offset: u64,
}

/// The location of a variable, if it is fixed.
fn pieces(
    dies: &Dies,
    unit: &Unit,
    location: gimli::Expression<Bytes>,
) -> gimli::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut offset = 0_u64;
    let mut low = None;
    let mut operations = location.operations(unit.encoding());
    while let Some(operation) = operations.next()? {
        match operation {
            Operation::Address { address } => low = Some(address),
            Operation::AddressIndex { index } => low = Some(dies.dwarf().address(unit, index)?),
            Operation::PlusConstant { value } => low = low.map(|low| value.wrapping_add(low)),
            Operation::Piece { size_in_bits, bit_offset: None } => {
                let bytes = size_in_bits / 8;
                if let Some(low) = low.take() {
                    pieces.push(Piece { low, bytes: Some(bytes), offset });
                }
                offset = offset.saturating_add(bytes);
            }
            // Not a fixed address: a value, a register, thread-local storage.
            _ => return Ok(Vec::new()),
        }
    }
    pieces.extend(low.map(|low| Piece { low, bytes: None, offset }));
    Ok(pieces)
}
