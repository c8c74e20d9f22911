//! The control flow graph of one function, from its machine code (x86-64).
//!
//! Code is decoded along the jumps from the function's first byte, so data between
//! instructions is not mistaken for code. A call ends its block: what follows begins at the
//! return address, which is how raddle names sites.
//!
//! What leaves the function (`ret`, a jump to elsewhere) ends a path, and so do `ud2`, a call
//! of a function that is known not to return, and the end of the bytes.
//!
//! A call that may throw also has an edge to its landing pad, where the exception arrives. If
//! the image does not know landing pads, code that no jump leads to is taken for them, and
//! each call that may throw has an edge to each of them.
//!
//! A jump through a register or memory is resolved if it goes through a table as gcc and LLVM
//! make them ([`super::tables`]). If not, or if instructions overlap or cannot be decoded, or
//! if the function calls one that returns twice (`setjmp`), edges are missing, and
//! [`Cfg::is_complete`] is false.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use super::functions::{Callee, Image, LandingPad, Symbol, Target};
use super::{dominators, tables};

/// A block of a [`Cfg`], numbered by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// Instructions that are executed one after the other, the first of them first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address of the first instruction.
    pub start: u64,
    /// The end of the last one.
    pub end: u64,
    /// The call that ends it, if one does. It returns to `end`.
    pub call: Option<Call>,
    /// Whether the function may be left behind it, or its end may never be passed.
    pub is_exit: bool,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Where to.
    pub target: Target,
    /// What is known of who is called.
    pub callee: Callee,
}

/// A function's blocks, and who comes after whom.
#[derive(Clone, Debug)]
pub struct Cfg {
    // invariant: sorted by address, without overlaps, and all are reached from the entry
    blocks: Vec<Block>,
    successors: Vec<Vec<BlockId>>,
    predecessors: Vec<Vec<BlockId>>,
    entry: BlockId,
    is_complete: bool,
    may_return: bool,
    dominators: Vec<Option<u32>>,
    // With the number behind the last block for the exit.
    post_dominators: Vec<Option<u32>>,
}

/// More edges from calls to landing pads than this are not made.
const UNWIND_EDGES_MAX: usize = 1 << 16;

impl Cfg {
    /// The graph of a function in one piece. Nothing is known of who it calls, nor are there
    /// tables for its jumps.
    #[must_use]
    pub fn of(bytes: &[u8], base: u64) -> Self {
        let whole = base..base + bytes.len() as u64;
        Self::of_parts(&Bare { bytes, base }, std::slice::from_ref(&whole))
    }

    /// The graph of a function that may lie in several parts; the first begins with its first
    /// instruction.
    #[must_use]
    pub fn of_parts(image: &dyn Image, parts: &[Range<u64>]) -> Self {
        let mut sweep = Sweep::new(image, parts);
        sweep.run();
        sweep.graph()
    }

    /// Whether all edges are known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the function may come to its end. If not, whoever calls it does not go on.
    #[must_use]
    pub fn may_return(&self) -> bool {
        self.may_return
    }

    /// Where the function begins.
    #[must_use]
    pub fn entry(&self) -> BlockId {
        self.entry
    }

    /// All blocks, by address.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = (BlockId, &Block)> {
        self.blocks.iter().enumerate().map(|(place, block)| (id(place), block))
    }

    /// One block.
    #[must_use]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.0 as usize]
    }

    /// The block that an address lies in.
    #[must_use]
    pub fn block_at(&self, address: u64) -> Option<BlockId> {
        let n_before = self.blocks.partition_point(|block| block.start <= address);
        let place = n_before.checked_sub(1)?;
        (address < self.blocks[place].end).then_some(id(place))
    }

    /// The block whose call returns to an address.
    #[must_use]
    pub fn block_calling(&self, return_address: u64) -> Option<BlockId> {
        let block = self.block_at(return_address.checked_sub(1)?)?;
        let Block { end, call, .. } = self.block(block);
        (*end == return_address && call.is_some()).then_some(block)
    }

    /// The blocks that may come next, each once.
    #[must_use]
    pub fn successors(&self, block: BlockId) -> &[BlockId] {
        &self.successors[block.0 as usize]
    }

    /// The blocks that may come before, each once.
    #[must_use]
    pub fn predecessors(&self, block: BlockId) -> &[BlockId] {
        &self.predecessors[block.0 as usize]
    }

    /// The nearest other block that is passed through on every way here; none for the entry.
    #[must_use]
    pub fn dominator(&self, block: BlockId) -> Option<BlockId> {
        self.dominators[block.0 as usize].map(BlockId)
    }

    /// The nearest other block that is passed through on every way from here out of the
    /// function; none if there is no such block, or no way out.
    #[must_use]
    pub fn post_dominator(&self, block: BlockId) -> Option<BlockId> {
        let after = self.post_dominators[block.0 as usize]?;
        ((after as usize) < self.blocks.len()).then_some(BlockId(after))
    }

    /// Whether `above` is passed through on every way to `block`, itself included.
    #[must_use]
    pub fn dominates(&self, above: BlockId, block: BlockId) -> bool {
        std::iter::successors(Some(block), |&block| self.dominator(block)).any(|b| b == above)
    }

    fn new(blocks: Vec<Block>, successors: Vec<Vec<BlockId>>, entry: BlockId) -> Self {
        let numbers = |lists: &[Vec<BlockId>]| -> Vec<Vec<u32>> {
            lists.iter().map(|list| list.iter().map(|block| block.0).collect()).collect()
        };
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (place, list) in successors.iter().enumerate() {
            for next in list {
                predecessors[next.0 as usize].push(id(place));
            }
        }
        let mut reversed = numbers(&predecessors);
        let is_exit = |&place: &u32| blocks[place as usize].is_exit;
        reversed.push((0..id(blocks.len()).0).filter(is_exit).collect());
        Self {
            dominators: dominators::immediate(&numbers(&successors), entry.0),
            post_dominators: dominators::immediate(&reversed, id(blocks.len()).0),
            blocks,
            successors,
            predecessors,
            entry,
            is_complete: true,
            may_return: true,
        }
    }
}

fn id(place: usize) -> BlockId {
    BlockId(u32::try_from(place).expect("a function has less than 2^32 bytes"))
}

/// Bytes of which nothing else is known.
struct Bare<'a> {
    bytes: &'a [u8],
    base: u64,
}

impl Image for Bare<'_> {
    fn symbols(&self) -> &[Symbol] {
        &[]
    }

    fn bytes(&self, range: Range<u64>) -> Option<&[u8]> {
        let place = |address: u64| usize::try_from(address.checked_sub(self.base)?).ok();
        self.bytes.get(place(range.start)?..place(range.end)?)
    }

    fn callee(&self, _: Target) -> Callee {
        Callee::Other
    }

    fn landing_pads(&self, _: &Range<u64>) -> Option<Vec<LandingPad>> {
        None
    }
}

/// Where an instruction leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
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
    /// Out of the function or to the next one.
    NextOrOut,
    /// Out of the function, or nowhere.
    Out,
}

/// A function that is being decoded.
struct Sweep<'a> {
    image: &'a dyn Image,
    parts: &'a [Range<u64>],
    instructions: BTreeMap<u64, (Instruction, Flow)>,
    work: Vec<u64>,
    // invariant: sorted; none if they are not known
    known_pads: Option<Vec<LandingPad>>,
    // If they are not, what may be landing pads.
    pads: BTreeSet<u64>,
    // From indirect jumps to where they lead.
    tables: BTreeMap<u64, BTreeSet<u64>>,
    is_complete: bool,
}

impl<'a> Sweep<'a> {
    fn new(image: &'a dyn Image, parts: &'a [Range<u64>]) -> Self {
        let known_pads: Option<Vec<_>> =
            parts.iter().map(|part| image.landing_pads(part)).collect();
        let mut known_pads = known_pads.map(|pads| pads.concat());
        if let Some(pads) = &mut known_pads {
            pads.sort_by_key(|pad| pad.calls.start);
        }
        Self {
            image,
            parts,
            instructions: BTreeMap::new(),
            work: parts.first().map(|part| part.start).into_iter().collect(),
            known_pads,
            pads: BTreeSet::new(),
            tables: BTreeMap::new(),
            is_complete: true,
        }
    }

    fn run(&mut self) {
        loop {
            while let Some(address) = self.work.pop() {
                self.follow(address);
            }
            self.resolve_tables();
            if self.work.is_empty() {
                if self.known_pads.is_some() {
                    return;
                }
                let Some(pad) = self.unreached() else { return };
                assert!(self.pads.insert(pad), "what was decoded is no longer unreached");
                self.work.push(pad);
            }
        }
    }

    /// Decodes from an address until it is known or does not go on to the next instruction.
    fn follow(&mut self, address: u64) {
        let Some(part) = self.part(address) else { return };
        let Some(bytes) = self.image.bytes(address..part.end) else {
            self.is_complete = false;
            return;
        };
        if self.is_inside(address) {
            self.is_complete = false;
            return;
        }
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        while decoder.can_decode() && !self.instructions.contains_key(&decoder.ip()) {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                self.is_complete = false;
                return;
            }
            let overlapped =
                self.instructions.range(instruction.ip() + 1..instruction.next_ip()).next();
            if overlapped.is_some() {
                self.is_complete = false;
            }
            let flow = self.flow(&instruction);
            self.instructions.insert(instruction.ip(), (instruction, flow));
            match flow {
                Flow::Next | Flow::NextOrOut => {}
                Flow::Branch(to) => self.work.push(to),
                Flow::Call(Call { callee, .. }) => {
                    self.is_complete &= callee != Callee::ReturnsTwice;
                    let pad = self.known_pad(&instruction).filter(|_| callee != Callee::Callback);
                    self.is_complete &= pad.is_none_or(|pad| self.part(pad).is_some());
                    self.work.extend(pad);
                    if callee == Callee::NoReturn {
                        return;
                    }
                }
                Flow::Jump(to) => {
                    self.work.push(to);
                    return;
                }
                Flow::Indirect | Flow::Out => return,
            }
        }
    }

    /// Where an exception lands that leaves a call, if that is known.
    fn known_pad(&self, call: &Instruction) -> Option<u64> {
        let pads = self.known_pads.as_ref()?;
        let address = call.next_ip() - 1;
        let n_before = pads.partition_point(|pad| pad.calls.start <= address);
        let pad = &pads[n_before.checked_sub(1)?];
        pad.calls.contains(&address).then_some(pad.at)
    }

    fn part(&self, address: u64) -> Option<&'a Range<u64>> {
        self.parts.iter().find(|part| part.contains(&address))
    }

    /// Whether an address lies inside an instruction, behind its first byte.
    fn is_inside(&self, address: u64) -> bool {
        let before = self.instructions.range(..address).next_back();
        before.is_some_and(|(_, (instruction, _))| instruction.next_ip() > address)
    }

    fn flow(&self, instruction: &Instruction) -> Flow {
        let to = instruction.near_branch_target();
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch if self.part(to).is_some() => Flow::Jump(to),
            FlowControl::ConditionalBranch if self.part(to).is_some() => Flow::Branch(to),
            FlowControl::ConditionalBranch => Flow::NextOrOut,
            FlowControl::UnconditionalBranch | FlowControl::Return => Flow::Out,
            FlowControl::Call if instruction.mnemonic() == Mnemonic::Call => {
                let target = self.target(Target::Address(to));
                Flow::Call(Call { target, callee: self.image.callee(target) })
            }
            FlowControl::IndirectCall => {
                let target = match instruction.is_ip_rel_memory_operand() {
                    true => Target::Slot(instruction.ip_rel_memory_address()),
                    false => Target::Unknown,
                };
                Flow::Call(Call { target, callee: self.image.callee(target) })
            }
            // Through a slot that the loader fills in: a tail call.
            FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => Flow::Out,
            FlowControl::IndirectBranch => Flow::Indirect,
            FlowControl::Exception if instruction.mnemonic() != Mnemonic::Into => Flow::Out,
            FlowControl::XbeginXabortXend if instruction.mnemonic() == Mnemonic::Xbegin => {
                Flow::Branch(to)
            }
            _ if instruction.mnemonic() == Mnemonic::Hlt => Flow::Out,
            _ => Flow::Next,
        }
    }

    /// Looks through a stub of the procedure linkage table, which jumps through a slot.
    fn target(&self, called: Target) -> Target {
        let Target::Address(address) = called else { return called };
        // An `endbr64` and the jump, at most; a stub at the end of its section is shorter.
        let stub = (6..=16).rev().find_map(|n| self.image.bytes(address..address.checked_add(n)?));
        let Some(bytes) = stub else { return called };
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        let mut instruction = decoder.decode();
        if matches!(instruction.code(), Code::Endbr64) {
            instruction = decoder.decode();
        }
        let is_stub = instruction.flow_control() == FlowControl::IndirectBranch
            && instruction.is_ip_rel_memory_operand();
        if is_stub { Target::Slot(instruction.ip_rel_memory_address()) } else { called }
    }

    /// Finds the tables of all indirect jumps, as far as they can be told by now.
    fn resolve_tables(&mut self) {
        let decoded: Vec<Instruction> = self.instructions.values().map(|(i, _)| *i).collect();
        for (&address, _) in
            self.instructions.iter().filter(|(_, (_, flow))| *flow == Flow::Indirect)
        {
            let is_fit = |to: u64| self.part(to).is_some() && !self.is_inside(to);
            let targets = tables::targets(&decoded, address, self.image, is_fit);
            let known = self.tables.entry(address).or_default();
            for to in targets {
                if known.insert(to) {
                    self.work.push(to);
                }
            }
        }
    }

    /// The first instruction that is neither reached nor padding.
    fn unreached(&self) -> Option<u64> {
        for part in self.parts {
            let mut at = part.start;
            let ends = self.instructions.range(part.clone()).map(|(&ip, (i, _))| (ip, i.next_ip()));
            for (low, next) in ends.chain([(part.end, part.end)]) {
                if at < low
                    && let Some(bytes) = self.image.bytes(at..low)
                {
                    let first = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE)
                        .into_iter()
                        .find(|i| !matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3));
                    // Bytes that are no code are passed over.
                    if let Some(first) = first.filter(|i| !i.is_invalid()) {
                        return Some(first.ip());
                    }
                }
                at = at.max(next);
            }
        }
        None
    }

    /// Whether the function may be left by an instruction, back to its caller.
    fn returns(&self, at: &u64) -> bool {
        let (instruction, flow) = &self.instructions[at];
        let to = instruction.near_branch_target();
        match flow {
            Flow::Jump(_) | Flow::Branch(_) | Flow::Indirect => false,
            // At the end of the function it cannot.
            Flow::Call(_) => false,
            Flow::NextOrOut => true,
            // Off the end.
            Flow::Next => !self.instructions.contains_key(&instruction.next_ip()),
            Flow::Out => match instruction.flow_control() {
                FlowControl::UnconditionalBranch => {
                    self.image.callee(self.target(Target::Address(to))) != Callee::NoReturn
                }
                FlowControl::Return | FlowControl::IndirectBranch => true,
                _ => false,
            },
        }
    }

    /// Cuts what was decoded into blocks.
    fn graph(mut self) -> Cfg {
        let Some(start) = self.parts.first().map(|part| part.start) else {
            return Cfg { is_complete: false, ..empty() };
        };
        if !self.instructions.contains_key(&start) {
            return Cfg { is_complete: false, ..empty() };
        }
        let unresolved = |(&at, (_, flow)): (&u64, &(Instruction, Flow))| {
            *flow == Flow::Indirect && self.tables.get(&at).is_none_or(BTreeSet::is_empty)
        };
        self.is_complete &= !self.instructions.iter().any(unresolved);

        let throws =
            |flow: &Flow| matches!(flow, Flow::Call(call) if call.callee != Callee::Callback);
        let n_throwing = self.instructions.values().filter(|(_, flow)| throws(flow)).count();
        let too_many = n_throwing * self.pads.len() > UNWIND_EDGES_MAX;
        self.is_complete &= !too_many;
        let after = |instruction: &Instruction, flow: &Flow| -> Vec<u64> {
            let next = instruction.next_ip();
            let mut after = match *flow {
                Flow::Next | Flow::NextOrOut => vec![next],
                Flow::Jump(to) => vec![to],
                Flow::Branch(to) => vec![to, next],
                Flow::Call(Call { callee: Callee::NoReturn, .. }) | Flow::Out => vec![],
                Flow::Call(_) => vec![next],
                Flow::Indirect => self
                    .tables
                    .get(&instruction.ip())
                    .map(|targets| targets.iter().copied().collect())
                    .unwrap_or_default(),
            };
            if throws(flow) && !too_many {
                after.extend(&self.pads);
                after.extend(self.known_pad(instruction));
            }
            // What runs off the end, or into what could not be decoded, ends there.
            after.retain(|to| self.instructions.contains_key(to));
            after.sort_unstable();
            after.dedup();
            after
        };

        // Only what is reached counts: pads may turn out to be dead code.
        let mut reached = BTreeSet::new();
        let mut leaders = BTreeSet::from([start]);
        let mut work = vec![start];
        while let Some(at) = work.pop() {
            if !reached.insert(at) {
                continue;
            }
            let (instruction, flow) = &self.instructions[&at];
            let after = after(instruction, flow);
            if *flow != Flow::Next {
                leaders.extend(&after);
            }
            work.extend(after);
        }

        let mut blocks: Vec<Block> = Vec::new();
        let mut lasts = Vec::new();
        for &at in &reached {
            let (instruction, flow) = &self.instructions[&at];
            let goes_on =
                blocks.last().is_some_and(|block| block.end == at) && !leaders.contains(&at);
            if !goes_on {
                blocks.push(Block { start: at, end: at, call: None, is_exit: false });
                lasts.push(at);
            }
            let block = blocks.last_mut().expect("one was pushed");
            block.end = instruction.next_ip();
            if let Flow::Call(call) = *flow {
                block.call = Some(call);
            }
            block.is_exit = *flow == Flow::NextOrOut || after(instruction, flow).is_empty();
            *lasts.last_mut().expect("one was pushed") = at;
        }
        let place = |address: u64| {
            let place = blocks.binary_search_by_key(&address, |block| block.start);
            place.ok().map(id)
        };
        let successors = lasts
            .iter()
            .map(|last| {
                let (instruction, flow) = &self.instructions[last];
                after(instruction, flow).into_iter().filter_map(place).collect()
            })
            .collect();
        let entry = place(start).expect("the entry is reached");
        let is_complete = self.is_complete;
        let may_return = !is_complete || reached.iter().any(|at| self.returns(at));
        Cfg { is_complete, may_return, ..Cfg::new(blocks, successors, entry) }
    }
}

/// The graph of nothing: one block without bytes.
fn empty() -> Cfg {
    Cfg::new(vec![Block { start: 0, end: 0, call: None, is_exit: true }], vec![vec![]], BlockId(0))
}

#[cfg(test)]
mod tests {
    use iced_x86::code_asm::*;
    use proptest::prelude::*;

    use super::super::sketch::{BASE, Code};
    use super::*;

    /// Assembles a function and lists its blocks with where they lead, by address from the
    /// function's first byte; `?` behind the last if there are edges missing.
    fn check(build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>, expect: &str) {
        let code = Code::assemble(build);
        check_code(&code, expect);
    }

    fn check_code(code: &Code, expect: &str) {
        let cfg = Cfg::of_parts(code, std::slice::from_ref(&code.function));
        let mut text: Vec<String> = cfg
            .blocks()
            .map(|(block, Block { start, .. })| {
                let to = cfg.successors(block).iter().map(|&to| cfg.block(to).start - BASE);
                let to: Vec<String> = to.map(|to| format!("{to:x}")).collect();
                format!("{:x}>{}", start - BASE, to.join(","))
            })
            .collect();
        if !cfg.is_complete() {
            text.push("?".to_owned());
        }
        assert_eq!(text.join(" "), expect);
    }

    #[test]
    fn a_call_ends_its_block() {
        check(
            |a| {
                a.call(Code::CALLBACK)?;
                a.ret()
            },
            "0>5 5>",
        );
    }

    #[test]
    fn a_branch_leads_to_two_places() {
        check(
            |a| {
                let mut end = a.create_label();
                a.test(edi, edi)?; // 0
                a.je(end)?; // 2
                a.nop()?; // 4
                a.set_label(&mut end)?;
                a.ret() // 5
            },
            "0>4,5 4>5 5>",
        );
    }

    #[test]
    fn nothing_follows_a_call_that_does_not_return() {
        check(
            |a| {
                let mut end = a.create_label();
                a.test(edi, edi)?; // 0
                a.je(end)?; // 2
                a.call(Code::ABORT)?; // 4
                a.set_label(&mut end)?;
                a.ret() // 9
            },
            "0>4,9 4> 9>",
        );
    }

    #[test]
    fn a_call_at_the_end_does_not_return() {
        check(|a| a.call(Code::OTHER), "0>");
    }

    #[test]
    fn a_function_that_only_aborts_does_not_return() {
        let may_return = |build: fn(&mut CodeAssembler) -> Result<(), IcedError>| {
            let code = Code::assemble(build);
            Cfg::of_parts(&code, std::slice::from_ref(&code.function)).may_return()
        };
        assert!(!may_return(|a| {
            a.call(Code::OTHER)?;
            a.call(Code::ABORT)
        }));
        assert!(!may_return(|a| a.jmp(Code::ABORT)));
        assert!(may_return(|a| a.jmp(Code::OTHER)));
        assert!(may_return(|a| a.ret()));
        assert!(may_return(|a| a.jmp(rax)));
    }

    #[test]
    fn nothing_follows_ud2() {
        check(
            |a| {
                a.call(Code::OTHER)?;
                a.ud2()?;
                a.ret()
            },
            // Nor does the call throw to the `ret`, but who knows?
            "0>5,7 5> 7>",
        );
    }

    #[test]
    fn what_is_never_reached_is_not_there() {
        check(
            |a| {
                a.call(Code::CALLBACK)?;
                a.ret()?;
                a.nop()?;
                a.mov(eax, 1)?;
                a.ret()
            },
            "0>5 5>",
        );
    }

    #[test]
    fn exceptions_land_where_no_jump_leads() {
        check(
            |a| {
                let mut back = a.create_label();
                a.call(Code::OTHER)?; // 0
                a.set_label(&mut back)?;
                a.ret()?; // 5
                a.nop()?; // 6
                a.mov(eax, 1)?; // 7
                a.jmp(back) // c
            },
            "0>5,7 5> 7>5",
        );
    }

    #[test]
    fn exceptions_land_where_the_image_says() {
        let mut code = Code::assemble(|a| {
            a.call(Code::OTHER)?; // 0
            a.call(Code::OTHER)?; // 5
            a.ret()?; // a
            a.nop()?; // b
            a.ret() // c
        });
        code.pads = Some(vec![LandingPad { calls: BASE + 5..BASE + 10, at: BASE + 11 }]);
        check_code(&code, "0>5 5>a,b a> b>");
        // A pad elsewhere, of which nothing is known.
        code.pads = Some(vec![LandingPad { calls: BASE + 5..BASE + 10, at: BASE + 1000 }]);
        check_code(&code, "0>5 5>a a> ?");
    }

    #[test]
    fn a_jump_out_is_a_way_out() {
        let code = Code::assemble(|a| {
            a.test(edi, edi)?;
            a.je(Code::OTHER)?;
            a.nop()?;
            a.ret()
        });
        let cfg = Cfg::of_parts(&code, std::slice::from_ref(&code.function));
        assert!(cfg.block(cfg.entry()).is_exit);
        assert_eq!(cfg.post_dominator(cfg.entry()), None);
    }

    #[test]
    fn an_unknown_jump_is_admitted() {
        check(|a| a.jmp(rax), "0> ?");
    }

    #[test]
    fn a_function_that_returns_twice_is_admitted() {
        check(
            |a| {
                a.call(Code::SETJMP)?;
                a.ret()
            },
            "0>5 5> ?",
        );
    }

    #[test]
    fn a_jump_into_an_instruction_is_admitted() {
        // jmp +1; mov eax, 0xc3c3c3c3
        let cfg = Cfg::of(&[0x74, 0x01, 0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3], BASE);
        assert!(!cfg.is_complete());
    }

    #[test]
    fn garbage_is_admitted() {
        assert!(!Cfg::of(&[0x06], BASE).is_complete());
        assert!(!Cfg::of(&[], BASE).is_complete());
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let cfg = Cfg::of(&bytes, BASE);
            for (block, found) in cfg.blocks() {
                prop_assert!(bytes.is_empty() || cfg.block_at(found.start).is_none_or(|b| b == block));
            }
        }
    }

    /// The table says 14, 16 and 14, then something that is no place in the function.
    fn relative_table() -> Vec<u8> {
        let to = |n: i64| i32::try_from(BASE as i64 + n - Code::TABLE as i64).expect("near");
        [to(0x14), to(0x16), to(0x14), 7].iter().flat_map(|entry| entry.to_le_bytes()).collect()
    }

    #[test]
    fn a_switch_is_followed_through_its_table() {
        let mut code = Code::assemble(|a| {
            a.cmp(edi, 2)?; // 0
            Code::lea_table(a)?; // 3
            a.movsxd(rax, dword_ptr(rdx + rdi * 4))?; // a
            a.add(rax, rdx)?; // e
            a.jmp(rax)?; // 11
            a.nop()?; // 13
            a.nop()?; // 14
            a.ret()?; // 15
            a.ret() // 16
        });
        code.table = relative_table();
        check_code(&code, "0>14,16 14> 16>");
    }

    #[test]
    fn a_table_is_found_if_its_address_was_made_long_before() {
        let mut code = Code::assemble(|a| {
            let mut again = a.create_label();
            Code::lea_table(a)?; // 0
            a.set_label(&mut again)?;
            a.dec(edi)?; // 7
            a.je(again)?; // 9
            a.movsxd(rax, dword_ptr(rdx + rdi * 4))?; // b
            a.add(rax, rdx)?; // f
            a.jmp(rax)?; // 12
            a.ret()?; // 14
            a.nop()?; // 15
            a.ret() // 16
        });
        code.table = relative_table();
        check_code(&code, "0>7 7>7,b b>14,16 14> 16>");
    }

    #[test]
    fn a_table_of_addresses_is_followed() {
        let mut code = Code::assemble(|a| {
            a.jmp(qword_ptr(rdi * 8 + i32::try_from(Code::TABLE).expect("low")))?; // 0
            a.ret()?; // 7
            a.ret() // 8
        });
        code.table = [BASE + 8, BASE + 7, 0].iter().flat_map(|to| to.to_le_bytes()).collect();
        check_code(&code, "0>7,8 7> 8>");
    }

    #[test]
    fn sites_are_found_by_their_return_address() {
        let code = Code::assemble(|a| {
            a.call(Code::CALLBACK)?;
            a.call(Code::OTHER)
        });
        let cfg = Cfg::of_parts(&code, std::slice::from_ref(&code.function));
        let callee = |pc| Some(cfg.block(cfg.block_calling(pc)?).call?.callee);
        assert_eq!(callee(BASE + 5), Some(Callee::Callback));
        assert_eq!(callee(BASE + 10), Some(Callee::Other));
        assert_eq!(callee(BASE + 4), None);
    }

    #[test]
    fn a_stub_is_looked_through() {
        // At 0x400 past the function: endbr64; jmp [rip + 0x100].
        let mut code = Code::assemble(|a| a.call(Code::STUB));
        code.stub = vec![0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x00, 0x01, 0x00, 0x00];
        let cfg = Cfg::of_parts(&code, std::slice::from_ref(&code.function));
        let call = cfg.block(cfg.entry()).call.expect("a call");
        assert_eq!(call.target, Target::Slot(Code::STUB + 10 + 0x100));
    }

    #[test]
    fn what_is_always_passed_dominates() {
        let code = Code::sketch(
            "
            a -> b c
            b -> d
            c -> d
            d ->",
        );
        let cfg = Cfg::of_parts(&code, std::slice::from_ref(&code.function));
        let block = |label| code.block(&cfg, label);
        assert_eq!(cfg.dominator(block("d")), Some(block("a")));
        assert_eq!(cfg.post_dominator(block("a")), Some(block("d")));
        assert_eq!(cfg.post_dominator(block("b")), Some(block("d")));
        assert_eq!(cfg.post_dominator(block("d")), None);
        assert!(cfg.dominates(block("a"), block("d")));
        assert!(!cfg.dominates(block("b"), block("d")));
    }
}
