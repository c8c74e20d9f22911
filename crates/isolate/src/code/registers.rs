//! Sets of registers, as bits of a number, and which of them instructions write.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};

/// The bit of a register in a set: 16 general ones, 32 vectors, the flags, all others.
pub(crate) fn bit(register: Register) -> u64 {
    let full = register.full_register();
    if full.is_gpr64() {
        1 << full.number()
    } else if full.is_vector_register() {
        1 << (16 + full.number())
    } else if register.is_segment_register() || full == Register::RIP {
        0
    } else {
        OTHERS
    }
}

/// The bit of the flags.
pub(crate) const FLAGS: u64 = 1 << 48;
/// The bit of registers that have none of their own.
pub(super) const OTHERS: u64 = 1 << 49;
/// Registers that calls keep, and the stack pointer: rbx, rsp, rbp, r12 to r15.
pub(crate) const KEPT: u64 = 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12;
/// Registers that may hold arguments: rdi, rsi, rdx, rcx, r8, r9, the first eight vectors, and
/// rax for the number of vectors.
pub(crate) const ARGUMENTS: u64 =
    1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9 | 0xff << 16 | 1;
/// Registers that may hold results: rax, rdx and the first two vectors.
pub(crate) const RESULTS: u64 = 1 | 1 << 2 | 0b11 << 16;
/// Registers that hold a result of one part: rax, or the first vector.
pub(crate) const RESULT: u64 = 1 | 1 << 16;

/// Whether an instruction calls a function, or the kernel.
pub(crate) fn is_call(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

/// Whether an access may change what it is to.
pub(crate) fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// The registers that an instruction writes; a call's are all that it need not keep.
pub(crate) fn written(instruction: &Instruction) -> u64 {
    if is_call(instruction) {
        return !KEPT;
    }
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_registers().iter();
    used.filter(|used| writes(used.access())).fold(0, |set, used| set | bit(used.register()))
}
