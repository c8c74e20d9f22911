//! Where one instruction leads, as far as it says so itself.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::code::functions::{Callee, Image, Target};

/// Where an instruction leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// There.
    Jump(u64),
    /// There or to the next one.
    Branch(u64),
    /// Through a call to the next one, if that returns.
    Call(Call),
    /// Wherever a register or memory says.
    Indirect,
    /// To another function or to the next one.
    NextOrOut,
    /// To another function, which returns in the place of this one.
    TailCall(Target),
    /// Back to the caller.
    Return,
    /// Nowhere.
    Stop,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Where to.
    pub target: Target,
    /// What is known of who is called.
    pub callee: Callee,
}

impl Flow {
    /// Of an instruction in a function; `is_inside` tells the addresses that are part of it.
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
            // Others are system calls, which come back.
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

    /// Whether it may be left by an exception.
    pub(super) fn throws(self) -> bool {
        matches!(self, Self::Call(call) if call.callee != Callee::Callback)
    }
}

/// Whom a call or a jump to another function leads to. Stubs of the procedure linkage table,
/// which jump through a slot, are looked through.
#[must_use]
pub fn target(instruction: &Instruction, image: &dyn Image) -> Target {
    if instruction.is_ip_rel_memory_operand() {
        return Target::Slot(instruction.ip_rel_memory_address());
    }
    if !instruction.is_call_near() && !instruction.is_jmp_short_or_near() {
        return Target::Unknown;
    }
    let address = instruction.near_branch_target();
    // An `endbr64` and the jump, at most; a stub at the end of its section is shorter.
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
