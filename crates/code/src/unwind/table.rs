//! The unwind table of a module: `.eh_frame`.

use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, EvaluationResult, Format,
    FrameDescriptionEntry, LittleEndian, Location, RegisterRule, UnwindContext, UnwindExpression,
    UnwindSection as _, Value,
};
use object::elf::{FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, ReadRef};

use super::Memory;
use super::frame::{Frame, RIP, RSP};

/// Where a module has code, and how to unwind each function. Addresses are those of the file.
#[derive(Debug, Default)]
pub struct Table {
    code: Vec<Range<u64>>,
    frames: Section,
    /// `.eh_frame_hdr`, an index to the entries.
    index: Section,
}

/// A section; empty if the file has none.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
}

/// The frame is in code without a table entry.
pub(super) struct NoEntry;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

const ENCODING: Encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };
/// Expressions of compilers and glibc have no loops. Those of a damaged file may.
const ITERATIONS_MAX: u32 = 256;
/// Registers that a call does not preserve.
const CALLER_SAVED: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

impl Table {
    /// Parses the table of an ELF file. None if it is not an ELF file.
    pub fn parse<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, data).ok()?;
        let code = segments
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD)
            .filter(|segment| segment.p_flags(endian).contains(PF_X))
            .map(|segment| {
                let start = segment.p_vaddr(endian);
                start..start.saturating_add(segment.p_memsz(endian))
            })
            .collect();
        let sections = header.sections(endian, data).ok();
        let section = |name: &[u8]| {
            let (_, section) = sections.as_ref()?.section_by_name(endian, name)?;
            let bytes = section.data(endian, data).ok()?.to_vec();
            Some(Section { address: section.sh_addr(endian), bytes })
        };
        Some(Self {
            code,
            frames: section(b".eh_frame").unwrap_or_default(),
            index: section(b".eh_frame_hdr").unwrap_or_default(),
        })
    }

    /// Whether an address is in code.
    #[must_use]
    pub fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|range| range.contains(&address))
    }

    /// The functions, or parts of functions, that have entries.
    #[must_use]
    pub fn functions(&self) -> Vec<Range<u64>> {
        let (section, bases) = (self.section(), self.bases());
        let mut entries = section.entries(&bases);
        let mut functions = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
            functions.push(entry.initial_address()..entry.end_address());
        }
        functions
    }

    /// The caller of a frame at this address of the file; none if it has no caller, or the
    /// information is lost.
    pub(super) fn caller(
        &self,
        at: u64,
        frame: &Frame,
        memory: &impl Memory,
    ) -> Result<Option<Frame>, NoEntry> {
        let entry = self.entry(at).ok_or(NoEntry)?;
        Ok(self.leave(&entry, at, frame, memory))
    }

    fn section(&self) -> EhFrame<Bytes<'_>> {
        EhFrame::new(&self.frames.bytes, LittleEndian)
    }

    fn bases(&self) -> BaseAddresses {
        let bases = BaseAddresses::default().set_eh_frame(self.frames.address).set_text(0);
        bases.set_eh_frame_hdr(self.index.address)
    }

    fn entry(&self, at: u64) -> Option<FrameDescriptionEntry<Bytes<'_>>> {
        let (section, bases) = (self.section(), self.bases());
        let index = EhFrameHdr::new(&self.index.bytes, LittleEndian).parse(&bases, 8).ok();
        match index.as_ref().and_then(gimli::ParsedEhFrameHdr::table) {
            Some(index) => index.fde_for_address(&section, &bases, at, EhFrame::cie_from_offset),
            None => section.fde_for_address(&bases, at, EhFrame::cie_from_offset),
        }
        .ok()
    }

    fn leave(
        &self,
        entry: &FrameDescriptionEntry<Bytes<'_>>,
        at: u64,
        frame: &Frame,
        memory: &impl Memory,
    ) -> Option<Frame> {
        let (section, bases) = (self.section(), self.bases());
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&section, &bases, &mut context, at).ok()?;
        let evaluate = |expression: &UnwindExpression<usize>, initial: Option<u64>| {
            evaluate(expression.get(&section).ok()?, initial, frame, memory)
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                frame.get(our_number(*register)?)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => evaluate(expression, None)?,
        };
        let mut caller = frame.clone();
        caller.is_exact = entry.is_signal_trampoline();
        for register in CALLER_SAVED {
            caller.set(register, None);
        }
        caller.set(RIP, None);
        caller.set(RSP, Some(cfa));
        for (register, rule) in row.registers() {
            let Some(number) = our_number(*register) else { continue };
            let value = match rule {
                RegisterRule::Offset(offset) => memory.number(cfa.wrapping_add_signed(*offset), 8),
                RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
                RegisterRule::SameValue => frame.get(number),
                RegisterRule::Register(other) => frame.get(our_number(*other)?),
                RegisterRule::Expression(expression) => {
                    evaluate(expression, Some(cfa)).and_then(|address| memory.number(address, 8))
                }
                RegisterRule::ValExpression(expression) => evaluate(expression, Some(cfa)),
                RegisterRule::Constant(value) => Some(*value),
                _ => None,
            };
            caller.set(number, value);
        }
        // An outermost function is marked as having no return address.
        caller.get(RIP)?;
        Some(caller)
    }
}

#[cfg(test)]
impl Table {
    pub(super) fn new(code: Vec<Range<u64>>, frames: Section, index: Section) -> Self {
        Self { code, frames, index }
    }

    pub(super) fn without_index(&self) -> Self {
        Self::new(self.code.clone(), self.frames.clone(), Section::default())
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.frames.bytes
    }

    pub(super) fn entry_start(&self, at: u64) -> Option<u64> {
        self.entry(at).map(|entry| entry.initial_address())
    }
}

/// Evaluates an expression.
fn evaluate(
    expression: gimli::Expression<Bytes<'_>>,
    initial: Option<u64>,
    frame: &Frame,
    memory: &impl Memory,
) -> Option<u64> {
    let mut evaluation = expression.evaluation(ENCODING);
    evaluation.set_max_iterations(ITERATIONS_MAX);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate().ok()?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let value = memory.number(address, size.into())?;
                evaluation.resume_with_memory(Value::Generic(value)).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = frame.get(our_number(register)?)?;
                evaluation.resume_with_register(Value::Generic(value)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.result().first()?.location {
        Location::Address { address } => Some(address),
        Location::Value { value } => value.to_u64(u64::MAX).ok(),
        _ => None,
    }
}

/// Converts a DWARF register number to ours.
fn our_number(register: gimli::Register) -> Option<usize> {
    // rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, then as everybody.
    const FIRST: [usize; 8] = [0, 2, 1, 3, 6, 7, 5, 4];
    match register.0 {
        0..=7 => Some(FIRST[usize::from(register.0)]),
        8..=16 => Some(usize::from(register.0)),
        _ => None,
    }
}
