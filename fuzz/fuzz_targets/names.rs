//! Any file is a module with names for its code and data (ELF symbols, DWARF, separate debug
//! files), or a complaint.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::{Object as _, ObjectSymbol as _};
use raddle_code::elf::Files;
use raddle_fuzz::BASE;
use raddle_symbols::{Cache, Symbols};
use raddle_trace::id::{Addr, Pc};

/// Symbols whose addresses are asked for.
const N_SYMBOLS: usize = 64;
/// Addresses in each of them, as offsets.
const OFFSETS: [u64; 4] = [0, 1, 4, 13];

fuzz_target!(|bytes: &[u8]| {
    let Ok(elf) = object::File::parse(bytes) else { return };
    let addresses: Vec<u64> = elf
        .symbols()
        .chain(elf.dynamic_symbols())
        .map(|symbol| symbol.address())
        .take(N_SYMBOLS)
        .flat_map(|start| OFFSETS.map(|offset| BASE.wrapping_add(start).wrapping_add(offset)))
        .collect();
    // The directory has no debug files, so that the answer depends on these bytes alone.
    let cache = Cache::new(Files::default()).with_debug_root("/nonexistent");
    let symbols = Symbols::new(&[raddle_fuzz::module(bytes)], &cache);
    for address in addresses {
        let _ = symbols.site(Pc(address)).to_string();
        let _ = symbols.global(Addr(address));
        let _ = symbols.accessed(Addr(address), 4);
        let _ = symbols.lock(Addr(address));
    }
    for complaint in symbols.complaints() {
        let _ = complaint.to_string();
    }
});
