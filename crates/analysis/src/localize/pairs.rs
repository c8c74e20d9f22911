//! LOCON's access pairs: immediate dependencies between threads at one location.
//!
//! A pair is the last write and a read; the last read of another thread since the last write, and
//! a write; or the last write and a write if nobody has read in between, not even one of the two:
//! a read already shows the dependency.

use super::window::Entry;

/// What a location remembers.
#[derive(Clone, Debug)]
pub struct LastAccesses<E> {
    write: Option<E>,
    /// The last read of each thread since the last write.
    reads: Vec<E>,
}

impl<E> Default for LastAccesses<E> {
    fn default() -> Self {
        Self { write: None, reads: Vec::new() }
    }
}

impl<E: Entry> LastAccesses<E> {
    /// Adds the next access and reports the pairs that it completes.
    pub fn push(&mut self, new: E, mut found: impl FnMut(&E, &E)) {
        let is_other = |old: &&E| old.thread() != new.thread();
        if !new.writes() {
            if let Some(write) = self.write.as_ref().filter(is_other) {
                found(write, &new);
            }
            self.reads.retain(|read| read.thread() != new.thread());
            self.reads.push(new);
            return;
        }
        for read in self.reads.iter().filter(is_other) {
            found(read, &new);
        }
        if let Some(write) = self.write.as_ref().filter(is_other)
            && self.reads.is_empty()
        {
            found(write, &new);
        }
        self.reads.clear();
        self.write = Some(new);
    }

    /// Visits every access that is kept.
    pub fn each(&mut self, visit: impl FnMut(&mut E)) {
        self.write.iter_mut().chain(&mut self.reads).for_each(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    struct Letter(&'static str);

    impl Entry for Letter {
        fn thread(&self) -> u32 {
            u32::from(self.0.as_bytes()[1])
        }
        fn writes(&self) -> bool {
            self.0.starts_with('W')
        }
    }

    fn pairs(accesses: &'static str) -> Vec<String> {
        let mut last = LastAccesses::default();
        let mut all = Vec::new();
        for access in accesses.split(' ') {
            last.push(Letter(access), |head, tail| all.push(format!("{}-{}", head.0, tail.0)));
        }
        all
    }

    #[test]
    fn a_pair_is_an_immediate_dependency() {
        assert_eq!(pairs("W1 R2 R3"), ["W1-R2", "W1-R3"]);
        assert_eq!(pairs("R1 R2 W3"), ["R1-W3", "R2-W3"]);
        assert_eq!(pairs("W1 W2"), ["W1-W2"]);
        // Another thread has read in between.
        assert_eq!(pairs("W1 R3 W2"), ["W1-R3", "R3-W2"]);
        assert_eq!(pairs("W1 R2 W2"), ["W1-R2"]);
        assert_eq!(pairs("W1 R1 W2"), ["R1-W2"]);
        // Accesses of one thread make no pair, and hide earlier ones of other threads.
        assert_eq!(pairs("W1 R1 W1"), Vec::<String>::new());
        assert_eq!(pairs("W1 W2 R2"), ["W1-W2"]);
    }
}
