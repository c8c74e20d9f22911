//! The facts of a run, read from its memory histories.
//!
//! These are the pairs and patterns that [`super::collect`] finds from records, with less detail:
//! we know when each was first complete, but not when its first accesses were, and neither calls
//! nor loops. To learn those, execute the run again.

use raddle_trace::history::{Histories, Visit};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::record::Kind;
use raddle_trace::run::Run;
use rustc_hash::FxHashMap;

use super::facts::{Facts, Pair, PairFact, Pattern, PatternFact, Point, SiteAccess};
use crate::witness::AccessKind;

/// The facts of a run of `n_steps` steps.
#[must_use]
pub fn recall(histories: &Histories, run: &Run, n_steps: u64) -> Facts {
    let recall = Recall::new(histories, run);
    let mut accesses: Vec<SiteAccess> =
        recall.accesses.iter().flatten().map(|(access, _)| *access).collect();
    accesses.sort_unstable();
    accesses.dedup();
    Facts {
        pairs: recall.pairs(),
        patterns: recall.patterns(),
        accesses,
        n_events: n_steps,
        n_threads: run.threads.len() as u32,
        n_shared: histories.n_shared,
        n_left_out: histories.n_cut,
        is_exact: false,
    }
}

struct Recall<'a> {
    histories: &'a Histories,
    /// By number; none if the entry makes no sense.
    accesses: Vec<Option<(SiteAccess, ThreadId)>>,
}

/// Address and step of the first occurrence.
#[derive(Clone, Copy)]
struct Place {
    addr: u64,
    step: u64,
}

impl<'a> Recall<'a> {
    fn new(histories: &'a Histories, run: &Run) -> Self {
        let mut sites: FxHashMap<Pc, Site> = FxHashMap::default();
        let mut site = |pc: Pc| *sites.entry(pc).or_insert_with(|| run.site(pc));
        let accesses = histories.accesses.iter().map(|access| {
            let kind = access_kind(Kind::from_u8(access.kind)?)?;
            Some((SiteAccess { site: site(Pc(access.pc)), kind }, ThreadId(access.thread)))
        });
        Self { histories, accesses: accesses.collect() }
    }

    fn access(&self, number: u32) -> Option<(SiteAccess, ThreadId)> {
        *self.accesses.get(number as usize)?
    }

    fn pairs(&self) -> Vec<PairFact> {
        let mut pairs: FxHashMap<Pair, Vec<[Point; 2]>> = FxHashMap::default();
        for found in &self.histories.pairs {
            let [Some(head), Some(tail)] = found.accesses.map(|access| self.access(access)) else {
                continue;
            };
            let place = Place { addr: found.addr, step: found.step };
            let points = [head.1, tail.1].map(|thread| point(thread, place));
            pairs.entry(Pair { head: head.0, tail: tail.0 }).or_default().push(points);
        }
        let mut pairs: Vec<_> = pairs
            .into_iter()
            .map(|(pair, mut instances)| {
                instances.sort_by_key(|[_, tail]| tail.seq);
                PairFact { pair, instances }
            })
            .collect();
        pairs.sort_unstable_by_key(|fact| fact.pair);
        pairs
    }

    fn patterns(&self) -> Vec<PatternFact> {
        let mut found: FxHashMap<Vec<SiteAccess>, PatternFact> = FxHashMap::default();
        for pattern in &self.histories.patterns {
            let n = if pattern.visits[2] == 0 { 2 } else { 3 };
            let place = Place { addr: pattern.addr, step: pattern.step };
            self.expand(&pattern.visits[..n], pattern.window as usize, place, &mut found);
        }
        for (window, addr) in &self.histories.last {
            for from in 0..window.len() {
                self.slide(&window[from..], Place { addr: *addr, step: u64::MAX }, &mut found);
            }
        }
        let mut patterns: Vec<_> = found.into_values().collect();
        patterns.sort_unstable_by(|one, two| one.pattern.cmp(&two.pattern));
        patterns
    }

    /// Processes the oldest visit of a window, which comes first, as the runtime does.
    fn slide(
        &self,
        window: &[u32],
        place: Place,
        found: &mut FxHashMap<Vec<SiteAccess>, PatternFact>,
    ) {
        let [oldest, rest @ ..] = window else { return };
        let thread = self.thread(*oldest);
        let again = rest.iter().position(|&visit| self.thread(visit) == thread);
        let mut any = false;
        if let Some(again) = again {
            for &between in &rest[..again] {
                any |= self.expand(&[*oldest, between, rest[again]], again + 2, place, found);
            }
        }
        if let Some(&next) = rest.first()
            && !any
        {
            self.expand(&[*oldest, next], 2, place, found);
        }
    }

    /// Adds the patterns of these visits; returns whether there are any.
    fn expand(
        &self,
        visits: &[u32],
        window: usize,
        place: Place,
        found: &mut FxHashMap<Vec<SiteAccess>, PatternFact>,
    ) -> bool {
        let mut any = false;
        let mut sequences: Vec<Vec<u32>> = vec![Vec::new()];
        for &visit in visits {
            let with = |access: u32| {
                sequences.iter().map(move |sequence| [&sequence[..], &[access]].concat())
            };
            sequences = self.accesses(visit).flat_map(with).collect();
        }
        for sequence in sequences {
            if !self.breaks(&sequence) {
                continue;
            }
            let known: Option<Vec<_>> =
                sequence.iter().map(|&access| self.access(access)).collect();
            let Some(known) = known else { continue };
            any = true;
            let accesses: Vec<SiteAccess> = known.iter().map(|(access, _)| *access).collect();
            let fact = found.entry(accesses.clone()).or_insert_with(|| PatternFact {
                pattern: Pattern { accesses },
                points: Vec::new(),
                stacks: vec![Vec::new(); sequence.len()],
                window: u8::MAX,
            });
            fact.window = fact.window.min(u8::try_from(window).unwrap_or(u8::MAX));
            if fact.points.last().is_none_or(|last| place.step < last.seq) {
                fact.points = known.iter().map(|&(_, thread)| point(thread, place)).collect();
            }
        }
        any
    }

    /// The accesses of a visit.
    fn accesses(&self, visit: u32) -> impl Iterator<Item = u32> {
        let visit = self.histories.visits.get(visit as usize).copied();
        let Visit { accesses } = visit.unwrap_or_default();
        accesses.into_iter().filter(|&access| access != 0)
    }

    fn thread(&self, visit: u32) -> Option<ThreadId> {
        Some(self.access(self.accesses(visit).next()?)?.1)
    }

    /// Whether two accesses conflict, or three are not serializable.
    fn breaks(&self, accesses: &[u32]) -> bool {
        let writes = |&access: &u32| {
            let access = self.histories.accesses.get(access as usize);
            access.is_some_and(|access| access.writes != 0)
        };
        match accesses {
            [one, two] => writes(one) || writes(two),
            [one, two, three] => writes(two) || writes(one) && writes(three),
            _ => false,
        }
    }
}

fn point(thread: ThreadId, place: Place) -> Point {
    Point { thread, seq: place.step, addr: Addr(place.addr), bytes: 1, loops: Vec::new() }
}

fn access_kind(kind: Kind) -> Option<AccessKind> {
    Some(match kind {
        Kind::Read => AccessKind::Read,
        Kind::Write => AccessKind::Write,
        Kind::AtomicLoad | Kind::AtomicMiss => AccessKind::AtomicRead,
        Kind::AtomicStore | Kind::AtomicUpdate | Kind::AtomicSwap => AccessKind::AtomicWrite,
        Kind::Free | Kind::Unmap => AccessKind::Free,
        Kind::Acquire => AccessKind::Acquire,
        Kind::Release => AccessKind::Release,
        Kind::Init => AccessKind::Init,
        Kind::Destroy => AccessKind::Destroy,
        Kind::CondWait => AccessKind::Wait,
        Kind::SemWait => AccessKind::Lower,
        Kind::SemAsk => AccessKind::Ask,
        Kind::CondSignal | Kind::CondBroadcast | Kind::SemPost => AccessKind::Signal,
        Kind::More
        | Kind::ReadRange
        | Kind::WriteRange
        | Kind::Enter
        | Kind::Leave
        | Kind::Fence
        | Kind::Switch
        | Kind::Choice
        | Kind::Spawn
        | Kind::Begin
        | Kind::End
        | Kind::Join
        | Kind::Detach
        | Kind::CondWake
        | Kind::BarrierEnter
        | Kind::BarrierLeave
        | Kind::OnceBegin
        | Kind::OnceEnd
        | Kind::OncePass
        | Kind::Before
        | Kind::After
        | Kind::FutexWait
        | Kind::FutexWoken
        | Kind::FutexWake
        | Kind::Send
        | Kind::Receive
        | Kind::Map
        | Kind::Alloc
        | Kind::Sleep
        | Kind::Yield
        | Kind::Block
        | Kind::Unblock
        | Kind::Clock
        | Kind::Exit
        | Kind::Fork
        | Kind::Signal
        | Kind::UnitBegin
        | Kind::UnitEnd
        | Kind::Time
        | Kind::Fiber
        | Kind::Step
        | Kind::Repeats => return None,
    })
}
