//! The registers of a stopped thread, as frames and instructions number them.

pub(crate) use raddle_code::unwind::{Frame, RIP, RSP, is_high_byte, number};

use crate::tracee::Registers;

/// The innermost activation of a thread.
pub(crate) fn innermost(registers: &Registers) -> Frame {
    let r = registers;
    let values = [
        r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15, r.rip,
    ];
    Frame::innermost(values, [r.fs_base, r.gs_base])
}

/// Puts a general register's value where the kernel has it.
pub(crate) fn set(registers: &mut Registers, number: usize, value: u64) {
    let r = registers;
    let slot = match number {
        0 => &mut r.rax,
        1 => &mut r.rcx,
        2 => &mut r.rdx,
        3 => &mut r.rbx,
        4 => &mut r.rsp,
        5 => &mut r.rbp,
        6 => &mut r.rsi,
        7 => &mut r.rdi,
        8 => &mut r.r8,
        9 => &mut r.r9,
        10 => &mut r.r10,
        11 => &mut r.r11,
        12 => &mut r.r12,
        13 => &mut r.r13,
        14 => &mut r.r14,
        15 => &mut r.r15,
        _ => &mut r.rip,
    };
    *slot = value;
}
