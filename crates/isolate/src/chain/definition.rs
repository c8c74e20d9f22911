//! The last definitions of what a failure used.
//!
//! For memory that is in the trace, the trace tells them with all other accesses. For other
//! memory, and for programs without instrumentation, an execution more does, with debug
//! registers; all that one library call wrote is one definition. What a variable of the stack
//! holds from before its activation began is no definition, but stale.
//!
//! Limits: two locations are watched at a time, and of each its first two words.

use raddle_analysis::witness::AccessKind;
use raddle_trace::id::{Pc, ThreadId};

use super::Session;
use super::failed::Failed;
use super::isolation::{AccessAt, IsolateError, pcs};
use super::run::Ran;
use crate::failure::Use;
use crate::follow::{Hit, Job, Pick, Point, Suppressed};
use crate::location_history::{self, Access, LocationHistory};
use crate::origin::Location;

/// The last definition of a location that a failure used.
pub(super) struct Definition {
    pub(super) used: Use,
    pub(super) by: DefinedBy,
}

pub(super) enum DefinedBy {
    /// The trace tells it, and all other accesses.
    Traced { history: LocationHistory, target: usize },
    /// Debug registers told it: the last write to each byte, with its number.
    Watched { hits: Vec<(u64, Hit)> },
    /// What it holds was left there before it came to be.
    Stale,
    /// Nobody wrote it, since it was allocated.
    Untouched { allocated: Option<(ThreadId, Pc)> },
}

impl Definition {
    /// How to suppress it.
    pub(super) fn point(&self) -> Option<Point> {
        let location = self.used.location;
        let pick = match &self.by {
            DefinedBy::Traced { history, target } => {
                let Access { thread, pc, nth, .. } = &history.accesses[*target];
                match self.is_memory() {
                    true => Pick::Event { thread: thread.0, pc: pc.0, nth: *nth },
                    // A synchronization object's word is not what the program writes.
                    false => Pick::Numbers(Vec::new()),
                }
            }
            DefinedBy::Watched { hits } => {
                Pick::Numbers(hits.iter().map(|(number, _)| *number).collect())
            }
            DefinedBy::Stale | DefinedBy::Untouched { .. } => return None,
        };
        Some(Point { location, pick })
    }

    /// Where it is, and what it wrote.
    pub(super) fn at(&self, suppressed: &[Suppressed]) -> AccessAt {
        let met = suppressed.last();
        let location = Some(self.used.location);
        let value = |hit: &Hit| hit.values(self.used.location)[1];
        let around = || met.into_iter().flat_map(|met| met.callers.iter().map(|pc| Pc(*pc)));
        match &self.by {
            DefinedBy::Traced { history, target } => {
                let Access { thread, kind, pc, .. } = history.accesses[*target];
                let pcs = std::iter::once(pc).chain(around()).collect();
                AccessAt { thread, kind, pcs, location, value: met.map(|met| value(&met.hit)) }
            }
            DefinedBy::Watched { hits } => {
                let (_, hit) = hits.last().expect("never empty");
                let mut pcs = pcs(hit.pc, &hit.callers);
                if hit.callers.is_empty() {
                    pcs.extend(around());
                }
                let value = Some(value(hit));
                AccessAt { thread: hit.thread, kind: AccessKind::Write, pcs, location, value }
            }
            DefinedBy::Stale | DefinedBy::Untouched { .. } => {
                unreachable!("it cannot be suppressed")
            }
        }
    }

    /// Whether it is a write to memory, not an operation on a synchronization object.
    pub(super) fn is_memory(&self) -> bool {
        match &self.by {
            DefinedBy::Traced { history, target } => {
                let kind = history.accesses[*target].kind;
                matches!(kind, AccessKind::Write | AccessKind::AtomicWrite | AccessKind::Free)
            }
            _ => true,
        }
    }

    /// Whether what was written is only a part of what was used: then it was not meant to
    /// define it.
    pub(super) fn is_partial(&self) -> bool {
        match &self.by {
            DefinedBy::Watched { hits } => {
                hits.iter().all(|(_, hit)| hit.location.n_bytes < self.used.location.n_bytes)
            }
            DefinedBy::Traced { history, target } => {
                let access = &history.accesses[*target];
                access.location.n_bytes != self.used.location.n_bytes
            }
            DefinedBy::Stale | DefinedBy::Untouched { .. } => true,
        }
    }

    /// For memory that was used before it was defined: the use, or where it was allocated.
    pub(super) fn undefined(&self, failed: &Failed) -> Option<AccessAt> {
        let location = Some(self.used.location);
        match &self.by {
            DefinedBy::Untouched { allocated: Some((thread, pc)) } => Some(AccessAt {
                thread: *thread,
                kind: AccessKind::Init,
                pcs: vec![*pc],
                location,
                value: self.used.value,
            }),
            DefinedBy::Stale => {
                let mut pcs = vec![Pc(self.used.pc + 1)];
                pcs.extend(failed.at.pcs.iter().copied());
                Some(AccessAt {
                    thread: failed.at.thread,
                    kind: AccessKind::Read,
                    pcs,
                    location,
                    value: self.used.value,
                })
            }
            _ => None,
        }
    }
}

/// What watching a location told: the last write to each byte with its number, and whether they
/// are from before its activation began.
type Watched = (Use, Vec<(u64, Hit)>, bool);

impl Session<'_> {
    /// The last definitions of what a failure used, the likeliest first.
    pub(super) fn definitions(
        &mut self,
        failing: &Ran,
        failed: &Failed,
        points: &[Point],
    ) -> Result<Vec<Definition>, IsolateError> {
        let mut definitions = Vec::new();
        let mut unseen: Vec<Use> = Vec::new();
        for used in &failed.uses {
            let history = match &failing.trace {
                Some(trace) => location_history::of(trace, used.location)?,
                None => LocationHistory::default(),
            };
            match history.definition(used, failed) {
                Some(target) => {
                    let by = DefinedBy::Traced { history, target };
                    definitions.push(Definition { used: *used, by });
                }
                None => {
                    // What came from the heap and was never written is known to be so.
                    if history.allocated.is_none() {
                        unseen.push(*used);
                    }
                    let by = DefinedBy::Untouched { allocated: history.allocated };
                    definitions.push(Definition { used: *used, by });
                }
            }
        }
        // What no trace knows of is watched, as far as debug registers go.
        let already = definitions.iter().any(|d| matches!(d.by, DefinedBy::Traced { .. }));
        unseen.retain(|used| !already || failing.trace.is_none() || used.activation.is_some());
        for batch in unseen.chunks(2) {
            for (used, hits, stale) in self.watched(batch, points)? {
                if let Some(definition) = definitions.iter_mut().find(|d| d.used == used)
                    && !hits.is_empty()
                {
                    definition.by =
                        if stale { DefinedBy::Stale } else { DefinedBy::Watched { hits } };
                }
            }
        }
        // What was never defined cannot be suppressed.
        definitions.sort_by_key(|definition| {
            !matches!(
                definition.by,
                DefinedBy::Traced { .. } | DefinedBy::Watched { .. } | DefinedBy::Stale
            )
        });
        Ok(definitions)
    }

    /// For each of these: the last writes to each byte of it, with their numbers among all
    /// writes to it, and whether they were made before the activation that it belongs to began.
    pub(super) fn watched(
        &mut self,
        uses: &[Use],
        points: &[Point],
    ) -> Result<Vec<Watched>, IsolateError> {
        let slot = |used: &Use| used.activation.map(|address| Location { address, n_bytes: 8 });
        let mut watches: Vec<Location> = uses.iter().map(|used| used.location).collect();
        watches.extend(uses.iter().find_map(slot));
        let job = Job { watches, with_reads: false, points: points.to_vec(), ..Job::default() };
        let ran = self.run(job, false)?;
        self.executions.watch += 1;
        let until = ran.report.n_hits_failed.unwrap_or(ran.report.hits.len());
        let hits = &ran.report.hits[..until];
        let of = |used: &Use| {
            let location = used.location;
            let defines = |hit: &&Hit| hit.writes && hit.is_of(&location);
            let writes: Vec<(u64, &Hit)> = (0..).zip(hits.iter().filter(defines)).collect();
            let mut last: Vec<(u64, Hit)> = Vec::new();
            for byte in location.address..location.address + location.n_bytes.min(64) {
                let writer = writes.iter().rev().find(|(_, hit)| hit.location.overlaps(byte, 1));
                if let Some((number, hit)) = writer
                    && !last.iter().any(|(other, _)| other == number)
                {
                    last.push((*number, (*hit).clone()));
                }
            }
            // A library call may write a byte twice; all that it wrote is one definition.
            let mut at = last.iter().map(|(number, _)| *number).min().unwrap_or(0);
            while at > 0
                && let Some((number, hit)) = writes.get(at as usize - 1)
                && !hit.callers.is_empty()
                && last.iter().any(|(_, other)| own_part(&other.callers) == own_part(&hit.callers))
            {
                last.push((*number, (*hit).clone()));
                at -= 1;
            }
            last.sort_by_key(|(number, _)| *number);
            last.dedup_by_key(|(number, _)| *number);
            // What a call has pushed is what it should be, if somebody else has written too.
            if last.iter().any(|(_, hit)| !hit.is_save) {
                last.retain(|(_, hit)| !hit.is_save);
            }
            let stale = slot(used).is_some_and(|slot| {
                let begins = |hit: &Hit| hit.writes && hit.is_of(&slot);
                let begun = hits.iter().rposition(begins);
                let defined = hits.iter().rposition(|hit| defines(&hit));
                location.address != slot.address && defined.is_some() && begun > defined
            });
            (*used, last, stale)
        };
        Ok(uses.iter().map(of).collect())
    }
}

impl LocationHistory {
    /// The definition that a failing thread saw: the last write before its last read.
    fn definition(&self, used: &Use, failed: &Failed) -> Option<usize> {
        let reader = failed.at.thread;
        let is_use = |access: &Access| {
            access.thread == reader
                && !access.writes()
                && (used.pc == 0 || used.pc.wrapping_sub(access.pc.0) < 64)
        };
        // Who fails in an orderly way frees what it has, behind its failure.
        let is_alive = |access: &Access| access.thread == reader && access.kind != AccessKind::Free;
        let frees =
            matches!(failed.at.kind, AccessKind::Free) || used.pc == 0 && failed.uses.len() == 1;
        let alive = self.accesses.iter().rposition(is_alive).filter(|_| !frees);
        let end = alive.map_or(self.accesses.len(), |last| last + 1);
        let read = self.accesses.iter().rposition(is_use).unwrap_or(end);
        let by_read = self.accesses[..read].iter().rposition(Access::writes);
        by_read.or_else(|| self.accesses.iter().rposition(Access::writes))
    }
}

/// The outer activations of a library call: its inner ones change while it goes on.
fn own_part(callers: &[u64]) -> &[u64] {
    &callers[callers.len().saturating_sub(3)..]
}
