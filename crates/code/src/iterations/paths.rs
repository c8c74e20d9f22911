//! How the paths from a callback `q` to the next one change loop iterations.
//!
//! A data flow problem in the part of the graph that `q` reaches without another callback: the
//! iteration at a block is *outside*, `n` *since* `q`, `n` *from the entry*, or unknown, and
//! unknown where paths meet with different values. The transfer functions are distributive, so
//! the solution covers all paths.

use rustc_hash::FxHashMap;

use super::nest::UNKNOWN;
use crate::body::Call;
use crate::cfg::BlockId;
use crate::functions::Function;
use crate::image::Callee;
use crate::loops::{LoopIndex, Loops};

/// The effect on the iterations of the loops `chain` around `to` of all paths without a callback
/// from the call of `from` (the function's start, if none) to the call of `to`. None if there is
/// no such path.
pub(super) fn effects(
    Function { cfg, loops }: &Function,
    from: Option<BlockId>,
    to: BlockId,
    chain: &[LoopIndex],
) -> Option<Vec<Effect>> {
    let mut paths = Paths { loops, chain, known: FxHashMap::default(), work: Vec::new() };
    match from {
        None => paths.take(None, cfg.entry(), &vec![Value::Outside; chain.len()]),
        Some(block) => {
            let value = |&around: &LoopIndex| match loops.contains(around, block) {
                true => Value::Since(0),
                false => Value::Outside,
            };
            let values: Vec<Value> = chain.iter().map(value).collect();
            for &next in cfg.successors(block) {
                paths.take(Some(block), next, &values);
            }
        }
    }
    while let Some(block) = paths.work.pop() {
        let is_callback = |call: Call| call.callee == Callee::Callback;
        if cfg.block(block).call.is_some_and(is_callback) {
            continue;
        }
        let values = paths.known[&block].clone();
        for &next in cfg.successors(block) {
            paths.take(Some(block), next, &values);
        }
    }
    let values = paths.known.get(&to)?;
    let effect = |value: &Value| match *value {
        Value::Since(n) => Effect::Add(n),
        Value::Entered(n) => Effect::Set(n),
        Value::Outside | Value::Unknown => Effect::Forget,
    };
    Some(values.iter().map(effect).collect())
}

/// The effect on the iteration of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Adds this many.
    Add(u32),
    /// Sets it to this many since the loop's entry.
    Set(u32),
    /// Makes it unknown.
    Forget,
}

impl Effect {
    pub(super) fn apply(self, iteration: u32) -> u32 {
        match self {
            Self::Add(0) => iteration,
            // A sum that is too large is unknown.
            Self::Add(n) => iteration.saturating_add(n),
            Self::Set(n) => n,
            Self::Forget => UNKNOWN,
        }
    }
}

/// What all paths to a block have in common, for one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// All are outside the loop.
    Outside,
    /// None has left it, and all have taken this many back edges.
    Since(u32),
    /// All have entered it, and taken this many back edges since then.
    Entered(u32),
    /// Nothing in common.
    Unknown,
}

/// Paths that are being followed.
struct Paths<'a> {
    loops: &'a Loops,
    chain: &'a [LoopIndex],
    /// At the start of each reached block, for each loop of the chain.
    known: FxHashMap<BlockId, Vec<Value>>,
    /// Blocks whose values have changed since they were last processed.
    work: Vec<BlockId>,
}

impl Paths<'_> {
    /// Follows an edge; `from` is none for the edge into the function.
    fn take(&mut self, from: Option<BlockId>, to: BlockId, values: &[Value]) {
        let along = |(&around, &value)| self.along(around, from, to, value);
        let new: Vec<Value> = self.chain.iter().zip(values).map(along).collect();
        let Some(old) = self.known.get_mut(&to) else {
            self.known.insert(to, new);
            self.work.push(to);
            return;
        };
        let mut is_changed = false;
        for (old, new) in old.iter_mut().zip(new) {
            if *old != new && *old != Value::Unknown {
                *old = Value::Unknown;
                is_changed = true;
            }
        }
        if is_changed {
            self.work.push(to);
        }
    }

    /// The value after an edge.
    fn along(&self, around: LoopIndex, from: Option<BlockId>, to: BlockId, value: Value) -> Value {
        let found = self.loops.get(around);
        if !self.loops.contains(around, to) {
            return Value::Outside;
        }
        if found.is_irreducible {
            return Value::Unknown;
        }
        if to != found.header {
            return value;
        }
        if !from.is_some_and(|from| self.loops.contains(around, from)) {
            return Value::Entered(0);
        }
        match value {
            Value::Since(n) => Value::Since(n + 1),
            Value::Entered(n) => Value::Entered(n + 1),
            Value::Outside | Value::Unknown => Value::Unknown,
        }
    }
}
