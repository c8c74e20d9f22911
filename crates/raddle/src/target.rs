//! From what was typed to what is run.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use raddle_trial::binary::{self, Program};
use raddle_trial::plan::PolicyName;
use raddle_trial::unpack::Soname;
use raddle_trial::verdict::Expected;
use raddle_trial::{Input, Launch, Order, Output, Plan, compile};

use crate::args::{ExpectedArgs, InputArgs, PlanArgs, TargetArgs};
use crate::{runtime, shell};

/// The target that was typed, compiled if need be, and found fit.
pub(crate) fn launch(args: &TargetArgs) -> Result<(Launch, Program)> {
    let Some(name) = args.command.first() else {
        bail!("no program to run; name it after `--`, as in: raddle run -- ./program argument");
    };
    let program = program(Path::new(name), None)?;
    let mut launch = plain(args, program.path.clone())?;
    launch.arguments[0] = name_of(&program, Path::new(name));
    launch.runtime = runtime::file(program.soname)?;
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
    })
}

/// A file that was typed.
fn read(path: &PathBuf) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The program that a name means; a source file is compiled, in `directory` if not here.
pub(crate) fn program(name: &Path, directory: Option<&Path>) -> Result<Program> {
    let path = match directory {
        Some(directory) if name.as_os_str().as_encoded_bytes().contains(&b'/') => {
            directory.join(name)
        }
        _ => name.to_owned(),
    };
    match compile::language(&path) {
        Some(language) if path.is_file() => {
            let runtime = runtime::file(Soname::default())?;
            let program = compile::compile(name, language, &runtime, directory)?;
            Ok(binary::check(&program)?)
        }
        _ => Ok(binary::check(&path)?),
    }
}

/// What the program is told that it is called: as it was typed, or after its source file.
pub(crate) fn name_of(program: &Program, typed: &Path) -> OsString {
    match compile::language(typed) {
        Some(_) => program.path.file_name().unwrap_or_default().to_owned(),
        None => typed.as_os_str().to_owned(),
    }
}

/// What a run is given in seconds, if nothing else was typed.
const TIMEOUT: f64 = 60.0;

pub(crate) fn timeout(seconds: f64) -> Option<Duration> {
    // A billion seconds is as good as for ever, and no clock overflows.
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(1e9)))
}

/// Makes two runs alike: input from memory, output into memory. What raddle reads itself
/// could be read only once, and programs buffer differently for a terminal.
pub(crate) fn isolate(launch: &mut Launch) -> Result<()> {
    launch.stdout = Output::Capture;
    launch.stderr = Output::Capture;
    if launch.stdin == Input::Inherit {
        launch.stdin = match io::stdin().is_terminal() {
            true => Input::Null,
            false => {
                let mut bytes = Vec::new();
                io::stdin().read_to_end(&mut bytes).context("cannot read the standard input")?;
                Input::Bytes(bytes)
            }
        };
    }
    Ok(())
}

/// For many runs: a backtrace takes a Rust program longer than all that it does before.
pub(crate) fn without_backtraces(args: &mut TargetArgs) {
    const BACKTRACE: &str = "RUST_BACKTRACE";
    if !args.input.env.iter().any(|(name, _)| name == BACKTRACE) {
        args.input.env.push((BACKTRACE.into(), "0".into()));
    }
}

/// The plan that was typed.
pub(crate) fn plan(args: &PlanArgs) -> Result<Plan> {
    if args.delay.is_some() && args.policy != PolicyName::Free {
        bail!("--delay is for threads that run freely; add --policy free");
    }
    let pct_only =
        [("--depth", args.depth.is_some()), ("--expect-steps", args.expect_steps.is_some())];
    if let Some((option, _)) = pct_only.iter().find(|(_, given)| *given)
        && args.policy != PolicyName::Pct
    {
        bail!("{option} is for the policy pct; add --policy pct");
    }
    let order = match args.policy {
        PolicyName::Random => Order::Random,
        PolicyName::Pct => Order::Pct {
            depth: args.depth.unwrap_or(DEPTH),
            n_steps: args.expect_steps.unwrap_or(EXPECT_STEPS),
        },
        PolicyName::Pos => Order::Pos,
        PolicyName::Rr => Order::Rr,
        PolicyName::Free => Order::Free { delay: args.delay },
        PolicyName::Follow => bail!("to follow a schedule, replay a clip: raddle replay CLIP"),
    };
    Ok(Plan {
        order,
        seed: args.seed,
        n_steps_max: (args.max_steps > 0).then_some(args.max_steps),
        spurious: args.spurious,
        early_sleepers: args.early_sleepers,
        cpu: None,
    })
}

/// Most known bugs need no more than three changes of priority (Burckhardt et al., ASPLOS 2010).
const DEPTH: u32 = 3;
/// A small program's.
const EXPECT_STEPS: u64 = 0;

/// What was typed about what makes a run pass; none if nothing was.
pub(crate) fn expected(args: &ExpectedArgs) -> Result<Option<Expected>> {
    let expected = Expected {
        status: args.expect_exit,
        stdout: args.expect_stdout.as_ref().map(read).transpose()?,
        oracle: args.oracle.clone(),
    };
    Ok((expected != Expected::default()).then_some(expected))
}

/// The command that makes the same run again.
pub(crate) fn again(plan: &PlanArgs, target: &TargetArgs) -> String {
    let mut words = vec!["raddle run".to_owned()];
    let mut option = |name: &str, value: String| words.push(format!("--{name} {value}"));
    option("policy", plan.policy.as_str().to_owned());
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
    for (option, given) in
        [("--spurious", plan.spurious), ("--early-sleepers", plan.early_sleepers)]
    {
        words.extend(given.then(|| option.to_owned()));
    }
    words.push("--".to_owned());
    words.extend(target.command.iter().map(shell::word));
    words.join(" ")
}

/// What every command does before it starts a target.
pub(crate) fn prepare() -> Result<()> {
    if let Err(error) = raddle_trial::fix_addresses() {
        eprintln!(
            "raddle: address randomization cannot be turned off here ({error}); a program that depends on addresses may run differently each time"
        );
    }
    Ok(raddle_trial::interrupt::install()?)
}
