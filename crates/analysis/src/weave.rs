//! Schedules that make events happen in a wanted order.
//!
//! After PENELOPE's three regions and PECAN's moving of outermost locks, in one form: threads
//! run as they were seen to, except those that must not get ahead, until the first event of
//! the order has happened; then each further event is *pulled*: its thread runs up to it,
//! and whatever it must wait for on the way (a lock's release, a wake-up, a thread's end) is
//! pulled first. Whoever would have to pass its own event of the order to make that
//! possible makes the attempt fail, and another [`Hold`] is tried.
//!
//! Where a thread waits for its event decides which lock regions can change places: at its
//! last place without a lock, so that others can use those locks meanwhile (the lock moves
//! with the event that it protects); or right before the event.
//!
//! Values are not considered: a thread may take another way under a new order. The run
//! that follows the schedule notices.

use raddle_trace::id::{Addr, Pc, ThreadId};
use rustc_hash::FxHashMap;

use crate::scan::Model;
use crate::skeleton::{Stretch, What};
use crate::witness::Witness;

/// Where threads wait for their event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// At the last place without a lock.
    LockFree,
    /// Right before the event.
    Event,
    /// The first event's thread too stops at its last place without a lock, until the
    /// others have come to theirs.
    AllLockFree,
    /// The same, until the second event's thread is right before its event.
    SecondFirst,
}

impl Hold {
    /// In the order in which they are tried.
    pub const ALL: [Self; 4] = [Self::LockFree, Self::AllLockFree, Self::Event, Self::SecondFirst];
}

/// Why there is no such schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Who could not go on.
    pub thread: ThreadId,
    /// Where.
    pub at: u64,
}

/// The stretches that make these events happen in this order, up to and with the last one.
pub fn weave(model: &Model, order: &[Witness], hold: Hold) -> Result<Vec<Stretch>, Stuck> {
    let mut loom = Loom::new(model);
    let Some((first, rest)) = order.split_first() else { return Ok(Vec::new()) };
    let lock_free = |event: &Witness| {
        model.skeleton.lines[event.thread.0 as usize]
            .lock_free_before(event.at, |lock| !model.words.is_other(lock))
    };
    // Nobody gets ahead of its next event.
    for event in rest.iter().rev() {
        loom.caps[event.thread.0 as usize] = match hold {
            Hold::LockFree | Hold::AllLockFree => lock_free(event),
            Hold::Event | Hold::SecondFirst => event.at,
        };
    }
    match hold {
        Hold::LockFree | Hold::Event => {
            loom.caps[first.thread.0 as usize] = first.at;
            loom.walk(first.thread, first.at);
        }
        Hold::AllLockFree | Hold::SecondFirst => {
            let at = lock_free(first);
            loom.caps[first.thread.0 as usize] = at;
            loom.walk(first.thread, at);
            if let Some(second) = rest.iter().find(|event| event.thread != first.thread) {
                loom.pull(second.thread, loom.caps[second.thread.0 as usize])?;
            }
        }
    }
    for (at, event) in order.iter().enumerate() {
        for thread in 0..loom.caps.len() {
            let next = order[at..].iter().find(|next| next.thread.0 as usize == thread);
            loom.caps[thread] = next.map_or(u64::MAX, |next| next.at);
        }
        loom.caps[event.thread.0 as usize] = event.at + 1;
        loom.pull(event.thread, event.at)?;
        loom.mark(event);
        loom.pull(event.thread, event.at + 1)?;
    }
    Ok(loom.stretches)
}

/// Threads, while they are woven.
struct Loom<'a> {
    model: &'a Model,
    /// Steps performed, by thread.
    done: Vec<u64>,
    /// Synchronization performed, by thread.
    n_syncs: Vec<usize>,
    /// Nobody performs more steps than this, by thread.
    caps: Vec<u64>,
    /// Who is being pulled, by thread.
    pulled: Vec<bool>,
    owners: FxHashMap<Addr, Vec<(ThreadId, bool)>>,
    stretches: Vec<Stretch>,
}

/// Why a thread cannot go on.
enum Obstacle {
    Lock { lock: Addr, holder: ThreadId },
    Behind { thread: ThreadId, steps: u64, soft: bool },
}

impl<'a> Loom<'a> {
    fn new(model: &'a Model) -> Self {
        let n = model.skeleton.lines.len();
        Self {
            model,
            done: vec![0; n],
            n_syncs: vec![0; n],
            caps: vec![u64::MAX; n],
            pulled: vec![false; n],
            owners: FxHashMap::default(),
            stretches: Vec::new(),
        }
    }

    /// Runs threads as they were seen to, without those that cannot, until `thread` has
    /// performed so many steps or all is over.
    fn walk(&mut self, thread: ThreadId, steps: u64) {
        let model = self.model;
        for stretch in &model.skeleton.stretches {
            if self.done[thread.0 as usize] >= steps {
                return;
            }
            if self.done[stretch.thread.0 as usize] != stretch.from {
                continue;
            }
            let to = stretch.to.min(self.caps[stretch.thread.0 as usize]);
            let to = if stretch.thread == thread { to.min(steps) } else { to };
            // Whoever cannot go on stays behind.
            let _ = self.run(stretch.thread, to);
            if self.done[stretch.thread.0 as usize] == stretch.to
                && let Some(last) = self.stretches.last_mut()
                && last.thread == stretch.thread
            {
                last.stopped_at = stretch.stopped_at;
            }
        }
    }

    /// Runs a thread until it has performed so many steps, and whoever it has to wait for.
    fn pull(&mut self, thread: ThreadId, steps: u64) -> Result<(), Stuck> {
        let index = thread.0 as usize;
        let stuck = |at: u64| Stuck { thread, at };
        if self.pulled[index] {
            return Err(stuck(self.done[index]));
        }
        self.pulled[index] = true;
        let result = self.pull_on(thread, steps);
        self.pulled[index] = false;
        result
    }

    fn pull_on(&mut self, thread: ThreadId, steps: u64) -> Result<(), Stuck> {
        let index = thread.0 as usize;
        loop {
            let at = self.done[index];
            let stuck = Stuck { thread, at };
            let Err(obstacle) = self.run(thread, steps) else { return Ok(()) };
            match obstacle {
                Obstacle::Lock { lock, holder } => {
                    let line = &self.model.skeleton.lines[holder.0 as usize];
                    let release = line.syncs[self.n_syncs[holder.0 as usize]..].iter().find(
                        |sync| matches!(sync.what, What::Release { lock: other, .. } if other == lock),
                    );
                    let release = release.ok_or(stuck)?;
                    self.pull_within(holder, release.at + 1)?;
                }
                Obstacle::Behind { thread: other, steps, soft } => {
                    let pulled = self.pull_within(other, steps);
                    if soft {
                        // It goes on without, and perhaps on another way.
                        self.n_syncs[index] += 1;
                    } else {
                        pulled?;
                    }
                }
            }
        }
    }

    fn pull_within(&mut self, thread: ThreadId, steps: u64) -> Result<(), Stuck> {
        if steps > self.caps[thread.0 as usize] {
            return Err(Stuck { thread, at: self.done[thread.0 as usize] });
        }
        self.pull(thread, steps)
    }

    /// Runs a thread until it has performed so many steps, or as far as it can.
    fn run(&mut self, thread: ThreadId, steps: u64) -> Result<(), Obstacle> {
        let index = thread.0 as usize;
        let model = self.model;
        let line = &model.skeleton.lines[index];
        let steps = steps.min(line.n_steps.max(self.done[index]));
        while let Some(sync) = line.syncs.get(self.n_syncs[index]) {
            if sync.at >= steps {
                break;
            }
            self.advance(thread, sync.at);
            if let Some(obstacle) = self.obstacle(thread, sync.what) {
                return Err(obstacle);
            }
            self.perform(thread, sync.what);
            self.n_syncs[index] += 1;
        }
        self.advance(thread, steps);
        Ok(())
    }

    fn obstacle(&self, thread: ThreadId, what: What) -> Option<Obstacle> {
        match what {
            What::Acquire { lock, shared } if !self.model.words.is_other(lock) => {
                let holders = self.owners.get(&lock)?;
                let holder = holders
                    .iter()
                    .find(|(holder, other)| *holder != thread && !(shared && *other))?;
                Some(Obstacle::Lock { lock, holder: holder.0 })
            }
            What::After { thread: other, steps, soft } => (self.done[other.0 as usize] < steps)
                .then_some(Obstacle::Behind { thread: other, steps, soft }),
            What::Acquire { .. } | What::Release { .. } => None,
        }
    }

    fn perform(&mut self, thread: ThreadId, what: What) {
        match what {
            What::Acquire { lock, shared } => {
                self.owners.entry(lock).or_default().push((thread, shared));
            }
            What::Release { lock, .. } => {
                let holders = self.owners.entry(lock).or_default();
                if let Some(at) = holders.iter().position(|(holder, _)| *holder == thread) {
                    holders.remove(at);
                }
            }
            What::After { .. } => {}
        }
    }

    /// The thread is right before this event: the schedule says so, so that whoever follows
    /// it can see whether it is.
    fn mark(&mut self, event: &Witness) {
        if self.done[event.thread.0 as usize] == event.at
            && let Some(last) = self.stretches.last_mut()
            && last.thread == event.thread
        {
            last.stopped_at = event.pc;
        }
    }

    fn advance(&mut self, thread: ThreadId, to: u64) {
        let from = self.done[thread.0 as usize];
        if to <= from {
            return;
        }
        self.done[thread.0 as usize] = to;
        match self.stretches.last_mut() {
            Some(last) if last.thread == thread && last.stopped_at == Pc(0) => last.to = to,
            _ => self.stretches.push(Stretch { thread, from, to, stopped_at: Pc(0) }),
        }
    }
}
