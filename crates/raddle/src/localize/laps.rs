//! Loops around accesses, told by the target's machine code.

use raddle_analysis::code::functions::{Functions, Image};
use raddle_analysis::code::iterations::Tracker;
use raddle_analysis::localize::collect::{LAPS_MAX, Laps};
use raddle_analysis::localize::facts::Lap;
use raddle_report::code::Code;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trace::run::Run;

/// See the module.
pub(crate) struct Teller {
    tracker: Tracker,
    /// By thread: the numbers of the activations that it is in, and of the next one.
    activations: Vec<(Vec<u32>, u32)>,
}

impl Teller {
    /// For a run that has just begun. Of a module that cannot be read no loops are told.
    pub(crate) fn new(run: &Run) -> Self {
        let image = |code: Code| -> Box<dyn Image + Send> { Box::new(code) };
        let images = run.modules.iter().filter_map(|module| Code::load(module).ok()).map(image);
        Self { tracker: Tracker::new(Functions::new(images.collect())), activations: Vec::new() }
    }

    fn activations(&mut self, thread: ThreadId) -> &mut (Vec<u32>, u32) {
        let index = thread.0 as usize;
        if index >= self.activations.len() {
            self.activations.resize_with(index + 1, || (Vec::new(), 1));
        }
        &mut self.activations[index]
    }
}

impl Laps for Teller {
    fn enter(&mut self, thread: ThreadId, pc: Pc) {
        self.tracker.enter(thread, pc);
        let (stack, next) = self.activations(thread);
        stack.push(*next);
        *next += 1;
    }

    fn leave(&mut self, thread: ThreadId) {
        self.tracker.leave(thread);
        self.activations(thread).0.pop();
    }

    fn forget(&mut self, thread: ThreadId) {
        self.tracker.forget(thread);
        self.activations(thread).0.clear();
    }

    fn at(&mut self, thread: ThreadId, pc: Pc, laps: &mut [Lap; LAPS_MAX]) -> usize {
        let nest = self.tracker.site(thread, pc);
        let activation = self.activations(thread).0.last().copied().unwrap_or(0);
        let mut n = 0;
        for ((number, iteration), lap) in nest.iter().zip(laps) {
            *lap = Lap { entry: self.tracker.entry(number).0, activation, iteration };
            n += 1;
        }
        n
    }
}
