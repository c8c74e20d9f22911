//! Threads that time makes late.
//!
//! A thread that can run is *held* until it has made its share of progress since the last jump
//! ([`super::share`]). A jump beside a held thread makes it late: natively it would have had to stand
//! still for that long, and how long that may be is part of the plan ([`Expiry`]). Threads that have
//! had their share are not late, and neither are those that only spin. A thread that has yielded once
//! does not spin: locks and channels yield a few times before they block, and go on. So it takes many
//! yields without any progress of the program.
//!
//! Delays of a thread add up until it has made its share of progress for all of them, since the
//! first one. If a single step were enough, the holder of a lock could be delayed before each of its
//! steps, and a time-out of many seconds would expire beside it though no delay is that long.
//!
//! [`Expiry`]: raddle_trace::expiry::Expiry

use raddle_trace::expiry::Awaited;

use super::{Model, World};

/// If deadlines may expire early, one decision in as many lets the next one do so.
const EARLY_CHANCE: u64 = 16;

impl Model {
    /// How late a thread that can run is after a jump, if that makes it late: its share is so many
    /// steps.
    fn late_after(&self, id: u32, ns: u64, share: u64) -> Option<u64> {
        let thread = &self.threads[id as usize];
        let progress = thread.progress();
        if thread.yielded && self.only_yields() || progress >= share {
            return None;
        }
        let before = if self.is_in_time(id) { 0 } else { thread.late_ns };
        Some(before.saturating_add(ns))
    }

    /// Whether a thread was never late, or has had the share of a sleep that long since.
    fn is_in_time(&self, id: u32) -> bool {
        let thread = &self.threads[id as usize];
        let since = thread.done().saturating_sub(thread.done_at_late);
        thread.late_ns == 0 || since >= self.expiry.share(thread.late_ns, Awaited::Sleep)
    }

    /// Whether time may jump to a deadline, though that makes threads late that can run.
    pub(super) fn may_be_late(&mut self, ns: u64, awaited: Awaited, world: &impl World) -> bool {
        self.collect_runnable(world);
        self.is_tolerable(ns, self.expiry.share(ns, awaited))
    }

    /// The same for a jump that a schedule marks. In the run that the schedule was made of, threads had
    /// had at least the smallest share, or it was tolerable there.
    pub(super) fn may_be_late_again(&mut self, ns: u64, world: &impl World) -> bool {
        self.collect_runnable(world);
        self.is_tolerable(ns, self.expiry.least_share())
    }

    /// Whether the threads that were collected may be late, with a share of so many steps.
    fn is_tolerable(&self, ns: u64, share: u64) -> bool {
        let late = |id: u32| self.late_after(id, ns, share);
        let mut late = self.runnable.iter().filter_map(|candidate| late(candidate.thread));
        late.all(|late| late <= self.expiry.delay_ns_max)
    }

    /// How far time jumps ahead of threads that can run, if it is to do so now. These were
    /// collected.
    pub(super) fn expires_early(&mut self) -> Option<u64> {
        if !self.expiry.is_early() || self.runnable.is_empty() {
            return None;
        }
        let ns = self.ns_to_deadline()?;
        let (_, awaited) = self.next_awaited()?;
        let is_chosen = self.choices.below(EARLY_CHANCE) == 0;
        (is_chosen && self.is_tolerable(ns, self.expiry.share(ns, awaited))).then_some(ns)
    }

    /// Notes which threads a jump makes late.
    pub(super) fn note_late(&mut self, ns: u64, world: &impl World) {
        self.collect_runnable(world);
        let awaited = self.next_awaited().map_or(Awaited::TimeOut, |(_, awaited)| awaited);
        let share = self.expiry.share(ns, awaited);
        for at in 0..self.live.len() {
            let id = self.live[at];
            // Both lists are sorted.
            let can_run =
                self.runnable.binary_search_by_key(&id, |candidate| candidate.thread).is_ok();
            let late = self.late_after(id, ns, share).filter(|_| can_run);
            let Some(late_ns) = late else { continue };
            let begins = self.is_in_time(id);
            let thread = &mut self.threads[id as usize];
            thread.late_ns = late_ns;
            if begins {
                thread.done_at_late = thread.done();
            }
            if late_ns > self.latest.map_or(0, |(_, longest)| longest) {
                self.latest = Some((id, late_ns));
            }
        }
    }
}
