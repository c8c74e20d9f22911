//! String instructions, which may touch any number of bytes.
//!
//! They are taken as a whole. A copy is made byte by byte, without the suppressed ones; of
//! others all that they would have written is suppressed.

use std::io;

use iced_x86::{Instruction, Mnemonic, Register};
use nix::unistd::Pid;

use super::Follower;
use crate::code::bit;
use crate::flow;
use crate::frame::Frame;
use crate::tracee::{self, Registers};

impl Follower {
    /// A string instruction as a whole, if it uses anything suppressed; whether it does not.
    pub(super) fn string(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        instruction: &Instruction,
        frame: &Frame,
    ) -> io::Result<bool> {
        let shadow = self.thread(tid).shadow.clone();
        let touched = flow::touched(instruction, frame, &mut self.factory);
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let n = if repeats { registers.rcx } else { 1 };
        let width = touched.first().map_or(1, |(_, n_bytes, _)| *n_bytes);
        let total = n.saturating_mul(width).min(1 << 24);
        let address_suppressed = shadow.registers()
            & (bit(Register::RSI) | bit(Register::RDI) | bit(Register::RCX))
            != 0;
        let source_suppressed =
            touched.iter().any(|(address, _, writes)| !writes && self.bytes.any(*address, total))
                || matches!(
                    instruction.mnemonic(),
                    Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq
                ) && shadow.get(Register::RAX) != 0;
        if !address_suppressed && !source_suppressed {
            for (address, _, writes) in touched {
                if writes {
                    self.bytes.fill(address, total, false);
                }
            }
            return Ok(true);
        }
        registers.rip = instruction.next_ip();
        let is_move = matches!(
            instruction.mnemonic(),
            Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq
        );
        let is_backwards = registers.eflags & 0x400 != 0;
        if is_move && !address_suppressed && !is_backwards {
            // Byte by byte: what is clean is moved.
            for at in 0..total {
                let (from, to) = (registers.rsi + at, registers.rdi + at);
                let suppressed = self.bytes.any(from, 1);
                if !suppressed && let Some(byte) = self.memory().number(from, 1) {
                    self.memory().write(to, &[byte as u8]);
                }
                self.bytes.fill(to, 1, suppressed);
            }
            registers.rsi += total;
            registers.rdi += total;
            registers.rcx = if repeats { 0 } else { registers.rcx };
            tracee::set_registers(tid, registers)?;
            return Ok(false);
        }
        if !address_suppressed {
            for (address, _, writes) in touched {
                if writes {
                    self.bytes.fill(address, total, true);
                }
            }
        }
        let thread = self.thread(tid);
        thread.shadow.mark(bit(Register::RSI) | bit(Register::RDI) | bit(Register::RAX));
        if repeats {
            thread.shadow.mark(bit(Register::RCX));
        }
        thread.shadow.flags |= instruction.rflags_modified();
        Ok(false)
    }
}
