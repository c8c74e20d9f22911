//! Loop nests, by number.
//!
//! Every loop iteration is another nest, so there are as many as there are accesses. Nests that
//! no kept access refers to are dropped whenever they are in the majority.

use raddle_trace::id::ThreadId;

use super::LOOPS_MAX;
use crate::localize::facts::LoopIteration;

type Nest = ([LoopIteration; LOOPS_MAX], u8);

/// Number of nests before the first cleanup.
const ROOM_LEAST: usize = 1 << 18;
/// No loops.
const NONE: Nest = ([LoopIteration { entry: 0, activation: 0, iteration: None }; LOOPS_MAX], 0);

/// The loop nests of the accesses seen so far.
pub(super) struct Nests {
    /// The first entry is for accesses outside all loops.
    all: Vec<Nest>,
    /// The nest of each thread's last access.
    last: Vec<u32>,
    room: usize,
}

impl Default for Nests {
    fn default() -> Self {
        Self { all: vec![NONE], last: Vec::new(), room: ROOM_LEAST }
    }
}

impl Nests {
    /// The number of the nest that `tell` fills in, innermost loop first.
    pub(super) fn number(
        &mut self,
        thread: ThreadId,
        tell: impl FnOnce(&mut [LoopIteration; LOOPS_MAX]) -> usize,
    ) -> u32 {
        let mut nest = NONE;
        nest.1 = tell(&mut nest.0) as u8;
        if nest.1 == 0 {
            return 0;
        }
        let thread = thread.0 as usize;
        if thread >= self.last.len() {
            self.last.resize(thread + 1, 0);
        }
        let last = &mut self.last[thread];
        if self.all[*last as usize] != nest {
            *last = self.all.len() as u32;
            self.all.push(nest);
        }
        *last
    }

    /// The loops of a nest, innermost first.
    pub(super) fn get(&self, number: u32) -> &[LoopIteration] {
        let (loops, n_loops) = &self.all[number as usize];
        &loops[..usize::from(*n_loops)]
    }

    /// Whether it is time for [`Nests::keep`].
    pub(super) fn is_full(&self) -> bool {
        self.all.len() >= self.room
    }

    /// Drops the nests that are not visited and renumbers the others.
    pub(super) fn keep(&mut self, visit_all: impl FnOnce(&mut dyn FnMut(&mut u32))) {
        let all = std::mem::replace(&mut self.all, vec![NONE]);
        let mut renumbered = vec![0; all.len()];
        visit_all(&mut |number| {
            let new = &mut renumbered[*number as usize];
            if *new == 0 && *number != 0 {
                *new = self.all.len() as u32;
                self.all.push(all[*number as usize]);
            }
            *number = *new;
        });
        self.last.clear();
        self.room = ROOM_LEAST.max(2 * self.all.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(nests: &mut Nests, thread: u32, iteration: u32) -> u32 {
        nests.number(ThreadId(thread), |loops| {
            loops[0] = LoopIteration { entry: 1, activation: 0, iteration: Some(iteration) };
            1
        })
    }

    #[test]
    fn accesses_of_one_turn_have_one_number() {
        let mut nests = Nests::default();
        let first = number(&mut nests, 0, 7);
        let other = number(&mut nests, 1, 9);
        assert_eq!(number(&mut nests, 0, 7), first);
        assert_ne!(first, other);
        assert_ne!(number(&mut nests, 0, 8), first);
        assert_eq!(nests.number(ThreadId(0), |_| 0), 0);
    }

    #[test]
    fn what_nobody_remembers_is_dropped() {
        let mut nests = Nests::default();
        let mut remembered = [0, 0, 0];
        for iteration in 0..3 * ROOM_LEAST as u32 {
            if nests.is_full() {
                nests.keep(|visit| remembered.iter_mut().for_each(visit));
            }
            let new = number(&mut nests, 0, iteration);
            match iteration {
                5 => remembered = [new, 0, new],
                600_000 => remembered[1] = new,
                _ => {}
            }
        }
        assert!(nests.all.len() <= ROOM_LEAST);
        let iterations = remembered.map(|number| nests.get(number)[0].iteration);
        assert_eq!(iterations, [Some(5), Some(600_000), Some(5)]);
    }
}
