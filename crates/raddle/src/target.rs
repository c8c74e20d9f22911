//! From what was typed to what is run.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use raddle_code::elf::Files;
use raddle_code::program::Program;
use raddle_report::render::shell;
use raddle_trial::oracle::Oracle;
use raddle_trial::plan::{Delay, IDLE_MAX};
use raddle_trial::verdict::Expected;
use raddle_trial::{Input, Launch, Order, Output, Plan, target};

use crate::args::{ExpectedArgs, ExpiryName, InputArgs, LimitArgs, PlanArgs, TargetArgs};
use crate::guard;
use crate::runtime::RUNTIME;

/// The target that was typed, compiled if need be, and found fit.
pub(crate) fn launch(args: &TargetArgs) -> Result<(Launch, Program)> {
    let Some(name) = args.command.first() else {
        bail!(
            "no program to run; name it after the options, as in: raddle run -- ./program argument"
        );
    };
    let program = target::program(Path::new(name), None, RUNTIME)?;
    let mut launch = plain(args, program.path.clone())?;
    launch.arguments[0] = target::name_of(&program, Path::new(name));
    launch.runtime = RUNTIME.file(program.soname)?;
    Ok((launch, program))
}

/// The target that was typed, as it is: nothing of raddle goes into it.
pub(crate) fn plain(args: &TargetArgs, program: PathBuf) -> Result<Launch> {
    let InputArgs { stdin, env } = &args.input;
    Ok(Launch {
        program,
        arguments: args.command.clone(),
        directory: None,
        environment: env.iter().map(|(name, value)| (name.into(), Some(value.into()))).collect(),
        stdin: match stdin {
            Some(path) => Input::Bytes(read(path)?),
            None => Input::Inherit,
        },
        stdout: Output::Inherit,
        stderr: Output::Inherit,
        timeout: timeout(args.timeout.unwrap_or(TIMEOUT)),
        runtime: PathBuf::new(),
        files: Files::default(),
    })
}

/// A file that was typed.
fn read(path: &PathBuf) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// What a run is given in seconds, if nothing else was typed.
const TIMEOUT: f64 = 60.0;

pub(crate) fn timeout(seconds: f64) -> Option<Duration> {
    // A billion seconds is as good as for ever, and no clock overflows.
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(1e9)))
}

/// Makes two runs alike: input from memory, output into memory. What raddle reads itself
/// could be read only once, and programs buffer differently for a terminal.
pub(crate) fn capture(launch: &mut Launch) -> Result<()> {
    launch.stdout = Output::Capture;
    launch.stderr = Output::Capture;
    if launch.stdin == Input::Inherit {
        launch.stdin = match io::stdin().is_terminal() {
            true => Input::Null,
            false => {
                let mut bytes = Vec::new();
                io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
                Input::Bytes(bytes)
            }
        };
    }
    Ok(())
}

/// For many runs: a backtrace takes a Rust program longer than all that it does before. It is part
/// of what was typed, so that clips have it too.
pub(crate) fn without_backtraces(args: &mut TargetArgs, launch: &mut Launch, program: &Program) {
    const BACKTRACE: &str = "RUST_BACKTRACE";
    if program.has_rust && !args.input.env.iter().any(|(name, _)| name == BACKTRACE) {
        args.input.env.push((BACKTRACE.into(), "0".into()));
        launch.environment.push((BACKTRACE.into(), Some("0".into())));
    }
}

/// Makes the directory that output goes to.
pub(crate) fn output_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path)
        .with_context(|| format!("cannot create directory {}", path.display()))
}

/// Refuses what only works when one thread runs at a time.
pub(crate) fn needs_control(option: &str, plan: &Plan) -> Result<()> {
    if plan.policy().is_none() {
        bail!("{option} does not work with --policy free; use another policy");
    }
    Ok(())
}

/// The plan that was typed.
pub(crate) fn plan(args: &PlanArgs) -> Result<Plan> {
    let mut order = args.policy.clone();
    if let Some(typed) = args.depth {
        let Order::Pct { depth, .. } = &mut order else { bail!("--depth needs --policy pct") };
        *depth = typed;
    }
    if let Some(typed) = args.expect_steps {
        let Order::Pct { n_steps, .. } = &mut order else {
            bail!("--expect-steps needs --policy pct")
        };
        *n_steps = typed;
    }
    delayed(&mut order, args.delay)?;
    Ok(Plan {
        order,
        seed: args.seed,
        spurious: args.spurious,
        expiry: args.expiry.name().expiry(),
        ..limited(args.limits, STEPS_MAX)
    })
}

/// Minutes of steps: a program without end comes to its time-out first.
pub(crate) const STEPS_MAX: u64 = 10_000_000_000;

/// A plan with the limits that were typed, or with this default.
pub(crate) fn limited(args: LimitArgs, n_steps_max: u64) -> Plan {
    let limit = |n: u64| (n > 0).then_some(n);
    Plan {
        n_steps_max: limit(args.max_steps.unwrap_or(n_steps_max)),
        n_idle_max: limit(args.max_idle.unwrap_or(IDLE_MAX)),
        ..Plan::default()
    }
}

/// Adds the delays that were typed.
pub(crate) fn delayed(order: &mut Order, typed: Option<Delay>) -> Result<()> {
    match (order, typed) {
        (Order::Free { delay }, Some(_)) => *delay = typed,
        (_, Some(_)) => bail!("--delay needs --policy free"),
        (_, None) => {}
    }
    Ok(())
}

/// What was typed about what makes a run pass; none if nothing was.
pub(crate) fn expected(args: &ExpectedArgs) -> Result<Option<Expected>> {
    let expected = Expected {
        status: args.expect_exit,
        stdout: args.expect_stdout.as_ref().map(read).transpose()?,
        oracle: args.oracle.clone().map(|command| Oracle {
            command,
            timeout: args.oracle_timeout.map_or(Some(Oracle::TIMEOUT), timeout),
        }),
    };
    Ok((expected != Expected::default()).then_some(expected))
}

/// The command that makes the same run again.
pub(crate) fn again(plan: &PlanArgs, target: &TargetArgs) -> String {
    let mut words = vec!["raddle run".to_owned()];
    let mut option = |name: &str, value: String| words.push(format!("--{name} {value}"));
    option("policy", plan.policy.name().to_owned());
    option("seed", plan.seed.to_string());
    if let Some(depth) = plan.depth {
        option("depth", depth.to_string());
    }
    if let Some(steps) = plan.expect_steps {
        option("expect-steps", steps.to_string());
    }
    if let Some(delay) = plan.delay {
        option("delay", format!("{}:{}", delay.probability, delay.us_max));
    }
    if let Some(path) = &target.input.stdin {
        option("stdin", shell::word(path));
    }
    for (name, value) in &target.input.env {
        option("env", shell::word(format!("{name}={value}")));
    }
    let expiry = plan.expiry.name();
    if expiry != ExpiryName::Fair {
        option("expiry", expiry.as_str().to_owned());
    }
    words.extend(plan.spurious.then(|| "--spurious".to_owned()));
    for word in plan.allow.allow.iter().flat_map(|list| &list.0) {
        words.push(format!("--allow {}", shell::word(word.to_string())));
    }
    words.push("--".to_owned());
    words.extend(target.command.iter().map(shell::word));
    words.join(" ")
}

/// What every command does before it starts a target.
pub(crate) fn prepare() -> Result<()> {
    fix_addresses();
    guard::install()
}

/// The same if a debugger starts the target: what comes from the keyboard is for the debugger.
pub(crate) fn prepare_for_debugger() -> Result<()> {
    fix_addresses();
    Ok(raddle_trial::interrupt::install()?)
}

fn fix_addresses() {
    if let Err(error) = raddle_trial::fix_addresses() {
        eprintln!(
            "raddle: cannot turn off address randomization ({error}); a program that depends on addresses may run differently each time; see raddle doctor"
        );
    }
}
