//! The facts of a run from the histories of its memory.
//!
//! They are the same pairs and patterns that [`super::collect`] finds from records, but less is
//! known of each: when it was first complete, but not when its first accesses were; no calls, no
//! loops. Whoever needs those has to execute the run once more.

use raddle_trace::history::{Histories, Stint};
use raddle_trace::id::{Addr, Pc, Site, ThreadId};
use raddle_trace::record::Kind;
use raddle_trace::run::Run;
use rustc_hash::FxHashMap;

use super::facts::{Act, Facts, Pair, PairFact, Pattern, PatternFact, Point};
use crate::witness::Deed;

/// What a run of so many steps has left.
#[must_use]
pub fn recall(histories: &Histories, run: &Run, n_steps: u64) -> Facts {
    let recall = Recall::new(histories, run);
    let mut acts: Vec<Act> = recall.acts.iter().flatten().map(|(act, _)| *act).collect();
    acts.sort_unstable();
    acts.dedup();
    Facts {
        pairs: recall.pairs(),
        patterns: recall.patterns(),
        acts,
        n_events: n_steps,
        n_threads: run.threads.len() as u32,
        n_shared: histories.n_shared,
        n_left_out: histories.n_cut,
        is_exact: false,
    }
}

struct Recall<'a> {
    histories: &'a Histories,
    /// By number; none where nothing is that makes sense.
    acts: Vec<Option<(Act, ThreadId)>>,
}

/// Where something was first found.
#[derive(Clone, Copy)]
struct Place {
    addr: u64,
    step: u64,
}

impl<'a> Recall<'a> {
    fn new(histories: &'a Histories, run: &Run) -> Self {
        let mut sites: FxHashMap<Pc, Site> = FxHashMap::default();
        let mut site = |pc: Pc| *sites.entry(pc).or_insert_with(|| run.site(pc));
        let acts = histories.acts.iter().map(|act| {
            let deed = deed(Kind::from_u8(act.kind)?)?;
            Some((Act { site: site(Pc(act.pc)), deed }, ThreadId(act.thread)))
        });
        Self { histories, acts: acts.collect() }
    }

    fn act(&self, number: u32) -> Option<(Act, ThreadId)> {
        *self.acts.get(number as usize)?
    }

    fn pairs(&self) -> Vec<PairFact> {
        let mut pairs: FxHashMap<Pair, Vec<[Point; 2]>> = FxHashMap::default();
        for found in &self.histories.pairs {
            let [Some(head), Some(tail)] = found.acts.map(|act| self.act(act)) else { continue };
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
        let mut found: FxHashMap<Vec<Act>, PatternFact> = FxHashMap::default();
        for pattern in &self.histories.patterns {
            let n = if pattern.stints[2] == 0 { 2 } else { 3 };
            let place = Place { addr: pattern.addr, step: pattern.step };
            self.expand(&pattern.stints[..n], pattern.window as usize, place, &mut found);
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

    /// Looks at the oldest stint of a window, which comes first, as the runtime does.
    fn slide(&self, window: &[u32], place: Place, found: &mut FxHashMap<Vec<Act>, PatternFact>) {
        let [oldest, rest @ ..] = window else { return };
        let thread = self.thread(*oldest);
        let again = rest.iter().position(|&stint| self.thread(stint) == thread);
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

    /// The patterns that stints hold; whether there are any.
    fn expand(
        &self,
        stints: &[u32],
        window: usize,
        place: Place,
        found: &mut FxHashMap<Vec<Act>, PatternFact>,
    ) -> bool {
        let mut any = false;
        let mut sequences: Vec<Vec<u32>> = vec![Vec::new()];
        for &stint in stints {
            let with =
                |act: u32| sequences.iter().map(move |sequence| [&sequence[..], &[act]].concat());
            sequences = self.accesses(stint).flat_map(with).collect();
        }
        for sequence in sequences {
            if !self.breaks(&sequence) {
                continue;
            }
            let known: Option<Vec<_>> = sequence.iter().map(|&act| self.act(act)).collect();
            let Some(known) = known else { continue };
            any = true;
            let acts: Vec<Act> = known.iter().map(|(act, _)| *act).collect();
            let fact = found.entry(acts.clone()).or_insert_with(|| PatternFact {
                pattern: Pattern { acts },
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

    /// The accesses of a stint.
    fn accesses(&self, stint: u32) -> impl Iterator<Item = u32> {
        let stint = self.histories.stints.get(stint as usize).copied();
        let Stint { acts } = stint.unwrap_or_default();
        acts.into_iter().filter(|&act| act != 0)
    }

    fn thread(&self, stint: u32) -> Option<ThreadId> {
        Some(self.act(self.accesses(stint).next()?)?.1)
    }

    /// Whether two accesses conflict, or three have the result of no serial order.
    fn breaks(&self, acts: &[u32]) -> bool {
        let writes = |&act: &u32| {
            let act = self.histories.acts.get(act as usize);
            act.is_some_and(|act| act.writes != 0)
        };
        match acts {
            [one, two] => writes(one) || writes(two),
            [one, two, three] => writes(two) || writes(one) && writes(three),
            _ => false,
        }
    }
}

fn point(thread: ThreadId, place: Place) -> Point {
    Point { thread, seq: place.step, addr: Addr(place.addr), bytes: 1, laps: Vec::new() }
}

fn deed(kind: Kind) -> Option<Deed> {
    Some(match kind {
        Kind::Read => Deed::Read,
        Kind::Write => Deed::Write,
        Kind::AtomicLoad | Kind::AtomicMiss => Deed::AtomicRead,
        Kind::AtomicStore | Kind::AtomicUpdate | Kind::AtomicSwap => Deed::AtomicWrite,
        Kind::Free => Deed::Free,
        Kind::Acquire => Deed::Acquire,
        Kind::Release => Deed::Release,
        Kind::Init => Deed::Init,
        Kind::Destroy => Deed::Destroy,
        Kind::CondWait => Deed::Wait,
        Kind::SemWait => Deed::Lower,
        Kind::SemAsk => Deed::Ask,
        Kind::CondSignal | Kind::CondBroadcast | Kind::SemPost => Deed::Signal,
        _ => return None,
    })
}
