//! A function activation: what is known of its registers.

use iced_x86::Register;

use crate::tracee::Registers;

/// Numbers of registers, as instructions encode them; the instruction pointer comes last.
pub(crate) const RSP: usize = 4;
/// See [`RSP`].
pub(crate) const RBP: usize = 5;
/// See [`RSP`].
pub(crate) const RIP: usize = 16;

/// Registers of an activation, as far as they are known. The instruction pointer of all but
/// the innermost one is a return address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    values: [Option<u64>; 17],
    /// Base addresses of the segments `fs` and `gs`.
    pub(crate) segments: [u64; 2],
    /// It has called nobody.
    pub(crate) is_innermost: bool,
}

impl Frame {
    /// The innermost activation of a thread.
    pub(crate) fn innermost(registers: &Registers) -> Self {
        let r = registers;
        let values = [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15, r.rip,
        ];
        Self { values: values.map(Some), segments: [r.fs_base, r.gs_base], is_innermost: true }
    }

    /// A register's value.
    pub(crate) fn get(&self, number: usize) -> Option<u64> {
        self.values.get(number).copied().flatten()
    }

    /// Sets it, or forgets it.
    pub(crate) fn set(&mut self, number: usize, value: Option<u64>) {
        self.values[number] = value;
    }

    /// The instruction that is executed, or whose call is.
    pub(crate) fn pc(&self) -> u64 {
        self.get(RIP).unwrap_or(0)
    }

    /// The value of a register by its name, as instructions have it.
    pub(crate) fn value(&self, register: Register) -> Option<u64> {
        match register {
            Register::None => Some(0),
            Register::FS => Some(self.segments[0]),
            Register::GS => Some(self.segments[1]),
            Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
            _ => {
                let full = self.get(number(register)?)?;
                Some(match register.size() {
                    8 => full,
                    4 => full & 0xffff_ffff,
                    2 => full & 0xffff,
                    _ if is_high_byte(register) => full >> 8 & 0xff,
                    _ => full & 0xff,
                })
            }
        }
    }
}

/// The number of the general register that this is a part of.
pub(crate) fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    (full.is_gpr64()).then(|| full.number())
}

/// Whether it is the second byte of its register.
pub(crate) fn is_high_byte(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
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
