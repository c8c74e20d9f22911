//! The machine code of one function (x86-64): its instructions and their successors.
//!
//! Code is decoded along the jumps from the function's first byte ([`sweep`]), so data between
//! instructions is not mistaken for code. Successors come from the instruction itself ([`flow`])
//! or, for a jump through a table, from the table ([`tables`]).
//!
//! A path ends where the function is left (`ret`, a jump elsewhere), at `ud2`, at a call of a
//! function that is known not to return, and at the end of the bytes.
//!
//! Exceptions are separate from other edges: [`Body::unwinds`] has the landing pads of a call. If
//! the image does not know landing pads, code that no jump leads to is assumed to be one, and
//! every call that may throw may land at each of them.
//!
//! # Limits
//! A jump through a register or memory is resolved if it uses a table of the form that gcc and
//! LLVM generate. If not, or if instructions overlap or cannot be decoded, or if the function
//! calls one that returns twice (`setjmp`), edges are missing and [`Body::is_complete`] is false.

mod flow;
mod sweep;
mod tables;

use std::ops::Range;

use iced_x86::Instruction;

pub use flow::{Call, Flow, target};

use super::image::{Callee, Image, LandingPad, Symbol, Target};
use sweep::Sweep;

/// A function's instructions, numbered by address.
#[derive(Clone, Debug)]
pub struct Body {
    // invariant: sorted by address
    instructions: Vec<Instruction>,
    // By instruction.
    flows: Vec<Flow>,
    next: Vec<Vec<usize>>,
    pads: Pads,
    entry: Option<usize>,
    is_complete: bool,
}

/// Where exceptions land.
#[derive(Clone, Debug)]
enum Pads {
    // invariant: sorted by where their calls begin
    Known(Vec<LandingPad>),
    /// The instructions at which they may land.
    Guessed(Vec<usize>),
}

impl Body {
    /// A function in one piece, without knowledge of its callees or jump tables.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], base: u64) -> Self {
        let whole = base..base + bytes.len() as u64;
        Self::of_parts(&BareImage { bytes, base }, std::slice::from_ref(&whole))
    }

    /// A function that may consist of several parts; the first starts with its first instruction.
    #[must_use]
    pub fn of_parts(image: &dyn Image, parts: &[Range<u64>]) -> Self {
        Sweep::new(image, parts).run()
    }

    /// All instructions.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The index of the instruction at an address.
    #[must_use]
    pub fn index(&self, address: u64) -> Option<usize> {
        self.instructions.binary_search_by_key(&address, Instruction::ip).ok()
    }

    /// The function's first instruction; none if nothing could be decoded.
    #[must_use]
    pub fn entry(&self) -> Option<usize> {
        self.entry
    }

    /// Where an instruction leads.
    #[must_use]
    pub fn flow(&self, at: usize) -> Flow {
        self.flows[at]
    }

    /// The instructions that may come next, sorted, each once, not counting exceptions.
    #[must_use]
    pub fn next(&self, at: usize) -> &[usize] {
        &self.next[at]
    }

    /// The successors of all instructions.
    #[must_use]
    pub fn all_next(&self) -> &[Vec<usize>] {
        &self.next
    }

    /// Where an exception that leaves an instruction may land in the function.
    #[must_use]
    pub fn unwinds(&self, at: usize) -> Vec<usize> {
        match &self.pads {
            _ if !self.flows[at].throws() => Vec::new(),
            Pads::Known(pads) => {
                let pad = landing_pad(pads, &self.instructions[at]);
                pad.and_then(|pad| self.index(pad)).into_iter().collect()
            }
            Pads::Guessed(pads) => pads.clone(),
        }
    }

    /// Whether all edges are known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether an instruction may leave the function and return to its caller.
    #[must_use]
    pub fn may_leave(&self, at: usize, image: &dyn Image) -> bool {
        match self.flows[at] {
            Flow::Return | Flow::NextOrOut => true,
            Flow::TailCall(target) => image.callee(target) != Callee::NoReturn,
            // Off the end.
            Flow::Next => self.next[at].is_empty(),
            // A call at the end of the function does not return.
            Flow::Jump(_) | Flow::Branch(_) | Flow::Indirect | Flow::Call(_) | Flow::Stop => false,
        }
    }
}

/// Where an exception that leaves a call lands. `pads` is sorted.
fn landing_pad(pads: &[LandingPad], call: &Instruction) -> Option<u64> {
    let address = call.next_ip() - 1;
    let n_before = pads.partition_point(|pad| pad.calls.start <= address);
    let pad = &pads[n_before.checked_sub(1)?];
    pad.calls.contains(&address).then_some(pad.at)
}

/// Bytes without any further information.
struct BareImage<'a> {
    bytes: &'a [u8],
    base: u64,
}

impl Image for BareImage<'_> {
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
