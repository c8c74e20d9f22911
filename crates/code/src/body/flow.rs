//! Where one instruction leads, as far as the instruction itself says.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::image::{Callee, Image, Target};

/// Where an instruction leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To an address.
    Jump(u64),
    /// To an address or to the next instruction.
    Branch(u64),
    /// To the next instruction, if the call returns.
    Call(Call),
    /// To an address in a register or in memory.
    Indirect,
    /// To another function or to the next one.
    NextOrOut,
    /// To another function, which returns in place of this one.
    TailCall(Target),
    /// Back to the caller.
    Return,
    /// Nowhere.
    Stop,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its target.
    pub target: Target,
    /// What is known of the callee.
    pub callee: Callee,
}

impl Flow {
    /// The flow of an instruction in a function; `is_inside` tells which addresses belong to the
    /// function.
    pub(super) fn of(
        instruction: &Instruction,
        image: &dyn Image,
        is_inside: impl Fn(u64) -> bool,
    ) -> Self {
        let to = instruction.near_branch_target();
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch if is_inside(to) => Self::Jump(to),
            FlowControl::UnconditionalBranch => Self::TailCall(target(instruction, image)),
            FlowControl::ConditionalBranch if is_inside(to) => Self::Branch(to),
            FlowControl::ConditionalBranch => Self::NextOrOut,
            FlowControl::Return => Self::Return,
            // The others are system calls, which return.
            FlowControl::Call if instruction.mnemonic() != Mnemonic::Call => Self::Next,
            FlowControl::Call | FlowControl::IndirectCall => {
                let target = target(instruction, image);
                Self::Call(Call { target, callee: image.callee(target) })
            }
            // Through a slot that the loader fills in.
            FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => {
                Self::TailCall(target(instruction, image))
            }
            FlowControl::IndirectBranch => Self::Indirect,
            FlowControl::Exception if instruction.mnemonic() != Mnemonic::Into => Self::Stop,
            FlowControl::XbeginXabortXend if instruction.mnemonic() == Mnemonic::Xbegin => {
                Self::Branch(to)
            }
            _ if instruction.mnemonic() == Mnemonic::Hlt => Self::Stop,
            _ => Self::Next,
        }
    }

    /// Whether an exception may leave it.
    pub(super) fn throws(self) -> bool {
        matches!(self, Self::Call(call) if call.callee != Callee::Callback)
    }
}

/// The target of a call, or of a jump to another function. Looks through stubs of the procedure
/// linkage table, which jump through a slot.
#[must_use]
pub fn target(instruction: &Instruction, image: &dyn Image) -> Target {
    if instruction.is_ip_rel_memory_operand() {
        return Target::Slot(instruction.ip_rel_memory_address());
    }
    if !instruction.is_call_near() && !instruction.is_jmp_short_or_near() {
        return Target::Unknown;
    }
    let address = instruction.near_branch_target();
    // At most an `endbr64` and the jump; a stub at the end of its section is shorter.
    let stub = (6..=16).rev().find_map(|n| image.bytes(address..address.checked_add(n)?));
    let Some(bytes) = stub else { return Target::Address(address) };
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut first = decoder.decode();
    if matches!(first.code(), Code::Endbr64) {
        first = decoder.decode();
    }
    let is_stub =
        first.flow_control() == FlowControl::IndirectBranch && first.is_ip_rel_memory_operand();
    if is_stub { Target::Slot(first.ip_rel_memory_address()) } else { Target::Address(address) }
}
