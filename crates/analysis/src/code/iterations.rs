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
//! It is a problem of data flow in the part of the graph that `q` reaches without passing a
//! callback: what is known of an iteration at a block is *outside*, `n` *since* `q`, `n` *from
//! the entry*, or unknown, and where paths meet with different values it is unknown. The
//! functions along edges distribute over that, so the solution is that of all paths. It is
//! worked out once for each pair (`q`, `p`); then a callback costs one look into a hash table
//! and one step for each loop around it.
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

use raddle_trace::id::{Pc, ThreadId};
use rustc_hash::FxHashMap;

use super::body::Call;
use super::cfg::BlockId;
use super::functions::{Callee, Function, FunctionId, Functions};
use super::loops::{LoopIndex, Loops};

/// A loop of the target, numbered as a [`Tracker`] meets them; [`Tracker::entry`] has a name
/// for it that other trackers understand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

/// Where in its loops an access was. Small, and without a pointer, so that it can be kept with
/// each access.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nest {
    // Innermost first. What lies behind `depth` is zero, so that equal nests compare equal.
    loops: [LoopId; Self::KEPT],
    iterations: [u32; Self::KEPT],
    depth: u8,
}

const _: () = assert!(size_of::<Nest>() == 36);

/// An iteration that is not known.
const UNKNOWN: u32 = u32::MAX;

/// A nest of which not even the loops are known.
const DEPTH_UNKNOWN: u8 = u8::MAX;

impl Nest {
    /// How many loops are kept; of more, the innermost.
    pub const KEPT: usize = 4;

    /// Nothing is known.
    pub const UNKNOWN: Self =
        Self { loops: [LoopId(0); Self::KEPT], iterations: [0; Self::KEPT], depth: DEPTH_UNKNOWN };

    /// How many loops are around the access, kept or not, up to 254; none if that is not known.
    #[must_use]
    pub fn depth(&self) -> Option<usize> {
        (self.depth != DEPTH_UNKNOWN).then_some(self.depth.into())
    }

    /// The loops that are kept, innermost first, and the iteration in each, from 0; none if
    /// it is not known.
    pub fn iter(&self) -> impl Iterator<Item = (LoopId, Option<u32>)> + use<> {
        let n_kept = self.depth().unwrap_or(0).min(Self::KEPT);
        let iteration = |n: u32| (n != UNKNOWN).then_some(n);
        self.loops.into_iter().zip(self.iterations.map(iteration)).take(n_kept)
    }
}

impl std::fmt::Debug for Nest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.depth() {
            Some(_) => f.debug_list().entries(self.iter()).finish(),
            None => f.write_str("unknown"),
        }
    }
}

/// A loop that an access was in, and in which iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Turn {
    /// The first instruction of the loop's header.
    pub entry: Pc,
    /// From 0; none if it is not known.
    pub iteration: Option<u32>,
}

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

/// What happens to the iteration of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// So many more.
    Add(u32),
    /// So many from the loop's entry.
    Set(u32),
    /// It is no longer known.
    Forget,
}

impl Effect {
    fn apply(self, iteration: u32) -> u32 {
        match self {
            Self::Add(0) => iteration,
            // A sum that is too large is unknown.
            Self::Add(n) => iteration.saturating_add(n),
            Self::Set(n) => n,
            Self::Forget => UNKNOWN,
        }
    }
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

/// What the paths from behind the call of `from` (the function's beginning, if none) to the
/// call of `to` that pass no callback do to the iterations of the loops `chain` around `to`.
/// None if there is no such path.
fn effects(
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

/// What all paths to a block have in common, for one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// They are outside of it.
    Outside,
    /// They have not left it, and taken so many back edges.
    Since(u32),
    /// They have entered it last, and taken so many back edges since then.
    Entered(u32),
    /// Nothing.
    Unknown,
}

/// Paths that are being followed.
struct Paths<'a> {
    loops: &'a Loops,
    chain: &'a [LoopIndex],
    /// At the beginning of each block that was reached, for each loop of the chain.
    known: FxHashMap<BlockId, Vec<Value>>,
    /// Blocks of which more or less is known than when they were last left.
    work: Vec<BlockId>,
}

impl Paths<'_> {
    /// Follows an edge; `from` is none for the one that leads into the function.
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

    /// What an edge makes of a value.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::sketch::Code;
    use super::*;

    const THREAD: ThreadId = ThreadId(0);

    /// Walks through a sketch, by the labels of the blocks, and tells each call with its loops,
    /// innermost first, and their iterations.
    fn check(sketch: &str, walk: &str, expect: &str) {
        let code = Code::sketch(sketch);
        let (labels, sites) = (code.labels.clone(), code.sites.clone());
        let name = |entry: Pc| {
            labels
                .iter()
                .find(|(_, at)| *at == entry.0)
                .expect("a loop's entry is a block")
                .0
                .clone()
        };
        let first = labels[0].0.clone();
        let mut tracker = Tracker::new(Functions::new(vec![Box::new(code)]));
        let mut told = Vec::new();
        for label in walk.split_whitespace() {
            match (label, sites.get(label)) {
                ("gap", _) => tracker.gap(THREAD),
                ("leave", _) => tracker.leave(THREAD),
                (_, None) => {}
                (_, Some(&site)) if label == first => tracker.enter(THREAD, Pc(site)),
                (_, Some(&site)) => {
                    let nest = tracker.site(THREAD, Pc(site));
                    let turn = |turn: Turn| {
                        let n = turn.iteration.map_or("?".to_owned(), |n| n.to_string());
                        format!("{}{n}", name(turn.entry))
                    };
                    let turns = tracker.turns(nest).map_or("unknown".to_owned(), |turns| {
                        turns.into_iter().map(turn).collect::<Vec<_>>().join(",")
                    });
                    told.push(format!("{label}:{turns}"));
                }
            }
        }
        assert_eq!(told.join(" "), expect);
    }

    #[test]
    fn a_loop_counts() {
        check(
            "
            a* -> h
            h* -> h e
            e* ->",
            "a h h h e",
            "h:h0 h:h1 h:h2 e:",
        );
    }

    #[test]
    fn a_loop_that_is_entered_again_counts_from_the_start() {
        check(
            "
            a* -> o
            o* -> i
            i* -> i p
            p -> o e
            e ->",
            "a o i i i p o i i p e",
            "o:o0 i:i0,o0 i:i1,o0 i:i2,o0 o:o1 i:i0,o1 i:i1,o1",
        );
    }

    #[test]
    fn an_inner_loop_alone_tells_the_outer_one_if_it_must() {
        // From i to i: once more round the inner loop, or out, round the outer one, and in again.
        check(
            "
            a* -> o
            o -> i
            i* -> i p
            p -> o e
            e ->",
            "a o i i",
            "i:i0,o0 i:i?,o?",
        );
    }

    #[test]
    fn both_sides_of_an_if_count() {
        check(
            "
            a* -> h
            h -> t f
            t* -> p
            f* -> p
            p -> h e
            e ->",
            "a h t p h f p h f",
            "t:h0 f:h1 f:h2",
        );
    }

    #[test]
    fn an_access_on_one_side_of_an_if_loses_count() {
        check(
            "
            a* -> h
            h -> t p
            t* -> p
            p -> h e
            e ->",
            "a h t p h p h t",
            "t:h? t:h?",
        );
    }

    #[test]
    fn continue_counts() {
        check(
            "
            a* -> h
            h* -> h b
            b* -> h e
            e ->",
            "a h h b h b e",
            "h:h0 h:h1 b:h1 h:h2 b:h2",
        );
    }

    #[test]
    fn while_with_the_access_in_its_condition() {
        check(
            "
            a* -> h
            h* -> b e
            b -> h
            e* ->",
            "a h b h b h e",
            "h:h0 h:h1 h:h2 e:",
        );
    }

    #[test]
    fn what_was_unknown_is_known_when_the_loop_is_entered_again() {
        check(
            "
            a* -> o
            o* -> i
            i -> t p
            t* -> p
            p -> i q
            q* -> o e
            e ->",
            "a o i t p i p q o i t p q",
            "o:o0 t:i?,o0 q:o0 o:o1 t:i?,o1 q:o1",
        );
    }

    #[test]
    fn the_first_iteration_is_known_if_nothing_can_go_round_before() {
        check(
            "
            a* -> h
            h* -> t p
            t* -> p
            p -> h e
            e ->",
            "a h p h t p h",
            "h:h0 h:h1 t:h1 h:h2",
        );
    }

    #[test]
    fn a_gap_is_unknown_until_the_loop_is_entered_again() {
        check(
            "
            a* -> o
            o* -> i
            i* -> i p
            p -> o e
            e ->",
            "a o i gap i i p o i",
            "o:o0 i:i0,o0 i:i?,o? i:i?,o? o:o? i:i0,o?",
        );
    }

    #[test]
    fn each_activation_counts_for_itself() {
        check(
            "
            a* -> h
            h* -> h e
            e ->",
            "a h h a h h h leave h",
            "h:h0 h:h1 h:h0 h:h1 h:h2 h:h2",
        );
    }

    #[test]
    fn a_call_that_is_no_callback_is_told_but_not_believed() {
        check(
            "
            a* -> h
            h* -> l p
            l~ -> p
            p -> h e
            e ->",
            "a h l p h p h l",
            "h:h0 l:h0 h:h1 h:h2 l:h2",
        );
    }

    #[test]
    fn an_impossible_step_ends_all_knowledge_of_the_activation() {
        check(
            "
            a* -> h
            h* -> h e
            e* ->",
            "a e h h leave a h",
            "e:unknown h:unknown h:unknown h:h0",
        );
    }

    #[test]
    fn an_irreducible_loop_is_unknown() {
        check(
            "
            a* -> b c
            b* -> c e
            c* -> b
            e ->",
            "a b c b",
            "b:b? c:b? b:b?",
        );
    }

    #[test]
    fn nothing_is_known_outside_of_all_functions() {
        let mut tracker = Tracker::new(Functions::default());
        assert_eq!(tracker.site(THREAD, Pc(1)), Nest::UNKNOWN);
        tracker.enter(THREAD, Pc(0));
        assert_eq!(tracker.site(THREAD, Pc(0)), Nest::UNKNOWN);
        tracker.leave(THREAD);
        tracker.leave(THREAD);
    }

    /// A graph to walk through: of each block whether it calls a callback, and its successors.
    #[derive(Clone, Debug)]
    struct Graph(Vec<(bool, Vec<usize>)>);

    impl Graph {
        fn sketch(&self) -> String {
            let line = |(n, (has_call, to)): (usize, &(bool, Vec<usize>))| {
                let to: Vec<String> = to.iter().map(|to| format!("b{to}")).collect();
                let call = if *has_call { "*" } else { "" };
                format!("b{n}{call} -> {}\n", to.join(" "))
            };
            self.0.iter().enumerate().map(line).collect()
        }

        fn reached(&self, from: usize, without: Option<usize>) -> BTreeSet<usize> {
            let mut seen = BTreeSet::new();
            let mut work = vec![from];
            while let Some(block) = work.pop() {
                if Some(block) != without && seen.insert(block) {
                    work.extend(&self.0[block].1);
                }
            }
            seen
        }

        /// By the textbook: from each header its natural loop, of all its back edges.
        fn natural_loops(&self) -> Vec<(usize, BTreeSet<usize>)> {
            let reached = self.reached(0, None);
            let dominates = |header: usize, block: usize| {
                header == block || !self.reached(0, Some(header)).contains(&block)
            };
            let body = |header: usize| {
                let mut body = BTreeSet::from([header]);
                let latches = reached
                    .iter()
                    .copied()
                    .filter(|&b| self.0[b].1.contains(&header) && dominates(header, b));
                let mut work: Vec<usize> = latches.collect();
                if work.is_empty() {
                    return None;
                }
                while let Some(block) = work.pop() {
                    if body.insert(block) {
                        work.extend(reached.iter().filter(|b| self.0[**b].1.contains(&block)));
                    }
                }
                Some((header, body))
            };
            reached.iter().copied().filter_map(body).collect()
        }

        /// Walks as `choices` say, and compares the tracker's answers with the truth. With
        /// `is_reducible` the loops themselves must all be told. How many iterations were known,
        /// and of how many.
        fn check(&self, choices: &[usize], is_reducible: bool) -> (usize, usize) {
            let code = Code::sketch(&self.sketch());
            let sites = code.sites.clone();
            let labels: Vec<u64> = code.labels.iter().map(|(_, address)| *address).collect();
            let mut tracker = Tracker::new(Functions::new(vec![Box::new(code)]));
            let loops = self.natural_loops();
            let mut truth: Vec<u32> = vec![0; loops.len()];
            let (mut n_known, mut n_all) = (0, 0);

            tracker.enter(THREAD, Pc(sites["b0"]));
            let mut at = 0;
            for choice in choices {
                let to = &self.0[at].1;
                if to.is_empty() {
                    break;
                }
                let next = to[choice % to.len()];
                for ((header, body), iteration) in loops.iter().zip(&mut truth) {
                    if next == *header {
                        *iteration = if body.contains(&at) { *iteration + 1 } else { 0 };
                    }
                }
                at = next;
                if !self.0[at].0 {
                    continue;
                }
                let nest = tracker.site(THREAD, Pc(sites[&format!("b{at}")]));
                let told = tracker.turns(nest).expect("the graph is complete");
                for turn in &told {
                    n_all += 1;
                    let Some(iteration) = turn.iteration else { continue };
                    n_known += 1;
                    let header = labels.iter().position(|&l| l == turn.entry.0).expect("a block");
                    let place = loops.iter().position(|(h, _)| *h == header).expect("a loop");
                    assert!(loops[place].1.contains(&at));
                    assert_eq!(iteration, truth[place]);
                }
                if is_reducible {
                    let n_around = loops.iter().filter(|(_, body)| body.contains(&at)).count();
                    assert_eq!(nest.depth(), Some(n_around));
                }
            }
            (n_known, n_all)
        }
    }

    /// Any graph. Nothing leads back to the entry, as to no instrumented function's.
    fn graphs() -> impl Strategy<Value = Graph> {
        (3..12_usize).prop_flat_map(|n| {
            let block = (prop::bool::weighted(0.6), prop::collection::vec(1..n, 0..=2));
            prop::collection::vec(block, n).prop_map(|mut blocks| {
                blocks[0].0 = true;
                Graph(blocks)
            })
        })
    }

    /// Statements, of which reducible graphs are made.
    #[derive(Clone, Debug)]
    enum Statement {
        Access,
        If(Vec<Statement>, Vec<Statement>),
        DoWhile(Vec<Statement>),
        While(bool, Vec<Statement>),
        Continue,
        Break,
    }

    fn statements() -> impl Strategy<Value = Vec<Statement>> {
        let leaf = prop_oneof![6 => Just(Statement::Access), 1 => Just(Statement::Continue), 1 => Just(Statement::Break)];
        let statement = leaf.prop_recursive(5, 24, 4, |inner| {
            let some = prop::collection::vec(inner, 0..4);
            prop_oneof![
                (some.clone(), some.clone()).prop_map(|(a, b)| Statement::If(a, b)),
                some.clone().prop_map(Statement::DoWhile),
                (any::<bool>(), some).prop_map(|(access, body)| Statement::While(access, body)),
            ]
        });
        prop::collection::vec(statement, 1..5)
    }

    /// Appends blocks for `code` behind block `at`; the block behind it, none if none is.
    fn build(
        blocks: &mut Vec<(bool, Vec<usize>)>,
        at: usize,
        code: &[Statement],
        around: Option<(usize, usize)>,
    ) -> Option<usize> {
        fn new(blocks: &mut Vec<(bool, Vec<usize>)>, before: usize, has_call: bool) -> usize {
            blocks.push((has_call, vec![]));
            let block = blocks.len() - 1;
            blocks[before].1.push(block);
            block
        }
        let mut at = at;
        for statement in code {
            at = match statement {
                Statement::Access => new(blocks, at, true),
                Statement::If(yes, no) => {
                    let fork = new(blocks, at, false);
                    let ends: Vec<usize> = [yes, no]
                        .into_iter()
                        .filter_map(|branch| {
                            let start = new(blocks, fork, false);
                            build(blocks, start, branch, around)
                        })
                        .collect();
                    let (&first, others) = ends.split_first()?;
                    let join = new(blocks, first, false);
                    for &other in others {
                        blocks[other].1.push(join);
                    }
                    join
                }
                Statement::DoWhile(body) => {
                    let header = new(blocks, at, false);
                    blocks.push((false, vec![]));
                    let test = blocks.len() - 1;
                    let exit = new(blocks, test, false);
                    let end = build(blocks, header, body, Some((test, exit)));
                    if let Some(end) = end {
                        blocks[end].1.push(test);
                    }
                    blocks[test].1.push(header);
                    exit
                }
                Statement::While(access, body) => {
                    let header = new(blocks, at, *access);
                    let exit = new(blocks, header, false);
                    let start = new(blocks, header, false);
                    if let Some(end) = build(blocks, start, body, Some((header, exit))) {
                        blocks[end].1.push(header);
                    }
                    exit
                }
                Statement::Continue | Statement::Break => {
                    let Some((next, exit)) = around else { continue };
                    let to = if matches!(statement, Statement::Continue) { next } else { exit };
                    blocks[at].1.push(to);
                    return None;
                }
            };
        }
        Some(at)
    }

    proptest! {
        #[test]
        fn what_is_told_is_true(
            graph in graphs(),
            choices in prop::collection::vec(0..60_usize, 200),
        ) {
            graph.check(&choices, false);
        }

        #[test]
        fn loops_of_structured_code_are_told(
            code in statements(),
            choices in prop::collection::vec(0..60_usize, 200),
        ) {
            let mut blocks = vec![(true, vec![])];
            build(&mut blocks, 0, &code, None);
            Graph(blocks).check(&choices, true);
        }
    }
}
