//! Where a value came from: from a register at some instruction back to the memory that it was
//! loaded from.
//!
//! A walk backwards over the function's graph finds the instructions that may have defined the
//! register; moves and arithmetic are followed, also through variables in the function's own
//! frame, up into callers for arguments and down into callees for results. What registers and
//! memory hold at the failure gives addresses their numbers, and tells ways that were not
//! taken: what they would have given is not what is there. A variable of the frame whose last
//! store in sight does not explain what it holds was overwritten from elsewhere, and so is
//! itself the origin.
//!
//! Limits: values of other instructions than moves and simple arithmetic are not computed, so
//! addresses that depend on them stay unknown; and what was loaded from memory that has
//! changed since is looked for in the wrong place.

use std::rc::Rc;

use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use rustc_hash::FxHashSet;

use crate::calls;
use crate::code::{Function, Functions, KEPT, bit};
use crate::frame::{Frame, RSP};
use crate::image::Images;
use crate::tracee::Memory;

/// A place in memory whose value was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// First byte.
    pub address: u64,
    /// How many bytes.
    pub n_bytes: u64,
}

impl Location {
    /// Whether the two share a byte.
    #[must_use]
    pub fn overlaps(&self, address: u64, n_bytes: u64) -> bool {
        self.address < address.saturating_add(n_bytes)
            && address < self.address.saturating_add(self.n_bytes)
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Where in the code it was loaded, or made from nothing.
    pub(crate) pc: u64,
    /// From where in memory; none if it is a constant of the code.
    pub(crate) location: Option<Location>,
    /// The value, as far as it can be told.
    pub(crate) value: Option<u64>,
    /// The memory that its address was made of: of an array's element, the index and the base.
    pub(crate) addresses: Vec<Location>,
    /// Another one is likelier to blame.
    pub(crate) is_doubtful: bool,
    /// It was loaded from memory, but from where is not known.
    pub(crate) is_lost: bool,
}

/// A thread that has stopped, with all that helps to understand how it came there.
pub(crate) struct Scene<'a> {
    pub(crate) images: &'a Images,
    pub(crate) functions: &'a Functions,
    pub(crate) memory: &'a Memory,
    /// Innermost first.
    pub(crate) frames: &'a [Frame],
}

/// A place on the way back: right before an instruction.
#[derive(Clone)]
pub(crate) struct Walk {
    function: Rc<Function>,
    at: usize,
    /// Registers that may have changed between here and where the frame's are known.
    changed: u64,
    context: Context,
}

#[derive(Clone)]
enum Context {
    /// An activation that is still there.
    Frame(usize),
    /// One that has returned to this call.
    Returned(Rc<Walk>),
    /// One that has returned to nowhere known.
    Gone,
}

/// What is still to be spent on a question.
struct Budget {
    n_instructions: usize,
    depth: usize,
    /// What is being followed: loads, and, inverted, definitions. What a loop makes from what
    /// it made is followed a few times only.
    active: Vec<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { n_instructions: INSTRUCTIONS_MAX, depth: DEPTH_MAX, active: Vec::new() }
    }
}

/// How often a loop's load is followed.
const ROUNDS_MAX: usize = 3;
/// Values that a register may have had, by the ways that lead to it.
const VALUES_MAX: usize = 4;
/// Enough for all but giant functions.
const INSTRUCTIONS_MAX: usize = 20_000;
/// Moves, calls and pointers that are followed one behind the other.
const DEPTH_MAX: usize = 48;
/// Definitions that are looked at for one register.
const DEFINITIONS_MAX: usize = 6;

impl<'a> Scene<'a> {
    /// The place of a frame: of the innermost one, or of its call.
    pub(crate) fn place(&self, frame: usize) -> Option<Walk> {
        let pc = self.frames.get(frame)?.pc();
        let (function, at) = if self.frames[frame].is_innermost {
            let function = self.functions.at(self.images, pc)?;
            let at = function.index(pc)?;
            (function, at)
        } else {
            let function = self.functions.at(self.images, pc.wrapping_sub(1))?;
            let at = function.index_before(pc)?;
            (function, at)
        };
        Some(Walk { function, at, changed: 0, context: Context::Frame(frame) })
    }

    /// The instruction at a place.
    pub(crate) fn instruction(&self, walk: &Walk) -> Instruction {
        walk.function.instructions()[walk.at]
    }

    /// Where a register's value came from.
    pub(crate) fn of_register(&self, walk: &Walk, register: Register) -> Vec<Origin> {
        let mut budget = Budget::default();
        let known = self.known(walk, register);
        let origins = self.resolve(walk, register, &mut budget);
        // Ways that would have given another value were not taken.
        let n_bytes = register.size().min(8);
        let fits = |origin: &Origin| match (origin.value, known) {
            (Some(value), Some(known)) => truncated(value, n_bytes) == truncated(known, n_bytes),
            _ => true,
        };
        let fitting: Vec<Origin> = origins.iter().filter(|origin| fits(origin)).cloned().collect();
        distinct(if fitting.is_empty() { origins } else { fitting })
    }

    /// Where what an instruction reads from memory came from: there.
    pub(crate) fn of_memory(&self, walk: &Walk) -> Vec<Origin> {
        let mut budget = Budget::default();
        distinct(self.load(walk, &mut budget))
    }

    /// Where all that an instruction reads came from.
    pub(crate) fn of_sources(&self, walk: &Walk) -> Vec<Origin> {
        let mut budget = Budget::default();
        distinct(self.sources(walk, &mut budget, true))
    }

    /// Where what a store at this place writes came from.
    pub(crate) fn of_stored(&self, walk: &Walk) -> Vec<Origin> {
        let instruction = self.instruction(walk);
        let mut budget = Budget::default();
        let is_move = matches!(
            instruction.mnemonic(),
            Mnemonic::Mov
                | Mnemonic::Movss
                | Mnemonic::Movsd
                | Mnemonic::Movups
                | Mnemonic::Movaps
                | Mnemonic::Movq
                | Mnemonic::Movd
                | Mnemonic::Movnti
        );
        if is_move && instruction.op0_kind() == OpKind::Memory {
            return match instruction.op1_kind() {
                OpKind::Register => {
                    distinct(self.resolve(walk, instruction.op1_register(), &mut budget))
                }
                _ => vec![constant(&instruction)],
            };
        }
        distinct(self.sources(walk, &mut budget, false))
    }

    /// Where the result of a function came from that has returned, in which nothing but the
    /// program's own variables is known any more; what decided about it, if it is a constant.
    pub(crate) fn of_returned(&self, entry: u64, result: u64) -> Vec<Origin> {
        let Some(function) = self.functions.at(self.images, entry) else { return Vec::new() };
        let mut origins = Vec::new();
        for at in 0..function.instructions().len() {
            if function.instructions()[at].flow_control() != FlowControl::Return {
                continue;
            }
            let place = |at: usize| Walk {
                function: Rc::clone(&function),
                at,
                changed: u64::MAX,
                context: Context::Gone,
            };
            let found = self.resolve(&place(at), Register::RAX, &mut Budget::default());
            for origin in found {
                let is_it = origin.value.is_some_and(|value| value & 0xff == result);
                if origin.location.is_none() && is_it && !origin.is_lost {
                    let decided = function.index(origin.pc);
                    origins
                        .extend(decided.into_iter().flat_map(|at| self.of_condition(&place(at))));
                } else if origin.location.is_some() {
                    origins.push(origin);
                }
            }
        }
        distinct(origins)
    }

    /// Where the conditions came from that let the program come to a place.
    pub(crate) fn of_condition(&self, walk: &Walk) -> Vec<Origin> {
        let mut budget = Budget::default();
        let mut origins = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![walk.clone()];
        while let Some(here) = open.pop() {
            for &before in here.function.previous(here.at) {
                if !seen.insert(before) || seen.len() > 2000 {
                    continue;
                }
                let back = self.back(&here, before);
                let instruction = self.instruction(&back);
                if instruction.flow_control() == FlowControl::ConditionalBranch {
                    origins.extend(self.of_flags(&back, &mut budget));
                } else {
                    open.push(back);
                }
            }
        }
        distinct(origins)
    }

    /// Where what decides a branch came from.
    fn of_flags(&self, walk: &Walk, budget: &mut Budget) -> Vec<Origin> {
        let wanted = self.instruction(walk).rflags_read();
        let mut here = walk.clone();
        for _ in 0..64 {
            let [before] = *here.function.previous(here.at) else { break };
            here = self.back(&here, before);
            let instruction = self.instruction(&here);
            if is_call(&instruction) {
                break;
            }
            if instruction.rflags_modified() & wanted != 0 {
                return self.sources(&here, budget, false);
            }
        }
        Vec::new()
    }

    /// The place one instruction earlier.
    fn back(&self, walk: &Walk, before: usize) -> Walk {
        let changed = walk.changed | written(&walk.function.instructions()[before]);
        Walk { at: before, changed, ..walk.clone() }
    }

    /// A register's value, if nothing can have changed it since.
    fn known(&self, walk: &Walk, register: Register) -> Option<u64> {
        match &walk.context {
            Context::Frame(frame) if walk.changed & bit(register) == 0 => {
                self.frames[*frame].value(register)
            }
            _ if matches!(register, Register::FS | Register::GS) => {
                self.frames.first()?.value(register)
            }
            _ => None,
        }
    }

    /// The values that a register may have had.
    fn values(&self, walk: &Walk, register: Register, budget: &mut Budget) -> Vec<u64> {
        if register == Register::None {
            return vec![0];
        }
        if let Some(known) = self.known(walk, register) {
            return vec![known];
        }
        let mut values: Vec<u64> = Vec::new();
        for value in self.resolve(walk, register, budget).into_iter().filter_map(|o| o.value) {
            if !values.contains(&value) && values.len() < VALUES_MAX {
                values.push(value);
            }
        }
        values
    }

    /// The origins of a register right before a place.
    fn resolve(&self, walk: &Walk, register: Register, budget: &mut Budget) -> Vec<Origin> {
        if budget.depth == 0 {
            return Vec::new();
        }
        budget.depth -= 1;
        let wanted = bit(register);
        let mut origins = Vec::new();
        let mut seen = FxHashSet::default();
        let mut open = vec![walk.clone()];
        let mut n_definitions = 0;
        while let Some(here) = open.pop() {
            if here.at == here.function.entry() {
                origins.extend(self.of_argument(&here, register, budget));
            }
            for &before in here.function.previous(here.at) {
                if budget.n_instructions == 0 || n_definitions >= DEFINITIONS_MAX {
                    break;
                }
                if !seen.insert(before) {
                    continue;
                }
                budget.n_instructions -= 1;
                let back = self.back(&here, before);
                let instruction = self.instruction(&back);
                if is_call(&instruction) && wanted & KEPT == 0 {
                    n_definitions += 1;
                    if wanted == bit(Register::RAX) || wanted == bit(Register::XMM0) {
                        origins.extend(self.of_result(&back, register, budget));
                    }
                } else if !is_call(&instruction) && written(&instruction) & wanted != 0 {
                    n_definitions += 1;
                    let ip = instruction.ip();
                    let n_rounds = budget.active.iter().filter(|other| **other == !ip).count();
                    if n_rounds < ROUNDS_MAX - 1 {
                        budget.active.push(!ip);
                        origins.extend(self.of_definition(&back, register, budget));
                        budget.active.pop();
                    }
                } else {
                    open.push(back);
                }
            }
        }
        budget.depth += 1;
        origins
    }

    /// A register at a function's entry: what the caller had in it.
    fn of_argument(&self, walk: &Walk, register: Register, budget: &mut Budget) -> Vec<Origin> {
        match &walk.context {
            Context::Frame(frame) => match self.place(frame + 1) {
                Some(caller) => self.resolve(&caller, register, budget),
                None => Vec::new(),
            },
            Context::Returned(call) => self.resolve(call, register, budget),
            Context::Gone => Vec::new(),
        }
    }

    /// What a call gave back.
    fn of_result(&self, call: &Walk, register: Register, budget: &mut Budget) -> Vec<Origin> {
        let instruction = self.instruction(call);
        let callee = self.functions.callee(self.images, &instruction);
        // An atomic operation, in instrumented code.
        if let Some(callback) = callee.name.as_deref().and_then(calls::callback)
            && callback.reads
        {
            let n_bytes = u64::from(callback.n_bytes);
            let of = |address: u64| Origin {
                location: Some(Location { address, n_bytes }),
                value: self.memory.number(address, n_bytes as usize),
                ..constant(&instruction)
            };
            return self.values(call, Register::RDI, budget).into_iter().map(of).collect();
        }
        let Some(function) = callee.entry.and_then(|entry| self.functions.at(self.images, entry))
        else {
            return Vec::new();
        };
        let context = Context::Returned(Rc::new(call.clone()));
        let returns = (0..function.instructions().len())
            .filter(|&at| function.instructions()[at].flow_control() == FlowControl::Return);
        let mut origins = Vec::new();
        for at in returns.take(4) {
            let end = Walk {
                function: Rc::clone(&function),
                at,
                changed: u64::MAX,
                context: context.clone(),
            };
            origins.extend(self.resolve(&end, register, budget));
        }
        origins
    }

    /// What an instruction has put into a register.
    fn of_definition(&self, walk: &Walk, register: Register, budget: &mut Budget) -> Vec<Origin> {
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
    fn sources(&self, walk: &Walk, budget: &mut Budget, with_addresses: bool) -> Vec<Origin> {
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

    /// The addresses that an instruction's memory operand may have had.
    fn addresses(&self, walk: &Walk, budget: &mut Budget) -> Vec<u64> {
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
    fn load(&self, walk: &Walk, budget: &mut Budget) -> Vec<Origin> {
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
                is_doubtful: false,
                is_lost: false,
            });
        }
        if origins.is_empty() && !is_own_variable(&instruction) {
            origins.push(Origin { value: None, is_lost: true, ..constant(&instruction) });
        }
        origins
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

    /// Whether an address is in the part of the thread's stack that is in use.
    pub(crate) fn is_on_stack(&self, address: u64) -> bool {
        let Some(low) = self.frames.first().and_then(|frame| frame.get(RSP)) else { return false };
        (low.saturating_sub(RED_ZONE)..low + STACK_BYTES_MAX).contains(&address)
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
}

/// What a function may use below its stack pointer.
const RED_ZONE: u64 = 128;
/// As large as stacks are by default.
const STACK_BYTES_MAX: u64 = 8 << 20;

/// Whether an instruction's operand is a variable of the function's own frame.
fn is_own_variable(instruction: &Instruction) -> bool {
    matches!(instruction.memory_base(), Register::RBP | Register::RSP)
        && instruction.memory_index() == Register::None
        && matches!(instruction.segment_prefix(), Register::None)
}

fn constant(instruction: &Instruction) -> Origin {
    let last = instruction.op_count().saturating_sub(1);
    let is_immediate = is_constant(instruction.op_kind(last));
    let value = if is_immediate { instruction.immediate(last) } else { 0 };
    Origin {
        pc: instruction.ip(),
        location: None,
        value: Some(value),
        addresses: Vec::new(),
        is_doubtful: false,
        is_lost: false,
    }
}

/// Whether an operand is part of the instruction.
fn is_constant(kind: OpKind) -> bool {
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

fn is_call(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

/// The registers that an instruction writes, as bits; a call's are all that it need not keep.
fn written(instruction: &Instruction) -> u64 {
    if is_call(instruction) {
        return !KEPT;
    }
    let mut factory = InstructionInfoFactory::new();
    factory
        .info(instruction)
        .used_registers()
        .iter()
        .filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead))
        .fold(0, |set, used| set | bit(used.register()))
}

fn truncated(value: u64, n_bytes: usize) -> u64 {
    if n_bytes >= 8 { value } else { value & ((1 << (8 * n_bytes)) - 1) }
}

fn sign_extended(value: u64, n_bytes: usize) -> u64 {
    let shift = 64 - 8 * n_bytes.min(8) as u32;
    ((value << shift) as i64 >> shift) as u64
}

/// Each once, those with a location first.
fn distinct(origins: Vec<Origin>) -> Vec<Origin> {
    let mut distinct: Vec<Origin> = Vec::new();
    for origin in origins {
        let is_known = |other: &Origin| {
            other.location == origin.location
                && (origin.location.is_some() || other.pc == origin.pc)
        };
        if !distinct.iter().any(is_known) {
            distinct.push(origin);
        }
    }
    distinct.sort_by_key(|origin| origin.location.is_none());
    distinct
}
