//! The program's functions: who may follow whom, where branches meet again, and which registers
//! are still needed.
//!
//! The graph is that of [`raddle_code::body`]; nodes are instructions, as most functions
//! are small. Exceptions are no ways here: suppressed code throws none, and who looks for where
//! a value came from looks at what was executed.

mod functions;
mod liveness;
mod registers;

use std::cell::OnceCell;

use iced_x86::Instruction;
use raddle_code::body::{Body, Flow};
use raddle_code::dominators;
use rustc_hash::FxHashSet;

pub(crate) use functions::Functions;
use liveness::liveness;
pub(crate) use registers::{
    ARGUMENTS, FLAGS, KEPT, RESULT, RESULTS, bit, is_call, writes, written,
};

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    body: Body,
    entry: usize,
    /// Where it may have come from, by instruction.
    previous: Vec<Vec<usize>>,
    /// See [`Function::meets`].
    meets: OnceCell<Vec<Option<usize>>>,
    /// See [`Function::live`].
    live: OnceCell<Vec<u64>>,
    /// See [`Function::arguments`].
    arguments: OnceCell<u64>,
}

/// As long as an instruction can be.
const INSTRUCTION_BYTES_MAX: usize = 15;

impl Function {
    /// None if nothing of it could be decoded.
    pub(crate) fn new(body: Body) -> Option<Self> {
        let entry = body.entry()?;
        let mut previous = vec![Vec::new(); body.instructions().len()];
        for (at, nexts) in body.all_next().iter().enumerate() {
            for &to in nexts {
                previous[to].push(at);
            }
        }
        let (meets, live, arguments) = Default::default();
        Some(Self { body, entry, previous, meets, live, arguments })
    }

    /// All instructions, by address.
    pub(crate) fn instructions(&self) -> &[Instruction] {
        self.body.instructions()
    }

    /// Where an instruction may go on; nowhere if it leaves the function.
    pub(crate) fn next(&self, at: usize) -> &[usize] {
        self.body.next(at)
    }

    /// Where an instruction may have come from.
    pub(crate) fn previous(&self, at: usize) -> &[usize] {
        &self.previous[at]
    }

    /// The number of the instruction at an address.
    pub(crate) fn index(&self, address: u64) -> Option<usize> {
        self.body.index(address)
    }

    /// The number of the instruction that ends at an address.
    pub(crate) fn index_before(&self, address: u64) -> Option<usize> {
        let n_before = self.instructions().partition_point(|i| i.ip() < address);
        // Others may overlap with it, where the code is not known for sure.
        let near = n_before.saturating_sub(INSTRUCTION_BYTES_MAX)..n_before;
        near.rev().find(|&at| self.instructions()[at].next_ip() == address)
    }

    /// The number of the first instruction.
    pub(crate) fn entry(&self) -> usize {
        self.entry
    }

    /// Where all ways from an instruction meet again: its immediate post-dominator. None if
    /// they only meet behind the function's end.
    pub(crate) fn meets(&self, at: usize) -> Option<usize> {
        self.meets.get_or_init(|| {
            // A way that ends the program is none on which others meet.
            let leaves = |&at: &usize| {
                let flow = self.body.flow(at);
                let is_end = matches!(flow, Flow::Return | Flow::TailCall(_) | Flow::Indirect);
                is_end && self.next(at).is_empty()
            };
            let exits = (0..self.previous.len()).filter(leaves);
            dominators::immediate_post(self.body.all_next(), exits)
        })[at]
    }

    /// The instructions on the ways from a branch to where they meet.
    pub(crate) fn between(&self, branch: usize, meet: Option<usize>) -> FxHashSet<usize> {
        let mut seen = FxHashSet::default();
        let mut open = self.next(branch).to_vec();
        while let Some(at) = open.pop() {
            if Some(at) != meet && seen.insert(at) {
                open.extend(self.next(at));
            }
        }
        seen
    }

    /// The registers that may be read before they are written, as a set of [`bit`]s, right
    /// before an instruction.
    pub(crate) fn live(&self, at: usize) -> u64 {
        self.live.get_or_init(|| liveness(self, RESULTS | KEPT))[at]
    }

    /// The registers that it reads before it writes them: its arguments, as a set of [`bit`]s.
    pub(crate) fn arguments(&self) -> u64 {
        // What it does not touch is not its result.
        *self.arguments.get_or_init(|| liveness(self, KEPT)[self.entry] & ARGUMENTS)
    }

    /// Whether a way leads from an instruction to a return. `returns` tells it of an instruction
    /// that jumps to another function.
    fn can_return(&self, from: usize, returns: impl Fn(&Instruction) -> bool) -> bool {
        let mut seen = FxHashSet::default();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            let instruction = &self.instructions()[at];
            let is_end = self.next(at).is_empty()
                && match self.body.flow(at) {
                    Flow::Return | Flow::Indirect => true,
                    Flow::TailCall(_) => returns(instruction),
                    _ => false,
                };
            if is_end {
                return true;
            }
            open.extend(self.next(at));
        }
        false
    }
}
