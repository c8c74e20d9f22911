//! Prediction: what other orders of the same events would do.
//!
//! After PECAN (pattern-directed search over a partial order) and PENELOPE (cut-points from
//! summaries in linear time): patterns are matched against the summaries of [`crate::accesses`]
//! and [`crate::nearby`], so the cost does not depend on the length of the trace. A match is an
//! anomaly unless something that holds in every order rules it out:
//!
//! - by [`crate::order`], no event has to come before one that precedes it in the pattern;
//! - no lock is held across two events of a thread that the event between them also needs.
//!
//! Whether the locks on the way allow it is decided when the schedule is made ([`crate::weave`]),
//! which is exact where acquisition histories are only a condition.
//!
//! Beyond both papers: uses that can come before the initialization that preceded them, or after
//! the free or destruction that followed them; wake-ups that can come before their wait; lock
//! cycles ([`crate::deadlock`]).
//!
//! Anomalies are identified by their sites, of which there are few, and the same sites meet at
//! one location after another. So the first question about a match is whether it would change
//! anything: once an anomaly has enough ways ([`found`]), further matches of its sites are
//! skipped after one lookup in a small table per location ([`view`]).
//!
//! An anomaly is a list of events in an order that nothing forbids. What a different order
//! would do to values is not considered. The run that follows the schedule notices by the sites
//! at which threads stop; it leaves the schedule there, and the anomaly is infeasible.

mod atomicity;
mod coupled;
mod found;
mod four;
mod orders;
mod view;

use rustc_hash::FxHashMap;

use self::found::Found;
use self::view::Viewer;
use crate::accesses::Unit;
use crate::anomaly::{Anomaly, AnomalyKind};
use crate::deadlock;
use crate::model::Model;
use crate::pattern::{Pattern, PatternKind};
use crate::stop::unless_stopped;
use crate::witness::{AccessKind, Witness};

/// The anomalies that a run implies, each once by its sites, the most promising first; those that
/// were found so far if it is stopped.
#[must_use]
pub fn predict(model: &Model, patterns: &[Pattern]) -> Vec<Anomaly> {
    let mut found = Found::new(model);
    let races = orders::Races::new(patterns);
    let single: Vec<_> =
        patterns.iter().filter(|pattern| pattern.kind == PatternKind::Atomicity).collect();
    let mut viewer = Viewer::default();
    for cell in unless_stopped(model.cells.iter()) {
        let view = viewer.view(&mut found, cell);
        orders::orders(&mut found, &view, &races);
        for pattern in &single {
            atomicity::atomicity(&mut found, &view, pattern);
        }
    }
    coupled::coupled_pairs(&mut found, patterns);
    wake_ups(&mut found);
    for cycle in deadlock::cycles(model) {
        found.add(AnomalyKind::Deadlock, &cycle, Unit::Section, 0);
    }
    ranked(found.anomalies)
}

/// Finds wake-ups that can come before the wait that needs them.
fn wake_ups(found: &mut Found<'_>) {
    let model = found.model;
    for wait in unless_stopped(model.waits.iter()) {
        for signal in model.signals.iter().filter(|signal| signal.addr == wait.addr) {
            let way = [*signal, *wait];
            if signal.thread != wait.thread
                && !model.words.is_lock(wait.addr)
                && found.possible(&way)
            {
                found.add(AnomalyKind::Order, &way, Unit::Thread, 3);
            }
        }
    }
}

/// Sorts the most promising first, interleaving kinds so that none has to wait for all of
/// another.
fn ranked(mut anomalies: Vec<Anomaly>) -> Vec<Anomaly> {
    let mut taken: FxHashMap<(AnomalyKind, u32), u32> = FxHashMap::default();
    for anomaly in &mut anomalies {
        anomaly.rank += if anomaly.observed { 40 } else { 0 };
        let n = taken.entry((anomaly.kind, anomaly.rank)).or_default();
        *n += 1;
        anomaly.rank += *n / 8;
    }
    anomalies.sort_by_key(|anomaly| anomaly.rank);
    anomalies
}

/// Whether patterns cover this kind of access, and it writes as the pattern requires.
fn fits(writes: bool, kind: AccessKind) -> bool {
    match kind {
        AccessKind::Read | AccessKind::AtomicRead => !writes,
        AccessKind::Write | AccessKind::AtomicWrite | AccessKind::Free => writes,
        _ => false,
    }
}

fn is_lock_word(model: &Model, witness: &Witness) -> bool {
    witness.kind.is_atomic() && model.words.is_lock(witness.addr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::built_in;
    use crate::scan::tests::read;

    /// Checks the anomalies whose events all have a label, as `kind label label …`; an event
    /// without a label is shown by its thread.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let (notation, model) = read(text);
        let anomalies = predict(&model, &built_in());
        let mut found: Vec<_> = anomalies
            .iter()
            .filter(|anomaly| anomaly.kind != AnomalyKind::MultiVariable)
            .map(|anomaly| {
                let labels = anomaly.ways[0].iter().map(|event| notation.label(event.pc));
                let labels: Vec<_> = labels.collect();
                format!("{} {}", anomaly.kind.as_str(), labels.join(" "))
            })
            .filter(|found| !found.contains('T'))
            .collect();
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn two_writes_without_a_lock_are_a_race() {
        check("T0 spawn T1\n T0 read x\n a: T0 write x\n b: T1 write x", &["race b a"]);
    }

    #[test]
    fn a_common_lock_keeps_writes_apart() {
        check(
            "
            T0 spawn T1
            T0 acquire m
            a: T0 write x
            T0 release m
            T1 acquire m
            b: T1 write x
            T1 release m",
            &[],
        );
    }

    #[test]
    fn a_read_and_a_write_of_two_sections_are_not_atomic() {
        check(
            "
            T0 spawn T1
            T0 acquire m
            a: T0 read x
            T0 release m
            T0 acquire m
            b: T0 write x
            T0 release m
            T1 acquire m
            c: T1 write x
            T1 release m",
            &["atomicity a c b"],
        );
    }

    #[test]
    fn a_read_and_a_write_of_one_section_are_atomic() {
        check(
            "
            T0 spawn T1
            T0 acquire m
            a: T0 read x
            b: T0 write x
            T0 release m
            T1 acquire m
            c: T1 write x
            T1 release m",
            &[],
        );
    }

    #[test]
    fn a_lock_taken_twice_inside_another_is_not_held_across() {
        check(
            "
            T0 spawn T1
            T0 acquire o
            T0 acquire m
            a: T0 read x
            T0 release m
            T0 acquire m
            b: T0 write x
            T0 release m
            T0 release o
            T1 acquire m
            c: T1 write x
            T1 release m",
            &["atomicity a c b"],
        );
    }

    #[test]
    fn a_join_leaves_nothing_to_predict() {
        check(
            "
            T0 spawn T1
            a: T1 write x
            T1 end
            T0 join T1
            b: T0 write x",
            &[],
        );
    }

    #[test]
    fn a_free_behind_a_use_may_come_before_it() {
        check(
            "
            T0 alloc p
            T0 spawn T1
            a: T1 read p
            b: T0 free p",
            &["order b a"],
        );
        check(
            "
            T0 alloc p
            T0 spawn T1
            a: T1 read p
            T1 end
            T0 join T1
            b: T0 free p",
            &[],
        );
    }

    #[test]
    fn memory_that_is_mapped_again_is_other_memory() {
        let trace = |unmap: &str, map: &str| {
            format!(
                "
                T0 spawn T1
                T0 map p
                T0 map q
                T0 write p
                T0 write q
                {unmap}
                {map}
                a: T1 write p
                T1 write q"
            )
        };
        check(&trace("T0 unmap p\n T0 unmap q", "T1 map p\n T1 map q"), &[]);
        check(&trace("T0 free p\n T0 free q", "T1 alloc p\n T1 alloc q"), &[]);
        let (notation, model) = read(&trace("", ""));
        assert!(!predict(&model, &built_in()).is_empty(), "{:?}", notation.events);
    }

    #[test]
    fn memory_may_be_unmapped_before_it_is_used() {
        check("T0 map p\n T0 spawn T1\n a: T1 read p\n b: T0 unmap p", &["order b a"]);
    }

    #[test]
    fn a_pipe_leaves_nothing_to_predict() {
        let trace = |before: &str, after: &str| {
            format!(
                "
                T0 spawn T1
                {before}
                T0 send p
                {after}
                T1 receive p
                b: T1 read x"
            )
        };
        check(&trace("a: T0 write x", ""), &[]);
        check(&trace("", "a: T0 write x"), &["order b a"]);
    }

    #[test]
    fn a_use_may_come_before_the_first_write() {
        check("T0 spawn T1\n a: T0 write x\n b: T1 read x", &["order b a"]);
    }

    #[test]
    fn a_wake_up_may_come_before_its_wait() {
        check(
            "
            T0 spawn T1
            a: T1 wait c
            b: T0 signal c
            T1 woken c by T0",
            &["order b a"],
        );
    }

    #[test]
    fn two_locks_in_two_orders_are_a_deadlock() {
        check(DEADLOCK, &["deadlock a b"]);
    }

    #[test]
    fn a_gate_prevents_a_deadlock() {
        let gated: Vec<_> = DEADLOCK
            .lines()
            .map(|line| match line.trim() {
                "a: T0 acquire m" => "T0 acquire g\n a: T0 acquire m",
                "T0 release m" => "T0 release m\n T0 release g",
                "b: T1 acquire n" => "T1 acquire g\n b: T1 acquire n",
                other => other,
            })
            .collect();
        check(&gated.join("\n"), &[]);
    }

    const DEADLOCK: &str = "
        T0 spawn T1
        a: T0 acquire m
        T0 acquire n
        T0 release n
        T0 release m
        b: T1 acquire n
        T1 acquire m
        T1 release m
        T1 release n";
}
