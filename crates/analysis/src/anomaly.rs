//! What could go wrong: events in an order that was not observed.

use raddle_trace::id::Pc;

use crate::accesses::Unit;
use crate::witness::{AccessKind, Witness};

/// Events in an order that violates, or may violate, what the program relies on.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// The kind of violation.
    pub kind: AnomalyKind,
    /// The pattern, such as `R1-W2-W1`.
    pub pattern: String,
    /// The events in the failing order, as far as events determine it. Several ways to get there,
    /// the most promising first.
    pub ways: Vec<Vec<Witness>>,
    /// How closely the events of one thread belong together.
    pub unit: Unit,
    /// Whether the order occurred in the run that it was predicted from.
    pub observed: bool,
    /// How promising it is; lower is better.
    pub rank: u32,
}

/// The kind of an anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnomalyKind {
    /// Two accesses without a common lock, in the opposite order.
    Race,
    /// One variable: another thread interrupts a unit of one thread.
    Atomicity,
    /// Two variables that belong together.
    MultiVariable,
    /// Use before initialization, or after free or destruction.
    Order,
    /// A lock cycle.
    Deadlock,
}

impl AnomalyKind {
    /// The name used in reports.
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
    events: Vec<(AccessKind, Pc)>,
}

impl Anomaly {
    /// The identity of this anomaly.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let events = self.ways[0].iter().map(|witness| (witness.kind, witness.pc)).collect();
        Identity { kind: self.kind, events }
    }

    /// The role of each event: threads are numbered in order of appearance.
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
            .map(|(event, role)| format!("{}{role}", event.kind.letter()))
            .collect();
        words.join("-")
    }
}
