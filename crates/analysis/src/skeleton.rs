//! What of a trace a schedule has to respect: who ran when, and what each thread had to
//! wait for. Plain accesses are only counted, so that it is small where the trace is large.
//!
//! Places in a thread are counted in steps, as schedules count them: an event is *at* `n` if
//! its thread performs `n` steps before it.

use raddle_trace::id::{Addr, Pc, ThreadId};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Skeleton {
    /// By thread.
    pub lines: Vec<Line>,
    /// Who ran when, as it was seen.
    pub stretches: Vec<Stretch>,
    /// Choices other than of threads, as they were seen.
    pub choices: Vec<u32>,
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Where it synchronizes.
    /// invariant: sorted by `at`.
    pub syncs: Vec<Sync>,
    /// Steps that it performed in all.
    pub n_steps: u64,
}

/// What a thread does that depends on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Where in the thread.
    pub at: u64,
    /// What.
    pub what: What,
}

/// See [`Sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Takes a lock; waits while it is held.
    Acquire {
        /// Which.
        lock: Addr,
        /// For reading.
        shared: bool,
    },
    /// Releases it.
    Release {
        /// Which.
        lock: Addr,
        /// For reading.
        shared: bool,
    },
    /// Waits until another thread has performed so many steps.
    After {
        /// Which thread.
        thread: ThreadId,
        /// How many steps.
        steps: u64,
        /// Whether it could go on without, on another way perhaps.
        soft: bool,
    },
}

/// A thread runs for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Who.
    pub thread: ThreadId,
    /// The first step.
    pub from: u64,
    /// Behind the last step.
    pub to: u64,
    /// Where it stopped.
    pub stopped_at: Pc,
}

impl Skeleton {
    /// The thread's line, made if it is new.
    pub fn line(&mut self, thread: ThreadId) -> &mut Line {
        let index = thread.0 as usize;
        if self.lines.len() <= index {
            self.lines.resize_with(index + 1, Line::default);
        }
        &mut self.lines[index]
    }
}

impl Line {
    /// The last place at or before `at` where the thread holds no lock, by locks that count.
    #[must_use]
    pub fn lock_free_before(&self, at: u64, counts: impl Fn(Addr) -> bool) -> u64 {
        let mut depth = 0_i64;
        let mut free_since = Some(0);
        for sync in self.syncs.iter().take_while(|sync| sync.at < at) {
            match sync.what {
                What::Acquire { lock, .. } if counts(lock) => {
                    if depth == 0 {
                        free_since = Some(sync.at);
                    }
                    depth += 1;
                }
                What::Release { lock, .. } if counts(lock) => depth = (depth - 1).max(0),
                _ => {}
            }
        }
        if depth == 0 { at } else { free_since.unwrap_or(at) }
    }
}
