//! Loads from memory, and stores into variables of the frame.
//!
//! Memory is where a walk ends, but for variables of the function's own frame: those are followed
//! to the stores in sight, if one of these explains what the variable holds. If none does, it
//! was overwritten from elsewhere, and is the origin.
//!
//! Limits: memory is read as it is now, and may have changed since the load.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashSet;

use super::operand::{constant, is_own_variable, sign_extended, truncated};
use super::walk::{DEFINITIONS_MAX, VALUES_MAX};
use super::{Budget, Location, Origin, ROUNDS_MAX, StoppedThread, Walk};
use crate::frame::RSP;

/// What a function may use below its stack pointer.
const RED_ZONE: u64 = 128;
/// As large as stacks are by default.
const STACK_BYTES_MAX: u64 = 8 << 20;

impl StoppedThread<'_> {
    /// The addresses that an instruction's memory operand may have had.
    pub(super) fn addresses(&self, walk: &Walk, budget: &mut Budget) -> Vec<u64> {
        let instruction = self.instruction(walk);
        if instruction.is_ip_rel_memory_operand() {
            return vec![instruction.ip_rel_memory_address()];
        }
        let segment = match instruction.segment_prefix() {
            register @ (Register::FS | Register::GS) => self.known(walk, register),
            _ => Some(0),
        };
        let Some(segment) = segment else { return Vec::new() };
        let bases = self.values(walk, instruction.memory_base(), budget);
        let indexes = match bases.is_empty() {
            true => Vec::new(),
            false => self.values(walk, instruction.memory_index(), budget),
        };
        let scale = u64::from(instruction.memory_index_scale());
        let displacement = instruction.memory_displacement64().wrapping_add(segment);
        let address = |base: u64, index: u64| {
            base.wrapping_add(index.wrapping_mul(scale)).wrapping_add(displacement)
        };
        let all = bases.iter().flat_map(|base| indexes.iter().map(|index| address(*base, *index)));
        all.take(VALUES_MAX).collect()
    }

    /// A load from memory: there, or, in the function's own frame, what was stored there.
    pub(super) fn load(&self, walk: &Walk, budget: &mut Budget) -> Vec<Origin> {
        let ip = self.instruction(walk).ip();
        let n_rounds = budget.active.iter().filter(|other| **other == ip).count();
        if budget.depth == 0 || n_rounds >= ROUNDS_MAX {
            return Vec::new();
        }
        budget.depth -= 1;
        budget.active.push(ip);
        let origins = self.loaded(walk, budget);
        budget.active.pop();
        budget.depth += 1;
        origins
    }

    fn loaded(&self, walk: &Walk, budget: &mut Budget) -> Vec<Origin> {
        let instruction = self.instruction(walk);
        let n_bytes = instruction.memory_size().size().clamp(1, 64);
        let addresses = self.addresses(walk, budget);
        let raw = |address: u64| self.memory.number(address, n_bytes);
        let extended = |raw: u64| match instruction.mnemonic() {
            Mnemonic::Movsx | Mnemonic::Movsxd => sign_extended(raw, n_bytes),
            _ => raw,
        };
        if is_own_variable(&instruction)
            && addresses.iter().all(|address| self.is_on_stack(*address))
            && let Some(stores) = self.stores(walk, &instruction, budget)
        {
            // What it holds tells which store it was, or that it was none of them.
            let held = addresses.first().and_then(|address| raw(*address));
            let through: Vec<Origin> = stores
                .into_iter()
                .filter(|origin| match (origin.value, held) {
                    (Some(value), Some(held)) => {
                        truncated(value, n_bytes) == truncated(held, n_bytes)
                    }
                    _ => true,
                })
                .map(|origin| Origin { value: held.or(origin.value).map(extended), ..origin })
                .collect();
            if !through.is_empty() {
                return through;
            }
        }
        let mut origins = Vec::new();
        for address in addresses {
            // What cannot be read was not loaded: another way was taken.
            let Some(held) = raw(address) else { continue };
            origins.push(Origin {
                pc: instruction.ip(),
                location: Some(Location { address, n_bytes: n_bytes as u64 }),
                value: Some(extended(held)),
                addresses: match budget.active.iter().filter(|ip| **ip >> 63 == 0).count() {
                    1 if !is_own_variable(&instruction) || !self.is_on_stack(address) => {
                        self.of_address(walk, &instruction, budget)
                    }
                    // Only what was asked for, not what its address depends on.
                    _ => Vec::new(),
                },
                ..Origin::default()
            });
        }
        if origins.is_empty() && !is_own_variable(&instruction) {
            origins.push(Origin { value: None, is_lost: true, ..constant(&instruction) });
        }
        origins
    }

    /// What the address of a load was made of, the index first.
    fn of_address(&self, walk: &Walk, load: &Instruction, budget: &mut Budget) -> Vec<Location> {
        let mut locations = Vec::new();
        for register in [load.memory_index(), load.memory_base()] {
            if register == Register::None || register == Register::RSP || !register.is_gpr() {
                continue;
            }
            let origins = self.resolve(walk, register, budget);
            locations.extend(origins.into_iter().filter_map(|origin| origin.location));
        }
        locations
    }

    /// The origins of what the last stores in sight have put into a variable of the function's
    /// own frame; none if a way leads to the entry without one.
    fn stores(&self, walk: &Walk, load: &Instruction, budget: &mut Budget) -> Option<Vec<Origin>> {
        let is_store = |instruction: &Instruction| {
            instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_kind() == OpKind::Memory
                && instruction.memory_base() == load.memory_base()
                && instruction.memory_index() == Register::None
                && instruction.memory_displacement64() == load.memory_displacement64()
                && instruction.memory_size().size() == load.memory_size().size()
        };
        let mut origins = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![walk.clone()];
        let mut n_stores = 0;
        while let Some(here) = open.pop() {
            if here.at == here.function.entry() {
                return None;
            }
            for &before in here.function.previous(here.at) {
                if budget.n_instructions == 0 || n_stores >= DEFINITIONS_MAX {
                    return None;
                }
                if !seen.insert(before) {
                    continue;
                }
                budget.n_instructions -= 1;
                let back = self.back(&here, before);
                let instruction = self.instruction(&back);
                if !is_store(&instruction) {
                    open.push(back);
                    continue;
                }
                n_stores += 1;
                match instruction.op1_kind() {
                    OpKind::Register => {
                        let register = instruction.op1_register();
                        origins.extend(self.resolve(&back, register, budget));
                    }
                    _ => origins.push(constant(&instruction)),
                }
            }
        }
        Some(origins)
    }

    /// Whether a store was made through a pointer to another block of the heap than where it
    /// went: the allocator keeps a block's size before it.
    pub(crate) fn strays(&self, store: &Walk, location: Location) -> bool {
        let mut budget = Budget::default();
        let instruction = self.instruction(store);
        if instruction.op0_kind() != OpKind::Memory || is_own_variable(&instruction) {
            return false;
        }
        let pointers = self.of_address(store, &instruction, &mut budget);
        pointers.iter().filter(|pointer| pointer.n_bytes == 8).any(|pointer| {
            let Some(block) = self.memory.number(pointer.address, 8) else { return false };
            let is_block = block & 0xf == 0 && block <= location.address;
            let Some(size) = self.memory.number(block.wrapping_sub(8), 8) else { return false };
            let size = size & !7;
            is_block
                && self.images.at(block).is_none()
                && !self.is_on_stack(block)
                && (32..1 << 30).contains(&size)
                && location.address >= block + size - 8
        })
    }

    /// Whether an address is in the part of the thread's stack that is in use.
    pub(crate) fn is_on_stack(&self, address: u64) -> bool {
        let Some(low) = self.frames.first().and_then(|frame| frame.get(RSP)) else { return false };
        (low.saturating_sub(RED_ZONE)..low + STACK_BYTES_MAX).contains(&address)
    }
}
