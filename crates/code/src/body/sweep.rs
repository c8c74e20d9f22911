//! Decodes a function along its jumps.
//!
//! Whatever an instruction leads to is decoded next. When nothing is left, jumps through
//! registers and memory are checked for tables, which may lead to more code; then, if landing
//! pads are unknown, undecoded code is assumed to be one, and so on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use super::{Body, Call, Flow, Pads, landing_pad, tables};
use crate::image::{Callee, Image, LandingPad};

/// Maximum number of edges from calls to landing pads.
const UNWINDS_MAX: usize = 1 << 16;

/// A function that is being decoded.
pub(super) struct Sweep<'a> {
    image: &'a dyn Image,
    parts: &'a [Range<u64>],
    instructions: BTreeMap<u64, (Instruction, Flow)>,
    work: Vec<u64>,
    // invariant: sorted; none if they are not known
    known_pads: Option<Vec<LandingPad>>,
    // Otherwise, what may be landing pads.
    pads: BTreeSet<u64>,
    // From indirect jumps to their targets.
    tables: BTreeMap<u64, BTreeSet<u64>>,
    is_complete: bool,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(image: &'a dyn Image, parts: &'a [Range<u64>]) -> Self {
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

    pub(super) fn run(mut self) -> Body {
        loop {
            while let Some(address) = self.work.pop() {
                self.follow(address);
            }
            self.resolve_tables();
            if self.work.is_empty() {
                if self.known_pads.is_some() {
                    break;
                }
                let Some(pad) = self.unreached() else { break };
                assert!(self.pads.insert(pad), "what was decoded is no longer unreached");
                self.work.push(pad);
            }
        }
        self.body()
    }

    /// Decodes from an address until known code, or until the next instruction is not reached.
    fn follow(&mut self, address: u64) {
        let Some(part) = self.part(address) else { return };
        let Some(bytes) = self.image.bytes(address..part.end) else {
            self.is_complete = false;
            return;
        };
        // Two decodings of the same bytes: one of them is wrong.
        self.is_complete &= !self.is_inside(address);
        let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
        while decoder.can_decode() && !self.instructions.contains_key(&decoder.ip()) {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                self.is_complete = false;
                return;
            }
            let overlapped =
                self.instructions.range(instruction.ip() + 1..instruction.next_ip()).next();
            self.is_complete &= overlapped.is_none();
            let flow = Flow::of(&instruction, self.image, |to| self.part(to).is_some());
            self.instructions.insert(instruction.ip(), (instruction, flow));
            match flow {
                Flow::Next | Flow::NextOrOut => {}
                Flow::Branch(to) => self.work.push(to),
                Flow::Call(Call { callee, .. }) => {
                    self.is_complete &= callee != Callee::ReturnsTwice;
                    let pads = self.known_pads.as_ref().filter(|_| flow.throws());
                    let pad = pads.and_then(|pads| landing_pad(pads, &instruction));
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
                Flow::Indirect | Flow::TailCall(_) | Flow::Return | Flow::Stop => return,
            }
        }
    }

    fn part(&self, address: u64) -> Option<&'a Range<u64>> {
        self.parts.iter().find(|part| part.contains(&address))
    }

    /// Whether an address is inside an instruction, after its first byte.
    fn is_inside(&self, address: u64) -> bool {
        let before = self.instructions.range(..address).next_back();
        before.is_some_and(|(_, (instruction, _))| instruction.next_ip() > address)
    }

    /// Resolves the tables of all indirect jumps, as far as possible by now.
    fn resolve_tables(&mut self) {
        let is_indirect = |(_, flow): &&(Instruction, Flow)| *flow == Flow::Indirect;
        let jumps: Vec<u64> =
            self.instructions.values().filter(is_indirect).map(|(i, _)| i.ip()).collect();
        if jumps.is_empty() {
            return;
        }
        let decoded: Vec<Instruction> = self.instructions.values().map(|(i, _)| *i).collect();
        for jump in jumps {
            let is_fit = |to: u64| self.part(to).is_some() && !self.is_inside(to);
            let targets = tables::targets(&decoded, jump, self.image, is_fit);
            let known = self.tables.entry(jump).or_default();
            self.work.extend(targets.into_iter().filter(|&to| known.insert(to)));
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
                    // Bytes that are not code are skipped.
                    if let Some(first) = first.filter(|i| !i.is_invalid()) {
                        return Some(first.ip());
                    }
                }
                at = at.max(next);
            }
        }
        None
    }

    /// The decoded function.
    fn body(self) -> Body {
        let (instructions, flows): (Vec<Instruction>, Vec<Flow>) =
            self.instructions.into_values().unzip();
        // A path that runs off the end, or into what could not be decoded, ends there.
        let index =
            |address: u64| instructions.binary_search_by_key(&address, Instruction::ip).ok();
        let next = |(instruction, flow): (&Instruction, &Flow)| -> Vec<usize> {
            let after = instruction.next_ip();
            let mut next: Vec<usize> = match *flow {
                Flow::Next | Flow::NextOrOut => index(after).into_iter().collect(),
                Flow::Jump(to) => index(to).into_iter().collect(),
                Flow::Branch(to) => [to, after].into_iter().filter_map(index).collect(),
                Flow::Call(Call { callee: Callee::NoReturn, .. }) => Vec::new(),
                Flow::Call(_) => index(after).into_iter().collect(),
                Flow::Indirect => {
                    let targets = self.tables.get(&instruction.ip()).into_iter().flatten();
                    targets.copied().filter_map(index).collect()
                }
                Flow::TailCall(_) | Flow::Return | Flow::Stop => Vec::new(),
            };
            next.sort_unstable();
            next.dedup();
            next
        };
        let next = instructions.iter().zip(&flows).map(next).collect();

        let is_resolved = |(instruction, flow): (&Instruction, &Flow)| {
            *flow != Flow::Indirect
                || self.tables.get(&instruction.ip()).is_some_and(|targets| !targets.is_empty())
        };
        let n_throwing = flows.iter().filter(|flow| flow.throws()).count();
        let too_many = n_throwing * self.pads.len() > UNWINDS_MAX;
        let entry = self.parts.first().and_then(|part| index(part.start));
        let is_complete = self.is_complete
            && !too_many
            && entry.is_some()
            && instructions.iter().zip(&flows).all(is_resolved);
        let pads = match self.known_pads {
            Some(pads) => Pads::Known(pads),
            None if too_many => Pads::Guessed(Vec::new()),
            None => Pads::Guessed(self.pads.into_iter().filter_map(index).collect()),
        };
        Body { pads, entry, is_complete, next, instructions, flows }
    }
}
