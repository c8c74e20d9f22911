//! What a schedule has to respect: which thread ran when, and what each had to wait for. Plain
//! accesses are only counted, so the skeleton stays small for a large trace.
//!
//! Positions in a thread are counted in steps, as in schedules: an event is *at* `n` if its
//! thread performs `n` steps before it.

use raddle_trace::id::{Addr, Pc, ThreadId};

/// The synchronization of a run.
#[derive(Clone, Debug, Default)]
pub struct Skeleton {
    /// Synchronization by thread.
    pub lines: Vec<Line>,
    /// Which thread ran when.
    pub stretches: Vec<Stretch>,
    /// Recorded choices other than those of threads.
    pub choices: Vec<u32>,
    /// Where a thread ended the process; none if it ended in another way.
    pub exit: Option<Exit>,
}

/// The end of the process, by a return from `main` or a call of `exit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The thread that ended it.
    pub thread: ThreadId,
    /// Position in that thread.
    pub at: u64,
    /// Code address of the call; 0 for a return from `main`.
    pub pc: Pc,
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its synchronization operations. invariant: sorted by `at`.
    pub syncs: Vec<Sync>,
    /// Total number of steps.
    pub n_steps: u64,
}

/// An operation that depends on other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Position in its thread.
    pub at: u64,
    /// What it does.
    pub kind: SyncKind,
}

/// What a synchronization operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// Acquires a lock; waits while another thread holds it.
    Acquire {
        /// Address of the lock.
        lock: Addr,
        /// Whether for reading.
        shared: bool,
    },
    /// Releases a lock.
    Release {
        /// Address of the lock.
        lock: Addr,
        /// Whether it was held for reading.
        shared: bool,
    },
    /// Waits until another thread has performed a number of steps.
    After {
        /// The thread that it waits for.
        thread: ThreadId,
        /// Number of steps.
        steps: u64,
        /// Whether it can continue without waiting, possibly on another path.
        soft: bool,
    },
}

/// A run of consecutive steps by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The thread.
    pub thread: ThreadId,
    /// The first step.
    pub from: u64,
    /// One past the last step.
    pub to: u64,
    /// Code address at which it stopped.
    pub stopped_at: Pc,
}

impl Skeleton {
    /// The thread's line, which is added if it is new.
    pub fn line(&mut self, thread: ThreadId) -> &mut Line {
        let index = thread.0 as usize;
        if self.lines.len() <= index {
            self.lines.resize_with(index + 1, Line::default);
        }
        &mut self.lines[index]
    }

    /// The stretches up to the exit, which is about to come; none if there was none.
    #[must_use]
    pub fn stretches_before_exit(&self) -> Option<Vec<Stretch>> {
        let exit = self.exit?;
        let is_last = |stretch: &Stretch| stretch.thread == exit.thread && exit.at < stretch.to;
        let last = self.stretches.iter().position(is_last)?;
        let mut stretches = self.stretches[..last].to_vec();
        let from = self.stretches[last].from;
        // A stretch of no steps would mark that time jumped.
        if from < exit.at {
            let (thread, to, stopped_at) = (exit.thread, exit.at, exit.pc);
            stretches.push(Stretch { thread, from, to, stopped_at });
        }
        Some(stretches)
    }
}

impl Line {
    /// The last position at or before `at` where the thread holds no lock for which `counts`
    /// holds.
    #[must_use]
    pub fn lock_free_before(&self, at: u64, counts: impl Fn(Addr) -> bool) -> u64 {
        let mut depth = 0_i64;
        let mut free_since = Some(0);
        for sync in self.syncs.iter().take_while(|sync| sync.at < at) {
            match sync.kind {
                SyncKind::Acquire { lock, .. } if counts(lock) => {
                    if depth == 0 {
                        free_since = Some(sync.at);
                    }
                    depth += 1;
                }
                SyncKind::Release { lock, .. } if counts(lock) => depth = (depth - 1).max(0),
                _ => {}
            }
        }
        if depth == 0 { at } else { free_since.unwrap_or(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(thread: u32, from: u64, to: u64) -> Stretch {
        Stretch { thread: ThreadId(thread), from, to, stopped_at: Pc(0) }
    }

    fn before_exit(at: u64) -> Option<Vec<Stretch>> {
        let stretches = vec![stretch(0, 0, 5), stretch(1, 0, 3), stretch(0, 5, 9)];
        let exit = Some(Exit { thread: ThreadId(0), at, pc: Pc(0) });
        Skeleton { stretches, exit, ..Skeleton::default() }.stretches_before_exit()
    }

    #[test]
    fn what_comes_after_the_exit_is_cut_off() {
        let all = [stretch(0, 0, 5), stretch(1, 0, 3), stretch(0, 5, 7)];
        assert_eq!(before_exit(7).as_deref(), Some(&all[..]));
        assert_eq!(before_exit(5).as_deref(), Some(&all[..2]));
        assert_eq!(before_exit(4).as_deref(), Some(&[stretch(0, 0, 4)][..]));
    }

    #[test]
    fn without_an_exit_there_is_nothing_before_it() {
        assert_eq!(Skeleton::default().stretches_before_exit(), None);
    }
}
