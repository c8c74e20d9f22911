//! `raddle isolate`: from a failure back to the write that first went wrong.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use raddle_isolate::{
    AccessAt, Cause, CauseKind, Executions, IsolateError, Isolation, Link, Location, Target,
};
use raddle_report::symbols::name::{Namer, Place};
use raddle_report::symbols::site::Frame;
use raddle_trace::clip::Clip;
use raddle_trace::id::{Addr, ThreadId};
use raddle_trial::binary::Unfit;
use raddle_trial::verdict::Expected;
use raddle_trial::{Launch, Plan};
use serde_json::{Value, json};

use crate::args::{IsolateArgs, TargetArgs};
use crate::exit::Exit;
use crate::{clip, replay, run, shell, target};

pub(crate) fn isolate(args: &IsolateArgs) -> Result<Exit> {
    let Subject { launch, plan, expected } = subject(args)?;
    target::prepare()?;
    let named = Target { launch: &launch, plan: plan.as_ref(), expected: &expected };
    let shows = !args.talk.quiet && io::stderr().is_terminal();
    let mut tell = |text: &str| {
        if shows {
            eprintln!("raddle: {text}");
        }
    };
    let isolation = match raddle_isolate::isolate(named, &mut tell) {
        Ok(isolation) => isolation,
        Err(error) => return refused(args, error),
    };
    let story = Told::new(&isolation);
    if args.talk.json {
        writeln!(io::stdout().lock(), "{}", story.json())?;
    } else {
        write!(io::stdout().lock(), "{}", story.text())?;
    }
    if !args.talk.quiet {
        for note in &isolation.notes {
            eprintln!("raddle: {note}");
        }
    }
    Ok(if isolation.cause.is_some() { Exit::Found } else { Exit::Unjudged })
}

/// Isolates what a hunt has found: in words, and as JSON. Why not, if it cannot be.
pub(crate) fn found(path: &Path) -> Result<(String, Value)> {
    let clip = Clip::read(path).with_context(|| path.display().to_string())?;
    let Subject { launch, plan, expected } = of_clip(path, &clip, None)?;
    let target = Target { launch: &launch, plan: plan.as_ref(), expected: &expected };
    let isolation = raddle_isolate::isolate(target, &mut |_| {})?;
    let told = Told::new(&isolation);
    Ok((told.text(), told.json()))
}

/// What is isolated.
struct Subject {
    launch: Launch,
    /// Without one it runs as it is.
    plan: Option<Plan>,
    expected: Expected,
}

fn subject(args: &IsolateArgs) -> Result<Subject> {
    let Some(path) = &args.clip else { return of_program(args) };
    let clip = Clip::read(path).with_context(|| path.display().to_string())?;
    of_clip(path, &clip, args.timeout)
}

/// What a clip tells of.
fn of_clip(path: &Path, clip: &Clip, timeout: Option<f64>) -> Result<Subject> {
    let (launch, program) = replay::launch(clip, None, timeout)?;
    if !clip.build_id.is_empty() && program.build_id != clip.build_id {
        bail!(
            "{} is another build than the one that {} was made with; rebuild that one, or make the clip anew",
            program.path.display(),
            path.display(),
        );
    }
    let expected = replay::expected(clip, &launch)?;
    Ok(Subject { launch, plan: Some(replay::plan(clip, true)), expected })
}

fn of_program(args: &IsolateArgs) -> Result<Subject> {
    if args.command.is_empty() {
        bail!(
            "nothing to isolate; name a clip, or a program after `--`: raddle isolate -- ./program argument"
        );
    }
    let typed = TargetArgs {
        timeout: args.timeout,
        input: args.input.clone(),
        command: args.command.clone(),
    };
    let expected = target::expected(&args.expected)?.unwrap_or_default();
    let (mut launch, is_plain) = match target::launch(&typed) {
        Ok((launch, program)) if program.is_script => {
            bail!("{} is a script; name the program that it runs", launch.program.display())
        }
        Ok((launch, _)) => (launch, false),
        Err(error) => match error.downcast::<Unfit>() {
            // Nothing of raddle has to be in it.
            Ok(Unfit::Uninstrumented { path } | Unfit::Static { path }) => {
                (target::plain(&typed, path)?, true)
            }
            Ok(unfit) => return Err(unfit.into()),
            Err(error) => return Err(error),
        },
    };
    target::isolate(&mut launch)?;
    if is_plain {
        // Calls that are bound when they are first made save whatever registers hold to the
        // stack, which is not the same in every execution.
        launch.environment.push(("LD_BIND_NOW".into(), Some("1".into())));
    }
    let plan = (!is_plain).then(Plan::default);
    Ok(Subject { launch, plan, expected })
}

/// Says why nothing could be isolated.
fn refused(args: &IsolateArgs, error: IsolateError) -> Result<Exit> {
    let what = match &args.clip {
        Some(clip) => clip.display().to_string(),
        None => {
            args.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        }
    };
    let again = args.clip.as_ref().map(|clip| format!("; see raddle replay {}", shell::word(clip)));
    let again = again.unwrap_or_default();
    match error {
        IsolateError::Passes { ending } => {
            bail!("{what} does not fail (any more): {ending}; there is nothing to isolate{again}")
        }
        IsolateError::Diverged { why } => {
            eprintln!("raddle: {what} does not replay any more: {why}{again}");
            Ok(Exit::Unjudged)
        }
        IsolateError::Forbidden => {
            eprintln!("raddle: {what}: {error}");
            Ok(Exit::Unjudged)
        }
        IsolateError::Interrupted => Ok(run::interrupted()),
        other => Err(other.into()),
    }
}

/// An isolation, with names.
pub(crate) struct Told<'a> {
    isolation: &'a Isolation,
    namer: Namer,
}

impl<'a> Told<'a> {
    pub(crate) fn new(isolation: &'a Isolation) -> Self {
        let mut namer = Namer::new(&isolation.run);
        if let Some(trace) = &isolation.trace {
            // What cannot be read has no names.
            for (seq, event) in (0..).zip(trace.events().map_while(Result::ok)) {
                namer.push(seq, &event);
            }
        }
        Self { isolation, namer }
    }

    /// The innermost line of the program itself.
    fn frame(&self, at: &AccessAt) -> Frame {
        let is_system = |module: &str| {
            let name = clip::file_name(module);
            name.starts_with("libtsan.so")
                || ["/lib/", "/lib64/", "/usr/lib/"].iter().any(|start| module.starts_with(start))
        };
        let own = at.pcs.iter().find_map(|&pc| {
            let site = self.namer.site(pc);
            let is_own = !site.module.is_empty() && !is_system(&site.module);
            site.own_frame().filter(|_| is_own).cloned()
        });
        let first = || at.pcs.first().map(|&pc| self.namer.site(pc).frame.clone());
        own.or_else(first).unwrap_or_default()
    }

    fn place(&self, at: &AccessAt) -> String {
        let frame = self.frame(at);
        match (&frame.short_file, frame.line) {
            (Some(_), Some(_)) => frame.to_string(),
            _ => at.pcs.first().map(|&pc| self.namer.site(pc).to_string()).unwrap_or_default(),
        }
    }

    fn thread(&self, thread: ThreadId) -> String {
        self.namer.thread(thread)
    }

    fn location(&self, location: Location) -> String {
        match self.namer.place(Addr(location.address), location.n_bytes) {
            Place::Global(variable) => format!("`{}`", variable.name),
            Place::Unknown(_) => {
                format!("the {} bytes at {:#x}", location.n_bytes, location.address)
            }
            other => other.to_string(),
        }
    }

    fn value(at: &AccessAt) -> String {
        at.value.map(|value| format!(" = {value:#x}")).unwrap_or_default()
    }

    /// The name of the variable that a cause is about.
    fn variable(&self, cause: &Cause) -> Option<String> {
        let location = cause.accesses.iter().rev().find_map(|at| at.location)?;
        match self.namer.place(Addr(location.address), location.n_bytes) {
            Place::Global(variable) => Some(variable.name.clone()),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let isolation = self.isolation;
        for link in &isolation.chain {
            let _ = match link {
                Link::Failure { what, at } => {
                    let used = at.location.map(|location| self.location(location));
                    let used = used.map(|used| format!(", which used {used}{}", Self::value(at)));
                    let (thread, place) = (self.thread(at.thread), self.place(at));
                    writeln!(text, "{what}: {thread} at {place}{}", used.unwrap_or_default())
                }
                Link::Definition { at, suppressed } => {
                    let how = if *suppressed { "suppressed" } else { "followed back" };
                    let defined = at.location.map(|location| self.location(location));
                    writeln!(
                        text,
                        "  <- {} {}, {} at {}{} ({how})",
                        words(at),
                        defined.unwrap_or_default(),
                        self.thread(at.thread),
                        self.place(at),
                        Self::value(at),
                    )
                }
            };
        }
        match &isolation.cause {
            Some(cause) => {
                let _ = writeln!(
                    text,
                    "cause: {}",
                    heading(cause.kind, self.variable(cause).as_deref())
                );
                for at in &cause.accesses {
                    let (thread, place) = (self.thread(at.thread), self.place(at));
                    let _ = writeln!(text, "  {thread} {} at {place}{}", verb(at), Self::value(at));
                }
            }
            None => text.push_str("cause: not found\n"),
        }
        let Executions { original, suppression, race, violation, watch } = isolation.executions;
        let total = original + suppression + race + violation;
        let _ = writeln!(
            text,
            "{total} executions ({original} + {suppression} + {race} + {violation}: original, suppression, race, violation), {watch} more to watch memory"
        );
        text
    }

    fn access(&self, role: usize, at: &AccessAt) -> Value {
        let frame = self.frame(at);
        json!({
            "role": role,
            "thread": self.thread(at.thread),
            "op": at.deed.letter().to_string(),
            "file": frame.short_file,
            "line": frame.line,
            "function": frame.function,
            "value": at.value,
            "location": at.location.map(|location| self.location(location)),
        })
    }

    pub(crate) fn json(&self) -> Value {
        let isolation = self.isolation;
        let cause = isolation.cause.as_ref().map(|cause| {
            let mut threads: Vec<ThreadId> = Vec::new();
            let accesses: Vec<Value> = cause
                .accesses
                .iter()
                .map(|at| {
                    let known = threads.iter().position(|thread| *thread == at.thread);
                    let role = known.unwrap_or_else(|| {
                        threads.push(at.thread);
                        threads.len() - 1
                    });
                    self.access(role + 1, at)
                })
                .collect();
            json!({
                "kind": cause.kind.as_str(),
                "variable": self.variable(cause),
                "accesses": accesses,
            })
        });
        let chain: Vec<Value> = isolation
            .chain
            .iter()
            .map(|link| match link {
                Link::Failure { what, at } => {
                    json!({"link": "failure", "detail": what, "access": self.access(1, at)})
                }
                Link::Definition { at, suppressed } => json!({
                    "link": "definition",
                    "suppressed": suppressed,
                    "access": self.access(1, at),
                }),
            })
            .collect();
        let Executions { original, suppression, race, violation, watch } = isolation.executions;
        json!({
            "schema": "raddle/isolate/1",
            "failure": isolation.ending,
            "cause": cause,
            "chain": chain,
            "executions": {
                "original": original,
                "suppression": suppression,
                "race": race,
                "violation": violation,
                "watch": watch,
            },
            "instructions": {"stepped": isolation.n_stepped, "skipped": isolation.n_skipped},
            "notes": isolation.notes,
        })
    }
}

fn heading(kind: CauseKind, variable: Option<&str>) -> String {
    let on = variable.map(|name| format!(" on `{name}`")).unwrap_or_default();
    match kind {
        CauseKind::Race => format!("a race{on}: nothing orders these accesses"),
        CauseKind::Atomicity => {
            format!("an atomicity violation{on}: these came in between each other")
        }
        CauseKind::Order => format!("an order violation{on}: these came in the wrong order"),
        CauseKind::Statement => match variable {
            Some(name) => format!("the first wrong value that was found, of `{name}`"),
            None => "the first wrong value that was found".to_owned(),
        },
    }
}

fn words(at: &AccessAt) -> &'static str {
    use raddle_analysis::witness::Deed;
    match at.deed {
        Deed::Free => "freed:",
        Deed::Init => "came to be without a value:",
        Deed::Destroy => "destroyed:",
        Deed::Signal => "signalled:",
        Deed::Read | Deed::AtomicRead => "used before it had a value:",
        _ => "defined:",
    }
}

fn verb(at: &AccessAt) -> &'static str {
    use raddle_analysis::witness::Deed;
    match at.deed {
        Deed::Read | Deed::AtomicRead => "reads it",
        Deed::Write | Deed::AtomicWrite => "writes it",
        Deed::Free => "frees it",
        Deed::Acquire => "takes it",
        Deed::Release => "gives it back",
        Deed::Wait => "waits for it",
        Deed::Lower => "lowers it",
        Deed::Ask => "asks for its value",
        Deed::Signal => "signals it",
        Deed::Init => "makes it",
        Deed::Destroy => "destroys it",
        Deed::Block => "waits for it in vain",
    }
}
