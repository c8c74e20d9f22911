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

use std::io;
use std::path::PathBuf;

use raddle_analysis::scan::Model;
use raddle_analysis::skeleton::Stretch;
use raddle_analysis::weave::{schedule, weave};
use raddle_analysis::witness::Deed;
use raddle_trace::control::{Policy, State};
use raddle_trace::file::{ReadError, Trace, WriteError, Writer};
use raddle_trace::id::{Addr, Pc, ThreadId};
use raddle_trace::run::Run;
use raddle_trace::schedule::Schedule;
use raddle_trial::outcome::signal_name;
use raddle_trial::verdict::{Expected, Verdict, judge};
use raddle_trial::{
    Delivery, End, Execution, Launch, LaunchError, Order, Plain, Plan, Status, execute,
    execute_plain, execute_traced,
};
use tempfile::TempDir;

use crate::check::{self, CauseKind, Flipped, HOLDS, Trials};
use crate::failure::{Failure, Use};
use crate::follow::{Follower, Hit, Job, Pick, Point, Report, Suppressed};
use crate::origin::{Location, Origin};
use crate::story::{self, Access, Story};

/// A program that fails, and how to make it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// How it is started.
    pub launch: &'a Launch,
    /// Its threads' order, if it is built for raddle; without, it runs as it is.
    pub plan: Option<&'a Plan>,
    /// What makes it pass.
    pub expected: &'a Expected,
}

/// What was found out.
pub struct Isolation {
    /// How the program failed, in words.
    pub ending: String,
    /// The cause, as far as it was found.
    pub cause: Option<Cause>,
    /// From the failure back to the cause.
    pub chain: Vec<Link>,
    /// What it took.
    pub executions: Executions,
    /// For names.
    pub run: Run,
    /// The failing execution's trace, if it has one.
    pub trace: Option<Trace>,
    /// What could not be done, in words.
    pub notes: Vec<String>,
    /// Instructions that were executed one by one.
    pub n_stepped: u64,
    /// Instructions that were passed over.
    pub n_skipped: u64,
}

/// The cause of a failure.
#[derive(Clone, Debug)]
pub struct Cause {
    /// What it is.
    pub kind: CauseKind,
    /// What is to blame, in the order in which it happened.
    pub accesses: Vec<AccessAt>,
}

/// An access, by addresses.
#[derive(Clone, Debug)]
pub struct AccessAt {
    /// Who.
    pub thread: ThreadId,
    /// What.
    pub deed: Deed,
    /// Where in the program: behind the instruction, and where the activations around it
    /// return to.
    pub pcs: Vec<Pc>,
    /// Which memory.
    pub location: Option<Location>,
    /// The value read or written, if it is known.
    pub value: Option<u64>,
}

/// A link of the chain of corruption.
#[derive(Clone, Debug)]
pub enum Link {
    /// A failure, with the memory that it used.
    Failure {
        /// In words.
        what: String,
        /// Who and where; the memory that it is about.
        at: AccessAt,
    },
    /// A definition.
    Definition {
        /// Who and where; what it defined.
        at: AccessAt,
        /// Whether it was suppressed; if not, it was found by going back over values.
        suppressed: bool,
    },
}

/// Executions, counted as in Table II of the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// The failing one.
    pub original: u32,
    /// With definitions suppressed.
    pub suppression: u32,
    /// With the accesses of a race in the other order.
    pub race: u32,
    /// With the accesses of a violation in another order.
    pub violation: u32,
    /// Only to see who defines a location.
    pub watch: u32,
}

/// Why nothing could be isolated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IsolateError {
    /// It passes.
    #[error("it does not fail: {ending}")]
    Passes {
        /// How it ended instead.
        ending: String,
    },
    /// The schedule does not fit.
    #[error("it does not replay any more: {why}")]
    Diverged {
        /// In words.
        why: String,
    },
    /// The kernel does not let us trace.
    #[error(
        "the kernel does not allow raddle to trace the program; allow it with `sysctl -w kernel.yama.ptrace_scope=1`, in a container with --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined"
    )]
    Forbidden,
    /// Whoever runs raddle wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The program could not be run.
    #[error(transparent)]
    Launch(LaunchError),
    /// The user's own judge could not be asked.
    #[error(transparent)]
    Oracle(#[from] raddle_trial::verdict::OracleError),
    /// A trace could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The operating system refused.
    #[error("cannot keep traces: {0}")]
    Io(#[from] io::Error),
}

impl From<LaunchError> for IsolateError {
    fn from(error: LaunchError) -> Self {
        match &error {
            // A program that may not be executed has another code.
            LaunchError::Start { source, .. } if source.raw_os_error() == Some(libc::EPERM) => {
                Self::Forbidden
            }
            LaunchError::Wait(source) if source.raw_os_error() == Some(libc::EPERM) => {
                Self::Forbidden
            }
            _ => Self::Launch(error),
        }
    }
}

/// Isolates the cause of a failure. `tell` hears what is being done.
pub fn isolate(target: Target<'_>, tell: &mut dyn FnMut(&str)) -> Result<Isolation, IsolateError> {
    let directory = TempDir::with_prefix("raddle-isolate-")?;
    let mut session = Session {
        target,
        path: directory.path().join("trace"),
        executions: Executions::default(),
        n_stepped: 0,
        n_skipped: 0,
        notes: Vec::new(),
        chain: Vec::new(),
    };
    let original = session.original()?;
    session.executions.original = 1;
    let kept = directory.path().join("original");
    let trace = match original.trace {
        Some(_) => {
            std::fs::copy(&session.path, &kept)?;
            Some(Trace::open(&kept)?)
        }
        None => None,
    };
    let (ending, run) = (original.ending.clone(), original.run.clone());
    let cause = session.search(original, tell)?;
    Ok(Isolation {
        ending,
        cause,
        chain: session.chain,
        executions: session.executions,
        run,
        trace,
        notes: session.notes,
        n_stepped: session.n_stepped,
        n_skipped: session.n_skipped,
    })
}

struct Session<'a> {
    target: Target<'a>,
    /// Where traces go.
    path: PathBuf,
    executions: Executions,
    n_stepped: u64,
    n_skipped: u64,
    notes: Vec<String>,
    chain: Vec<Link>,
}

/// An execution.
struct Ran {
    /// In words.
    ending: String,
    fails: bool,
    report: Report,
    /// Under raddle's control.
    execution: Option<Execution>,
    trace: Option<Trace>,
    run: Run,
}

/// What watching a location told: the last write to each byte with its number, and whether they
/// are from before its activation began.
type Watched = (Use, Vec<(u64, Hit)>, bool);

/// Iterations of the loop; the paper's programs needed three.
const ITERATIONS_MAX: usize = 24;
/// Values that are followed back behind the last suppression.
const DEPTH_MAX: usize = 16;

impl Session<'_> {
    /// The failing execution.
    fn original(&mut self) -> Result<Ran, IsolateError> {
        let ran = self.run(Job::default(), true)?;
        if let Some(execution) = &ran.execution {
            let end = &execution.outcome.end;
            match end {
                End::Diverged(_) => {
                    let why = "threads stop elsewhere than its schedule says";
                    return Err(IsolateError::Diverged { why: why.into() });
                }
                End::Internal { message } => {
                    return Err(IsolateError::Diverged { why: message.clone() });
                }
                End::Unattached { status } => {
                    let why = format!("{status}, without ever having met raddle's runtime");
                    return Err(IsolateError::Diverged { why });
                }
                _ => {}
            }
        }
        if !ran.fails {
            return Err(IsolateError::Passes { ending: ran.ending });
        }
        Ok(ran)
    }

    /// Executes the target, followed.
    fn run(&mut self, job: Job, strict: bool) -> Result<Ran, IsolateError> {
        let mut follower = Follower::new(job);
        let Some(plan) = self.target.plan else {
            let plain = execute_plain(self.target.launch, Some(&mut follower))?;
            return self.plain(plain, follower.report);
        };
        let mut plan = plan.clone();
        if let Order::Follow { strict: is_strict, .. } = &mut plan.order {
            *is_strict &= strict;
        }
        let mut writer = Writer::create(&self.path)?;
        let delivery = Delivery::EveryRecord(&mut writer);
        let execution = execute_traced(self.target.launch, &plan, delivery, &mut follower)?;
        writer.finish(&execution.run)?;
        if execution.outcome.end == End::Interrupted {
            return Err(IsolateError::Interrupted);
        }
        let verdict = judge(&execution, self.target.expected)?;
        let trace = Trace::open(&self.path)?;
        self.count(&follower.report);
        Ok(Ran {
            ending: match &verdict {
                Verdict::Fail(failure) => failure.detail.clone(),
                _ => execution.outcome.end.to_string(),
            },
            fails: matches!(verdict, Verdict::Fail(_)),
            run: execution.run.clone(),
            report: follower.report,
            execution: Some(execution),
            trace: Some(trace),
        })
    }

    fn plain(&mut self, plain: Plain, report: Report) -> Result<Ran, IsolateError> {
        if plain.interrupted {
            return Err(IsolateError::Interrupted);
        }
        let expected = self.target.expected;
        let stdout = plain.stdout.as_ref().map(|captured| &captured.bytes[..]);
        let is_status = plain.status == Status::Exited(expected.status.unwrap_or(0));
        let is_output = expected.stdout.as_deref().is_none_or(|wanted| stdout == Some(wanted));
        let launch = self.target.launch;
        let ending = if plain.timed_out { "hang".to_owned() } else { plain.status.to_string() };
        self.count(&report);
        Ok(Ran {
            fails: plain.timed_out || !is_status || !is_output,
            run: Run {
                command: launch
                    .arguments
                    .iter()
                    .map(|argument| argument.to_string_lossy().into_owned())
                    .collect(),
                directory: String::new(),
                mode: raddle_trace::control::Mode::Free,
                policy: None,
                seed: 0,
                modules: report.modules.clone(),
                threads: vec![raddle_trace::run::Thread {
                    id: ThreadId(0),
                    name: "main".to_owned(),
                    label: None,
                    stack: (Addr(0), Addr(0)),
                }],
                ending: Some(ending.clone()),
            },
            ending,
            report,
            execution: None,
            trace: None,
        })
    }

    fn count(&mut self, report: &Report) {
        self.n_stepped += report.n_stepped;
        self.n_skipped += report.n_skipped;
        for note in &report.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }

    fn search(
        &mut self,
        original: Ran,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Option<Cause>, IsolateError> {
        if let Some(accesses) = circle(&original) {
            // Who waits for whom is all there is to it.
            let at = accesses[accesses.len() - 1].clone();
            self.chain.push(Link::Failure { what: original.ending.clone(), at });
            return Ok(Some(Cause { kind: CauseKind::Order, accesses }));
        }
        let mut failing = original;
        let mut points: Vec<Point> = Vec::new();
        let mut cause = None;
        for iteration in 0..ITERATIONS_MAX {
            let Some(failed) = self.failed(&failing, &points)? else {
                if let Some(at) =
                    failing.report.failure.as_ref().map(|failure| at_failure(failure, None))
                {
                    self.chain.push(Link::Failure { what: failing.ending.clone(), at });
                }
                self.notes.push(format!(
                    "the failure ({}) uses no memory that could be found, so there is nothing to go back from",
                    failing.ending
                ));
                return Ok(cause);
            };
            self.chain.push(Link::Failure { what: failing.ending.clone(), at: failed.at.clone() });
            let definitions = self.definitions(&failing, &failed, &points)?;
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
            tell(&format!("{}: who defined what it used?", failing.ending));
            let first_new = points.len();
            points.extend(chosen.iter().filter_map(|&at| definitions[at].point()));
            let watches = chosen.iter().map(|&at| definitions[at].used.location).collect();
            let job = Job { watches, with_reads: true, points: points.clone(), ..Job::default() };
            let suppressing = match self.run(job, false) {
                Err(IsolateError::Launch(LaunchError::Wait(error))) => {
                    self.notes.push(format!("the suppressed execution was lost: {error}"));
                    let found = self.concurrency(&failing, &definitions, &chosen, &failing)?;
                    let accesses = chosen.iter().map(|&at| definitions[at].at(&[])).collect();
                    return Ok(found.or(Some(Cause { kind: CauseKind::Statement, accesses })));
                }
                other => other?,
            };
            self.executions.suppression += 1;
            let suppressed = |of: usize| -> Vec<Suppressed> {
                let all = suppressing.report.suppressed.iter();
                all.filter(|suppressed| suppressed.point == first_new + of).cloned().collect()
            };
            let ats: Vec<AccessAt> =
                (0..chosen.len()).map(|of| definitions[chosen[of]].at(&suppressed(of))).collect();
            let links = ats.iter().map(|at| Link::Definition { at: at.clone(), suppressed: true });
            self.chain.extend(links);
            // Who is suppressed is checked first.
            let found = self.concurrency(&failing, &definitions, &chosen, &suppressing)?;
            if found.is_some() {
                return Ok(found);
            }
            for &at in chosen.iter().filter(|&&at| !definitions[at].is_memory()) {
                let order = self.two_accesses(&failing, &definitions[at], &suppressing)?;
                if order.is_some() {
                    return Ok(order);
                }
            }
            cause = Some(Cause { kind: CauseKind::Statement, accesses: ats });
            if suppressing.report.suppressed.iter().all(|s| s.point < first_new) {
                let note = "the definition was not met again when it was to be suppressed";
                self.notes.push(note.to_owned());
            }
            if !suppressing.fails || suppressing.is_unjudged() {
                if suppressing.is_unjudged() {
                    let ending = &suppressing.ending;
                    let note = format!("the suppressed execution could not be judged: {ending}");
                    self.notes.push(note);
                }
                for &at in &chosen {
                    let order = self.two_accesses(&failing, &definitions[at], &suppressing)?;
                    if order.is_some() {
                        return Ok(order);
                    }
                }
                for (of, &at) in chosen.iter().enumerate() {
                    if suppressed(of).iter().any(|suppressed| suppressed.strays) {
                        continue;
                    }
                    let sources = suppressed(of).iter().flat_map(|s| s.sources.clone()).collect();
                    let before = &points[..first_new];
                    let deeper = self.deepen(&failing, &definitions[at], sources, before)?;
                    if deeper.is_some() {
                        return Ok(deeper);
                    }
                }
                return Ok(cause);
            }
            failing = suppressing;
        }
        self.notes.push(format!("given up after {ITERATIONS_MAX} suppressions"));
        Ok(cause)
    }

    /// What a failing execution failed on; loads whose addresses the end of the execution does
    /// not tell are looked up in its trace, or in an execution more.
    fn failed(&mut self, failing: &Ran, points: &[Point]) -> Result<Option<Failed>, IsolateError> {
        if let Some(failed) = failed(failing) {
            return Ok(Some(failed));
        }
        let Some(failure) = &failing.report.failure else { return Ok(None) };
        let found = match &failing.trace {
            Some(trace) => loaded(trace, failure)?,
            None => Vec::new(),
        };
        let found = if found.is_empty() && !failure.lost.is_empty() {
            let probes = failure.lost.iter().take(VALUES_MAX).copied().collect();
            let job = Job { probes, points: points.to_vec(), ..Job::default() };
            let ran = self.run(job, false)?;
            self.executions.watch += 1;
            let thread = failure.thread.0;
            let probed = |pc: &u64| Some((*pc, *ran.report.probed.get(&(thread, *pc))?));
            failure.lost.iter().filter_map(probed).collect()
        } else {
            found
        };
        let uses: Vec<Use> = found
            .into_iter()
            .map(|(pc, location)| Use {
                pc,
                location,
                value: None,
                is_address: false,
                activation: None,
            })
            .collect();
        let Some(first) = uses.first() else { return Ok(None) };
        Ok(Some(Failed { at: at_failure(failure, Some(first)), uses }))
    }

    /// The last definitions of what a failure used, the likeliest first.
    fn definitions(
        &mut self,
        failing: &Ran,
        failed: &Failed,
        points: &[Point],
    ) -> Result<Vec<Definition>, IsolateError> {
        let mut definitions = Vec::new();
        let mut unseen: Vec<Use> = Vec::new();
        for used in &failed.uses {
            let story = match &failing.trace {
                Some(trace) => story::story(trace, used.location)?,
                None => Story::default(),
            };
            match story.definition(used, failed) {
                Some(target) => {
                    let how = How::Traced { story, target };
                    definitions.push(Definition { used: *used, how });
                }
                None => {
                    // What came from the heap and was never written is known to be so.
                    if story.allocated.is_none() {
                        unseen.push(*used);
                    }
                    let how = How::Untouched { allocated: story.allocated };
                    definitions.push(Definition { used: *used, how });
                }
            }
        }
        // What no trace knows of is watched, as far as debug registers go.
        let already = definitions.iter().any(|d| matches!(d.how, How::Traced { .. }));
        unseen.retain(|used| !already || failing.trace.is_none() || used.activation.is_some());
        for batch in unseen.chunks(2) {
            for (used, hits, stale) in self.watched(batch, points)? {
                if let Some(definition) = definitions.iter_mut().find(|d| d.used == used)
                    && !hits.is_empty()
                {
                    definition.how = if stale { How::Stale } else { How::Watched { hits } };
                }
            }
        }
        // What was never defined cannot be suppressed.
        definitions.sort_by_key(|definition| {
            !matches!(definition.how, How::Traced { .. } | How::Watched { .. } | How::Stale)
        });
        Ok(definitions)
    }

    /// For each of these: the last writes to each byte of it, with their numbers among all
    /// writes to it, and whether they were made before the activation that it belongs to began.
    fn watched(&mut self, uses: &[Use], points: &[Point]) -> Result<Vec<Watched>, IsolateError> {
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

    /// Checks all definitions for concurrency bugs, first the one that was suppressed.
    fn concurrency(
        &mut self,
        failing: &Ran,
        definitions: &[Definition],
        first: &[usize],
        suppressing: &Ran,
    ) -> Result<Option<Cause>, IsolateError> {
        let others = (0..definitions.len()).filter(|at| !first.contains(at));
        for at in first.iter().copied().chain(others) {
            let How::Traced { story, target } = &definitions[at].how else { continue };
            let Some(mut flips) =
                self.flips(failing, definitions[at].used.location, suppressing)?
            else {
                continue;
            };
            let found = check::check(&mut flips, story, *target)?;
            let (race, violation) = (flips.n_race, flips.n_violation);
            let values: Vec<Option<u64>> = found
                .iter()
                .flat_map(|(_, accesses)| accesses)
                .map(|access| flips.value(access))
                .collect();
            self.executions.race += race;
            self.executions.violation += violation;
            if let Some((kind, accesses)) = found {
                return Ok(Some(cause_of(kind, &accesses, &values)));
            }
        }
        Ok(None)
    }

    /// The special check at the end: two accesses in the wrong order.
    fn two_accesses(
        &mut self,
        failing: &Ran,
        definition: &Definition,
        suppressing: &Ran,
    ) -> Result<Option<Cause>, IsolateError> {
        let How::Traced { story, target } = &definition.how else { return Ok(None) };
        let Some(mut flips) = self.flips(failing, definition.used.location, suppressing)? else {
            return Ok(None);
        };
        let found = check::order(&mut flips, story, *target)?;
        self.executions.violation += flips.n_violation;
        Ok(found.map(|(kind, accesses)| {
            let values = vec![None; accesses.len()];
            cause_of(kind, &accesses, &values)
        }))
    }

    fn flips<'s>(
        &self,
        failing: &'s Ran,
        location: Location,
        watched: &'s Ran,
    ) -> Result<Option<Flips<'s>>, IsolateError>
    where
        Self: 's,
    {
        let (Some(trace), Some(plan)) = (&failing.trace, self.target.plan) else { return Ok(None) };
        Ok(Some(Flips {
            launch: self.target.launch.clone(),
            expected: self.target.expected.clone(),
            plan: plan.clone(),
            run: &failing.run,
            model: story::model(trace)?,
            location,
            // Behind the definition all is different.
            watched: {
                let report = &watched.report;
                let until = report.suppressed.last().map_or(report.hits.len(), |s| s.n_hits);
                &report.hits[..until]
            },
            n_race: 0,
            n_violation: 0,
        }))
    }

    /// Goes back over what a definition was made of: the first concurrency bug there, or the
    /// first value that was made from nothing.
    fn deepen(
        &mut self,
        failing: &Ran,
        definition: &Definition,
        sources: Vec<Origin>,
        points: &[Point],
    ) -> Result<Option<Cause>, IsolateError> {
        let mut sources = sources;
        let mut blamed = None;
        let mut seen = vec![definition.used.location];
        if definition.is_partial() {
            return Ok(None);
        }
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
                    (!seen.contains(&location)).then_some(Use {
                        pc: origin.pc,
                        location,
                        value: origin.value,
                        is_address: false,
                        activation: None,
                    })
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
                    let is_end = definition.is_partial() || suppressed.iter().any(|s| s.strays);
                    next = Some(match is_end {
                        true => Vec::new(),
                        false => suppressed.iter().flat_map(|s| s.sources.clone()).collect(),
                    });
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
        let story = match &failing.trace {
            Some(trace) => story::story(trace, used.location)?,
            None => Story::default(),
        };
        let last = story.accesses.iter().rposition(Access::writes);
        let how = match last {
            Some(target) => How::Traced { story, target },
            None => {
                let watched = self.watched(std::slice::from_ref(used), points)?.pop();
                match watched {
                    Some((_, hits, _)) if !hits.is_empty() => How::Watched { hits },
                    _ => return Ok(None),
                }
            }
        };
        let definition = Definition { used: *used, how };
        let Some(point) = definition.point() else { return Ok(None) };
        let mut all = points.to_vec();
        all.push(point);
        let job = Job {
            watches: vec![used.location],
            with_reads: true,
            points: all.clone(),
            ..Job::default()
        };
        let ran = self.run(job, false)?;
        self.executions.watch += 1;
        let suppressed: Vec<Suppressed> =
            ran.report.suppressed.iter().filter(|s| s.point == all.len() - 1).cloned().collect();
        Ok(Some((definition, ran, suppressed)))
    }
}

/// The outer activations of a library call: its inner ones change while it goes on.
fn own_part(callers: &[u64]) -> &[u64] {
    &callers[callers.len().saturating_sub(3)..]
}

fn cause_of(kind: CauseKind, accesses: &[Access], values: &[Option<u64>]) -> Cause {
    let at = |(access, value): (&Access, &Option<u64>)| AccessAt {
        thread: access.thread,
        deed: access.deed,
        pcs: vec![access.pc],
        location: Some(access.location),
        value: *value,
    };
    Cause { kind, accesses: accesses.iter().zip(values).map(at).collect() }
}

impl Ran {
    fn is_unjudged(&self) -> bool {
        self.execution.as_ref().is_some_and(|execution| execution.outcome.end.is_unjudged())
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

/// Values that are suppressed together; more would not find debug registers.
const VALUES_MAX: usize = 3;

/// A failure, with the memory that it used.
struct Failed {
    at: AccessAt,
    uses: Vec<Use>,
}

/// Threads that wait for each other in a circle: where each got what the next one waits for, and
/// where it waits itself.
fn circle(ran: &Ran) -> Option<Vec<AccessAt>> {
    let outcome = &ran.execution.as_ref()?.outcome;
    if outcome.end != End::Deadlock {
        return None;
    }
    let waits_for = |thread: ThreadId| {
        let at = outcome.threads.get(thread.0 as usize)?;
        let waits = !matches!(at.state, State::Ready | State::Ended | State::Unborn);
        at.holder.filter(|_| waits).map(|(holder, _)| holder)
    };
    let path = outcome.threads.iter().find_map(|start| {
        let mut path = vec![start.thread];
        while let Some(next) = waits_for(path[path.len() - 1]) {
            if next == start.thread {
                return Some(path);
            }
            if path.contains(&next) {
                return None;
            }
            path.push(next);
        }
        None
    })?;
    let mut accesses = Vec::new();
    for thread in path {
        let waiting = &outcome.threads[thread.0 as usize];
        let location = Some(Location { address: waiting.object.0, n_bytes: 1 });
        let at = |thread: ThreadId, pc: Pc, deed: Deed| AccessAt {
            thread,
            deed,
            pcs: vec![pc],
            location: location.filter(|_| waiting.state != State::Join),
            value: None,
        };
        let held = waiting.holder.filter(|(_, pc)| *pc != Pc(0) && waiting.state != State::Join);
        if let Some((holder, pc)) = held {
            accesses.push(at(holder, pc, Deed::Acquire));
        }
        accesses.push(at(thread, waiting.pc, Deed::Wait));
    }
    Some(accesses)
}

/// What a failing execution failed on.
fn failed(ran: &Ran) -> Option<Failed> {
    let of_memory = |thread: ThreadId, pc: Pc, address: u64, n_bytes: u64, deed: Deed| {
        let location = Location { address, n_bytes };
        let used = Use { pc: 0, location, value: None, is_address: false, activation: None };
        let at = AccessAt { thread, deed, pcs: vec![pc], location: Some(location), value: None };
        Failed { at, uses: vec![used] }
    };
    if let Some(execution) = &ran.execution {
        let outcome = &execution.outcome;
        match &outcome.end {
            End::UseAfterFree { place } => {
                return Some(of_memory(place.thread, place.pc, place.addr.0, 1, Deed::Read));
            }
            End::DoubleFree { place } => {
                return Some(of_memory(place.thread, place.pc, place.addr.0, 1, Deed::Free));
            }
            // Through a null pointer: then that pointer is what was wrong.
            End::Misuse { place, .. } if place.addr.0 >= 4096 => {
                return Some(of_memory(place.thread, place.pc, place.addr.0, 1, Deed::Acquire));
            }
            End::Deadlock | End::LostWakeup => {
                let missed = outcome.threads.iter().find(|at| at.missed.is_some());
                let waits = outcome.threads.iter().find(|at| {
                    matches!(at.state, State::Cond | State::Semaphore | State::Lock | State::Futex)
                });
                let at = missed.or(waits)?;
                return Some(of_memory(at.thread, at.pc, at.object.0, 1, Deed::Wait));
            }
            End::Livelock { .. } | End::Hang { .. } => {
                // Whoever still runs waits for what it reads.
                let running = outcome.threads.iter().find(|at| at.state == State::Ready);
                let place = outcome.end.place();
                let (thread, pc) = match (place, running) {
                    (Some(place), _) => (place.thread, place.pc),
                    (None, Some(at)) => (at.thread, at.pc),
                    (None, None) => return None,
                };
                let location = last_read(ran.trace.as_ref()?, thread)?;
                let Location { address, n_bytes } = location;
                return Some(of_memory(thread, pc, address, n_bytes, Deed::Read));
            }
            _ => {}
        }
    }
    let failure: &Failure = ran.report.failure.as_ref()?;
    let first = failure.uses.first()?;
    Some(Failed { at: at_failure(failure, Some(first)), uses: failure.uses.clone() })
}

/// Where a thread failed.
fn at_failure(failure: &Failure, used: Option<&Use>) -> AccessAt {
    let mut pcs = vec![Pc(failure.pc + 1)];
    pcs.extend(failure.callers.iter().map(|pc| Pc(*pc)));
    AccessAt {
        thread: failure.thread,
        deed: Deed::Read,
        pcs,
        location: used.map(|used| used.location),
        value: used.and_then(|used| used.value),
    }
}

/// What loads of unknown addresses have loaded last, as the trace tells.
fn loaded(trace: &Trace, failure: &Failure) -> Result<Vec<(u64, Location)>, ReadError> {
    use raddle_trace::event::Op;
    let mut last = rustc_hash::FxHashMap::default();
    for event in trace.events() {
        let event = event?;
        if event.thread == failure.thread
            && let Op::Read(access) = event.op
        {
            last.insert(event.pc.0, Location { address: access.addr.0, n_bytes: access.bytes });
        }
    }
    // A callback comes right before its load.
    let near = |pc: &u64| (0..48).find_map(|before| Some((*pc, *last.get(&(pc - before))?)));
    Ok(failure.lost.iter().filter_map(near).collect())
}

/// What a thread read last.
fn last_read(trace: &Trace, thread: ThreadId) -> Option<Location> {
    use raddle_trace::event::Op;
    let mut last = None;
    for event in trace.events().map_while(Result::ok).filter(|event| event.thread == thread) {
        match event.op {
            Op::Read(access) => {
                last = Some(Location { address: access.addr.0, n_bytes: access.bytes });
            }
            Op::Atomic(atomic) => {
                last = Some(Location { address: atomic.addr.0, n_bytes: u64::from(atomic.bytes) });
            }
            _ => {}
        }
    }
    last
}

impl Story {
    /// The definition that a failing thread saw: the last write before its last read.
    fn definition(&self, used: &Use, failed: &Failed) -> Option<usize> {
        let reader = failed.at.thread;
        let is_use = |access: &Access| {
            access.thread == reader
                && !access.writes()
                && (used.pc == 0 || used.pc.wrapping_sub(access.pc.0) < 64)
        };
        // Who fails in an orderly way frees what it has, behind its failure.
        let is_alive = |access: &Access| access.thread == reader && access.deed != Deed::Free;
        let frees = matches!(failed.at.deed, Deed::Free) || used.pc == 0 && failed.uses.len() == 1;
        let alive = self.accesses.iter().rposition(is_alive).filter(|_| !frees);
        let end = alive.map_or(self.accesses.len(), |last| last + 1);
        let read = self.accesses.iter().rposition(is_use).unwrap_or(end);
        let by_read = self.accesses[..read].iter().rposition(Access::writes);
        by_read.or_else(|| self.accesses.iter().rposition(Access::writes))
    }
}

/// The last definition of a location that a failure used.
struct Definition {
    used: Use,
    how: How,
}

enum How {
    /// The trace tells it, and all other accesses.
    Traced { story: Story, target: usize },
    /// Debug registers told it: the last write to each byte, with its number.
    Watched { hits: Vec<(u64, Hit)> },
    /// What it holds was left there before it came to be.
    Stale,
    /// Nobody wrote it, since it was allocated.
    Untouched { allocated: Option<(ThreadId, Pc)> },
}

impl Definition {
    /// How to suppress it.
    fn point(&self) -> Option<Point> {
        let location = self.used.location;
        let pick = match &self.how {
            How::Traced { story, target } => {
                let Access { thread, pc, nth, deed, .. } = &story.accesses[*target];
                if matches!(deed, Deed::Write | Deed::AtomicWrite | Deed::Free) {
                    Pick::Event { thread: thread.0, pc: pc.0, nth: *nth }
                } else {
                    // A synchronization object's word is not what the program writes.
                    Pick::Numbers(Vec::new())
                }
            }
            How::Watched { hits } => {
                Pick::Numbers(hits.iter().map(|(number, _)| *number).collect())
            }
            How::Stale | How::Untouched { .. } => return None,
        };
        Some(Point { location, pick })
    }

    /// Where it is, and what it wrote.
    fn at(&self, suppressed: &[Suppressed]) -> AccessAt {
        let met = suppressed.last();
        let location = Some(self.used.location);
        let value = |hit: &Hit| value_in(hit, self.used.location, hit.after);
        let around = || met.into_iter().flat_map(|met| met.callers.iter().map(|pc| Pc(*pc)));
        match &self.how {
            How::Traced { story, target } => {
                let Access { thread, deed, pc, .. } = story.accesses[*target];
                let pcs = std::iter::once(pc).chain(around()).collect();
                AccessAt { thread, deed, pcs, location, value: met.map(|met| value(&met.hit)) }
            }
            How::Watched { hits } => {
                let (_, hit) = hits.last().expect("never empty");
                let mut pcs = vec![Pc(hit.pc + 1)];
                pcs.extend(hit.callers.iter().map(|pc| Pc(*pc)));
                if hit.callers.is_empty() {
                    pcs.extend(around());
                }
                let value = Some(value(hit));
                AccessAt { thread: hit.thread, deed: Deed::Write, pcs, location, value }
            }
            How::Stale | How::Untouched { .. } => unreachable!("it cannot be suppressed"),
        }
    }

    /// Whether it is a write to memory, not an operation on a synchronization object.
    fn is_memory(&self) -> bool {
        match &self.how {
            How::Traced { story, target } => {
                let deed = story.accesses[*target].deed;
                matches!(deed, Deed::Write | Deed::AtomicWrite | Deed::Free)
            }
            _ => true,
        }
    }

    /// Whether what was written is only a part of what was used: then it was not meant to
    /// define it.
    fn is_partial(&self) -> bool {
        match &self.how {
            How::Watched { hits } => {
                hits.iter().all(|(_, hit)| hit.location.n_bytes < self.used.location.n_bytes)
            }
            How::Traced { story, target } => {
                let access = &story.accesses[*target];
                access.location.n_bytes != self.used.location.n_bytes
            }
            How::Stale | How::Untouched { .. } => true,
        }
    }

    /// For memory that was used before it was defined: the use, or where it was allocated.
    fn undefined(&self, failed: &Failed) -> Option<AccessAt> {
        let location = Some(self.used.location);
        match &self.how {
            How::Untouched { allocated: Some((thread, pc)) } => Some(AccessAt {
                thread: *thread,
                deed: Deed::Init,
                pcs: vec![*pc],
                location,
                value: self.used.value,
            }),
            How::Stale => {
                let mut pcs = vec![Pc(self.used.pc + 1)];
                pcs.extend(failed.at.pcs.iter().copied());
                Some(AccessAt {
                    thread: failed.at.thread,
                    deed: Deed::Read,
                    pcs,
                    location,
                    value: self.used.value,
                })
            }
            _ => None,
        }
    }
}

/// The bytes of a location in a word that was watched.
fn value_in(hit: &Hit, location: Location, word: u64) -> u64 {
    let shift = location.address.saturating_sub(hit.word).min(7) * 8;
    let n_bytes = location.n_bytes.min(8);
    let value = word >> shift;
    if n_bytes >= 8 { value } else { value & ((1 << (8 * n_bytes)) - 1) }
}

/// Executions in other orders.
struct Flips<'a> {
    launch: Launch,
    expected: Expected,
    plan: Plan,
    run: &'a Run,
    model: Model,
    location: Location,
    /// Accesses to the location in the failing execution, up to the definition.
    watched: &'a [Hit],
    n_race: u32,
    n_violation: u32,
}

impl Trials for Flips<'_> {
    type Error = IsolateError;

    fn flip(&mut self, order: &[&Access], with_values: bool) -> Result<Flipped, IsolateError> {
        self.execute(order, with_values, false)
    }

    fn put_last(&mut self, order: &[&Access]) -> Result<Flipped, IsolateError> {
        self.execute(order, false, true)
    }

    fn value(&self, access: &Access) -> Option<u64> {
        value_at(self.watched, access, self.location).or_else(|| {
            // Behind the definition, everybody read what it wrote.
            let last = self.watched.iter().rev().find(|hit| hit.writes)?;
            (!access.writes()).then(|| value_in(last, self.location, last.after))
        })
    }

    fn is_silent(&self, access: &Access) -> bool {
        let value = |hit: &Hit, word: u64| value_in(hit, self.location, word);
        hit_of(self.watched, access)
            .is_some_and(|hit| value(hit, hit.before) == value(hit, hit.after))
    }

    fn count_race(&mut self) {
        self.n_race += 1;
    }

    fn count_violation(&mut self) {
        self.n_violation += 1;
    }
}

impl Flips<'_> {
    /// Executes the program in this order; up to the last access, or up to the one before.
    fn execute(
        &self,
        order: &[&Access],
        with_values: bool,
        without_last: bool,
    ) -> Result<Flipped, IsolateError> {
        let witnesses: Vec<_> = order.iter().map(|access| access.witness()).collect();
        let mut tried: Vec<Schedule> = Vec::new();
        for hold in HOLDS {
            let n = witnesses.len() - usize::from(without_last);
            let Ok(stretches) = weave(&self.model, &witnesses[..n], hold) else { continue };
            let schedule = schedule(&self.model, &stretches, self.run);
            if tried.contains(&schedule) {
                continue;
            }
            tried.push(schedule.clone());
            let order_of_threads = Order::Follow { schedule, strict: false, after: Policy::Rr };
            let plan = Plan { order: order_of_threads, ..self.plan.clone() };
            let (execution, hits) = if with_values {
                let watches = vec![self.location];
                let job = Job { watches, with_reads: true, ..Job::default() };
                let mut follower = Follower::new(job);
                let execution =
                    execute_traced(&self.launch, &plan, Delivery::Nothing, &mut follower)?;
                (execution, follower.report.hits)
            } else {
                (execute(&self.launch, &plan, Delivery::Nothing)?, Vec::new())
            };
            if execution.outcome.end == End::Interrupted {
                return Err(IsolateError::Interrupted);
            }
            let passed = judge(&execution, &self.expected)? == Verdict::Pass;
            // Threads may go another way, and are left to it, if what was wanted has happened.
            let values: Vec<_> =
                order.iter().map(|access| value_at(&hits, access, self.location)).collect();
            // Behind the first access threads know that something is different.
            let decides = order[if without_last { n - 1 } else { 0 }];
            let is_done =
                |stretch: &Stretch| stretch.thread == decides.thread && stretch.to > decides.at;
            let done = stretches.iter().position(is_done).unwrap_or(usize::MAX);
            let n_choices = self.model.skeleton.choices.len();
            let followed = execution
                .outcome
                .left
                .is_none_or(|left| left.step as usize > done.saturating_add(n_choices));
            if followed || with_values && values.iter().all(Option::is_some) {
                return Ok(Flipped { feasible: true, passed, values });
            }
        }
        Ok(Flipped::default())
    }
}

/// The value of an access among those that were watched.
fn value_at(hits: &[Hit], access: &Access, location: Location) -> Option<u64> {
    let hit = hit_of(hits, access)?;
    Some(value_in(hit, location, hit.after))
}

/// An access among those that were watched.
fn hit_of<'h>(hits: &'h [Hit], access: &Access) -> Option<&'h Hit> {
    let is_it = |hit: &&Hit| {
        hit.thread == access.thread
            && hit.writes == access.writes()
            && (hit.pc.wrapping_sub(access.pc.0) < 64 || hit.callers.contains(&access.pc.0))
    };
    hits.iter().filter(is_it).nth(access.nth as usize)
}

/// A signal in words.
#[must_use]
pub fn signal_words(failure: &Failure) -> String {
    match (failure.signal, failure.address) {
        (Some(number), Some(address)) => format!("{}, accessing {address:#x}", signal_name(number)),
        (Some(number), None) => signal_name(number),
        (None, _) => "the program ended itself".to_owned(),
    }
}
