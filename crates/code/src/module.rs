//! The machine code of a module, for control flow analyses.
//!
//! Functions come from ELF's symbol tables. Callees are known by name: slots that the loader
//! fills in through their relocations (of the procedure linkage table, and of code compiled with
//! `-fno-plt`, such as Rust's), functions of the module itself through their symbols. Landing
//! pads come from the tables used for unwinding.
//!
//! # Limits
//! - A stripped module has no functions, even if its symbols are in a debug file.
//! - Functions that do not return are known only by name, and only frequently called ones of C
//!   and C++. Missing one costs only precision.

use std::ops::Range;
use std::sync::Arc;

use object::elf::{SHF_ALLOC, SHF_WRITE};
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationTarget,
    SectionFlags, SymbolIndex, SymbolKind,
};
use raddle_trace::run::Module;
use rustc_hash::FxHashMap;

use crate::elf::{self, Elf, ElfError, Files};
use crate::exceptions::Exceptions;
use crate::image::{Callee, Image, LandingPad, Symbol, Target};

/// A module's code, at its addresses in the target.
pub struct Code {
    bytes: Arc<[u8]>,
    symbols: Vec<Symbol>,
    // Constant data: its range in the target, and its offset in the file.
    constants: Vec<(Range<u64>, usize)>,
    slots: FxHashMap<u64, Callee>,
    functions: FxHashMap<u64, Callee>,
    exceptions: Exceptions,
}

impl Code {
    /// Reads a module's file.
    pub fn load(module: &Module, files: &Files) -> Result<Self, ElfError> {
        let bytes = files.module(module)?;
        let elf = elf::parse(module, &bytes)?;

        let place = |address: u64| address.wrapping_add(module.base);
        let mut symbols = Vec::new();
        let mut functions = FxHashMap::default();
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            if symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
                continue;
            }
            let name = symbol.name().unwrap_or_default();
            symbols.push(Symbol {
                start: place(symbol.address()),
                bytes: symbol.size(),
                is_part: name.ends_with(".cold") || name.contains(".cold."),
            });
            if callee(name) != Callee::Other {
                functions.insert(place(symbol.address()), callee(name));
            }
        }
        let constants =
            constants(&elf).map(|(range, at)| (place(range.start)..place(range.end), at));
        let constants = constants.collect();
        let slots = slots(&elf).map(|(slot, callee)| (place(slot), callee)).collect();
        let exceptions = Exceptions::new(&elf, module.base);
        Ok(Self { symbols, constants, slots, functions, exceptions, bytes: Arc::clone(&bytes) })
    }
}

impl Code {
    /// The constant data from an address on.
    fn rest(&self, address: u64) -> Option<&[u8]> {
        let holds = |(section, _): &&(Range<u64>, usize)| section.contains(&address);
        let (section, _) = self.constants.iter().find(holds)?;
        self.bytes(address..section.end)
    }
}

impl Image for Code {
    fn landing_pads(&self, code: &Range<u64>) -> Option<Vec<LandingPad>> {
        self.exceptions.landing_pads(code, |at| self.rest(at))
    }

    fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    fn bytes(&self, range: Range<u64>) -> Option<&[u8]> {
        let holds = |(section, _): &&(Range<u64>, usize)| {
            section.start <= range.start && range.start <= range.end && range.end <= section.end
        };
        let (section, at) = self.constants.iter().find(holds)?;
        let start = at.checked_add(usize::try_from(range.start - section.start).ok()?)?;
        let n_bytes = usize::try_from(range.end - range.start).ok()?;
        self.bytes.get(start..start.checked_add(n_bytes)?)
    }

    fn callee(&self, target: Target) -> Callee {
        let known = match target {
            Target::Address(address) => self.functions.get(&address),
            Target::Slot(slot) => self.slots.get(&slot),
            Target::Unknown => None,
        };
        known.copied().unwrap_or(Callee::Other)
    }
}

/// The sections that are loaded and never written to: addresses, and offset in the file.
fn constants(elf: &Elf<'_>) -> impl Iterator<Item = (Range<u64>, usize)> {
    let is_constant = |flags| match flags {
        SectionFlags::Elf { sh_flags, .. } => {
            sh_flags.0 & SHF_ALLOC.0 != 0 && sh_flags.0 & SHF_WRITE.0 == 0
        }
        _ => false,
    };
    elf.sections().filter(move |section| is_constant(section.flags())).filter_map(|section| {
        let (at, n_bytes) = section.file_range()?;
        let end = section.address().checked_add(n_bytes)?;
        Some((section.address()..end, usize::try_from(at).ok()?))
    })
}

/// The slots that the loader fills in with notable functions.
fn slots(elf: &Elf<'_>) -> impl Iterator<Item = (u64, Callee)> {
    let name = |index: SymbolIndex| {
        let symbol = elf.dynamic_symbol_table()?.symbol_by_index(index).ok()?;
        Some(symbol.name().ok()?.to_owned())
    };
    elf.dynamic_relocations().into_iter().flatten().filter_map(move |(slot, relocation)| {
        let RelocationTarget::Symbol(index) = relocation.target() else { return None };
        Some((slot, callee(&name(index)?))).filter(|(_, callee)| *callee != Callee::Other)
    })
}

/// What a function's name implies.
#[must_use]
pub fn callee(name: &str) -> Callee {
    // Without the version.
    let name = name.split('@').next().unwrap_or(name);
    match name {
        _ if is_callback(name) => Callee::Callback,
        "abort"
        | "exit"
        | "_exit"
        | "_Exit"
        | "quick_exit"
        | "pthread_exit"
        | "__assert_fail"
        | "__assert_perror_fail"
        | "__assert"
        | "__stack_chk_fail"
        | "__chk_fail"
        | "__fortify_fail"
        | "longjmp"
        | "_longjmp"
        | "siglongjmp"
        | "__longjmp_chk"
        | "thrd_exit"
        | "__cxa_throw"
        | "__cxa_rethrow"
        | "__cxa_bad_cast"
        | "__cxa_throw_bad_array_new_length"
        | "__cxa_pure_virtual"
        | "__clang_call_terminate"
        | "_Unwind_Resume"
        | "_ZSt9terminatev"
        | "rust_panic" => Callee::NoReturn,
        // std::__throw_…(…)
        _ if name.starts_with("_ZSt") && name.contains("__throw_") => Callee::NoReturn,
        _ if PANICS.iter().any(|part| name.contains(part)) => Callee::NoReturn,
        // core::slice::index::slice_…_fail and the like
        _ if name.contains("4core") && name.contains("_fail17h") => Callee::NoReturn,
        "setjmp" | "_setjmp" | "sigsetjmp" | "__sigsetjmp" | "getcontext" | "vfork" => {
            Callee::ReturnsTwice
        }
        _ => Callee::Other,
    }
}

/// Parts of the names of Rust's panicking functions, in any mangling.
const PANICS: [&str; 5] = [
    "4core9panicking",
    "13unwrap_failed",
    "13expect_failed",
    "11begin_panic",
    "18handle_alloc_error",
];

/// Whether each call of a function is an event with the call's own address. Those with `_pc` pass
/// another address; fences and marks may not be events.
fn is_callback(name: &str) -> bool {
    let Some(name) = name.strip_prefix("__tsan_") else { return false };
    if matches!(name, "func_entry" | "func_exit" | "vptr_read") {
        return true;
    }
    if let Some(name) = name.strip_prefix("atomic") {
        return name.starts_with(|c: char| c.is_ascii_digit());
    }
    let name = name.trim_start_matches("unaligned_").trim_start_matches("volatile_");
    let bytes = ["read_write", "read", "write"].iter().find_map(|kind| name.strip_prefix(kind));
    bytes.is_some_and(|bytes| matches!(bytes, "1" | "2" | "4" | "8" | "16"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_are_those_that_are_seen_each_time() {
        for name in ["read4", "unaligned_volatile_write8", "read_write16", "atomic32_load"] {
            assert_eq!(callee(&format!("__tsan_{name}")), Callee::Callback, "{name}");
        }
        for name in ["read4_pc", "read_range", "atomic_signal_fence", "init", "read3"] {
            assert_eq!(callee(&format!("__tsan_{name}")), Callee::Other, "{name}");
        }
    }

    #[test]
    fn what_throws_does_not_return() {
        assert_eq!(callee("_ZSt20__throw_length_errorPKc"), Callee::NoReturn);
        assert_eq!(callee("abort@GLIBC_2.2.5"), Callee::NoReturn);
        for path in ["9panicking9panic_fmt", "5slice5index26slice_start_index_len_fail"] {
            assert_eq!(callee(&format!("_ZN4core{path}17h0123456789abcdefE")), Callee::NoReturn);
        }
        let index = "_ZN4core5slice5index16get_offset_range17h0123456789abcdefE";
        assert_eq!(callee(index), Callee::Other);
        assert_eq!(callee("_ZN4mine7do_fail17h0123456789abcdefE"), Callee::Other);
    }
}
