//! Accesses with names.

use raddle_analysis::witness::AccessKind;
use raddle_lab::access::{AccessAt, roles};
use raddle_symbols::name::{Namer, Place};
use raddle_symbols::site::Frame;
use raddle_trace::event::{Event, Op};
use raddle_trace::file::Trace;
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::run::Run;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Names;
use crate::model::{Access, Action};

/// Accesses with names, and what identifies them.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub(super) accesses: Vec<Access>,
    /// What the accesses are about, each variable once.
    pub(super) variable: Option<String>,
    /// For each access, its number among the accesses of its kind to the same memory in the same
    /// function, by address.
    pub(super) ordinals: Vec<usize>,
}

impl Names<'_> {
    /// Names many groups of accesses of one run, in one pass over its trace. Without a trace, what
    /// was allocated and called is not known.
    pub(super) fn accesses(
        &self,
        run: &Run,
        trace: Option<&Trace>,
        groups: &[&[AccessAt]],
    ) -> Vec<Named> {
        // A trace that cannot be read further has named all that it can.
        let events = trace.into_iter().flat_map(|trace| trace.events().map_while(Result::ok));
        let events = events.take_while(|_| !(self.is_late)());
        let mut namer = Namer::new(run, self.cache);
        let mut by_seq: FxHashMap<u64, Vec<(usize, usize)>> = FxHashMap::default();
        for (group, accesses) in groups.iter().enumerate() {
            for (at, access) in accesses.iter().enumerate() {
                by_seq.entry(access.seq).or_default().push((group, at));
            }
        }
        let mut sites = Sites::of(groups);
        let mut found: FxHashMap<(usize, usize), (Access, Place)> = FxHashMap::default();
        for (seq, event) in (0..).zip(events) {
            namer.push(seq, &event);
            sites.push(&event);
            for &(group, at) in by_seq.get(&seq).into_iter().flatten() {
                found.insert((group, at), name(&namer, &groups[group][at]));
            }
        }
        let named = |(group, accesses): (usize, &&[AccessAt])| {
            let mut variables: Vec<String> = Vec::new();
            let mut named = Named::default();
            for ((at, access), role) in accesses.iter().enumerate().zip(roles(accesses)) {
                let (named_access, place) =
                    found.remove(&(group, at)).unwrap_or_else(|| name(&namer, access));
                let variable = variable(&place);
                if !variables.contains(&variable) {
                    variables.push(variable);
                }
                named.accesses.push(Access { role, ..named_access });
                named.ordinals.push(sites.ordinal(&namer, access));
            }
            named.variable = (!variables.is_empty()).then(|| variables.join(" and "));
            named
        };
        groups.iter().enumerate().map(named).collect()
    }
}

/// Where memory of interest is accessed.
struct Sites {
    /// Memory of interest: first byte and the one after the last.
    ranges: Vec<(u64, u64)>,
    seen: FxHashSet<(Pc, char, u64)>,
}

impl Sites {
    fn of(groups: &[&[AccessAt]]) -> Self {
        let mut ranges: Vec<_> = groups
            .iter()
            .flat_map(|accesses| accesses.iter())
            .map(|access| (access.addr.0, access.addr.0.saturating_add(access.bytes)))
            .collect();
        ranges.sort_unstable();
        ranges.dedup();
        Self { ranges, seen: FxHashSet::default() }
    }

    fn push(&mut self, event: &Event) {
        let (addr, bytes, op) = match event.op {
            Op::Read(access) => (access.addr, access.bytes, AccessKind::Read),
            Op::Write(access) => (access.addr, access.bytes, AccessKind::Write),
            _ => return,
        };
        let end = addr.0.saturating_add(bytes);
        // Ranges that start before the end; few do, since what is of interest is small.
        let n_before = self.ranges.partition_point(|&(start, _)| start < end);
        for &(start, after) in self.ranges[..n_before].iter().rev().take(NEARBY_MAX) {
            if addr.0 < after {
                self.seen.insert((event.pc, op.letter(), start));
            }
        }
    }

    /// The number of an access among those of its kind to its memory in its function.
    fn ordinal(&self, namer: &Namer, access: &AccessAt) -> usize {
        let function = |pc: Pc| namer.site(pc).own_frame().and_then(|frame| frame.function.clone());
        let own = function(access.pc);
        let is_before = |&&(pc, op, start): &&(Pc, char, u64)| {
            pc.0 < access.pc.0
                && op == access.kind.letter()
                && start == access.addr.0
                && function(pc) == own
        };
        self.seen.iter().filter(is_before).count()
    }
}

/// Overlapping ranges of interest that an access is looked up in.
const NEARBY_MAX: usize = 8;

fn name(namer: &Namer, access: &AccessAt) -> (Access, Place) {
    let frame = own_frame(namer, access.thread, access.pc);
    let place = match access.kind.is_of_object() {
        true => namer.lock_place(access.addr),
        false => namer.place(access.addr, access.bytes),
    };
    let callers = namer.calls().callers(access.thread).iter().rev().copied();
    let lock = |&lock: &Addr| namer.lock_place(lock).to_string();
    let named = Access {
        role: 0,
        thread: namer.thread(access.thread),
        op: access.kind.letter(),
        action: action(access.kind),
        file: frame.short_file,
        line: frame.line,
        function: frame.function,
        site: namer.own_site(access.pc, callers),
        variable: place.to_string(),
        locks: access.locks.iter().map(lock).collect(),
    };
    (named, place)
}

/// What is accessed, the same before and after it was freed.
fn variable(place: &Place) -> String {
    match place {
        Place::Heap { allocated, offset, .. } => {
            Place::Heap { allocated: allocated.clone(), freed: None, offset: *offset }.to_string()
        }
        Place::Global(_) | Place::Stack { .. } | Place::Image { .. } | Place::Unknown(_) => {
            place.to_string()
        }
    }
}

/// The innermost frame of the program's own code.
fn own_frame(namer: &Namer, thread: ThreadId, pc: Pc) -> Frame {
    let callers = namer.calls().callers(thread).iter().rev().copied();
    std::iter::once(pc)
        .chain(callers)
        .find_map(|pc| namer.site(pc).own_frame().cloned())
        .unwrap_or_else(|| namer.site(pc).frame.clone())
}

/// What an access does, as reports have it.
pub(super) const fn action(kind: AccessKind) -> Action {
    match kind {
        AccessKind::Read | AccessKind::AtomicRead => Action::Read,
        AccessKind::Write | AccessKind::AtomicWrite => Action::Write,
        AccessKind::Free => Action::Free,
        AccessKind::Acquire => Action::Acquire,
        AccessKind::Release => Action::Release,
        AccessKind::Wait => Action::Wait,
        AccessKind::Lower => Action::Decrement,
        AccessKind::Ask => Action::GetValue,
        AccessKind::Signal => Action::Signal,
        AccessKind::Init => Action::Initialize,
        AccessKind::Destroy => Action::Destroy,
        AccessKind::Block => Action::Block,
    }
}
