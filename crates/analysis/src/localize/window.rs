//! Falcon's windows: the last few accesses to one location.
//!
//! An entry stands for what one thread did before another thread arrived. Under the paper's
//! policy it is one access: a new access by the thread of the last entry replaces it, except that
//! a read never replaces a write. That loses the read of a write followed by a read, and with it
//! any pattern that starts with that read. The precise policy keeps the first access, the last
//! write and the last read.
//!
//! When a window is full, its oldest entry `a` is processed: with `c` the next entry of the same
//! thread and `b` any entry between, (a, b, c) is a pattern if it is not serializable. Only if no
//! such triple starts at `a` is the pair of `a` and the next entry a pattern, provided either
//! writes. When the run ends, all entries are processed in turn.

use std::collections::VecDeque;

/// An access as a window keeps it.
pub trait Entry: Copy {
    /// The thread that performed it.
    fn thread(&self) -> u32;
    /// Whether it writes.
    fn writes(&self) -> bool;
}

/// How a window keeps its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// One access, as in the paper.
    Paper,
    /// The first access, the last write and the last read.
    #[default]
    Precise,
}

/// The last entries at a location.
#[derive(Clone, Debug)]
pub struct Window<E> {
    slots: VecDeque<Slot<E>>,
}

/// What one thread did before another arrived: one to three accesses in order.
#[derive(Clone, Debug)]
struct Slot<E> {
    first: E,
    others: [Option<E>; 2],
}

impl<E: Entry> Default for Window<E> {
    fn default() -> Self {
        Self { slots: VecDeque::new() }
    }
}

impl<E: Entry> Window<E> {
    /// Adds the next access. Reports each pattern that a window of `size` entries slides past:
    /// its accesses, and how many entries it needed.
    pub fn push(&mut self, new: E, size: usize, policy: Policy, found: impl FnMut(&[&E], usize)) {
        if let Some(last) = self.slots.back_mut()
            && last.thread() == new.thread()
        {
            last.replace(new, policy);
            return;
        }
        if self.slots.len() >= size {
            self.slide(found);
        }
        self.slots.push_back(Slot { first: new, others: [None; 2] });
    }

    /// Processes the remaining entries at the end of the run.
    pub fn drain(&mut self, mut found: impl FnMut(&[&E], usize)) {
        while !self.slots.is_empty() {
            self.slide(&mut found);
        }
    }

    /// Visits every access that is kept.
    pub fn each(&mut self, mut visit: impl FnMut(&mut E)) {
        for slot in &mut self.slots {
            visit(&mut slot.first);
            slot.others.iter_mut().flatten().for_each(&mut visit);
        }
    }

    /// Processes the oldest entry and drops it.
    fn slide(&mut self, mut found: impl FnMut(&[&E], usize)) {
        let Some(oldest) = self.slots.pop_front() else { return };
        let again = self.slots.iter().position(|slot| slot.thread() == oldest.thread());
        let mut any = false;
        if let Some(again) = again {
            for slot in self.slots.iter().take(again) {
                for a in oldest.entries() {
                    for b in slot.entries() {
                        for c in self.slots[again].entries() {
                            if breaks(a, b, c) {
                                found(&[a, b, c], again + 2);
                                any = true;
                            }
                        }
                    }
                }
            }
        }
        if let Some(next) = self.slots.front()
            && !any
        {
            for a in oldest.entries() {
                for b in next.entries() {
                    if a.writes() || b.writes() {
                        found(&[a, b], 2);
                    }
                }
            }
        }
    }
}

impl<E: Entry> Slot<E> {
    fn thread(&self) -> u32 {
        self.first.thread()
    }

    fn entries(&self) -> impl Iterator<Item = &E> {
        std::iter::once(&self.first).chain(self.others.iter().flatten())
    }

    fn replace(&mut self, new: E, policy: Policy) {
        match policy {
            Policy::Paper => {
                if new.writes() || !self.first.writes() {
                    self.first = new;
                }
            }
            // Keep the first access, and the last one of each kind among the others, in order.
            Policy::Precise => {
                let same = |old: &Option<E>| old.is_some_and(|old| old.writes() == new.writes());
                self.others = match self.others {
                    [None, _] => [Some(new), None],
                    [one, None] if same(&one) => [Some(new), None],
                    [one, two] if same(&one) && two.is_some() => [two, Some(new)],
                    [one, _] => [one, Some(new)],
                };
            }
        }
    }
}

/// Whether three accesses are not serializable: R-W-R, W-W-R, W-R-W, R-W-W, W-W-W.
fn breaks<E: Entry>(a: &E, b: &E, c: &E) -> bool {
    match (a.writes(), b.writes(), c.writes()) {
        (false, false, _) | (true, false, false) => false,
        (true, false, true) | (_, true, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `R1` followed by the site: `W1a`.
    #[derive(Clone, Copy, Debug)]
    struct Letter(&'static str);

    impl Entry for Letter {
        fn thread(&self) -> u32 {
            u32::from(self.0.as_bytes()[1] - b'0')
        }
        fn writes(&self) -> bool {
            self.0.starts_with('W')
        }
    }

    fn patterns(accesses: &'static str, size: usize, policy: Policy) -> Vec<String> {
        let mut window = Window::default();
        let mut all = Vec::new();
        let mut found = |pattern: &[&Letter], n: usize| {
            let words: Vec<_> = pattern.iter().map(|letter| letter.0).collect();
            all.push(format!("{} ({n})", words.join("-")));
        };
        for access in accesses.split(' ') {
            window.push(Letter(access), size, policy, &mut found);
        }
        window.drain(&mut found);
        all
    }

    #[test]
    fn triples_come_before_pairs() {
        assert_eq!(patterns("R1 W2 R1", 5, Policy::Paper), ["R1-W2-R1 (3)", "W2-R1 (2)"]);
        assert_eq!(patterns("R1 W2", 5, Policy::Paper), ["R1-W2 (2)"]);
        assert_eq!(patterns("R1 R2 R1", 5, Policy::Paper), Vec::<String>::new());
    }

    #[test]
    fn a_window_sees_no_further_than_it_is_long() {
        assert_eq!(
            patterns("R1 R2 R3 W4 R1", 5, Policy::Paper),
            ["R1-W4-R1 (5)", "R3-W4 (2)", "W4-R1 (2)"]
        );
        assert_eq!(patterns("R1 R2 R3 W4 R1", 4, Policy::Paper), ["R3-W4 (2)", "W4-R1 (2)"]);
    }

    #[test]
    fn a_read_does_not_replace_a_write() {
        assert_eq!(patterns("W1a R1b W2 R1c", 5, Policy::Paper)[0], "W1a-W2-R1c (3)");
        assert!(!patterns("W1a R1b W2 R1c", 5, Policy::Paper).contains(&"R1b-W2-R1c (3)".into()));
    }

    #[test]
    fn the_precise_policy_keeps_the_read_behind_a_write() {
        let found = patterns("W1a R1b W2 R1c", 5, Policy::Precise);
        assert!(found.contains(&"R1b-W2-R1c (3)".into()), "{found:?}");
        assert!(found.contains(&"W1a-W2-R1c (3)".into()), "{found:?}");
    }

    #[test]
    fn the_precise_policy_keeps_the_first_access() {
        let found = patterns("R1a W2 R1b W1c W1d", 5, Policy::Precise);
        assert!(found.contains(&"R1a-W2-R1b (3)".into()), "{found:?}");
        assert!(found.contains(&"R1a-W2-W1d (3)".into()), "{found:?}");
    }
}
