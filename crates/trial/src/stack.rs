//! The call stack of a thread that a signal killed, from what the runtime kept of it.
//!
//! The runtime copies the thread's registers and up to 64 KiB of its stack into the control
//! block ([`raddle_trace::control::Death`]) and looks nothing up. They are unwound here through
//! `.eh_frame` ([`raddle_code::unwind`]), so the result does not depend on what earlier calls
//! left on the stack.
//!
//! A failure is named, and compared with others, by the innermost call whose module and source
//! file are the program's own: not `abort`, `qsort` or `std::vector::at`, but the line that led
//! there.
//!
//! An uncaught C++ exception needs nothing special: `std::terminate` is called while the frames
//! of the thrower still exist, unless a `noexcept` function stops the exception after a
//! destructor has run.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use raddle_code::elf::Files;
use raddle_code::unwind::{self, Frame, Loaded, Memory, Table};
use raddle_trace::control::{Death, STACK_BYTES, StackCopy};
use raddle_trace::id::{Pc, ThreadId};
use raddle_trace::run::Run;

/// A recursion that overflows the stack has more calls than this; the inner ones tell enough.
const FRAMES_MAX: usize = 256;

/// The thread that died, and where it was, innermost first. None if no thread was kept.
pub(crate) fn stack(death: &Death, run: &Run, files: &Files) -> Option<(ThreadId, Vec<Pc>)> {
    if death.is_kept.load(Acquire) != 1 {
        return None;
    }
    let registers = std::array::from_fn(|number| death.registers[number].load(Relaxed));
    let frames = unwind::stack(
        Frame::innermost(registers, [0; 2]),
        &Modules::new(run, files),
        &Stacks(&death.stacks),
        FRAMES_MAX,
    );
    // A place is always behind its instruction.
    let pcs = frames.iter().map(|frame| Pc(frame.call().wrapping_add(1))).collect();
    Some((ThreadId(death.thread.load(Relaxed)), pcs))
}

/// What was loaded. Only the tables that are needed are read.
struct Modules<'a> {
    run: &'a Run,
    files: &'a Files,
    tables: Vec<OnceCell<Option<Table>>>,
}

impl<'a> Modules<'a> {
    fn new(run: &'a Run, files: &'a Files) -> Self {
        Self { run, files, tables: run.modules.iter().map(|_| OnceCell::new()).collect() }
    }
}

impl Loaded for Modules<'_> {
    fn table(&self, address: u64) -> Option<(&Table, u64)> {
        let at = self.run.modules.iter().position(|module| module.contains(address))?;
        let module = &self.run.modules[at];
        let path = Path::new(&self.run.directory).join(&module.path);
        let table = self.tables[at].get_or_init(|| Table::parse(&*self.files.read(&path).ok()?));
        Some((table.as_ref()?, module.base))
    }
}

/// The parts of stacks that were kept.
struct Stacks<'a>(&'a [StackCopy; 2]);

impl Memory for Stacks<'_> {
    fn number(&self, address: u64, n_bytes: usize) -> Option<u64> {
        self.0.iter().find_map(|copy| {
            let at = address.checked_sub(copy.start.load(Relaxed))?;
            let n_kept = copy.n_bytes.load(Relaxed).min(STACK_BYTES as u64);
            let end = at.checked_add(n_bytes as u64).filter(|end| *end <= n_kept)?;
            let byte =
                |at: u64| copy.words[at as usize / 8].load(Relaxed).to_le_bytes()[at as usize % 8];
            Some((at..end).rev().fold(0, |number, at| number << 8 | u64::from(byte(at))))
        })
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::Layout;

    use super::*;
    use crate::shm::Block;

    #[test]
    fn numbers_are_read_from_either_stack_if_all_of_them_was_kept() {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        let stacks = &block.death().stacks;
        for (copy, start) in stacks.iter().zip([0x1000, 0x9000]) {
            copy.start.store(start, Relaxed);
            copy.n_bytes.store(16, Relaxed);
            copy.words[0].store(0x0807_0605_0403_0201, Relaxed);
            copy.words[1].store(start, Relaxed);
        }
        let number = |address, n_bytes| Stacks(stacks).number(address, n_bytes);
        assert_eq!(number(0x1000, 8), Some(0x0807_0605_0403_0201));
        assert_eq!(number(0x1006, 4), Some(0x1000_0807));
        assert_eq!(number(0x9008, 8), Some(0x9000));
        assert_eq!(number(0x9009, 8), None);
        assert_eq!(number(0x0fff, 8), None);
        assert_eq!(number(u64::MAX, 8), None);
    }
}
