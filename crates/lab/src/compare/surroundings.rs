//! What speaks against a suspect because of where its accesses are.

use raddle_analysis::localize::facts::SiteAccess;
use raddle_analysis::witness::AccessKind;
use raddle_trace::id::Site;
use raddle_trace::run::Run;

use super::candidate::Objections;
use crate::executor::IsOwn;
use crate::recorded::Recorded;
use crate::sample::Sample;

/// What surrounds the accesses of a failed run.
pub(super) struct Surroundings<'a> {
    run: &'a Run,
    is_own: &'a IsOwn,
    passed: &'a [Sample],
    failed: Option<&'a Recorded>,
}

impl<'a> Surroundings<'a> {
    /// By a failed run, runs that passed, and the failed run once more with its trace.
    pub(super) fn new(
        run: &'a Run,
        is_own: &'a IsOwn,
        passed: &'a [Sample],
        failed: Option<&'a Recorded>,
    ) -> Self {
        Self { run, is_own, passed, failed }
    }

    /// What speaks against accesses: two pairs of them, or two or three that follow each other.
    pub(super) fn objections(&self, accesses: &[SiteAccess]) -> Objections {
        let passes = |access: SiteAccess| self.passed.iter().any(|sample| sample.facts.has(access));
        // Where a thread blocks forever others acquire the lock; in a cycle that need not be usual.
        let is_usual = |access: &SiteAccess| match access.kind {
            AccessKind::Block => {
                self.failed.is_some_and(|run| run.is_waited_for(*access))
                    || passes(SiteAccess { kind: AccessKind::Acquire, ..*access })
            }
            _ => passes(*access),
        };
        let n_pairs = if accesses.len() == 4 { 2 } else { accesses.len() - 1 };
        let in_run = |is_so: &dyn Fn(&Recorded) -> bool| self.failed.is_some_and(is_so);
        Objections {
            foreign: !accesses.iter().all(|access| self.is_own(access.site)),
            unusual: !accesses.iter().all(is_usual),
            fixed: self.n_fixed(accesses) == n_pairs,
            lock: in_run(&|run| accesses.iter().all(|access| run.is_of_lock(*access))),
            elsewhere: in_run(&|run| !accesses.iter().any(|access| run.is_waited_for(*access))),
        }
    }

    /// How many pairs of accesses that follow each other do so in any order of threads, or should.
    pub(super) fn n_fixed(&self, accesses: &[SiteAccess]) -> usize {
        let Some(run) = self.failed else { return 0 };
        let is_fixed =
            |pair: &&[SiteAccess]| is_due(pair[0], pair[1]) || run.is_fixed(pair[0], pair[1]);
        match accesses.len() {
            4 => accesses.chunks(2).filter(is_fixed).count(),
            _ => accesses.windows(2).filter(is_fixed).count(),
        }
    }

    /// Whether a site is in the program's own code, not in a library, where causes are rare.
    fn is_own(&self, site: Site) -> bool {
        self.run.pc(site).is_some_and(|pc| (self.is_own)(self.run, pc))
    }
}

/// Whether two accesses to a synchronization object come in the order in which they should: it is
/// used after it begins and before it ends. Not so for other memory, where whoever has used it may
/// rely on what is gone then.
const fn is_due(head: SiteAccess, tail: SiteAccess) -> bool {
    let begins = matches!(head.kind, AccessKind::Init) && !matches!(tail.kind, AccessKind::Init);
    let ends =
        matches!(tail.kind, AccessKind::Destroy) && !matches!(head.kind, AccessKind::Destroy);
    head.kind.is_of_object() && tail.kind.is_of_object() && (begins || ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_to_be_used_between_its_beginning_and_its_end() {
        let access = |kind| SiteAccess { site: Site(0), kind };
        let is_due = |head, tail| super::is_due(access(head), access(tail));
        assert!(
            is_due(AccessKind::Init, AccessKind::Acquire)
                && is_due(AccessKind::Release, AccessKind::Destroy)
        );
        assert!(
            !is_due(AccessKind::Destroy, AccessKind::Release)
                && !is_due(AccessKind::Acquire, AccessKind::Init)
        );
        assert!(
            !is_due(AccessKind::Destroy, AccessKind::Destroy)
                && !is_due(AccessKind::Read, AccessKind::Free)
        );
    }
}
