//! Names global variables and their parts.
//!
//! DWARF has the variable and its type, and the type has the part. A variable without DWARF is
//! known by its ELF symbol; if some unit declares it, as in `extern struct config config;`, its
//! type is still known. That happens whenever a program uses a library's variable and the linker
//! moves it into the program. (gcc writes such declarations, clang does not.)
//!
//! # Limits
//! - Thread-local variables are not named: their address differs in each thread.
//! - Two `static` variables of one name in two files have the same name; [`Variable::declared`]
//!   distinguishes them.
//! - The path is at most 48 members deep.
//! - Pointers are never followed: what they point to is another address.

use std::rc::Rc;

use raddle_trace::id::Addr;

use super::demangle::demangle;
use super::dies::Die;
use super::image::{Debug, Image};
use super::index::Global;
use super::layout::{self, Query};
use super::table::Symbol;
use super::{Slot, Symbols};

/// A global variable, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name with scopes and members: `queue.len`, `bank::ledger[3].next`, `push::calls`.
    pub name: String,
    /// The linker symbol of the whole variable.
    pub symbol: String,
    /// Offset of the address from the start of the variable.
    pub offset: u64,
    /// Size of the named part, if known.
    pub bytes: Option<u64>,
    /// Where the variable is declared: full path and line.
    pub declared: Option<(String, u32)>,
}

impl Symbols {
    /// The innermost part of a global variable that contains the byte at an address.
    #[must_use]
    pub fn global(&self, addr: Addr) -> Option<Rc<Variable>> {
        self.variable(addr, Query::Bytes(1))
    }

    /// The smallest part of a global variable that contains all bytes of an access.
    #[must_use]
    pub fn accessed(&self, addr: Addr, bytes: u64) -> Option<Rc<Variable>> {
        self.variable(addr, Query::Bytes(bytes))
    }

    /// The lock that contains an address: `queue.m`, whatever the structure of a mutex.
    #[must_use]
    pub fn lock(&self, addr: Addr) -> Option<Rc<Variable>> {
        self.variable(addr, Query::Lock)
    }

    fn variable(&self, addr: Addr, query: Query) -> Option<Rc<Variable>> {
        // Most addresses are in no module, and are not worth caching.
        let slot = self.slot(addr.0)?;
        if let Some(known) = self.variables.borrow().get(&(addr, query)) {
            return known.clone();
        }
        let variable = self.find_variable(slot, addr, query).map(Rc::new);
        self.variables.borrow_mut().insert((addr, query), variable.clone());
        variable
    }

    fn find_variable(&self, slot: &Slot, addr: Addr, query: Query) -> Option<Variable> {
        let image = self.image(slot)?;
        let address = addr.0.wrapping_sub(slot.module.base);
        image
            .debug
            .as_ref()
            .and_then(|debug| defined(image, debug, address, query))
            .or_else(|| from_symbol(image, address, query))
    }
}

/// A variable whose definition is in DWARF.
fn defined(image: &Image, debug: &Debug, address: u64, query: Query) -> Option<Variable> {
    let global = debug.index().before(address)?;
    let symbol = image.objects.at(address).filter(|symbol| symbol.low == global.low);
    let type_ = debug.dies.target(global.die, gimli::DW_AT_type);
    let in_piece = address - global.low;
    if in_piece >= n_bytes(debug, global, type_, symbol) {
        return None;
    }
    let offset = in_piece.checked_add(global.piece_offset)?;
    let name = global.name(&debug.dies, symbol.map(|symbol| symbol.name.as_str()))?;
    let linkage = || debug.dies.linkage_name(global.die).unwrap_or_else(|| name.clone());
    let symbol = symbol.map_or_else(linkage, |symbol| symbol.name.clone());
    Some(variable(debug, &name, symbol, global.die, type_, offset, query))
}

/// The size of a variable. With a flexible array member it is larger than its type.
fn n_bytes(debug: &Debug, global: &Global, type_: Option<Die>, symbol: Option<&Symbol>) -> u64 {
    let of_type = || type_.and_then(|type_| debug.types.get(type_).bytes);
    let of_symbol = symbol.map_or(0, |symbol| symbol.bytes);
    global.piece_bytes.unwrap_or_else(|| of_type().unwrap_or(0).max(of_symbol))
}

/// A variable that only the linker knows.
fn from_symbol(image: &Image, address: u64, query: Query) -> Option<Variable> {
    let symbol = image.objects.at(address).filter(|symbol| symbol.bytes > 0)?;
    let name = demangle(&symbol.name);
    let offset = address - symbol.low;
    let declaration = image.debug.as_ref().and_then(|debug| {
        let die = debug.index().declared(&symbol.name)?;
        Some((debug, die, debug.dies.target(die, gimli::DW_AT_type)?))
    });
    if let Some((debug, die, type_)) = declaration {
        return Some(variable(debug, &name, symbol.name.clone(), die, Some(type_), offset, query));
    }
    Some(Variable {
        name: if offset == 0 { name } else { format!("{name}+{offset}") },
        symbol: symbol.name.clone(),
        offset,
        bytes: (offset == 0).then_some(symbol.bytes),
        declared: None,
    })
}

fn variable(
    debug: &Debug,
    name: &str,
    symbol: String,
    die: Die,
    type_: Option<Die>,
    offset: u64,
    query: Query,
) -> Variable {
    let part = type_.map(|type_| layout::part(&|die| debug.types.get(die), type_, offset, query));
    let path = match &part {
        Some(part) => part.path.clone(),
        None if offset == 0 => String::new(),
        None => format!("+{offset}"),
    };
    Variable {
        name: format!("{name}{path}"),
        symbol,
        offset,
        bytes: part.and_then(|part| part.bytes),
        declared: debug.dies.declared(die),
    }
}
