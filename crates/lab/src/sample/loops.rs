//! Loops around accesses, found in the target's machine code.

use raddle_analysis::localize::collect::{EnclosingLoops, LOOPS_MAX};
use raddle_analysis::localize::facts::LoopIteration;
use raddle_code::elf::Files;
use raddle_code::functions::Functions;
use raddle_code::image::Image;
use raddle_code::iterations::Tracker;
use raddle_code::module::Code;
use raddle_trace::id::{Pc, ThreadId};
use raddle_trace::run::Run;

/// Follows threads through the loops of the target's functions.
pub(super) struct LoopTracker {
    tracker: Tracker,
    /// By thread: the numbers of the activations that it is in, and of the next one.
    activations: Vec<(Vec<u32>, u32)>,
}

impl LoopTracker {
    /// For a run that has just begun. A module that cannot be read has no loops.
    pub(super) fn new(run: &Run, files: &Files) -> Self {
        let image = |code: Code| -> Box<dyn Image + Send> { Box::new(code) };
        let images =
            run.modules.iter().filter_map(|module| Code::load(module, files).ok()).map(image);
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

impl EnclosingLoops for LoopTracker {
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

    fn loops_at(
        &mut self,
        thread: ThreadId,
        pc: Pc,
        loops: &mut [LoopIteration; LOOPS_MAX],
    ) -> usize {
        let nest = self.tracker.site(thread, pc);
        let activation = self.activations(thread).0.last().copied().unwrap_or(0);
        let mut n = 0;
        for ((number, iteration), slot) in nest.iter().zip(loops) {
            *slot = LoopIteration { entry: self.tracker.entry(number).0, activation, iteration };
            n += 1;
        }
        n
    }
}
