//! Functions as graphs of instructions: who may follow whom, where branches meet again, and
//! which registers are still needed.
//!
//! A function is what its symbol or its unwind table covers, with the parts that the compiler
//! has put elsewhere (`.cold`). Nodes are instructions, as most functions are small. Jump
//! tables are read where they have the form that compilers give them; a jump that leads
//! nowhere known ends the function.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::image::Images;

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) instructions: Vec<Instruction>,
    by_ip: FxHashMap<u64, usize>,
    /// Where it may go on, by instruction; nowhere if it leaves the function.
    pub(crate) next: Vec<Vec<usize>>,
    /// Where it may have come from, by instruction.
    pub(crate) previous: Vec<Vec<usize>>,
    /// See [`Function::meets`].
    meets: RefCell<Option<Vec<Option<usize>>>>,
    /// See [`Function::live`].
    live: RefCell<Option<Vec<u64>>>,
    /// See [`Function::arguments`].
    arguments: Cell<Option<u64>>,
}

/// All functions that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    known: RefCell<FxHashMap<u64, Option<Rc<Function>>>>,
    returning: RefCell<FxHashMap<u64, bool>>,
}

/// Whom a call calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Callee {
    /// Its first instruction, if the program tells.
    pub(crate) entry: Option<u64>,
    /// Its name, if it has one.
    pub(crate) name: Option<String>,
}

impl Functions {
    /// The function that an address is in.
    pub(crate) fn at(&self, images: &Images, address: u64) -> Option<Rc<Function>> {
        let bounds = images.function(address)?;
        let mut start = bounds.start;
        // A part that lies elsewhere belongs to its function.
        if let Some(whole) = bounds.name.and_then(|name| name.split_once(".cold"))
            && let Some(entry) = images.named(address, whole.0)
        {
            start = entry;
        }
        if let Some(known) = self.known.borrow().get(&start) {
            return known.clone();
        }
        // Against functions that call each other while their ends are looked for.
        self.known.borrow_mut().insert(start, None);
        let function = self.decode(images, start).map(Rc::new);
        self.known.borrow_mut().insert(start, function.clone());
        function
    }

    /// The instruction at an address, alone.
    pub(crate) fn instruction(&self, images: &Images, address: u64) -> Option<Instruction> {
        let code = images.code(address, 16)?;
        let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// The instruction that ends at an address.
    pub(crate) fn before(&self, images: &Images, address: u64) -> Option<Instruction> {
        let function = self.at(images, address.wrapping_sub(1))?;
        let ends = |instruction: &&Instruction| instruction.next_ip() == address;
        function.instructions.iter().find(ends).copied()
    }

    /// Whom an instruction calls, or jumps to.
    pub(crate) fn callee(&self, images: &Images, call: &Instruction) -> Callee {
        let slot = |address: u64| images.slot(address).map(str::to_owned);
        match call.op0_kind() {
            OpKind::NearBranch64 => {
                let entry = call.near_branch_target();
                // Through the linkage table: a jump by a slot, perhaps behind a landing pad.
                let mut at = entry;
                for _ in 0..2 {
                    let Some(first) = self.instruction(images, at) else { break };
                    if first.mnemonic() == Mnemonic::Jmp && first.is_ip_rel_memory_operand() {
                        if let Some(name) = slot(first.ip_rel_memory_address()) {
                            return Callee { entry: None, name: Some(name) };
                        }
                        break;
                    }
                    at = first.next_ip();
                }
                let name = images
                    .function(entry)
                    .filter(|bounds| bounds.start == entry)
                    .and_then(|bounds| bounds.name.map(str::to_owned));
                Callee { entry: Some(entry), name }
            }
            OpKind::Memory if call.is_ip_rel_memory_operand() => {
                let address = call.ip_rel_memory_address();
                let entry = images.own_slot(address).filter(|entry| images.is_code(*entry));
                let own = || {
                    let bounds = images.function(entry?)?;
                    bounds.name.map(str::to_owned)
                };
                Callee { entry, name: slot(address).or_else(own) }
            }
            _ => Callee::default(),
        }
    }

    /// Whether a call comes back.
    pub(crate) fn returns(&self, images: &Images, call: &Instruction) -> bool {
        let callee = self.callee(images, call);
        if let Some(name) = &callee.name
            && is_end(name)
        {
            return false;
        }
        let Some(entry) = callee.entry else { return true };
        if let Some(known) = self.returning.borrow().get(&entry) {
            return *known;
        }
        // Recursion: until the contrary is known.
        self.returning.borrow_mut().insert(entry, true);
        let returns = self.can_return(images, entry);
        self.returning.borrow_mut().insert(entry, returns);
        returns
    }

    /// Whether a way leads from a function's entry to a return.
    pub(crate) fn can_return(&self, images: &Images, entry: u64) -> bool {
        let Some(function) = self.at(images, entry) else { return true };
        let Some(start) = function.index(entry) else { return true };
        let mut seen = FxHashSet::default();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            let instruction = &function.instructions[at];
            if function.next[at].is_empty() {
                match instruction.flow_control() {
                    FlowControl::Return | FlowControl::IndirectBranch => return true,
                    FlowControl::UnconditionalBranch if self.returns(images, instruction) => {
                        return true;
                    }
                    _ => {}
                }
            }
            open.extend(&function.next[at]);
        }
        false
    }

    fn decode(&self, images: &Images, start: u64) -> Option<Function> {
        let mut ranges = Vec::new();
        let mut instructions: Vec<Instruction> = Vec::new();
        let mut open = vec![start];
        while let Some(address) = open.pop() {
            let bounds = images.function(address)?;
            if ranges.contains(&(bounds.start, bounds.end)) || ranges.len() > 8 {
                continue;
            }
            ranges.push((bounds.start, bounds.end));
            let n_bytes = ((bounds.end - bounds.start) as usize).min(FUNCTION_BYTES_MAX);
            let code = images.code(bounds.start, n_bytes)?;
            let decoder = Decoder::with_ip(64, code, bounds.start, DecoderOptions::NONE);
            for instruction in decoder {
                let is_near = instruction.op0_kind() == OpKind::NearBranch64;
                if is_near && instruction.flow_control() != FlowControl::Call {
                    let target = instruction.near_branch_target();
                    let elsewhere = images
                        .function(target)
                        .filter(|part| part.name.is_some_and(|name| name.contains(".cold")));
                    open.extend(elsewhere.map(|_| target));
                }
                instructions.push(instruction);
            }
        }
        let by_ip: FxHashMap<u64, usize> =
            instructions.iter().enumerate().map(|(at, i)| (i.ip(), at)).collect();
        let mut next = vec![Vec::new(); instructions.len()];
        for (at, instruction) in instructions.iter().enumerate() {
            let mut to = |address: u64| next[at].extend(by_ip.get(&address));
            match instruction.flow_control() {
                FlowControl::Next => to(instruction.next_ip()),
                FlowControl::Call | FlowControl::IndirectCall => {
                    if self.returns(images, instruction) {
                        to(instruction.next_ip());
                    }
                }
                FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                    to(instruction.next_ip());
                    if instruction.op0_kind() == OpKind::NearBranch64 {
                        to(instruction.near_branch_target());
                    }
                }
                FlowControl::UnconditionalBranch => to(instruction.near_branch_target()),
                FlowControl::IndirectBranch => {
                    for target in table(images, &instructions[..=at], &by_ip) {
                        to(target);
                    }
                }
                // A system call has this flow too.
                FlowControl::Interrupt | FlowControl::Exception | FlowControl::Return => {}
            }
            if matches!(instruction.code(), Code::Syscall) {
                next[at] = by_ip.get(&instruction.next_ip()).copied().into_iter().collect();
            }
            next[at].sort_unstable();
            next[at].dedup();
        }
        Some(Function::new(instructions, next))
    }
}

/// Larger than any function that a person has written.
const FUNCTION_BYTES_MAX: usize = 1 << 20;

/// Functions that end the program, or the activation that calls them.
fn is_end(name: &str) -> bool {
    const ENDS: [&str; 22] = [
        "__assert_fail",
        "__assert_perror_fail",
        "__assert",
        "abort",
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "__stack_chk_fail",
        "__fortify_fail",
        "__chk_fail",
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_bad_cast",
        "__cxa_throw_bad_array_new_length",
        "_Unwind_Resume",
        "_ZSt9terminatev",
        "__longjmp_chk",
        "longjmp",
        "siglongjmp",
        "pthread_exit",
        "rust_panic",
    ];
    // Rust's, however they are mangled.
    const PANICS: [&str; 6] = [
        "4core9panicking",
        "13unwrap_failed",
        "13expect_failed",
        "11begin_panic",
        "18handle_alloc_error",
        "_fail17h",
    ];
    if PANICS.iter().any(|part| name.contains(part)) {
        return true;
    }
    let name = name.split('@').next().unwrap_or(name);
    ENDS.contains(&name) || name.starts_with("_ZSt") && name.contains("__throw_")
}

/// The targets of a jump through a table, if it has the usual form: offsets from the table's
/// own address, or addresses.
fn table(images: &Images, until: &[Instruction], by_ip: &FxHashMap<u64, usize>) -> Vec<u64> {
    let Some((jump, before)) = until.split_last() else { return Vec::new() };
    let mut targets = Vec::new();
    let mut read = |address: u64, width: u64, of: &dyn Fn(&[u8]) -> u64| {
        for entry in 0..512 {
            let Some(bytes) = images.code(address + entry * width, width as usize) else { break };
            if bytes.len() < width as usize {
                break;
            }
            let target = of(bytes);
            if !by_ip.contains_key(&target) {
                break;
            }
            targets.push(target);
        }
    };
    if jump.op0_kind() == OpKind::Memory {
        let base = images.at(jump.ip()).map_or(0, |image| image.base);
        if jump.memory_index() != Register::None && jump.memory_base() == Register::None {
            read(jump.memory_displacement64(), 8, &|bytes| {
                bytes.try_into().map_or(0, u64::from_le_bytes).wrapping_add(base)
            });
        }
        return targets;
    }
    let lea = before.iter().rev().take(16).find(|instruction| {
        instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand()
    });
    if let Some(lea) = lea {
        let table = lea.ip_rel_memory_address();
        read(table, 4, &|bytes| {
            let offset = bytes.try_into().map_or(0, i32::from_le_bytes);
            table.wrapping_add(i64::from(offset) as u64)
        });
    }
    targets
}

impl Function {
    /// A function of these instructions, each of which may go on at those.
    pub(crate) fn new(instructions: Vec<Instruction>, next: Vec<Vec<usize>>) -> Self {
        let by_ip = instructions.iter().enumerate().map(|(at, i)| (i.ip(), at)).collect();
        let mut previous = vec![Vec::new(); instructions.len()];
        for (at, nexts) in next.iter().enumerate() {
            for &to in nexts {
                previous[to].push(at);
            }
        }
        let (meets, live) = (RefCell::default(), RefCell::default());
        Self { instructions, by_ip, next, previous, meets, live, arguments: Cell::new(None) }
    }

    /// The number of the instruction at an address.
    pub(crate) fn index(&self, address: u64) -> Option<usize> {
        self.by_ip.get(&address).copied()
    }

    /// The address of the first instruction.
    pub(crate) fn entry(&self) -> u64 {
        self.instructions.first().map_or(0, Instruction::ip)
    }

    /// Where all ways from an instruction meet again: its immediate post-dominator. None if
    /// they only meet behind the function's end.
    pub(crate) fn meets(&self, at: usize) -> Option<usize> {
        let mut known = self.meets.borrow_mut();
        known.get_or_insert_with(|| {
            // A way that ends the program is none on which others meet.
            let leaves = |at: &usize| {
                use FlowControl::{IndirectBranch, Return, UnconditionalBranch};
                let flow = self.instructions[*at].flow_control();
                self.next[*at].is_empty()
                    && matches!(flow, Return | UnconditionalBranch | IndirectBranch)
            };
            let exits = (0..self.next.len()).filter(leaves).collect();
            post_dominators(&self.next, &self.previous, exits)
        })[at]
    }

    /// The instructions on the ways from a branch to where they meet.
    pub(crate) fn between(&self, branch: usize, meet: Option<usize>) -> Vec<usize> {
        let mut seen = FxHashSet::default();
        let mut open = self.next[branch].clone();
        while let Some(at) = open.pop() {
            if Some(at) != meet && seen.insert(at) {
                open.extend(&self.next[at]);
            }
        }
        seen.into_iter().collect()
    }

    /// The registers that may be read before they are written, as a set of [`bit`]s, right
    /// before an instruction.
    pub(crate) fn live(&self, at: usize) -> u64 {
        let mut known = self.live.borrow_mut();
        known.get_or_insert_with(|| liveness(self, RESULTS | KEPT))[at]
    }

    /// The registers that it reads before it writes them: its arguments, as a set of [`bit`]s.
    pub(crate) fn arguments(&self) -> u64 {
        // What it does not touch is not its result.
        let known = self.arguments.get();
        known.unwrap_or_else(|| {
            let live = liveness(self, KEPT).first().copied().unwrap_or(0) & ARGUMENTS;
            self.arguments.set(Some(live));
            live
        })
    }
}

/// After Cooper, Harvey and Kennedy («A simple, fast dominance algorithm»), on the graph
/// backwards from a common end.
fn post_dominators(
    next: &[Vec<usize>],
    previous: &[Vec<usize>],
    exits: Vec<usize>,
) -> Vec<Option<usize>> {
    let n = next.len();
    let end = n;
    // Postorder of the reversed graph from the end.
    let mut order = Vec::with_capacity(n + 1);
    let mut seen = vec![false; n + 1];
    let before = |at: usize| if at == end { &exits[..] } else { &previous[at][..] };
    let mut stack = vec![(end, 0)];
    seen[end] = true;
    while let Some((at, child)) = stack.pop() {
        match before(at).get(child) {
            Some(&to) => {
                stack.push((at, child + 1));
                if !seen[to] {
                    seen[to] = true;
                    stack.push((to, 0));
                }
            }
            None => order.push(at),
        }
    }
    let mut number = vec![usize::MAX; n + 1];
    for (rank, &at) in order.iter().enumerate() {
        number[at] = rank;
    }
    let mut immediate = vec![usize::MAX; n + 1];
    immediate[end] = end;
    let mut changed = true;
    while changed {
        changed = false;
        for &at in order.iter().rev().filter(|&&at| at != end) {
            let after =
                if next[at].is_empty() { std::slice::from_ref(&end) } else { &next[at][..] };
            let mut new = usize::MAX;
            for &to in after.iter().filter(|&&to| immediate[to] != usize::MAX) {
                new = match new {
                    usize::MAX => to,
                    mut one => {
                        let mut two = to;
                        while one != two {
                            while number[one] < number[two] {
                                one = immediate[one];
                            }
                            while number[two] < number[one] {
                                two = immediate[two];
                            }
                        }
                        one
                    }
                };
            }
            if new != immediate[at] {
                immediate[at] = new;
                changed = true;
            }
        }
    }
    immediate[..n].iter().map(|&at| (at < n).then_some(at)).collect()
}

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
const OTHERS: u64 = 1 << 49;
/// Registers that calls keep, and the stack pointer: rbx, rsp, rbp, r12 to r15.
pub(crate) const KEPT: u64 = 1 << 3 | 1 << 4 | 1 << 5 | 0xf << 12;
/// Registers that may hold arguments: rdi, rsi, rdx, rcx, r8, r9, the first eight vectors, and
/// rax for the number of vectors.
pub(crate) const ARGUMENTS: u64 =
    1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9 | 0xff << 16 | 1;
/// Registers that may hold results: rax, rdx and the first two vectors.
pub(crate) const RESULTS: u64 = 1 | 1 << 2 | 0b11 << 16;

/// Live registers right before each instruction, if those are live behind a return.
fn liveness(function: &Function, behind_return: u64) -> Vec<u64> {
    let Function { instructions, next, previous, .. } = function;
    let mut factory = InstructionInfoFactory::new();
    let effects: Vec<(u64, u64)> = instructions
        .iter()
        .map(|instruction| match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => {
                let (uses, _) = uses_and_kills(instruction, &mut factory);
                (uses | ARGUMENTS | 1 << 4, !KEPT & !OTHERS)
            }
            _ => uses_and_kills(instruction, &mut factory),
        })
        .collect();
    let mut live = vec![0; instructions.len()];
    let mut open: Vec<usize> = (0..instructions.len()).collect();
    let mut is_open = vec![true; instructions.len()];
    while let Some(at) = open.pop() {
        is_open[at] = false;
        let behind = match next[at].is_empty() {
            false => next[at].iter().fold(0, |set, &to| set | live[to]),
            true => match instructions[at].flow_control() {
                FlowControl::Return => behind_return,
                // A call in the place of a return.
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => ARGUMENTS | KEPT,
                _ => 0,
            },
        };
        let (uses, kills) = effects[at];
        let new = uses | behind & !kills;
        if new != live[at] {
            live[at] = new;
            for &before in &previous[at] {
                if !is_open[before] {
                    is_open[before] = true;
                    open.push(before);
                }
            }
        }
    }
    live
}

/// What an instruction reads, and what it writes whole.
fn uses_and_kills(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> (u64, u64) {
    let (mut uses, mut kills) = (0, 0);
    for used in factory.info(instruction).used_registers() {
        let bit = bit(used.register());
        let is_whole = used.register().full_register() == used.register();
        match used.access() {
            OpAccess::Write if is_whole => kills |= bit,
            OpAccess::Write => {}
            _ => uses |= bit,
        }
    }
    if instruction.rflags_read() != 0 {
        uses |= FLAGS;
    }
    // All that conditions look at.
    const ARITHMETIC: u32 = iced_x86::RflagsBits::CF
        | iced_x86::RflagsBits::ZF
        | iced_x86::RflagsBits::SF
        | iced_x86::RflagsBits::OF
        | iced_x86::RflagsBits::PF;
    if instruction.rflags_modified() & ARITHMETIC == ARITHMETIC {
        kills |= FLAGS;
    }
    (uses, kills)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where ways meet, by instruction of a graph.
    fn check(next: &[&[usize]], expected: &[Option<usize>]) {
        let next: Vec<Vec<usize>> = next.iter().map(|to| to.to_vec()).collect();
        let mut previous = vec![Vec::new(); next.len()];
        for (at, to) in next.iter().enumerate() {
            to.iter().for_each(|&to| previous[to].push(at));
        }
        let exits = (0..next.len()).filter(|&at| next[at].is_empty()).collect();
        assert_eq!(post_dominators(&next, &previous, exits), expected);
    }

    #[test]
    fn the_ways_of_an_if_meet_behind_it() {
        check(&[&[1, 2], &[3], &[3], &[]], &[Some(3), Some(3), Some(3), None]);
    }

    #[test]
    fn a_loop_is_left_behind_its_condition() {
        check(&[&[1], &[2, 3], &[1], &[]], &[Some(1), Some(3), Some(1), None]);
    }

    #[test]
    fn two_returns_meet_nowhere() {
        check(&[&[1, 2], &[], &[]], &[None, None, None]);
    }

    #[test]
    fn a_way_that_never_ends_does_not_count() {
        check(&[&[1, 2], &[1], &[]], &[Some(2), None, None]);
    }
}
