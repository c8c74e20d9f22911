//! The states of locations, and the older visits of each.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

use raddle_trace::history::{
    ADDRESS_BITS, BYTES, OLDER, OLDER_BYTES, OLDER_WORDS, SPLIT, State, UNTOUCHED, WINDOW_MAX,
    WORD, WORDS,
};

use super::machine::Machine;
use crate::sys;

/// The visits of a location that are not in its state, the newest first.
type Older = [u32; OLDER];

/// The mapped file.
pub(super) struct Cells {
    // invariant: the start of a mapping of the whole file, for good.
    start: *mut u8,
}

/// From this size on, memory is cleared page by page.
const MANY: u64 = 1 << 16;
const PAGE: u64 = 4096;
/// Mappings beyond this size are passed over. They are reservations, which take long to look
/// through and share their states with other memory: see [`fold`].
const HUGE: u64 = 1 << 30;

/// Repeating an access on consecutive locations usually finds the same state each time.
#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    state: u32,
    next: u32,
}

/// The location whose history ended last: its neighbors often have the same.
#[derive(Clone, Copy, Default)]
struct Ended {
    state: u32,
    n_visits: u32,
    older: Older,
    /// Whether its last access made it shared.
    shares: bool,
}

/// The state of a location. Free threads change it without a lock as long as it stays theirs.
fn get(cell: &AtomicU32) -> u32 {
    cell.load(Ordering::Relaxed)
}

fn set(cell: &AtomicU32, state: u32) {
    cell.store(state, Ordering::Relaxed);
}

fn fold(addr: u64) -> u64 {
    addr & ((1 << ADDRESS_BITS) - 1)
}

impl Cells {
    /// # Safety
    /// `start` is a permanent mapping of the whole file.
    pub(super) unsafe fn new(start: *mut u8) -> Self {
        Self { start }
    }

    pub(super) fn start(&self) -> u64 {
        self.start as u64
    }

    fn at<T>(&self, offset: u64) -> *mut T {
        // SAFETY: the callers' offsets lie in the file.
        unsafe { self.start.add(offset as usize) }.cast()
    }

    fn word(&self, addr: u64) -> &'static AtomicU32 {
        // SAFETY: each word of memory has its number in the file.
        unsafe { &*self.at(WORDS + (fold(addr) & !(WORD - 1))) }
    }

    fn byte(&self, addr: u64) -> &'static AtomicU32 {
        // SAFETY: as for words.
        unsafe { &*self.at(BYTES + fold(addr) * 4) }
    }

    fn older_word(&self, addr: u64) -> &'static Cell<Older> {
        // SAFETY: each word of memory has its visits in the file, which one thread at a time, the
        // one that has the turn or the lock, looks at and changes.
        unsafe { &*self.at(OLDER_WORDS + (fold(addr) & !(WORD - 1)) * 4) }
    }

    fn older_byte(&self, addr: u64) -> &'static Cell<Older> {
        // SAFETY: as for the visits of words.
        unsafe { &*self.at(OLDER_BYTES + fold(addr) * 16) }
    }

    /// Applies an access to a range. Returns the state of its first location before and after, if
    /// that is a plain access that the access path can repeat without us.
    pub(super) fn touch(
        &self,
        machine: &mut Machine,
        addr: u64,
        bytes: u64,
        access: u32,
    ) -> Option<(u32, u32)> {
        let end = addr.saturating_add(bytes);
        let mut run = Run::default();
        let mut first = None;
        let mut at = addr;
        while at < end {
            let is_whole = at.is_multiple_of(WORD) && end - at >= WORD;
            let step = if is_whole {
                self.touch_word(machine, at, access, &mut run)
            } else {
                self.touch_byte(machine, at, access, &mut run)
            };
            if at == addr {
                first = step;
            }
            at += if is_whole { WORD } else { 1 };
        }
        first
    }

    fn touch_word(
        &self,
        machine: &mut Machine,
        addr: u64,
        access: u32,
        run: &mut Run,
    ) -> Option<(u32, u32)> {
        let cell = self.word(addr);
        if get(cell) == SPLIT {
            for at in addr..addr + WORD {
                self.touch_byte(machine, at, access, run);
            }
            return None;
        }
        move_on(machine, cell, || self.older_word(addr), addr, access, run)
    }

    fn touch_byte(
        &self,
        machine: &mut Machine,
        addr: u64,
        access: u32,
        run: &mut Run,
    ) -> Option<(u32, u32)> {
        if get(self.word(addr)) != SPLIT {
            self.split(machine, addr & !(WORD - 1));
        }
        move_on(machine, self.byte(addr), || self.older_byte(addr), addr, access, run)
    }

    /// From now on, the bytes of a word have states of their own.
    fn split(&self, machine: &Machine, addr: u64) {
        let word = self.word(addr);
        loop {
            let state = get(word);
            let has_older = state != UNTOUCHED && machine.states.get(state).n_visits > 2;
            for at in addr..addr + WORD {
                set(self.byte(at), state);
                if has_older {
                    self.older_byte(at).set(self.older_word(addr).get());
                }
            }
            if machine.replace(word, state, SPLIT) {
                return;
            }
        }
    }

    /// Frees a block: ends the history of its memory, except for the free itself.
    pub(super) fn free(&self, machine: &mut Machine, addr: u64, bytes: u64, access: u32) {
        let freed = machine.freed(access);
        self.end(machine, addr, bytes, Some(access), freed);
    }

    /// Allocates memory: ends the history of whatever was there.
    pub(super) fn forget(&self, machine: &mut Machine, addr: u64, bytes: u64) {
        if bytes < MANY {
            self.end(machine, addr, bytes, None, UNTOUCHED);
            return;
        }
        // Untouched memory must stay untouched; the states of a page of words are a page.
        let (low, high) = (addr.next_multiple_of(PAGE), (addr + bytes) & !(PAGE - 1));
        self.end(machine, addr, low - addr, None, UNTOUCHED);
        self.end(machine, high, addr + bytes - high, None, UNTOUCHED);
        self.each_page(low, high, true, |at| self.end(machine, at, PAGE, None, UNTOUCHED));
    }

    /// Maps memory: ends the history of whatever was there.
    pub(super) fn map(&self, machine: &mut Machine, addr: u64, bytes: u64) {
        if bytes <= HUGE {
            self.forget(machine, addr, bytes);
        }
    }

    /// Unmaps memory: ends the history of what was touched in it, except for the call itself.
    pub(super) fn unmap(&self, machine: &mut Machine, addr: u64, bytes: u64, access: u32) {
        if bytes > HUGE {
            return;
        }
        let freed = machine.freed(access);
        let (low, high) = (addr & !(PAGE - 1), addr.saturating_add(bytes).next_multiple_of(PAGE));
        self.each_page(low, high, false, |page| {
            for at in (page..page + PAGE).step_by(WORD as usize) {
                if get(self.word(at)) != UNTOUCHED {
                    self.end(machine, at, WORD, Some(access), freed);
                }
            }
        });
    }

    /// Calls with each page of memory that has states, and removes those states if asked to.
    fn each_page(&self, low: u64, high: u64, removes: bool, mut each: impl FnMut(u64)) {
        let mut at = low;
        let mut there = [0u8; 256];
        while at < high {
            let n = ((high - at) / PAGE).min(there.len() as u64);
            let cells: *mut u8 = self.at(WORDS + fold(at));
            if sys::pages_there(cells as u64, n * PAGE, &mut there) {
                (0..n).filter(|&page| there[page as usize] & 1 != 0).for_each(|page| {
                    each(at + page * PAGE);
                });
                if removes {
                    sys::remove_pages(cells as u64, n * PAGE);
                }
            }
            at += n * PAGE;
        }
    }

    /// Applies a last access, if any, reports what the windows of a range still hold, and sets a
    /// new state.
    fn end(&self, machine: &mut Machine, addr: u64, bytes: u64, access: Option<u32>, state: u32) {
        let mut ended = Ended::default();
        let end = addr.saturating_add(bytes);
        let mut at = addr;
        while at < end {
            let is_whole = at.is_multiple_of(WORD) && end - at >= WORD;
            let cell = self.word(at);
            if is_whole && get(cell) != SPLIT {
                finish(machine, cell, || self.older_word(at), at, access, &mut ended);
                set(cell, state);
                at += WORD;
                continue;
            }
            if get(cell) != SPLIT {
                self.split(machine, at & !(WORD - 1));
            }
            for byte in at..at + if is_whole { WORD } else { 1 } {
                let cell = self.byte(byte);
                finish(machine, cell, || self.older_byte(byte), byte, access, &mut ended);
                set(cell, state);
            }
            if is_whole {
                set(cell, state);
            }
            at += if is_whole { WORD } else { 1 };
        }
    }
}

/// Applies the last access to a location and reports what its window holds.
#[inline]
fn finish(
    machine: &mut Machine,
    cell: &AtomicU32,
    older: impl Fn() -> &'static Cell<Older>,
    addr: u64,
    access: Option<u32>,
    ended: &mut Ended,
) {
    let state = get(cell);
    if state == UNTOUCHED {
        return;
    }
    let is_like = |ended: &Ended| ended.n_visits <= 2 || ended.older == older().get();
    if ended.state == state && is_like(ended) {
        if ended.shares {
            machine.one_more_shared();
        }
        return;
    }
    let n_visits = machine.states.get(state).n_visits;
    *ended = Ended {
        state,
        n_visits,
        older: if n_visits > 2 { older().get() } else { [0; OLDER] },
        shares: n_visits == 1 && access.is_some_and(|access| machine.is_by_other(state, access)),
    };
    if let Some(access) = access {
        move_on(machine, cell, &older, addr, access, &mut Run::default());
    }
    let State { current, previous, n_visits, .. } = machine.states.get(get(cell));
    if n_visits >= 2 {
        let older = if n_visits > 2 { older().get() } else { [0; OLDER] };
        let (window, n) = window([current, previous], n_visits, &older);
        machine.drain(&window[..n], addr);
    }
}

/// Moves a location to its next state. Returns the transition if the access path may repeat it.
#[inline]
fn move_on(
    machine: &mut Machine,
    cell: &AtomicU32,
    older: impl FnOnce() -> &'static Cell<Older>,
    addr: u64,
    access: u32,
    run: &mut Run,
) -> Option<(u32, u32)> {
    let (before, next) = loop {
        let before = get(cell);
        if run.next != UNTOUCHED && run.state == before {
            if machine.replace(cell, before, run.next) {
                return Some((before, run.next));
            }
            continue;
        }
        let next = machine.step(before, access, addr);
        if machine.replace(cell, before, next.state) {
            break (before, next);
        }
    };
    match next.n_visits {
        0 => {
            *run = Run { state: before, next: next.state };
            return Some((before, next.state));
        }
        1 => machine.one_more_shared(),
        n_visits => {
            let older = older();
            let [one, two, three, _] = older.get();
            if n_visits as usize >= machine.window {
                let (window, n) = window(next.visits, n_visits, &older.get());
                machine.slide(&window[..n], addr);
            }
            older.set([next.visits[1], one, two, three]);
        }
    }
    None
}

/// All visits of a location, the oldest first, and their number.
#[inline]
fn window(latest: [u32; 2], n_visits: u32, older: &Older) -> ([u32; WINDOW_MAX], usize) {
    let mut window = [0; WINDOW_MAX];
    let n = (n_visits as usize).min(WINDOW_MAX);
    let all = latest.iter().chain(older);
    for (to, &visit) in window[..n].iter_mut().rev().zip(all) {
        *to = visit;
    }
    (window, n)
}
