//! Call stacks, from the unwind tables used for exceptions.
//!
//! [`stack`] starts from the registers of a thread that has stopped or died and walks from caller
//! to caller. It needs the thread's memory ([`Memory`]: a traced process, or a saved copy) and
//! the unwind table of each module ([`Table`]).
//!
//! # Limits
//! Code without a table is assumed to be a leaf that has pushed nothing, or else a function with
//! a frame pointer. Code generated at run time has no table here.

mod frame;
mod table;

pub use self::frame::{Frame, N_REGISTERS, RBP, RIP, RSP, is_high_byte, number};
pub use self::table::Table;

use self::table::NoEntry;

/// The memory of a thread.
pub trait Memory {
    /// A number of up to eight bytes, if all of them can be read.
    fn number(&self, address: u64, n_bytes: usize) -> Option<u64>;
}

/// The modules of a process.
pub trait Loaded {
    /// The table of the module that contains an address, and the module's load address.
    fn table(&self, address: u64) -> Option<(&Table, u64)>;

    /// Whether an address is in code of a module.
    fn is_code(&self, address: u64) -> bool {
        self.table(address).is_some_and(|(table, base)| table.is_code(address.wrapping_sub(base)))
    }
}

/// Frame pointers are trusted this far up the stack.
const FRAME_BYTES_MAX: u64 = 1 << 20;

/// The frames of a thread, innermost first, at most `n_max`.
pub fn stack(
    innermost: Frame,
    loaded: &impl Loaded,
    memory: &impl Memory,
    n_max: usize,
) -> Vec<Frame> {
    let mut frames = vec![innermost];
    while frames.len() < n_max {
        let last = &frames[frames.len() - 1];
        let Some(next) = caller(last, loaded, memory) else { break };
        // A signal may be handled on a separate stack at any address.
        let goes_up = next.is_exact || next.get(RSP) > last.get(RSP);
        if !goes_up || !loaded.is_code(next.call()) {
            break;
        }
        frames.push(next);
    }
    frames
}

/// The caller of this frame, or the frame that a signal interrupted.
pub fn caller(frame: &Frame, loaded: &impl Loaded, memory: &impl Memory) -> Option<Frame> {
    let at = frame.call();
    let table = loaded.table(at);
    let caller = table.map(|(table, base)| table.caller(at.wrapping_sub(base), frame, memory));
    match caller {
        Some(Ok(caller)) => caller,
        Some(Err(NoEntry)) | None => without_entry(frame, table.is_some(), loaded, memory),
    }
}

/// The caller of code without a table entry.
fn without_entry(
    frame: &Frame,
    is_module: bool,
    loaded: &impl Loaded,
    memory: &impl Memory,
) -> Option<Frame> {
    let rsp = frame.get(RSP)?;
    let mut caller = frame.clone();
    caller.is_exact = false;
    let pushed = memory.number(rsp, 8);
    // Outside all modules: a call through a wild pointer has just been made.
    let is_return = pushed.is_some_and(|pc| loaded.is_code(pc.wrapping_sub(1)));
    if frame.is_exact && (is_return || !is_module) {
        caller.set(RIP, pushed);
        caller.set(RSP, Some(rsp.wrapping_add(8)));
        return Some(caller);
    }
    // The thread may have died of registers that hold garbage.
    let nearby = rsp..rsp.saturating_add(FRAME_BYTES_MAX);
    let rbp = frame.get(RBP).filter(|rbp| nearby.contains(rbp))?;
    caller.set(RIP, memory.number(rbp.wrapping_add(8), 8));
    caller.set(RBP, memory.number(rbp, 8));
    caller.set(RSP, Some(rbp.wrapping_add(16)));
    Some(caller)
}

#[cfg(test)]
mod tests;
