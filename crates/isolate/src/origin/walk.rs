//! The way back: from a place in a function to the definitions of a register.
//!
//! All ways that lead to the place are walked, each instruction once, up to the nearest
//! definition on each. At the function's entry the way goes on in the caller, at a call that
//! gives the register its value at the callee's returns. Registers that nothing on the way can
//! have changed hold what they held when the thread stopped.

use std::rc::Rc;

use iced_x86::{FlowControl, Register};
use rustc_hash::FxHashSet;

use super::operand::constant;
use super::{Budget, Context, Location, Origin, ROUNDS_MAX, StoppedThread, Walk};
use crate::calls;
use crate::code::{KEPT, RESULT, bit, is_call, written};

/// Definitions that are looked at for one register.
pub(super) const DEFINITIONS_MAX: usize = 6;
/// Values that a register may have had, by the ways that lead to it.
pub(super) const VALUES_MAX: usize = 4;

impl StoppedThread<'_> {
    /// The place one instruction earlier.
    pub(super) fn back(&self, walk: &Walk, before: usize) -> Walk {
        let changed = walk.changed | written(&walk.function.instructions()[before]);
        Walk { at: before, changed, ..walk.clone() }
    }

    /// A register's value, if nothing can have changed it since.
    pub(super) fn known(&self, walk: &Walk, register: Register) -> Option<u64> {
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
    pub(super) fn values(&self, walk: &Walk, register: Register, budget: &mut Budget) -> Vec<u64> {
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
    pub(super) fn resolve(
        &self,
        walk: &Walk,
        register: Register,
        budget: &mut Budget,
    ) -> Vec<Origin> {
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
                    if wanted & RESULT != 0 {
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
    pub(super) fn of_argument(
        &self,
        walk: &Walk,
        register: Register,
        budget: &mut Budget,
    ) -> Vec<Origin> {
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

    /// Where what decides a branch came from.
    pub(super) fn of_flags(&self, walk: &Walk, budget: &mut Budget) -> Vec<Origin> {
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
}
