//! Decisions, exhaustively on small programs: see [`super::play`].

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use raddle_trace::control::Policy as Code;
use raddle_trace::expiry::{Awaited, Expiry};
use raddle_trace::id::Site;
use raddle_trace::record::Switch;

use super::cycle::CYCLE_STEPS;
use super::follow::Follow;
use super::play::{By, End, Op, Play, ends, program};
use super::thread::{NEVER, Thread, Wait};
use super::{Decision, Item, Look, Model, Question, STEP_NS, Step, World};

const POLICIES: [Code; 4] = [Code::Random, Code::Pct, Code::Pos, Code::Rr];

/// How a program ends under a policy.
fn end(text: &str, policy: Code) -> End {
    Play::new(&program(text), By::Policy(policy, 1)).perform()
}

/// How a program ends under every policy.
fn check(text: &str, expected: End) {
    for policy in POLICIES {
        assert_eq!(end(text, policy), expected, "{policy:?}: {text}");
    }
}

/// All sequences of at most `n` operations on two locks in which a thread releases what it holds,
/// and nothing else, and holds nothing at the end.
fn lock_sequences(n: usize) -> Vec<Vec<Op>> {
    fn extend(so_far: &mut Vec<Op>, held: &mut Vec<u64>, n: usize, all: &mut Vec<Vec<Op>>) {
        if held.is_empty() && !so_far.is_empty() {
            all.push(so_far.clone());
        }
        if so_far.len() == n {
            return;
        }
        for lock in [1, 2] {
            let op = match held.iter().position(|&other| other == lock) {
                Some(at) => {
                    held.remove(at);
                    Op::Release(lock)
                }
                None => {
                    held.push(lock);
                    Op::Acquire(lock)
                }
            };
            so_far.push(op);
            extend(so_far, held, n, all);
            so_far.pop();
            match op {
                Op::Release(_) => held.push(lock),
                _ => held.retain(|&other| other != lock),
            }
        }
    }
    let mut all = Vec::new();
    extend(&mut Vec::new(), &mut Vec::new(), n, &mut all);
    all
}

/// Every order of the operations of two threads of these lengths, as who performs each.
fn orders(lengths: [usize; 2]) -> Vec<Vec<u32>> {
    match lengths {
        [0, 0] => alloc::vec![Vec::new()],
        [a, b] => {
            let mut all = Vec::new();
            for (who, left) in [(0, (a > 0).then(|| [a - 1, b])), (1, (b > 0).then(|| [a, b - 1]))]
            {
                for mut order in left.map_or(Vec::new(), orders) {
                    order.insert(0, who);
                    all.push(order);
                }
            }
            all
        }
    }
}

/// What the model decides is what some order does, and all that orders do is decided by some seed.
#[test]
fn two_threads_and_two_locks_end_as_their_orders_do() {
    let sequences = lock_sequences(4);
    assert_eq!(sequences.len(), 10);
    for first in &sequences {
        for second in &sequences {
            let program = [first.clone(), second.clone()];
            let expected = ends(&program);
            let mut seen = BTreeSet::new();
            for policy in [Code::Random, Code::Pos] {
                for seed in 0..40 {
                    seen.insert(Play::new(&program, By::Policy(policy, seed)).perform());
                }
            }
            assert_eq!(seen, expected, "{program:?}");
        }
    }
}

/// A schedule is followed exactly if the locks permit its order.
#[test]
fn an_order_is_followed_if_locks_permit_it() {
    let sequences = lock_sequences(4);
    let mut n_followed = 0;
    for first in &sequences {
        for second in &sequences {
            let program = [first.clone(), second.clone()];
            for order in orders([first.len(), second.len()]) {
                let mut held: Vec<u64> = Vec::new();
                let mut at = [0, 0];
                let is_permitted = order.iter().all(|&who| {
                    let op = program[who as usize][at[who as usize]];
                    at[who as usize] += 1;
                    match op {
                        Op::Acquire(lock) if held.contains(&lock) => false,
                        Op::Acquire(lock) => {
                            held.push(lock);
                            true
                        }
                        Op::Release(lock) => {
                            held.retain(|&other| other != lock);
                            true
                        }
                        _ => true,
                    }
                });
                let step = |&thread: &u32| Step { thread, count: 1, site: Site::UNKNOWN };
                let schedule: Vec<Item> = order.iter().map(step).map(Item::Stretch).collect();
                // The main thread has the turn at the start, whatever the schedule says.
                let starts = schedule
                    .first()
                    .is_some_and(|item| matches!(item, Item::Stretch(step) if step.thread == 0));
                let mut play = Play::new(&program, By::Schedule(schedule));
                let end = play.perform();
                let performed: Vec<u32> = play.performed.iter().map(|&(who, _)| who).collect();
                let is_followed = end == End::Finished && performed == order;
                assert_eq!(is_followed, is_permitted && starts, "{program:?} {order:?}: {end:?}");
                n_followed += usize::from(is_followed);
            }
        }
    }
    assert!(n_followed > 400, "{n_followed}");
}

/// What was done once can be done again.
#[test]
fn the_schedule_of_a_run_repeats_it() {
    let programs = [
        "+a +b -b -a\n+b +a -a -b",
        "+m ?c -m\n+m !c -m",
        "+m ?c -m\n+m ?c -m\n+m !c -m +m !c -m",
        "sleep:100 +a -a\n+a sleep:50 -a\nwork:3 sleep:100 work:2",
        "read +a -a\n+a write -a\nwork:5",
        "spin:3 +a -a\n+a spin:2 -a",
    ];
    for text in programs {
        for policy in POLICIES {
            for seed in 0..50 {
                let program = program(text);
                let mut first = Play::new(&program, By::Policy(policy, seed));
                let end = first.perform();
                let mut schedule = first.schedule.clone();
                // Whoever had the turn last runs to the end.
                let last = first.performed.last().map_or(0, |&(who, _)| who);
                let rest = Step { thread: last, count: u64::MAX, site: Site::UNKNOWN };
                if !matches!(schedule.last(), Some(Item::Stretch(step)) if step.thread == last) {
                    schedule.push(Item::Stretch(rest));
                }
                let mut second = Play::new(&program, By::Schedule(schedule));
                let again = second.perform();
                assert_eq!(
                    (end, &first.performed),
                    (again, &second.performed),
                    "{text}, {policy:?}, {seed}"
                );
            }
        }
    }
}

/// A wait that comes after the only signal waits forever; no other does.
#[test]
fn a_wake_up_is_lost_exactly_if_it_comes_first() {
    let text = "+m ?c -m\n+m !c -m";
    let program = program(text);
    assert_eq!(ends(&program), BTreeSet::from([End::Finished, End::Stuck]));
    for policy in POLICIES {
        for seed in 0..100 {
            let mut play = Play::new(&program, By::Policy(policy, seed));
            let end = play.perform();
            // The wait is performed when it is over, so one that was in time is after the signal.
            let is_woken = play.performed.contains(&(0, Op::Wait(b'c'.into())));
            assert_eq!(end, if is_woken { End::Finished } else { End::Stuck });
        }
    }
}

#[test]
fn a_signal_wakes_one_waiter() {
    let text = "+m ?c -m\n+m ?c -m\nsleep:1000 +m !c -m";
    check(text, End::Stuck);
    check("+m ?c -m\n+m ?c -m\nsleep:1000 +m !c !c -m", End::Finished);
}

#[test]
fn a_cycle_of_all_threads_is_found_at_once() {
    let text = "+a sleep:100 +b -b -a\n+b sleep:100 +a -a -b";
    check(text, End::Stuck);
    check("+a +a -a", End::Stuck);
    check("join:1\n+a join:0", End::Stuck);
}

/// Two threads wait for each other; a third goes on for so many steps.
fn beside_a_cycle(rest: &str) -> alloc::string::String {
    alloc::format!("+a sleep:100 +b -b -a\n+b sleep:100 +a -a -b\nsleep:1000 {rest}")
}

#[test]
fn a_thread_beside_a_cycle_may_end_the_program() {
    check(&beside_a_cycle("work:500 exit"), End::Finished);
    check(&beside_a_cycle(&alloc::format!("work:{} exit", CYCLE_STEPS - 100)), End::Finished);
}

#[test]
fn a_cycle_that_stands_for_long_is_a_deadlock() {
    check(&beside_a_cycle(&alloc::format!("work:{} exit", CYCLE_STEPS + 100)), End::Deadlock);
    check(&beside_a_cycle("work:500"), End::Stuck);
}

/// A schedule that was computed may hold back the thread that ends the program.
#[test]
fn steps_beside_a_cycle_count_from_the_end_of_the_schedule() {
    let text = alloc::format!("+a +b -b -a\n+b +a -a -b\nwork:{} exit", 2 * CYCLE_STEPS);
    let step = |thread, count| Item::Stretch(Step { thread, count, site: Site::UNKNOWN });
    let n = CYCLE_STEPS + CYCLE_STEPS / 2;
    let schedule = alloc::vec![step(0, 1), step(1, 1), step(2, n)];
    let mut play = Play::new(&program(&text), By::Schedule(schedule));
    assert_eq!(play.perform(), End::Finished);
    assert!(play.model.cycle.is_some(), "no cycle was closed");
}

/// The last stretch of a schedule has no end at which the count could begin.
#[test]
fn steps_beside_a_cycle_count_in_the_last_stretch() {
    let text = alloc::format!("+a +b -b -a\n+b +a -a -b\nwork:{} exit", 3 * CYCLE_STEPS);
    let step = |thread, count| Item::Stretch(Step { thread, count, site: Site::UNKNOWN });
    let schedule = alloc::vec![step(0, 1), step(1, 1), step(2, 500), step(2, u64::MAX)];
    let mut play = Play::new(&program(&text), By::Schedule(schedule));
    assert_eq!(play.perform(), End::Deadlock);
    assert!(play.model.steps < 2 * CYCLE_STEPS, "{} steps", play.model.steps);
}

#[test]
fn time_jumps_to_the_earliest_deadline() {
    for policy in POLICIES {
        let mut play =
            Play::new(&program("sleep:5000\nsleep:300\nsleep:70000"), By::Policy(policy, 3));
        assert_eq!(play.perform(), End::Finished);
        let order: Vec<u32> = play.performed.iter().map(|&(who, _)| who).collect();
        assert_eq!(order, [1, 0, 2]);
        assert_eq!(play.jumps.len(), 3, "{:?}", play.jumps);
        assert!(play.jumps.is_sorted());
    }
}

/// Whether a thread that waits until a deadline continues before a busy thread has done its work.
fn expires_beside(wait: &str, n_steps: u64, policy: Code) -> bool {
    let text = alloc::format!("{wait} exit\nwork:{n_steps}");
    let mut play = Play::new(&program(&text), By::Policy(policy, 3));
    assert_eq!(play.perform(), End::Finished);
    let busy = play.performed.iter().position(|&op| op == (1, Op::Work(n_steps)));
    let woken = play.performed.iter().position(|&(who, _)| who == 0);
    assert!(woken.is_some(), "{policy:?}");
    busy.is_none() || woken < busy
}

/// A deadline does not expire while a thread that can run has not had its share of steps.
#[test]
fn time_jumps_beside_a_busy_thread_when_it_had_its_share() {
    for (wait, share) in [
        ("sleep:1000000", Expiry::STEPS / 10),
        ("sleep:1000000000", 1_000_000),
        ("timed:1000000", Expiry::STEPS),
        ("timed:100000000", 1_000_000),
    ] {
        for policy in POLICIES {
            assert!(!expires_beside(wait, share - 10, policy), "{wait} {policy:?}");
            // Under `rr` a busy thread goes on all the same, and under `pct` for a while.
            let is_preempted = policy != Code::Rr;
            let many = 5 * share.max(Expiry::STEPS);
            assert!(expires_beside(wait, many, policy) || !is_preempted, "{wait} {policy:?}");
        }
    }
}

/// What a thread has done before a deadline was set does not count.
#[test]
fn a_deadline_that_was_just_set_does_not_expire() {
    let before = 4 * Expiry::STEPS;
    let text = alloc::format!(
        "work:{before} +a timed:1000000 exit\nwork:{before} +a -a work:{}",
        Expiry::STEPS - 10
    );
    for policy in POLICIES {
        for seed in 0..20 {
            let mut play = Play::new(&program(&text), By::Policy(policy, seed));
            play.perform();
            let position = |op| play.performed.iter().position(|&performed| performed == op);
            let last = position((1, Op::Work(Expiry::STEPS - 10)));
            let timed = position((0, Op::TimedWait(1_000_000)));
            // Otherwise the other thread waits for the lock.
            if position((1, Op::Release(b'a'.into()))).is_some() {
                assert!(last < timed || timed.is_none(), "{policy:?} {seed}: {:?}", play.performed);
            }
        }
    }
}

/// Who sleeps wakes up, while a schedule holds back a thread that could run.
fn late(sleep_ns: u64, expiry: Expiry) -> (End, Option<(u32, u64)>) {
    let text = alloc::format!("work:1\nsleep:{sleep_ns} work:1");
    let step = |thread, count| Item::Stretch(Step { thread, count, site: Site::UNKNOWN });
    let schedule = alloc::vec![step(0, 0), step(1, 1), step(1, 1), step(0, 1)];
    let mut play = Play::new(&program(&text), By::Schedule(schedule));
    play.model.expiry = expiry;
    (play.perform(), play.model.latest)
}

#[test]
fn a_schedule_makes_threads_late_only_as_far_as_it_may() {
    let ms = 1_000_000;
    for (sleep_ns, expiry, may) in [
        (5 * ms, Expiry::IDLE, false),
        (5 * ms, Expiry::FAIR, true),
        (500 * ms, Expiry::FAIR, false),
        (500 * ms, Expiry::LATE, true),
        (20_000 * ms, Expiry::LATE, false),
        (20_000 * ms, Expiry::ANY, true),
    ] {
        let (end, latest) = late(sleep_ns, expiry);
        assert_eq!(end == End::Finished, may, "{sleep_ns} {expiry:?}: {end:?}");
        let is_late = latest.is_some_and(|(thread, ns)| thread == 0 && sleep_ns - ns < ms);
        assert_eq!(is_late, may, "{sleep_ns} {expiry:?}: {latest:?}");
    }
}

/// Delays before each of a few steps are one long delay.
#[test]
fn delays_of_a_thread_add_up_until_it_had_its_share() {
    let ms = 1_000_000;
    let share = Expiry::LATE.share(600 * ms, Awaited::Sleep);
    for (n_between, may) in [(1, false), (Expiry::STEPS, false), (share, true)] {
        let text =
            alloc::format!("work:{}\nsleep:{s} sleep:{s} work:1", n_between + 1, s = 600 * ms);
        let step = |thread, count| Item::Stretch(Step { thread, count, site: Site::UNKNOWN });
        let schedule = alloc::vec![
            step(0, 0),
            step(1, 1),
            step(0, n_between),
            step(1, 1),
            step(1, 1),
            step(0, 1)
        ];
        let mut play = Play::new(&program(&text), By::Schedule(schedule));
        play.model.expiry = Expiry::LATE;
        let end = play.perform();
        assert_eq!(end == End::Finished, may, "{n_between}: {end:?}, {:?}", play.model.latest);
    }
}

/// By itself time makes nobody late, whatever the policy, unless it may expire early.
#[test]
fn only_early_deadlines_make_threads_late() {
    let text = alloc::format!("sleep:20000000 exit\nwork:{}", 2 * Expiry::STEPS);
    for policy in POLICIES {
        for (expiry, may) in [(Expiry::IDLE, false), (Expiry::FAIR, false), (Expiry::ANY, true)] {
            let is_late = |seed| {
                let mut play = Play::new(&program(&text), By::Policy(policy, seed));
                play.model.expiry = expiry;
                assert_eq!(play.perform(), End::Finished);
                assert!(expiry != Expiry::IDLE || play.model.steps > 2 * Expiry::STEPS);
                play.model.latest.is_some()
            };
            assert_eq!((0..64).any(is_late), may, "{policy:?} {expiry:?}");
        }
    }
}

/// Locks and channels yield a few times before they block.
#[test]
fn a_thread_that_yields_is_late_all_the_same() {
    let text = "sleep:1000 +m ?c -m\nsleep:60000000000 exit\nspin:50 work:1000 +m !c -m exit";
    for policy in POLICIES {
        for seed in 0..64 {
            let mut play = Play::new(&program(text), By::Policy(policy, seed));
            play.model.expiry = Expiry::LATE;
            assert_eq!(play.perform(), End::Finished);
            assert!(!play.performed.contains(&(1, Op::Exit)), "{policy:?} {seed}");
        }
    }
}

/// A thread that does nothing but yield does not keep time from passing, and is not late.
#[test]
fn a_thread_that_only_yields_is_not_late() {
    for policy in POLICIES {
        for expiry in [Expiry::IDLE, Expiry::FAIR, Expiry::LATE] {
            let mut play =
                Play::new(&program("sleep:60000000000 exit\nspin:5000"), By::Policy(policy, 1));
            play.model.expiry = expiry;
            assert_eq!(play.perform(), End::Finished);
            assert!(play.performed.contains(&(0, Op::Exit)), "{policy:?} {expiry:?}");
            assert_eq!(play.model.latest, None, "{policy:?} {expiry:?}");
        }
    }
}

/// Where time jumped by little in the run that a schedule was made of, it may not jump by much.
#[test]
fn a_jump_that_a_schedule_marks_makes_threads_late_only_as_far_as_it_may() {
    let step = |thread, count| Item::Stretch(Step { thread, count, site: Site::UNKNOWN });
    let marked = |sleep_ns: u64| {
        let text = alloc::format!("work:10\nsleep:{sleep_ns} exit");
        let schedule = alloc::vec![step(0, 5), step(0, 0), step(1, 1)];
        Play::new(&program(&text), By::Schedule(schedule)).perform()
    };
    assert_eq!(marked(5_000_000), End::Finished);
    assert_eq!(marked(60_000_000_000), End::Departed);
}

/// Time also passes with steps alone.
#[test]
fn a_short_sleep_ends_without_a_jump() {
    let text = alloc::format!("sleep:{} exit\nwork:{}", 1_000 * STEP_NS, 50_000);
    for policy in POLICIES {
        let mut play = Play::new(&program(&text), By::Policy(policy, 5));
        assert_eq!(play.perform(), End::Finished);
        assert!(play.jumps.is_empty(), "{:?}", play.jumps);
    }
}

#[test]
fn threads_that_only_spin_are_a_livelock() {
    let text = "+a spin:100000000 -a\nspin:100000000 +a -a";
    for policy in POLICIES {
        let mut play = Play::new(&program(text), By::Policy(policy, 1));
        play.model.idle_max = 100_000;
        assert_eq!(play.perform(), End::Livelock, "{policy:?}");
    }
}

/// A thread that spins lets others work, under every policy.
#[test]
fn a_thread_that_spins_beside_work_is_none() {
    check("spin:20000 exit\nwork:200000", End::Finished);
}

#[test]
fn a_run_of_too_many_steps_gets_a_second_chance() {
    let too_long = |n: u64| {
        let mut play =
            Play::new(&program(&alloc::format!("work:{n}\nwork:{n}")), By::Policy(Code::Random, 1));
        play.model.steps_max = 10_000;
        play.perform()
    };
    assert_eq!(too_long(9_000), End::Finished);
    assert_eq!(too_long(50_000), End::Endless);
}

#[test]
fn input_may_still_come_from_outside() {
    check("read", End::Waiting);
    check("read\nwrite", End::Finished);
    check("outside", End::Idle);
}

/// A deadline beside input gives the outside a moment, then time jumps.
#[test]
fn a_deadline_grants_input_a_moment() {
    let mut play = Play::new(&program("read\nsleep:1000 write"), By::Policy(Code::Rr, 0));
    assert_eq!(play.perform(), End::Finished);
    assert!(matches!(play.looks[..], [(Look::Input, ns)] if ns < NEVER), "{:?}", play.looks);
}

/// A schedule that wants a thread to read what a thread that it holds back has yet to write is
/// abandoned after a while, not waited for forever.
#[test]
fn a_schedule_does_not_wait_for_a_thread_that_it_holds_back() {
    let step = |thread, count| Item::Stretch(Step { thread, count, site: Site::UNKNOWN });
    let schedule = alloc::vec![step(0, 1), step(1, 1), step(0, 1)];
    let look = |is_alone| {
        let program = program("work:1 write\nread");
        let mut play = Play::new(&program, By::Schedule(schedule.clone()));
        play.model.is_alone = is_alone;
        assert_eq!(play.perform(), End::Departed);
        match play.looks[..] {
            [(Look::Input, ns)] => ns,
            _ => panic!("{:?}", play.looks),
        }
    };
    assert!(look(false) < NEVER);
    assert!(look(true) < 10_000_000, "nobody outside has ever written");
}

/// The surroundings of a schedule in which thread 1 runs after thread 0.
struct InTurn;

impl World for InTurn {
    fn word(&self, _: u64) -> u32 {
        0
    }

    fn any_ready(&self, _: u64, _: u32) -> bool {
        false
    }

    fn is_inside(&self, _: u64, _: u32) -> bool {
        false
    }

    fn has_child_changed(&self, _: u64) -> bool {
        false
    }

    fn has_helpers(&self) -> bool {
        false
    }

    fn has_children(&self) -> bool {
        false
    }

    fn schedule_item(&self, index: u64) -> Option<Item> {
        let step = Step { thread: index as u32, count: 1, site: Site::UNKNOWN };
        (index < 2).then_some(Item::Stretch(step))
    }

    fn site(&self, _: u64) -> Site {
        Site::UNKNOWN
    }
}

/// A deadline that has passed, of a thread that the schedule does not want yet, does not keep it from
/// waiting for a timer.
#[test]
fn a_schedule_waits_for_a_timer_beside_a_deadline_that_has_passed() {
    let mut model = Model::new();
    for id in 0..2 {
        model.threads.push(Thread::new((0, 0)));
        model.make_live(id);
    }
    (model.threads[0].wait, model.threads[0].deadline) = (Wait::Sleep, 5);
    model.threads[1].wait = Wait::Timer;
    (model.clock, model.timer) = (10, Some(30));
    model.follow = Some(Follow::new(false, &InTurn));
    let mut question = Question::new(None, Switch::Blocked, 0);
    let decision = model.decide(&mut question, &InTurn);
    assert_eq!(decision, Decision::Jump { ns: 20, marked: false });
    model.n_expired = 1;
    let decision = model.decide(&mut question, &InTurn);
    assert_eq!(decision, Decision::Run(1));
}

#[test]
fn pipes_inside_that_nobody_writes_to_are_a_deadlock() {
    check("<p", End::Stuck);
    check("<p >q\n<q >p", End::Stuck);
    check(">q <p\n<q >p", End::Finished);
    check("+a <p -a\n+a >p -a\nsleep:100 >p", End::Finished);
    // Others wait for the thread that waits for input, or for a lock that it holds.
    check("join:1\n+a <p\nsleep:10 +a", End::Stuck);
}

/// All short programs of two threads with two pipes end as one of their orders does: nobody waits
/// for somebody outside.
#[test]
fn two_threads_and_two_pipes_end_as_their_orders_do() {
    let ops = program("<p >p <q >q").remove(0);
    let mut sequences: Vec<Vec<Op>> = alloc::vec![Vec::new()];
    for n in 0..3 {
        let longest: Vec<_> = sequences.iter().filter(|ops| ops.len() == n).cloned().collect();
        for sequence in longest {
            sequences.extend(ops.iter().map(|&op| [&sequence[..], &[op]].concat()));
        }
    }
    let mut n_stuck = 0;
    for one in &sequences[1..] {
        for two in &sequences[1..] {
            let program = [one.clone(), two.clone()];
            let ends = ends(&program);
            for policy in POLICIES {
                let end = Play::new(&program, By::Policy(policy, 1)).perform();
                assert!(ends.contains(&end), "{policy:?}: {end:?}, not {ends:?}: {program:?}");
                n_stuck += usize::from(end == End::Stuck);
            }
        }
    }
    assert!(n_stuck > 1000, "{n_stuck}");
}

/// One end outside, one child process, or asynchronous I/O is enough to wait.
#[test]
fn whoever_may_be_helped_from_outside_is_waited_for() {
    check("<p >q\n<q >p\nread", End::Waiting);
    check("<p >q\n<q >p\noutside", End::Idle);
    for policy in POLICIES {
        let play = || Play::new(&program("<p >q\n<q >p"), By::Policy(policy, 1));
        let mut beside_child = play();
        beside_child.model.n_processes = 1;
        assert_eq!(beside_child.perform(), End::Waiting);
        assert_eq!(play().with_helpers().perform(), End::Waiting);
        assert_eq!(play().perform(), End::Stuck);
    }
}

/// Nobody outside needs a moment if nobody outside can write.
#[test]
fn time_jumps_at_once_beside_pipes_inside() {
    let mut play = Play::new(&program("<p\nsleep:1000 >p"), By::Policy(Code::Rr, 0));
    assert_eq!(play.perform(), End::Finished);
    assert!(play.looks.is_empty(), "{:?}", play.looks);
}

/// A schedule that wants a thread to read what nobody can have written is abandoned at once. In its
/// last stretch, the run ends as it would without it.
#[test]
fn a_schedule_does_not_wait_for_pipes_inside() {
    let step = |thread, count| Item::Stretch(Step { thread, count, site: Site::UNKNOWN });
    let schedule = alloc::vec![step(0, 1), step(1, 1), step(0, 1)];
    let mut play = Play::new(&program("work:1 >p\n<p"), By::Schedule(schedule));
    assert_eq!(play.perform(), End::Departed);
    let schedule = alloc::vec![step(0, 1), step(1, u64::MAX)];
    let mut stuck = Play::new(&program("work:1 <p\n<p"), By::Schedule(schedule));
    assert_eq!(stuck.perform(), End::Stuck);
    assert!(play.looks.is_empty() && stuck.looks.is_empty());
}

/// Programs with child processes that work, sleep alone, or wait to be told.
const WITH_CHILDREN: [&str; 8] = [
    "busy:1 work:3 await:1 work:2\n+a work:2 -a work:9",
    "busy:1 busy:2 await:1 +a -a\nwork:5 await:2 +a work:2 -a",
    "busy:1 hear:1 +a -a await:1\nwork:4 +a -a hear:1 work:1",
    "told:1 await:1 +a -a\nwork:6 tell:1 +a -a",
    "told:1 busy:2 await:1 +a -a\nawait:2 tell:1 +a -a\nwork:7 +a -a",
    "busy:1 spin:90 await:1\nhear:1 work:3",
    "busy:1 sleep:5000 await:1\nhear:1 sleep:300 work:4\nsleep:1000 work:2",
    "asleep:1 await:1 work:2 +a -a\n+a work:3 -a",
];

/// When a child that works ends makes no difference, to anything.
#[test]
fn the_speed_of_children_does_not_matter() {
    for text in WITH_CHILDREN {
        let program = program(text);
        for policy in POLICIES {
            for seed in 0..20 {
                let play = |n_looks: u32| {
                    let mut play = Play::new(&program, By::Policy(policy, seed)).speed(n_looks);
                    let end = play.perform();
                    (end, play.performed, play.jumps, play.schedule)
                };
                let slow = play(u32::MAX);
                assert_eq!(slow.0, End::Finished, "{text}, {policy:?}, {seed}");
                for n_looks in 0..12 {
                    assert_eq!(play(n_looks), slow, "{text}, {policy:?}, {seed}, {n_looks}");
                }
            }
        }
    }
}

/// And what was done once can be done again, with children of any speed.
#[test]
fn the_schedule_of_a_run_with_children_repeats_it() {
    for text in WITH_CHILDREN {
        let program = program(text);
        for policy in POLICIES {
            for seed in 0..20 {
                let mut first = Play::new(&program, By::Policy(policy, seed)).speed(3);
                assert_eq!(first.perform(), End::Finished);
                let last = first.performed.last().map_or(0, |&(who, _)| who);
                let rest = Step { thread: last, count: u64::MAX, site: Site::UNKNOWN };
                let mut schedule = first.schedule.clone();
                if !matches!(schedule.last(), Some(Item::Stretch(step)) if step.thread == last) {
                    schedule.push(Item::Stretch(rest));
                }
                for n_looks in [0, 1, 5, u32::MAX] {
                    let by = By::Schedule(schedule.clone());
                    let mut second = Play::new(&program, by).speed(n_looks);
                    let again = second.perform();
                    assert_eq!(
                        (End::Finished, &first.performed),
                        (again, &second.performed),
                        "{text}, {policy:?}, {seed}, {n_looks}"
                    );
                }
            }
        }
    }
}

/// Time does not jump while a child works, and not before one that waits by the clock either.
#[test]
fn a_child_that_works_comes_before_the_next_deadline() {
    for policy in POLICIES {
        let mut play = Play::new(&program("busy:1 sleep:1000\nawait:1"), By::Policy(policy, 1));
        assert_eq!(play.perform(), End::Finished);
        assert_eq!(play.performed.last(), Some(&(0, Op::Sleep(1000))), "{policy:?}");
        assert!(play.looks.is_empty(), "{:?}", play.looks);
    }
}

/// A child that waits by the clock is granted the real time to the deadline, which then decides;
/// without a deadline only how long it takes depends on it.
#[test]
fn time_passes_as_real_time_while_a_child_sleeps() {
    let looks = |text: &str| {
        let mut play = Play::new(&program(text), By::Policy(Code::Rr, 0));
        assert_eq!(play.perform(), End::Finished, "{text}");
        play.looks
    };
    let looked = looks("asleep:1 sleep:1000\nawait:1");
    assert!(
        matches!(looked[..], [(Look::Peers { decides: true }, ns)] if ns <= 1000),
        "{looked:?}"
    );
    assert_eq!(looks("asleep:1 await:1\n+a -a"), [(Look::Peers { decides: false }, NEVER)]);
    let two = looks("asleep:1 asleep:2 await:1\nawait:2");
    assert_eq!(two, [(Look::Peers { decides: true }, NEVER)]);
}

/// Children that wait for us do not hold up time, and are no help to threads that wait for each
/// other.
#[test]
fn children_that_wait_for_us_change_nothing() {
    let mut play =
        Play::new(&program("told:1 sleep:1000 tell:1\nawait:1"), By::Policy(Code::Rr, 0));
    assert_eq!(play.perform(), End::Finished);
    assert!(play.looks.is_empty(), "{:?}", play.looks);
    check("told:1 +a sleep:100 +b -b -a\n+b sleep:100 +a -a -b", End::Stuck);
    // Nobody tells it, but somebody outside might.
    check("told:1 await:1", End::Waiting);
}
