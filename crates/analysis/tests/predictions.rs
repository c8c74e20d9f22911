//! Predictions and schedules of small programs, compared with all orders that their threads
//! allow.
//!
//! A program is generated, raddle gets one of its orders as a trace, and the test enumerates all
//! orders: what raddle has a schedule for must be possible, its schedules must respect locks,
//! creation and join, and it must have a schedule for everything that is possible. Threads take
//! the same path in every order, as prediction assumes.

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
enum Action {
    Read(u8),
    Write(u8),
    Acquire(u8),
    Release(u8),
    Spawn(u8),
    Join(u8),
}

/// The actions of each thread, in order. The first thread creates the others.
#[derive(Clone, Debug)]
struct Program {
    threads: Vec<Vec<Action>>,
}

/// An action, by thread and position.
type Name = (usize, usize);

/// Number of actions performed, by thread.
type Place = [usize; N_THREADS];

const START: Place = [0; N_THREADS];

impl Program {
    fn action(&self, (thread, at): Name) -> Action {
        self.threads[thread][at]
    }

    /// Locks that a thread holds after `n` actions, with where it acquired them.
    fn held(&self, thread: usize, n: usize) -> Vec<(u8, usize)> {
        let mut held = Vec::new();
        for (at, action) in self.threads[thread][..n].iter().enumerate() {
            match action {
                Action::Acquire(lock) => held.push((*lock, at)),
                Action::Release(lock) => held.retain(|(other, _)| other != lock),
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
        let Some(action) = self.threads[thread].get(place[thread]) else { return false };
        let created =
            |child: usize| self.threads[0][..place[0]].contains(&Action::Spawn(child as u8));
        let begun = thread == 0 || created(thread);
        begun
            && match *action {
                Action::Acquire(lock) => self.holder(place, lock).is_none(),
                Action::Join(child) => {
                    let child = child as usize;
                    place[child] == self.threads[child].len()
                }
                _ => true,
            }
    }

    /// All states that can be reached if these actions happen in this order.
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

    /// States from which all threads can finish.
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

    /// An order, determined by these choices.
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
            let action = match self.action(name) {
                Action::Read(x) => format!("read x{x}"),
                Action::Write(x) => format!("write x{x}"),
                Action::Acquire(m) => format!("acquire m{m}"),
                Action::Release(m) => format!("release m{m}"),
                Action::Spawn(child) => format!("spawn T{child}"),
                Action::Join(child) => format!("join T{child}"),
            };
            let _ = writeln!(text, "{thread}.{at}: T{thread} {action}");
            if at + 1 == self.threads[thread].len() {
                let _ = writeln!(text, "T{thread} end");
            }
        }
        text
    }

    /// Whether the stretches respect locks, creation and join, and perform these actions in this
    /// order.
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
        match self.action(name) {
            Action::Read(x) => Some((x, false)),
            Action::Write(x) => Some((x, true)),
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

    /// Consecutive accesses of one thread: each with the last write of the same variable before
    /// it, and with the last read after that write.
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

    /// Orders that were not observed and should be predicted: races and atomicity violations.
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

    /// Lock cycles: where each thread acquired the lock that the previous one waits for.
    fn cycles(&self) -> BTreeSet<BTreeSet<Name>> {
        let mut cycles = BTreeSet::new();
        for place in self.reach(&[]) {
            let waits_for = |thread: usize| {
                let created = thread == 0
                    || self.threads[0][..place[0]].contains(&Action::Spawn(thread as u8));
                match self.threads[thread].get(place[thread]) {
                    Some(Action::Acquire(lock)) if created => self.holder(place, *lock),
                    _ => None,
                }
            };
            for start in 0..N_THREADS {
                let mut cycle = BTreeSet::new();
                let mut thread = start;
                while let Some((holder, at)) = waits_for(thread) {
                    if !cycle.insert((holder, at)) {
                        break;
                    }
                    thread = holder;
                    if thread == start {
                        cycles.insert(cycle);
                        break;
                    }
                }
            }
        }
        cycles
    }
}

/// raddle's predictions for a trace.
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

    /// The actions of each way to reach an anomaly, with its schedules.
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

/// Compares raddle's answers with all orders.
fn check(program: &Program, seen: &[Name]) -> Result<(), String> {
    let trace = program.trace(seen);
    let reading = Reading::new(&trace);
    let mut found: Vec<(bool, Vec<Name>)> = Vec::new();
    // Lock cycles whose threads can all get as far as the lock that the next one wants.
    let mut scheduled: BTreeSet<BTreeSet<Name>> = BTreeSet::new();
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
                AnomalyKind::MultiVariable => continue,
                AnomalyKind::Deadlock => {
                    if !schedules.is_empty() {
                        scheduled.insert(order.into_iter().collect());
                    }
                    continue;
                }
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
        // What every order has is not an anomaly.
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
    let cycles: BTreeSet<BTreeSet<_>> = deadlock::cycles(&reading.model)
        .iter()
        .map(|cycle| cycle.iter().map(|witness| reading.name(witness.pc)).collect())
        .collect();
    let possible = program.cycles();
    if let Some(missing) = possible.difference(&cycles).next() {
        return Err(format!("{trace}the cycle {missing:?} is possible and not predicted"));
    }
    // Whether the locks on the way allow it is decided when the schedule is made, as for others.
    if let Some(wrong) = scheduled.difference(&possible).next() {
        return Err(format!("{trace}the cycle {wrong:?} has a schedule and is impossible"));
    }
    Ok(())
}

/// The actions of one thread, from bytes: locks are released in reverse order.
fn body(bytes: &[u8], n_max: usize) -> Vec<Action> {
    let (mut actions, mut held) = (Vec::new(), Vec::new());
    for &byte in bytes {
        if actions.len() + held.len() >= n_max {
            break;
        }
        let which = byte / 8;
        match byte % 8 {
            0 | 1 => actions.push(Action::Read(which % 2)),
            2 | 3 => actions.push(Action::Write(which % 2)),
            4 => actions.push(Action::Write(2)),
            5 | 6 => {
                let lock = which % 3;
                if !held.contains(&lock) && actions.len() + held.len() + 3 <= n_max {
                    actions.push(Action::Acquire(lock));
                    held.push(lock);
                }
            }
            _ => actions.extend(held.pop().map(Action::Release)),
        }
    }
    actions.extend(held.into_iter().rev().map(Action::Release));
    actions
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
        first.insert(spawn.min(first.len()), Action::Spawn(2));
        first.insert(0, Action::Spawn(1));
        first.extend((1..=joins as u8).map(Action::Join));
        first.extend(body(&after, 1));
        Program { threads: vec![first, body(&one, 8), body(&two, 8)] }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        // Few programs deadlock under every order; otherwise too little would be tested.
        max_global_rejects: 300,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn predictions_are_what_is_possible(
        program in programs(),
        choices in prop::collection::vec(any::<u8>(), 1..24),
    ) {
        let seen = program.run(&choices);
        prop_assume!(seen.is_some(), "no order of this program comes to its end");
        check(&program, &seen.unwrap_or_default()).map_err(TestCaseError::fail)?;
    }
}
