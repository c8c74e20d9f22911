//! The loop of Figure 1: from a failure to the definition that it failed on, is a concurrency
//! bug at work there?, suppress it, and again with the next failure.
//!
//! The executions are counted as in Table II of the paper. What the paper's tool finds in a full
//! trace of each execution we find in raddle's trace, or, for memory that is not in it and for
//! programs without instrumentation, in an execution more with debug registers; those are
//! counted apart.
//!
//! Beyond the paper: where no failure is left and no concurrency bug was found, the definition
//! that was suppressed last may itself only have passed a wrong value on. Then what it was
//! computed from is looked at in the same way, as far back as values are copied and computed
//! in sight.

mod cycle;
mod deepen;
mod definition;
mod failed;
mod flips;
mod isolation;
mod run;

use raddle_trial::LaunchError;
use tempfile::TempDir;

use crate::check::CauseKind;
use crate::follow::{Job, Point};
use cycle::cycle;
use definition::Definition;
use failed::at_failure;
pub use isolation::{AccessAt, Cause, Executions, IsolateError, Isolation, Link, Target};
use run::Ran;

/// Isolates the cause of a failure. `tell` hears what is being done.
pub fn isolate(target: Target<'_>, tell: &mut dyn FnMut(&str)) -> Result<Isolation, IsolateError> {
    let mut session = Session {
        target,
        directory: TempDir::with_prefix("raddle-isolate-")?,
        executions: Executions::default(),
        n_stepped: 0,
        n_skipped: 0,
        notes: Vec::new(),
        chain: Vec::new(),
    };
    let original = session.original()?;
    session.executions.original = 1;
    let cause = session.search(&original, tell)?;
    Ok(Isolation {
        ending: original.ending(),
        cause,
        chain: session.chain,
        executions: session.executions,
        run: original.trial.execution.run,
        allowed: original.trial.execution.allowed,
        trace: original.trace,
        notes: session.notes,
        n_stepped: session.n_stepped,
        n_skipped: session.n_skipped,
    })
}

struct Session<'a> {
    target: Target<'a>,
    /// Where traces go that are too large for memory.
    directory: TempDir,
    executions: Executions,
    n_stepped: u64,
    n_skipped: u64,
    notes: Vec<String>,
    chain: Vec<Link>,
}

/// Iterations of the loop; the paper's programs needed three.
const ITERATIONS_MAX: usize = 24;
/// Values that are suppressed together; more would not find debug registers.
const VALUES_MAX: usize = 3;

impl Session<'_> {
    /// The loop.
    fn search(
        &mut self,
        original: &Ran,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Option<Cause>, IsolateError> {
        if let Some(accesses) = cycle(original) {
            // Who waits for whom is all there is to it.
            let at = accesses[accesses.len() - 1].clone();
            self.chain.push(Link::Failure { what: original.ending(), at });
            return Ok(Some(Cause { kind: CauseKind::Order, accesses }));
        }
        // The last execution that failed, if it is not the original.
        let mut later: Option<Ran> = None;
        let mut points: Vec<Point> = Vec::new();
        let mut cause = None;
        for iteration in 0..ITERATIONS_MAX {
            let failing = later.as_ref().unwrap_or(original);
            let Some(failed) = self.failed(failing, &points)? else {
                let what = failing.ending();
                self.notes.push(format!(
                    "the failure ({what}) uses no memory that could be found, so there is nothing to go back from"
                ));
                let at = failing.report.failure.as_ref().map(|failure| at_failure(failure, None));
                self.chain.extend(at.map(|at| Link::Failure { what, at }));
                return Ok(cause);
            };
            self.chain.push(Link::Failure { what: failing.ending(), at: failed.at.clone() });
            let definitions = self.definitions(failing, &failed, &points)?;
            let chosen = chosen(&definitions, &points);
            if chosen.is_empty() {
                let undefined = definitions.iter().find_map(|d| d.undefined(&failed));
                if let Some(at) = undefined {
                    self.chain.push(Link::Definition { at: at.clone(), suppressed: false });
                    return Ok(Some(Cause { kind: CauseKind::Statement, accesses: vec![at] }));
                }
                self.notes.push(match iteration {
                    0 => "nobody wrote the memory that the failure used".to_owned(),
                    _ => "the same failure came again, with nothing left to suppress".to_owned(),
                });
                return Ok(cause);
            }
            tell(&format!("{}: who defined what it used?", failing.ending()));
            let first_new = points.len();
            points.extend(chosen.iter().filter_map(|&at| definitions[at].point()));
            let watches = chosen.iter().map(|&at| definitions[at].used.location).collect();
            let job = Job { watches, with_reads: true, points: points.clone(), ..Job::default() };
            let suppressing = match self.run(job, false) {
                Err(IsolateError::Launch(LaunchError::Wait(error))) => {
                    self.notes.push(format!("the suppressed execution was lost: {error}"));
                    let found = self.concurrency(failing, &definitions, &chosen, failing)?;
                    let accesses = chosen.iter().map(|&at| definitions[at].at(&[])).collect();
                    return Ok(found.or(Some(Cause { kind: CauseKind::Statement, accesses })));
                }
                other => other?,
            };
            self.executions.suppression += 1;
            let suppressed = |of: usize| suppressing.report.suppressed_at(first_new + of);
            let ats: Vec<AccessAt> =
                (0..).zip(&chosen).map(|(of, &at)| definitions[at].at(&suppressed(of))).collect();
            let links = ats.iter().map(|at| Link::Definition { at: at.clone(), suppressed: true });
            self.chain.extend(links);
            // Who is suppressed is checked first.
            let found = self.concurrency(failing, &definitions, &chosen, &suppressing)?;
            if found.is_some() {
                return Ok(found);
            }
            let all = || chosen.iter().map(|&at| &definitions[at]);
            let objects = all().filter(|definition| !definition.is_memory());
            let order = self.two_accesses(failing, objects, &suppressing)?;
            if order.is_some() {
                return Ok(order);
            }
            cause = Some(Cause { kind: CauseKind::Statement, accesses: ats });
            if suppressing.report.suppressed.iter().all(|s| s.point < first_new) {
                let note = "the definition was not met again when it was to be suppressed";
                self.notes.push(note.to_owned());
            }
            if suppressing.trial.failure().is_none() {
                if suppressing.trial.unjudged().is_some() {
                    let ending = suppressing.ending();
                    let note = format!("the suppressed execution could not be judged: {ending}");
                    self.notes.push(note);
                }
                let order = self.two_accesses(failing, all(), &suppressing)?;
                if order.is_some() {
                    return Ok(order);
                }
                for (of, definition) in all().enumerate() {
                    let before = &points[..first_new];
                    let deeper = self.deepen(failing, definition, &suppressed(of), before)?;
                    if deeper.is_some() {
                        return Ok(deeper);
                    }
                }
                return Ok(cause);
            }
            later = Some(suppressing);
        }
        self.notes.push(format!("given up after {ITERATIONS_MAX} suppressions"));
        Ok(cause)
    }
}

/// The definitions to suppress next: of all values that the failure used, or, if none of those
/// is left, of what told where they are.
fn chosen(definitions: &[Definition], points: &[Point]) -> Vec<usize> {
    let is_new =
        |definition: &Definition| definition.point().is_some_and(|point| !points.contains(&point));
    let all = || (0..definitions.len()).filter(|&at| is_new(&definitions[at]));
    let values: Vec<usize> = all().filter(|&at| !definitions[at].used.is_address).collect();
    match values.is_empty() {
        true => all().take(1).collect(),
        false => values.into_iter().take(VALUES_MAX).collect(),
    }
}
