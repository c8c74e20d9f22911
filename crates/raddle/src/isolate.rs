//! `raddle isolate`: from a failure back to the write that first went wrong.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Result, bail};
use raddle_code::program::Unfit;
use raddle_isolate::{IsolateError, Target};
use raddle_report::model::{Isolation, IsolationResult, Report};
use raddle_report::render::{Form, Options, shell};
use raddle_trace::clip::Clip;
use raddle_trial::clip::{self as clips, Restored};
use raddle_trial::target::TargetError;
use raddle_trial::verdict::Expected;
use raddle_trial::{Launch, Plan};

use crate::args::{AllowArgs, IsolateArgs, TargetArgs};
use crate::context::{self, Context};
use crate::exit::Exit;
use crate::{allow, clip, replay, run, target};

pub(crate) fn isolate(args: &IsolateArgs) -> Result<Exit> {
    let Subject { launch, plan, expected } = subject(args)?;
    let context = Context::new(launch.files.clone());
    target::prepare()?;
    let (plan, files) = (plan.as_ref(), &context.files);
    let named = Target { launch: &launch, plan, expected: &expected, files };
    let shows = !args.talk.quiet && io::stderr().is_terminal();
    let mut tell = |text: &str| {
        if shows {
            eprintln!("raddle: {text}");
        }
    };
    let isolation = match raddle_isolate::isolate(named, &mut tell) {
        Ok(isolation) => context.names().isolation(&isolation),
        Err(error) => return refused(args, error),
    };
    let (is_found, notes) = (isolation.cause.is_some(), isolation.notes.clone());
    let form = if args.talk.json { Form::Json } else { Form::Text };
    let options = Options { count: usize::MAX, windows: false, directory: Path::new("") };
    context::print(&Report::Isolate(isolation), form, &options)?;
    if !args.talk.quiet {
        for note in &notes {
            eprintln!("raddle: {note}");
        }
    }
    Ok(if is_found { Exit::Found } else { Exit::Unjudged })
}

/// Isolates what a hunt has found, or says why it cannot be.
pub(crate) fn found(context: &Context, path: &Path) -> IsolationResult {
    match of_found(context, path) {
        Ok(isolation) => IsolationResult::Done(Box::new(isolation)),
        Err(error) => IsolationResult::Failed { error: format!("{error:#}") },
    }
}

fn of_found(context: &Context, path: &Path) -> Result<Isolation> {
    let clip = clip::read(path)?;
    let Subject { launch, plan, expected } = of_clip(path, &clip, None, &AllowArgs::default())?;
    let (plan, files) = (plan.as_ref(), &context.files);
    let target = Target { launch: &launch, plan, expected: &expected, files };
    let isolation = raddle_isolate::isolate(target, &mut |_| {})?;
    Ok(context.names().isolation(&isolation))
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
    of_clip(path, &clip::read(path)?, args.timeout, &args.allow)
}

/// The target of a clip.
fn of_clip(path: &Path, clip: &Clip, timeout: Option<f64>, allow: &AllowArgs) -> Result<Subject> {
    let Restored { launch, program, .. } = replay::restore_same(path, clip, timeout)?;
    if !clip.has_current_steps() {
        let (steps, word) = (replay::other_steps(path, clip), shell::word(path));
        bail!("{steps}; give it new steps first: raddle minimize {word}");
    }
    let expected = replay::expected(clip, &launch)?;
    let allow = allow::more(&clip.options.allow, allow, &program.path, &launch.files)?;
    Ok(Subject { launch, plan: Some(clips::plan(clip, true, allow)), expected })
}

fn of_program(args: &IsolateArgs) -> Result<Subject> {
    if args.command.is_empty() {
        bail!(
            "nothing to isolate; name a clip (raddle isolate CLIP) or a program (raddle isolate -- PROGRAM)"
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
            bail!(
                "{} is a script, which raddle isolate cannot follow; name the program that it runs",
                launch.program.display()
            )
        }
        Ok((launch, _)) => (launch, false),
        Err(error) => match error.downcast::<TargetError>() {
            // Nothing of raddle has to be in it.
            Ok(TargetError::Unfit(Unfit::Uninstrumented { path } | Unfit::Static { path })) => {
                (target::plain(&typed, path)?, true)
            }
            Ok(error) => return Err(error.into()),
            Err(error) => return Err(error),
        },
    };
    target::capture(&mut launch)?;
    if is_plain {
        // Calls that are bound when they are first made save whatever registers hold to the
        // stack, which is not the same in every execution.
        launch.environment.push(("LD_BIND_NOW".into(), Some("1".into())));
    }
    if is_plain && !args.allow.allow.is_empty() {
        bail!("--allow needs a program that is built for raddle; without, nothing ends its run");
    }
    let allow = allow::typed(&args.allow, &launch.program, &launch.files)?;
    let plan = (!is_plain).then(|| Plan { allow, ..Plan::default() });
    Ok(Subject { launch, plan, expected })
}

/// Explains why nothing could be isolated.
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
            bail!("{what} does not fail, so there is nothing to isolate: {ending}{again}")
        }
        IsolateError::Diverged { why } => {
            eprintln!("raddle: {what} no longer replays: {why}{again}");
            Ok(Exit::Unjudged)
        }
        IsolateError::Forbidden | IsolateError::TimedOut | IsolateError::Unanswered { .. } => {
            eprintln!("raddle: {what}: {error}");
            Ok(Exit::Unjudged)
        }
        IsolateError::Interrupted => Ok(run::interrupted()),
        other => Err(other.into()),
    }
}
