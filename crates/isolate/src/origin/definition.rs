//! What an instruction has put into a register.
//!
//! Moves are followed to what they move, loads to memory ([`super::load`]); of anything else, all
//! that the instruction reads is an origin. Values are computed for moves and the arithmetic
//! that addresses are made with.

use iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::operand::{constant, is_constant, sign_extended, truncated};
use super::{Budget, Origin, StoppedThread, Walk};
use crate::code::{KEPT, bit};

impl StoppedThread<'_> {
    /// What an instruction has put into a register.
    pub(super) fn of_definition(
        &self,
        walk: &Walk,
        register: Register,
        budget: &mut Budget,
    ) -> Vec<Origin> {
        use Mnemonic::{
            Cdqe, Mov, Movapd, Movaps, Movd, Movdqa, Movdqu, Movq, Movsd, Movss, Movsx, Movsxd,
            Movupd, Movups, Movzx, Pop, Xor,
        };
        let instruction = self.instruction(walk);
        let one = instruction.op1_kind();
        match instruction.mnemonic() {
            Mov | Movzx | Movsx | Movsxd | Movss | Movsd | Movaps | Movups | Movapd | Movupd
            | Movdqa | Movdqu | Movq | Movd => match one {
                OpKind::Memory => self.load(walk, budget),
                OpKind::Register => self.moved(walk, instruction.op1_register(), budget),
                _ => vec![constant(&instruction)],
            },
            Cdqe => self.moved(walk, Register::EAX, budget),
            Xor if one == OpKind::Register
                && instruction.op0_register() == instruction.op1_register() =>
            {
                vec![constant(&instruction)]
            }
            // A register that was saved comes back.
            Pop => self.saved(walk, register, budget),
            _ => {
                let value = self.computed(walk, budget);
                let mut origins = self.sources(walk, budget, false);
                for origin in &mut origins {
                    origin.value = value;
                }
                if origins.is_empty() && value.is_some() {
                    origins.push(Origin { value, ..constant(&instruction) });
                }
                origins
            }
        }
    }

    /// What another register has given.
    fn moved(&self, walk: &Walk, source: Register, budget: &mut Budget) -> Vec<Origin> {
        let instruction = self.instruction(walk);
        let extends =
            matches!(instruction.mnemonic(), Mnemonic::Movsx | Mnemonic::Movsxd | Mnemonic::Cdqe);
        let extended = |value: u64| match extends {
            true => sign_extended(value, source.size()),
            false => truncated(value, source.size()),
        };
        let known = self.known(walk, source);
        let mut origins = self.resolve(walk, source, budget);
        if let Some(known) = known {
            // Other ways than those that give this value were not taken.
            let n_bytes = source.size().min(8);
            let fits = |origin: &Origin| {
                origin.value.is_none_or(|value| truncated(value, n_bytes) == known)
            };
            if origins.iter().any(fits) {
                origins.retain(fits);
            }
        }
        for origin in &mut origins {
            origin.value = known.or(origin.value).map(extended);
        }
        if origins.is_empty() && known.is_some() {
            origins.push(Origin { value: known.map(extended), ..constant(&instruction) });
        }
        origins
    }

    /// A register that the function has saved and got back: as at its entry.
    fn saved(&self, walk: &Walk, register: Register, budget: &mut Budget) -> Vec<Origin> {
        if bit(register) & KEPT == 0 {
            return Vec::new();
        }
        self.of_argument(walk, register, budget)
    }

    /// The origins of all that an instruction reads, but for addresses.
    pub(super) fn sources(
        &self,
        walk: &Walk,
        budget: &mut Budget,
        with_addresses: bool,
    ) -> Vec<Origin> {
        let instruction = self.instruction(walk);
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&instruction);
        let is_lea = instruction.mnemonic() == Mnemonic::Lea;
        let reads_memory = info.used_memory().iter().any(|used| {
            !matches!(used.access(), OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess)
        });
        let addresses: Vec<Register> = info
            .used_memory()
            .iter()
            .flat_map(|used| [used.base(), used.index()])
            .filter(|_| !is_lea && !with_addresses)
            .collect();
        let registers: Vec<Register> = info
            .used_registers()
            .iter()
            .filter(|used| !matches!(used.access(), OpAccess::Write | OpAccess::CondWrite))
            .map(|used| used.register())
            .filter(|register| bit(*register) != 0 && bit(*register) < crate::code::FLAGS)
            .filter(|register| register.full_register() != Register::RSP)
            .filter(|register| !addresses.contains(register))
            .collect();
        let mut origins = Vec::new();
        if reads_memory {
            origins.extend(self.load(walk, budget));
        }
        for register in registers {
            origins.extend(self.resolve(walk, register, budget));
        }
        if instruction.rflags_read() != 0 && budget.depth > 0 {
            budget.depth -= 1;
            origins.extend(self.of_flags(walk, budget));
            budget.depth += 1;
        }
        origins
    }

    /// What an instruction computes, for the few that addresses are made with.
    fn computed(&self, walk: &Walk, budget: &mut Budget) -> Option<u64> {
        use Mnemonic::{Add, And, Imul, Lea, Sar, Shl, Shr, Sub};
        let instruction = self.instruction(walk);
        let wide = |value: u64| match instruction.op0_register().size() {
            4 => value & 0xffff_ffff,
            _ => value,
        };
        if instruction.mnemonic() == Lea {
            return self.addresses(walk, budget).first().copied().map(wide);
        }
        let mut operand = |number: u32| match instruction.op_kind(number) {
            OpKind::Register => {
                self.values(walk, instruction.op_register(number), budget).first().copied()
            }
            OpKind::Memory => {
                let origins = self.load(walk, budget);
                origins.into_iter().find_map(|origin| origin.value)
            }
            kind if is_constant(kind) => Some(instruction.immediate(number)),
            _ => None,
        };
        let (one, two) = match (instruction.mnemonic(), instruction.op_count()) {
            (Imul, 3) => (operand(1)?, operand(2)?),
            (Add | Sub | And | Imul | Shl | Shr | Sar, 2) => (operand(0)?, operand(1)?),
            _ => return None,
        };
        let value = match instruction.mnemonic() {
            Add => one.wrapping_add(two),
            Sub => one.wrapping_sub(two),
            And => one & two,
            Imul => one.wrapping_mul(two),
            Shl => one.wrapping_shl(two as u32),
            Shr => one.wrapping_shr(two as u32),
            Sar => ((one as i64).wrapping_shr(two as u32)) as u64,
            _ => return None,
        };
        Some(wide(value))
    }
}
