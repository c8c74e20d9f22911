//! Access classes: what many accesses have in common, by number.

use raddle_trace::id::{Pc, ThreadId};
use rustc_hash::FxHashMap;

use super::stacks::Node;
use crate::witness::AccessKind;

/// Code address and kind of an access.
pub(super) type Key = (Pc, AccessKind);

/// What many accesses have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessClass {
    pub(super) thread: ThreadId,
    pub(super) pc: Pc,
    pub(super) kind: AccessKind,
    pub(super) stack: Node,
}

impl AccessClass {
    pub(super) fn key(self) -> Key {
        (self.pc, self.kind)
    }
}

/// Size of the cache of recently used classes.
const N_RECENT: usize = 1 << 12;

/// All classes, by number.
pub(super) struct AccessClasses {
    pub(super) all: Vec<AccessClass>,
    numbers: FxHashMap<AccessClass, u32>,
    recent: Vec<u32>,
}

impl Default for AccessClasses {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: FxHashMap::default(), recent: vec![0; N_RECENT] }
    }
}

impl AccessClasses {
    pub(super) fn number(&mut self, class: AccessClass) -> u32 {
        let mixed = (class.pc.0 ^ u64::from(class.stack) << 7 ^ u64::from(class.thread.0) << 3)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let recent = &mut self.recent[(mixed >> 52) as usize % N_RECENT];
        if self.all.get(*recent as usize) == Some(&class) {
            return *recent;
        }
        let all = &mut self.all;
        *recent = *self.numbers.entry(class).or_insert_with(|| {
            all.push(class);
            all.len() as u32 - 1
        });
        *recent
    }
}
