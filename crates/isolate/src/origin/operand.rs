//! What instructions say by themselves.

use iced_x86::{Instruction, OpKind, Register};

use super::Origin;

/// Whether an instruction's operand is a variable of the function's own frame.
pub(super) fn is_own_variable(instruction: &Instruction) -> bool {
    matches!(instruction.memory_base(), Register::RBP | Register::RSP)
        && instruction.memory_index() == Register::None
        && matches!(instruction.segment_prefix(), Register::None)
}

pub(super) fn constant(instruction: &Instruction) -> Origin {
    let last = instruction.op_count().saturating_sub(1);
    let is_immediate = is_constant(instruction.op_kind(last));
    let value = if is_immediate { instruction.immediate(last) } else { 0 };
    Origin { pc: instruction.ip(), value: Some(value), ..Origin::default() }
}

/// Whether an operand is part of the instruction.
pub(super) fn is_constant(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

pub(super) fn truncated(value: u64, n_bytes: usize) -> u64 {
    if n_bytes >= 8 { value } else { value & ((1 << (8 * n_bytes)) - 1) }
}

pub(super) fn sign_extended(value: u64, n_bytes: usize) -> u64 {
    let shift = 64 - 8 * n_bytes.min(8) as u32;
    ((value << shift) as i64 >> shift) as u64
}
