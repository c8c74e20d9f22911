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

mod definition;
mod load;
mod operand;
mod walk;

use std::rc::Rc;

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashSet;

use crate::code::{Function, Functions};
use crate::frame::Frame;
use crate::image::Images;
use crate::tracee::Memory;
use operand::{constant, truncated};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
pub(crate) struct StoppedThread<'a> {
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
/// Enough for all but giant functions.
const INSTRUCTIONS_MAX: usize = 20_000;
/// Moves, calls and pointers that are followed one behind the other.
const DEPTH_MAX: usize = 48;

impl StoppedThread<'_> {
    /// The place of a frame: of the innermost one, or of its call.
    pub(crate) fn place(&self, frame: usize) -> Option<Walk> {
        let pc = self.frames.get(frame)?.pc();
        let (function, at) = if self.frames[frame].is_exact {
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
