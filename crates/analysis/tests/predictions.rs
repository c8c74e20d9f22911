//! Predictions and schedules of small programs, against all orders that their threads allow.
//!
//! A program is made up, one of its orders is given to raddle as a trace, and all orders are
//! looked at one by one: what raddle has a schedule for must be possible, its schedules must
//! be ones that locks, creation and join allow, and what is possible it must have a schedule
//! for. Threads take the same way in every order, as the prediction takes it.

#[path = "../src/notation.rs"]
mod notation;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

use proptest::prelude::*;
use raddle_analysis::anomaly::{Anomaly, AnomalyKind};
use raddle_analysis::scan::{Model, Scan};
use raddle_analysis::sharing::Sharing;
use raddle_analysis::skeleton::Stretch;
use raddle_analysis::weave::{Hold, weave};
use raddle_analysis::{deadlock, pattern, predict};
use raddle_trace::id::Pc;

const N_THREADS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Read(u8),
    Write(u8),
    Acquire(u8),
    Release(u8),
    Spawn(u8),
    Join(u8),
}

/// What each thread does, in its order. The first one creates the others.
#[derive(Clone, Debug)]
struct Program {
    threads: Vec<Vec<Act>>,
}

/// An act by its thread and its place there.
type Name = (usize, usize);

/// How many acts each thread has performed.
type Place = [usize; N_THREADS];

const START: Place = [0; N_THREADS];

impl Program {
    fn act(&self, (thread, at): Name) -> Act {
        self.threads[thread][at]
    }

    /// Locks that a thread holds when it has performed so many acts, with where it took them.
    fn held(&self, thread: usize, n: usize) -> Vec<(u8, usize)> {
        let mut held = Vec::new();
        for (at, act) in self.threads[thread][..n].iter().enumerate() {
            match act {
                Act::Acquire(lock) => held.push((*lock, at)),
                Act::Release(lock) => held.retain(|(other, _)| other != lock),
                _ => {}
            }
        }
        held
    }

    fn holder(&self, place: Place, lock: u8) -> Option<(usize, usize)> {
        (0..N_THREADS).find_map(|thread| {
            let held = self.held(thread, place[thread]);
            held.iter().find(|(other, _)| *other == lock).map(|&(_, at)| (thread, at))
        })
    }

    fn can(&self, place: Place, thread: usize) -> bool {
        let Some(act) = self.threads[thread].get(place[thread]) else { return false };
        let created = |child: usize| self.threads[0][..place[0]].contains(&Act::Spawn(child as u8));
        let begun = thread == 0 || created(thread);
        begun
            && match *act {
                Act::Acquire(lock) => self.holder(place, lock).is_none(),
                Act::Join(child) => {
                    let child = child as usize;
                    place[child] == self.threads[child].len()
                }
                _ => true,
            }
    }

    /// All places that can be reached if these acts come in this order.
    fn reach(&self, order: &[Name]) -> HashSet<Place> {
        let mut seen = HashSet::from([START]);
        let mut open = vec![START];
        while let Some(place) = open.pop() {
            for thread in 0..N_THREADS {
                let this = (thread, place[thread]);
                let turn = order.iter().position(|&name| name == this);
                let early = turn.is_some_and(|turn| {
                    order[..turn].iter().any(|&(other, at)| place[other] <= at)
                });
                if early || !self.can(place, thread) {
                    continue;
                }
                let mut next = place;
                next[thread] += 1;
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    }

    fn is_possible(&self, order: &[Name]) -> bool {
        self.reach(order).iter().any(|place| order.iter().all(|&(thread, at)| place[thread] > at))
    }

    /// Places from which all threads can come to their end.
    fn safe(&self) -> HashSet<Place> {
        let mut places: Vec<_> = self.reach(&[]).into_iter().collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.iter().sum::<usize>()));
        let n: usize = self.threads.iter().map(Vec::len).sum();
        let mut safe = HashSet::new();
        for place in places {
            let goes_on = (0..N_THREADS).any(|thread| {
                let mut next = place;
                next[thread] += 1;
                self.can(place, thread) && safe.contains(&next)
            });
            if goes_on || place.iter().sum::<usize>() == n {
                safe.insert(place);
            }
        }
        safe
    }

    /// One of the orders, by these choices.
    fn run(&self, choices: &[u8]) -> Option<Vec<Name>> {
        let safe = self.safe();
        let mut place = START;
        safe.contains(&place).then_some(())?;
        let mut order = Vec::new();
        for at in 0.. {
            let nexts: Vec<_> = (0..N_THREADS)
                .filter(|&thread| {
                    let mut next = place;
                    next[thread] += 1;
                    self.can(place, thread) && safe.contains(&next)
                })
                .collect();
            if nexts.is_empty() {
                break;
            }
            let thread = nexts[choices[at % choices.len()] as usize % nexts.len()];
            order.push((thread, place[thread]));
            place[thread] += 1;
        }
        Some(order)
    }

    /// An order as a trace.
    fn trace(&self, order: &[Name]) -> String {
        let mut text = String::new();
        for &name in order {
            let (thread, at) = name;
            let act = match self.act(name) {
                Act::Read(x) => format!("read x{x}"),
                Act::Write(x) => format!("write x{x}"),
                Act::Acquire(m) => format!("acquire m{m}"),
                Act::Release(m) => format!("release m{m}"),
                Act::Spawn(child) => format!("spawn T{child}"),
                Act::Join(child) => format!("join T{child}"),
            };
            let _ = writeln!(text, "{thread}.{at}: T{thread} {act}");
            if at + 1 == self.threads[thread].len() {
                let _ = writeln!(text, "T{thread} end");
            }
        }
        text
    }

    /// Whether the stretches are an order that locks, creation and join allow, in which
    /// these acts come in this order.
    fn follows(&self, stretches: &[Stretch], order: &[Name]) -> Result<(), String> {
        let mut place = START;
        let mut done = Vec::new();
        for stretch in stretches {
            let thread = stretch.thread.0 as usize;
            if place[thread] as u64 != stretch.from {
                return Err(format!("{stretch:?} does not go on at {place:?}"));
            }
            for _ in stretch.from..stretch.to {
                if !self.can(place, thread) {
                    return Err(format!("thread {thread} cannot go on at {place:?}"));
                }
                done.push((thread, place[thread]));
                place[thread] += 1;
            }
        }
        done.retain(|name| order.contains(name));
        if done == order { Ok(()) } else { Err(format!("it performs {done:?}")) }
    }

    fn variable(&self, name: Name) -> Option<(u8, bool)> {
        match self.act(name) {
            Act::Read(x) => Some((x, false)),
            Act::Write(x) => Some((x, true)),
            _ => None,
        }
    }

    fn excluded(&self, one: Name, two: Name) -> bool {
        let held = self.held(two.0, two.1);
        self.held(one.0, one.1).iter().any(|(lock, _)| held.iter().any(|(other, _)| other == lock))
    }

    fn accesses(&self) -> Vec<Name> {
        let names = |thread: usize| (0..self.threads[thread].len()).map(move |at| (thread, at));
        (0..N_THREADS).flat_map(names).filter(|&name| self.variable(name).is_some()).collect()
    }

    /// Two accesses of one thread that follow each other: the second with the last write of
    /// the same variable before it, and with the last read behind that write.
    fn doubles(&self) -> Vec<(Name, Name)> {
        let mut doubles = Vec::new();
        let accesses = self.accesses();
        for &two in &accesses {
            let before = accesses.iter().rev().filter(|&&one| {
                let same = self.variable(one).map(|v| v.0) == self.variable(two).map(|v| v.0);
                one.0 == two.0 && one.1 < two.1 && same
            });
            let (mut read, mut write) = (None, None);
            for &one in before {
                if self.variable(one).is_some_and(|v| v.1) {
                    write = Some(one);
                    break;
                }
                read.get_or_insert(one);
            }
            doubles.extend([read, write].into_iter().flatten().map(|one| (one, two)));
        }
        doubles
    }

    /// Orders that were not seen and should be predicted: races, and violations of atomicity.
    fn wanted(&self, seen: &[Name]) -> Vec<(bool, Vec<Name>)> {
        let accesses = self.accesses();
        let when = |name: Name| seen.iter().position(|&other| other == name);
        let conflict = |one: Name, two: Name| {
            let (Some((x, writes)), Some((y, other))) = (self.variable(one), self.variable(two))
            else {
                return false;
            };
            one.0 != two.0 && x == y && (writes || other)
        };
        let mut wanted = Vec::new();
        for &one in &accesses {
            for &two in &accesses {
                if conflict(one, two) && when(one) < when(two) && !self.excluded(one, two) {
                    wanted.push((false, vec![two, one]));
                }
            }
        }
        let writes = |name: Name| self.variable(name).is_some_and(|v| v.1);
        for (one, two) in self.doubles() {
            for &middle in &accesses {
                let same = self.variable(middle).map(|v| v.0) == self.variable(one).map(|v| v.0);
                let breaks = match (writes(one), writes(middle), writes(two)) {
                    (_, true, _) => true,
                    (one, false, two) => one && two,
                };
                if middle.0 != one.0 && same && breaks {
                    wanted.push((true, vec![one, middle, two]));
                }
            }
        }
        wanted.retain(|(_, order)| self.is_possible(order));
        wanted
    }

    /// Where threads wait for each other in a circle: where each took the lock that the one
    /// before it waits for.
    fn circles(&self) -> BTreeSet<BTreeSet<Name>> {
        let mut circles = BTreeSet::new();
        for place in self.reach(&[]) {
            let waits_for = |thread: usize| {
                let created =
                    thread == 0 || self.threads[0][..place[0]].contains(&Act::Spawn(thread as u8));
                match self.threads[thread].get(place[thread]) {
                    Some(Act::Acquire(lock)) if created => self.holder(place, *lock),
                    _ => None,
                }
            };
            for start in 0..N_THREADS {
                let mut circle = BTreeSet::new();
                let mut thread = start;
                while let Some((holder, at)) = waits_for(thread) {
                    if !circle.insert((holder, at)) {
                        break;
                    }
                    thread = holder;
                    if thread == start {
                        circles.insert(circle);
                        break;
                    }
                }
            }
        }
        circles
    }
}

/// What raddle makes of a trace.
struct Reading {
    notation: notation::Notation,
    model: Model,
    anomalies: Vec<Anomaly>,
}

impl Reading {
    fn new(trace: &str) -> Self {
        let notation = notation::parse(trace);
        let mut sharing = Sharing::default();
        notation.events.iter().for_each(|event| sharing.push(event));
        let mut scan = Scan::new(&sharing);
        notation.events.iter().for_each(|event| scan.push(event));
        let model = scan.finish();
        let anomalies = predict::predict(&model, &pattern::built_in());
        Self { notation, model, anomalies }
    }

    fn name(&self, pc: Pc) -> Name {
        let (thread, at) = self.notation.label(pc).split_once('.').expect("a name");
        (thread.parse().expect("a number"), at.parse().expect("a number"))
    }

    /// Each way to have an anomaly by its acts, with the schedules for it.
    fn ways<'a>(
        &'a self,
        anomaly: &'a Anomaly,
    ) -> impl Iterator<Item = (Vec<Name>, Vec<Vec<Stretch>>)> + 'a {
        anomaly.ways.iter().map(|way| {
            let order = way.iter().map(|witness| self.name(witness.pc)).collect();
            let schedules = Hold::ALL.iter().filter_map(|&hold| weave(&self.model, way, hold).ok());
            (order, schedules.collect())
        })
    }
}

/// Holds raddle's answers against all orders.
fn check(program: &Program, seen: &[Name]) -> Result<(), String> {
    let trace = program.trace(seen);
    let reading = Reading::new(&trace);
    let mut found: Vec<(bool, Vec<Name>)> = Vec::new();
    for anomaly in &reading.anomalies {
        for (order, schedules) in reading.ways(anomaly) {
            for schedule in &schedules {
                program.follows(schedule, &order).map_err(|why| {
                    format!("{trace}the schedule for {order:?} is wrong: {why}\n{schedule:?}")
                })?;
            }
            let kind = match anomaly.kind {
                AnomalyKind::Race | AnomalyKind::Order => false,
                AnomalyKind::Atomicity => true,
                AnomalyKind::MultiVariable | AnomalyKind::Deadlock => continue,
            };
            if schedules.is_empty() {
                continue;
            }
            if !program.is_possible(&order) {
                return Err(format!("{trace}{order:?} has a schedule and is impossible"));
            }
            found.push((kind, order));
        }
    }
    for wanted in program.wanted(seen) {
        // What every order has is no anomaly.
        let inevitable = wanted.1.windows(2).all(|pair| !program.is_possible(&[pair[1], pair[0]]));
        if inevitable {
            continue;
        }
        if !found.contains(&wanted) {
            let predicted = reading
                .anomalies
                .iter()
                .flat_map(|anomaly| reading.ways(anomaly))
                .any(|(order, _)| order == wanted.1);
            let what = if predicted { "has no schedule" } else { "is not predicted" };
            return Err(format!("{trace}{wanted:?} is possible and {what}"));
        }
    }
    let circles: BTreeSet<BTreeSet<_>> = deadlock::cycles(&reading.model)
        .iter()
        .map(|circle| circle.iter().map(|witness| reading.name(witness.pc)).collect())
        .collect();
    let possible = program.circles();
    if let Some(missing) = possible.difference(&circles).next() {
        return Err(format!("{trace}the circle {missing:?} is possible and not predicted"));
    }
    if let Some(wrong) = circles.difference(&possible).next() {
        return Err(format!("{trace}the circle {wrong:?} is predicted and impossible"));
    }
    Ok(())
}

/// Acts of one thread from bytes: locks are released in the reverse of their order.
fn body(bytes: &[u8], n_max: usize) -> Vec<Act> {
    let (mut acts, mut held) = (Vec::new(), Vec::new());
    for &byte in bytes {
        if acts.len() + held.len() >= n_max {
            break;
        }
        let which = byte / 8;
        match byte % 8 {
            0 | 1 => acts.push(Act::Read(which % 2)),
            2 | 3 => acts.push(Act::Write(which % 2)),
            4 => acts.push(Act::Write(2)),
            5 | 6 => {
                let lock = which % 3;
                if !held.contains(&lock) && acts.len() + held.len() + 3 <= n_max {
                    acts.push(Act::Acquire(lock));
                    held.push(lock);
                }
            }
            _ => acts.extend(held.pop().map(Act::Release)),
        }
    }
    acts.extend(held.into_iter().rev().map(Act::Release));
    acts
}

prop_compose! {
    fn programs()(
        main in prop::collection::vec(any::<u8>(), 0..8),
        one in prop::collection::vec(any::<u8>(), 1..12),
        two in prop::collection::vec(any::<u8>(), 1..12),
        spawn in 0..3_usize,
        joins in 0..3_usize,
        after in prop::collection::vec(any::<u8>(), 0..2),
    ) -> Program {
        let mut first = body(&main, 5);
        first.insert(spawn.min(first.len()), Act::Spawn(2));
        first.insert(0, Act::Spawn(1));
        first.extend((1..=joins as u8).map(Act::Join));
        first.extend(body(&after, 1));
        Program { threads: vec![first, body(&one, 8), body(&two, 8)] }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn predictions_are_what_is_possible(
        program in programs(),
        choices in prop::collection::vec(any::<u8>(), 1..24),
    ) {
        if let Some(seen) = program.run(&choices) {
            check(&program, &seen).map_err(TestCaseError::fail)?;
        }
    }
}
