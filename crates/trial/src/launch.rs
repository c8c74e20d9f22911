//! Starting a target.
//!
//! Two runs of one program are to find the same memory: address randomization is off, and
//! the strings that the kernel puts on the first stack always fill the same space
//! ([`STACK_STRINGS_BYTES`]). The standard library starts the target by `posix_spawn`, which
//! does not copy raddle's page tables, so nothing here may need code to run in between.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::personality::{self, Persona};
use raddle_code::elf::Files;
use raddle_trace::control::{HELD_SIGNALS_SHIFT, VARIABLE};
use raddle_trace::file::WriteError;

use crate::capture::{self, Capture};
use crate::family::Family;
use crate::interrupt;
use crate::shm::Block;

/// A target, and how to start it.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The file to execute.
    pub program: PathBuf,
    /// What it is called with, its own name first.
    pub arguments: Vec<OsString>,
    /// Where it runs, if not here.
    pub directory: Option<PathBuf>,
    /// Variables to set, or to remove, in the environment that raddle has.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// Its standard input.
    pub stdin: Input,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
    /// When to give up.
    pub timeout: Option<Duration>,
    /// The runtime library, under the name by which the target asks for it.
    pub runtime: PathBuf,
    /// Module files, to unwind threads that a signal kills. A command has one set, so that each
    /// file is read once.
    pub files: Files,
}

/// A standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Raddle's own.
    #[default]
    Inherit,
    /// Empty.
    Null,
    /// A file.
    File(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// A standard output or standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Raddle's own.
    #[default]
    Inherit,
    /// Nowhere.
    Null,
    /// Kept in memory.
    Capture,
    /// A file, which is written anew.
    File(PathBuf),
}

/// Why a target could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The control block could not be made.
    #[error("cannot create the shared-memory control block: {0}; see raddle doctor")]
    Block(#[source] io::Error),
    /// The program could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file for standard input or output could not be opened.
    #[error("cannot open {} for the target: {source}", path.display())]
    Stream {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Waiting for the target failed.
    #[error("cannot wait for the target: {0}")]
    Wait(#[source] io::Error),
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] WriteError),
}

/// Turns address randomization off for all targets that this process starts.
pub fn fix_addresses() -> io::Result<()> {
    let persona = personality::get()?;
    personality::set(persona | Persona::ADDR_NO_RANDOMIZE)?;
    Ok(())
}

/// A target that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    /// All that it starts; ends with it.
    pub(crate) family: Family,
    /// Whether its process group is its own.
    pub(crate) own_group: bool,
    pub(crate) stdout: Option<Capture>,
    pub(crate) stderr: Option<Capture>,
}

/// Starts the target, with `block` as its control block; without one, as it is: nothing of
/// ours is loaded into it.
pub(crate) fn start(
    launch: &Launch,
    block: Option<&Block>,
    prepare: impl FnOnce(&mut Command),
) -> Result<Running, LaunchError> {
    let mut command = Command::new(&launch.program);
    let (name, arguments) = launch.arguments.split_first().expect("a target has a name");
    command.arg0(name).args(arguments);
    let environment = match block {
        Some(block) => environment(launch, block),
        None => padded(launch, own_environment(launch)),
    };
    command.env_clear().envs(environment);
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    command.stdin(input(&launch.stdin)?);
    let (stdio, stdout) = output(&launch.stdout)?;
    command.stdout(stdio);
    let (stdio, stderr) = output(&launch.stderr)?;
    command.stderr(stdio);
    // A group of its own can be killed with all that the target has started. But a
    // background group that reads from a terminal is stopped by SIGTTIN.
    let own_group = launch.stdin != Input::Inherit || !io::stdin().is_terminal();
    if own_group {
        command.process_group(0);
    }
    prepare(&mut command);
    let mark = block.map_or_else(String::new, |block| format!("{VARIABLE}={}", address(block)));
    let (child, family) = Family::start(&mut command, mark.into_bytes())
        .map_err(|source| LaunchError::Start { program: launch.program.clone(), source })?;
    Ok(Running { child, family, own_group, stdout, stderr })
}

/// The signals that raddle blocks for itself, as options of the control block: the target inherits
/// the mask and unblocks them. Unblocking them here would let them kill us, and leave other
/// targets behind.
pub(crate) fn held_signals() -> u32 {
    let bit = |signal: nix::sys::signal::Signal| 1_u32 << (signal as u32 - 1);
    interrupt::held().iter().fold(0, |bits, signal| bits | bit(signal)) << HELD_SIGNALS_SHIFT
}

fn input(input: &Input) -> Result<Stdio, LaunchError> {
    match input {
        Input::Inherit => Ok(Stdio::inherit()),
        Input::Null => Ok(Stdio::null()),
        Input::File(path) => File::open(path)
            .map(Stdio::from)
            .map_err(|source| LaunchError::Stream { path: path.clone(), source }),
        Input::Bytes(bytes) => capture::input(bytes).map_err(LaunchError::Block),
    }
}

fn output(output: &Output) -> Result<(Stdio, Option<Capture>), LaunchError> {
    match output {
        Output::Inherit => Ok((Stdio::inherit(), None)),
        Output::Null => Ok((Stdio::null(), None)),
        Output::File(path) => File::create(path)
            .map(|file| (file.into(), None))
            .map_err(|source| LaunchError::Stream { path: path.clone(), source }),
        Output::Capture => {
            let capture = Capture::new().map_err(LaunchError::Block)?;
            Ok((capture.stdio().map_err(LaunchError::Block)?, Some(capture)))
        }
    }
}

/// The names that the target finds beside its own; [`PAD`] last, and with [`VARIABLE`] always there.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";
/// What [`PRELOAD`] was, for the programs that the target starts.
const PRELOAD_WAS: &str = "RADDLE_PRELOAD_WAS";
/// As long as is needed.
const PAD: &str = "RADDLE_PAD";

/// The strings that the kernel puts on the first stack, with the pointers to them, fill
/// a multiple of this. A page would do to fix the addresses above, but then an environment
/// that grew by a variable would more often be padded to another size than before.
const STACK_STRINGS_BYTES: usize = 16 << 10;

/// The environment of the target.
pub(crate) fn environment(launch: &Launch, block: &Block) -> Vec<(OsString, OsString)> {
    let mut variables = own_environment(launch);
    let preload_was = variables.get(OsStr::new(PRELOAD)).cloned().unwrap_or_default();
    let mut preload = launch.runtime.clone().into_os_string();
    if !preload_was.is_empty() {
        preload.push(":");
        preload.push(&preload_was);
    }
    variables.insert(PRELOAD.into(), preload);
    variables.insert(PRELOAD_WAS.into(), preload_was);
    variables.insert(VARIABLE.into(), address(block).into());
    padded(launch, variables)
}

/// Where the target finds its control block. No other target that runs has the same.
fn address(block: &Block) -> String {
    format!("{:010}:{:010}", std::process::id(), block.descriptor())
}

/// The environment that the target would have without raddle.
fn own_environment(launch: &Launch) -> BTreeMap<OsString, OsString> {
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in &launch.environment {
        match value {
            Some(value) => variables.insert(name.clone(), value.clone()),
            None => variables.remove(name),
        };
    }
    variables
}

/// Fills the first stack up.
fn padded(
    launch: &Launch,
    mut variables: BTreeMap<OsString, OsString>,
) -> Vec<(OsString, OsString)> {
    variables.insert(PAD.into(), OsString::new());
    let n_bytes = stack_strings_bytes(launch, &variables);
    let padding = n_bytes.next_multiple_of(STACK_STRINGS_BYTES) - n_bytes;
    variables.insert(PAD.into(), "x".repeat(padding).into());
    variables.into_iter().collect()
}

/// What the kernel needs on the first stack for the file's name, the arguments and the
/// environment: every string with its end, and a pointer to each.
fn stack_strings_bytes<'a>(
    launch: &Launch,
    variables: impl IntoIterator<Item = (&'a OsString, &'a OsString)>,
) -> usize {
    const POINTER: usize = size_of::<usize>();
    let string = |string: &OsStr| string.as_bytes().len() + 1;
    let file_name = string(launch.program.as_os_str());
    let arguments: usize = launch.arguments.iter().map(|argument| string(argument) + POINTER).sum();
    let variables: usize = variables
        .into_iter()
        .map(|(name, value)| name.as_bytes().len() + 1 + string(value) + POINTER)
        .sum();
    file_name + arguments + variables
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::Layout;

    use super::*;

    fn launch(arguments: &[&str], environment: &[(&str, &str)]) -> Launch {
        Launch {
            program: "/bin/true".into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: None,
            environment: environment
                .iter()
                .map(|(name, value)| (name.into(), Some(value.into())))
                .collect(),
            stdin: Input::Null,
            stdout: Output::Null,
            stderr: Output::Null,
            timeout: None,
            runtime: "/cache/libtsan.so.2".into(),
            files: Files::default(),
        }
    }

    fn variables(launch: &Launch) -> std::collections::BTreeMap<OsString, OsString> {
        let block = Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file");
        environment(launch, &block).into_iter().collect()
    }

    #[test]
    fn the_first_stack_has_one_size() {
        for launch in [
            launch(&["true"], &[]),
            launch(&["true", "x"], &[]),
            launch(&["true"], &[("A", ""), ("B", "a longer value than before")]),
        ] {
            let bytes = stack_strings_bytes(&launch, &variables(&launch));
            assert!(bytes.is_multiple_of(STACK_STRINGS_BYTES), "{bytes}");
        }
    }

    #[test]
    fn the_users_own_preload_stays() {
        let launch = launch(&["true"], &[(PRELOAD, "/lib/other.so")]);
        let variables = variables(&launch);
        assert_eq!(variables[OsStr::new(PRELOAD)], "/cache/libtsan.so.2:/lib/other.so");
        assert_eq!(variables[OsStr::new(PRELOAD_WAS)], "/lib/other.so");
    }
}
