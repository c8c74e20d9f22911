//! Behind the last suppression: what a definition was computed from.
//!
//! Not in the paper. Each definition on the way back is met once more, to see what it was made of,
//! and checked for concurrency bugs as a suppressed one is. Without threads only unchanged
//! copies are followed, and nothing behind a write that strays into another heap block, or that
//! only writes a part of what was used: those are where it went wrong.

use super::Session;
use super::definition::{DefinedBy, Definition};
use super::isolation::{Cause, IsolateError, Link};
use super::run::Ran;
use crate::check::CauseKind;
use crate::failure::Use;
use crate::follow::{Job, Point, Suppressed};
use crate::location_history::{self, Access, LocationHistory};
use crate::origin::Origin;

/// Values that are followed back behind the last suppression.
const DEPTH_MAX: usize = 16;

impl Session<'_> {
    /// Goes back over what a definition was made of: the first concurrency bug there, or the
    /// first value that was made from nothing.
    pub(super) fn deepen(
        &mut self,
        failing: &Ran,
        definition: &Definition,
        suppressed: &[Suppressed],
        points: &[Point],
    ) -> Result<Option<Cause>, IsolateError> {
        let mut sources = sources(definition, suppressed);
        let mut blamed = None;
        let mut seen = vec![definition.used.location];
        // Without other threads, only what is passed on unchanged is not to blame.
        let is_passed_on = |origin: &Origin, value: Option<u64>| {
            failing.trace.is_some() || origin.value.is_some() && origin.value == value
        };
        let mut value = definition.used.value;
        for _ in 0..DEPTH_MAX {
            sources.retain(|origin| is_passed_on(origin, value));
            let uses: Vec<Use> = sources
                .iter()
                .filter_map(|origin| {
                    let location = origin.location?;
                    let used = Use::new(origin.pc, location, origin.value);
                    (!seen.contains(&location)).then_some(used)
                })
                .collect();
            if uses.is_empty() {
                break;
            }
            let mut next = None;
            for used in uses {
                seen.push(used.location);
                let found = self.deeper(failing, &used, points)?;
                let Some((definition, run, suppressed)) = found else { continue };
                let at = definition.at(&suppressed);
                if let Some(cause) =
                    self.concurrency(failing, std::slice::from_ref(&definition), &[0], &run)?
                {
                    self.chain.push(Link::Definition { at, suppressed: false });
                    return Ok(Some(cause));
                }
                if next.is_none() {
                    self.chain.push(Link::Definition { at: at.clone(), suppressed: false });
                    value = at.value;
                    blamed = Some(Cause { kind: CauseKind::Statement, accesses: vec![at] });
                    next = Some(self::sources(&definition, &suppressed));
                }
            }
            sources = next.unwrap_or_default();
        }
        Ok(blamed)
    }

    /// The last definition of something that a definition used, met once more to see what it
    /// was made of.
    fn deeper(
        &mut self,
        failing: &Ran,
        used: &Use,
        points: &[Point],
    ) -> Result<Option<(Definition, Ran, Vec<Suppressed>)>, IsolateError> {
        let history = match &failing.trace {
            Some(trace) => location_history::of(trace, used.location)?,
            None => LocationHistory::default(),
        };
        let last = history.accesses.iter().rposition(Access::writes);
        let by = match last {
            Some(target) => DefinedBy::Traced { history, target },
            None => {
                let watched = self.watched(std::slice::from_ref(used), points)?.pop();
                match watched {
                    Some((_, hits, _)) if !hits.is_empty() => DefinedBy::Watched { hits },
                    _ => return Ok(None),
                }
            }
        };
        let definition = Definition { used: *used, by };
        let Some(point) = definition.point() else { return Ok(None) };
        let points = [points, &[point]].concat();
        let last = points.len() - 1;
        let job = Job { watches: vec![used.location], with_reads: true, points, ..Job::default() };
        let ran = self.run(job, false)?;
        self.executions.watch += 1;
        let suppressed = ran.report.suppressed_at(last);
        Ok(Some((definition, ran, suppressed)))
    }
}

/// What a definition was made of; nothing if it is where it went wrong: it writes only a part of
/// what was used, or strays.
fn sources(definition: &Definition, suppressed: &[Suppressed]) -> Vec<Origin> {
    if definition.is_partial() || suppressed.iter().any(|suppressed| suppressed.strays) {
        return Vec::new();
    }
    suppressed.iter().flat_map(|suppressed| suppressed.sources.clone()).collect()
}
