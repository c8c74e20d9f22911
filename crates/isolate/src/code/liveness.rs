//! Which registers are still needed.
//!
//! A problem of data flow, solved backwards over a function's instructions: a register is live if
//! some way leads to an instruction that reads it before one that writes it whole. Of calls we
//! take what every function may do: they read all argument registers, and leave nothing in
//! registers that they need not keep.

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess};
use raddle_code::body::Flow;

use super::Function;
use super::registers::{ARGUMENTS, FLAGS, KEPT, OTHERS, bit, is_call};

/// Live registers right before each instruction, if those are live behind a return.
pub(super) fn liveness(function: &Function, behind_return: u64) -> Vec<u64> {
    let instructions = function.instructions();
    let mut factory = InstructionInfoFactory::new();
    let effects: Vec<(u64, u64)> = instructions
        .iter()
        .map(|instruction| match uses_and_kills(instruction, &mut factory) {
            (uses, _) if is_call(instruction) => (uses | ARGUMENTS | 1 << 4, !KEPT & !OTHERS),
            effect => effect,
        })
        .collect();
    let mut live = vec![0; instructions.len()];
    let mut open: Vec<usize> = (0..instructions.len()).collect();
    let mut is_open = vec![true; instructions.len()];
    while let Some(at) = open.pop() {
        is_open[at] = false;
        let behind = match function.next(at) {
            [] => match function.body.flow(at) {
                Flow::Return => behind_return,
                // A call in the place of a return.
                Flow::TailCall(_) | Flow::Indirect => ARGUMENTS | KEPT,
                _ => 0,
            },
            next => next.iter().fold(0, |set, &to| set | live[to]),
        };
        let (uses, kills) = effects[at];
        let new = uses | behind & !kills;
        if new != live[at] {
            live[at] = new;
            for &before in function.previous(at) {
                if !is_open[before] {
                    is_open[before] = true;
                    open.push(before);
                }
            }
        }
    }
    live
}

/// What an instruction reads, and what it writes whole.
fn uses_and_kills(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> (u64, u64) {
    let (mut uses, mut kills) = (0, 0);
    for used in factory.info(instruction).used_registers() {
        let bit = bit(used.register());
        let is_whole = used.register().full_register() == used.register();
        match used.access() {
            OpAccess::Write if is_whole => kills |= bit,
            OpAccess::Write => {}
            _ => uses |= bit,
        }
    }
    if instruction.rflags_read() != 0 {
        uses |= FLAGS;
    }
    // All that conditions look at.
    const ARITHMETIC: u32 = iced_x86::RflagsBits::CF
        | iced_x86::RflagsBits::ZF
        | iced_x86::RflagsBits::SF
        | iced_x86::RflagsBits::OF
        | iced_x86::RflagsBits::PF;
    if instruction.rflags_modified() & ARITHMETIC == ARITHMETIC {
        kills |= FLAGS;
    }
    (uses, kills)
}
