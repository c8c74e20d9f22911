//! Functions for tests: assembled, or described as a graph in text.
//!
//! A line of a sketch is a block: `h* -> b e` is block `h`, which calls a callback and then
//! continues to `b` or `e`. With `~` instead of `*` it calls a function that is not a callback. A
//! block without successors returns. The first block is the entry.

use std::collections::BTreeMap;
use std::ops::Range;

use iced_x86::Code::Lea_r64_m as Lea;
use iced_x86::code_asm::{CodeAssembler, CodeLabel};
use iced_x86::{IcedError, Instruction, MemoryOperand, Register};

use super::cfg::Cfg;
use super::image::{Callee, Image, LandingPad, Symbol, Target};

/// Start address of functions.
pub(super) const BASE: u64 = 0x10_0000;

/// A module with one function.
pub(super) struct Code {
    bytes: Vec<u8>,
    pub(super) function: Range<u64>,
    pub(super) symbols: Vec<Symbol>,
    /// Constants at [`Self::TABLE`].
    pub(super) table: Vec<u8>,
    /// Code at [`Self::STUB`].
    pub(super) stub: Vec<u8>,
    /// Landing pads, if known.
    pub(super) pads: Option<Vec<LandingPad>>,
    /// For a sketch: label and address of each block.
    pub(super) labels: Vec<(String, u64)>,
    /// For a sketch: the return address of each block's call.
    pub(super) sites: BTreeMap<String, u64>,
}

impl Code {
    pub(super) const CALLBACK: u64 = 0x20_0000;
    pub(super) const OTHER: u64 = 0x20_0010;
    pub(super) const ABORT: u64 = 0x20_0020;
    pub(super) const SETJMP: u64 = 0x20_0030;
    pub(super) const TABLE: u64 = 0x30_0000;
    pub(super) const STUB: u64 = 0x40_0000;

    pub(super) fn assemble(
        build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
    ) -> Self {
        let mut assembler = CodeAssembler::new(64).expect("64 bits are known");
        build(&mut assembler).expect("instructions");
        Self::of_bytes(assembler.assemble(BASE).expect("a function"))
    }

    pub(super) fn of_bytes(bytes: Vec<u8>) -> Self {
        let function = BASE..BASE + bytes.len() as u64;
        let symbol = Symbol { start: BASE, bytes: bytes.len() as u64, is_part: false };
        Self {
            bytes,
            function,
            symbols: vec![symbol],
            table: Vec::new(),
            stub: Vec::new(),
            pads: None,
            labels: Vec::new(),
            sites: BTreeMap::new(),
        }
    }

    /// `lea rdx, [rip + TABLE]`, 7 bytes.
    pub(super) fn lea_table(a: &mut CodeAssembler) -> Result<(), IcedError> {
        let table = MemoryOperand::with_base_displ(Register::RIP, Self::TABLE as i64);
        a.add_instruction(Instruction::with2(Lea, Register::RDX, table)?)
    }

    pub(super) fn sketch(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let blocks: Vec<(&str, &str)> =
            lines.map(|line| line.split_once("->").expect("an arrow")).collect();
        let label = |head: &str| head.trim().trim_end_matches(['*', '~']).to_owned();
        let mut code = Self::assemble(|a| {
            let mut labels: BTreeMap<String, CodeLabel> =
                blocks.iter().map(|(head, _)| (label(head), a.create_label())).collect();
            for (head, tail) in &blocks {
                a.set_label(labels.get_mut(&label(head)).expect("a block"))?;
                // An instruction of the block's own, so that every label has an address.
                a.nop()?;
                match head.trim().chars().last() {
                    Some('*') => a.call(Self::CALLBACK)?,
                    Some('~') => a.call(Self::OTHER)?,
                    _ => {}
                }
                let to: Vec<CodeLabel> = tail.split_whitespace().map(|to| labels[to]).collect();
                match to.split_last() {
                    None => a.ret()?,
                    Some((&last, others)) => {
                        for &other in others {
                            a.je(other)?;
                        }
                        a.jmp(last)?;
                    }
                }
            }
            Ok(())
        });
        // The assembler does not report addresses, so decode again, block by block.
        let mut decoder = iced_x86::Decoder::with_ip(64, &code.bytes, BASE, 0);
        for (head, tail) in &blocks {
            let n_jumps = tail.split_whitespace().count().max(1);
            let has_call = head.trim().ends_with(['*', '~']);
            code.labels.push((label(head), decoder.ip()));
            let _ = decoder.decode();
            if has_call {
                let _ = decoder.decode();
                code.sites.insert(label(head), decoder.ip());
            }
            for _ in 0..n_jumps {
                let _ = decoder.decode();
            }
        }
        code
    }

    /// The graph of its function.
    pub(super) fn cfg(&self) -> Cfg {
        Cfg::of_parts(self, std::slice::from_ref(&self.function))
    }

    /// The label of the block that begins at an address.
    pub(super) fn label(&self, address: u64) -> &str {
        let found = self.labels.iter().find(|(_, start)| *start == address);
        found.map_or("?", |(label, _)| label)
    }
}

impl Image for Code {
    fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    fn bytes(&self, range: Range<u64>) -> Option<&[u8]> {
        let pieces = [(BASE, &self.bytes), (Self::TABLE, &self.table), (Self::STUB, &self.stub)];
        pieces.into_iter().find_map(|(base, bytes)| {
            let place = |address: u64| usize::try_from(address.checked_sub(base)?).ok();
            bytes.get(place(range.start)?..place(range.end)?)
        })
    }

    fn callee(&self, target: Target) -> Callee {
        match target {
            Target::Address(Self::CALLBACK) => Callee::Callback,
            Target::Address(Self::ABORT) => Callee::NoReturn,
            Target::Address(Self::SETJMP) => Callee::ReturnsTwice,
            _ => Callee::Other,
        }
    }

    fn landing_pads(&self, _: &Range<u64>) -> Option<Vec<LandingPad>> {
        self.pads.clone()
    }
}
