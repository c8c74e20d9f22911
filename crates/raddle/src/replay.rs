//! `raddle replay`: the same run again, as often as wanted.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use raddle_trace::clip::{Clip, Outcome, Stdin};
use raddle_trace::file::{Trace, Writer};
use raddle_trial::binary::Program;
use raddle_trial::verdict::{Expected, judge};
use raddle_trial::{
    Delivery, End, Execution, Input, Launch, Order, Output, Plan, execute, gdb, processors,
};
use serde_json::json;
use tempfile::TempDir;

use crate::args::ReplayArgs;
use crate::exit::Exit;
use crate::explain::explain;
use crate::{clip, run, runtime, say, shell, target};

pub(crate) fn replay(args: ReplayArgs) -> Result<Exit> {
    let clip = Clip::read(&args.clip).with_context(|| args.clip.display().to_string())?;
    let (launch, program) = launch(&clip, args.program.as_deref(), args.timeout)?;
    if !args.any_build && !clip.build_id.is_empty() && program.build_id != clip.build_id {
        bail!(
            "{} is another build than the one that {} was made with; rebuild that one, make the clip anew, or replay it as far as it fits: raddle replay --any-build {}",
            program.path.display(),
            args.clip.display(),
            shell::word(&args.clip),
        );
    }
    let plan = plan(&clip, !args.any_build);
    target::prepare()?;
    if args.gdb {
        eprintln!("raddle: say `run` to replay {}", args.clip.display());
        gdb::debug(&launch, &plan)?;
        return Ok(Exit::Clean);
    }
    let expected = expected(&clip, &launch)?;
    let tally = Tally::default();
    let replayer = Replayer { clip: &clip, launch, plan, expected, tally: Mutex::new(tally) };
    let directory = TempDir::with_prefix("raddle-replay-")?;
    let trace = directory.path().join("trace");
    // One that is looked at gets its trace, which tells more.
    match args.times {
        1 => replayer.recorded(&trace)?,
        times => replayer.all(times, args.jobs)?,
    }
    let tally = replayer.tally.into_inner().expect("no panic while it was locked");
    tell(&args, &clip, tally, &trace)
}

/// The target that a clip tells of.
pub(crate) fn launch(
    clip: &Clip,
    program: Option<&Path>,
    timeout: Option<f64>,
) -> Result<(Launch, Program)> {
    let directory = Some(PathBuf::from(&clip.directory)).filter(|directory| directory.is_dir());
    if directory.is_none() {
        eprintln!("raddle: there is no directory {}, so this one is used", clip.directory);
    }
    let (typed, program) = match program {
        Some(path) => (path, target::program(path, None)?),
        None => {
            let path = Path::new(&clip.program);
            (path, target::program(path, directory.as_deref())?)
        }
    };
    let arguments = std::iter::once(target::name_of(&program, typed))
        .chain(clip.args.iter().map(Into::into))
        .collect();
    let in_directory = |path: &str| match &directory {
        Some(directory) => directory.join(path),
        None => path.into(),
    };
    let timeout = match (timeout, clip.judge.timeout_ms) {
        (Some(seconds), _) => target::timeout(seconds),
        (None, Some(ms)) => Some(Duration::from_millis(ms)),
        (None, None) => None,
    };
    let launch = Launch {
        program: program.path.clone(),
        arguments,
        environment: clip
            .environment
            .iter()
            .map(|(name, value)| (name.into(), Some(value.into())))
            .collect(),
        stdin: match &clip.stdin {
            Stdin::Empty => Input::Null,
            Stdin::File(path) => Input::File(in_directory(path)),
            Stdin::Bytes(bytes) => Input::Bytes(bytes.clone()),
        },
        stdout: Output::Capture,
        stderr: Output::Capture,
        timeout,
        runtime: runtime::file(program.soname)?,
        directory,
    };
    Ok((launch, program))
}

pub(crate) fn plan(clip: &Clip, strict: bool) -> Plan {
    Plan {
        order: Order::Follow { schedule: clip.schedule.clone(), strict, after: clip.policy },
        seed: clip.seed,
        n_steps_max: (clip.options.steps_max > 0).then_some(clip.options.steps_max),
        spurious: clip.options.spurious,
        early_sleepers: clip.options.early_sleepers,
        cpu: None,
    }
}

pub(crate) fn expected(clip: &Clip, launch: &Launch) -> Result<Expected> {
    let stdout = clip.judge.expect_stdout.as_ref().map(|path| {
        let path = launch.directory.clone().unwrap_or_default().join(path);
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    });
    Ok(Expected {
        status: clip.judge.expect_exit.and_then(|status| u8::try_from(status).ok()),
        stdout: stdout.transpose()?,
        oracle: clip.judge.oracle.clone(),
    })
}

/// A clip that is being replayed, perhaps by many at once.
struct Replayer<'a> {
    clip: &'a Clip,
    launch: Launch,
    plan: Plan,
    expected: Expected,
    tally: Mutex<Tally>,
}

/// What has come of it so far.
#[derive(Default)]
struct Tally {
    n_started: u64,
    n_reproduced: u64,
    n_diverged: u64,
    n_others: u64,
    /// The first that was not as expected, or else the last.
    shown: Option<Execution>,
    interrupted: bool,
}

impl Replayer<'_> {
    fn all(&self, times: u64, jobs: Option<u64>) -> Result<()> {
        let processors = processors();
        let n_jobs = jobs.unwrap_or(processors.len() as u64).min(times);
        let shows_progress = times > 1 && io::stderr().is_terminal();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..n_jobs)
                .map(|job| {
                    // Two that share a processor would be slower than one after the other.
                    let cpu = (n_jobs > 1).then(|| processors[job as usize % processors.len()]);
                    let plan = Plan { cpu, ..self.plan.clone() };
                    scope.spawn(move || {
                        while self.claim(times) {
                            self.once(&plan)?;
                            if shows_progress {
                                self.progress(times);
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
        })
    }

    /// Whether there is one more to do.
    fn claim(&self, times: u64) -> bool {
        let mut tally = self.tally();
        let is_more = tally.n_started < times && !tally.interrupted;
        tally.n_started += u64::from(is_more);
        is_more
    }

    fn once(&self, plan: &Plan) -> Result<()> {
        let execution = execute(&self.launch, plan, Delivery::Nothing)?;
        self.count(execution)
    }

    fn recorded(&self, path: &Path) -> Result<()> {
        let mut writer = Writer::create(path)?;
        let execution = execute(&self.launch, &self.plan, Delivery::Records(&mut writer))?;
        writer.finish(&execution.run)?;
        self.count(execution)
    }

    fn count(&self, execution: Execution) -> Result<()> {
        let verdict = judge(&execution, &self.expected)?;
        let outcome = clip::outcome(&execution, &verdict);
        let reproduced = outcome.is_some_and(|outcome| is_same(&outcome, &self.clip.expect));
        let mut tally = self.tally();
        match execution.outcome.end {
            End::Interrupted => {
                tally.interrupted = true;
                return Ok(());
            }
            _ if reproduced => tally.n_reproduced += 1,
            _ if execution.outcome.end.is_unjudged() => tally.n_diverged += 1,
            _ => tally.n_others += 1,
        }
        let all_as_expected = tally.n_diverged + tally.n_others == 0;
        let is_first_other = !reproduced && tally.n_diverged + tally.n_others == 1;
        if all_as_expected || is_first_other {
            tally.shown = Some(execution);
        }
        Ok(())
    }

    fn progress(&self, times: u64) {
        let n_done = {
            let tally = self.tally();
            tally.n_reproduced + tally.n_diverged + tally.n_others
        };
        let end = if n_done == times { "\r\x1b[K" } else { "" };
        // It is only for the eye.
        let _ = write!(io::stderr().lock(), "\r{n_done} of {times}{end}");
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().expect("no panic while it was locked")
    }
}

/// Whether a run ended as the clip says. Where is left out: lines move, failures stay.
fn is_same(outcome: &Outcome, expect: &Outcome) -> bool {
    outcome.kind == expect.kind && outcome.detail == expect.detail
}

fn tell(args: &ReplayArgs, clip: &Clip, tally: Tally, trace: &Path) -> Result<Exit> {
    let Tally { n_reproduced, n_diverged, n_others, shown, interrupted, .. } = tally;
    if interrupted {
        return Ok(run::interrupted());
    }
    let shown = shown.context("nothing was replayed")?;
    if args.json {
        let object = json!({
            "schema": "raddle/replay/1",
            "times": args.times,
            "reproduced": n_reproduced,
            "diverged": n_diverged,
        });
        writeln!(io::stdout().lock(), "{object}")?;
    } else if args.times == 1 {
        run::relay(&shown)?;
    }
    say::news(&explain(&shown, Trace::open(trace).ok().as_ref()));
    let as_expected = format!("as {} says: {}", args.clip.display(), clip.expect.detail);
    match (args.times, n_reproduced) {
        (1, 1) => eprintln!("raddle: reproduced, {as_expected}"),
        (1, _) => eprintln!("raddle: not {as_expected}"),
        (times, n) => eprintln!("raddle: {n} of {times} reproduced, {as_expected}"),
    }
    if n_diverged > 0 {
        tell_changed_modules(clip, &shown);
    }
    if n_diverged + n_others > 0 && args.times > 1 && args.jobs != Some(1) {
        eprintln!("raddle: if runs at the same time get in each other's way, add --jobs 1");
    }
    Ok(match (n_others, n_diverged) {
        (0, 0) => Exit::Clean,
        (0, _) => Exit::Unjudged,
        _ => Exit::Found,
    })
}

/// A schedule may depart because a library is not the one that it was made with.
fn tell_changed_modules(clip: &Clip, execution: &Execution) {
    for then in &clip.modules {
        let now = execution.run.modules.iter().find(|now| clip::file_name(&now.path) == then.name);
        if now.is_some_and(|now| now.build_id != then.build_id) {
            eprintln!("raddle: {} is another build than when the clip was made", then.name);
        }
    }
}
