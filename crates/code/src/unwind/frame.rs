//! An activation of a function: its registers.

use iced_x86::Register;

/// Numbers of the registers that matter for calls. General registers are numbered in instruction
/// encoding order, followed by the instruction pointer.
pub const RSP: usize = 4;
/// The frame pointer.
pub const RBP: usize = 5;
/// The instruction pointer.
pub const RIP: usize = 16;
/// Number of registers in a frame.
pub const N_REGISTERS: usize = 17;

/// Registers of an activation, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    values: [Option<u64>; N_REGISTERS],
    /// Base addresses of the segments `fs` and `gs`.
    pub segments: [u64; 2],
    /// Whether the instruction pointer is at the next instruction to execute, and not after a
    /// call: the innermost frame, or one that a signal interrupted.
    pub is_exact: bool,
}

impl Frame {
    /// The innermost activation of a thread, with all of its registers.
    #[must_use]
    pub fn innermost(values: [u64; N_REGISTERS], segments: [u64; 2]) -> Self {
        Self { values: values.map(Some), segments, is_exact: true }
    }

    /// A register's value.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<u64> {
        self.values.get(number).copied().flatten()
    }

    /// Sets a register, or makes it unknown.
    pub fn set(&mut self, number: usize, value: Option<u64>) {
        self.values[number] = value;
    }

    /// The next instruction to execute, or the one after the current call.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.get(RIP).unwrap_or(0)
    }

    /// An address inside the current instruction or call.
    #[must_use]
    pub fn call(&self) -> u64 {
        if self.is_exact { self.pc() } else { self.pc().wrapping_sub(1) }
    }

    /// The value of a register by name.
    #[must_use]
    pub fn value(&self, register: Register) -> Option<u64> {
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
#[must_use]
pub fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    (full.is_gpr64()).then(|| full.number())
}

/// Whether it is the second byte of its register.
#[must_use]
pub fn is_high_byte(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}
