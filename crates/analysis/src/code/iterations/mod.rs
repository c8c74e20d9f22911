//! In which iteration of which loops was an access?
//!
//! A [`Tracker`] follows each thread through its activations (calls of functions) and the
//! callbacks that it passes in each. Between the last callback `q` of an activation and the
//! next one `p` the thread took some path in the function's control flow graph that passes no
//! other callback, since that would have been seen. For each loop around `p` all those paths
//! are looked at together:
//!
//! - all stay in the loop and take `n` back edges: `n` iterations more than at `q`,
//! - all enter the loop and take `n` back edges thereafter: iteration `n`,
//! - they differ: the iteration is unknown, until the loop is entered again.
//!
//! So a loop that has a callback on every way through its body is counted exactly, and one that
//! has not is unknown as soon as it could have gone round unseen. Nothing is guessed.
//!
//! How is told by [`paths`]. It is worked out once for each pair (`q`, `p`); then a callback
//! costs one look into a hash table and one step for each loop around it.
//!
//! The beginning of an activation counts as a callback outside all loops.
//!
//! # Limits
//! - Loops are those of the machine code ([`super::loops`]). In a turned-around `while` loop
//!   the condition belongs to the iteration before.
//! - Every call of a [`Callee::Callback`] must be told. Where some are left out (repeated
//!   accesses that a recording only counts), [`Tracker::gap`] says so, and a thread that goes
//!   on as another fiber is to be forgotten ([`Tracker::forget`]).
//! - Functions that are left without a word, by `longjmp`, stay on the stack. Callbacks of
//!   other functions show that and turn the answer to unknown; if the function is recursive,
//!   nothing shows it.
//! - If a graph is incomplete, all is unknown in its function.

mod nest;
mod paths;

use raddle_trace::id::{Pc, ThreadId};
use rustc_hash::FxHashMap;

pub use nest::{LoopId, Nest, Turn};

use super::cfg::BlockId;
use super::functions::{Callee, FunctionId, Functions};
use super::loops::LoopIndex;
use nest::UNKNOWN;
use paths::{Effect, effects};

/// Follows threads through their functions' loops.
pub struct Tracker {
    functions: Functions,
    threads: Vec<Stack>,
    places: Vec<Place>,
    place_ids: FxHashMap<Place, PlaceId>,
    // From the callback that a function is entered with to where its activation then begins.
    starts: FxHashMap<Pc, PlaceId>,
    steps: FxHashMap<(PlaceId, Pc), Step>,
    effects: Vec<Effect>,
    // The loops around places, outermost first.
    chains: Vec<LoopId>,
    loop_ids: FxHashMap<(FunctionId, LoopIndex), LoopId>,
    entries: Vec<Pc>,
}

/// The activations of a thread.
#[derive(Default)]
struct Stack {
    activations: Vec<Activation>,
    // The iterations of all activations, one after the other, each outermost first.
    iterations: Vec<u32>,
}

/// A call of a function that has not returned.
struct Activation {
    at: PlaceId,
    // Where its iterations begin.
    base: usize,
}

/// Where an activation can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PlaceId(u32);

/// Of this activation nothing is known any more.
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
    /// Some may not have been seen.
    Gap,
    /// The call that ends this block.
    Call(BlockId),
}

/// What a callback does to an activation.
#[derive(Clone, Copy)]
struct Step {
    /// Where it is then.
    to: PlaceId,
    /// How many loops there are around the callback.
    depth: u32,
    /// Where they begin in `chains`, and what happens to them in `effects`.
    chain: u32,
    effects: u32,
    kind: StepKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepKind {
    /// The activation goes on to there.
    Moves,
    /// A call that is not seen each time: it is told where it is, but not gone on to.
    Looks,
    /// Not of this function.
    Foreign,
}

impl Tracker {
    /// Nobody has entered anything.
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

    /// A thread enters a function; `pc` is the site of the callback that says so.
    pub fn enter(&mut self, thread: ThreadId, pc: Pc) {
        let at = self.start(pc);
        let stack = self.stack(thread);
        let base = stack.iterations.len();
        stack.activations.push(Activation { at, base });
        self.site(thread, pc);
    }

    /// A thread leaves the function that it is in.
    pub fn leave(&mut self, thread: ThreadId) {
        let stack = self.stack(thread);
        if let Some(activation) = stack.activations.pop() {
            stack.iterations.truncate(activation.base);
        }
    }

    /// A thread passes a callback at `pc`, or another call that returns to there. Tells the
    /// loops that it is in.
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

    /// A thread may have passed callbacks, of the function that it is in, that were not seen.
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

    /// Nothing is known any more of the functions that a thread is in: it begins, or goes on
    /// as another fiber.
    pub fn forget(&mut self, thread: ThreadId) {
        *self.stack(thread) = Stack::default();
    }

    /// Where a loop is entered: the first instruction of its header.
    #[must_use]
    pub fn entry(&self, of: LoopId) -> Pc {
        self.entries[of.0 as usize]
    }

    /// The loops of a nest, innermost first; none if they are not known.
    #[must_use]
    pub fn turns(&self, nest: Nest) -> Option<Vec<Turn>> {
        nest.depth()?;
        let turn = |(id, iteration)| Turn { entry: self.entry(id), iteration };
        Some(nest.iter().map(turn).collect())
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

    /// Works out what it means that an activation, last seen at `from`, is now at `pc`.
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
            // Another function is on top that did not say so; so the stack is not to be trusted.
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
            // Nobody gets there from where this activation was.
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
