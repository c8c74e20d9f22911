//! Prediction: from one run to what other orders of the same events would do.
//!
//! After PECAN (pattern-directed search over a partial order) and PENELOPE (cut-points from
//! summaries in linear time): patterns are matched against the summaries of [`crate::accesses`]
//! and [`crate::nearby`], so the cost does not depend on the length of the trace. A match is
//! an anomaly if nothing that must hold in every order forbids it:
//!
//! - no event must come, by [`crate::order`], before one that the pattern has ahead of it;
//! - no lock is held across two events of a thread that the event between them needs too.
//!
//! Whether the locks on the way allow it is not asked here but when the schedule is made
//! ([`crate::weave`]), which is exact where acquisition histories are a condition.
//!
//! Beyond both papers: uses that can come before the initialization that was seen before
//! them, or behind the end (free, destroy) that was seen behind them; wake-ups that can
//! come before their wait; circles of locks ([`crate::deadlock`]).

use raddle_trace::id::Pc;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::accesses::{Cell, Double, Single, Unit};
use crate::anomaly::{Anomaly, AnomalyKind, Identity};
use crate::deadlock;
use crate::locks::Held;
use crate::nearby::Couple;
use crate::pattern::{Pattern, PatternKind};
use crate::scan::Model;
use crate::skeleton::What;
use crate::witness::{Deed, Witness};

/// Ways to have an anomaly that are kept.
const WAYS_MAX: usize = 4;

/// The anomalies that a run implies, each once by its sites, most promising first.
#[must_use]
pub fn predict(model: &Model, patterns: &[Pattern]) -> Vec<Anomaly> {
    let races = patterns.iter().filter(|pattern| pattern.kind == PatternKind::Race);
    let races = races.map(|race| [race.events[0].writes, race.events[1].writes]).collect();
    let mut found = Found {
        model,
        races,
        by_identity: FxHashMap::default(),
        pairs: FxHashMap::default(),
        triples: FxHashMap::default(),
        anomalies: Vec::new(),
    };
    for cell in &model.cells {
        orders(&mut found, cell);
        for pattern in patterns.iter().filter(|pattern| pattern.kind == PatternKind::Atomicity) {
            atomicity(&mut found, cell, pattern);
        }
    }
    let two: Vec<_> = patterns.iter().filter(|pattern| pattern.has_two_variables()).collect();
    multi_variable(&mut found, &two);
    wake_ups(&mut found);
    for cycle in deadlock::cycles(model) {
        found.add(AnomalyKind::Deadlock, cycle, Unit::Section, 0);
    }
    let mut anomalies = found.anomalies;
    for anomaly in &mut anomalies {
        anomaly.rank += if anomaly.observed { 40 } else { 0 };
    }
    // A few of each kind at a time, so that no kind waits for all of another.
    let mut taken: FxHashMap<(AnomalyKind, u32), u32> = FxHashMap::default();
    for anomaly in &mut anomalies {
        let n = taken.entry((anomaly.kind, anomaly.rank)).or_default();
        *n += 1;
        anomaly.rank += *n / 8;
    }
    anomalies.sort_by_key(|anomaly| anomaly.rank);
    anomalies
}

struct Found<'a> {
    model: &'a Model,
    /// Which of two accesses writes, of each race that is looked for.
    races: Vec<[bool; 2]>,
    by_identity: FxHashMap<Identity, usize>,
    /// The same for those of two and three events, to ask without making an identity.
    pairs: FxHashMap<[(Deed, Pc); 2], usize>,
    triples: FxHashMap<[(Deed, Pc); 3], usize>,
    anomalies: Vec<Anomaly>,
}

impl Found<'_> {
    /// Adds a way to have an anomaly, and the anomaly if it is new.
    fn add(&mut self, kind: AnomalyKind, way: Vec<Witness>, unit: Unit, rank: u32) {
        let observed = kind != AnomalyKind::Deadlock && way.is_sorted_by_key(|event| event.seq);
        let weak = |(at, later): (usize, &Witness)| {
            way[..at].iter().any(|earlier| {
                earlier.thread != later.thread && self.model.weak.before(later.weak, earlier.weak)
            })
        };
        let rank = rank + if way.iter().enumerate().any(weak) { 12 } else { 0 };
        let pattern = Anomaly::pattern_of(&way);
        let anomaly = Anomaly { kind, pattern, ways: vec![way], unit, observed, rank };
        match self.by_identity.get(&anomaly.identity()) {
            None => {
                let at = self.anomalies.len();
                match (kind, &anomaly.ways[0][..]) {
                    (AnomalyKind::Atomicity, &[a, b, c]) => {
                        self.triples.insert([site(&a), site(&b), site(&c)], at);
                    }
                    (AnomalyKind::Race, &[a, b]) => {
                        self.pairs.insert([site(&a), site(&b)], at);
                    }
                    _ => {}
                }
                self.by_identity.insert(anomaly.identity(), at);
                self.anomalies.push(anomaly);
            }
            Some(&at) => {
                let known = &mut self.anomalies[at];
                known.observed |= observed;
                known.unit = known.unit.max(unit);
                if rank < known.rank {
                    known.rank = rank;
                    known.ways.insert(0, anomaly.ways[0].clone());
                    known.ways.truncate(WAYS_MAX);
                } else if known.ways.len() < WAYS_MAX {
                    known.ways.extend(anomaly.ways);
                }
            }
        }
    }

    /// Whether another way to have an anomaly would change nothing. `rank` is at most its rank.
    fn is_enough(&self, at: Option<&usize>, way: &[Witness], unit: Unit, rank: u32) -> bool {
        at.is_some_and(|&at| {
            let known = &self.anomalies[at];
            known.ways.len() == WAYS_MAX
                && rank >= known.rank
                && unit <= known.unit
                && (known.observed || !way.is_sorted_by_key(|event| event.seq))
        })
    }

    /// Whether nothing that must hold forbids this order, and not every order has it.
    fn possible(&self, way: &[Witness]) -> bool {
        let before = |a: &Witness, b: &Witness| {
            a.thread == b.thread || self.model.order.before(a.moment, b.moment)
        };
        let inevitable = way.windows(2).all(|pair| before(&pair[0], &pair[1]));
        !inevitable
            && way.iter().enumerate().all(|(at, later)| {
                way[..at].iter().all(|earlier| {
                    earlier.thread == later.thread
                        || !self.model.order.before(later.moment, earlier.moment)
                })
            })
    }
}

fn site(witness: &Witness) -> (Deed, Pc) {
    (witness.deed, witness.pc)
}

/// The first and the last, or one if there was only one.
fn both<T: Copy>(first: T, last: T, same: bool) -> impl Iterator<Item = T> {
    [Some(first), (!same).then_some(last)].into_iter().flatten()
}

fn singles(single: &Single) -> impl Iterator<Item = Witness> {
    both(single.first, single.last, single.first.seq == single.last.seq)
}

fn doubles(double: &Double) -> impl Iterator<Item = [Witness; 2]> {
    both(double.first, double.last, double.first[1].seq == double.last[1].seq)
}

fn couples(couple: &Couple) -> impl Iterator<Item = [Witness; 2]> {
    both(couple.first, couple.last, couple.first[1].seq == couple.last[1].seq)
}

/// Two accesses in the other order: races, and order violations.
fn orders(found: &mut Found<'_>, cell: &Cell) {
    let begin = cell.singles.iter().map(|single| single.first.seq).min().unwrap_or(0);
    for (at, one) in cell.singles.iter().enumerate() {
        for two in &cell.singles[at + 1..] {
            if !one.first.conflicts(&two.first) {
                continue;
            }
            for a in singles(one) {
                for b in singles(two) {
                    let (earlier, later) = if a.seq < b.seq { (a, b) } else { (b, a) };
                    order(found, &earlier, &later, begin);
                }
            }
        }
    }
}

/// How promising a race is.
const RACE_RANK: u32 = 4;

fn order(found: &mut Found<'_>, earlier: &Witness, later: &Witness, begin: u64) {
    let model = found.model;
    let way = [*later, *earlier];
    if !found.possible(&way) || is_lock_word(model, earlier) {
        return;
    }
    let excluded = model.exclude(earlier.locks, later.locks);
    let ends = |deed| matches!(deed, Deed::Free | Deed::Destroy);
    let is_object = |deed| matches!(deed, Deed::Acquire | Deed::Wait | Deed::Signal);
    let (kind, rank) = match (earlier.deed, later.deed) {
        // Two ends, or an end before a use.
        (_, deed) if ends(deed) => (AnomalyKind::Order, 2),
        // An end that was seen before a use is not one that can be moved behind it.
        (deed, _) if ends(deed) => return,
        (Deed::Init, _) => (AnomalyKind::Order, 4),
        (_, Deed::Init) => return,
        (one, two) if is_object(one) || is_object(two) => return,
        (one, two) if one.writes() && !two.writes() && earlier.seq == begin => {
            (AnomalyKind::Order, if excluded { 8 } else { 2 })
        }
        _ if excluded => {
            if !earlier.deed.writes() || later.deed.writes() {
                return;
            }
            (AnomalyKind::Order, 14)
        }
        (one, two) if one.is_atomic() && two.is_atomic() => (AnomalyKind::Order, 10),
        (one, two) if found.races.contains(&[two.writes(), one.writes()]) => {
            (AnomalyKind::Race, RACE_RANK)
        }
        _ => return,
    };
    let known = found.pairs.get(&[site(later), site(earlier)]);
    if kind != AnomalyKind::Race || !found.is_enough(known, &way, Unit::Thread, rank) {
        found.add(kind, way.to_vec(), Unit::Thread, rank);
    }
}

fn is_lock_word(model: &Model, witness: &Witness) -> bool {
    witness.deed.is_atomic() && model.words.is_lock(witness.addr)
}

fn fits(writes: bool, witness: &Witness) -> bool {
    match witness.deed {
        Deed::Read | Deed::AtomicRead => !writes,
        Deed::Write | Deed::AtomicWrite => writes,
        Deed::Free => writes,
        _ => false,
    }
}

/// A pattern of one variable.
fn atomicity(found: &mut Found<'_>, cell: &Cell, pattern: &Pattern) {
    let (mut first, mut second) = (pattern.of_thread(1), pattern.of_thread(2));
    if first.len() < second.len() {
        std::mem::swap(&mut first, &mut second);
    }
    let writes = |at: usize| pattern.events[at].writes;
    let fit = |places: &[usize], pair: &[Witness; 2]| {
        places.iter().zip(pair).all(|(&at, witness)| fits(writes(at), witness))
    };
    match (&first[..], &second[..]) {
        (&[one, two], &[middle]) => {
            for double in cell.doubles.iter().filter(|double| fit(&[one, two], &double.first)) {
                for single in &cell.singles {
                    if single.first.thread == double.first[0].thread
                        || !fits(writes(middle), &single.first)
                        || !single.first.overlaps(&double.first[0])
                        || !single.first.overlaps(&double.first[1])
                    {
                        continue;
                    }
                    let place = |at, pair: [Witness; 2], other| match at {
                        _ if at == one => pair[0],
                        _ if at == two => pair[1],
                        _ => other,
                    };
                    for pair in doubles(double) {
                        for other in singles(single) {
                            let way = [0, 1, 2].map(|at| place(at, pair, other));
                            let known = found.triples.get(&way.each_ref().map(site));
                            let rank = atomicity_rank(&way, double.unit);
                            if !found.is_enough(known, &way, double.unit, rank) {
                                try_atomicity(found, &mut way.to_vec(), double.unit);
                            }
                        }
                    }
                }
            }
        }
        (&[one, two], &[three, four]) => {
            for double in cell.doubles.iter().filter(|double| fit(&[one, two], &double.first)) {
                for other in cell.doubles.iter().filter(|other| fit(&[three, four], &other.first)) {
                    if other.first[0].thread == double.first[0].thread
                        || !other.first[0].overlaps(&double.first[0])
                    {
                        continue;
                    }
                    for [a, b] in doubles(double) {
                        for [c, d] in doubles(other) {
                            let mut way =
                                pattern_order(&[(one, a), (two, b), (three, c), (four, d)]);
                            try_atomicity(found, &mut way, double.unit.min(other.unit));
                        }
                    }
                }
            }
        }
        _ => {}
    }
}

/// Events by their places in a pattern.
fn pattern_order(placed: &[(usize, Witness)]) -> Vec<Witness> {
    let mut placed = placed.to_vec();
    placed.sort_by_key(|(at, _)| *at);
    placed.into_iter().map(|(_, witness)| witness).collect()
}

fn try_atomicity(found: &mut Found<'_>, way: &mut Vec<Witness>, unit: Unit) {
    if !found.possible(way) || !apart(found.model, way) || is_lock_word(found.model, &way[0]) {
        return;
    }
    let rank = atomicity_rank(way, unit);
    found.add(AnomalyKind::Atomicity, std::mem::take(way), unit, rank);
}

fn atomicity_rank(way: &[Witness], unit: Unit) -> u32 {
    // Atomic operations are most often what they should be.
    let atomic = way.iter().filter(|event| event.deed.is_atomic()).count() as u32;
    atomic
        + match unit {
            Unit::Section => 1,
            Unit::Activation => 2,
            Unit::Caller => 6,
            Unit::Thread => 16,
        }
}

/// Whether no lock that a thread holds from one of its events to the next keeps out the
/// events of the other between them.
fn apart(model: &Model, way: &[Witness]) -> bool {
    way.iter().enumerate().all(|(at, first)| {
        let next = way[at + 1..].iter().position(|event| event.thread == first.thread);
        let Some(next) = next.map(|next| at + 1 + next) else { return true };
        let second = &way[next];
        let held_on = first.section != 0 && first.section == second.section;
        !held_on
            || way[at + 1..next].iter().all(|event| {
                !(model.exclude(first.locks, event.locks)
                    && model.exclude(second.locks, event.locks)
                    && held_across(model, first, second, event))
            })
    })
}

/// Whether a thread keeps a lock from one event to the next that another one needs. Looked up
/// where it synchronizes, since inside a critical section others may begin and end.
fn held_across(model: &Model, first: &Witness, second: &Witness, event: &Witness) -> bool {
    let syncs = &model.skeleton.lines[first.thread.0 as usize].syncs;
    let from = syncs.partition_point(|sync| sync.at < first.at);
    let between = syncs[from..].iter().take_while(|sync| sync.at < second.at);
    let needs = |held: &&Held| {
        let others = model.locks.held(event.locks).iter();
        let mut others = others.filter(|other| other.lock == held.lock);
        others.any(|other| !(other.shared && held.shared))
    };
    let kept = model.locks.held(first.locks).iter().filter(needs);
    let mut kept: Vec<_> = kept.filter(|held| !model.words.is_other(held.lock)).collect();
    for sync in between {
        if let What::Release { lock, .. } = sync.what {
            kept.retain(|held| held.lock != lock);
        }
    }
    !kept.is_empty()
}

/// Patterns of two variables.
fn multi_variable(found: &mut Found<'_>, patterns: &[&Pattern]) {
    let key = |pair: &[Witness; 2]| {
        let (a, b) = (pair[0].addr, pair[1].addr);
        if a < b { (a, b) } else { (b, a) }
    };
    let mut by_place: FxHashMap<_, Vec<&Couple>> = FxHashMap::default();
    for couple in &found.model.couples {
        by_place.entry(key(&couple.first)).or_default().push(couple);
    }
    let mut places: Vec<_> = by_place.into_iter().collect();
    places.sort_unstable_by_key(|(place, _)| *place);
    let mut tried = FxHashSet::default();
    for (_, couples_here) in places {
        for one in &couples_here {
            for two in &couples_here {
                let ([a, b], [c, d]) = (&one.first, &two.first);
                if a.thread == c.thread
                    || !tried.insert((a.pc, b.pc, c.pc, d.pc, a.thread, c.thread))
                {
                    continue;
                }
                for pattern in patterns {
                    match_couples(found, pattern, one, two);
                }
            }
        }
    }
}

fn match_couples(found: &mut Found<'_>, pattern: &Pattern, one: &Couple, two: &Couple) {
    let (first, second) = (pattern.of_thread(1), pattern.of_thread(2));
    let [a, b] = one.first;
    let x = a.addr;
    let variable = |witness: &Witness| u8::from(witness.addr != x);
    let fit = |places: &[usize], pair: &[Witness; 2]| {
        places.iter().zip(pair).all(|(&at, witness)| {
            let event = &pattern.events[at];
            fits(event.writes, witness) && event.variable == variable(witness)
        })
    };
    if !fit(&first, &[a, b]) || !fit(&second, &two.first) {
        return;
    }
    let unit = one.unit.min(two.unit);
    for [a, b] in couples(one) {
        for [c, d] in couples(two) {
            let way =
                pattern_order(&[(first[0], a), (first[1], b), (second[0], c), (second[1], d)]);
            if found.possible(&way)
                && apart(found.model, &way)
                && !way.iter().any(|event| is_lock_word(found.model, event))
            {
                let rank = match unit {
                    Unit::Section => 5,
                    Unit::Activation => 7,
                    Unit::Caller => 12,
                    Unit::Thread => 22,
                };
                found.add(AnomalyKind::MultiVariable, way, unit, rank);
            }
        }
    }
}

/// Wake-ups that can come before the wait that needs them.
fn wake_ups(found: &mut Found<'_>) {
    let model = found.model;
    for wait in &model.waits {
        for signal in model.signals.iter().filter(|signal| signal.addr == wait.addr) {
            let way = vec![*signal, *wait];
            if signal.thread != wait.thread
                && !model.words.is_lock(wait.addr)
                && found.possible(&way)
            {
                found.add(AnomalyKind::Order, way, Unit::Thread, 3);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::built_in;
    use crate::scan::tests::read;

    /// The anomalies of events that all have a label, as `kind label label …`; a line without
    /// one has its thread.
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
