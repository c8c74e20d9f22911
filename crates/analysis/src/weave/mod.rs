//! Schedules that make events happen in a given order.
//!
//! PENELOPE's three regions and PECAN's moving of outermost locks, combined: threads run as
//! recorded, except those that must not get ahead, until the first event of the order has
//! happened. Then each further event is *pulled*: its thread runs up to it, and whatever it has
//! to wait for on the way (the release of a lock, a wake-up, the end of a thread) is pulled
//! first. If that would make a thread pass its own event of the order, the attempt fails and
//! another [`Hold`] is tried.
//!
//! Where a thread waits for its event decides which critical sections can swap: at its last
//! position without a lock, so that others can use those locks meanwhile (the lock moves with the
//! event that it protects); or right before the event.
//!
//! This misses orders in which threads have to wait elsewhere: a thread that creates another one
//! under a lock, or two that exchange several critical sections on their way. [`Hold::Anywhere`]
//! searches for those. It tries all orders of what threads do between two synchronization
//! operations, blocking threads first, up to [`STATES_MAX`] states from the positions before the
//! events and as many from the start. In a small trace this is complete (a test compares it with
//! all orders); in a large one it finds what is near.
//!
//! Values are not considered: a thread may take another path under a new order. The run that
//! follows the schedule detects that.

mod starts;

use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::run::Run;
use raddle_trace::schedule::{Schedule, Step};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::Model;
use crate::skeleton::{Stretch, SyncKind};
use crate::starts::Starts;
use crate::stop::is_requested;
use crate::witness::Witness;

/// Where threads wait for their event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// At the last position without a lock.
    LockFree,
    /// Right before the event.
    Event,
    /// Like `LockFree`, but the first event's thread also stops at its last position without a
    /// lock until the others have reached theirs.
    AllLockFree,
    /// Like `AllLockFree`, until the second event's thread is right before its event.
    SecondFirst,
    /// Wherever a search finds a solution. Expensive, so tried last.
    Anywhere,
}

/// Maximum number of states that a search visits.
pub const STATES_MAX: usize = 4096;

impl Hold {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 5] =
        [Self::LockFree, Self::AllLockFree, Self::Event, Self::SecondFirst, Self::Anywhere];
}

/// Why there is no such schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The thread that could not continue.
    pub thread: ThreadId,
    /// Its position, in steps.
    pub at: u64,
}

/// Converts stretches to a schedule that the runtime follows.
#[must_use]
pub fn schedule(model: &Model, stretches: &[Stretch], run: &Run) -> Schedule {
    let choices = model.skeleton.choices.iter().map(|&choose| Step::Choose { choose });
    let runs = stretches.iter().map(|stretch| Step::Run {
        thread: stretch.thread,
        count: stretch.to - stretch.from,
        site: match stretch.stopped_at {
            Pc(0) => Site::UNKNOWN,
            pc => run.site(pc),
        },
    });
    Schedule { steps: choices.chain(runs).collect() }
}

/// The stretches that make these events happen in this order, through the last one. Stuck if it is
/// stopped.
pub fn weave(model: &Model, order: &[Witness], hold: Hold) -> Result<Vec<Stretch>, Stuck> {
    let mut weaving = Weaving::new(model);
    let Some((first, rest)) = order.split_first() else { return Ok(Vec::new()) };
    let lock_free = |event: &Witness| {
        model.skeleton.lines[event.thread.0 as usize]
            .lock_free_before(event.at, |lock| !model.words.is_other(lock))
    };
    // No thread gets ahead of its next event.
    for event in rest.iter().rev() {
        weaving.caps[event.thread.0 as usize] = match hold {
            Hold::LockFree | Hold::AllLockFree | Hold::Anywhere => lock_free(event),
            Hold::Event | Hold::SecondFirst => event.at,
        };
    }
    match hold {
        Hold::LockFree | Hold::Event => {
            weaving.caps[first.thread.0 as usize] = first.at;
            weaving.walk(first.thread, first.at);
        }
        Hold::AllLockFree | Hold::SecondFirst => {
            let at = lock_free(first);
            weaving.caps[first.thread.0 as usize] = at;
            weaving.walk(first.thread, at);
            if let Some(second) = rest.iter().find(|event| event.thread != first.thread) {
                weaving.pull(second.thread, weaving.caps[second.thread.0 as usize])?;
            }
        }
        Hold::Anywhere => {
            let at = lock_free(first);
            weaving.caps[first.thread.0 as usize] = at;
            weaving.walk(first.thread, at);
            weaving.caps.fill(u64::MAX);
            return search(weaving, order).or_else(|_| search(Weaving::new(model), order));
        }
    }
    for (at, event) in order.iter().enumerate() {
        for thread in 0..weaving.caps.len() {
            let next = order[at..].iter().find(|next| next.thread.0 as usize == thread);
            weaving.caps[thread] = next.map_or(u64::MAX, |next| next.at);
        }
        weaving.caps[event.thread.0 as usize] = event.at + 1;
        weaving.pull(event.thread, event.at)?;
        weaving.mark(event);
        weaving.pull(event.thread, event.at + 1)?;
    }
    Ok(weaving.stretches)
}

/// Depth-first search from the threads' current positions.
fn search(from: Weaving<'_>, order: &[Witness]) -> Result<Vec<Stretch>, Stuck> {
    let mut seen = FxHashSet::default();
    let mut moves = Vec::new();
    let mut open = vec![from];
    let mut stuck = Stuck { thread: order[0].thread, at: 0 };
    while let Some(mut weaving) = open.pop() {
        let Some(next) = order.iter().find(|event| !weaving.has_happened(event)) else {
            return Ok(weaving.stretches);
        };
        if !seen.insert(weaving.done.clone()) {
            continue;
        }
        stuck = Stuck { thread: next.thread, at: weaving.done[next.thread.0 as usize] };
        if seen.len() > STATES_MAX || is_requested() {
            break;
        }
        for thread in 0..weaving.done.len() {
            let own = order
                .iter()
                .find(|event| event.thread.0 as usize == thread && !weaving.has_happened(event));
            weaving.caps[thread] = match own {
                Some(own) if own == next => own.at + 1,
                Some(own) => own.at,
                None => u64::MAX,
            };
        }
        // Threads that block the next event first, then all others; pushed in reverse.
        moves.clear();
        let mut thread = next.thread;
        while !moves.contains(&thread) {
            moves.push(thread);
            match weaving.in_the_way(thread) {
                Some(other) => thread = other,
                None => break,
            }
        }
        moves.reverse();
        let all = (0..weaving.done.len() as u32).map(ThreadId);
        let others = all.filter(|other| !moves.contains(other)).collect::<Vec<_>>();
        for &thread in others.iter().rev().chain(moves.iter().rev()) {
            let before = weaving.done[thread.0 as usize];
            let mut moved = weaving.clone();
            moved.go_on(thread, next);
            if moved.done[thread.0 as usize] > before {
                open.push(moved);
            }
        }
    }
    Err(stuck)
}

/// The state of all threads while a schedule is made.
#[derive(Clone)]
struct Weaving<'a> {
    model: &'a Model,
    /// Steps performed, by thread.
    done: Vec<u64>,
    /// Number of synchronization operations performed, by thread.
    n_syncs: Vec<usize>,
    /// Maximum number of steps, by thread.
    caps: Vec<u64>,
    /// Whether the thread is being pulled, by thread.
    pulled: Vec<bool>,
    owners: FxHashMap<Addr, Vec<(ThreadId, bool)>>,
    stretches: Vec<Stretch>,
}

/// Why a thread cannot continue.
enum Obstacle {
    Lock { lock: Addr, holder: ThreadId },
    After { thread: ThreadId, steps: u64, soft: bool },
}

impl<'a> Weaving<'a> {
    fn new(model: &'a Model) -> Self {
        let n = model.skeleton.lines.len();
        Self {
            model,
            done: vec![0; n],
            n_syncs: vec![0; n],
            caps: vec![u64::MAX; n],
            pulled: vec![false; n],
            owners: FxHashMap::default(),
            stretches: Vec::new(),
        }
    }

    /// Runs threads as recorded, skipping those that are blocked, until `thread` has performed
    /// `steps` steps or the run is over.
    fn walk(&mut self, thread: ThreadId, steps: u64) {
        let model = self.model;
        let from = model.starts.get_or_init(|| Starts::new(model)).advance(self, thread, steps);
        for stretch in &model.skeleton.stretches[from..] {
            if self.done[thread.0 as usize] >= steps || is_requested() {
                return;
            }
            self.follow(stretch, thread, steps);
        }
    }

    /// Runs a stretch as recorded, or as far as possible; `thread` does not go beyond `steps`
    /// steps.
    fn follow(&mut self, stretch: &Stretch, thread: ThreadId, steps: u64) {
        if self.done[stretch.thread.0 as usize] != stretch.from {
            return;
        }
        let to = stretch.to.min(self.caps[stretch.thread.0 as usize]);
        let to = if stretch.thread == thread { to.min(steps) } else { to };
        // A blocked thread stays where it is.
        let _ = self.run(stretch.thread, to);
        if self.done[stretch.thread.0 as usize] == stretch.to
            && let Some(last) = self.stretches.last_mut()
            && last.thread == stretch.thread
        {
            last.stopped_at = stretch.stopped_at;
        }
    }

    /// Whether the event has happened.
    fn has_happened(&self, event: &Witness) -> bool {
        self.done[event.thread.0 as usize] > event.at
    }

    /// The thread that blocks this one.
    fn in_the_way(&self, thread: ThreadId) -> Option<ThreadId> {
        let index = thread.0 as usize;
        let sync = self.model.skeleton.lines[index].syncs.get(self.n_syncs[index])?;
        match self.obstacle(thread, sync.kind)? {
            Obstacle::Lock { holder, .. } => Some(holder),
            Obstacle::After { thread: other, .. } => Some(other),
        }
    }

    /// Runs a thread past its next synchronization operation and up to the one after it, or to
    /// its cap. Ignores soft dependencies.
    fn go_on(&mut self, thread: ThreadId, next: &Witness) {
        let index = thread.0 as usize;
        let model = self.model;
        let line = &model.skeleton.lines[index];
        let cap = self.caps[index].min(line.n_steps);
        let from = self.done[index];
        while let Some(sync) = line.syncs.get(self.n_syncs[index])
            && sync.at <= from
            && sync.at < cap
        {
            match self.obstacle(thread, sync.kind) {
                None | Some(Obstacle::After { soft: true, .. }) => {}
                Some(_) => return,
            }
            self.perform(thread, sync.kind);
            self.n_syncs[index] += 1;
        }
        let sync = line.syncs.get(self.n_syncs[index]);
        let to = sync.map_or(cap, |sync| sync.at).min(cap);
        if next.thread == thread && from <= next.at && next.at < to {
            self.advance(thread, next.at);
            self.mark(next);
        }
        self.advance(thread, to);
    }

    /// Runs a thread until it has performed `steps` steps, after pulling the threads that it has
    /// to wait for.
    fn pull(&mut self, thread: ThreadId, steps: u64) -> Result<(), Stuck> {
        let index = thread.0 as usize;
        let stuck = |at: u64| Stuck { thread, at };
        if self.pulled[index] {
            return Err(stuck(self.done[index]));
        }
        self.pulled[index] = true;
        let result = self.pull_on(thread, steps);
        self.pulled[index] = false;
        result
    }

    fn pull_on(&mut self, thread: ThreadId, steps: u64) -> Result<(), Stuck> {
        let index = thread.0 as usize;
        loop {
            let at = self.done[index];
            let stuck = Stuck { thread, at };
            if is_requested() {
                return Err(stuck);
            }
            let Err(obstacle) = self.run(thread, steps) else { return Ok(()) };
            match obstacle {
                Obstacle::Lock { lock, holder } => {
                    let line = &self.model.skeleton.lines[holder.0 as usize];
                    let release = line.syncs[self.n_syncs[holder.0 as usize]..].iter().find(
                        |sync| matches!(sync.kind, SyncKind::Release { lock: other, .. } if other == lock),
                    );
                    let release = release.ok_or(stuck)?;
                    let n_before = self.n_syncs[holder.0 as usize];
                    self.pull_within(holder, release.at + 1)?;
                    // The release may be after the holder's last step if the trace counts no
                    // steps, as an imported one.
                    if self.n_syncs[holder.0 as usize] == n_before {
                        return Err(stuck);
                    }
                }
                Obstacle::After { thread: other, steps, soft } => {
                    let pulled = self.pull_within(other, steps);
                    if soft {
                        // It continues without waiting, possibly on another path.
                        self.n_syncs[index] += 1;
                    } else {
                        pulled?;
                        if self.done[other.0 as usize] < steps {
                            return Err(stuck);
                        }
                    }
                }
            }
        }
    }

    fn pull_within(&mut self, thread: ThreadId, steps: u64) -> Result<(), Stuck> {
        if steps > self.caps[thread.0 as usize] {
            return Err(Stuck { thread, at: self.done[thread.0 as usize] });
        }
        self.pull(thread, steps)
    }

    /// Runs a thread until it has performed `steps` steps, or as far as possible.
    fn run(&mut self, thread: ThreadId, steps: u64) -> Result<(), Obstacle> {
        let index = thread.0 as usize;
        let model = self.model;
        let line = &model.skeleton.lines[index];
        let steps = steps.min(line.n_steps.max(self.done[index]));
        while let Some(sync) = line.syncs.get(self.n_syncs[index]) {
            if sync.at >= steps {
                break;
            }
            self.advance(thread, sync.at);
            if let Some(obstacle) = self.obstacle(thread, sync.kind) {
                return Err(obstacle);
            }
            self.perform(thread, sync.kind);
            self.n_syncs[index] += 1;
        }
        self.advance(thread, steps);
        Ok(())
    }

    fn obstacle(&self, thread: ThreadId, kind: SyncKind) -> Option<Obstacle> {
        match kind {
            SyncKind::Acquire { lock, shared } if !self.model.words.is_other(lock) => {
                let holders = self.owners.get(&lock)?;
                let holder = holders
                    .iter()
                    .find(|(holder, other)| *holder != thread && !(shared && *other))?;
                Some(Obstacle::Lock { lock, holder: holder.0 })
            }
            SyncKind::After { thread: other, steps, soft } => (self.done[other.0 as usize] < steps)
                .then_some(Obstacle::After { thread: other, steps, soft }),
            SyncKind::Acquire { .. } | SyncKind::Release { .. } => None,
        }
    }

    fn perform(&mut self, thread: ThreadId, kind: SyncKind) {
        match kind {
            SyncKind::Acquire { lock, shared } => {
                self.owners.entry(lock).or_default().push((thread, shared));
            }
            SyncKind::Release { lock, .. } => {
                let holders = self.owners.entry(lock).or_default();
                if let Some(at) = holders.iter().position(|(holder, _)| *holder == thread) {
                    holders.remove(at);
                }
            }
            SyncKind::After { .. } => {}
        }
    }

    /// Marks that the thread is right before this event, so that the runtime can check it when
    /// following the schedule.
    fn mark(&mut self, event: &Witness) {
        if self.done[event.thread.0 as usize] == event.at
            && let Some(last) = self.stretches.last_mut()
            && last.thread == event.thread
        {
            last.stopped_at = event.pc;
        }
    }

    fn advance(&mut self, thread: ThreadId, to: u64) {
        let from = self.done[thread.0 as usize];
        if to <= from {
            return;
        }
        self.done[thread.0 as usize] = to;
        match self.stretches.last_mut() {
            Some(last) if last.thread == thread && last.stopped_at == Pc(0) => last.to = to,
            _ => self.stretches.push(Stretch { thread, from, to, stopped_at: Pc(0) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::event::Op;

    use super::*;
    use crate::notation;
    use crate::scan::Scan;
    use crate::scan::tests::read;
    use crate::sharing::Sharing;

    /// The schedule for the labeled events of `order`, as thread and steps; `None` if there is
    /// none.
    fn schedule(text: &str, order: &str, hold: Hold) -> Option<String> {
        let (notation, model) = read(text);
        let singles = model.cells.iter().flat_map(|cell| &cell.singles);
        let singles = singles.map(|single| model.classes.witness(single.addr, &single.first));
        let outers = model.nestings.iter().map(|nesting| nesting.outer);
        let all: Vec<_> = singles.chain(outers).collect();
        let find = |label| all.iter().find(|event| notation.label(event.pc) == label);
        let order: Vec<_> =
            order.split(' ').map(|label| *find(label).expect("an event with this label")).collect();
        let stretches = weave(&model, &order, hold).ok()?;
        let mut words: Vec<(u32, u64)> = Vec::new();
        for Stretch { thread, from, to, .. } in stretches {
            match words.last_mut() {
                Some((last, n)) if *last == thread.0 => *n += to - from,
                _ => words.push((thread.0, to - from)),
            }
        }
        let words: Vec<_> = words.iter().map(|(thread, n)| format!("T{thread}*{n}")).collect();
        Some(words.join(" "))
    }

    #[track_caller]
    fn check(text: &str, order: &str, hold: Hold, expected: Option<&str>) {
        assert_eq!(schedule(text, order, hold).as_deref(), expected);
    }

    /// PENELOPE, section 4.2: up to where no lock is held, then T1 alone, then T0 continues.
    const THREE_REGIONS: &str = "
        T0 spawn T1
        T0 write y
        T0 acquire m
        a: T0 read x
        T0 release m
        T0 acquire m
        b: T0 write x
        T0 release m
        T1 read y
        T1 acquire m
        c: T1 write x
        T1 release m";

    #[test]
    fn the_second_thread_comes_between_two_sections() {
        check(THREE_REGIONS, "a c b", Hold::LockFree, Some("T0*4 T1*1 T0*1 T1*3 T0*2"));
    }

    /// PECAN, figure 5: the surrounding lock rules out what looks like a race.
    const FIGURE_5: &str = "
        T0 spawn T1
        T0 acquire l
        T0 acquire m
        T0 release m
        a: T0 write x
        T0 release l
        T1 acquire l
        T1 acquire m
        T1 release m
        T1 release l
        b: T1 write x";

    #[test]
    fn the_outermost_lock_moves_with_the_event() {
        check(FIGURE_5, "b a", Hold::LockFree, Some("T0*1 T1*5 T0*4"));
        // Right before its event, T0 would hold the lock that T1 needs.
        check(FIGURE_5, "b a", Hold::Event, None);
    }

    #[test]
    fn who_is_created_under_a_lock_needs_a_search() {
        let text = "
            T0 spawn T1
            T1 acquire m
            a: T1 write x
            b: T1 write x
            T1 release m
            T0 acquire m
            T0 spawn T2
            c: T2 write x
            T0 release m";
        for hold in [Hold::LockFree, Hold::AllLockFree, Hold::Event, Hold::SecondFirst] {
            check(text, "a c b", hold, None);
        }
        check(text, "a c b", Hold::Anywhere, Some("T0*4 T1*2 T2*1 T1*1"));
    }

    #[test]
    fn a_join_cannot_be_passed() {
        let text = "
            T0 spawn T1
            a: T1 write x
            T1 end
            T0 join T1
            b: T0 write x";
        for hold in Hold::ALL {
            check(text, "b a", hold, None);
        }
    }

    #[test]
    fn nothing_is_received_before_it_was_sent() {
        let text = "
            T0 spawn T1
            T0 write y
            a: T0 write x
            T0 send p
            T1 read y
            T1 receive p
            b: T1 write x";
        for hold in Hold::ALL {
            check(text, "b a", hold, None);
        }
        let text = text.replace("a: T0 write x", "").replace("T1 read y", "a: T1 read y");
        check(&text.replace("T0 send p", "T0 send p\n b: T0 write y"), "b a", Hold::LockFree, {
            Some("T0*4 T1*1")
        });
    }

    #[test]
    fn threads_that_take_their_first_locks_deadlock() {
        let text = "
            T0 spawn T1
            a: T0 acquire m
            T0 acquire n
            T0 release n
            T0 release m
            b: T1 acquire n
            T1 acquire m
            T1 release m
            T1 release n";
        check(text, "a b", Hold::LockFree, Some("T0*2 T1*1"));
    }

    /// As in an imported trace: an event other than an access has the position of the access
    /// before it, and a release may be at the end of its thread.
    #[test]
    fn a_trace_that_counts_no_steps_is_woven_or_refused() {
        let text = "
            T0 spawn T1
            T0 spawn T2
            T1 acquire m
            T1 read x
            T1 release m
            T2 acquire m
            T2 write x
            T2 read y
            T2 release m
            T1 acquire m
            T1 write x
            T1 acquire n
            T1 write y
            T1 release n
            T1 release m
            T2 acquire n
            T2 acquire m
            T2 release m
            T2 release n
            T0 join T1
            T0 join T2";
        let events = notation::parse(text).events;
        let events = || events.iter().filter(|event| event.op != Op::Step);
        let mut sharing = Sharing::default();
        events().for_each(|event| sharing.push(event));
        let mut scan = Scan::new(&sharing);
        events().for_each(|event| scan.push(event));
        let model = scan.finish();
        let singles = model.cells.iter().flat_map(|cell| &cell.singles);
        let all: Vec<_> =
            singles.map(|single| model.classes.witness(single.addr, &single.first)).collect();
        assert_eq!(all.len(), 5);
        // It only has to terminate.
        let pairs: Vec<_> = all.iter().flat_map(|&a| all.iter().map(move |&b| [a, b])).collect();
        for ([a, b], &c) in pairs.iter().flat_map(|&pair| all.iter().map(move |c| (pair, c))) {
            for hold in Hold::ALL {
                let _ = weave(&model, &[a, b, c], hold);
            }
        }
    }
}
