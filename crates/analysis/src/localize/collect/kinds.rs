//! What is the same about many accesses, by number.

use raddle_trace::id::{Pc, ThreadId};
use rustc_hash::FxHashMap;

use super::stacks::Node;
use crate::witness::Deed;

/// Where in the program it is, and what it does.
pub(super) type Key = (Pc, Deed);

/// What is the same about many accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) thread: ThreadId,
    pub(super) pc: Pc,
    pub(super) deed: Deed,
    pub(super) stack: Node,
}

impl Kind {
    pub(super) fn key(self) -> Key {
        (self.pc, self.deed)
    }
}

/// Kinds that are found without a search.
const N_RECENT: usize = 1 << 12;

/// All kinds, by number.
pub(super) struct Kinds {
    pub(super) all: Vec<Kind>,
    numbers: FxHashMap<Kind, u32>,
    recent: Vec<u32>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: FxHashMap::default(), recent: vec![0; N_RECENT] }
    }
}

impl Kinds {
    pub(super) fn number(&mut self, kind: Kind) -> u32 {
        let mixed = (kind.pc.0 ^ u64::from(kind.stack) << 7 ^ u64::from(kind.thread.0) << 3)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let recent = &mut self.recent[(mixed >> 52) as usize % N_RECENT];
        if self.all.get(*recent as usize) == Some(&kind) {
            return *recent;
        }
        let all = &mut self.all;
        *recent = *self.numbers.entry(kind).or_insert_with(|| {
            all.push(kind);
            all.len() as u32 - 1
        });
        *recent
    }
}
