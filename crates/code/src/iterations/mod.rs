//! The loop iterations of each access.
//!
//! A [`Tracker`] follows each thread through its activations (calls of functions) and the
//! callbacks in each. Between the last callback `q` of an activation and the next one `p`, the
//! thread took some path in the function's control flow graph without another callback, since
//! that would have been recorded. For each loop around `p`, all those paths are considered
//! together:
//!
//! - all stay in the loop and take `n` back edges: `n` iterations more than at `q`,
//! - all enter the loop and then take `n` back edges: iteration `n`,
//! - they differ: the iteration is unknown until the loop is entered again.
//!
//! So a loop with a callback on every path through its body is counted exactly; any other becomes
//! unknown as soon as it could have iterated unseen. Nothing is guessed.
//!
//! See [`paths`] for the computation. It is done once for each pair (`q`, `p`); after that a
//! callback costs one hash lookup and one step for each loop around it.
//!
//! The start of an activation counts as a callback outside all loops.
//!
//! # Limits
//! - Loops are those of the machine code ([`super::loops`]). In a rotated `while` loop the
//!   condition belongs to the previous iteration.
//! - Every call of a [`Callee::Callback`] must be reported. Where some are omitted (repeated
//!   accesses that a recording only counts), call [`Tracker::gap`]; when a thread continues as
//!   another fiber, call [`Tracker::forget`].
//! - Functions left by `longjmp` stay on the stack. Callbacks of other functions reveal that and
//!   make the result unknown; if the function is recursive, nothing reveals it.
//! - If a graph is incomplete, everything in its function is unknown.

mod nest;
mod paths;

use raddle_trace::id::{Pc, ThreadId};
use rustc_hash::FxHashMap;

pub use nest::{LoopId, LoopIteration, Nest};

use super::cfg::BlockId;
use super::functions::{FunctionId, Functions};
use super::image::Callee;
use super::loops::LoopIndex;
use nest::UNKNOWN;
use paths::{Effect, effects};

/// Tracks threads through the loops of their functions.
pub struct Tracker {
    functions: Functions,
    threads: Vec<Stack>,
    places: Vec<Place>,
    place_ids: FxHashMap<Place, PlaceId>,
    // From the callback at a function's entry to the start of its activation.
    starts: FxHashMap<Pc, PlaceId>,
    steps: FxHashMap<(PlaceId, Pc), Step>,
    effects: Vec<Effect>,
    // The loops around each place, outermost first.
    chains: Vec<LoopId>,
    loop_ids: FxHashMap<(FunctionId, LoopIndex), LoopId>,
    entries: Vec<Pc>,
}

/// The activations of a thread.
#[derive(Default)]
struct Stack {
    activations: Vec<Activation>,
    // The iterations of all activations, concatenated, each outermost first.
    iterations: Vec<u32>,
}

/// A call of a function that has not returned.
struct Activation {
    at: PlaceId,
    // Where its iterations start.
    base: usize,
}

/// A position of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PlaceId(u32);

/// Nothing is known of this activation anymore.
const ASTRAY: PlaceId = PlaceId(u32::MAX);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    function: FunctionId,
    last: Last,
}

/// The last callback of an activation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Last {
    /// None yet.
    Start,
    /// Some callbacks may be missing.
    Gap,
    /// The call that ends this block.
    Call(BlockId),
}

/// What a callback does to an activation.
#[derive(Clone, Copy)]
struct Step {
    /// The new position.
    to: PlaceId,
    /// Number of loops around the callback.
    depth: u32,
    /// Index of these loops in `chains`, and of their effects in `effects`.
    chain: u32,
    effects: u32,
    kind: StepKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepKind {
    /// The activation moves there.
    Moves,
    /// A call that is not always recorded: its position is reported, but the activation does not
    /// move.
    Looks,
    /// A callback of another function.
    Foreign,
}

impl Tracker {
    /// A tracker whose threads have not entered any function.
    #[must_use]
    pub fn new(functions: Functions) -> Self {
        Self {
            functions,
            threads: Vec::new(),
            places: Vec::new(),
            place_ids: FxHashMap::default(),
            starts: FxHashMap::default(),
            steps: FxHashMap::default(),
            effects: Vec::new(),
            chains: Vec::new(),
            loop_ids: FxHashMap::default(),
            entries: Vec::new(),
        }
    }

    /// A thread enters a function; `pc` is the site of the entry callback.
    pub fn enter(&mut self, thread: ThreadId, pc: Pc) {
        let at = self.start(pc);
        let stack = self.stack(thread);
        let base = stack.iterations.len();
        stack.activations.push(Activation { at, base });
        self.site(thread, pc);
    }

    /// A thread leaves its current function.
    pub fn leave(&mut self, thread: ThreadId) {
        let stack = self.stack(thread);
        if let Some(activation) = stack.activations.pop() {
            stack.iterations.truncate(activation.base);
        }
    }

    /// A thread reaches a callback at `pc`, or another call that returns there. Returns the loops
    /// around it.
    pub fn site(&mut self, thread: ThreadId, pc: Pc) -> Nest {
        let Some(&Activation { at, base }) = self.stack(thread).activations.last() else {
            return Nest::UNKNOWN;
        };
        if at == ASTRAY {
            return Nest::UNKNOWN;
        }
        let step = match self.steps.get(&(at, pc)) {
            Some(&step) => step,
            None => self.learn(at, pc),
        };
        let stack = &mut self.threads[thread.0 as usize];
        if step.kind == StepKind::Foreign || step.to == ASTRAY {
            if let Some(activation) = stack.activations.last_mut() {
                activation.at = step.to;
            }
            return Nest::UNKNOWN;
        }

        let depth = step.depth as usize;
        let effects = &self.effects[step.effects as usize..][..depth];
        let chain = &self.chains[step.chain as usize..][..depth];
        let old = &stack.iterations[base..];
        let now = |level: usize| effects[level].apply(old.get(level).copied().unwrap_or(UNKNOWN));
        let mut nest = Nest { depth: depth.min(254) as u8, ..Nest::UNKNOWN };
        for (place, level) in (0..depth).rev().take(Nest::KEPT).enumerate() {
            nest.loops[place] = chain[level];
            nest.iterations[place] = now(level);
        }
        if step.kind == StepKind::Moves {
            stack.iterations.resize(base + depth, UNKNOWN);
            for (iteration, effect) in stack.iterations[base..].iter_mut().zip(effects) {
                *iteration = effect.apply(*iteration);
            }
            if let Some(activation) = stack.activations.last_mut() {
                activation.at = step.to;
            }
        }
        nest
    }

    /// A thread may have reached callbacks in its current function that were not reported.
    pub fn gap(&mut self, thread: ThreadId) {
        let Some(&Activation { at, .. }) = self.stack(thread).activations.last() else { return };
        if at != ASTRAY {
            let function = self.places[at.0 as usize].function;
            let gap = self.place(function, Last::Gap);
            if let Some(activation) = self.stack(thread).activations.last_mut() {
                activation.at = gap;
            }
        }
    }

    /// Forgets the functions that a thread is in: it starts, or continues as another fiber.
    pub fn forget(&mut self, thread: ThreadId) {
        *self.stack(thread) = Stack::default();
    }

    /// The entry of a loop: the first instruction of its header.
    #[must_use]
    pub fn entry(&self, of: LoopId) -> Pc {
        self.entries[of.0 as usize]
    }

    /// The loops of a nest, innermost first; none if unknown.
    #[must_use]
    pub fn loop_iterations(&self, nest: Nest) -> Option<Vec<LoopIteration>> {
        nest.depth()?;
        let one = |(id, iteration)| LoopIteration { entry: self.entry(id), iteration };
        Some(nest.iter().map(one).collect())
    }

    fn stack(&mut self, thread: ThreadId) -> &mut Stack {
        let place = thread.0 as usize;
        if place >= self.threads.len() {
            self.threads.resize_with(place + 1, Stack::default);
        }
        &mut self.threads[place]
    }

    fn start(&mut self, pc: Pc) -> PlaceId {
        if let Some(&start) = self.starts.get(&pc) {
            return start;
        }
        let function = self.functions.at(pc.0.wrapping_sub(1));
        let start = match function.filter(|&f| self.functions.get(f).cfg.is_complete()) {
            Some(function) => self.place(function, Last::Start),
            None => ASTRAY,
        };
        self.starts.insert(pc, start);
        start
    }

    fn place(&mut self, function: FunctionId, last: Last) -> PlaceId {
        let place = Place { function, last };
        *self.place_ids.entry(place).or_insert_with(|| {
            self.places.push(place);
            PlaceId(u32::try_from(self.places.len() - 1).expect("less than 2^32 sites"))
        })
    }

    /// Determines what it means that an activation, last seen at `from`, is now at `pc`.
    #[cold]
    fn learn(&mut self, from: PlaceId, pc: Pc) -> Step {
        let step = self.step(from, pc);
        self.steps.insert((from, pc), step);
        step
    }

    fn step(&mut self, from: PlaceId, pc: Pc) -> Step {
        let foreign = |to| Step { to, depth: 0, chain: 0, effects: 0, kind: StepKind::Foreign };
        let Place { function, last } = self.places[from.0 as usize];
        let there = self.functions.at(pc.0.wrapping_sub(1));
        let call = there.and_then(|there| {
            let cfg = &self.functions.get(there).cfg;
            let block = cfg.block_calling(pc.0)?;
            Some((block, cfg.block(block).call?.callee))
        });
        let Some((block, callee)) = call else {
            return foreign(from);
        };
        let is_seen = callee == Callee::Callback;
        if there != Some(function) {
            // Another function is on top without having been entered, so the stack cannot be
            // trusted.
            return foreign(if is_seen { ASTRAY } else { from });
        }

        let known = self.functions.get(function);
        let mut chain: Vec<LoopIndex> = known.loops.around(block).collect();
        chain.reverse();
        let effects = match last {
            Last::Start => effects(known, None, block, &chain),
            Last::Gap => Some(vec![Effect::Forget; chain.len()]),
            Last::Call(before) => effects(known, Some(before), block, &chain),
        };
        let Some(effects) = effects else {
            // There is no path from the activation's last position.
            return foreign(if is_seen { ASTRAY } else { from });
        };
        let number = |n: usize| u32::try_from(n).expect("less than 2^32 loops around sites");
        let entries: Vec<Pc> = chain.iter().map(|&l| Pc(known.loops.get(l).entry)).collect();
        let step = Step {
            to: if is_seen { self.place(function, Last::Call(block)) } else { from },
            depth: number(chain.len()),
            chain: number(self.chains.len()),
            effects: number(self.effects.len()),
            kind: if is_seen { StepKind::Moves } else { StepKind::Looks },
        };
        for (&index, entry) in chain.iter().zip(entries) {
            let next = LoopId(number(self.entries.len()));
            let id = *self.loop_ids.entry((function, index)).or_insert(next);
            if id == next {
                self.entries.push(entry);
            }
            self.chains.push(id);
        }
        self.effects.extend(effects);
        step
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod truth;
