//! Accesses to memory and to synchronization objects.

use raddle_trace::event::{Access, Atomic, AtomicAction};
use raddle_trace::id::{Addr, ThreadId};

use super::queue::Granule;
use super::{Position, Scan};
use crate::classes::{AccessClass, Occurrence};
use crate::lock_words::Meaning;
use crate::locks::Held;
use crate::recent::{Mark, Recent};
use crate::sharing::GRANULE_BITS;
use crate::witness::AccessKind;

impl Scan<'_> {
    #[inline]
    pub(super) fn access(
        &mut self,
        here: Position,
        kind: AccessKind,
        access: &Access,
        granule: Granule,
    ) {
        let Access { addr, bytes, range, repeats, .. } = *access;
        let thread = &mut self.threads[here.thread.0 as usize];
        thread.steps += u64::from(repeats) + u64::from(!range);
        self.model.n_events += u64::from(repeats);
        match granule {
            Granule::Own => {}
            Granule::Shared(number) => {
                let new = self.recent(here, kind, addr, bytes);
                let thread = &self.threads[here.thread.0 as usize];
                self.accesses.push((addr.0 >> GRANULE_BITS, number), &new, thread);
                self.nearby.push(&new, thread);
            }
            Granule::Several => self.record(here, kind, addr, bytes, true),
        }
    }

    /// The thread repeated earlier accesses, which adds nothing but steps.
    pub(super) fn repeats(&mut self, thread: ThreadId, n: u64) {
        self.threads[thread.0 as usize].steps += n;
        self.model.n_events += n;
    }

    pub(super) fn free(&mut self, here: Position, block: Addr, bytes: u64) {
        self.record(here, AccessKind::Free, block, bytes, false);
        let numbers = self.sharing.numbers(block, bytes).map(|(_, number)| number);
        self.accesses.freed(numbers, &self.model.classes, here.seq);
    }

    /// A synchronization object is used, initialized or destroyed: an access to it.
    pub(super) fn used(&mut self, here: Position, kind: AccessKind, object: Addr) {
        self.record(here, kind, object, 1, false);
    }

    pub(super) fn atomic(&mut self, here: Position, atomic: &Atomic) {
        let (thread, addr) = (here.thread, atomic.addr);
        let reads = atomic.action != AtomicAction::Store;
        let writes = !matches!(atomic.action, AtomicAction::Load | AtomicAction::Miss);
        let state = &mut self.threads[thread.0 as usize];
        let before = state.load.replace((here.pc, addr, atomic.before));
        if reads {
            // A thread that loads the same location until the value changes is waiting for it.
            let spun = before.is_some_and(|(at, of, value)| {
                (at, of) == (here.pc, addr) && value != atomic.before
            });
            self.load(thread, atomic, spun);
        }
        let lock = Held { lock: addr, shared: false };
        match self.model.words.push(thread, atomic) {
            Meaning::Acquire => self.acquire(here, lock),
            Meaning::Release => self.release(thread, lock),
            Meaning::Nothing => {}
        }
        if self.sharing.number(addr.0 >> GRANULE_BITS).is_some() {
            let kind = if writes { AccessKind::AtomicWrite } else { AccessKind::AtomicRead };
            self.record(here, kind, addr, u64::from(atomic.bytes), true);
        }
        if writes && !self.model.words.looks_like_lock(addr) {
            self.store(thread, atomic);
        }
    }

    /// Adds an access to each of its granules that is shared, and, if `near`, pairs it with
    /// earlier accesses.
    fn record(&mut self, here: Position, kind: AccessKind, addr: Addr, bytes: u64, near: bool) {
        let bytes = bytes.clamp(1, u64::from(u32::MAX));
        let mut new = None;
        let sharing = self.sharing;
        for granule in sharing.numbers(addr, bytes) {
            let new = *new.get_or_insert_with(|| self.recent(here, kind, addr, bytes));
            self.accesses.push(granule, &new, &self.threads[here.thread.0 as usize]);
        }
        if let Some(new) = new.filter(|_| near) {
            self.nearby.push(&new, &self.threads[here.thread.0 as usize]);
        }
    }

    #[inline]
    fn recent(&mut self, here: Position, kind: AccessKind, addr: Addr, bytes: u64) -> Recent {
        let Position { thread, pc, seq } = here;
        let bytes = bytes.clamp(1, u64::from(u32::MAX)) as u32;
        let (moment, weak) = (self.model.order.now(thread), self.model.weak.now(thread));
        let state = &self.threads[thread.0 as usize];
        let (at, locks) = (state.at(), state.locks());
        let (class, site) =
            self.model.classes.number(&AccessClass { pc, thread, locks, bytes, kind });
        let mark = Mark {
            occurrence: Occurrence { at, seq, moment, weak, class },
            section: state.section(),
            activations: state.activations(),
        };
        Recent { mark, thread, site, addr, bytes, writes: kind.writes() }
    }
}
