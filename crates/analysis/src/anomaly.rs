//! What could go wrong: events in an order that was not seen.

use raddle_trace::id::Pc;

use crate::accesses::Unit;
use crate::witness::{Deed, Witness};

/// Events in an order that breaks something, or may.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// What it is.
    pub kind: AnomalyKind,
    /// The pattern, such as `R1-W2-W1`.
    pub pattern: String,
    /// The events in the order that breaks, as far as it is told by events; several ways
    /// to have it, the most promising first.
    pub ways: Vec<Vec<Witness>>,
    /// How closely the events of one thread belong together.
    pub unit: Unit,
    /// The order was seen in the run that it was predicted from.
    pub observed: bool,
    /// How promising it is: the less the more.
    pub rank: u32,
}

/// What an anomaly is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnomalyKind {
    /// Two accesses without a lock in common, in the other order.
    Race,
    /// One variable, a unit of one thread broken by another thread.
    Atomicity,
    /// Two variables that belong together.
    MultiVariable,
    /// A use before the beginning, or behind the end.
    Order,
    /// A circle of locks.
    Deadlock,
}

impl AnomalyKind {
    /// As the output has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::Atomicity => "atomicity",
            Self::MultiVariable => "multi-variable",
            Self::Order => "order",
            Self::Deadlock => "deadlock",
        }
    }
}

/// What makes two anomalies the same: kind and sites, not addresses or threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    kind: AnomalyKind,
    events: Vec<(Deed, Pc)>,
}

impl Anomaly {
    /// See [`Identity`].
    #[must_use]
    pub fn identity(&self) -> Identity {
        let events = self.ways[0].iter().map(|witness| (witness.deed, witness.pc)).collect();
        Identity { kind: self.kind, events }
    }

    /// The role of each event: threads are numbered as they come.
    #[must_use]
    pub fn roles(events: &[Witness]) -> Vec<usize> {
        let mut threads = Vec::new();
        let role = |witness: &Witness| match threads.iter().position(|&t| t == witness.thread) {
            Some(at) => at + 1,
            None => {
                threads.push(witness.thread);
                threads.len()
            }
        };
        events.iter().map(role).collect()
    }

    /// A pattern for these events, such as `R1-W2-W1`.
    #[must_use]
    pub fn pattern_of(events: &[Witness]) -> String {
        let roles = Self::roles(events);
        let words: Vec<_> = events
            .iter()
            .zip(roles)
            .map(|(event, role)| format!("{}{role}", event.deed.letter()))
            .collect();
        words.join("-")
    }
}
