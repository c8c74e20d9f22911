//! States, and how an access moves a place from one to another.
//!
//! A state tells the last two stints of a place, its last write, and who has read since. Where
//! an access leads depends on the state alone, so it is found out once and remembered. The
//! stints before the last two are kept by the place itself ([`super::cells`]): all that may come
//! before would make too many states.
//!
//! - **Pairs** (LOCON): last write to read; each other thread's last read since the last write
//!   to write; last write to write if nobody has read in between. Of more than [`READS_MAX`]
//!   threads that read between two writes, the later ones are passed over.
//! - **Patterns** (Falcon): when another thread comes and the window is full, its oldest stint
//!   is looked at: with the next stint of the same thread and any stint between, if no serial
//!   order has the same result; only if there is none, with the next stint. What the accesses
//!   of such stints are is left to the parent.
//!
//! `raddle_analysis::localize` does the same from records, one place at a time, with the exact
//! moments and calls; a test compares them.

use alloc::boxed::Box;
use alloc::vec;
use core::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashMap;
use raddle_trace::history::{
    Act, Head, Pair, Pattern, READS_MAX, State, Stint, UNTOUCHED, WINDOW_MAX,
};
use raddle_trace::record::Kind;
use rustc_hash::FxBuildHasher;

use super::log::{Log, Numbered};

/// See the module.
pub(super) struct Machine {
    pub(super) head: &'static Head,
    /// The length of windows.
    pub(super) window: usize,
    /// Whether a stint keeps its first access, its last read and its last write; otherwise it
    /// is one access, as in Falcon's paper.
    pub(super) precise: bool,
    /// Whether other threads may change the states of places meanwhile.
    is_free: bool,
    pub(super) acts: Numbered<Act>,
    pub(super) stints: Numbered<Stint>,
    pub(super) states: Numbered<State>,
    pub(super) pairs: Log<Pair>,
    pub(super) patterns: Log<Pattern>,
    known_pairs: HashMap<[u32; 2], (), FxBuildHasher>,
    known_patterns: HashMap<[u32; 3], u32, FxBuildHasher>,
    steps: Box<[Known]>,
    seen: Box<[Seen]>,
    /// Whether some of the memory that seems untouched is freed.
    is_full: bool,
}

/// A window that was looked at.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    stints: [u32; WINDOW_MAX],
    /// To its end, and not only at its oldest stint.
    drained: bool,
}

/// A step from a state that is known already.
#[derive(Clone, Copy, Default)]
struct Known {
    state: u32,
    act: u32,
    next: Next,
}

/// Where an access leads.
#[derive(Clone, Copy, Default)]
pub(super) struct Next {
    pub(super) state: u32,
    /// If another thread has come: the stints before, and how many they were; otherwise 0.
    pub(super) stints: [u32; 2],
    pub(super) n_stints: u32,
}

const _: () = assert!(size_of::<Known>() == 24);

/// Known steps, and windows that were looked at. Both are found by hash, and may be forgotten.
const KNOWN: usize = 1 << 15;
const SEEN: usize = 1 << 12;

/// The lists of the file.
pub(super) struct Lists {
    pub(super) acts: Log<Act>,
    pub(super) stints: Log<Stint>,
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
            acts: Numbered::new(lists.acts),
            stints: Numbered::new(lists.stints),
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

    /// Moves a place from one state to another; false if somebody else has moved it.
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

    /// Where an act leads from a state. The place is for the pairs that it completes.
    #[inline]
    pub(super) fn step(&mut self, state: u32, act: u32, addr: u64) -> Next {
        let at = mix(state, act) as usize % KNOWN;
        let known = &self.steps[at];
        if known.state == state && known.act == act {
            return known.next;
        }
        let next = self.new_step(state, act, addr);
        self.steps[at] = Known { state, act, next };
        next
    }

    #[cold]
    fn new_step(&mut self, state: u32, act: u32, addr: u64) -> Next {
        let before = if state == UNTOUCHED { State::default() } else { self.states.get(state) };
        let mut after = before;
        self.depend(&before, &mut after, act, addr);
        let is_same = before.n_stints > 0 && !self.is_by_other(state, act);
        let stint = if is_same {
            self.longer(self.stints.get(before.current), act)
        } else {
            after.previous = before.current;
            after.n_stints = (before.n_stints + 1).min(self.window as u32);
            Stint { acts: [act, 0, 0] }
        };
        let number = self.stints.number(stint).and_then(|stint| {
            after.current = stint;
            self.states.number(after)
        });
        let state = number.unwrap_or_else(|| {
            self.head.n_cut.fetch_add(1, Ordering::Relaxed);
            self.anew(act)
        });
        if is_same {
            return Next { state, ..Next::default() };
        }
        Next { state, stints: [before.current, before.previous], n_stints: before.n_stints }
    }

    /// A second thread has come to a place.
    pub(super) fn one_more_shared(&self) {
        let n = self.head.n_shared.load(Ordering::Relaxed);
        self.head.n_shared.store(n + 1, Ordering::Relaxed);
    }

    /// The state of a place at which nothing but this has happened.
    pub(super) fn anew(&mut self, act: u32) -> u32 {
        let Act { writes, .. } = self.acts.get(act);
        let mut state = State { n_stints: 1, ..State::default() };
        if writes != 0 {
            state.write = act
        } else {
            state.reads[0] = act
        }
        let number = self.stints.number(Stint { acts: [act, 0, 0] }).and_then(|stint| {
            state.current = stint;
            self.states.number(state)
        });
        number.unwrap_or(UNTOUCHED)
    }

    /// The state of memory that an act has freed.
    pub(super) fn freed(&mut self, act: u32) -> u32 {
        let state = self.anew(act);
        if state == UNTOUCHED && !self.is_full {
            self.is_full = true;
            super::unlearn();
        }
        state
    }

    /// Whether memory in a state may have been freed since it was last written.
    pub(super) fn may_be_freed(&self, state: u32) -> bool {
        if state == UNTOUCHED {
            return self.is_full;
        }
        let write = self.states.get(state).write;
        write != 0 && self.acts.get(write).kind == Kind::Free as u8
    }

    /// The pairs that an act completes, and what is left of it for those to come.
    fn depend(&mut self, before: &State, after: &mut State, act: u32, addr: u64) {
        let Act { thread, writes, .. } = self.acts.get(act);
        let n_reads = before.reads.iter().take_while(|&&read| read != 0).count();
        let is_other = |machine: &Self, old: u32| machine.acts.get(old).thread != thread;
        let by_other = before.write != 0 && is_other(self, before.write);
        if writes == 0 {
            if by_other {
                self.pair([before.write, act], addr);
            }
            let threads = before.reads[..n_reads].iter().map(|&read| self.acts.get(read).thread);
            match threads.clone().position(|other| other >= thread) {
                Some(at) if threads.clone().nth(at) == Some(thread) => after.reads[at] = act,
                None if n_reads == READS_MAX => {}
                at => {
                    let at = at.unwrap_or(n_reads);
                    after.reads.copy_within(at..READS_MAX - 1, at + 1);
                    after.reads[at] = act;
                }
            }
            return;
        }
        for &read in &before.reads[..n_reads] {
            if is_other(self, read) {
                self.pair([read, act], addr);
            }
        }
        if by_other && n_reads == 0 {
            self.pair([before.write, act], addr);
        }
        after.reads = [0; READS_MAX];
        after.write = act;
    }

    fn pair(&mut self, acts: [u32; 2], addr: u64) {
        if self.known_pairs.insert(acts, ()).is_none() {
            self.pairs.push(Pair { acts, addr, step: super::n_steps() });
        }
    }

    /// A stint goes on.
    fn longer(&self, stint: Stint, act: u32) -> Stint {
        let [first, one, two] = stint.acts;
        let writes = |act: u32| self.acts.get(act).writes != 0;
        let is_like = |old: u32| writes(old) == writes(act);
        let acts = match self.precise {
            // A read never replaces a write.
            false if writes(act) || !writes(first) => [act, 0, 0],
            false => [first, 0, 0],
            // The first stays; of the others, one of each kind, the last one behind.
            true if one == 0 || two == 0 && is_like(one) => [first, act, 0],
            true if two != 0 && is_like(one) => [first, two, act],
            true => [first, one, act],
        };
        Stint { acts }
    }

    /// Whether an act is by another thread than the last one at a place.
    pub(super) fn is_by_other(&self, state: u32, act: u32) -> bool {
        self.thread(self.states.get(state).current) != self.acts.get(act).thread
    }

    /// Who a stint is by.
    fn thread(&self, stint: u32) -> u32 {
        self.acts.get(self.stints.get(stint).acts[0]).thread
    }

    fn writes(&self, stint: u32) -> bool {
        let acts = self.stints.get(stint).acts;
        acts.iter().any(|&act| act != 0 && self.acts.get(act).writes != 0)
    }

    /// Whether a window was looked at already, as far as that is remembered.
    #[inline]
    fn is_seen(&mut self, window: &[u32], drained: bool) -> bool {
        let mut stints = [0; WINDOW_MAX];
        stints[..window.len()].copy_from_slice(window);
        let [a, b, c, d, e, f] = stints;
        let at = mix(a ^ e.rotate_left(11), b ^ f.rotate_left(19)) ^ mix(c ^ 1, d);
        let seen = &mut self.seen[at as usize % SEEN];
        let now = Seen { stints, drained };
        if *seen == now {
            return true;
        }
        *seen = now;
        false
    }

    /// Another thread comes: the oldest stint of a window, which comes first, is over.
    pub(super) fn slide(&mut self, window: &[u32], addr: u64) {
        if !self.is_seen(window, false) {
            self.look(window, addr);
        }
    }

    /// Nothing will happen at a place any more.
    pub(super) fn drain(&mut self, window: &[u32], addr: u64) {
        if !self.is_seen(window, true) {
            for from in 0..window.len() {
                self.look(&window[from..], addr);
            }
        }
    }

    /// Looks at the oldest stint of a window.
    #[cold]
    fn look(&mut self, window: &[u32], addr: u64) {
        let [oldest, rest @ ..] = window else { return };
        let thread = self.thread(*oldest);
        let again = rest.iter().position(|&stint| self.thread(stint) == thread);
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

    fn found(&mut self, stints: [u32; 3], window: usize, addr: u64) {
        match self.known_patterns.get(&stints) {
            Some(&number) => {
                let mut known = self.patterns.get(number);
                if known.window > window as u32 {
                    known.window = window as u32;
                    self.patterns.set(number, known);
                }
            }
            None => {
                let step = super::n_steps();
                let pattern = Pattern { stints, window: window as u32, addr, step };
                if let Some(number) = self.patterns.push(pattern) {
                    self.known_patterns.insert(stints, number);
                }
            }
        }
    }
}

fn mix(one: u32, two: u32) -> u64 {
    (u64::from(one) | u64::from(two) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
