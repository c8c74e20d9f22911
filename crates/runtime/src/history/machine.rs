//! States, and how an access moves a location from one to another.
//!
//! A state holds the last two visits of a location, its last write, and its readers since. The
//! next state depends only on the state and the access, so it is computed once and cached.
//! Earlier visits are kept with the location ([`super::cells`]): in the state they would make too
//! many states.
//!
//! - **Pairs** (LOCON): last write and read; the last read of each other thread since the last
//!   write, and write; last write and write if nobody has read in between. If more than
//!   [`READS_MAX`] threads read between two writes, the later ones are ignored.
//! - **Patterns** (Falcon): when another thread arrives and the window is full, its oldest visit
//!   is processed: with the next visit of the same thread and any visit between, if that is not
//!   serializable; only if there is none, with the next visit. Which accesses these visits
//!   contain is left to the parent.
//!
//! `raddle_analysis::localize` computes the same from records, one location at a time, with exact
//! positions and calls; a test compares the two.

use alloc::boxed::Box;
use alloc::vec;
use core::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashMap;
use raddle_trace::history::{
    Head, Pair, Pattern, READS_MAX, State, ThreadAccess, UNTOUCHED, Visit, WINDOW_MAX,
};
use raddle_trace::record::Kind;
use rustc_hash::FxBuildHasher;

use super::log::{Log, Numbered};

/// The states, and the transitions computed so far.
pub(super) struct Machine {
    pub(super) head: &'static Head,
    /// Length of windows.
    pub(super) window: usize,
    /// Whether a visit keeps its first access, last read and last write; otherwise it is one
    /// access, as in Falcon's paper.
    pub(super) precise: bool,
    /// Whether other threads may change the states of locations concurrently.
    is_free: bool,
    pub(super) accesses: Numbered<ThreadAccess>,
    pub(super) visits: Numbered<Visit>,
    pub(super) states: Numbered<State>,
    pub(super) pairs: Log<Pair>,
    pub(super) patterns: Log<Pattern>,
    known_pairs: HashMap<[u32; 2], (), FxBuildHasher>,
    known_patterns: HashMap<[u32; 3], u32, FxBuildHasher>,
    steps: Box<[Known]>,
    seen: Box<[Seen]>,
    /// Whether some memory that looks untouched was freed.
    is_full: bool,
}

/// A window that was processed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    visits: [u32; WINDOW_MAX],
    /// Whether it was drained, and not only its oldest visit processed.
    drained: bool,
}

/// A cached transition.
#[derive(Clone, Copy, Default)]
struct Known {
    state: u32,
    access: u32,
    next: Next,
}

/// The result of a transition.
#[derive(Clone, Copy, Default)]
pub(super) struct Next {
    pub(super) state: u32,
    /// If another thread has arrived: the previous visits and their number; otherwise 0.
    pub(super) visits: [u32; 2],
    pub(super) n_visits: u32,
}

const _: () = assert!(size_of::<Known>() == 24);

/// Size of the caches of transitions and of processed windows. Both are indexed by hash, and
/// entries may be overwritten.
const KNOWN: usize = 1 << 15;
const SEEN: usize = 1 << 12;

/// The lists of the file.
pub(super) struct Lists {
    pub(super) accesses: Log<ThreadAccess>,
    pub(super) visits: Log<Visit>,
    pub(super) states: Log<State>,
    pub(super) pairs: Log<Pair>,
    pub(super) patterns: Log<Pattern>,
}

impl Machine {
    pub(super) fn new(
        head: &'static Head,
        lists: Lists,
        window: usize,
        precise: bool,
        is_free: bool,
    ) -> Self {
        Self {
            head,
            window,
            precise,
            is_free,
            accesses: Numbered::new(lists.accesses),
            visits: Numbered::new(lists.visits),
            states: Numbered::new(lists.states),
            pairs: lists.pairs,
            patterns: lists.patterns,
            known_pairs: HashMap::default(),
            known_patterns: HashMap::default(),
            steps: vec![Known::default(); KNOWN].into(),
            seen: vec![Seen::default(); SEEN].into(),
            is_full: false,
        }
    }

    /// Moves a location from one state to another; false if another thread has moved it.
    #[inline]
    pub(super) fn replace(&self, cell: &AtomicU32, before: u32, next: u32) -> bool {
        if self.is_free {
            return cell
                .compare_exchange(before, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        }
        cell.store(next, Ordering::Relaxed);
        true
    }

    /// The transition from a state by an access. `addr` is for the pairs that it completes.
    #[inline]
    pub(super) fn step(&mut self, state: u32, access: u32, addr: u64) -> Next {
        let at = mix(state, access) as usize % KNOWN;
        let known = &self.steps[at];
        if known.state == state && known.access == access {
            return known.next;
        }
        let next = self.new_step(state, access, addr);
        self.steps[at] = Known { state, access, next };
        next
    }

    #[cold]
    fn new_step(&mut self, state: u32, access: u32, addr: u64) -> Next {
        let before = if state == UNTOUCHED { State::default() } else { self.states.get(state) };
        let mut after = before;
        self.depend(&before, &mut after, access, addr);
        let is_same = before.n_visits > 0 && !self.is_by_other(state, access);
        let visit = if is_same {
            self.longer(self.visits.get(before.current), access)
        } else {
            after.previous = before.current;
            after.n_visits = (before.n_visits + 1).min(self.window as u32);
            Visit { accesses: [access, 0, 0] }
        };
        let number = self.visits.number(visit).and_then(|visit| {
            after.current = visit;
            self.states.number(after)
        });
        let state = number.unwrap_or_else(|| {
            self.head.n_cut.fetch_add(1, Ordering::Relaxed);
            self.anew(access)
        });
        if is_same {
            return Next { state, ..Next::default() };
        }
        Next { state, visits: [before.current, before.previous], n_visits: before.n_visits }
    }

    /// Counts a location that became shared.
    pub(super) fn one_more_shared(&self) {
        let n = self.head.n_shared.load(Ordering::Relaxed);
        self.head.n_shared.store(n + 1, Ordering::Relaxed);
    }

    /// The state of a location after nothing but this access.
    pub(super) fn anew(&mut self, access: u32) -> u32 {
        let ThreadAccess { writes, .. } = self.accesses.get(access);
        let mut state = State { n_visits: 1, ..State::default() };
        if writes != 0 {
            state.write = access
        } else {
            state.reads[0] = access
        }
        let number = self.visits.number(Visit { accesses: [access, 0, 0] }).and_then(|visit| {
            state.current = visit;
            self.states.number(state)
        });
        number.unwrap_or(UNTOUCHED)
    }

    /// The state of memory that an access has freed.
    pub(super) fn freed(&mut self, access: u32) -> u32 {
        let state = self.anew(access);
        if state == UNTOUCHED && !self.is_full {
            self.is_full = true;
            super::unlearn();
        }
        state
    }

    /// Whether memory in this state may have been freed since its last write.
    pub(super) fn may_be_freed(&self, state: u32) -> bool {
        if state == UNTOUCHED {
            return self.is_full;
        }
        let write = self.states.get(state).write;
        write != 0 && self.accesses.get(write).kind == Kind::Free as u8
    }

    /// Reports the pairs that an access completes, and updates what later pairs need.
    fn depend(&mut self, before: &State, after: &mut State, access: u32, addr: u64) {
        let ThreadAccess { thread, writes, .. } = self.accesses.get(access);
        let n_reads = before.reads.iter().take_while(|&&read| read != 0).count();
        let is_other = |machine: &Self, old: u32| machine.accesses.get(old).thread != thread;
        let by_other = before.write != 0 && is_other(self, before.write);
        if writes == 0 {
            if by_other {
                self.pair([before.write, access], addr);
            }
            let threads =
                before.reads[..n_reads].iter().map(|&read| self.accesses.get(read).thread);
            match threads.clone().position(|other| other >= thread) {
                Some(at) if threads.clone().nth(at) == Some(thread) => after.reads[at] = access,
                None if n_reads == READS_MAX => {}
                at => {
                    let at = at.unwrap_or(n_reads);
                    after.reads.copy_within(at..READS_MAX - 1, at + 1);
                    after.reads[at] = access;
                }
            }
            return;
        }
        for &read in &before.reads[..n_reads] {
            if is_other(self, read) {
                self.pair([read, access], addr);
            }
        }
        if by_other && n_reads == 0 {
            self.pair([before.write, access], addr);
        }
        after.reads = [0; READS_MAX];
        after.write = access;
    }

    fn pair(&mut self, accesses: [u32; 2], addr: u64) {
        if self.known_pairs.insert(accesses, ()).is_none() {
            self.pairs.push(Pair { accesses, addr, step: super::n_steps() });
        }
    }

    /// A visit extended by an access.
    fn longer(&self, visit: Visit, access: u32) -> Visit {
        let [first, one, two] = visit.accesses;
        let writes = |access: u32| self.accesses.get(access).writes != 0;
        let is_like = |old: u32| writes(old) == writes(access);
        let accesses = match self.precise {
            // A read never replaces a write.
            false if writes(access) || !writes(first) => [access, 0, 0],
            false => [first, 0, 0],
            // Keep the first access, and the last one of each kind among the others, in order.
            true if one == 0 || two == 0 && is_like(one) => [first, access, 0],
            true if two != 0 && is_like(one) => [first, two, access],
            true => [first, one, access],
        };
        Visit { accesses }
    }

    /// Whether an access is by another thread than the last visit.
    pub(super) fn is_by_other(&self, state: u32, access: u32) -> bool {
        self.thread(self.states.get(state).current) != self.accesses.get(access).thread
    }

    /// The thread of a visit.
    fn thread(&self, visit: u32) -> u32 {
        self.accesses.get(self.visits.get(visit).accesses[0]).thread
    }

    fn writes(&self, visit: u32) -> bool {
        let accesses = self.visits.get(visit).accesses;
        accesses.iter().any(|&id| id != 0 && self.accesses.get(id).writes != 0)
    }

    /// Whether a window was already processed, as far as the cache knows.
    #[inline]
    fn is_seen(&mut self, window: &[u32], drained: bool) -> bool {
        let mut visits = [0; WINDOW_MAX];
        visits[..window.len()].copy_from_slice(window);
        let [a, b, c, d, e, f] = visits;
        let at = mix(a ^ e.rotate_left(11), b ^ f.rotate_left(19)) ^ mix(c ^ 1, d);
        let seen = &mut self.seen[at as usize % SEEN];
        let now = Seen { visits, drained };
        if *seen == now {
            return true;
        }
        *seen = now;
        false
    }

    /// Another thread arrives: processes the oldest visit of a window, which comes first.
    pub(super) fn slide(&mut self, window: &[u32], addr: u64) {
        if !self.is_seen(window, false) {
            self.check_oldest(window, addr);
        }
    }

    /// Processes all visits of a location that will not be accessed again.
    pub(super) fn drain(&mut self, window: &[u32], addr: u64) {
        if !self.is_seen(window, true) {
            for from in 0..window.len() {
                self.check_oldest(&window[from..], addr);
            }
        }
    }

    /// Processes the oldest visit of a window.
    #[cold]
    fn check_oldest(&mut self, window: &[u32], addr: u64) {
        let [oldest, rest @ ..] = window else { return };
        let thread = self.thread(*oldest);
        let again = rest.iter().position(|&visit| self.thread(visit) == thread);
        let mut any = false;
        if let Some(again) = again {
            let both_write = self.writes(*oldest) && self.writes(rest[again]);
            for &between in &rest[..again] {
                if both_write || self.writes(between) {
                    any = true;
                    self.found([*oldest, between, rest[again]], again + 2, addr);
                }
            }
        }
        if let Some(&next) = rest.first()
            && !any
            && (self.writes(*oldest) || self.writes(next))
        {
            self.found([*oldest, next, 0], 2, addr);
        }
    }

    fn found(&mut self, visits: [u32; 3], window: usize, addr: u64) {
        match self.known_patterns.get(&visits) {
            Some(&number) => {
                let mut known = self.patterns.get(number);
                if known.window > window as u32 {
                    known.window = window as u32;
                    self.patterns.set(number, known);
                }
            }
            None => {
                let step = super::n_steps();
                let pattern = Pattern { visits, window: window as u32, addr, step };
                if let Some(number) = self.patterns.push(pattern) {
                    self.known_patterns.insert(visits, number);
                }
            }
        }
    }
}

fn mix(one: u32, two: u32) -> u64 {
    (u64::from(one) | u64::from(two) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
