//! Any file is a module with a table of how to leave its functions (`.eh_frame`), or none; and
//! any stack can be walked by it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_code::unwind::{Frame, Loaded, Memory, N_REGISTERS, RBP, RIP, RSP, Table, stack};
use raddle_fuzz::BASE;

/// Functions whose frames are left.
const N_FUNCTIONS: usize = 32;
/// Frames of a stack.
const N_FRAMES: usize = 16;
const STACK: u64 = 0x7fff_0000;

struct Process<'a> {
    table: Table,
    // What the stack holds, again and again.
    bytes: &'a [u8],
}

impl Loaded for Process<'_> {
    fn table(&self, address: u64) -> Option<(&Table, u64)> {
        (address >= BASE).then_some((&self.table, BASE))
    }
}

impl Memory for Process<'_> {
    fn number(&self, address: u64, n_bytes: usize) -> Option<u64> {
        let at = usize::try_from(address % self.bytes.len() as u64).ok()?;
        let part = self.bytes.get(at..)?.get(..n_bytes.min(8))?;
        Some(part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some(table) = Table::parse(bytes) else { return };
    let functions = table.functions();
    let process = Process { table, bytes };
    for function in functions.iter().take(N_FUNCTIONS) {
        for (pc, rsp) in [(function.start, STACK), (function.end, u64::MAX - 4)] {
            let mut registers = [function.end; N_REGISTERS];
            registers[RIP] = BASE.wrapping_add(pc);
            (registers[RSP], registers[RBP]) = (rsp, rsp.saturating_add(32));
            let _ = stack(Frame::innermost(registers, [0; 2]), &process, &process, N_FRAMES);
        }
    }
});
